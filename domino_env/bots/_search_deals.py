"""The deals in which a searcher values its moves: drawn, or reached by a walk, and how likely each is; compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._jit import jit, lowest_bit
from .._rng import next_uniform
from ..belief import deal, exchange, put_back, replay, restart
from ..kernel import num_legal, play
from ..observation import look, look_events
from ._search_values import MATCH, MEMORY_BITS, value_of
from .networks import log_chance
from .policy_search import ENOUGH, FLOOR, NEGLIGIBLE, STEPS
from .scripted import score

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_FOUR = np.uint64(4)
#: Places in memory are the highest bits of a product (Fibonacci hashing).
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - MEMORY_BITS)


@jit
def _log_chance(view: Any, rules: Any, weights: Any, action: int, temperature: float) -> float:
    """The logarithm of the chance that a player chooses `action`, by a softmax of its scores."""
    best, own, total = -np.inf, 0.0, 0.0
    for end in range(2):
        word = view["legal"][end]
        while word:
            tile = lowest_bit(word)
            word &= word - _ONE
            value = score(view, rules, weights, tile, end) / temperature
            if 2 * tile + end == action:
                own = value
            if value > best:
                total = total * np.exp(best - value) + 1.0
                best = value
            else:
                total += np.exp(value - best)
    return own - best - np.log(total)


@jit
def judge(view: Any, rules: Any, room: Any, advice: Any, seats: int, total: float, least: float) -> float:
    """`total`, and the logarithm of the chance that `seats`, dealt the last deal, would have played as they did.

    Seats are bits, counted from the observer; what each of them adds is noted in the second row of `logs`. As soon as
    the sum is known to be below `least`, what it has come to then.
    """
    work, row, seen, logs = room.work[0], room.rows[0], room.seen[0], room.sums[0]["logs"][1]
    temperature, players = room.settings[0]["temperature"], int(rules["players"])
    for seat in range(players):
        if seats >> seat & 1:
            logs[seat] = 0.0
    restart(work, view, rules, row)
    for i in range(work["num_plays"]):
        seat, action = int(row["seat"]), int(work["plays"][i])
        relative = (seat - int(view["seat"])) % players
        if seats >> relative & 1 and num_legal(row) > 1:
            look(row, rules, seat, seen)
            if advice is None:
                log = _log_chance(seen, rules, room.weights[0], action, temperature)
            else:
                look_events(row, rules, seat, seen)
                log = log_chance(seen, rules, advice.guide, action, temperature, FLOOR)
            logs[relative] += log
            total += log
            if total < least:
                return total
        play(row, rules, action)
    return total


@jit
def all_others(rules: Any) -> int:
    """All seats but the observer, as bits."""
    return (1 << int(rules["players"])) - 2


@jit
def _value_moves(view: Any, rules: Any, room: Any, advice: Any) -> None:
    """Find what each move is worth in the last deal, whose true position is in the second of `rows`."""
    settings, sums, rows = room.settings[0], room.sums[0], room.rows
    side = int(view["seat"] % rules[0]["sides"])
    if settings["aim"] != MATCH:
        rows[1]["multiplier"] = 1  # the solver counts points without; all moves alike, it changes no choice
    for i in range(sums["count"]):
        rows[0] = rows[1]
        play(rows[0], rules[0], sums["actions"][i])
        sums["found"][i] = value_of(rows[0], rules, side, room, advice)


@jit
def _add(sums: Any, weight: float) -> None:
    """Add what the moves were found to be worth in a deal of some weight."""
    sums["weight"] += weight
    sums["squares"] += weight * weight
    for i in range(sums["count"]):
        sums["values"][i] += weight * sums["found"][i]


@jit
def _heavier(sums: Any, log: float) -> float:
    """A deal's weight from its logarithm; where it is the heaviest yet, all others are made lighter."""
    if log > sums["heaviest"]:
        shrink = np.exp(sums["heaviest"] - log)
        sums["heaviest"] = log
        sums["weight"] *= shrink
        sums["squares"] *= shrink * shrink
        for i in range(sums["count"]):
            sums["values"][i] *= shrink
    return np.exp(log - sums["heaviest"])


@jit
def add_deals(view: Any, rules: Any, room: Any, advice: Any, stream: Any, deals: int) -> None:
    """Draw deals, and add the worth of each move in them by how likely they are."""
    work, sums, rows = room.work[0], room.sums[0], room.rows
    for _ in range(deals):
        deal(work, view, rules[0], stream, rows[0], rows[1])
        sums["drawn"] += 1
        log = 0.0
        if room.settings[0]["temperature"] > 0.0:
            # Going through a round with a network costs more than all else: not for a deal that hardly counts.
            least = -np.inf if advice is None else sums["heaviest"] - NEGLIGIBLE
            log = judge(view, rules[0], room, advice, all_others(rules[0]), 0.0, least)
            if log < least:
                continue
        weight = _heavier(sums, log)
        _value_moves(view, rules, room, advice)
        _add(sums, weight)
        if advice is not None and next_uniform(stream) * sums["weight"] < weight:  # a deal drawn by its weight
            for seat in range(rules[0]["players"]):
                sums["hands"][0, seat] = work["hands"][seat]


@jit
def few_count(sums: Any) -> bool:
    """Whether the weights are so unequal that few of the deals count."""
    return sums["weight"] * sums["weight"] < ENOUGH * sums["drawn"] * sums["squares"]


@jit
def begin_walk(view: Any, rules: Any, room: Any, advice: Any) -> None:
    """Forget the deals so far but for one, drawn by its weight, where a walk begins."""
    work, sums = room.work[0], room.sums[0]
    sums["walking"], sums["weight"] = 1, 0.0
    for i in range(sums["count"]):
        sums["values"][i] = 0.0
    put_back(work, view, rules[0], sums["hands"][0])
    judge(view, rules[0], room, advice, all_others(rules[0]), 0.0, -np.inf)
    sums["logs"][0] = sums["logs"][1]
    room.memory["key"][:] = _ZERO
    _value_here(view, rules, room, advice)


@jit
def _value_here(view: Any, rules: Any, room: Any, advice: Any) -> None:
    """Find what each move is worth in the deal where a walk stands."""
    work, row = room.work[0], room.rows[1]
    restart(work, view, rules[0], row)
    replay(work, rules[0], row)
    _value_moves(view, rules, room, advice)


@jit
def _place_of(seat: int, hand: Any) -> tuple[Any, Any]:
    """By what key it is remembered how likely a seat with some hand would have played as it did, and where."""
    key = hand << _FOUR | np.uint64(seat)
    return key, np.int64(key * _MIX >> _SHIFT)


@jit
def judge_again(view: Any, rules: Any, room: Any, advice: Any, least: float) -> bool:
    """Whether the last deal, to which a walk may go, is at least as likely as `least`, a logarithm.

    What a seat sees, and so how likely it plays what, follows from its hand and from what all have seen. So only seats
    whose hands differ from where the walk stands are judged, and each hand but once: a deal that is turned down before
    the end leaves a bound.
    """
    hands, logs, memory, players = room.sums[0]["hands"], room.sums[0]["logs"], room.memory, int(rules["players"])
    total, bounds, asked = 0.0, 0.0, 0
    for seat in range(1, players):
        key, place = _place_of(seat, hands[1, seat])
        if hands[0, seat] == hands[1, seat]:
            logs[1, seat] = logs[0, seat]
        elif memory[place]["key"] == key and not memory[place]["bound"]:
            logs[1, seat] = memory[place]["log"]
        else:
            asked |= 1 << seat
            if memory[place]["key"] == key:
                bounds += memory[place]["log"]
            continue
        total += logs[1, seat]
    if total + bounds < least:
        return False
    if asked:
        total = judge(view, rules, room, advice, asked, total, least)
    for seat in range(1, players):
        if asked >> seat & 1:
            key, place = _place_of(seat, hands[1, seat])
            memory[place]["key"], memory[place]["log"], memory[place]["bound"] = key, logs[1, seat], total < least
    if total >= least:
        room.sums[0]["logs"][0] = logs[1]
    return bool(total >= least)


@jit
def walk(view: Any, rules: Any, room: Any, advice: Any, stream: Any, deals: int) -> None:
    """Go from deal to deal, each as often as it is likely (Metropolis), and add the worth of each move in them."""
    work, sums = room.work[0], room.sums[0]
    for _ in range(deals):
        moved = False
        for _ in range(STEPS):
            if not exchange(work, view, rules[0], stream, sums["hands"][1]):
                continue
            put_back(work, view, rules[0], sums["hands"][1])
            least = sums["logs"][0].sum() + np.log(1.0 - next_uniform(stream))
            if judge_again(view, rules[0], room, advice, least):
                sums["hands"][0], moved = sums["hands"][1], True
            else:
                put_back(work, view, rules[0], sums["hands"][0])
        if moved:
            _value_here(view, rules, room, advice)
        _add(sums, 1.0)
        sums["drawn"] += 1
