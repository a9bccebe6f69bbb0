"""Playing players against each other so that skill shows and luck cancels.

Every deal is played once in every seating of the two players over the sides, so a good hand serves
both. The unit of all statistics is the deal: what one deal's games have in common counts once.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ._checks import one_of, whole
from ._rng import check_seed
from .batch import EPISODES, Batch, IllegalAction, check_actions
from .bots import make_player
from .bots.rollout import play_out
from .game import check_rules
from .observation import Views
from .players import Player, PlayerSpec, Streams
from .rules import RuleSet, preset_of
from .state import NONE

_Z95 = 1.959963984540054
_CHUNK = 4096


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: npt.NDArray[np.float64]) -> Estimate:
        """From independent samples, by the normal approximation; at least 2."""
        mean = float(samples.mean())
        half = _Z95 * float(samples.std(ddof=1)) / math.sqrt(len(samples))
        return cls(mean, mean - half, mean + half)

    @classmethod
    def ratio(cls, totals: npt.NDArray[np.float64], counts: npt.NDArray[np.float64]) -> Estimate:
        """Of sum(totals)/sum(counts) over independent pairs (linearised: Cochran 1977, chapter 6)."""
        mean = float(totals.sum() / counts.sum())
        spread = float((totals - mean * counts).std(ddof=1)) / float(counts.mean())
        half = _Z95 * spread / math.sqrt(len(totals))
        return cls(mean, mean - half, mean + half)

    def __format__(self, spec: str) -> str:
        mean, low, high = (format(value, spec) for value in (self.mean, self.low, self.high))
        return f"{mean} [{low}, {high}]"


@dataclass(frozen=True)
class Duel:
    """What `duel` measured, seen from `player`."""

    player: str
    opponent: str
    rules: str
    episode: str  # "round" or "match": what one game is
    deals: int
    seatings: int  # games of each deal
    seed: int
    #: What `player`'s side gains a round; 0 between equals.
    points: Estimate
    #: Games won, a drawn one shared equally among the sides, of all; `fair_share` between equals.
    win_share: Estimate
    fair_share: float
    wins: int
    draws: int
    losses: int

    @property
    def verdict(self) -> str:
        """``"better"`` or ``"worse"`` if the interval of points is clear of 0, else ``"not separated"``."""
        if self.points.low > 0:
            return "better"
        return "worse" if self.points.high < 0 else "not separated"

    @property
    def games(self) -> int:
        """How many games were played: every deal in every seating."""
        return self.deals * self.seatings

    def __str__(self) -> str:
        games = "matches" if self.episode == "match" else "rounds"
        return (
            f"{self.player} against {self.opponent}: {self.verdict}\n"
            f"  points a round {self.points:+.3f}   {games} won {self.win_share:.1%}\n"
            f"  {self.games} {games} ({self.wins} won, {self.draws} drawn, {self.losses} lost): "
            f"{self.deals} deals x {self.seatings} seatings, {self.rules}, seed {self.seed}"
        )


def seatings(rules: RuleSet) -> list[list[bool]]:
    """The first player's seats in each seating: those of each side once; the second player has all others."""
    return [[rules.side_of(seat) == side for seat in range(rules.players)] for side in range(rules.num_sides)]


def duel(
    player: PlayerSpec,
    opponent: PlayerSpec,
    rules: RuleSet,
    *,
    deals: int,
    seed: int = 0,
    episode: Literal["round", "match"] = "round",
    progress: Callable[[int], None] | None = None,
) -> Duel:
    """Play two players against each other on duplicate deals.

    With two sides each deal is played twice, the players changing sides. With more, `player` sits at
    one seat and `opponent` at all others, at each seat in turn. In matches the first rounds are
    duplicates; later ones follow from the same streams.

    Args:
        deals: how many different deals, at least 2.
        seed: what the deals and the players' random numbers follow from.
        episode: ``"round"`` (first rounds) or ``"match"``.
        progress: called with the number of deals played after each part.

    Raises:
        ValueError: too few deals, an unknown player, or one that chose what may not be played.
    """
    deals, rules = whole("deals", deals, 2), check_rules(rules)
    one_of("episode", episode, EPISODES)
    seed = check_seed(seed)
    first, second = make_player(player, rules), make_player(opponent, rules)
    plan = seatings(rules)
    points, shares, rounds = np.zeros(deals), np.zeros(deals), np.zeros(deals)
    wins = draws = 0
    for start in range(0, deals, _CHUNK):
        count = min(_CHUNK, deals - start)
        part = slice(start, start + count)
        for number, mine in enumerate(plan):
            seats = [first if own else second for own in mine]
            played = play_games(rules, seats, count, seed, episode=episode, first_table=start, purpose=16 + number)
            side = next(rules.side_of(seat) for seat, own in enumerate(mine) if own)
            points[part] += played.points[:, side]
            rounds[part] += played.rounds
            won, drawn = played.winner == side, played.winner == NONE
            shares[part] += won + drawn / rules.num_sides
            wins, draws = wins + int(won.sum()), draws + int(drawn.sum())
        if progress:
            progress(start + count)
    games = deals * len(plan)
    return Duel(
        player=first.name,
        opponent=second.name,
        rules=describe(rules),
        episode=episode,
        deals=deals,
        seatings=len(plan),
        seed=seed,
        points=Estimate.ratio(points, rounds),
        win_share=Estimate.of(shares / len(plan)),
        fair_share=1 / rules.num_sides,
        wins=wins,
        draws=draws,
        losses=games - wins - draws,
    )


@dataclass(frozen=True)
class Played:
    """The outcome of n games of one seating."""

    points: npt.NDArray[np.float64]  # (n, sides), summed over the rounds of a match
    rounds: npt.NDArray[np.int64]  # (n,)
    winner: npt.NDArray[np.int64]  # (n,), the side that won the game; NONE where it was drawn


def play_games(
    rules: RuleSet,
    seats: Sequence[Player],
    n: int,
    seed: int,
    *,
    episode: Literal["round", "match"] = "round",
    first_table: int = 0,
    purpose: int = 16,
) -> Played:
    """Play n games to their end with ``seats[i]`` at seat i. Deal t follows from (seed, first_table + t)."""
    batch = Batch(rules, n, seed, episode=episode, autoreset=False, observe=False, first_table=first_table)
    streams = Streams.from_seed(seed, n, purpose=purpose, first=first_table)
    points = play_out(batch, seats, streams)
    if points is None:
        points = _asked(batch, seats, streams)
    whole = episode == "match" or rules.target is None
    winner = batch.state["winner" if whole else "winning_side"].astype(np.int64)
    return Played(points, batch.state["round"].astype(np.int64), winner)


def _asked(batch: Batch, seats: Sequence[Player], streams: Streams) -> npt.NDArray[np.float64]:
    """Play a batch's episodes to their end, asking the players decision by decision; each side's points."""
    points = np.zeros((batch.num_tables, batch.rules.num_sides))
    actions = np.zeros(batch.num_tables, np.int64)
    while True:
        playing = ~batch.done
        if not playing.any():
            return points
        for player in dict.fromkeys(seats):
            own = [seat for seat, other in enumerate(seats) if other is player]
            rows = np.flatnonzero(playing & np.isin(batch.seat, own))
            if len(rows):
                actions[rows] = _choices(player, batch.views(rows), streams.rows(rows))
        try:
            batch.step(actions, tables=playing)
        except IllegalAction as error:
            name = seats[batch.seat[error.table]].name
            raise IllegalAction(f"player {name!r}: {error}", error.table, error.action) from None
        points[playing] += batch.rewards[playing]


def _choices(player: Player, views: Views, streams: Streams) -> npt.NDArray[np.int64]:
    try:
        return check_actions(player.act(views, streams), len(views))
    except ValueError as error:
        raise ValueError(f"player {player.name!r}: {error}") from error


def describe(rules: RuleSet) -> str:
    """A rule set in words: its nearest preset and what differs, ``"duplas(target=10)"``."""
    preset, changes = preset_of(rules)
    inner = ", ".join(f"{name}={value!r}" for name, value in changes.items())
    return f"{preset}({inner})" if inner else preset


def cross_table(
    players: Sequence[PlayerSpec], rules: RuleSet, *, told: Callable[[Duel], object] | None = None, **options: Any
) -> list[Duel]:
    """`duel` between every two of `players`, each pair once, in their order; `told` gets each result at once."""
    made = [make_player(player, rules) for player in players]
    results = []
    for one, other in itertools.combinations(made, 2):
        results.append(duel(one, other, rules, **options))
        if told:
            told(results[-1])
    return results


def share_table(duels: Sequence[Duel]) -> str:
    """The shares of games won of a cross table, a line a player, with half the width of the 95 % interval."""
    names = list(dict.fromkeys(name for result in duels for name in (result.player, result.opponent)))
    cells = {(name, name): "" for name in names}
    for result in duels:
        share, half = result.win_share.mean, (result.win_share.high - result.win_share.low) / 2
        cells[result.player, result.opponent] = f"{share:.1%} ±{half:.1%}"
        # With two sides a game that one does not win the other does; with more, each pair is told one way.
        cells[result.opponent, result.player] = f"{1 - share:.1%} ±{half:.1%}" if result.seatings == 2 else "-"
    width = max(len(text) for text in [*names, *cells.values()])
    head = [" " * width, *names]
    lines = [[name, *(cells.get((name, other), "-") for other in names)] for name in names]
    return "\n".join("  ".join(f"{text:>{width}}" for text in line).rstrip() for line in [head, *lines])


def _record(duel: Duel) -> dict[str, Any]:
    return {**dataclasses.asdict(duel), "games": duel.games, "verdict": duel.verdict}


def to_json(duels: Sequence[Duel]) -> str:
    """Results as JSON, one object a duel, the verdict included."""
    return json.dumps([_record(result) for result in duels], indent=2)


def to_csv(duels: Sequence[Duel]) -> str:
    """Results as CSV, one line a duel; intervals in columns of their own."""
    rows = []
    for result in duels:
        row: dict[str, Any] = {}
        for name, value in _record(result).items():
            if isinstance(value, dict):
                row |= {name if key == "mean" else f"{name}_{key}": number for key, number in value.items()}
            else:
                row[name] = value
        rows.append(row)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else ["player", "opponent"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
