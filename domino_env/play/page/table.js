/** The dominoes table: shows what the server last told, and sends wishes. The server decides everything. */

import { WAITS, app } from "./app.js";
import { tick } from "./clock.js";
import { hurry, listen, ping } from "./connection.js";
import { at } from "./elements.js";
import { narrowPage } from "./felt.js";
import { heard } from "./messages.js";
import { cancelQuestion, renderBoard } from "./play.js";
import { bindRoom, render, renderTitle, toggleFinal } from "./room.js";
import { bindSide, openSide, renderTalk } from "./side.js";
import { begin, bindStart, invitedTo, renderStart } from "./start.js";

function onEscape() {
  if (app.question) cancelQuestion();
  else if (app.finalShown) toggleFinal(false);
  else openSide(false);
}

function bindWindow() {
  document.addEventListener("keydown", (event) => event.key === "Escape" && onEscape());
  document.addEventListener("visibilitychange", () => {
    renderTitle();
    if (document.hidden) return;
    hurry();
    ping();
    if (app.view) renderTalk(app.view);
  });
  addEventListener("online", hurry);
  // Another invitation in the same tab: the page begins anew, and the seat of this table stays kept.
  addEventListener("hashchange", () => {
    if (app.token && invitedTo() !== app.room) location.reload();
    else if (!app.token) renderStart();
  });
  narrowPage.addEventListener("change", () => app.view && render());
  new ResizeObserver(renderBoard).observe(at("board"));
  setInterval(tick, 250);
  setInterval(ping, WAITS.ping);
}

listen(heard);
bindStart();
bindRoom();
bindSide();
bindWindow();
begin();
