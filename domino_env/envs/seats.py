"""Who holds the seats beside a learner's: one player each, or one drawn from several anew each episode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..bots import make_player
from ..bots.scripted import weights_of
from ..players import Player, PlayerSpec, Streams
from ..rules import RuleSet

#: How compiled play treats a player: by its weights, by drawing among all moves, or not at all: it is asked.
BY_WEIGHTS: Final = 0
BLIND: Final = 1
ASKED: Final = 2


class OneOf:
    """Players of whom one, drawn anew each episode, holds all the seats that this is given for.

    Args:
        players: names, spec strings, callables or `Player` objects; one given twice is drawn twice as often.
    """

    def __init__(self, players: Sequence[PlayerSpec]) -> None:
        if isinstance(players, str) or not players:
            raise ValueError(f"OneOf({players!r}): give a list of at least one player")
        self.players = tuple(players)

    def __repr__(self) -> str:
        return f"OneOf({list(self.players)!r})"


Holder: TypeAlias = PlayerSpec | OneOf


def seat_players(
    rules: RuleSet, opponents: Holder | Sequence[Holder], partner: Holder | None
) -> list[tuple[Player, ...]]:
    """The players that may hold each seat after the learner's, in turn order; one tuple for seats of the same holder.

    Raises:
        ValueError: an unknown player, a partner where there are no pairs, a wrong number of opponents.
    """
    others = range(1, rules.players)
    opposing = [seat for seat in others if rules.side_of(seat) != 0]
    if isinstance(opponents, Sequence) and not isinstance(opponents, str):
        specs = list(opponents)
    else:
        specs = [opponents] * len(opposing)
    if len(specs) != len(opposing):
        raise ValueError(f"opponents: {len(specs)} given; a learner here has {len(opposing)}, or give one for all")
    if partner is not None and not rules.pairs:
        raise ValueError(f"partner={partner!r}: these rules have no pairs, so a learner has no partner")
    by_seat = dict(zip(opposing, specs, strict=True))
    made: dict[Any, Player] = {}  # one player for all seats with the same name
    held: dict[Any, tuple[Player, ...]] = {}

    def player_of(spec: PlayerSpec) -> Player:
        key = _key(spec)
        if key not in made:
            made[key] = make_player(spec, rules)
        return made[key]

    players = []
    for seat in others:
        spec = by_seat[seat] if seat in by_seat else (partner if partner is not None else specs[0])
        key = _key(spec)
        if key not in held:
            held[key] = tuple(map(player_of, spec.players if isinstance(spec, OneOf) else (spec,)))
        players.append(held[key])
    return players


def _key(spec: Holder) -> str | int:
    """Equal for specs that mean the same players: strings by what they say, objects by which they are."""
    return spec if isinstance(spec, str) else id(spec)


def _kind_of(weights: npt.NDArray[np.void] | None) -> int:
    """How compiled play treats a player with these weights; None stands for one that has none."""
    if weights is None:
        return ASKED
    return BLIND if weights["draws"][0] and not weights["values"].any() else BY_WEIGHTS


class Lineups:
    """Which player holds each seat at n tables.

    Attributes:
        players: every player there is.
        of: int64 (n, seats), its number, by the seat as counted from the learner's; column 0 means nothing.
        weights, kinds: how compiled play chooses for each player; weights of zeros for one that is asked.
    """

    def __init__(self, rules: RuleSet, n: int, opponents: Holder | Sequence[Holder], partner: Holder | None) -> None:
        seats = seat_players(rules, opponents, partner)
        self.players = list(dict.fromkeys(player for choice in seats for player in choice))
        numbers = {player: i for i, player in enumerate(self.players)}
        self.of = np.zeros((n, rules.players), np.int64)
        self._drawn: list[
            tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
        ] = []  # seats, and the players to draw from
        for choice in {id(choice): choice for choice in seats}.values():
            held = np.array([1 + i for i, other in enumerate(seats) if other is choice])
            choices = np.array([numbers[player] for player in choice])
            self.of[:, held] = choices[0]
            if len(choices) > 1:
                self._drawn.append((held, choices))
        found = [weights_of(player) for player in self.players]
        blank = np.zeros_like(weights_of(make_player("random", rules)))
        self.weights = np.concatenate([blank if weights is None else weights for weights in found])
        self.kinds = np.array([_kind_of(weights) for weights in found])

    def draw(self, rows: npt.NDArray[np.int64], rng: Streams) -> None:
        """Draw who plays at these tables, where there is a choice."""
        for seats, choices in self._drawn:
            drawn = choices[rng.rows(rows).below(len(choices))]
            self.of[np.ix_(rows, seats)] = drawn[:, None]

    @property
    def any_asked(self) -> bool:
        """Whether some player does not play within compiled code."""
        return bool((self.kinds == ASKED).any())
