"""What the arena measures: estimates with their intervals, and the result of a duel."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

#: Half the width of a 95 % interval, in standard errors.
Z95: Final = 1.959963984540054
#: Of so many forfeits the reasons are kept.
REASONS: Final = 3


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: npt.NDArray[np.float64]) -> Estimate:
        """From independent samples, by the normal approximation; at least 2."""
        return cls.around(float(samples.mean()), float(samples.std(ddof=1)) / math.sqrt(len(samples)))

    @classmethod
    def ratio(cls, totals: npt.NDArray[np.float64], counts: npt.NDArray[np.float64]) -> Estimate:
        """Of sum(totals)/sum(counts) over independent pairs (linearised: Cochran 1977, chapter 6)."""
        mean = float(totals.sum() / counts.sum())
        spread = float((totals - mean * counts).std(ddof=1)) / float(counts.mean())
        return cls.around(mean, spread / math.sqrt(len(totals)))

    @classmethod
    def around(cls, mean: float, error: float) -> Estimate:
        """From a mean and its standard error."""
        return cls(mean, mean - Z95 * error, mean + Z95 * error)

    @property
    def error(self) -> float:
        """The standard error."""
        return (self.high - self.low) / (2 * Z95)

    @property
    def verdict(self) -> str:
        """``"better"`` or ``"worse"`` if the interval is clear of 0, else ``"not separated"``."""
        if self.low > 0:
            return "better"
        return "worse" if self.high < 0 else "not separated"

    def __format__(self, spec: str) -> str:
        mean, low, high = (format(value, spec) for value in (self.mean, self.low, self.high))
        return f"{mean} [{low}, {high}]"


@dataclass(frozen=True)
class Forfeits:
    """How many games a player forfeited, and why it did the first of them."""

    count: int = 0
    reasons: tuple[str, ...] = ()  # different ones, at most `REASONS`

    @classmethod
    def of(cls, forfeits: Iterable[tuple[str, str]]) -> Forfeits:
        """From all forfeits in order: where each happened, and the reason."""
        every = list(forfeits)
        first: dict[str, str] = {}
        for where, reason in every:
            first.setdefault(reason, where)
        return cls(len(every), tuple(f"{where}: {reason}" for reason, where in first.items())[:REASONS])


@dataclass(frozen=True)
class Samples:
    """A duel deal by deal, seen from its player, the seatings of a deal added up; each (deals,)."""

    points: npt.NDArray[np.float64]
    rounds: npt.NDArray[np.float64]
    shares: npt.NDArray[np.float64]  # of the deal's games won
    wins: npt.NDArray[np.float64]
    draws: npt.NDArray[np.float64]

    @classmethod
    def room(cls, deals: int) -> Samples:
        """All zeros."""
        return cls(*(np.zeros(deals) for _ in range(5)))

    def first(self, deals: int) -> Samples:
        """Of the first deals alone."""
        return Samples(*(values[:deals] for values in vars(self).values()))

    def put(self, start: int, part: Samples) -> None:
        """Write `part` from deal `start` on."""
        for own, new in zip(vars(self).values(), vars(part).values(), strict=True):
            own[start : start + len(new)] = new


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
    #: Rounds played in all.
    rounds: int = 0
    #: The seats that `player` takes, a tuple for each seating.
    seats: tuple[tuple[int, ...], ...] = ()
    #: Games lost by forfeit, by the player and by the opponent.
    forfeits: Forfeits = Forfeits()
    opponent_forfeits: Forfeits = Forfeits()
    #: The same deal by deal, where it was played here and not read from a file.
    samples: Samples | None = field(default=None, repr=False, compare=False)

    @property
    def verdict(self) -> str:
        """``"better"`` or ``"worse"`` if the interval of points is clear of 0, else ``"not separated"``."""
        return self.points.verdict

    @property
    def games(self) -> int:
        """How many games were played: every deal in every seating."""
        return self.deals * self.seatings

    def __str__(self) -> str:
        games = games_of(self.episode)
        seats = ", then ".join("+".join(map(str, taken)) for taken in self.seats)
        lines = [
            f"{self.player} against {self.opponent}: {self.verdict}",
            f"  points a round {self.points:+.3f}   {games} won {self.win_share:.1%}",
            f"  {self.games} {games} ({self.wins} won, {self.draws} drawn, {self.losses} lost): "
            f"{self.deals} deals x {self.seatings} seatings{f' (seats {seats})' if seats else ''}, "
            f"{self.rules}, seed {self.seed}",
        ]
        for name, own in ((self.player, self.forfeits), (self.opponent, self.opponent_forfeits)):
            if own.count:
                lines.append(f"  {name} forfeited {own.count} of {self.games}:")
                lines += [f"    {reason}" for reason in own.reasons]
        return "\n".join(lines)


def games_of(episode: str) -> str:
    """What an arena's games are called: "matches" or "rounds"."""
    return "matches" if episode == "match" else "rounds"
