"""The deals in which a searcher values its moves: drawn, or reached by a walk, and how likely each is; compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._jit import jit, lowest_bit
from .._rng import next_uniform
from ..belief import deal, exchange, put_back, replay, restart
from ..kernel import num_legal, play
from ..observation import look, look_events
from ._search_values import MATCH, value
from .networks import log_chance
from .policy_search import ENOUGH, FLOOR, NEGLIGIBLE, STEPS
from .scripted import score

_ONE = np.uint64(1)


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
def seats_but(view: Any, rules: Any) -> int:
    """All seats but the view's, as bits."""
    return ((1 << rules["players"]) - 1) & ~(1 << view["seat"])


@jit
def likelihood(view: Any, rules: Any, room: Any, advice: Any, changed: int, least: float) -> float:
    """The logarithm of the chance that the other seats, dealt the last deal, would have played as they did.

    Minus infinity as soon as it is known to be below `least`. Only the `changed` seats (bits) are judged. What the
    others did is as likely as it was where a walk stands; `sums` gets the logarithms of each play's chance.
    """
    work, row, seen, sums = room.work[0], room.rows[0], room.seen[0], room.sums[0]
    temperature, total = room.settings[0]["temperature"], 0.0
    for i in range(work["num_plays"]):
        if not changed >> sums["player"][i] & 1:
            total += sums["chances"][0, i]
    restart(work, view, rules, row)
    for i in range(work["num_plays"]):
        seat, action = int(row["seat"]), int(work["plays"][i])
        sums["player"][i], sums["chances"][1, i] = seat, sums["chances"][0, i]
        if changed >> seat & 1:
            sums["chances"][1, i] = 0.0
            if num_legal(row) > 1:
                look(row, rules, seat, seen)
                if advice is None:
                    log = _log_chance(seen, rules, room.weights[0], action, temperature)
                else:
                    look_events(row, rules, seat, seen)
                    log = log_chance(seen, rules, advice.guide, action, temperature, FLOOR)
                sums["chances"][1, i] = log
                total += log
                if total < least:
                    return -np.inf
        play(row, rules, action)
    return total


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
        sums["found"][i] = value(rows[0], rules, side, room, advice)


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
            log = likelihood(view, rules[0], room, advice, seats_but(view, rules[0]), least)
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
    work, sums, row = room.work[0], room.sums[0], room.rows[1]
    sums["walking"], sums["weight"] = 1, 0.0
    for i in range(sums["count"]):
        sums["values"][i] = 0.0
    put_back(work, view, rules[0], sums["hands"][0])
    sums["log"] = likelihood(view, rules[0], room, advice, seats_but(view, rules[0]), -np.inf)
    sums["chances"][0] = sums["chances"][1]
    restart(work, view, rules[0], row)
    replay(work, rules[0], row)
    _value_moves(view, rules, room, advice)


@jit
def walk(view: Any, rules: Any, room: Any, advice: Any, stream: Any, deals: int) -> None:
    """Go from deal to deal, each as often as it is likely (Metropolis), and add the worth of each move in them."""
    work, sums, rows = room.work[0], room.sums[0], room.rows
    players = int(rules[0]["players"])
    for _ in range(deals):
        moved = False
        for _ in range(STEPS):
            if not exchange(work, view, rules[0], stream, sums["hands"][1]):
                continue
            put_back(work, view, rules[0], sums["hands"][1])
            least = sums["log"] + np.log(1.0 - next_uniform(stream))
            changed = 0
            for seat in range(players):
                if sums["hands"][0, seat] != sums["hands"][1, seat]:
                    changed |= 1 << (view["seat"] + seat) % players
            log = likelihood(view, rules[0], room, advice, changed, least)
            if log >= least:
                sums["hands"][0], sums["chances"][0] = sums["hands"][1], sums["chances"][1]
                sums["log"], moved = log, True
                rows[1] = rows[0]
            else:
                put_back(work, view, rules[0], sums["hands"][0])
        if moved:
            _value_moves(view, rules, room, advice)
        _add(sums, 1.0)
        sums["drawn"] += 1
