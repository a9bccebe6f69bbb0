/** The end of a round and of a match, and the rounds so far. */

import { app } from "./app.js";
import { at, isolated, keyed, make, write, writeName } from "./elements.js";
import { renderStarter } from "./lobby.js";
import { sideName } from "./view.js";

export function renderOutcome(view) {
  const { phase, you, result } = view;
  const ended = phase === "scored" || phase === "over";
  at("outcome").hidden = !ended;
  if (!ended) return;
  write(at("outcome-text"), phase === "over" ? winnerText(view) : (result?.text ?? ""));
  const ready = app.readyTurn === view.turn || !view.waiting.includes(you.name);
  at("next").hidden = phase !== "scored" || you.seat === null;
  at("next").disabled = ready;
  at("again").hidden = phase !== "over" || !you.host;
  renderStarter(at("again"), "Play again");
  at("save").hidden = phase !== "over";
  renderWaiting(view);
}

function renderWaiting(view) {
  const names = view.waiting.flatMap((name, i) => [i ? ", " : "", isolated(name)]);
  const wait = view.phase === "scored" && names.length ? [" Waiting for ", ...names, "."] : [];
  if (view.phase === "over" && !view.you.host) wait.push("The host may start another match.");
  at("outcome-wait").replaceChildren(make("span", { id: "outcome-clock" }), ...wait);
}

export function winnerText(view) {
  return view.winner === null ? "The match is drawn" : `${sideName(view, view.winner)} won the match`;
}

/** The rounds of the match, with its winner once it is over; it opens by itself then. */
export function renderFinal(view) {
  at("final").hidden = !app.finalShown;
  at("rounds-button").setAttribute("aria-pressed", app.finalShown);
  if (!app.finalShown) return;
  write(at("final-title"), view.phase === "over" ? winnerText(view) : "Rounds of this match");
  renderCells(at("final-head"), "th", ["Round", ...view.sides.map((_, side) => sideName(view, side))]);
  const lines = view.rounds.flatMap(({ round, scores, text }) => [
    { key: `${round}`, cells: [round, ...scores].map(String) },
    { key: `${round} told`, cells: [text] },
  ]);
  keyed(at("final-rows"), lines, (line) => line.key, () => make("tr"), (row, { cells }) => {
    renderCells(row, "td", cells);
    row.classList.toggle("told", cells.length === 1);
    if (cells.length === 1) row.firstChild.colSpan = view.sides.length + 1;
  });
}

function renderCells(row, tag, texts) {
  const cells = texts.map((text, i) => ({ i, text }));
  const create = () => make(tag, {}, make("bdi"));
  keyed(row, cells, ({ i }) => i, create, (cell, { text }) => writeName(cell.firstChild, text));
}
