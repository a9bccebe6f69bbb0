"""What a searcher reads and writes beside views, and what it takes a position to be worth; compiled."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from .._jit import jit, popcount
from ..equity import chance_after
from ..kernel import nth_legal, num_legal, play
from ..observation import look, look_events
from ..scoring import add_outcome_rewards, add_round_rewards, next_starter
from ..state import NONE, OUT, TIED
from . import solver
from .networks import best_move
from .policy_search import foreseen
from .scripted import choose

#: What a searcher wants: points in the round, the round, the match.
AIMS: Final = ("points", "round", "match")
_POINTS: Final = 0
MATCH: Final = 2
_NODES: Final = 100_000  # of one solution; hardly ever so many

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
#: What is summed over deals, and what a walk through them remembers.
SUMS: Final = np.dtype(
    [
        ("count", np.int64),  # legal moves
        ("actions", np.int64, (112,)),
        ("values", np.float64, (112,)),  # summed over deals by weight, which is relative to the heaviest deal's
        ("heaviest", np.float64),  # the logarithm of that weight
        ("weight", np.float64),  # of all deals
        ("squares", np.float64),  # of the weights of all deals
        ("prior", np.float64, (112,)),  # what the policy's own liking adds to each move's mean value
        ("found", np.float64, (112,)),  # values in the last deal
        ("drawn", np.int64),  # deals so far
        ("walking", np.int64),  # whether deals come from a walk
        ("hands", np.uint64, (2, 9)),  # the deal where a walk stands, or is to begin; one to go to
        ("logs", np.float64, (2, 9)),  # of how likely each seat, counted from the observer, would have played as it did
    ]
)
#: How likely a seat would have played as it did, had it been dealt some hand; or a bound of it.
MEMORY: Final = np.dtype([("key", np.uint64), ("log", np.float64), ("bound", np.int8)])
MEMORY_BITS: Final = 12
SETTINGS: Final = np.dtype([("aim", np.int64), ("temperature", np.float64), ("solve", np.int64)])


class Room(NamedTuple):
    """What compiled search reads and writes beside views; arrays of one entry, but for those told."""

    work: Any  # `belief.new_work`
    weights: Any  # of the scripted player
    settings: Any
    equity: Any  # `equity.Equity.table`
    rows: Any  # two positions: one to play on in, and the true one in the last deal
    seen: Any  # a view
    sums: Any
    memory: Any  # 2**MEMORY_BITS entries
    solving: Any  # `solver.new_work`
    payoff: Any


@jit
def worth(row: Any, rules: Any, side: int, aim: int, equity: Any) -> float:
    """What the round that has ended in `row` is worth to a side."""
    if aim == MATCH:
        chance = chance_after(row, equity)
        return chance if side == 0 else 1.0 - chance
    for other in range(rules["sides"]):
        row["rewards"][other] = 0.0
    if aim == _POINTS:
        add_round_rewards(row, rules)
    else:
        add_outcome_rewards(row, rules, int(row["winning_side"]))
    return row["rewards"][side]


@jit
def set_payoff(row: Any, rules: Any, side: int, aim: int, equity: Any, payoff: Any) -> None:
    """Fill a payoff, as `solver.points_payoff` describes it, with what rounds are worth to a side of two.

    `row` is any position of the match's present round; it is written over.
    """
    scores = row["scores"][side], row["scores"][1 - side]
    ties = int(row["ties"])
    for who in range(3):
        winner = NONE if who == solver.NEITHER else side if who == solver.OWN else 1 - side
        for amount in range(payoff.shape[1]):
            row["scores"][side], row["scores"][1 - side] = scores
            points = amount * row["multiplier"]
            row["reason"] = TIED if winner == NONE else OUT
            row["ties"] = ties + 1 if winner == NONE else 0
            row["points"] = points
            row["winning_side"] = winner
            row["winning_seat"] = winner
            row["hands"][0] = _ONE if winner == 1 else _ZERO  # of two seats the one with tiles has lost
            row["hands"][1] = _ONE if winner == 0 else _ZERO
            row["over"], row["winner"] = 0, NONE
            if winner != NONE:
                row["scores"][winner] += points
                if row["scores"][winner] >= rules["target"]:
                    row["over"], row["winner"] = 1, winner
            for last in range(2):
                row["last"] = side if last == 0 else 1 - side
                row["next_starter"] = next_starter(row, rules)
                payoff[who, amount, last] = worth(row, rules, side, aim, equity)


@jit
def _tiles_left(row: Any, rules: Any) -> int:
    left = 0
    for seat in range(rules["players"]):
        left += popcount(row["hands"][seat])
    return left


@jit
def play_out(row: Any, rules: Any, weights: Any, seen: Any, solve: int, advice: Any = None) -> None:
    """Play a round on, every seat by its view, to its end or until `solve` tiles are left.

    With a critic to ask, only what is forced and a few moves more are played.
    """
    chosen = 0
    while row["seat"] != NONE and (solve == 0 or _tiles_left(row, rules) > solve):
        if num_legal(row) == 1:
            play(row, rules, nth_legal(row, 0))
        elif advice is None:
            look(row, rules, int(row["seat"]), seen)
            play(row, rules, choose(seen, rules, weights, _ZERO))
        elif chosen < advice.settings[0]["plies"]:
            chosen += 1
            look(row, rules, int(row["seat"]), seen)
            look_events(row, rules, int(row["seat"]), seen)
            play(row, rules, best_move(seen, rules, advice.guide))
        else:
            return


@jit
def value_of(row: Any, rules: Any, side: int, room: Any, advice: Any) -> float:
    """What the position in `row`, which is written over, is worth to a side."""
    settings = room.settings[0]
    play_out(row, rules[0], room.weights[0], room.seen[0], settings["solve"], advice)
    if row["seat"] != NONE and _tiles_left(row, rules[0]) <= settings["solve"]:
        value = solver.value_of(row, rules, room.solving, side, _NODES)
        if not np.isnan(value):
            return value
        play_out(row, rules[0], room.weights[0], room.seen[0], 0, advice)
    if advice is not None and row["seat"] != NONE:
        return foreseen(row, rules[0], side, advice)
    return worth(row, rules[0], side, settings["aim"], room.equity)
