/** The time left, wherever it is shown. */

import { app } from "./app.js";
import { at, write, writeName } from "./elements.js";
import { myTurn, seatName } from "./view.js";

/** So many seconds before the end the time is shown as short. */
const LATE = 10;

/** Seconds until the deadline; null without one. */
const secondsLeft = () => (app.deadline === null ? null : Math.max(0, (app.deadline - performance.now()) / 1000));

/** What shows the time: the sentence above the hand, the line under the acting name, the wait for a round. */
export function tick() {
  const { view } = app;
  if (!view || at("room").hidden) return;
  const left = secondsLeft();
  const time = left === null ? "" : `${Math.ceil(left)} s`;
  renderPrompt(view, time);
  const clock = at("outcome-clock");
  if (clock) write(clock, view.phase === "scored" && time ? `Next round in ${time}.` : "");
  for (const seat of document.querySelectorAll(".seat.acting")) {
    const part = left === null ? 0 : left / Math.max(view.seconds ?? 0, view.left);
    seat.querySelector(".fuse").style.transform = `scaleX(${Math.min(1, part)})`;
    seat.classList.toggle("late", left !== null && left <= LATE);
  }
}

function renderPrompt(view, time) {
  const acting = view.seats.find((seat) => seat.acting);
  const [name, words] = promptWords(view, acting);
  writeName(at("prompt-name"), name);
  write(at("prompt-words"), words);
  write(at("prompt-time"), view.phase === "playing" && acting ? time : "");
  at("prompt-text").classList.toggle("call", myTurn(view));
}

/** Who the sentence above the hand is about, and the sentence. */
function promptWords(view, acting) {
  if (view.phase !== "playing") return ["", ""];
  if (app.sentTurn !== null) return ["", "Playing…"];
  if (myTurn(view)) return ["", view.chain.tiles.length ? "Your turn" : "Your turn: open"];
  if (acting) return [seatName(acting), "to play"];
  return ["", ""];
}
