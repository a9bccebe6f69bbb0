"""Search: every move is valued in deals that the seat could not tell from the true one.

Deals are drawn uniformly from all that are consistent with the view (`domino_env.belief`). In each of them every
legal move is played, the round is played on as a scripted player would at every seat, and once few tiles are left
the rest is solved. The move with the best mean is chosen. Beside plain determinisation (Ginsberg, "GIB: Imperfect
information in a computationally challenging game", JAIR 14, 2001) there are two things, each of which gains:

- A deal counts by how likely the other seats, dealt it, would have played as they did, were they to choose by the
  scripted player's scores (a softmax). What others play tells what they hold.
- In playouts everybody moves by view. A solver lets all seats see all hands, and moves that rest on guessing them
  look good to it (strategy fusion: Frank and Basin, Artificial Intelligence 100, 1998); so it comes in late.

Instead of a scripted player a trained policy and its critic may guide it: `policy_search` says how.

What the player chooses follows from its view and its stream alone, but for a budget of time.
"""

from __future__ import annotations

import time
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .._checks import number, one_of, whole
from .._jit import jit, lowest_bit, popcount
from .._rng import next_u32
from ..belief import deal, exchange, new_work, prepare, put_back, replay, restart
from ..equity import Equity, chance_after
from ..kernel import nth_legal, num_legal, play
from ..observation import Views, list_moves, look, look_events, new_views
from ..players import Player, PlayerSpec, Streams
from ..rules import RuleSet, pack
from ..scoring import add_outcome_rewards, add_round_rewards, next_starter
from ..state import NONE, OUT, TIED, new_state
from . import solver
from .networks import PolicyNetworks, best_move, log_chance, networks_of
from .policy_search import (
    ENOUGH,
    FLOOR,
    NEGLIGIBLE,
    PLIES,
    PRIOR,
    PRIOR_DEALS,
    STARTS,
    STEPS,
    TEMPERATURE,
    VALUES,
    Advice,
    aim_for,
    foreseen,
    like_moves,
    new_advice,
)
from .scripted import SCRIPTED, ScriptedPlayer, choose, score

#: What a searcher wants: points in the round, the round, the match.
AIMS: Final = ("points", "round", "match")
_POINTS: Final = 0
_MATCH: Final = 2
#: Deals between two looks at the clock.
_CHUNK: Final = 8
_TABLE_BITS: Final = 14
#: Tiles left in all hands when the rest of a round is solved, by default.
_SOLVE: Final = 20
_TEMPERATURE: Final = 6.0
_NODES: Final = 100_000  # of one solution; hardly ever so many

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_SUMS: Final = np.dtype(
    [
        ("count", np.int64),  # legal moves
        ("actions", np.int64, (112,)),
        ("values", np.float64, (112,)),  # summed over deals by weight, which is relative to the heaviest deal's
        ("heaviest", np.float64),  # the logarithm of that weight
        ("weight", np.float64),  # of all deals
        ("prior", np.float64, (112,)),  # what the policy's own liking adds to each move's mean value
        ("found", np.float64, (112,)),  # values in the last deal
        ("squares", np.float64),  # of the weights of all deals
        ("drawn", np.int64),  # deals so far
        ("walking", np.int64),  # whether deals come from a walk now
        ("hands", np.uint64, (2, 9)),  # the deal in which a walk stands, or is to begin; one to go to
        ("log", np.float64),  # the logarithm of its likelihood
        ("player", np.int64, (56,)),  # who made each play
        (
            "chances",
            np.float64,
            (2, 56),
        ),  # the logarithm of its chance, in the deal where a walk stands and in the next
    ]
)
_SETTINGS: Final = np.dtype([("aim", np.int64), ("temperature", np.float64), ("solve", np.int64)])


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
def _likelihood(view: Any, rules: Any, room: Any, advice: Any, least: float) -> float:
    """The logarithm of the chance that the other seats, dealt the last deal, would have played as they did.

    Minus infinity as soon as it is known to be below `least`.
    """
    work, row, seen, temperature = room.work[0], room.rows[0], room.seen[0], room.settings[0]["temperature"]
    restart(work, view, rules, row)
    total = 0.0
    for i in range(work["num_plays"]):
        seat, action = int(row["seat"]), int(work["plays"][i])
        if seat != view["seat"] and num_legal(row) > 1:
            look(row, rules, seat, seen)
            if advice is None:
                total += _log_chance(seen, rules, room.weights[0], action, temperature)
            else:
                look_events(row, rules, seat, seen)
                total += log_chance(seen, rules, advice.guide, action, temperature, FLOOR)
            if total < least:
                return -np.inf
        play(row, rules, action)
    return total


@jit
def _likelihood_again(view: Any, rules: Any, room: Any, advice: Any, changed: int, least: float) -> float:
    """As `_likelihood`, where but the hands of the `changed` seats (bits) differ from those of the deal before.

    What the other seats did they would have done as likely: `sums` has the logarithm of each play's chance then, and
    gets those of now.
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
                look_events(row, rules, seat, seen)
                sums["chances"][1, i] = log_chance(seen, rules, advice.guide, action, temperature, FLOOR)
                total += sums["chances"][1, i]
                if total < least:
                    return -np.inf
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
def _play_out(row: Any, rules: Any, weights: Any, seen: Any, solve: int, advice: Any = None) -> None:
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
def _begin(view: Any, sums: Any) -> int:
    """List the moves; how many there are."""
    count = list_moves(view, sums["actions"])
    for i in range(count):
        sums["values"][i] = 0.0
        sums["prior"][i] = 0.0
    sums["count"] = count
    sums["heaviest"] = -np.inf
    sums["weight"], sums["squares"], sums["drawn"], sums["walking"] = 0.0, 0.0, 0, 0
    return count


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
def _prepare(view: Any, rules: Any, room: Any, advice: Any, stream: Any) -> None:
    """Get ready to value a view's moves."""
    settings, row = room.settings[0], room.rows[0]
    if _begin(view, room.sums[0]) == 1:
        return
    prepare(view, rules[0], room.work[0])
    if advice is not None:
        like_moves(view, rules[0], room.sums[0]["prior"], advice)
    if settings["aim"] == _MATCH and settings["solve"] > 0:  # other payoffs are the same in every round
        deal(room.work[0], view, rules[0], stream, row, room.rows[1])
        _set_payoff(row, rules[0], int(view["seat"] % rules[0]["sides"]), settings["aim"], room.equity, room.payoff)
        solver.set_payoff(room.solving, room.payoff)


@jit
def _value(row: Any, rules: Any, side: int, room: Any, advice: Any) -> float:
    """What the position in `row`, which is written over, is worth to a side."""
    settings = room.settings[0]
    _play_out(row, rules[0], room.weights[0], room.seen[0], settings["solve"], advice)
    if row["seat"] != NONE and _tiles_left(row, rules[0]) <= settings["solve"]:
        value = solver.value_of(row, rules, room.solving, side, _NODES)
        if not np.isnan(value):
            return value
        _play_out(row, rules[0], room.weights[0], room.seen[0], 0, advice)
    if advice is not None and row["seat"] != NONE:
        return foreseen(row, rules[0], side, advice)
    return _worth(row, rules[0], side, settings["aim"], room.equity)


@jit
def _add_deals(view: Any, rules: Any, room: Any, advice: Any, stream: Any, deals: int) -> None:
    """Sample deals and add the worth of each move in them."""
    work, settings, sums, rows = room.work[0], room.settings[0], room.sums[0], room.rows
    side = int(view["seat"] % rules[0]["sides"])
    for _ in range(deals):
        deal(work, view, rules[0], stream, rows[0], rows[1])
        sums["drawn"] += 1
        if settings["aim"] != _MATCH:
            rows[1]["multiplier"] = 1  # the solver counts points without; all moves alike, it changes no choice
        weight, log = 1.0, 0.0
        if settings["temperature"] > 0.0:
            # Going through a round with a network costs more than all else: not for a deal that hardly counts.
            least = -np.inf if advice is None else sums["heaviest"] - NEGLIGIBLE
            log = _likelihood(view, rules[0], room, advice, least)
            if log < least:
                continue
            weight = _heavier(sums, log)
        sums["weight"] += weight
        for i in range(sums["count"]):
            rows[0] = rows[1]
            play(rows[0], rules[0], sums["actions"][i])
            sums["values"][i] += weight * _value(rows[0], rules, side, room, advice)
        if advice is not None:
            sums["squares"] += weight * weight
            if _uniform(stream) * sums["weight"] < weight:
                for seat in range(rules[0]["players"]):
                    sums["hands"][0, seat] = work["hands"][seat]


@jit
def _uniform(stream: Any) -> float:
    """A number from [0, 1)."""
    return float(next_u32(stream)) / 4294967296.0


@jit
def _few_count(sums: Any) -> bool:
    """Whether the weights are so unequal that few of the deals count."""
    return sums["weight"] * sums["weight"] < ENOUGH * sums["drawn"] * sums["squares"]


@jit
def _begin_walk(view: Any, rules: Any, room: Any, advice: Any) -> None:
    """Forget the deals so far but for one, drawn by its weight, where a walk begins."""
    sums, work, row = room.sums[0], room.work[0], room.rows[1]
    sums["walking"], sums["weight"] = 1, 0.0
    for i in range(sums["count"]):
        sums["values"][i] = 0.0
    put_back(work, view, rules[0], sums["hands"][0])
    others = (1 << rules[0]["players"]) - 1 & ~(1 << view["seat"])
    for i in range(work["num_plays"]):
        sums["player"][i], sums["chances"][0, i] = view["seat"], 0.0
    sums["log"] = _likelihood_again(view, rules[0], room, advice, others, -np.inf)
    sums["chances"][0] = sums["chances"][1]
    restart(work, view, rules[0], row)
    replay(work, rules[0], row)
    if room.settings[0]["aim"] != _MATCH:
        row["multiplier"] = 1


@jit
def _walk(view: Any, rules: Any, room: Any, advice: Any, stream: Any, deals: int) -> None:
    """Go from deal to deal, each as often as it is likely (Metropolis), and add the worth of each move in them."""
    work, sums, rows = room.work[0], room.sums[0], room.rows
    side, players, known = int(view["seat"] % rules[0]["sides"]), int(rules[0]["players"]), sums["weight"] > 0.0
    for _ in range(deals):
        moved = False
        for _ in range(STEPS):
            if not exchange(work, view, rules[0], stream, sums["hands"][1]):
                continue
            put_back(work, view, rules[0], sums["hands"][1])
            least = sums["log"] + np.log(1.0 - _uniform(stream))
            changed = 0
            for seat in range(players):
                if sums["hands"][0, seat] != sums["hands"][1, seat]:
                    changed |= 1 << (view["seat"] + seat) % players
            log = _likelihood_again(view, rules[0], room, advice, changed, least)
            if log >= least:
                sums["hands"][0], sums["chances"][0] = sums["hands"][1], sums["chances"][1]
                sums["log"], moved = log, True
                rows[1] = rows[0]
            else:
                put_back(work, view, rules[0], sums["hands"][0])
        if moved and room.settings[0]["aim"] != _MATCH:
            rows[1]["multiplier"] = 1
        for i in range(sums["count"]):
            if moved or not known:
                rows[0] = rows[1]
                play(rows[0], rules[0], sums["actions"][i])
                sums["found"][i] = _value(rows[0], rules, side, room, advice)
            sums["values"][i] += sums["found"][i]
        sums["weight"] += 1.0
        sums["drawn"] += 1
        known = True


@jit
def _total(sums: Any, i: int) -> float:
    """The sum by which moves are compared: the fewer deals there were, the more the policy's liking counts."""
    if sums["prior"][i] == 0.0:
        return sums["values"][i]
    return sums["values"][i] + sums["weight"] * sums["prior"][i] * np.sqrt(PRIOR_DEALS / sums["drawn"])


@jit
def _search(view: Any, rules: Any, room: Any, advice: Any, stream: Any, deals: int, fresh: bool) -> int:
    """Sample deals for a view, after those before if it is not `fresh`; the best move so far."""
    sums = room.sums[0]
    if fresh:
        _prepare(view, rules, room, advice, stream)
    if sums["count"] > 1:
        left = deals
        if advice is not None and rules[0]["players"] > 2 and rules[0]["boneyard_size"] == 0:
            first = min(left, STARTS - sums["drawn"])
            if first > 0:
                _add_deals(view, rules, room, advice, stream, first)
                left -= first
            if left > 0 and sums["drawn"] == STARTS and not sums["walking"] and _few_count(sums):
                _begin_walk(view, rules, room, advice)
            if sums["walking"]:
                _walk(view, rules, room, advice, stream, left)
                left = 0
        _add_deals(view, rules, room, advice, stream, left)
    best = 0
    for i in range(1, sums["count"]):
        if _total(sums, i) > _total(sums, best):
            best = i
    return sums["actions"][best]


@jit
def _search_many(
    views: Any, rules: Any, room: Any, advice: Any, streams: Any, index: Any, deals: int, out: Any
) -> None:
    for v in range(views.shape[0]):
        out[v] = _search(views[v], rules, room, advice, streams[index[v]], deals, True)


@jit
def _search_one(
    views: Any, v: int, rules: Any, room: Any, advice: Any, streams: Any, row: int, deals: int, fresh: bool
) -> int:
    return _search(views[v], rules, room, advice, streams[row], deals, fresh)


class SearchPlayer(Player):
    """Values its moves in sampled deals; see the module.

    Args:
        rules: what it plays.
        deals: how many deals for a choice.
        ms: choose within so many milliseconds instead, looking at the clock every 8 deals. What is chosen then
            depends on the machine too.
        aim: what to go for: ``"points"`` in the round, the ``"round"`` itself (however many points), or the
            ``"match"``, by the table of `domino_env.equity`. By default what the policy's critic foretells; of a
            scripted player the match where there is such a table, else points.
        temperature: how strictly the other seats are taken to play as `policy`, in units of its scores: at 1 a
            move that scores 1 less is chosen 2.7 times as rarely. 0 weighs all deals alike. By default 6 for a
            scripted player; 1, which is how it was trained to draw, for another.
        solve: the rest of a round is solved when so many tiles are left in all hands; 0 never. By default 20 where
            two sides play without drawing and a scripted player plays rounds out; else 0. A solver would have all
            seats know all hands, and what they will draw: a critic knows better what comes of a position.
        policy: how the others are taken to play, and who plays rounds out: a scripted player, or the spec of a
            player that offers its networks (`networks.PolicyNetworks`), a critic among them.
        prior: how much such a policy's own liking counts beside what its moves turn out to be worth, which so few
            deals tell but roughly: with 64 deals that of a move that it chooses 2.7 times as often counts `prior`
            more, in units of its critic's; with a quarter of the deals twice as much, as values are then twice as
            rough.
        value: how such a policy's positions are valued: by its ``"critic"``, or by a ``"playout"`` of what it likes
            best at every seat. By default the critic. Scripted players have but playouts.
        plies: so many moves, besides those that are forced, are played as such a policy likes best before its critic
            is asked.

    Raises:
        ValueError: an option out of range; an unknown aim, value or policy; ``aim="match"`` without a table, or an
            aim that is not the critic's; a policy that is neither scripted nor offers networks.
    """

    def __init__(
        self,
        rules: RuleSet,
        *,
        deals: int = 64,
        ms: float | None = None,
        aim: str | None = None,
        temperature: float | None = None,
        solve: int | None = None,
        policy: PlayerSpec = "counting",
        prior: float = PRIOR,
        value: str | None = None,
        plies: int = PLIES,
    ) -> None:
        super().__init__(rules)
        self.name = "search"
        self.deals = whole("deals", deals, 1)
        self.ms = None if ms is None else number("ms", ms, 0.0)
        self._advice: Advice | None = None
        guide = _guide_of(policy, rules)
        trained = isinstance(guide, PolicyNetworks)
        value = one_of("value", value or ("critic" if trained else "playout"), VALUES if trained else VALUES[1:])
        if isinstance(guide, PolicyNetworks):
            weights = ScriptedPlayer(rules).weights
            self._advice = new_advice(guide, value, prior=number("prior", prior, 0.0), plies=whole("plies", plies, 0))
            aim = aim_for(guide, aim, value)
        else:
            weights = guide.weights
        equity = _equity_of(rules, aim)
        aim = ("points" if equity is None else "match") if aim is None else one_of("aim", aim, AIMS)
        settings = np.zeros(1, _SETTINGS)
        settings["aim"] = AIMS.index(aim)
        by_default = TEMPERATURE if trained else _TEMPERATURE
        settings["temperature"] = by_default if temperature is None else number("temperature", temperature, 0.0)
        by_default = _SOLVE if rules.num_sides == 2 and rules.draw == "none" and not trained else 0
        settings["solve"] = by_default if solve is None else whole("solve", solve, 0)
        payoff = solver.win_payoff(rules) if aim == "round" else solver.points_payoff(rules)
        solving = solver.new_work(rules, _TABLE_BITS)
        solver.set_payoff(solving, payoff)
        self._room = _Room(
            new_work(rules),
            weights,
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
        out, rules, room, advice = np.zeros(len(views), np.int64), pack(self.rules), self._room, self._advice
        if self.ms is None:
            _search_many(views, rules, room, advice, rng.states, rng.index, self.deals, out)
            return out
        for v in range(len(views)):
            end, fresh = time.perf_counter() + self.ms / 1000, True
            while fresh or (time.perf_counter() < end and room.sums[0]["count"] > 1):
                out[v] = _search_one(views, v, rules, room, advice, rng.states, int(rng.index[v]), _CHUNK, fresh)
                fresh = False
        return out


def _guide_of(policy: PlayerSpec, rules: RuleSet) -> ScriptedPlayer | PolicyNetworks:
    """The scripted player that a policy is, or the networks that it offers."""
    from . import PLAYERS  # which knows this module by name alone

    if isinstance(policy, str) and policy.isidentifier() and policy not in PLAYERS.names:
        return ScriptedPlayer(rules, policy)  # which knows what it may have meant
    player = PLAYERS.make(policy, rules)
    if isinstance(player, ScriptedPlayer):
        return player
    if networks := networks_of(player):
        return networks
    known = ", ".join(SCRIPTED)
    raise ValueError(f"policy={policy!r} is neither scripted ({known}) nor a player with networks (champion, zoo/NAME)")


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
