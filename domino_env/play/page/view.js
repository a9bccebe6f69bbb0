/** Facts about a view, the state of a table that the server sends, and the colours of its sides. */

import { numbersOf } from "./tiles.js";

/** Where the other seats sit, clockwise from the next to play; more than three form a row. */
export const PLACES = { 1: ["top"], 2: ["left", "right"], 3: ["left", "top", "right"] };

export const myTurn = (view) => view.phase === "playing" && view.legal.length > 0;
export const sideOf = (view, seat) => view.sides.findIndex((seats) => seats.includes(seat));
export const seatName = (seat) => seat.name || `Seat ${seat.seat + 1}`;
export const sideName = (view, side) => view.sides[side].map((seat) => seatName(view.seats[seat])).join(" + ");
export const listed = (...words) => words.filter(Boolean).join(", ");
export const homeSeat = (view) => view.you.seat ?? 0;
export const pipsOf = (hand) => hand.reduce((sum, tile) => sum + numbersOf(tile)[0] + numbersOf(tile)[1], 0);

/** A coloured dot for a side; only pairs have colours. */
export function paintSide(node, view, seat) {
  node.dataset.side = view.pairs ? sideOf(view, seat) : "";
}
