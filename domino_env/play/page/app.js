/** All that the page knows, and how long it waits. */

/** In milliseconds; the wait before a retry grows from the first to the second. */
export const WAITS = {
  retry: [500, 10000],
  ping: 20000,
  answer: 12000,
  toast: 6000,
  sure: 4000,
  twin: 250,
  shape: 200,
};

/** `view` is the newest state of the server's. */
export const app = {
  room: null,
  person: null,
  token: null,
  version: -1,
  view: null,
  socket: null,
  tries: 0,
  deadline: null,
  sentTurn: null, // the turn whose play was sent and not yet answered
  readyTurn: null, // the turn for which "next" was sent
  starting: false, // a match was asked for; its bots may take a while to be made
  question: null, // which end? { turn, tile, moves: { L, R } }
  managing: false, // the seats are shown though a match has begun
  finalShown: false,
  handFocus: false, // the keyboard was in the hand when a tile was played
  seenTalk: 0,
  shape: null, // the chain's room as the server was last told
};
