"""Positions as networks see them best: with the numbers renamed, so that alike positions look alike.

Which numbers lie at the ends matters to a move, not what they are called. So numbers are given places: the
ends' come first, then those that the player holds most tiles of; of equals, that of which most tiles lie hidden
elsewhere, then the higher. A tile is then known by the places of its halves, and whatever fits the first end
stands at the same entries in every position.

`Afterstates` describes a legal move by what the player knows once it has been made (an afterstate, as Sutton and
Barto call it): a network that gives each of them one number is a policy. `Deals` describes a whole table, all hands
included, as the seat to act would see it if the tiles lay open: input for a critic, which only training and search
may ask. Both are rows of zeros and ones, made of named slices that are declared once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ._afterstates_write import (
    CHANCES,
    DRAWS_SEEN,
    FINISHES,
    PIP_STEPS,
    PLACES,
    TIES,
    TIMES,
    describe_deal,
    describe_move,
    recall,
)
from ._jit import jit
from .observation import Declared, Layout, Views, list_moves, look, look_events, new_views
from .rules import pack
from .state import FINISH_NAMES, NONE, State, new_state

#: Rises when the meaning of a slice changes.
VERSION: Final = 1
_ZERO = np.uint64(0)


@jit
def _list_many(views: Any, starts: Any, actions: Any) -> None:
    """List the moves of all views, one after another; `starts` are where each view's begin, and where all end."""
    for v in range(views.shape[0]):
        starts[v + 1] = starts[v] + list_moves(views[v], actions[starts[v] :])


@jit
def _describe_moves(views: Any, rules: Any, starts: Any, places: Any, actions: Any, out: Any) -> None:
    for v in range(views.shape[0]):
        recall(views[v], rules[0], places[0])
        for i in range(starts[v], starts[v + 1]):
            describe_move(views[v], rules[0], actions[i] >> 1, actions[i] & 1, places[0], out[i])


@jit
def _describe_deals(state: Any, rules: Any, views: Any, places: Any, out: Any) -> None:
    for t in range(state.shape[0]):
        if state[t]["seat"] != NONE:
            describe_deal(state[t], rules[0], views[0], places[0], out[t])


@jit
def look_to_act(state: Any, rules: Any, views: Any) -> None:
    """Fill `views` with what the seat to act at each table knows; no moves where there is none."""
    for t in range(views.shape[0]):
        if state[t]["seat"] != NONE:
            look(state[t], rules[0], int(state[t]["seat"]), views[t])
            look_events(state[t], rules[0], int(state[t]["seat"]), views[t])
        else:
            views[t]["to_act"] = NONE
            views[t]["legal"][0] = _ZERO
            views[t]["legal"][1] = _ZERO


@dataclass(frozen=True)
class Moves:
    """The moves that are open in some views: those of view v are ``starts[v]`` to ``starts[v + 1]``, none off turn.

    Where both ends show one number a tile leads to the same position at either (but for whose tile it covers), and
    is listed once, at the left.
    """

    rows: npt.NDArray[np.int8]  # (moves, size)
    actions: npt.NDArray[np.int64]  # (moves,)
    starts: npt.NDArray[np.int64]  # (views + 1,)
    equal_ends: npt.NDArray[np.bool_]  # (views,): both ends show one number, so what is left out can be played too

    def find(self, view: int, action: int) -> int:
        """Which of its moves a legal action of a view is, counted from the view's first.

        Raises:
            ValueError: an action that is not legal there.
        """
        own = self.actions[self.starts[view] : self.starts[view + 1]]
        same = np.flatnonzero(own == (action & ~1 if self.equal_ends[view] else action))
        if not len(same):
            raise ValueError(f"action {action} is none of view {view}'s moves, {own.tolist()}")
        return int(same[0])


def _check_records(name: str, given: Any, own: npt.NDArray[np.void]) -> None:
    """ValueError where `given` is not a list of records like `own`, as which compiled code would read it."""
    if not isinstance(given, np.ndarray) or given.dtype != own.dtype or given.ndim != 1:
        raise ValueError(
            f"{name}: a {type(given).__name__} is given that is no list of records for tables of these rules"
        )


class _Renamed(Layout):
    """A layout with the numbers renamed."""

    @property
    def version(self) -> int:
        """As all layouts have it."""
        return VERSION

    def _match(self) -> Declared:
        steps = self.rules.score_steps
        return [
            ("scores", (self.rules.num_sides, steps), f"each side's score (count, in steps of target/{steps})"),
            ("multiplier", (TIES if steps else 0,), "how often ties in a row have multiplied the points (count)"),
        ]


class Afterstates(_Renamed):
    """What a player knows after each move it could make, as rows of zeros and ones.

    The first place is that of the tile's new end (of a round's first tile, its higher half), the second that of the
    other end. Seats and sides count from the player.
    """

    def _declared(self) -> Declared:
        rules = self.rules
        s, tiles, numbers, hand = rules.players, rules.num_tiles, rules.max_pip + 1, rules.max_hand
        draws = rules.draw != "none"
        found: Declared = [
            ("hand", (tiles,), "the tiles I keep"),
            ("placed", (s, tiles), "the tiles each seat has played, mine first, this move's included"),
        ]
        for seat in range(1, s):
            found += [
                (f"possible_{seat}", (tiles,), "the tiles that seat may hold, as far as I can tell"),
                (f"stuck_{seat}", (CHANCES,), "the chance that it holds none that fits, by those (count, in eighths)"),
                (f"holds_none_{seat}", (numbers,), "numbers it holds no tile of, as all can tell"),
                (f"holds_at_most_one_{seat}", (numbers if draws else 0,), "numbers it holds at most one tile of"),
                (f"hand_count_{seat}", (hand,), "how many tiles it holds (count)"),
            ]
        return [
            *found,
            ("boneyard", (rules.boneyard_size if draws else 0,), "how many tiles are left to draw (count)"),
            ("fitting", (hand,), "how many tiles I keep that fit an end (count)"),
            ("kept", (hand,), "how many tiles I keep (count)"),
            ("pips", (PIP_STEPS,), "their pips (count, in steps of 4 rounded up)"),
            ("names", (numbers, numbers), "the number at each place"),
            ("covered", (numbers,), "the number that the tile was placed at; zeros for a round's first"),
            ("double", (1,), "the tile is a double"),
            ("equal_ends", (1,), "both ends show one number"),
            ("covered_owner", (s,), "the seat whose tile is covered; zeros for a round's first"),
            ("other_owner", (s,), "the seat that placed the tile at the other end"),
            ("last", (s,), "the seat that placed the last tile before; zeros for a round's first"),
            ("starter", (s,), "the seat that started the round"),
            ("finish", (FINISHES,), "by what last tile I go out, where that scores: " + ", ".join(FINISH_NAMES[1:])),
            *[part for seat in range(s) for part in self._recalled(seat)],
            *self._match(),
        ]

    def _recalled(self, seat: int) -> Declared:
        numbers = self.rules.max_pip + 1
        return [
            (f"first_{seat}", (self.rules.num_tiles,), "the tile that seat played first in the round"),
            (f"declined_{seat}", (numbers, TIMES), "how often it played at the other end than this number's (count)"),
            (f"opened_{seat}", (numbers, TIMES), "how often it made the number an end (count)"),
            (f"covered_{seat}", (numbers, TIMES), "how often it covered the number (count)"),
        ]

    @property
    def max_moves(self) -> int:
        """As many moves a position may have: those of all tiles that fit, and the tile that fits both ends twice.

        A chain uses up a tile of each number at its ends, and leaves as many of it as the set's highest number.
        """
        return max(self.rules.hand_size, min(self.rules.max_hand + 1, 2 * self.rules.max_pip))

    def of(self, views: Views) -> Moves:
        """The moves of views, newly allocated: those of the seats to act, none of others.

        Raises:
            ValueError: not views of these rules' tables.
        """
        _check_records("views", views, new_views(self.rules, 0))
        starts = np.zeros(len(views) + 1, np.int64)
        actions = np.zeros(len(views) * self.rules.num_actions, np.int64)
        _list_many(views, starts, actions)
        actions = actions[: starts[-1]]
        rows = np.zeros((starts[-1], self.size), np.int8)
        _describe_moves(views, pack(self.rules), starts, np.zeros(1, PLACES), actions, rows)
        return Moves(rows, actions, starts, (views["left"] == views["right"]) & (views["left"] != NONE))

    def of_state(self, state: State) -> Moves:
        """The moves of the seats to act at tables, none where a round is over.

        Raises:
            ValueError: not tables of these rules.
        """
        _check_records("state", state, new_state(self.rules, 0))
        views = new_views(self.rules, len(state))
        look_to_act(state, pack(self.rules), views)
        return self.of(views)


class Deals(_Renamed):
    """Tables with all tiles open, seen from the seat to act, as rows of zeros and ones.

    The first place is that of the end which this seat holds more tiles of (of equals, the left), the second that of
    the other; before the first tile there are no ends. Of the tiles elsewhere, those in the other hands count. Seats
    and sides count from the one to act.
    """

    def _declared(self) -> Declared:
        rules = self.rules
        s, tiles, numbers, hand = rules.players, rules.num_tiles, rules.max_pip + 1, rules.max_hand
        draws = rules.draw != "none"
        found: Declared = []
        for seat in range(s):
            found += [
                (f"hand_{seat}", (tiles,), "the tiles that seat holds"),
                (f"placed_{seat}", (tiles,), "those it has played"),
                (f"holds_none_{seat}", (numbers,), "numbers it holds no tile of, as all can tell"),
                (f"fitting_{seat}", (2, numbers), "how many of its tiles fit the first, the second end (count)"),
                (f"hand_count_{seat}", (hand,), "how many it holds (count)"),
                (f"pips_{seat}", (PIP_STEPS,), "their pips (count, in steps of 4 rounded up)"),
            ]
        return [
            *found,
            ("boneyard", (rules.boneyard_size if draws else 0,), "how many tiles are left to draw (count)"),
            ("draws", (DRAWS_SEEN if draws else 0, tiles), "the next of them, one-hot each"),
            ("names", (numbers, numbers), "the number at each place"),
            ("equal_ends", (1,), "both ends show one number, or there are none yet"),
            ("first_owner", (s,), "the seat that placed the tile at the first end"),
            ("second_owner", (s,), "at the second"),
            ("last", (s,), "the seat that placed the last tile"),
            ("starter", (s,), "the seat that started the round"),
            *self._match(),
        ]

    def of(self, state: State) -> npt.NDArray[np.int8]:
        """The rows of tables, int8 (n, size), newly allocated; zeros where a round is over.

        Raises:
            ValueError: not tables of these rules.
        """
        _check_records("state", state, new_state(self.rules, 0))
        out = np.zeros((len(state), self.size), np.int8)
        _describe_deals(state, pack(self.rules), new_views(self.rules, 1), np.zeros(1, PLACES), out)
        return out
