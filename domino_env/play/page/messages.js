/** What the page does with each message of the server's. */

import { app } from "./app.js";
import { dropSocket, lost } from "./connection.js";
import { at, make } from "./elements.js";
import { winnerText } from "./ending.js";
import { forgetView, render } from "./room.js";
import { busy, toast } from "./screens.js";
import { forgetAddress, goToStart, showNotice } from "./start.js";
import { browser, forgetSeat, keepSeat, tab, tabKey } from "./storage.js";
import { myTurn } from "./view.js";

const CLOSED = {
  kicked: "You were asked to leave",
  elsewhere: "You are at this table somewhere else",
  room: "The table is closed",
  flood: "Too many messages",
};

export const heard = {
  entered({ room, person, token }) {
    const other = room !== app.room || person !== app.person;
    Object.assign(app, { room, person, token, version: -1, tries: 0, sentTurn: null, readyTurn: null, question: null });
    Object.assign(app, { starting: false, shape: null });
    if (other) forgetView();
    keepSeat(room, token, app.view?.you.name ?? at("name").value);
    history.replaceState(null, "", `#${room}`);
    at("banner").hidden = true;
    busy(false);
  },

  state(view) {
    if (!app.token || view.room !== app.room || view.version <= app.version) return;
    const before = app.view;
    app.version = view.version;
    app.view = view;
    app.sentTurn = null;
    if (view.phase === "playing") app.starting = app.managing = false;
    app.deadline = view.left === null ? null : performance.now() + view.left * 1000;
    if (app.question?.turn !== view.turn) app.question = null;
    if (view.phase !== "over") app.finalShown = false;
    else if (before?.phase !== "over") app.finalShown = true;
    keepName(before, view);
    announce(before, view);
    render();
  },

  refused({ about, code, why }) {
    busy(false);
    if (about === "return") {
      if (code !== "no-room" && code !== "no-person") return lost();
      forgetSeat(app.room, app.token);
      if (code === "no-room") forgetAddress();
      goToStart();
    }
    if (!app.token) dropSocket();
    // A wish that was one too many is refused without a word about which.
    if (about === "play" || about === null) app.sentTurn = null;
    if (about === "next" || about === null) app.readyTurn = null;
    app.starting = false;
    toast(why);
    if (app.view) render();
  },

  record({ name, text }) {
    const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    make("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  },

  closed({ code, why }) {
    const { room, token } = app;
    if (code === "elsewhere" || code === "flood") tab.remove(tabKey(room));
    else {
      forgetSeat(room, token);
      forgetAddress();
    }
    goToStart();
    if (code !== "left") showNotice(CLOSED[code] ?? "You left the table", why, room);
  },
};

/** The name that the browser remembers is the one you have at the table. */
function keepName(before, { you }) {
  if (before?.you.name === you.name) return;
  keepSeat(app.room, app.token, you.name);
  browser.set("domino-name", you.name);
  at("name").value = you.name;
}

/** Says what happened since the state before, and that it is your turn. */
function announce(before, view) {
  if (!before) return;
  const known = before.round === view.round && before.events.length <= view.events.length ? before.events.length : 0;
  const news = view.events.slice(known).slice(-6);
  if (view.result && !before.result) news.push(view.result.text);
  if (view.phase === "over" && before.phase !== "over") news.push(winnerText(view));
  if (myTurn(view) && (view.turn !== before.turn || !myTurn(before))) news.push("Your turn");
  if (news.length) at("voice").textContent = news.join(". ");
}
