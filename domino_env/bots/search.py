"""Search: every move is valued in deals that the seat could not tell from the true one.

Deals are drawn uniformly from all that are consistent with the view (`domino_env.belief`). In each of them every
legal move is played, the round is played on as a scripted player would at every seat, and once few tiles are left
the rest is solved. The move with the best mean is chosen. Beside plain determinisation (Ginsberg, "GIB: Imperfect
information in a computationally challenging game", JAIR 14, 2001) there are two things, each of which gains:

- A deal counts by how likely the other seats, dealt it, would have played as they did, were they to choose by the
  scripted player's scores (a softmax). What others play tells what they hold.
- In playouts everybody moves by view. A solver lets all seats see all hands, and moves that rest on guessing them
  look good to it (strategy fusion: Frank and Basin, Artificial Intelligence 100, 1998); so it comes in late.

What the player chooses follows from its view and its stream alone, but for a budget of time.
"""

from __future__ import annotations

import time
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .._checks import number, one_of, whole
from .._jit import jit, lowest_bit, popcount
from ..belief import deal, new_work, prepare, restart
from ..equity import Equity, chance_after
from ..kernel import nth_legal, num_legal, play
from ..observation import Views, look, new_views
from ..players import Player, Streams
from ..rules import RuleSet, pack
from ..scoring import add_outcome_rewards, add_round_rewards, next_starter
from ..state import NONE, OUT, TIED, new_state
from . import solver
from .scripted import ScriptedPlayer, choose, score

#: What a searcher wants: points in the round, the round, the match.
AIMS: Final = ("points", "round", "match")
_POINTS: Final = 0
_MATCH: Final = 2
#: Deals between two looks at the clock.
_CHUNK: Final = 8
_TABLE_BITS: Final = 14
#: Tiles left in all hands when the rest of a round is solved, by default.
_SOLVE: Final = 20
_NODES: Final = 100_000  # of one solution; hardly ever so many

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_SUMS: Final = np.dtype(
    [
        ("count", np.int64),  # legal moves
        ("actions", np.int64, (112,)),
        ("values", np.float64, (112,)),  # summed over deals by weight, which is relative to the heaviest deal's
        ("heaviest", np.float64),  # the logarithm of that weight
    ]
)
_SETTINGS: Final = np.dtype([("aim", np.int64), ("temperature", np.float64), ("solve", np.int64)])


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
def _likelihood(work: Any, view: Any, rules: Any, weights: Any, temperature: float, row: Any, seen: Any) -> float:
    """The logarithm of the chance that the other seats, dealt the last deal, would have played as they did."""
    restart(work, view, rules, row)
    total = 0.0
    for i in range(work["num_plays"]):
        seat, action = int(row["seat"]), int(work["plays"][i])
        if seat != view["seat"] and num_legal(row) > 1:
            look(row, rules, seat, seen)
            total += _log_chance(seen, rules, weights, action, temperature)
        play(row, rules, action)
    return total


@jit
def _worth(row: Any, rules: Any, side: int, aim: int, equity: Any) -> float:
    """What the round that has ended in `row` is worth to a side."""
    if aim == _MATCH:
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
def _set_payoff(row: Any, rules: Any, side: int, aim: int, equity: Any, payoff: Any) -> None:
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
                payoff[who, amount, last] = _worth(row, rules, side, aim, equity)


@jit
def _tiles_left(row: Any, rules: Any) -> int:
    left = 0
    for seat in range(rules["players"]):
        left += popcount(row["hands"][seat])
    return left


@jit
def _play_out(row: Any, rules: Any, weights: Any, seen: Any, solve: int) -> None:
    """Play a round on, every seat by its view, to its end or until `solve` tiles are left."""
    while row["seat"] != NONE and (solve == 0 or _tiles_left(row, rules) > solve):
        if num_legal(row) == 1:
            play(row, rules, nth_legal(row, 0))
        else:
            look(row, rules, int(row["seat"]), seen)
            play(row, rules, choose(seen, rules, weights, _ZERO))


@jit
def _begin(view: Any, sums: Any) -> int:
    """List the legal moves; how many there are. Where both ends show one number, the right end is left out."""
    count = 0
    for end in range(2):
        word = view["legal"][end]
        if end and view["left"] == view["right"] and view["left"] != NONE:
            break
        while word:
            sums["actions"][count] = 2 * lowest_bit(word) + end
            sums["values"][count] = 0.0
            word &= word - _ONE
            count += 1
    sums["count"] = count
    sums["heaviest"] = -np.inf
    return count


@jit
def _heavier(sums: Any, log: float) -> float:
    """A deal's weight from its logarithm; where it is the heaviest yet, all others are made lighter."""
    if log > sums["heaviest"]:
        shrink = np.exp(sums["heaviest"] - log)
        sums["heaviest"] = log
        for i in range(sums["count"]):
            sums["values"][i] *= shrink
    return np.exp(log - sums["heaviest"])


class _Room(NamedTuple):
    """What compiled search reads and writes beside views; arrays of one entry, but for `equity` and two `rows`."""

    work: Any
    weights: Any
    settings: Any
    equity: Any
    rows: Any
    seen: Any
    sums: Any
    solving: Any
    payoff: Any


@jit
def _prepare(view: Any, rules: Any, room: Any, stream: Any) -> None:
    """Get ready to value a view's moves."""
    settings, row = room.settings[0], room.rows[0]
    if _begin(view, room.sums[0]) == 1:
        return
    prepare(view, rules[0], room.work[0])
    if settings["aim"] == _MATCH and settings["solve"] > 0:  # other payoffs are the same in every round
        deal(room.work[0], view, rules[0], stream, row, room.rows[1])
        _set_payoff(row, rules[0], int(view["seat"] % rules[0]["sides"]), settings["aim"], room.equity, room.payoff)
        solver.set_payoff(room.solving, room.payoff)


@jit
def _value(row: Any, rules: Any, side: int, room: Any) -> float:
    """What the position in `row`, which is written over, is worth to a side."""
    settings = room.settings[0]
    _play_out(row, rules[0], room.weights[0], room.seen[0], settings["solve"])
    if row["seat"] != NONE:
        value = solver.value_of(row, rules, room.solving, side, _NODES)
        if not np.isnan(value):
            return value
        _play_out(row, rules[0], room.weights[0], room.seen[0], 0)
    return _worth(row, rules[0], side, settings["aim"], room.equity)


@jit
def _add_deals(view: Any, rules: Any, room: Any, stream: Any, deals: int) -> None:
    """Sample deals and add the worth of each move in them."""
    work, settings, sums, rows = room.work[0], room.settings[0], room.sums[0], room.rows
    side = int(view["seat"] % rules[0]["sides"])
    for _ in range(deals):
        deal(work, view, rules[0], stream, rows[0], rows[1])
        if settings["aim"] != _MATCH:
            rows[1]["multiplier"] = 1  # the solver counts points without; all moves alike, it changes no choice
        weight = 1.0
        if settings["temperature"] > 0.0:
            temperature = settings["temperature"]
            log = _likelihood(work, view, rules[0], room.weights[0], temperature, rows[0], room.seen[0])
            weight = _heavier(sums, log)
        for i in range(sums["count"]):
            rows[0] = rows[1]
            play(rows[0], rules[0], sums["actions"][i])
            sums["values"][i] += weight * _value(rows[0], rules, side, room)


@jit
def _search(view: Any, rules: Any, room: Any, stream: Any, deals: int, fresh: bool) -> int:
    """Sample deals for a view, after those before if it is not `fresh`; the best move so far."""
    sums = room.sums[0]
    if fresh:
        _prepare(view, rules, room, stream)
    if sums["count"] > 1:
        _add_deals(view, rules, room, stream, deals)
    return sums["actions"][sums["values"][: sums["count"]].argmax()]


@jit
def _search_many(views: Any, rules: Any, room: Any, streams: Any, index: Any, deals: int, out: Any) -> None:
    for v in range(views.shape[0]):
        out[v] = _search(views[v], rules, room, streams[index[v]], deals, True)


@jit
def _search_one(views: Any, v: int, rules: Any, room: Any, streams: Any, row: int, deals: int, fresh: bool) -> int:
    return _search(views[v], rules, room, streams[row], deals, fresh)


class SearchPlayer(Player):
    """Values its moves in sampled deals; see the module.

    Args:
        rules: what it plays.
        deals: how many deals for a choice.
        ms: choose within so many milliseconds instead, looking at the clock every 8 deals. What is chosen then
            depends on the machine too.
        aim: what to go for: ``"points"`` in the round, the ``"round"`` itself (however many points), or the
            ``"match"``, by the table of `domino_env.equity`. By default the match where there is such a table,
            else points.
        temperature: how strictly the other seats are taken to play as `policy`, in units of its scores: at 1 a
            move that scores 1 less is chosen 2.7 times as rarely. 0 weighs all deals alike.
        solve: the rest of a round is solved when so many tiles are left in all hands; 0 never. By default 20 where two
            sides play without drawing. A solver would have all seats know what they will draw, which loses more
            than it gains; and with more than two sides its value is but a bound.
        policy: the scripted player that plays rounds out.

    Raises:
        ValueError: an option out of range, an unknown aim or policy, ``aim="match"`` without a table.
    """

    def __init__(
        self,
        rules: RuleSet,
        *,
        deals: int = 64,
        ms: float | None = None,
        aim: str | None = None,
        temperature: float = 6.0,
        solve: int | None = None,
        policy: str = "counting",
    ) -> None:
        super().__init__(rules)
        self.name = "search"
        self.deals = whole("deals", deals, 1)
        self.ms = None if ms is None else number("ms", ms, 0.0)
        equity = _equity_of(rules, aim)
        aim = ("points" if equity is None else "match") if aim is None else one_of("aim", aim, AIMS)
        settings = np.zeros(1, _SETTINGS)
        settings["aim"] = AIMS.index(aim)
        settings["temperature"] = number("temperature", temperature, 0.0)
        by_default = _SOLVE if rules.num_sides == 2 and rules.draw == "none" else 0
        settings["solve"] = by_default if solve is None else whole("solve", solve, 0)
        payoff = solver.win_payoff(rules) if aim == "round" else solver.points_payoff(rules)
        solving = solver.new_work(rules, _TABLE_BITS)
        solver.set_payoff(solving, payoff)
        self._room = _Room(
            new_work(rules),
            ScriptedPlayer(rules, policy).weights,
            settings,
            np.zeros((0, 0, 0, 0)) if equity is None else equity.table.copy(),
            new_state(rules, 2),
            new_views(rules, 1),
            np.zeros(1, _SUMS),
            solving,
            payoff,
        )

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """The move of the best mean value for each view, (n,)."""
        out, rules = np.zeros(len(views), np.int64), pack(self.rules)
        if self.ms is None:
            _search_many(views, rules, self._room, rng.states, rng.index, self.deals, out)
            return out
        for v in range(len(views)):
            end, fresh = time.perf_counter() + self.ms / 1000, True
            while fresh or (time.perf_counter() < end and self._room.sums[0]["count"] > 1):
                out[v] = _search_one(views, v, rules, self._room, rng.states, int(rng.index[v]), _CHUNK, fresh)
                fresh = False
        return out


def _equity_of(rules: RuleSet, aim: str | None) -> Equity | None:
    """The table to aim by; None where none is asked for, or by default where there is none."""
    if aim not in (None, "match"):
        return None
    try:
        return Equity.of(rules)
    except ValueError as error:
        if aim is None:
            return None
        raise ValueError(f"aim='match': {error}") from error
