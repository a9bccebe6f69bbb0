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
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .._checks import number, one_of, whole
from .._jit import jit
from ..belief import deal, new_work, prepare
from ..equity import Equity
from ..observation import Views, list_moves, new_views
from ..players import Player, PlayerSpec, Streams
from ..rules import RuleSet, pack
from ..state import new_state
from . import solver
from ._search_deals import add_deals, begin_walk, few_count, walk
from ._search_values import AIMS, MATCH, MEMORY, MEMORY_BITS, SETTINGS, SUMS, Room, set_payoff
from .networks import PolicyNetworks, networks_of
from .policy_search import (
    PLIES,
    PRIOR,
    PRIOR_DEALS,
    STARTS,
    TEMPERATURE,
    VALUES,
    Advice,
    aim_for,
    like_moves,
    new_advice,
)
from .scripted import SCRIPTED, ScriptedPlayer

#: Deals between two looks at the clock.
_CHUNK: Final = 8
_TABLE_BITS: Final = 14
#: Tiles left in all hands when the rest of a round is solved, by default.
_SOLVE: Final = 20
_TEMPERATURE: Final = 6.0


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
def _prepare(view: Any, rules: Any, room: Any, advice: Any, stream: Any) -> None:
    """Get ready to value a view's moves."""
    settings, row = room.settings[0], room.rows[0]
    if _begin(view, room.sums[0]) == 1:
        return
    prepare(view, rules[0], room.work[0])
    if advice is not None:
        like_moves(view, rules[0], room.sums[0]["prior"], advice)
    if settings["aim"] == MATCH and settings["solve"] > 0:  # other payoffs are the same in every round
        deal(room.work[0], view, rules[0], stream, row, room.rows[1])
        set_payoff(row, rules[0], int(view["seat"] % rules[0]["sides"]), settings["aim"], room.equity, room.payoff)
        solver.set_payoff(room.solving, room.payoff)


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
            first = min(left, max(0, STARTS - sums["drawn"]))
            add_deals(view, rules, room, advice, stream, first)
            left -= first
            if left > 0 and sums["drawn"] == STARTS and few_count(sums):
                begin_walk(view, rules, room, advice)
        if sums["walking"]:
            walk(view, rules, room, advice, stream, left)
        else:
            add_deals(view, rules, room, advice, stream, left)
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
        settings = np.zeros(1, SETTINGS)
        settings["aim"] = AIMS.index(aim)
        by_default = TEMPERATURE if trained else _TEMPERATURE
        settings["temperature"] = by_default if temperature is None else number("temperature", temperature, 0.0)
        by_default = _SOLVE if rules.num_sides == 2 and rules.draw == "none" and not trained else 0
        settings["solve"] = by_default if solve is None else whole("solve", solve, 0)
        payoff = solver.win_payoff(rules) if aim == "round" else solver.points_payoff(rules)
        solving = solver.new_work(rules, _TABLE_BITS)
        solver.set_payoff(solving, payoff)
        self._room = Room(
            new_work(rules),
            weights,
            settings,
            np.zeros((0, 0, 0, 0)) if equity is None else equity.table.copy(),
            new_state(rules, 2),
            new_views(rules, 1),
            np.zeros(1, SUMS),
            np.zeros(1 << MEMORY_BITS, MEMORY),
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
