"""Rows of `domino_env.afterstates`, written by compiled code; the slices they are made of are declared there."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ._jit import jit, lowest_bit, popcount
from .observation import look, possible_tiles, score_level, stuck_chance, tie_steps
from .rules import option
from .scoring import finish_of, pips_in
from .state import FINISH_NAMES, NONE, PLAY
from .tiles import HIGH, LOW, SUIT

#: As many of the next tiles to be drawn are part of a deal, in their order.
DRAWS_SEEN: Final = 6
#: Pips of a hand are counted in steps of 4, up to 64; chances in eighths.
PIP_STEPS: Final = 16
CHANCES: Final = 8
TIES: Final = 4
#: How often a seat did something with a number counts up to 2.
TIMES: Final = 2
FINISHES: Final = len(FINISH_NAMES) - 1

_DRAW_NONE: Final = option("draw", "none")
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
#: What describing a position needs room for: the place of each number and each tile; and of each seat, the first
#: tile it played, and how often it left each number alone at the other end, made it an end, and covered it.
PLACES: Final = np.dtype(
    [
        ("number", np.int64, (10,)),
        ("tile", np.int64, (55,)),
        ("first", np.int64, (9,)),
        ("declined", np.int64, (9, 10)),
        ("opened", np.int64, (9, 10)),
        ("covered", np.int64, (9, 10)),
    ]
)


@jit
def _give_places(first: int, second: int, hand: Any, other: Any, numbers: int, places: Any) -> None:
    """Give places to the numbers: `first`, `second`, then by tiles of it in `hand`, then in `other`."""
    for one in range(numbers):
        place = 0
        own = _weight(one, first, second, hand, other)
        for number in range(numbers):
            if _weight(number, first, second, hand, other) > own:
                place += 1
        places["number"][one] = place
    for tile in range(numbers * (numbers + 1) // 2):
        high, low = places["number"][HIGH[tile]], places["number"][LOW[tile]]
        if high < low:
            high, low = low, high
        places["tile"][tile] = high * (high + 1) // 2 + low


@jit
def _weight(number: int, first: int, second: int, hand: Any, other: Any) -> int:
    end = 200000 if number == first else 100000 if number == second else 0
    return end + popcount(SUIT[number] & hand) * 1000 + popcount(SUIT[number] & other) * 20 + number


@jit
def _put_tiles(out: Any, at: int, tiles: Any, places: Any) -> None:
    while tiles:
        out[at + places["tile"][lowest_bit(tiles)]] = 1
        tiles &= tiles - _ONE


@jit
def _put_numbers(out: Any, at: int, mask: int, numbers: int, places: Any) -> None:
    for number in range(numbers):
        if mask >> number & 1:
            out[at + places["number"][number]] = 1


@jit
def _put_count(out: Any, at: int, count: int, width: int) -> None:
    for i in range(min(count, width)):
        out[at + i] = 1


@jit
def _put_names(out: Any, at: int, numbers: int, places: Any) -> None:
    for number in range(numbers):
        out[at + places["number"][number] * numbers + number] = 1


@jit
def _put_seats(out: Any, at: int, one_owner: int, other_owner: int, view: Any, players: int) -> int:
    """The seats that matter, one-hot each; the position after them."""
    if one_owner != NONE:
        out[at + one_owner] = 1
    if other_owner != NONE:
        out[at + players + other_owner] = 1
    if view["last"] != NONE:
        out[at + 2 * players + view["last"]] = 1
    out[at + 3 * players + view["starter"]] = 1
    return at + 4 * players


@jit
def _put_match(out: Any, at: int, view: Any, rules: Any) -> None:
    """The scores, and how often ties have multiplied the points."""
    steps = int(rules["score_steps"])
    if steps:
        for side in range(rules["sides"]):
            _put_count(out, at, score_level(view, rules, side), steps)
            at += steps
        _put_count(out, at, tie_steps(rules["tie_multiplier"], view["multiplier"]), TIES)


@jit
def recall(view: Any, rules: Any, places: Any) -> None:
    """What each seat played first, and did with which numbers, from the round's events."""
    for seat in range(rules["players"]):
        places["first"][seat] = NONE
        for number in range(rules["max_pip"] + 1):
            places["declined"][seat, number] = 0
            places["opened"][seat, number] = 0
            places["covered"][seat, number] = 0
    left, right = NONE, NONE
    for i in range(view["num_events"]):
        event: Any = np.int64(view["events"][i])
        if event & 3 != PLAY:
            continue
        end, seat, tile = event >> 2 & 1, event >> 3 & 15, event >> 7
        if places["first"][seat] == NONE:
            places["first"][seat] = tile
        if left == NONE:
            left, right = HIGH[tile], LOW[tile]
            continue
        covered, other = (left, right) if end == 0 else (right, left)
        new = HIGH[tile] + LOW[tile] - covered
        places["covered"][seat, covered] += 1
        places["opened"][seat, new] += 1
        if other != covered:
            places["declined"][seat, other] += 1
        if end == 0:
            left = new
        else:
            right = new


@jit
def _put_recalled(out: Any, at: int, rules: Any, places: Any) -> int:
    """What each seat did with which numbers; the position after that."""
    numbers = int(rules["max_pip"]) + 1
    width = numbers * TIMES
    for seat in range(rules["players"]):
        if places["first"][seat] != NONE:
            out[at + places["tile"][places["first"][seat]]] = 1
        at += rules["tiles"]
        for number in range(numbers):
            own = at + places["number"][number] * TIMES
            _put_count(out, own, places["declined"][seat, number], TIMES)
            _put_count(out, own + width, places["opened"][seat, number], TIMES)
            _put_count(out, own + 2 * width, places["covered"][seat, number], TIMES)
        at += 3 * width
    return at


@jit
def describe_move(view: Any, rules: Any, tile: int, end: int, places: Any, out: Any) -> None:
    """Write the afterstate of a legal move to `out`, slice by slice as `Afterstates` declares them."""
    players, tiles, numbers = int(rules["players"]), int(rules["tiles"]), int(rules["max_pip"]) + 1
    draws = rules["draw"] != _DRAW_NONE
    bit = _ONE << np.uint64(tile)
    kept, high, low = view["hand"] & ~bit, HIGH[tile], LOW[tile]
    covered = int(view["left"] if end == 0 else view["right"])
    if covered == NONE:
        new, far, owner, far_owner = high, low, NONE, 0
    else:
        new = high + low - covered
        far = int(view["right"] if end == 0 else view["left"])
        owner = int(view["left_owner"] if end == 0 else view["right_owner"])
        far_owner = int(view["right_owner"] if end == 0 else view["left_owner"])
    fits, gone = SUIT[new] | SUIT[far], kept | bit
    for seat in range(players):
        gone |= view["placed"][seat]
    _give_places(new, far, kept, ((_ONE << np.uint64(tiles)) - _ONE) & ~gone, numbers, places)
    _put_tiles(out, 0, kept, places)
    _put_tiles(out, tiles, bit, places)
    at = tiles
    for seat in range(players):
        _put_tiles(out, at, view["placed"][seat], places)
        at += tiles
    for seat in range(1, players):
        possible = possible_tiles(view, rules, seat)
        _put_tiles(out, at, possible, places)
        at += tiles
        chance = stuck_chance(possible, view["counts"][seat], fits)
        _put_count(out, at, int(chance * CHANCES + 0.5), CHANCES)
        at += CHANCES
        _put_numbers(out, at, view["lacks"][0, seat], numbers, places)
        at += numbers
        if draws:
            _put_numbers(out, at, view["lacks"][1, seat], numbers, places)
            at += numbers
        _put_count(out, at, view["counts"][seat], rules["max_hand"])
        at += rules["max_hand"]
    if draws:
        _put_count(out, at, view["boneyard"], rules["boneyard_size"])
        at += rules["boneyard_size"]
    _put_count(out, at, popcount(kept & fits), rules["max_hand"])
    at += rules["max_hand"]
    _put_count(out, at, popcount(kept), rules["max_hand"])
    at += rules["max_hand"]
    _put_count(out, at, (pips_in(kept) + 3) // 4, PIP_STEPS)
    at += PIP_STEPS
    _put_names(out, at, numbers, places)
    at += numbers * numbers
    if covered != NONE:
        out[at + places["number"][covered]] = 1
    at += numbers
    out[at] = high == low
    out[at + 1] = new == far
    at += 2
    at = _put_seats(out, at, owner, far_owner, view, players)
    if kept == _ZERO:
        finish = finish_of(rules, high, low, view["left"], view["right"])
        if finish:
            out[at + finish - 1] = 1
    at = _put_recalled(out, at + FINISHES, rules, places)
    _put_match(out, at, view, rules)


@jit
def describe_deal(row: Any, rules: Any, view: Any, places: Any, out: Any) -> None:
    """Write a table to `out`, slice by slice as `Deals` declares them, seats counted from the one to act."""
    players, tiles, numbers = int(rules["players"]), int(rules["tiles"]), int(rules["max_pip"]) + 1
    draws, me = rules["draw"] != _DRAW_NONE, int(row["seat"])
    look(row, rules, me, view)
    first, second = int(view["left"]), int(view["right"])
    first_owner, second_owner, hand = int(view["left_owner"]), int(view["right_owner"]), view["hand"]
    if first != NONE and popcount(hand & SUIT[second]) > popcount(hand & SUIT[first]):
        first, second, first_owner, second_owner = second, first, second_owner, first_owner
    others = _ZERO
    for seat in range(1, players):
        others |= row["hands"][(me + seat) % players]
    _give_places(first, second, hand, others, numbers, places)
    at = 0
    for seat in range(players):
        held = row["hands"][(me + seat) % players]
        _put_tiles(out, at, held, places)
        at += tiles
        _put_tiles(out, at, view["placed"][seat], places)
        at += tiles
        _put_numbers(out, at, view["lacks"][0, seat], numbers, places)
        at += numbers
        if first != NONE:
            _put_count(out, at, popcount(held & SUIT[first]), numbers)
            _put_count(out, at + numbers, popcount(held & SUIT[second]), numbers)
        at += 2 * numbers
        _put_count(out, at, view["counts"][seat], rules["max_hand"])
        at += rules["max_hand"]
        _put_count(out, at, (pips_in(held) + 3) // 4, PIP_STEPS)
        at += PIP_STEPS
    if draws:
        _put_count(out, at, view["boneyard"], rules["boneyard_size"])
        at += rules["boneyard_size"]
        for i in range(DRAWS_SEEN):
            if row["top"] + i < row["bottom"]:
                out[at + places["tile"][row["deck"][row["top"] + i]]] = 1
            at += tiles
    _put_names(out, at, numbers, places)
    at += numbers * numbers
    out[at] = first == second
    at += 1
    at = _put_seats(out, at, first_owner, second_owner, view, players)
    _put_match(out, at, view, rules)
