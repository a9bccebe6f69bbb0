"""Two players compared through a common opponent, deal by deal."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .results import Duel, Estimate, games_of


@dataclass(frozen=True)
class Comparison:
    """How much more `player` scores than `other` against the same `opponent` on the same deals."""

    player: str
    other: str
    opponent: str
    rules: str
    episode: str
    deals: int
    seed: int
    #: Differences: points a round, and share of games won.
    points: Estimate
    win_share: Estimate
    #: How many times as many deals two duels on deals of their own would need, for points and for shares.
    points_factor: float
    win_share_factor: float

    @property
    def verdict(self) -> str:
        """``"better"`` or ``"worse"`` if the interval of points is clear of 0, else ``"not separated"``."""
        return self.points.verdict

    def __str__(self) -> str:
        games = games_of(self.episode)
        return (
            f"{self.player} rather than {self.other} against {self.opponent}: {self.verdict}\n"
            f"  points a round {self.points:+.3f}   {games} won {self.win_share:+.1%}\n"
            f"  {self.deals} deals in common (worth {self.points_factor:.2f} times as many apart), "
            f"{self.rules}, seed {self.seed}"
        )


def compare(one: Duel, other: Duel) -> Comparison:
    """The difference between the players of two duels with the same opponent on the same deals.

    What a deal does to both cancels, so that the interval is narrower than two separate ones would
    make it.

    Raises:
        ValueError: the duels differ in opponent, rules, episode, deals or seed, or were read from a file
            and have no samples.
    """
    for name in ("opponent", "rules", "episode", "deals", "seed"):
        left, right = getattr(one, name), getattr(other, name)
        if left != right:
            raise ValueError(f"the duels have {name} {left!r} and {right!r}; only duels on the same deals compare")
    if one.samples is None or other.samples is None:
        raise ValueError("a duel has no samples deal by deal: it was not played in this process")
    points, points_factor = _difference(_points(one), _points(other))
    share, share_factor = _difference(one.samples.shares, other.samples.shares)
    return Comparison(
        player=one.player,
        other=other.player,
        opponent=one.opponent,
        rules=one.rules,
        episode=one.episode,
        deals=one.deals,
        seed=one.seed,
        points=points,
        win_share=share,
        points_factor=points_factor,
        win_share_factor=share_factor,
    )


def _points(duel: Duel) -> npt.NDArray[np.float64]:
    """A duel's points a round, linearised deal by deal: their mean is the ratio, their spread is its own."""
    samples = duel.samples
    assert samples is not None
    mean = duel.points.mean
    return mean + (samples.points - mean * samples.rounds) / float(samples.rounds.mean())


def _difference(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> tuple[Estimate, float]:
    apart, paired = one.var() + other.var(), (one - other).var()
    factor = apart / paired if paired else (math.inf if apart else 1.0)
    return Estimate.of(one - other), float(factor)
