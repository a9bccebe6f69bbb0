"""Duels and cross tables: deals played in parts, here or by worker processes, and counted."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .._checks import one_of, whole
from .._rng import check_seed
from ..batch import EPISODES
from ..game import check_rules
from ..players import Player
from ..rules import RuleSet, describe
from ..state import NONE
from .games import play_games
from .partners import Partners, SideSpec, make_side, seatings_of
from .results import Duel, Estimate, Forfeits, Samples
from .workers import Workers

_CHUNK: Final = 4096
_FIRST_CHUNK: Final = 64
_SECONDS_A_CHUNK: Final = 1.0
#: Streams of an arena's players: this and up, one for each seating.
_PURPOSE: Final = 16


class Stopped(KeyboardInterrupt):
    """Ctrl-C during a duel or a cross table. `duels` are those finished, then the first deals of the one in play."""

    def __init__(self, duels: Sequence[Duel]) -> None:
        super().__init__()
        self.duels = list(duels)


@dataclass(frozen=True)
class Plan:
    """What is played in every duel of a table."""

    rules: RuleSet
    episode: Literal["round", "match"]
    deals: int
    seed: int
    forfeit: bool
    threads: int | None = None

    @classmethod
    def of(cls, rules: RuleSet, episode: Literal["round", "match"], deals: int, seed: int, forfeit: bool) -> Plan:
        """Checked."""
        deals, rules = whole("deals", deals, 2), check_rules(rules)
        one_of("episode", episode, EPISODES)
        return cls(rules, episode, deals, check_seed(seed), forfeit)


#: A forfeit: deal, seating, whether it was the player's, reason.
_Lost: TypeAlias = tuple[int, int, bool, str]


@dataclass(frozen=True)
class Part:
    """Some deals of a duel, played."""

    start: int
    samples: Samples
    forfeits: list[_Lost]

    @property
    def count(self) -> int:
        """How many deals."""
        return len(self.samples.points)


def play_part(first: Player | Partners, second: Player | Partners, plan: Plan, start: int, count: int) -> Part:
    """Play deals `start` … `start` + `count` − 1 in every seating."""
    rules, samples, forfeits = plan.rules, Samples.room(count), list[_Lost]()
    ways = seatings_of(rules, first, second)
    for number, way in enumerate(ways):
        side = way.side
        played = play_games(
            rules,
            way.players,
            count,
            plan.seed,
            episode=plan.episode,
            first_table=start,
            purpose=_PURPOSE + number,
            forfeit=plan.forfeit,
            threads=plan.threads,
        )
        samples.points[:] += played.points[:, side]
        samples.rounds[:] += played.rounds
        samples.shares[:] += played.shares(side)
        samples.wins[:] += played.winner == side
        shared = played.winner == NONE
        for deal, (loser, reason) in sorted(played.forfeits.items()):
            shared[deal] &= loser != side
            forfeits.append((start + deal, number, loser == side, reason))
        samples.draws[:] += shared
    samples.shares[:] /= len(ways)
    return Part(start, samples, forfeits)


class _Here:
    """Plays parts in this process."""

    def __init__(self, players: Sequence[Player | Partners], plan: Plan) -> None:
        self.players, self.plan = players, plan

    def parts(self, one: int, other: int) -> Iterator[Part]:
        """All parts of a duel between two of the players, in order."""
        start, size = 0, _FIRST_CHUNK
        while start < self.plan.deals:
            count = min(size, _CHUNK, self.plan.deals - start)
            began = time.perf_counter()
            yield play_part(self.players[one], self.players[other], self.plan, start, count)
            start += count
            size = next_size(size, count, time.perf_counter() - began)

    def close(self) -> None:
        """Nothing to end."""


def next_size(size: int, count: int, seconds: float) -> int:
    """How many deals the next part should have: about a second's, as the last of `count` deals went; no leaps."""
    return max(1, min(4 * size, int(count * _SECONDS_A_CHUNK / max(seconds, 1e-9))))


def _table(specs: Sequence[SideSpec], made: Sequence[Player | Partners], plan: Plan, workers: int) -> _Here | Workers:
    return _Here(made, plan) if workers == 1 else Workers(specs, plan, workers)


def _play(
    table: _Here | Workers, made: Sequence[Player | Partners], plan: Plan, pair: tuple[int, int],
    progress: Callable[[int], None] | None,
) -> Duel:  # fmt: skip
    """Play a duel of a table; raises `Stopped` with what was played up to a Ctrl-C."""
    samples, forfeits = Samples.room(plan.deals), list[_Lost]()
    finished: dict[int, int] = {}  # parts by their first deal, with their length
    first, second = (made[index] for index in pair)
    try:
        for part in table.parts(*pair):
            samples.put(part.start, part.samples)
            forfeits += part.forfeits
            finished[part.start] = part.count
            if progress:
                progress(sum(finished.values()))
    except KeyboardInterrupt:
        deals = 0
        while deals in finished:
            deals += finished[deals]
        raise Stopped([_count(first, second, plan, samples, forfeits, deals)] if deals >= 2 else []) from None
    return _count(first, second, plan, samples, forfeits, plan.deals)


def _count(
    first: Player | Partners, second: Player | Partners, plan: Plan, samples: Samples, forfeits: list[_Lost], deals: int
) -> Duel:  # fmt: skip
    """The result of the first deals of a duel."""
    samples, rules = samples.first(deals), plan.rules
    ways = seatings_of(rules, first, second)
    wins, draws = int(samples.wins.sum()), int(samples.draws.sum())
    reasons = [
        (own, f"deal {deal}, seating {number}", reason)
        for deal, number, own, reason in sorted(forfeits)
        if deal < deals
    ]
    return Duel(
        player=first.name,
        opponent=second.name,
        rules=describe(rules),
        episode=plan.episode,
        deals=deals,
        seatings=len(ways),
        seed=plan.seed,
        points=Estimate.ratio(samples.points, samples.rounds),
        win_share=Estimate.of(samples.shares),
        fair_share=1 / rules.num_sides,
        wins=wins,
        draws=draws,
        losses=deals * len(ways) - wins - draws,
        rounds=int(samples.rounds.sum()),
        seats=tuple(way.seats for way in ways),
        forfeits=Forfeits.of((where, reason) for own, where, reason in reasons if own),
        opponent_forfeits=Forfeits.of((where, reason) for own, where, reason in reasons if not own),
        samples=samples,
    )


def duel(
    player: SideSpec,
    opponent: SideSpec,
    rules: RuleSet,
    *,
    deals: int,
    seed: int = 0,
    episode: Literal["round", "match"] = "round",
    forfeit: bool = False,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Duel:
    """Play two players against each other on duplicate deals.

    With two sides each deal is played twice, the players changing sides. With more, `player` sits at
    one seat and `opponent` at all others, at each seat in turn. In matches all rounds are duplicates as
    far as the rules let them be: round k of a deal's matches is dealt the same tiles in every seating,
    unless the rules draw lots in between.

    Args:
        player: a name, a spec string, a callable that takes the rules, or a `Player`; or a tuple of two, who play
            as partners, each deal also with their seats exchanged.
        opponent: likewise.
        rules: what is played.
        deals: how many different deals, at least 2.
        seed: what the deals and the players' random numbers follow from.
        episode: ``"round"`` (first rounds) or ``"match"``.
        forfeit: a player that raises an error or chooses an illegal action loses that game, and the
            duel goes on. Without, the error is raised; only players behind an address forfeit.
        workers: so many processes play; each makes the players anew. The result is the same for any number.
        progress: called with the number of deals played after each part.

    Raises:
        ValueError: too few deals, an unknown player, or one that chose what may not be played.
        Stopped: Ctrl-C; it holds the result of the deals played so far.
    """
    (result,) = cross_table(
        (player, opponent), rules, deals=deals, seed=seed, episode=episode, forfeit=forfeit, workers=workers,
        progress=None if progress is None else lambda one, other, played: progress(played),
    )  # fmt: skip
    return result


def cross_table(
    players: Sequence[SideSpec],
    rules: RuleSet,
    *,
    deals: int,
    seed: int = 0,
    episode: Literal["round", "match"] = "round",
    forfeit: bool = False,
    workers: int = 1,
    told: Callable[[Duel], object] | None = None,
    progress: Callable[[str, str, int], None] | None = None,
) -> list[Duel]:
    """`duel` between every two of `players`, each pair once, in their order, all on the same deals.

    Args:
        players: at least two, of different names.
        rules: what is played.
        deals: for each pair; as are `seed`, `episode`, `forfeit` and `workers`, see `duel`.
        seed: see `duel`.
        episode: see `duel`.
        forfeit: see `duel`.
        workers: see `duel`.
        told: gets each result at once.
        progress: called with the names of a pair and its number of deals played.

    Raises:
        ValueError: as `duel`; two players of one name among three or more.
        Stopped: Ctrl-C; it holds the results so far.
    """
    plan = Plan.of(rules, episode, deals, seed, forfeit)
    workers = whole("workers", workers, 1)
    made = [make_side(player, plan.rules) for player in players]
    names = [player.name for player in made]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1 and len(names) > 2]:
        raise ValueError(f"two of the players have the name {twice[0]!r}; results could not be told apart")
    results: list[Duel] = []
    with closing(_table(players, made, plan, workers)) as table:
        for one, other in itertools.combinations(range(len(made)), 2):
            try:
                part = None if progress is None else _named(progress, names[one], names[other])
                results.append(_play(table, made, plan, (one, other), part))
                if told:
                    told(results[-1])
            except Stopped as stopped:
                raise Stopped([*results, *stopped.duels]) from None
            except KeyboardInterrupt:
                raise Stopped(results) from None
    return results


def _named(progress: Callable[[str, str, int], None], one: str, other: str) -> Callable[[int], None]:
    return lambda played: progress(one, other, played)
