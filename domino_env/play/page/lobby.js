/** The lobby: who sits where, and what the host may do. */

import { app } from "./app.js";
import { send } from "./connection.js";
import { KICK, fillLevels, kickButton, unsure } from "./controls.js";
import { at, keyed, make, write, writeName } from "./elements.js";
import { toast } from "./screens.js";
import { PLACES, listed, paintSide } from "./view.js";

export function renderLobby(view) {
  const { host, seat: mine } = view.you;
  const before = view.phase === "lobby";
  write(at("lobby-title"), before ? "The table is set" : "Seats");
  write(at("lobby-hint"), lobbyHint(view));
  at("link").value = inviteLink();
  fillLevels(at("level"), view.levels);
  at("start-row").hidden = !host || view.phase === "scored";
  renderStarter(at("begin"), before ? "Start the match" : "Start a new match");
  at("await-host").hidden = host;
  write(at("await-host"), mine === null ? "You are watching. Take a seat, or wait for the host to start."
    : "The host starts the match.");
  at("to-board").hidden = before;
  const places = ["foot", ...(PLACES[view.players - 1] ?? [])];
  at("lobby").classList.toggle("around", places.length === view.players);
  keyed(at("places"), view.seats, (seat) => seat.seat, createPlace, (item, seat) => {
    item.dataset.place = places[seat.seat] ?? "row";
    updatePlace(item, seat, view);
  });
}

/** A button that begins a match, but not twice. */
export function renderStarter(button, word) {
  write(button, app.starting ? "Preparing the bots…" : word);
  button.disabled = app.starting;
}

function lobbyHint(view) {
  const play = view.target === null ? "a single round" : `to ${view.target}`;
  const time = view.seconds === null ? "no time limit" : `${view.seconds} seconds for a move`;
  return `${view.preset.replaceAll("_", " ")}, ${view.players} players, ${play}, ${time}`
    + (view.pairs ? ". Seats of one colour are partners." : ".");
}

const inviteLink = () => `${location.origin}${location.pathname}#${app.room}`;

function createPlace({ seat }) {
  const sit = make("button", { type: "button", className: "sit" });
  const bot = make("select", { className: "bot", "aria-label": `Bot at seat ${seat + 1}` });
  const kick = kickButton(() => app.view.seats[seat].person);
  bot.addEventListener("change", () => send({ kind: "bot", seat, level: bot.value || null }));
  sit.addEventListener("click", () => send(app.view.you.seat === seat ? { kind: "stand" } : { kind: "sit", seat }));
  return make(
    "li",
    { className: "place" },
    make("span", { className: "place-number", textContent: `Seat ${seat + 1}` }),
    make("bdi", { className: "name" }),
    make("span", { className: "place-what" }),
    make("div", { className: "buttons" }, sit, bot, kick),
  );
}

function updatePlace(item, seat, view) {
  const [, name, what, buttons] = item.children;
  const [sit, bot, kick] = buttons.children;
  const person = view.people.find((someone) => someone.person === seat.person);
  const mine = seat.seat === view.you.seat;
  paintSide(item, view, seat.seat);
  item.classList.toggle("mine", mine);
  item.classList.toggle("empty", !seat.name);
  writeName(name, seat.name || "empty");
  write(what, placeWhat(seat, person, mine));
  sit.hidden = person !== undefined && !mine;
  write(sit, mine ? "Stand up" : "Sit here");
  bot.hidden = !view.you.host || person !== undefined || view.phase === "scored";
  kick.hidden = !view.you.host || person === undefined || mine;
  if (item.dataset.person !== String(seat.person)) unsure(kick, KICK);
  item.dataset.person = seat.person;
  fillLevels(bot, view.levels, "no bot");
  if (bot.value !== (seat.bot ?? "") && document.activeElement !== bot) bot.value = seat.bot ?? "";
}

function placeWhat(seat, person, mine) {
  if (seat.bot) return "bot";
  if (!person) return "";
  return listed(mine && "you", person.host && "host", !person.here && "away");
}

export async function copyLink() {
  try {
    await navigator.clipboard.writeText(inviteLink());
  } catch {
    if (at("lobby").hidden) return toast(inviteLink());
    at("link").select();
    if (!document.execCommand("copy")) return toast("Copy the marked link.");
  }
  toast("The invitation link is copied.");
}
