"""What happens in a round, in words: moves, events, results, and what one seat knows of it all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from .observation import Views
from .rules import RuleSet
from .state import EVENT_NAMES, HIDDEN, NONE, PASS, PLAY
from .tiles import ACTION_NAMES, END_NAMES, HALVES, LEFT, TILE_NAMES, tiles_in


class Move(NamedTuple):
    """A tile played at an end. `str` gives its name: ``"6-4L"``, ``"6-4R"``, or ``"6-6"`` opening a round."""

    action: int
    opening: bool = False

    @property
    def tile(self) -> str:
        """The tile's name, low half first."""
        return TILE_NAMES[self.action >> 1]

    @property
    def end(self) -> str:
        """``"left"`` or ``"right"``; an opening tile counts as played on the left."""
        return END_NAMES[self.action & 1]

    def __str__(self) -> str:
        name = ACTION_NAMES[self.action]
        return name[:-1] if self.opening else name


#: MOVES[opening][action]: every move there is.
MOVES: Final = (
    tuple(Move(action) for action in range(len(ACTION_NAMES))),
    tuple(Move(action, opening=True) for action in range(len(ACTION_NAMES))),
)


class Event(NamedTuple):
    """Something that happened in a round. `ends` are the chain's at that moment, None before the first tile."""

    kind: str  # "play", "draw" or "pass"
    seat: int
    tile: str | None  # None for a pass, and for a tile drawn by another than the observer
    end: str | None  # "left" or "right" for a play
    ends: tuple[int, int] | None


@dataclass(frozen=True)
class RoundResult:
    """How a round ended and what it was worth."""

    reason: str  # "out", "blocked" or "tied"
    seat: int | None  # who went out or had the fewest pips; None for a tie, and for a block won by a pair
    side: int | None  # who scored; None for a tie
    finish: str | None  # "simples", "carroca", "la-e-lo" or "cruzada", where the last tile decides the points
    base: int  # points before the multiplier
    multiplier: int
    points: int  # base * multiplier
    pips: tuple[int, ...]  # left in each seat's hand
    last_placer: int
    next_starter: int | None  # None where lots, or the next deal, decide


class Deal(NamedTuple):
    """Tiles dealt: a hand for each seat, and the boneyard in the order it is drawn from."""

    hands: tuple[tuple[str, ...], ...]
    boneyard: tuple[str, ...] = ()
    #: Who starts, where the rules say by lots.
    lot: int | None = None


@dataclass(frozen=True)
class View:
    """What one seat knows of a round, and nothing else. Seats are numbered as at the table."""

    rules: RuleSet = field(repr=False)
    seat: int
    hand: list[str]
    ends: tuple[int, int] | None
    chain: list[str]
    events: tuple[Event, ...]  # a tile drawn by another seat is None
    counts: list[int]  # tiles in each hand
    boneyard: int  # tiles left in it
    to_act: int | None
    legal_moves: list[Move]  # empty unless it is this seat's turn
    starter: int
    scores: list[int]  # by side
    multiplier: int
    hands: list[list[str]] | None  # all hands, once the round is over; None before
    #: The same as one `observation.Views` record, which is what players are given.
    record: Views = field(repr=False, compare=False)


def events_of(events: Any, seats: int = 0, observer: int = 0) -> tuple[Event, ...]:
    """Packed events as `Event` records. With `seats`, seats in them count from `observer` and are put back."""
    found: list[Event] = []
    ends: tuple[int, int] | None = None
    for packed in events.tolist():
        kind, end, seat, tile = packed & 3, packed >> 2 & 1, packed >> 3 & 15, packed >> 7
        seat = (seat + observer) % seats if seats else seat
        name = None if tile == HIDDEN or kind == PASS else TILE_NAMES[tile]
        found.append(Event(EVENT_NAMES[kind], seat, name, END_NAMES[end] if kind == PLAY else None, ends))
        if kind == PLAY:
            high, low = HALVES[tile]
            if ends is None:
                ends = high, low
            elif end == LEFT:
                ends = high + low - ends[0], ends[1]
            else:
                ends = ends[0], high + low - ends[1]
    return tuple(found)


def chain_of(events: Sequence[Event]) -> list[str]:
    """The tiles on the table, left to right, each written the way it lies."""
    chain: list[str] = []
    for event in events:
        if event.kind != "play" or event.tile is None:
            continue
        low, high = (int(half) for half in event.tile.split("-"))
        if event.ends is None:
            chain.append(f"{high}-{low}")
        elif event.end == "left":
            inner = event.ends[0]
            chain.insert(0, f"{high + low - inner}-{inner}")
        else:
            inner = event.ends[1]
            chain.append(f"{inner}-{high + low - inner}")
    return chain


def tile_names(tiles: int) -> list[str]:
    """The names of a set of tiles."""
    return [TILE_NAMES[tile] for tile in tiles_in(tiles)]


def moves_of(left: int, right: int, opening: bool) -> list[Move]:
    """The moves of these tiles at the left and at the right end, by action id."""
    moves, left, right = MOVES[opening], int(left), int(right)
    found = []
    both = left | right
    while both:
        bit = both & -both
        tile = bit.bit_length() - 1
        if left & bit:
            found.append(moves[2 * tile])
        if right & bit:
            found.append(moves[2 * tile + 1])
        both ^= bit
    return found


def view_of(rules: RuleSet, record: Views, hands: list[list[str]] | None = None) -> View:
    """A view for people from one `observation.Views` record; `hands` are all hands, once the round is over."""
    seen, players, sides = record[0], rules.players, rules.num_sides
    seat = int(seen["seat"])

    def at_table(relative: int) -> int:
        return (relative + seat) % players

    events = events_of(seen["events"][: seen["num_events"]], players, seat)
    opening = seen["left"] == NONE
    return View(
        rules=rules,
        seat=seat,
        hand=tile_names(int(seen["hand"])),
        ends=None if opening else (int(seen["left"]), int(seen["right"])),
        chain=chain_of(events),
        events=events,
        counts=np.roll(seen["counts"][:players], seat).tolist(),
        boneyard=int(seen["boneyard"]),
        to_act=None if seen["to_act"] == NONE else at_table(int(seen["to_act"])),
        legal_moves=moves_of(int(seen["legal"][0]), int(seen["legal"][1]), bool(opening)),
        starter=at_table(int(seen["starter"])),
        scores=np.roll(seen["scores"][:sides], seat % sides).tolist(),
        multiplier=int(seen["multiplier"]),
        hands=hands,
        record=record,
    )
