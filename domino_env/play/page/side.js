/** The panel at the side: people, the log of the round, and the chat. */

import { app } from "./app.js";
import { send } from "./connection.js";
import { kickButton, onClick, onSubmit } from "./controls.js";
import { at, isolated, keyed, make, write, writeName } from "./elements.js";
import { listed, paintSide } from "./view.js";

const wideSide = matchMedia("(min-width: 1100px)");
const tallSide = matchMedia("(min-width: 1100px) and (min-height: 620px)");

export function renderPeople(view) {
  keyed(at("people-list"), view.people, (person) => person.person, createPerson, (item, person) => {
    const [name, what, kick] = item.children;
    const me = person.person === view.you.person;
    if (person.seat === null) item.dataset.side = "";
    else paintSide(item, view, person.seat);
    writeName(name, person.name);
    const where = person.seat === null ? "watching" : `seat ${person.seat + 1}`;
    write(what, listed(me && "you", where, person.host && "host", !person.here && "away"));
    kick.hidden = me || !view.you.host;
  });
  const rename = at("rename");
  if (document.activeElement !== rename && rename.dataset.name !== view.you.name) rename.value = view.you.name;
  rename.dataset.name = view.you.name;
}

function createPerson({ person }) {
  const [name, what] = [make("bdi", { className: "name" }), make("span", { className: "what" })];
  return make("li", {}, name, what, kickButton(() => person));
}

/** Renders lines of text that grow at the foot, and follows them there unless one has scrolled up. */
function renderLines(list, items, keyOf, create) {
  const following = list.scrollTop + list.clientHeight >= list.scrollHeight - 30;
  keyed(list, items, keyOf, create);
  if (following) list.scrollTop = list.scrollHeight;
}

export function renderEvents(view) {
  const items = view.events.map((text, i) => ({ key: `${view.round} ${i} ${text}`, text }));
  renderLines(at("events"), items, (item) => item.key, ({ text }) => make("li", {}, isolated(text)));
}

export function renderTalk(view) {
  renderLines(at("talk"), view.talk, (item) => item.number, ({ name, text }) => name === null
    ? make("li", { className: "note" }, isolated(text))
    : make("li", {}, isolated(name, "speaker"), isolated(text)));
  const spoken = view.talk.filter(({ name, number }) => name !== null && number > app.seenTalk).length;
  const seen = !document.hidden && chatShown();
  if (seen) app.seenTalk = view.talk.at(-1)?.number ?? app.seenTalk;
  at("unread").hidden = seen || !spoken;
  write(at("unread"), String(spoken));
}

function chatShown() {
  const open = wideSide.matches || at("side").classList.contains("open");
  return open && (tallSide.matches || at("side").dataset.tab === "chat");
}

export function openSide(open) {
  at("side").classList.toggle("open", open);
  at("side-button").setAttribute("aria-expanded", open);
}

function chooseTab(name) {
  at("side").dataset.tab = name;
  for (const button of at("tabs").querySelectorAll("[data-tab]")) {
    button.setAttribute("aria-pressed", button.dataset.tab === name);
  }
  for (const list of [at("events"), at("talk")]) list.scrollTop = list.scrollHeight;
  if (app.view) renderTalk(app.view);
}

export function bindSide() {
  chooseTab("chat");
  onClick("side-button", () => {
    openSide(true);
    at("side-close").focus();
    renderTalk(app.view);
  });
  onClick("side-close", () => {
    openSide(false);
    at("side-button").focus();
  });
  for (const button of at("tabs").querySelectorAll("[data-tab]")) {
    button.addEventListener("click", () => chooseTab(button.dataset.tab));
  }
  onSubmit("say-form", () => {
    const text = at("say").value.trim();
    if (text) send({ kind: "say", text });
    at("say").value = "";
  });
  onSubmit("rename-form", () => send({ kind: "rename", name: at("rename").value.trim() }));
}
