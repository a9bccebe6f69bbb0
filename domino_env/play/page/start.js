/** The start: games to open, tables to enter or to come back to, and notices of a table that was left. */

import { WAITS, app } from "./app.js";
import { comeBack, connect, dropSocket } from "./connection.js";
import { onClick, onSubmit } from "./controls.js";
import { at, isolated, keyed, make, write } from "./elements.js";
import { forgetView } from "./room.js";
import { busy, show, toast } from "./screens.js";
import { browser, keptSeats, tab, tabKey } from "./storage.js";
import { tilePicture } from "./tiles.js";

const GAMES = [
  { preset: "duplas", name: "Duplas", players: [4, 4], usual: 4, target: 6,
    about: "Two pairs. Who cannot play passes. Points for how you go out." },
  { preset: "mano_a_mano", name: "Mano a mano", players: [2, 2], usual: 2, target: 6,
    about: "Two players. Draw until a tile fits. Points for how you go out." },
  { preset: "blocos", name: "Blocos", players: [2, 9], usual: 2, target: 50,
    about: "Two to nine. Who cannot play passes. The winner scores the pips left." },
  { preset: "puxar", name: "Puxar", players: [2, 4], usual: 2, target: 100,
    about: "Two to four. Draw one tile and the turn goes on. Pips left score." },
];

/** Takes the table's code out of the address: there is no way back to it. */
export const forgetAddress = () => history.replaceState(null, "", location.pathname);

export function goToStart() {
  dropSocket();
  Object.assign(app, { room: null, person: null, token: null, version: -1, tries: 0, question: null });
  forgetView();
  at("banner").hidden = true;
  document.title = "Dominoes";
  renderStart();
  show("start");
}

/** A screen with one thing to say; for a room whose seat is kept, a way back to it. */
export function showNotice(title, text, room) {
  write(at("notice-title"), title);
  write(at("notice-text"), text);
  const seat = keptSeats()[room];
  at("notice-return").hidden = !seat;
  at("notice-return").onclick = () => returnTo(room, seat.token);
  show("notice");
  at("notice-back").focus();
}

function returnTo(room, token) {
  Object.assign(app, { room, token, person: null });
  showNotice("Coming back to the table", `Table ${room}`, null);
  comeBack();
}

const game = () => GAMES.find(({ preset }) => preset === at("open-form").elements.preset.value);
const codeIn = (text) => text.slice(text.lastIndexOf("#") + 1).toUpperCase().replace(/[^A-Z0-9]/g, "");
export const invitedTo = () => codeIn(location.hash);

export function renderStart() {
  const room = invitedTo();
  const seats = keptSeats();
  const rooms = Object.keys(seats).filter((kept) => !room || kept === room);
  at("invitation").hidden = !room;
  write(at("invited"), room);
  at("code").value = room;
  keyed(at("returns"), rooms, String, createReturn, (item, kept) => updateReturn(item, kept, seats[kept]));
}

function createReturn() {
  const button = make("button", { type: "button" });
  return make("li", {}, button);
}

function updateReturn(item, room, seat) {
  const button = item.firstChild;
  button.replaceChildren(`Return to your seat at ${room} as `, isolated(seat.name));
  button.onclick = () => returnTo(room, seat.token);
}

function createGame({ preset, name, about }) {
  const input = make("input", { type: "radio", name: "preset", value: preset, required: true });
  const words = [make("b", { textContent: name }), make("span", { textContent: about })];
  return make("label", { className: "game" }, input, ...words);
}

/** The fields of the game chosen: players where they vary, and its usual target. */
function renderGame() {
  const { players: [least, most], usual, target } = game();
  const counts = Array.from({ length: most - least + 1 }, (_, i) => least + i);
  at("players").replaceChildren(...counts.map((count) => make("option", { value: count, textContent: count })));
  at("players").value = usual;
  at("players").disabled = least === most;
  at("target").value = target;
}

function askToOpen() {
  const { preset, usual, target } = game();
  const changes = {};
  const players = Number(at("players").value);
  const points = at("single").checked ? null : Number(at("target").value);
  if (players !== usual) changes.players = players;
  if (points !== target) changes.target = points;
  const seconds = at("seconds").value ? Number(at("seconds").value) : null;
  askIn({ kind: "open", preset, changes, seconds });
}

/** Asks to be let in, by the name given. */
function askIn(message) {
  const name = at("name");
  name.value = name.value.trim();
  if (!name.reportValidity()) return;
  busy(true);
  connect({ ...message, name: name.value });
}

/** What the tabs of this browser ask each other; null where the browser refuses it. */
const tabs = (() => {
  try {
    return new BroadcastChannel("domino-table");
  } catch {
    return null;
  }
})();
tabs?.addEventListener("message", ({ data }) => {
  if (app.token && data.ask === app.room) tabs.postMessage({ here: app.room });
});

/** Whether another tab is this person at this table now (a duplicated tab has a copy of its storage). */
function heldElsewhere(room) {
  return new Promise((answer) => {
    tabs?.addEventListener("message", ({ data }) => data.here === room && answer(true));
    tabs?.postMessage({ ask: room });
    setTimeout(() => answer(false), WAITS.twin);
  });
}

/** Reload keeps the seat: with its key in this tab, and in no other, you are back at once. */
export async function begin() {
  at("name").value = browser.get("domino-name") ?? "";
  const room = invitedTo();
  const token = room && tab.get(tabKey(room));
  if (token && !(await heldElsewhere(room))) return returnTo(room, token);
  if (token) {
    tab.remove(tabKey(room));
    toast("You are at this table in another tab.");
  }
  goToStart();
}

export function bindStart() {
  at("games").append(...GAMES.map(createGame));
  at("open-form").elements.preset.value = GAMES[0].preset;
  at("games").addEventListener("change", renderGame);
  at("single").addEventListener("change", () => (at("target").disabled = at("single").checked));
  at("emblem").append(tilePicture([6, 4], false));
  renderGame();
  onSubmit("open-form", askToOpen);
  onSubmit("join-form", () => askIn({ kind: "enter", room: codeIn(at("code").value) }));
  onClick("accept", () => askIn({ kind: "enter", room: invitedTo() }));
  onClick("notice-back", () => {
    forgetAddress();
    goToStart();
  });
}
