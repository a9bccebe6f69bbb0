/** Buttons, selections and forms. */

import { WAITS } from "./app.js";
import { send } from "./connection.js";
import { at, make, write } from "./elements.js";

export const DEFAULT_LEVEL = "counting";
export const KICK = "Send away";

/** Offers the levels of bots, after a first choice that is none of them where it is given. */
export function fillLevels(select, levels, first) {
  const values = [...(first ? [""] : []), ...levels];
  if (select.options.length === values.length) return;
  const chosen = select.value || (first ? "" : DEFAULT_LEVEL);
  select.replaceChildren(...values.map((level) => make("option", { value: level, textContent: level || first })));
  select.value = chosen;
}

/** A button that sends away the person whom `who` names when it is pressed. */
export function kickButton(who) {
  const kick = make("button", { type: "button", className: "kick", textContent: KICK });
  kick.addEventListener("click", () => sure(kick, () => send({ kind: "kick", person: who() })));
  return kick;
}

/** Does what a button asks only on its second press within some seconds. */
export function sure(button, action, word = button) {
  if (button.dataset.sure) return action();
  const plain = word.textContent;
  button.dataset.sure = "yes";
  write(word, "Sure?");
  setTimeout(() => unsure(word, plain, button), WAITS.sure);
}

export function unsure(word, plain, button = word) {
  delete button.dataset.sure;
  write(word, plain);
}

export function onSubmit(id, action) {
  at(id).addEventListener("submit", (event) => {
    event.preventDefault();
    action();
  });
}

export function onClick(id, action) {
  at(id).addEventListener("click", action);
}
