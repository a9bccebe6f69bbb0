"""Ratings of several players from their duels: one number a player, with intervals.

The model is Bradley and Terry's (1952): of the games between two players the first wins the share
``1 / (1 + 10^((other − own) / 400))``, on the scale of Elo. All ratings are fitted at once by maximum
likelihood, so they do not depend on the order of the results. Where each game has more than two
sides, a player sits alone against n − 1 of the other, and the model is Luce's (1959) for who comes first.

Every pair counts one more deal, shared as between equals, so that the fit exists also where one player
has won every game; among thousands of deals it weighs nothing. Intervals are not those of independent
games: they follow from how the shares vary from deal to deal (Huber's sandwich), and from their
covariance between duels that were played on the same deals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from .arena.results import Duel, Estimate
from .arena.tables import names_of

#: Elo a unit of log odds.
ELO: Final = 400 / math.log(10)
_EXTRA_DEALS: Final = 1.0
_STEPS: Final = 200

_Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ratings:
    """Ratings in Elo, the best first. `anchor` is the player that has 0; None where the mean of all is 0."""

    players: tuple[str, ...]
    elo: tuple[Estimate, ...]
    anchor: str | None
    #: Of the players' ratings about their mean, in their order, (n, n).
    covariance: _Array = field(repr=False, compare=False)

    def __getitem__(self, player: str) -> Estimate:
        """The rating of a player by name."""
        return self.elo[self._index(player)]

    def difference(self, player: str, other: str) -> Estimate:
        """How much higher `player` is rated than `other`; narrower than their two intervals suggest."""
        one, two = self._index(player), self._index(other)
        spread = self.covariance[one, one] + self.covariance[two, two] - 2 * self.covariance[one, two]
        return Estimate.around(self.elo[one].mean - self.elo[two].mean, math.sqrt(max(0.0, spread)))

    def _index(self, player: str) -> int:
        if player not in self.players:
            raise ValueError(f"no rating for {player!r}; rated: {', '.join(self.players)}")
        return self.players.index(player)

    def __str__(self) -> str:
        zero = "mean" if self.anchor is None else self.anchor
        width = max(map(len, self.players))
        lines = [
            f"  {name:<{width}}  {f'{one.mean:+.0f}':>6}  [{one.low:+.0f}, {one.high:+.0f}]"
            for name, one in zip(self.players, self.elo, strict=True)
        ]
        return "\n".join([f"ratings (Elo, {zero} = 0, with 95 % intervals)", *lines])


def ratings(duels: Sequence[Duel], *, anchor: str | None = None) -> Ratings:
    """Fit ratings to duels.

    Args:
        duels: of at least two players, all under the same rules and episode.
        anchor: the player whose rating is 0; None sets the mean of all to 0.

    Raises:
        ValueError: duels of different games; players that no chain of duels connects; an unknown anchor.
    """
    for name in ("rules", "episode", "fair_share"):
        if len(kinds := sorted({str(getattr(duel, name)) for duel in duels})) > 1:
            raise ValueError(f"the duels have different {name}: {', '.join(kinds)}; ratings are of one game")
    names = sorted(names_of(duels))
    if len(names) < 2:
        raise ValueError(f"{len(names)} players; ratings need duels of at least two")
    if anchor is not None and anchor not in names:
        raise ValueError(f"anchor={anchor!r} is not one of {', '.join(names)}")
    games = sorted((_Games.of(duel, names) for duel in duels if duel.player != duel.opponent), key=_Games.order)
    _check_connected(names, games)
    theta, covariance = _fit(len(names), games)
    weights = np.full(len(names), 1 / len(names))
    if anchor is not None:
        weights = np.eye(len(names))[names.index(anchor)]
    contrast = np.eye(len(names)) - weights
    values = contrast @ theta * ELO
    errors = np.sqrt(np.maximum(0.0, np.diag(contrast @ covariance @ contrast.T))) * ELO
    best = sorted(range(len(names)), key=lambda i: (-values[i], names[i]))
    return Ratings(
        tuple(names[i] for i in best),
        tuple(Estimate.around(float(values[i]), float(errors[i])) for i in best),
        anchor,
        covariance[np.ix_(best, best)] * ELO**2,
    )


@dataclass(frozen=True)
class _Games:
    """A duel as the fit reads it: with two sides always seen from the player whose name comes first."""

    one: int
    other: int
    share: float
    error: float  # of the share
    fair: float
    deals: int
    seed: int
    shares: _Array | None

    @classmethod
    def of(cls, duel: Duel, names: Sequence[str]) -> _Games:
        one, other, share = names.index(duel.player), names.index(duel.opponent), duel.win_share.mean
        shares = None if duel.samples is None else duel.samples.shares
        if one > other and duel.fair_share == 0.5:
            one, other, share = other, one, 1 - share
            shares = None if shares is None else 1 - shares
        return cls(one, other, share, duel.win_share.error, duel.fair_share, duel.deals, duel.seed, shares)

    def order(self) -> tuple[float, ...]:
        """Sorts duels, so that sums do not depend on the order they were given in."""
        first = (self.one, self.other, self.seed, self.deals, self.share, self.error)
        return first if self.shares is None else (*first, *self.shares)

    def direction(self, n: int) -> _Array:
        found = np.zeros(n)
        found[self.one], found[self.other] = 1.0, -1.0
        return found


def _check_connected(names: Sequence[str], games: Iterable[_Games]) -> None:
    group = list(range(len(names)))
    for duel in games:
        kept, gone = group[duel.one], group[duel.other]
        group = [kept if own == gone else own for own in group]
    groups = [[name for name, own in zip(names, group, strict=True) if own == kept] for kept in sorted(set(group))]
    if len(groups) > 1:
        texts = "; ".join(", ".join(members) for members in groups)
        raise ValueError(f"no duels connect these groups of players, so they cannot be rated together: {texts}")


def _fit(n: int, games: Sequence[_Games]) -> tuple[_Array, _Array]:
    """Log strengths with mean 0, (n,), and their covariance, (n, n)."""
    pairs = sorted({(duel.one, duel.other) for duel in games})
    fair = games[0].fair
    offset = math.log(1 / fair - 1)  # n − 1 opponents of one's own strength
    extra = [_Games(one, other, fair, 0.0, fair, 1, 0, None) for one, other in pairs]
    every = [*games, *extra]
    directions = np.stack([duel.direction(n) for duel in every])
    weight = np.array([float(duel.deals) for duel in games] + [_EXTRA_DEALS] * len(extra))
    share = np.array([duel.share for duel in every])

    def value(theta: _Array) -> float:
        odds = directions @ theta - offset
        return float(weight @ (share * odds - np.logaddexp(0, odds)))

    theta = np.zeros(n)
    for _ in range(_STEPS):  # Newton's method; the extra deals make the likelihood strictly concave
        chance = 1 / (1 + np.exp(offset - directions @ theta))
        slope = directions.T @ (weight * (share - chance))
        curvature = (directions.T * (weight * chance * (1 - chance))) @ directions
        inverse = np.linalg.inv(curvature + 1 / n) - 1 / n  # on vectors of mean 0
        step = inverse @ slope
        length = 1.0
        while value(theta + length * step) < value(theta) and length > 1e-9:
            length /= 2
        theta = theta + length * step
        if np.abs(step).max() < 1e-12:
            break
    theta -= theta.mean()
    return theta, inverse @ _spread(n, games, pairs, fair) @ inverse


def _spread(n: int, games: Sequence[_Games], pairs: Sequence[tuple[int, int]], fair: float) -> _Array:
    """The covariance of the likelihood's slope, (n, n)."""
    total = np.zeros((n, n))
    for seed in sorted({duel.seed for duel in games if duel.shares is not None}):
        same = [duel for duel in games if duel.seed == seed and duel.shares is not None]
        scores = np.zeros((max(duel.deals for duel in same), n))  # what each deal adds, in all duels that played it
        for duel in same:
            assert duel.shares is not None
            own = (duel.shares - duel.shares.mean()) * math.sqrt(duel.deals / (duel.deals - 1))
            scores[: duel.deals] += own[:, None] * duel.direction(n)
        total += scores.T @ scores
    for duel in games:
        if duel.shares is None:
            direction = duel.direction(n)
            total += (duel.deals * duel.error) ** 2 * np.outer(direction, direction)
    for one, other in pairs:  # the extra deals vary as games between equals do: no shut-out has a width of 0
        direction = np.zeros(n)
        direction[one], direction[other] = 1.0, -1.0
        total += _EXTRA_DEALS**2 * fair * (1 - fair) * np.outer(direction, direction)
    return total
