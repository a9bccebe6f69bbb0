/** The room: the whole screen of it, and what its buttons do. */

import { app } from "./app.js";
import { tick } from "./clock.js";
import { send } from "./connection.js";
import { DEFAULT_LEVEL, onClick, sure } from "./controls.js";
import { at, keyed, make, write, writeName } from "./elements.js";
import { renderOutcome } from "./ending.js";
import { renderFelt } from "./felt.js";
import { copyLink, renderLobby } from "./lobby.js";
import { answer, cancelQuestion } from "./play.js";
import { show } from "./screens.js";
import { openSide, renderEvents, renderPeople, renderTalk } from "./side.js";
import { myTurn, sideName } from "./view.js";

export function render() {
  const { view } = app;
  const lobby = view.phase === "lobby" || app.managing;
  at("room").dataset.phase = view.phase;
  at("lobby").hidden = !lobby;
  at("felt").hidden = lobby;
  show("room");
  renderBar(view);
  if (lobby) renderLobby(view);
  else renderFelt(view);
  renderPeople(view);
  renderEvents(view);
  renderTalk(view);
  renderTitle();
  tick();
}

function renderBar(view) {
  write(at("title"), view.title);
  at("multiplier").hidden = view.multiplier <= 1;
  write(at("multiplier"), `×${view.multiplier}`);
  const shown = view.target !== null && view.phase !== "lobby" && view.sides.length <= 4;
  keyed(at("scores"), shown ? view.sides.map((_, side) => side) : [], String, createScore, (item, side) => {
    item.dataset.side = view.pairs ? side : "";
    writeName(item.children[0], sideName(view, side));
    write(item.children[1], String(view.scores[side]));
  });
  at("rounds-button").hidden = view.phase === "lobby";
}

function createScore() {
  return make("li", {}, make("bdi", { className: "name" }), make("b"));
}

export function renderTitle() {
  if (!app.view) return;
  const turn = document.hidden && myTurn(app.view);
  document.title = (turn ? "● your turn – " : "") + app.view.title;
}

/** Forgets all of a room that was shown. */
export function forgetView() {
  Object.assign(app, { view: null, deadline: null, managing: false, finalShown: false, seenTalk: 0, handFocus: false });
  for (const id of ["talk", "events", "chain", "others", "home", "hand", "places"]) keyed(at(id), [], String);
  at("say").value = "";
  openSide(false);
}

function startMatch() {
  app.starting = true;
  send({ kind: "start", level: at("level").value || DEFAULT_LEVEL });
  render();
}

export function toggleFinal(shown) {
  app.finalShown = shown;
  if (shown) app.managing = false;
  render();
  at("final-scroll").scrollTop = at("final-scroll").scrollHeight;
}

export function bindRoom() {
  onClick("invite", copyLink);
  onClick("copy", copyLink);
  onClick("begin", startMatch);
  onClick("again", startMatch);
  onClick("save", () => send({ kind: "record" }));
  onClick("leave", () => sure(at("leave"), () => send({ kind: "leave" }), at("leave-word")));
  onClick("next", () => {
    app.readyTurn = app.view.turn;
    send({ kind: "next", turn: app.view.turn });
    renderOutcome(app.view);
  });
  for (const [id, managing] of [["to-lobby", true], ["to-board", false]]) {
    onClick(id, () => {
      app.managing = managing;
      render();
    });
  }
  onClick("rounds-button", () => toggleFinal(!app.finalShown));
  onClick("final-close", () => toggleFinal(false));
  onClick("to-left", () => answer("L"));
  onClick("to-right", () => answer("R"));
  onClick("to-none", cancelQuestion);
}
