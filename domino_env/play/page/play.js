/** Where you play: the chain, your hand, and the question at which end. */

import { WAITS, app } from "./app.js";
import { tick } from "./clock.js";
import { send } from "./connection.js";
import { at, keyed, make, write } from "./elements.js";
import { BOARD_EDGE, drawChain, numbersOf, tilePicture } from "./tiles.js";
import { myTurn } from "./view.js";

/** On a narrow page a hand of more tiles than this lies in rows. */
const NARROW_HAND = 9;
let shapeTimer;

/** Draws the chain; nothing of an earlier round's may glide into this one's. */
export function renderBoard() {
  const { view } = app;
  const chain = at("chain");
  const board = at("board").getBoundingClientRect();
  if (!view || at("felt").hidden || !board.width) return;
  const { tiles } = view.chain;
  const old = chain.dataset.round !== String(view.round) || tiles.length < chain.dataset.tiles;
  if (old) drawChain(chain, { width: 0, height: 0, tiles: [] }, board, null);
  chain.dataset.round = view.round;
  chain.dataset.tiles = tiles.length;
  drawChain(chain, view.chain, board, app.question ? answer : null);
  const names = tiles.map(({ tile }) => tile.join("-"));
  chain.setAttribute("aria-label", names.length ? `Chain from left to right: ${names.join(", ")}` : "No tile lies yet");
  tellShape(board);
}

/** Tells the server the chain's room, a little after it has stopped to change. */
function tellShape(board) {
  const [width, height] = [board.width, board.height].map((size) =>
    Math.round(Math.min(10000, Math.max(100, size - 2 * BOARD_EDGE))));
  const shape = `${width} ${height}`;
  if (app.shape === shape) return;
  app.shape = shape;
  clearTimeout(shapeTimer);
  shapeTimer = setTimeout(() => send({ kind: "shape", width, height }), WAITS.shape);
}

/** The moves that a tile of the hand may make now: by end, or the opening one. */
function movesOf(view, tile) {
  const same = tile.split("-").sort().join("-");
  const fits = view.legal.filter((move) => move.replace(/[LR]$/, "").split("-").sort().join("-") === same);
  const moves = {};
  for (const move of fits) moves[/[LR]$/.exec(move)?.[0] ?? "only"] = move;
  return moves;
}

export function renderHand(view) {
  const hand = at("hand");
  const playing = view.phase === "playing";
  const count = view.hand.length;
  hand.hidden = !playing || view.you.seat === null;
  hand.style.setProperty("--tiles", Math.max(1, count));
  hand.style.setProperty("--narrow-tiles", Math.max(1, Math.ceil(count / Math.ceil(count / NARROW_HAND))));
  const open = myTurn(view) && app.sentTurn === null;
  hand.classList.toggle("open", open);
  keyed(hand, playing ? view.hand : [], String, createHandTile, (button, tile) => {
    const playable = open && Object.keys(movesOf(view, tile)).length > 0;
    button.disabled = !playable;
    button.classList.toggle("playable", playable);
    button.classList.toggle("asked", app.question?.tile === tile);
    button.setAttribute("aria-label", playable ? `${tile}, playable` : tile);
  });
  if (open && app.handFocus && document.activeElement === document.body) hand.querySelector(".playable")?.focus();
}

function createHandTile(tile) {
  const button = make("button", { type: "button", className: "hand-tile" }, tilePicture(numbersOf(tile), true));
  button.addEventListener("click", () => pick(tile));
  return button;
}

/** A tile of the hand was chosen: plays it where it fits one way, else asks where. */
function pick(tile) {
  const { view } = app;
  if (app.sentTurn !== null) return;
  const moves = movesOf(view, tile);
  const [first, second] = Object.values(moves);
  app.handFocus = at("hand").querySelector(":focus-visible") !== null;
  if (!first) return;
  if (!second) return play(first);
  app.question = app.question?.tile === tile ? null : { turn: view.turn, tile, moves };
  renderQuestioned();
  if (app.question && app.handFocus) at("to-left").focus();
}

/** Answers "left or right". */
export function answer(end) {
  if (app.question) play(app.question.moves[end]);
}

export function cancelQuestion() {
  const { tile } = app.question;
  app.question = null;
  renderQuestioned();
  [...at("hand").children].find((button) => button.getAttribute("aria-label").startsWith(tile))?.focus();
}

function play(move) {
  app.sentTurn = app.view.turn;
  app.question = null;
  send({ kind: "play", turn: app.view.turn, move });
  renderQuestioned();
}

/** What changes on the page when a question opens or is answered. */
function renderQuestioned() {
  renderHand(app.view);
  renderQuestion();
  renderBoard();
  tick();
}

export function renderQuestion() {
  const { question, view } = app;
  at("question").hidden = !question;
  at("prompt-text").hidden = question !== null;
  if (!question) return;
  write(at("question-text"), question.tile);
  for (const [i, id] of ["to-left", "to-right"].entries()) {
    write(at(id).querySelector("b"), String(view.ends[i]));
    at(id).setAttribute("aria-label", `${i ? "Right" : "Left"} end, ${view.ends[i]}`);
  }
}
