/** The drawings of tiles and of the chain. Lengths in drawings are in halves: a tile is 2 by 1. */

import { keyed } from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";
/** Where the pips of a number lie in its half: along the tile and across it. */
const PIPS = [
  [],
  [[0, 0]],
  [[-1, -1], [1, 1]],
  [[-1, -1], [0, 0], [1, 1]],
  [[-1, -1], [-1, 1], [1, -1], [1, 1]],
  [[-1, -1], [-1, 1], [0, 0], [1, -1], [1, 1]],
  [[-1, -1], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 1]],
  [[-1, -1], [-1, 1], [0, -1], [0, 0], [0, 1], [1, -1], [1, 1]],
  [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 0], [1, 1]],
  [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 0], [0, 1], [1, -1], [1, 0], [1, 1]],
];
/** Where a tile's second half lies seen from its first: to the right, below, to the left, above. */
const STEPS = [[1, 0], [0, 1], [-1, 0], [0, -1]];
const GAP = 0.05;
const PIP_STEP = 0.26;
const PIP_RADIUS = 0.095;
const CORNER = 0.16;
/** Room around a tile for its halo. */
const MARGIN = 0.06;
/** A chain's half is at most this part of the board's shorter side, and this many pixels. */
const MAX_UNIT = { part: 1 / 5, pixels: 128 };
/** A target's size in pixels follows the tiles', within these. */
const TARGET = [30, 46];
/** Pixels between the chain and the edge of its board. */
export const BOARD_EDGE = 10;

/** Makes an SVG element with attributes and children. */
function draw(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** The two numbers of a tile's name. */
export const numbersOf = (tile) => tile.split("-").map(Number);

function rect(name, x, y, width, height, radius = CORNER) {
  return draw("rect", { class: name, x, y, width, height, rx: radius });
}

/** A tile's picture as a group with its corner at (0, 0); numbers null: face down. */
function tileGroup(numbers, turn) {
  const upright = turn % 2 === 1;
  const [width, height] = upright ? [1, 2] : [2, 1];
  const [wide, high] = [width - GAP, height - GAP];
  const group = draw("g", { class: "tile" });
  group.append(
    rect("tile-shadow", GAP / 2 + 0.03, GAP / 2 + 0.07, wide, high),
    rect("tile-halo", GAP / 2, GAP / 2, wide, high),
    rect(numbers ? "tile-face" : "tile-back", GAP / 2, GAP / 2, wide, high),
  );
  if (!numbers) {
    group.append(rect("tile-line", GAP / 2 + 0.15, GAP / 2 + 0.15, wide - 0.3, high - 0.3, CORNER / 2));
    return group;
  }
  const [x, y] = [width / 2, height / 2];
  const reach = upright ? [0.36, 0] : [0, 0.36];
  group.append(
    draw("path", { class: "tile-rule", d: `M${x - reach[0]} ${y - reach[1]}L${x + reach[0]} ${y + reach[1]}` }),
    draw("circle", { class: "tile-pin", cx: x, cy: y, r: 0.06 }),
  );
  const [dx, dy] = STEPS[turn];
  group.append(
    ...pips(numbers[0], x - dx / 2, y - dy / 2, upright),
    ...pips(numbers[1], x + dx / 2, y + dy / 2, upright),
  );
  return group;
}

function pips(number, x, y, upright) {
  return PIPS[number].map(([along, across]) => {
    const [dx, dy] = upright ? [across, along] : [along, across];
    return draw("circle", { class: "tile-pip", cx: x + dx * PIP_STEP, cy: y + dy * PIP_STEP, r: PIP_RADIUS });
  });
}

/** A picture of one tile by itself, standing upright or lying. */
export function tilePicture(numbers, upright) {
  const [width, height] = upright ? [1, 2] : [2, 1];
  const viewBox = [-MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN].join(" ");
  return draw("svg", { class: "tile-picture", viewBox, "aria-hidden": "true" }, tileGroup(numbers, upright ? 1 : 0));
}

/** Draws the chain into its SVG as large as the board allows, with a target at each end where `choose` is given. */
export function drawChain(svg, chain, board, choose) {
  const unit = Math.max(0, Math.min(
    (board.width - 2 * BOARD_EDGE) / Math.max(1, chain.width),
    (board.height - 2 * BOARD_EDGE) / Math.max(1, chain.height),
    Math.min(board.width, board.height) * MAX_UNIT.part,
    MAX_UNIT.pixels,
  ));
  const frame = {
    unit,
    x: (board.width - chain.width * unit) / 2,
    y: (board.height - chain.height * unit) / 2,
  };
  svg.setAttribute("viewBox", `0 0 ${Math.max(1, board.width)} ${Math.max(1, board.height)}`);
  const parts = chain.tiles.map((placed) => ({ key: `${placed.tile.join("-")} ${placed.turn}`, placed }));
  if (choose && parts.length) parts.push(...targets(chain.tiles, choose));
  keyed(svg, parts, (part) => part.key, createPart, (node, part) => placePart(node, part, frame));
}

function createPart(part) {
  return part.placed ? tileGroup(part.placed.tile, part.placed.turn) : targetGroup(part);
}

function placePart(node, part, { unit, x, y }) {
  const [left, top] = part.placed ? [part.placed.x, part.placed.y] : [part.x, part.y];
  const scale = part.placed ? unit : Math.min(Math.max(unit, TARGET[0]), TARGET[1]);
  node.style.transform = `translate(${x + left * unit}px, ${y + top * unit}px) scale(${scale})`;
  if (part.placed) node.classList.toggle("last", part.placed.last);
}

/** The places to click for "left" and "right": on the outer halves of the chain's first and last tile. */
function targets(tiles, choose) {
  const [first, last] = [tiles[0], tiles[tiles.length - 1]];
  const lone = tiles.length === 1 && first.tile[0] === first.tile[1];
  return [
    { key: "left", letter: "L", ...outerPoint(first, -1, lone), choose: () => choose("L") },
    { key: "right", letter: "R", ...outerPoint(last, 1, lone), choose: () => choose("R") },
  ];
}

/** The middle of a tile's first (way -1) or second half; of a double its own, or beside it if it lies alone. */
function outerPoint(placed, way, lone) {
  const upright = placed.turn % 2 === 1;
  const [x, y] = [placed.x + (upright ? 0.5 : 1), placed.y + (upright ? 1 : 0.5)];
  if (lone) return { x: x + way * 1.1, y };
  const [dx, dy] = placed.tile[0] === placed.tile[1] ? [0, 0] : STEPS[placed.turn];
  return { x: x + (way * dx) / 2, y: y + (way * dy) / 2 };
}

function targetGroup({ letter, choose }) {
  const group = draw(
    "g",
    { class: "target", "data-end": letter },
    draw("circle", { class: "target-disc", r: 0.62 }),
    draw("text", { class: "target-letter", "text-anchor": "middle", y: 0.22 }, letter),
  );
  group.addEventListener("click", choose);
  return group;
}
