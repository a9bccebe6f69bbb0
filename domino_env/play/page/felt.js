/** The table while a match is on: the seats around the chain, each with its name and its tiles. */

import { renderFinal, renderOutcome } from "./ending.js";
import { at, keyed, make, write, writeName } from "./elements.js";
import { renderBoard, renderHand, renderQuestion } from "./play.js";
import { numbersOf, tilePicture } from "./tiles.js";
import { PLACES, homeSeat, listed, paintSide, pipsOf, seatName, sideOf } from "./view.js";

export const narrowPage = matchMedia("(max-width: 640px) and (orientation: portrait)");

export function renderFelt(view) {
  const home = homeSeat(view);
  const others = Array.from({ length: view.players - 1 }, (_, i) => view.seats[(home + 1 + i) % view.players]);
  const around = narrowPage.matches ? undefined : PLACES[others.length];
  const places = around ?? others.map(() => "row");
  at("felt").classList.toggle("rows", !around);
  at("felt").classList.toggle("watching", view.you.seat === null);
  keyed(at("others"), others, (seat) => seat.seat, createSeat, (node, seat) => {
    node.dataset.place = places[others.indexOf(seat)];
    updateSeat(node, seat, view);
  });
  keyed(at("home"), [view.seats[home]], (seat) => seat.seat, createSeat, (node, seat) => {
    node.dataset.place = "home";
    updateSeat(node, seat, view);
  });
  renderFacts(view);
  renderBoard();
  renderHand(view);
  renderQuestion();
  renderOutcome(view);
  renderFinal(view);
}

function createSeat() {
  return make(
    "div",
    { className: "seat", role: "group" },
    make(
      "div",
      { className: "who" },
      make("bdi", { className: "name" }),
      make("span", { className: "score" }),
      make("span", { className: "count" }),
      make("span", { className: "badge" }),
      make("span", { className: "fuse" }),
    ),
    make(
      "div",
      { className: "lay" },
      make("div", { className: "tiles", "aria-hidden": "true" }),
      make("span", { className: "bubble" }),
    ),
  );
}

function updateSeat(node, seat, view) {
  const [who, lay] = node.children;
  const [tiles, bubble] = lay.children;
  const [name, score, count, badge] = who.children;
  paintSide(node, view, seat.seat);
  node.classList.toggle("acting", seat.acting);
  node.classList.toggle("mine", seat.seat === view.you.seat);
  writeName(name, seatName(seat));
  write(score, view.sides.length > 4 && view.target !== null ? `${view.scores[sideOf(view, seat.seat)]} pt` : "");
  write(count, seat.hand ? `${pipsOf(seat.hand)} pips` : String(seat.tiles));
  count.title = seat.hand ? "pips left" : "tiles";
  write(badge, seatBadge(seat, view));
  badge.title = seat.substitute ? "a bot plays for them" : "";
  node.setAttribute("aria-label", seatLabel(seat, badge.textContent));
  const words = bubbleOf(seat, view);
  bubble.hidden = !words;
  write(bubble, words);
  renderTiles(tiles, seat, view, node.dataset.place);
}

function seatBadge(seat, view) {
  if (seat.substitute) return "bot";
  if (seat.person === null) return "";
  const person = view.people.find((someone) => someone.person === seat.person);
  return person?.here ? "" : "away";
}

function seatLabel(seat, badge) {
  const tiles = seat.hand ? `${seat.hand.length} tiles left, ${pipsOf(seat.hand)} pips` : `${seat.tiles} tiles`;
  const who = seat.substitute ? "a bot plays for them" : badge;
  return listed(seatName(seat), tiles, who, seat.acting && "to play");
}

/** What a seat just did, where that was no tile; draws in a row are counted. */
function bubbleOf(seat, view) {
  if (view.phase !== "playing" || (seat.did !== "pass" && seat.did !== "draw")) return "";
  if (seat.did === "pass") return "passes";
  const isDraw = (text) => text.startsWith(`${seat.name} draw`);
  const last = view.events.findLastIndex(isDraw);
  const others = view.events.slice(0, last + 1).findLastIndex((text) => !isDraw(text));
  return last - others > 1 ? `draws ${last - others}` : "draws";
}

/** A seat's tiles beside its name: backs, or faces once the round is over. Your own lie in your hand. */
function renderTiles(node, seat, view, place) {
  const shown = seat.hand ?? (seat.seat === view.you.seat ? [] : Array.from({ length: seat.tiles }, () => null));
  const lying = place === "left" || place === "right";
  node.classList.toggle("faces", seat.hand !== null);
  const items = shown.map((tile, i) => ({ key: tile ? `${tile} ${lying}` : i, tile }));
  keyed(node, items, (item) => item.key, ({ tile }) => {
    const picture = tile ? [tilePicture(numbersOf(tile), !lying)] : [];
    return make("i", {}, ...picture);
  });
}

function renderFacts(view) {
  const { boneyard, ends } = view;
  write(at("boneyard"), boneyard === null ? "" : `${boneyard} in the boneyard`);
  at("boneyard").classList.toggle("none", boneyard === null);
  write(at("ends"), ends ? `Ends ${ends[0]} and ${ends[1]}` : "No tile yet");
}
