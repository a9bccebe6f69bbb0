/** The connection: sends wishes, hands on what the server says, and comes back when it is lost. */

import { WAITS, app } from "./app.js";
import { at, write } from "./elements.js";
import { busy, toast } from "./screens.js";

let retryTimer;
let answerTimer;
let heard;

/** Says what to do with each kind of message. It is not imported, for it sends wishes itself. */
export function listen(handlers) {
  heard = handlers;
}

export function send(message) {
  if (app.socket?.readyState === WebSocket.OPEN) app.socket.send(JSON.stringify(message));
}

/** Opens a socket of which `first` is the first message. */
export function connect(first) {
  dropSocket();
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}/ws`);
  app.socket = socket;
  socket.addEventListener("open", () => send(first));
  socket.addEventListener("message", (event) => {
    if (socket !== app.socket) return;
    clearTimeout(answerTimer);
    const message = JSON.parse(event.data);
    heard[message.kind]?.(message);
  });
  socket.addEventListener("close", () => socket === app.socket && lost());
}

export function dropSocket() {
  const socket = app.socket;
  app.socket = null;
  clearTimeout(retryTimer);
  clearTimeout(answerTimer);
  socket?.close();
}

/** The socket has closed by itself: comes back with growing waits, or says that the table cannot be reached. */
export function lost() {
  dropSocket();
  if (!app.token) {
    busy(false);
    toast("The table cannot be reached.");
    return;
  }
  at("banner").hidden = false;
  write(at("banner"), "Connection lost. Trying again…");
  const [shortest, longest] = WAITS.retry;
  retryTimer = setTimeout(comeBack, Math.min(longest, shortest * 2 ** app.tries));
  app.tries += 1;
}

export function comeBack() {
  connect({ kind: "return", room: app.room, token: app.token });
}

/** Asks for a sign of life; a socket that gives none is given up. */
export function ping() {
  if (app.socket?.readyState !== WebSocket.OPEN) return;
  send({ kind: "ping" });
  clearTimeout(answerTimer);
  answerTimer = setTimeout(lost, WAITS.answer);
}

/** Comes back at once when the browser says that it is worth trying. */
export function hurry() {
  if (app.token && !app.socket) {
    clearTimeout(retryTimer);
    comeBack();
  }
}
