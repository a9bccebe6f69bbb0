/** Which screen is shown, and what is said over all of them. */

import { WAITS } from "./app.js";
import { at, isolated, make } from "./elements.js";

export function show(screen) {
  for (const id of ["start", "notice", "room"]) at(id).hidden = id !== screen;
}

/** While the server is asked to let you in, it is not asked again. */
export function busy(yes) {
  for (const button of at("start").querySelectorAll("button")) button.disabled = yes;
}

export function toast(text) {
  const item = make("li", {}, isolated(text));
  at("toasts").append(item);
  while (at("toasts").children.length > 3) at("toasts").firstChild.remove();
  setTimeout(() => item.remove(), WAITS.toast);
}
