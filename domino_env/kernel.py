"""The rules, applied: the only implementation there is.

Functions work in place on `row`, one table's record, under `rules`, one `rules.PACKED` record, and
trust their arguments; the classes above them check. The flow of a match:

    start_match -> start_round -> (deal -> open_dealt -> play, play, … -> _end_round) -> start_round -> …

Draws and passes are forced, so `play` applies those that follow, until a seat has a decision to
make or the round is over.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ._jit import jit, lowest_bit, popcount
from ._rng import below
from .rules import MULTIPLIER_BOUND, option
from .scoring import finish_of, next_starter, score_batida, score_pips
from .state import BLOCKED, BY_LOTS, BY_OPENING, DRAW, HIDDEN, NONE, OUT, PASS, PLAY, TIED
from .tiles import HIGH, LEFT, LOW, PIPS, SUIT

_DRAW_NONE: Final = option("draw", "none")
_DRAW_ONE: Final = option("draw", "one")
_OPEN_LOTS: Final = option("opening", "lots")
_BATIDA: Final = option("scoring", "batida")
_REDEAL: Final = option("no_double", "redeal")
_BLOCK_IS_DRAW: Final = option("single_round_block", "draw")

_U64 = np.uint64
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@jit
def start_match(row: Any, rules: Any) -> None:
    """Nil all, and the first round dealt."""
    row["ties"] = 0
    row["round"] = 0
    row["over"] = 0
    row["winner"] = NONE
    row["next_starter"] = BY_OPENING
    for side in range(rules["sides"]):
        row["scores"][side] = 0
    start_round(row, rules)


@jit
def start_round(row: Any, rules: Any) -> None:
    """Deal the next round of a match that is not over, and open it."""
    deal(row, rules)
    while not open_dealt(row, rules, NONE):
        deal(row, rules)


@jit
def open_dealt(row: Any, rules: Any, lot: int) -> bool:
    """Open a round with the hands that lie in the row, started by whom `next_starter` says.

    By lots that is seat `lot`, or (NONE) one from the row's stream. False, and nothing opened, where
    the tiles must be dealt again.
    """
    starter, forced = int(row["next_starter"]), NONE
    if starter == BY_OPENING and rules["opening"] == _OPEN_LOTS:
        starter = BY_LOTS
    if starter == BY_OPENING:
        starter, forced = find_opening(row, rules)
        if starter == NONE:
            return False
    elif starter == BY_LOTS:
        starter = lot if lot != NONE else below(row["rng"], int(rules["players"]))
    open_round(row, rules, starter, forced, _multiplier(rules, row["ties"]))
    return True


@jit
def _multiplier(rules: Any, ties: int) -> int:
    factor = int(rules["tie_multiplier"])
    if ties == 0 or factor == 1:
        return 1
    if not rules["tie_multiplier_stacks"]:
        return factor
    value = factor
    for _ in range(ties - 1):
        if value * factor >= MULTIPLIER_BOUND:
            break
        value *= factor
    return value


@jit
def deal(row: Any, rules: Any) -> None:
    """Shuffle the set into the deck; hands from its front, the boneyard is the rest."""
    tiles = int(rules["tiles"])
    hand_size = int(rules["hand_size"])
    deck = row["deck"]
    for i in range(tiles):
        deck[i] = i
    for i in range(tiles - 1, 0, -1):
        j = below(row["rng"], i + 1)
        deck[i], deck[j] = deck[j], deck[i]
    at = 0
    for seat in range(rules["players"]):
        hand = _ZERO
        for _ in range(hand_size):
            hand |= _ONE << _U64(deck[at])
            at += 1
        row["hands"][seat] = hand
    row["top"] = at
    row["bottom"] = tiles


@jit
def find_opening(row: Any, rules: Any) -> tuple[int, int]:
    """(starter, forced tile) where the highest double opens; (NONE, NONE) where the tiles are dealt again."""
    best, starter, best_rank = NONE, NONE, -1
    for seat in range(rules["players"]):
        hand = row["hands"][seat]
        while hand:
            tile = lowest_bit(hand)
            hand &= hand - _ONE
            # Doubles before all others, then pips, then the higher half.
            rank = 10 * PIPS[tile] + HIGH[tile] + (1000 if HIGH[tile] == LOW[tile] else 0)
            if rank > best_rank:
                best, starter, best_rank = tile, seat, rank
    if best_rank < 1000 and rules["no_double"] == _REDEAL:
        return NONE, NONE
    return starter, best


@jit
def open_round(row: Any, rules: Any, starter: int, forced: int, multiplier: int) -> None:
    """Begin a round with the hands and boneyard that lie in the row."""
    row["left"] = NONE
    row["right"] = NONE
    row["left_owner"] = NONE
    row["right_owner"] = NONE
    row["starter"] = starter
    row["last"] = NONE
    row["forced"] = forced
    row["drawer"] = NONE
    row["num_events"] = 0
    row["reason"] = 0
    row["finish"] = 0
    row["winning_seat"] = NONE
    row["winning_side"] = NONE
    row["base"] = 0
    row["points"] = 0
    row["multiplier"] = multiplier
    for seat in range(rules["players"]):
        row["placed"][seat] = _ZERO
        row["lacks"][0, seat] = 0
        row["lacks"][1, seat] = 0
    row["seat"] = starter
    row["legal"][0] = row["hands"][starter] if forced == NONE else _ONE << _U64(forced)
    row["legal"][1] = _ZERO


@jit
def _record(row: Any, kind: int, seat: int, tile: int, end: int) -> None:
    row["events"][row["num_events"]] = kind | end << 2 | seat << 3 | tile << 7
    row["num_events"] += 1


@jit
def play(row: Any, rules: Any, action: int) -> None:
    """Play a legal action of the seat to act, and all that is forced after it."""
    seat, tile, end = int(row["seat"]), action >> 1, action & 1
    high, low = HIGH[tile], LOW[tile]
    left, right = int(row["left"]), int(row["right"])
    _record(row, PLAY, seat, tile, end)
    bit = _ONE << _U64(tile)
    row["hands"][seat] &= ~bit
    row["placed"][seat] |= bit
    if row["drawer"] != seat:  # a tile of a number of which the seat held at most one: it holds none now
        row["lacks"][0, seat] |= row["lacks"][1, seat] & np.uint16((1 << high) | (1 << low))
    row["last"] = seat
    row["drawer"] = NONE
    if left == NONE:
        row["left"] = high
        row["right"] = low
        row["left_owner"] = seat
        row["right_owner"] = seat
    elif end == LEFT:
        row["left"] = high + low - left
        row["left_owner"] = seat
    else:
        row["right"] = high + low - right
        row["right_owner"] = seat
    if row["hands"][seat] == _ZERO:
        row["finish"] = finish_of(rules, high, low, left, right)
        _end_round(row, rules, seat)
    else:
        _advance(row, rules, seat)


@jit
def _advance(row: Any, rules: Any, seat: int) -> None:
    """From `seat`, whose turn is done, to the next seat with a decision, or to the end of the round."""
    players = rules["players"]
    left, right = SUIT[row["left"]], SUIT[row["right"]]
    fits = left | right
    held = _ZERO
    for other in range(players):
        held |= row["hands"][other]
    playable = (held & fits) != _ZERO
    draws = rules["draw"] != _DRAW_NONE
    while True:
        if not playable and not (draws and row["top"] < row["bottom"]):
            _end_round(row, rules, NONE)
            return
        seat = seat + 1 if seat + 1 < players else 0
        if row["hands"][seat] & fits:
            break
        if draws and row["top"] < row["bottom"]:
            if _draw(row, rules, seat, fits):
                playable = True
                if row["drawer"] == seat:
                    break
                continue
            if rules["draw"] == _DRAW_ONE or not playable:
                continue
        _record(row, PASS, seat, HIDDEN, 0)
        _show_lack(row, seat)
    row["seat"] = seat
    row["legal"][0] = row["hands"][seat] & left
    row["legal"][1] = row["hands"][seat] & right


@jit
def _draw(row: Any, rules: Any, seat: int, fits: Any) -> bool:
    """Draw for a seat that cannot play, one tile or until one fits; whether a tile fitted.

    Where the seat must play the tile that fitted, it becomes the row's `drawer`. What the table has
    learned of its numbers: a kept tile may carry any number, except those it did not fit.
    """
    one = rules["draw"] == _DRAW_ONE
    lacks = row["lacks"]
    while True:
        tile = int(row["deck"][row["top"]])
        row["top"] += 1
        _record(row, DRAW, seat, tile, 0)
        bit = _ONE << _U64(tile)
        row["hands"][seat] |= bit
        fitted = (bit & fits) != _ZERO
        if fitted and not one:
            row["drawer"] = seat
            _show_lack(row, seat)  # of all it holds but the tile it is about to play
            return True
        if one:
            _show_lack(row, seat)  # before the tile it has just drawn
        lacks[1, seat] = lacks[0, seat]
        lacks[0, seat] = 0
        if one:
            return fitted
        _show_lack(row, seat)
        if row["top"] == row["bottom"]:
            return False


@jit
def _show_lack(row: Any, seat: int) -> None:
    """All can tell that `seat` holds neither end's number."""
    ends = np.uint16((1 << row["left"]) | (1 << row["right"]))
    row["lacks"][0, seat] |= ends
    row["lacks"][1, seat] |= ends


@jit
def _end_round(row: Any, rules: Any, out: int) -> None:
    """Score a round that seat `out` ended by going out, or (NONE) that is blocked; book it in the match."""
    row["seat"] = NONE
    row["legal"][0] = _ZERO
    row["legal"][1] = _ZERO
    if rules["scoring"] == _BATIDA:
        score_batida(row, rules, out)
    else:
        score_pips(row, rules, out)
    side = int(row["winning_side"])
    if out != NONE:
        row["reason"] = OUT
    else:
        row["reason"] = TIED if side == NONE else BLOCKED
    row["points"] = row["base"] * row["multiplier"]
    row["ties"] = row["ties"] + 1 if side == NONE else 0
    row["round"] += 1
    row["next_starter"] = next_starter(row, rules)
    if side != NONE:
        row["scores"][side] += row["points"]
    target = int(rules["target"])
    if target == 0:
        row["over"] = 1
        drawn = row["reason"] == BLOCKED and rules["single_round_block"] == _BLOCK_IS_DRAW
        row["winner"] = NONE if drawn else side
    elif side != NONE and row["scores"][side] >= target:
        row["over"] = 1
        row["winner"] = side


@jit
def num_legal(row: Any) -> int:
    """How many actions the seat to act has."""
    return popcount(row["legal"][0]) + popcount(row["legal"][1])


@jit
def nth_legal(row: Any, n: int) -> int:
    """The n-th legal action, those at the left end first."""
    return nth_action(row["legal"][0], row["legal"][1], n)


@jit
def nth_action(left: Any, right: Any, n: int) -> int:
    """The n-th of the actions that play these tiles at the left and at the right end."""
    word, end = left, LEFT
    at_left = popcount(word)
    if n >= at_left:
        word, end, n = right, 1 - LEFT, n - at_left
    for _ in range(n):
        word &= word - _ONE
    return 2 * lowest_bit(word) + end


@jit
def is_legal(row: Any, rules: Any, action: int) -> bool:
    """Whether an action, of any value, may be played."""
    if action < 0 or action >= 2 * rules["tiles"]:
        return False
    return (row["legal"][action & 1] >> _U64(action >> 1)) & _ONE != _ZERO
