"""Deals that a seat could not tell from the true one, each as likely as any other.

What the passes and draws have shown is turned into the places each hidden tile may have come from: a
hand as dealt, one draw, or the boneyard. The ways to fill the places are counted exactly, so a sample is
uniform over all of them, which is what a seat believes that draws no conclusions from how others play.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from .._jit import jit
from ..kernel import find_opening
from ..rules import RuleSet, pack
from ..state import DRAW, NONE, PLAY, new_state
from ..tiles import HALVES, LEFT, tiles_in
from ._tree import DEAL, DECISION, DRAWING, LOT, Node

_NEVER: Final = 1 << 20


class _Place(NamedTuple):
    """Where tiles come from. Seat NONE is the boneyard, time −1 the deal."""

    seat: int
    time: int
    size: int


class _Seen(NamedTuple):
    """What a seat has seen of one event."""

    kind: int
    seat: int
    action: int
    tile: int
    ends: tuple[int, int]


@jit
def _opens(state: Any, rules: Any) -> int:
    return find_opening(state[0], rules[0])[1]


@lru_cache(maxsize=64)
def _no_higher(rules: RuleSet, opening: int) -> int:
    """The tiles (a bit mask) that a seat may hold beside another that opens with this one."""
    state, allowed = new_state(rules, 1), 0
    for tile in range(rules.num_tiles):
        state["hands"][0] = 0
        state["hands"][0, :2] = 1 << opening, 1 << tile
        allowed |= (int(_opens(state, pack(rules))) == opening) << tile
    return allowed


def _seen(node: Node, observer: int) -> list[_Seen]:
    record = node.view(observer)[0]
    found: list[_Seen] = []
    ends = (NONE, NONE)
    for packed in record["events"][: record["num_events"]].tolist():
        kind, end, tile = packed & 3, packed >> 2 & 1, packed >> 7
        seat = ((packed >> 3 & 15) + observer) % node.rules.players
        found.append(_Seen(kind, seat, 2 * tile + end, tile, ends))
        if kind == PLAY:
            high, low = HALVES[tile]
            if ends[0] == NONE:
                ends = high, low
            elif end == LEFT:
                ends = high + low - ends[0], ends[1]
            else:
                ends = ends[0], high + low - ends[1]
    return found


class Redealer:
    """Samples nodes that look to `observer` as `node` does.

    Args:
        node: a node with a decision.
        observer: whose knowledge counts.

    Raises:
        ValueError: the node has no decision to make.
    """

    def __init__(self, node: Node, observer: int) -> None:
        if node.kind != DECISION:
            raise ValueError(f"tiles are dealt again where a seat has to decide; this node is {node.kind!r}")
        self.node, self.observer = node, observer
        self._events = _seen(node, observer)
        self._places = self._all_places()
        self._tiles, allowed = self._hidden()
        # Places that admit the same tiles are filled together, then told apart by shuffling.
        groups: dict[tuple[bool, ...], list[int]] = {}
        for index in range(len(self._places)):
            groups.setdefault(tuple(options[index] for options in allowed), []).append(index)
        self._groups = list(groups.values())
        sizes = tuple(sum(self._places[index].size for index in group) for group in self._groups)
        options = [tuple(g for g, group in enumerate(self._groups) if row[group[0]]) for row in allowed]
        order = sorted(range(len(options)), key=lambda i: len(options[i]))
        self._tiles = [self._tiles[i] for i in order]
        self._options = [options[i] for i in order]
        self._sizes = sizes
        self._count = self._counter()

    def _all_places(self) -> list[_Place]:
        rules, observer = self.node.rules, self.observer
        places = [_Place(seat, -1, rules.hand_size) for seat in range(rules.players) if seat != observer]
        draws = [(time, event) for time, event in enumerate(self._events) if event.kind == DRAW]
        places += [_Place(event.seat, time, 1) for time, event in draws if event.seat != observer]
        left = rules.boneyard_size - len(draws)
        return places + ([_Place(NONE, _NEVER - 1, left)] if left else [])

    def _hidden(self) -> tuple[list[int], list[list[bool]]]:
        """The tiles of which the observer has not seen where they came from, and the places each may have."""
        rules, observer = self.node.rules, self.observer
        own = self.node.dealt[observer]
        played: dict[int, tuple[int, int]] = {}
        for time, event in enumerate(self._events):
            if event.kind == PLAY:
                played[event.tile] = event.seat, time
            elif event.seat == observer and event.kind == DRAW:
                own |= 1 << event.tile
        opening = NONE
        if rules.opening == "highest_double" and self._events:
            opening = self._events[0].tile
        dealt = -1 if opening == NONE else _no_higher(rules, opening)
        hidden = [tile for tile in range(rules.num_tiles) if not own >> tile & 1]
        allowed = []
        for tile in hidden:
            seat, until = played.get(tile, (None, _NEVER))
            lacking = self._lacking(tile, until)
            row = []
            for place in self._places:
                fits = seat in (None, place.seat) and place.time < until
                fits = fits and not any(s == place.seat and place.time < time for s, time in lacking)
                if place.time < 0:
                    fits = fits and bool(dealt >> tile & 1)
                row.append(fits)
            allowed.append(row)
        return hidden, allowed

    def _lacking(self, tile: int, until: int) -> list[tuple[int, int]]:
        """(seat, time) of each pass and draw before `until` which shows that the seat did not hold `tile` then."""
        halves = HALVES[tile]
        return [
            (event.seat, time)
            for time, event in enumerate(self._events[:until])
            if event.kind != PLAY and (event.ends[0] in halves or event.ends[1] in halves)
        ]

    def _counter(self) -> Callable[[int, tuple[int, ...]], int]:
        """count(i, room): the ways to put tiles i, i+1, … into the groups' rooms."""
        options, last = self._options, len(self._tiles)

        @cache
        def count(i: int, room: tuple[int, ...]) -> int:
            if i == last:
                return 1
            return sum(count(i + 1, (*room[:g], room[g] - 1, *room[g + 1 :])) for g in options[i] if room[g])

        return count

    def sample(self, uniform: Callable[[], float]) -> tuple[Node, list[int]]:
        """A node like the true one, and what was applied to come to it; `uniform` gives numbers from 0 to below 1."""
        while True:
            other = self._replayed(*self._deal(uniform))
            if other is not None:
                return other

    def _deal(self, uniform: Callable[[], float]) -> tuple[list[int], dict[int, int]]:
        """Hands, and the tile of each draw by its time."""
        room, filled = self._sizes, [list[int]() for _ in self._groups]
        for i, tile in enumerate(self._tiles):
            ways = []
            for g in self._options[i]:
                if room[g]:
                    rest = (*room[:g], room[g] - 1, *room[g + 1 :])
                    ways.append((self._count(i + 1, rest), g, rest))
            at = uniform() * sum(way[0] for way in ways)
            for number, g, rest in ways:  # noqa: B007 - the last one stands where rounding exceeds the sum
                at -= number
                if at < 0 and number:
                    break
            filled[g].append(tile)
            room = rest
        hands = [0] * self.node.rules.players
        hands[self.observer] = self.node.dealt[self.observer]
        drawn = {time: event.tile for time, event in enumerate(self._events) if event.kind == DRAW}
        for group, tiles in zip(self._groups, filled, strict=True):
            for index in group:
                place = self._places[index]
                for _ in range(place.size):
                    tile = tiles.pop(int(uniform() * len(tiles)))
                    if place.time < 0:
                        hands[place.seat] |= 1 << tile
                    elif place.seat != NONE:
                        drawn[place.time] = tile
        return hands, drawn

    def _replayed(self, hands: list[int], drawn: dict[int, int]) -> tuple[Node, list[int]] | None:
        """`sample`'s answer for a deal and the same plays; None where something else would have happened."""
        other, path = Node(self.node.rules, self.node.outcome), list[int]()
        draws = iter([drawn[time] for time in sorted(drawn)])
        plays = iter([event.action for event in self._events if event.kind == PLAY])
        while True:
            action: int | None
            if other.kind == DEAL:
                seat = other.next_seat
                action = tiles_in(hands[seat] & ~other.dealt[seat])[0]
            elif other.kind == LOT:
                action = int(self.node.state[0]["starter"])
            elif other.kind == DRAWING:
                if (action := next(draws, None)) is None:  # more would have been drawn
                    return None
            elif (action := next(plays, None)) is None:
                break
            other.apply(action)
            path.append(action)
        same = other.view(self.observer).tobytes() == self.node.view(self.observer).tobytes()
        return (other, path) if same else None
