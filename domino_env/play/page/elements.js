/** Elements: to find them, make them, write into them, and keep those of a list whose keys stay. */

/** The element with this id. */
export const at = (id) => document.getElementById(id);

/** Makes an element with properties (and attributes where the name has a dash) and children. */
export function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children);
  return node;
}

/** A text isolated from what stands around it. */
export const isolated = (text, className = "") => make("bdi", { textContent: text, className });

/** Sets a node's text, touching nothing where it is the same. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Writes a person's name: isolated from the text around it, and whole in a tooltip where it is cut. */
export function writeName(node, name) {
  write(node, name);
  if (node.title !== name) node.title = name;
}

const nodesOf = new WeakMap();

/** Gives a parent one child an item, in order. A child whose key stays is kept, with its focus and its text. */
export function keyed(parent, items, keyOf, create, update = () => {}) {
  const old = nodesOf.get(parent) ?? new Map();
  const now = new Map();
  for (const item of items) now.set(keyOf(item), item);
  for (const [key, node] of old) if (!now.has(key)) node.remove();
  const nodes = new Map();
  let next = parent.firstChild;
  for (const [key, item] of now) {
    const node = old.get(key) ?? create(item);
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
    update(node, item);
    nodes.set(key, node);
  }
  nodesOf.set(parent, nodes);
}
