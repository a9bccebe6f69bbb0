/** What the browser keeps of seats and of your name, as far as it does not refuse to. */

const KEPT_SEATS = 6;

function storage(kind) {
  const tried = (use) => {
    try {
      return use(window[kind]);
    } catch {
      return null;
    }
  };
  return {
    get: (key) => tried((store) => store.getItem(key)),
    set: (key, value) => tried((store) => store.setItem(key, value)),
    remove: (key) => tried((store) => store.removeItem(key)),
  };
}

export const tab = storage("sessionStorage");
export const browser = storage("localStorage");
export const tabKey = (room) => `domino-seat-${room}`;

/** The seats this browser may come back to: room → { token, name, time }. */
export function keptSeats() {
  try {
    return JSON.parse(browser.get("domino-seats")) ?? {};
  } catch {
    return {};
  }
}

export function keepSeat(room, token, name) {
  tab.set(tabKey(room), token);
  const seats = Object.entries({ ...keptSeats(), [room]: { token, name, time: Date.now() } });
  seats.sort(([, a], [, b]) => b.time - a.time);
  browser.set("domino-seats", JSON.stringify(Object.fromEntries(seats.slice(0, KEPT_SEATS))));
}

/** Forgets the key of a seat, unless the browser has a newer one by now. */
export function forgetSeat(room, token) {
  tab.remove(tabKey(room));
  const seats = keptSeats();
  if (seats[room]?.token !== token) return;
  delete seats[room];
  browser.set("domino-seats", JSON.stringify(seats));
}
