"""Partners of different kinds: who sits where, when a side is more than one player."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TypeAlias

from ..bots import make_player
from ..players import Player, PlayerSpec
from ..rules import RuleSet

#: A player for all seats of a side, or a tuple of them, one for each of its seats.
SideSpec: TypeAlias = PlayerSpec | tuple[PlayerSpec, ...]


@dataclass(frozen=True)
class Partners:
    """Players that hold a side's seats between them, in each order."""

    players: tuple[Player, ...]

    @property
    def name(self) -> str:
        """What tables of results call them."""
        return " + ".join(player.name for player in self.players)


def make_side(spec: SideSpec, rules: RuleSet) -> Player | Partners:
    """The player, or the partners, that a spec stands for.

    Raises:
        ValueError: as `make_player`; a tuple of another length than a side has seats.
    """
    if not isinstance(spec, tuple):
        return make_player(spec, rules)
    seats = rules.players // rules.num_sides
    if len(spec) != seats or seats == 1:
        raise ValueError(f"{spec!r}: {len(spec)} players for a side; seats of a side under these rules: {seats}")
    return Partners(tuple(make_player(player, rules) for player in spec))


def seatings(rules: RuleSet) -> list[list[bool]]:
    """The first player's seats in each seating: those of each side once; the second player has all others."""
    return [[rules.side_of(seat) == side for seat in range(rules.players)] for side in range(rules.num_sides)]


@dataclass(frozen=True)
class Seating:
    """Who sits where."""

    players: tuple[Player, ...]  # by seat
    side: int  # that of the first of two
    seats: tuple[int, ...]  # its seats, in the order of its players


def seatings_of(rules: RuleSet, first: Player | Partners, second: Player | Partners) -> list[Seating]:
    """All seatings of one side against another: at each side once, and partners in each order."""
    found = []
    for side, mine in enumerate(seatings(rules)):
        own = [seat for seat, is_own in enumerate(mine) if is_own]
        for one, other in itertools.product(_orders(rules, first), _orders(rules, second)):
            players = [
                _player(*((first, one) if is_own else (second, other)), seat // rules.num_sides)
                for seat, is_own in enumerate(mine)
            ]
            found.append(Seating(tuple(players), side, tuple(own[one.index(i)] for i in range(len(own)))))
    return found


def _orders(rules: RuleSet, side: Player | Partners) -> list[tuple[int, ...]]:
    """Which of a side's players takes its first seat, its second and so on."""
    places = range(rules.players // rules.num_sides)
    return list(itertools.permutations(places)) if isinstance(side, Partners) else [tuple(places)]


def _player(side: Player | Partners, order: tuple[int, ...], place: int) -> Player:
    return side.players[order[place]] if isinstance(side, Partners) else side
