"""The solver's compiled core: how good a round with open hands is for one side, exactly.

Outcomes of a round are ranked by what they are worth to the side, so values are small integers and every
question is a boolean one: can the side reach rank `goal`? Such null-window searches (alpha-beta, fail-soft)
close in on the value from both sides, which is MTD(f) (Plaat et al., Artificial Intelligence 87, 1996), over
one transposition table. What makes them short is the order of the moves: those first that leave the other
side least to play.

The rules are the kernel's: a move is made by copying a record and `play`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .._jit import jit, lowest_bit, popcount
from ..kernel import play
from ..rules import RuleSet, option
from ..scoring import add_round_rewards
from ..state import NONE, State, new_state
from ..tiles import HIGH, LEFT, LOW, NUM_TILES, PIPS, SUIT

#: Who scored, in a payoff's first axis.
OWN: Final = 0
OTHER: Final = 1
NEITHER: Final = 2

_BATIDA: Final = option("scoring", "batida")
_MAX_AGE: Final = 2**16 - 1
_MAX_RANK: Final = 2**15 - 1
_STOPPED: Final = -1  # instead of a rank: the node limit was reached

_U64 = np.uint64
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(2**32 - 1)
# Odd 31-bit factors: their products with 32-bit words fit into 64 bits, also where Python would warn.
_A, _B, _C, _D = (np.uint64(n) for n in (0x5BD1E995, 0x7FEB352D, 0x6C50B47D, 0x45D9F3B5))

_ENTRY = np.dtype(
    [
        ("key", np.uint64, (2,)),
        ("low", np.int16),  # the position's rank is at least this, at most that
        ("high", np.int16),
        ("move", np.int16),  # the move that settled it: see `_unordered`
        ("age", np.uint16),  # the solve that wrote it; entries of others are as good as empty
    ]
)
_FRAME = np.dtype(
    [
        ("moves", np.int64, (2 * NUM_TILES,)),  # the best first
        ("marks", np.int64, (2 * NUM_TILES,)),
        ("key", np.uint64, (2,)),
        ("count", np.int64),
        ("next", np.int64),
        ("best", np.int64),  # the best rank among the moves up to now, and its move
        ("move", np.int64),
        ("slot", np.int64),  # the position's place in the table; NONE with a single move: it is not kept
    ]
)
_INFO = np.dtype(
    [("mask", np.uint64), ("age", np.int64), ("nodes", np.int64), ("limit", np.int64), ("levels", np.int64)]
)


class Work(NamedTuple):
    """What the solver works in; one for each thread. Made by `new_work`, for one rule set."""

    stack: State  # the position at each ply
    frames: npt.NDArray[np.void]  # the moves to try at each ply
    table: npt.NDArray[np.void]  # what is known of positions
    ranks: npt.NDArray[np.int64]  # of a payoff's entries, in a line
    values: npt.NDArray[np.float64]  # the ranks' values, rising
    info: npt.NDArray[np.void]  # one record; info["nodes"] counts plays made since `new_work`


def max_amount(rules: RuleSet) -> int:
    """The most points, before the multiplier, that a round can gain or cost a side."""
    if rules.scoring == "pips":
        return rules.max_pip * (rules.max_pip + 1) * (rules.max_pip + 2) // 2
    return rules.most_points


def new_work(rules: RuleSet, table_bits: int = 16) -> Work:
    """Room to solve rounds of `rules` in, with a table of ``2**table_bits`` entries of 24 bytes."""
    plies, outcomes = rules.num_tiles + 1, 6 * (max_amount(rules) + 1)
    info = np.zeros(1, _INFO)
    info["mask"] = (1 << table_bits) - 1
    return Work(
        new_state(rules, plies),
        np.zeros(plies, _FRAME),
        np.zeros(1 << table_bits, _ENTRY),
        np.zeros(outcomes, np.int64),
        np.zeros(outcomes),
        info,
    )


@jit
def set_payoff(work: Any, payoff: Any) -> None:
    """Say what outcomes are worth from now on; `solver.points_payoff` describes the array."""
    ranks, values = work.ranks, work.values
    amounts = payoff.shape[1]
    order = np.empty(ranks.shape[0], np.int64)
    count = 0
    # Insertion sort: what costs most comes first, so in this order values mostly rise.
    for i in range(2 * amounts + 1):
        who = OTHER if i < amounts else NEITHER if i == amounts else OWN
        amount = amounts - 1 - i if i < amounts else 0 if i == amounts else i - amounts - 1
        for last in range(2):
            value, at = payoff[who, amount, last], count
            while at > 0 and values[at - 1] > value:
                values[at], order[at] = values[at - 1], order[at - 1]
                at -= 1
            values[at], order[at] = value, (who * amounts + amount) * 2 + last
            count += 1
    levels = 0
    for i in range(count):
        if i == 0 or values[i] != values[levels - 1]:
            values[levels] = values[i]
            levels += 1
        ranks[order[i]] = levels - 1
    work.info[0]["levels"] = levels


@jit
def outcome_of(row: Any, rules: Any, side: int, amounts: int) -> int:
    """Where a payoff in a line, ``payoff[:, :amounts].ravel()``, holds the round that has ended in `row`.

    The row's multiplier must be 1, and its rewards may be overwritten.
    """
    winner, sides = int(row["winning_side"]), int(rules["sides"])
    last = 0 if row["last"] % sides == side else 1
    if winner == NONE:
        return 2 * NEITHER * amounts + last
    amount = int(row["base"])
    if winner == side:
        return 2 * amount + last
    if sides > 2 and rules["scoring"] != _BATIDA:  # each side loses a share of its own
        row["rewards"][side] = 0.0
        add_round_rewards(row, rules)
        amount = int(-row["rewards"][side])
    return 2 * (OTHER * amounts + amount) + last


@jit
def _hash(word: Any, one: Any, other: Any) -> Any:
    word = (word & _LOW_HALF) * one ^ (word >> _HALF) * other
    return word ^ word >> _U64(29)


@jit
def _find_slot(row: Any, rules: Any, key: Any, mask: Any) -> int:
    """Make the position's key, and find its place in the table.

    Hands, ends (in either order), seat to act and the boneyard's top tell all positions of one solve
    apart. For up to four seats and 28 tiles the key is just these, so no two positions share one. Otherwise
    it is two hashes of 63 bits: of a million positions two share a key in one of 10**25 solves.
    """
    hands, seat, top = row["hands"], _U64(row["seat"]), _U64(row["top"])
    left, right = row["left"] + 1, row["right"] + 1
    ends = _U64(left + 16 * right if left < right else right + 16 * left)
    if rules["players"] <= 4 and rules["tiles"] <= 28:
        key[0] = hands[0] | hands[1] << _U64(28) | ends << _U64(56)
        key[1] = hands[2] | hands[3] << _U64(28) | (seat | top << _U64(2)) << _U64(56)
    else:
        key[0] = ends | seat << _U64(8) | top << _U64(12)
        key[1] = key[0]
        for other in range(rules["players"]):
            key[0] = _hash(key[0], _A, _B) ^ hands[other]
            key[1] = _hash(key[1], _C, _D) ^ hands[other]
        key[0] = _hash(key[0], _A, _B)
        key[1] = _hash(key[1], _C, _D)
    place = _hash(key[0], _A, _B) ^ _hash(key[1], _C, _D)
    return int(_hash(place, _B, _C) >> _U64(12) & mask)


@jit
def _unordered(row: Any, action: Any) -> Any:
    """The action with its end named by its number: 0 for the lower end, 1 for the higher. Its own inverse."""
    return action ^ 1 if row["left"] > row["right"] else action


@jit
def _order(row: Any, rules: Any, frame: Any, side: int, first: Any) -> None:
    """List the moves, the most promising first, `first` before all. Of two that lead to the same, only one."""
    players, sides = int(rules["players"]), int(rules["sides"])
    seat, left, right = int(row["seat"]), int(row["left"]), int(row["right"])
    hand, ours = row["hands"][seat], seat % sides == side
    marks, moves, count = frame["marks"], frame["moves"], 0
    for end in range(2 if left != right else 1):
        word = row["legal"][end]
        while word:
            tile = lowest_bit(word)
            word &= word - _ONE
            if left == NONE:
                fits = SUIT[HIGH[tile]] | SUIT[LOW[tile]]
            elif end == LEFT:
                fits = SUIT[HIGH[tile] + LOW[tile] - left] | SUIT[right]
            else:
                fits = SUIT[HIGH[tile] + LOW[tile] - right] | SUIT[left]
            # What the others could answer; least to the next opponent. Measured in plays searched.
            mark = PIPS[tile] + 2 * popcount(hand & fits)
            for step in range(1, players):
                other = seat + step if seat + step < players else seat + step - players
                fitting = popcount(row["hands"][other] & fits)
                if (other % sides == side) == ours:
                    mark += 2 * fitting
                else:
                    mark -= 16 * fitting if step == 1 else 8 * fitting
            action = 2 * tile + end
            if action == first:
                mark = 1 << 30
            at = count
            while at > 0 and marks[at - 1] < mark:
                marks[at], moves[at] = marks[at - 1], moves[at - 1]
                at -= 1
            marks[at], moves[at] = mark, action
            count += 1
    frame["count"] = count


@jit
def _open(row: Any, rules: Any, frame: Any, info: Any, ours: bool) -> None:
    """Begin with a position: find its slot; where it has a single move, list that instead."""
    at_left, at_right = row["legal"][0], row["legal"][1]
    frame["best"] = -1 if ours else _MAX_RANK
    frame["next"] = 0
    if popcount(at_left) + popcount(at_right) == 1:
        frame["moves"][0] = 2 * lowest_bit(at_left) if at_left else 2 * lowest_bit(at_right) + 1
        frame["count"] = 1
        frame["slot"] = NONE
    else:
        frame["slot"] = _find_slot(row, rules, frame["key"], info["mask"])


@jit
def _is_of(entry: Any, frame: Any, age: int) -> bool:
    """Whether the entry is of the frame's position and of this solve."""
    return entry["age"] == age and entry["key"][0] == frame["key"][0] and entry["key"][1] == frame["key"][1]


@jit
def _recall(row: Any, rules: Any, frame: Any, entry: Any, age: int, side: int, goal: int) -> None:
    """Settle the position by what the table knows of it, or list its moves."""
    first = NONE
    if _is_of(entry, frame, age):
        if entry["low"] >= goal or entry["high"] < goal:
            frame["best"] = entry["low"] if entry["low"] >= goal else entry["high"]
            frame["count"] = 0
            frame["slot"] = NONE
            return
        first = _unordered(row, np.int64(entry["move"]))
    _order(row, rules, frame, side, first)


@jit
def _keep(row: Any, frame: Any, entry: Any, age: int, goal: int) -> None:
    """Write to the table what the search found of the position."""
    if not _is_of(entry, frame, age):
        entry["key"][0] = frame["key"][0]
        entry["key"][1] = frame["key"][1]
        entry["age"] = age
        entry["low"] = 0
        entry["high"] = _MAX_RANK
    if frame["best"] >= goal:
        entry["low"] = frame["best"]
    else:
        entry["high"] = frame["best"]
    entry["move"] = _unordered(row, int(frame["move"]))


@jit
def _take(frame: Any, ours: bool, rank: int) -> None:
    """Count in what the position's last move is worth."""
    if (rank > frame["best"]) if ours else (rank < frame["best"]):
        frame["best"] = rank
        frame["move"] = frame["moves"][frame["next"] - 1]


@jit
def bound(work: Any, rules: Any, side: int, base: int, goal: int) -> int:
    """A bound on the rank of ``stack[base]``: from below where it is at least `goal`, else from above.

    _STOPPED where the node limit is reached. The position is one to act in.
    """
    stack, frames, table, ranks, _, infos = work
    info, packed = infos[0], rules[0]
    age, sides, amounts = int(info["age"]), int(packed["sides"]), ranks.shape[0] // 6
    ply, fresh = base, True
    while True:
        row, frame = stack[ply], frames[ply]
        ours = row["seat"] % sides == side
        if fresh:
            _open(row, packed, frame, info, ours)
            if frame["slot"] != NONE:
                _recall(row, packed, frame, table[frame["slot"]], age, side, goal)
            fresh = False
        best = int(frame["best"])
        if frame["next"] == frame["count"] or (best >= goal if ours else best < goal):
            if frame["slot"] != NONE:
                _keep(row, frame, table[frame["slot"]], age, goal)
            if ply == base:
                return best
            ply -= 1
            _take(frames[ply], stack[ply]["seat"] % sides == side, best)
            continue
        if info["nodes"] >= info["limit"]:
            return _STOPPED
        info["nodes"] += 1
        stack[ply + 1] = row
        child = stack[ply + 1]
        play(child, packed, int(frame["moves"][frame["next"]]))
        frame["next"] += 1
        if child["seat"] == NONE:
            _take(frame, ours, int(ranks[outcome_of(child, packed, side, amounts)]))
        else:
            ply += 1
            fresh = True


@jit
def rank_of(work: Any, rules: Any, side: int, base: Any, guess: int) -> int:
    """The rank of ``stack[base]``, where the round may be over, searched for from `guess` on; or _STOPPED."""
    row = work.stack[base]
    if row["seat"] == NONE:
        return int(work.ranks[outcome_of(row, rules[0], side, work.ranks.shape[0] // 6)])
    low, high = 0, int(work.info[0]["levels"]) - 1
    goal = min(max(guess, 1), high)
    while low < high:
        rank = bound(work, rules, side, base, goal)
        if rank == _STOPPED:
            return _STOPPED
        if rank >= goal:
            low, goal = rank, rank + 1
        else:
            high, goal = rank, rank
    return low


@jit
def begin(work: Any, row: Any, node_limit: int) -> None:
    """Put a position where searches start, and forget what the table knows of others."""
    info = work.info[0]
    if info["age"] == _MAX_AGE:
        for slot in range(work.table.shape[0]):
            work.table[slot]["age"] = 0
        info["age"] = 0
    info["age"] += 1
    info["limit"] = info["nodes"] + node_limit
    work.stack[0] = row
    work.stack[0]["multiplier"] = 1
