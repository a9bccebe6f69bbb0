"""The one state record: everything the kernel knows of a table, the match around it included.

A state is an array of records, one a table; copying the array copies the games. The record has
room for the largest table of its size class, so that compiled code is shared by all rule sets of a
class: ``SMALL`` (up to 4 seats, double-six: every preset) or ``LARGE`` (up to 9 seats, double-nine).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .rules import RuleSet

#: No seat, no side, no tile, no number.
NONE: Final = -1

# Why a round ended (`reason`; 0 while it is played) and by what kind of last tile (`finish`).
OUT: Final = 1
BLOCKED: Final = 2
TIED: Final = 3
SIMPLES: Final = 1
CARROCA: Final = 2
LA_E_LO: Final = 3
CRUZADA: Final = 4
REASON_NAMES: Final = (None, "out", "blocked", "tied")
FINISH_NAMES: Final = (None, "simples", "carroca", "la-e-lo", "cruzada")

# `next_starter`: a seat, or one of these.
BY_LOTS: Final = -1
BY_OPENING: Final = -2

# One event is a uint16: kind (2 bits), end (1), seat (4), tile (6; HIDDEN for a pass or an unknown draw).
PLAY: Final = 0
DRAW: Final = 1
PASS: Final = 2
HIDDEN: Final = 63
EVENT_NAMES: Final = ("play", "draw", "pass")

#: An array of table records.
State: TypeAlias = npt.NDArray[np.void]


class Sizes(NamedTuple):
    """What a record has room for."""

    seats: int
    tiles: int
    events: int


SMALL: Final = Sizes(seats=4, tiles=28, events=112)
LARGE: Final = Sizes(seats=9, tiles=55, events=550)


def sizes_for(rules: RuleSet) -> Sizes:
    """The size class of a rule set's tables."""
    needed = Sizes(rules.players, rules.num_tiles, rules.max_events)
    return SMALL if all(need <= room for need, room in zip(needed, SMALL, strict=True)) else LARGE


def _table_dtype(sizes: Sizes) -> np.dtype[np.void]:
    """The record of one table."""
    s, tiles, events = sizes
    fields: list[Any] = [
        ("hands", np.uint64, (s,)),  # tiles held, a bit a tile
        ("placed", np.uint64, (s,)),  # tiles each seat has played
        ("legal", np.uint64, (2,)),  # tiles the seat to act may play at the left, at the right end
        ("scores", np.int64, (s,)),  # by side
        ("base", np.int64),  # what the round was won for, before the multiplier and after it
        ("points", np.int64),
        ("multiplier", np.int64),  # what this round's points are multiplied by
        ("rewards", np.float32, (s,)),  # by side: what a batch's step has gained and lost
        ("rng", np.uint32, (4,)),  # the stream that deals and lots come from
        ("seat", np.int32),  # who must act; NONE when the round is over
        ("left", np.int32),  # the chain's two open numbers; NONE before the first tile
        ("right", np.int32),
        ("left_owner", np.int32),  # who placed the tile that lies at each end
        ("right_owner", np.int32),
        ("starter", np.int32),
        ("last", np.int32),  # who placed the last tile
        ("forced", np.int32),  # the tile that must open the round, or NONE
        ("drawer", np.int32),  # the seat that has just drawn the tile it must now play, or NONE
        ("top", np.int32),  # deck[top:bottom] is the boneyard, deck[top] is drawn next
        ("bottom", np.int32),
        ("num_events", np.int32),
        ("reason", np.int32),  # how the round ended, by what last tile, who won it
        ("finish", np.int32),
        ("winning_seat", np.int32),
        ("winning_side", np.int32),
        ("next_starter", np.int32),  # a seat, BY_LOTS or BY_OPENING
        ("ties", np.int32),  # tied rounds in a row up to now
        ("round", np.int32),  # rounds finished in this match
        ("over", np.int32),  # whether the match is over, and the side that won it (NONE: drawn)
        ("winner", np.int32),
        ("lacks", np.uint16, (2, s)),  # numbers of which a seat, as all can tell, holds none; at most one
        ("events", np.uint16, (events,)),  # the round's plays, draws and passes, in order
        (
            "deck",
            np.uint8,
            (tiles,),
        ),  # holds the boneyard; after a shuffle the hands, seat by seat, before it
    ]
    return np.dtype(fields, align=True)


_DTYPES: Final = {sizes: _table_dtype(sizes) for sizes in (SMALL, LARGE)}


def new_state(rules: RuleSet, tables: int) -> State:
    """All-zero records for `tables` tables of `rules`; deal with the kernel before use."""
    dtype = _DTYPES[sizes_for(rules)]
    return np.zeros(tables * dtype.itemsize, np.uint8).view(dtype)  # faster than zeroing records


def copy_state(state: State) -> State:
    """Records that share no memory with `state`; NumPy's own copy goes field by field."""
    return state.view(np.uint8).copy().view(state.dtype)
