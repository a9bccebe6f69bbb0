"""The solver: the exact value of the rest of a round whose tiles are all known.

Two sides (pairs, or one against one) play for opposite ends, so the value is the game's. With three or more
for themselves there is no such number; the value is then what the side can be sure of: the others play as if
to hold it down ("paranoid"). That is a bound that holds whatever they do, it does not hang on how a player
chooses among moves of equal worth, as max-n values do, and it can be cut off as in a game of two.

Boneyard and hands are known, so draws and passes hold no chance, and the rest of a round follows from the
hands, the boneyard, the two ends and the seat to act.

`solve` and `move_values` are for people. Compiled players use the core, one `Work` for each thread::

    work = new_work(rules)                                   # once
    set_payoff(work, payoff)                                 # whenever outcomes are worth something else
    value = value_of(row, packed, work, side, limit)         # for each position
    if action_values(row, packed, work, side, limit, out):   # or for each move of it
        ...                                                  # out[action] holds what it is worth
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .._checks import near, whole
from .._jit import jit
from ..events import MOVES, Move, View
from ..game import Game
from ..kernel import play
from ..rules import RuleSet, pack
from ..state import NONE
from ._solver_search import (
    NEITHER,
    OTHER,
    OWN,
    Work,
    begin,
    bound,
    max_amount,
    new_work,
    outcome_of,
    rank_of,
    set_payoff,
)

__all__ = [
    "NEITHER",
    "NO_LIMIT",
    "OTHER",
    "OWN",
    "VALUES",
    "Solution",
    "Work",
    "action_values",
    "move_values",
    "new_work",
    "points_payoff",
    "set_payoff",
    "solve",
    "value_of",
    "win_payoff",
]

#: What `solve` can tell by name.
VALUES: Final = ("points", "win")

#: A `node_limit` that nothing reaches.
NO_LIMIT: Final = 2**60
_LARGEST_TABLE: Final = 26
_ONE = np.uint64(1)

Payoff = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """What `solve` found."""

    value: float  # to `side`
    side: int
    seat: int  # who is to act
    move: Move  # the best for `side` or, if another is to act, the worst
    line: tuple[Move, ...]  # from there to the end of the round, all playing so
    nodes: int  # plays that were searched


def points_payoff(rules: RuleSet, multiplier: int = 1) -> Payoff:
    """A side's points in a round, with the multiplier: what it scores, or less what it loses.

    Shape (3, amounts + 1, 2): who scores (`OWN` side, `OTHER`, `NEITHER`); the points before the multiplier,
    0 if nobody scores; whether the side placed the last tile itself (0) or not (1), which may decide who starts
    next. Any array of this shape is a payoff: chances to win the match, say. With three or more sides and
    pips the amount of `OTHER` is the side's own loss, as in the rewards of the environments.
    """
    payoff = np.zeros((3, max_amount(rules) + 1, 2))
    gain = multiplier * np.arange(payoff.shape[1], dtype=np.float64)[:, None]
    payoff[OWN] = gain
    payoff[OTHER] = -gain / (rules.num_sides - 1 if rules.scoring == "batida" else 1)
    return payoff


def win_payoff(rules: RuleSet) -> Payoff:
    """1 if the side wins the round (for whatever points), −1 if another does, 0 for a tied one; see `points_payoff`."""
    payoff = np.zeros((3, max_amount(rules) + 1, 2))
    payoff[OWN], payoff[OTHER] = 1.0, -1.0
    return payoff


@jit
def value_of(row: Any, rules: Any, work: Any, side: int, node_limit: int) -> float:
    """What the position in `row` is worth to `side`; nan where that takes more than `node_limit` plays.

    `row`, a record with a seat to act, is left as it is; `rules` is `rules.pack`'s array of one record.
    """
    begin(work, row, node_limit)
    # A plain 0 would be a type of its own to numba, and be compiled for.
    rank = rank_of(work, rules, side, np.int64(0), _middle(work))
    return work.values[rank] if rank >= 0 else np.nan


@jit
def _middle(work: Any) -> int:
    """The first rank above that of a tied round, where searches begin."""
    return int(work.ranks[2 * NEITHER * (work.ranks.shape[0] // 6)]) + 1


@jit
def action_values(row: Any, rules: Any, work: Any, side: int, node_limit: int, out: Any) -> bool:
    """Fill ``out[action]`` for each legal action with its worth to `side`; False at the limit, with `out` undefined.

    `value_of` describes the arguments. `out` is a float64 array of all action ids.
    """
    begin(work, row, node_limit)
    root, guess = work.stack[0], _middle(work)
    same_ends = root["left"] == root["right"] and root["left"] != NONE
    for action in range(2 * rules[0]["tiles"]):
        if not root["legal"][action & 1] >> np.uint64(action >> 1) & _ONE:
            continue
        if same_ends and action & 1:
            out[action] = out[action - 1]
            continue
        work.stack[1] = root
        play(work.stack[1], rules[0], action)
        guess = rank_of(work, rules, side, np.int64(1), guess)
        if guess < 0:
            return False
        out[action] = work.values[guess]
        guess += 1
    return True


@jit
def _best_line(rules: Any, work: Any, side: int, rank: int, line: Any) -> int:
    """Fill in best play from ``stack[0]``, which has this rank; how many moves it is."""
    ply = 0
    while work.stack[ply]["seat"] != NONE:
        row, child = work.stack[ply], work.stack[ply + 1]
        goal = rank if row["seat"] % rules[0]["sides"] == side else rank + 1
        for action in range(2 * rules[0]["tiles"]):
            if not row["legal"][action & 1] >> np.uint64(action >> 1) & _ONE:
                continue
            work.stack[ply + 1] = row
            play(child, rules[0], action)
            if goal == 0 or goal == work.info[0]["levels"]:  # no move is worse than another
                found = rank
            elif child["seat"] == NONE:
                found = int(work.ranks[outcome_of(child, rules[0], side, work.ranks.shape[0] // 6)])
            else:
                found = bound(work, rules, side, ply + 1, goal)
            if (found >= goal) == (goal == rank):
                line[ply] = action
                break
        ply += 1
    return ply


def _payoff_of(rules: RuleSet, value: str | Payoff, multiplier: int) -> Payoff:
    """The payoff that `value` names or is; ValueError where it is none."""
    if isinstance(value, np.ndarray):
        shape = (3, max_amount(rules) + 1, 2)
        if value.shape != shape:
            raise ValueError(f"value: a payoff of these rules has shape {shape}, not {value.shape}")
        if value.dtype.kind not in "iuf" or not np.isfinite(value).all():
            raise ValueError("value: a payoff holds finite numbers")
        return np.ascontiguousarray(value, np.float64)
    if value == "points":
        return points_payoff(rules, multiplier)
    if value == "win":
        return win_payoff(rules)
    raise ValueError(f"value={value!r} is not one of {', '.join(VALUES)}{near(value, VALUES)}, nor a payoff array")


def _set_up(game: Game, value: str | Payoff, side: int | None, table_bits: int) -> tuple[Work, int]:
    """What to search in, and the side to search for."""
    if isinstance(game, View):
        raise ValueError("a View does not show all hands and the boneyard: only a Game can be solved")
    if not isinstance(game, Game):
        raise ValueError(f"{game!r} is not a Game")
    if game.seat is None:
        raise ValueError("the round is over: there is nothing to solve; see game.result")
    table_bits = whole("table_bits", table_bits, 4, _LARGEST_TABLE)
    by_default = game.rules.side_of(game.seat)
    side = by_default if side is None else whole("side", side, 0, game.rules.num_sides - 1)
    payoff = _payoff_of(game.rules, value, game.multiplier)
    work = new_work(game.rules, table_bits)
    set_payoff(work, payoff)
    return work, side


def solve(game: Game, value: str | Payoff = "points", *, side: int | None = None, table_bits: int = 18) -> Solution:
    """Solve the rest of a round, with all hands and the boneyard known.

    Args:
        game: a round that is not over; it is left as it is.
        value: "points": what the side gains in the round, with the multiplier, or loses. "win": 1, 0 or −1
            for a round that it wins, ties or loses. Or a payoff array, as `points_payoff` describes.
        side: whose value it is; by default that of the seat to act. With two sides the other's points and
            wins are the negative. With more it is what the side can be sure of against all others.
        table_bits: the table that positions are kept in has ``2**table_bits`` entries of 24 bytes.

    Raises:
        ValueError: no Game, a round that is over, an unknown value, a side or table size out of range.
    """
    work, side = _set_up(game, value, side, table_bits)
    packed, line = pack(game.rules), np.zeros(game.rules.num_tiles, np.int64)
    found = float(value_of(game._state[0], packed, work, side, NO_LIMIT))
    nodes = int(work.info[0]["nodes"])
    rank = int(np.searchsorted(work.values[: int(work.info[0]["levels"])], found))
    length = _best_line(packed, work, side, rank, line)
    moves = tuple(MOVES[i == 0 and game.ends is None][action] for i, action in enumerate(line[:length].tolist()))
    assert game.seat is not None
    return Solution(found, side, game.seat, moves[0], moves, nodes)


def move_values(
    game: Game, value: str | Payoff = "points", *, side: int | None = None, table_bits: int = 18
) -> dict[Move, float]:
    """What each legal move is worth with best play from then on; arguments and errors as for `solve`."""
    work, side = _set_up(game, value, side, table_bits)
    out = np.zeros(game.rules.num_actions)
    action_values(game._state[0], pack(game.rules), work, side, NO_LIMIT, out)
    return {move: float(out[move.action]) for move in game.legal_moves()}
