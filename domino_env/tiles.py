"""Tiles, ends and actions as numbers, and their names.

A tile is an index into one fixed table that serves every set: tile ``h(h+1)/2 + l`` has the halves
h ≥ l, so double-two is the table's first 6 tiles, double-six its first 28, double-nine all 55.
A set of tiles is a uint64 with bit `tile` set. An action is ``2*tile + end`` (0 left, 1 right).

Names: a tile is written low half first where it is held (``"4-6"``), a move high half first with
its end (``"6-4L"``, ``"6-4R"``; an opening tile, which has no end to match, ``"6-4"``). Both orders
are read everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import numpy as np

MIN_PIP: Final = 2
MAX_PIP: Final = 9
NUM_TILES: Final = 55
LEFT: Final = 0
RIGHT: Final = 1
END_NAMES: Final = ("left", "right")

HALVES: Final = tuple((high, low) for high in range(MAX_PIP + 1) for low in range(high + 1))
HIGH: Final = np.array([high for high, _ in HALVES], np.int64)
LOW: Final = np.array([low for _, low in HALVES], np.int64)
PIPS: Final = HIGH + LOW
# SUIT[n]: every tile that carries the number n. DOUBLES: every double.
SUIT: Final = np.array(
    [sum(1 << tile for tile, halves in enumerate(HALVES) if n in halves) for n in range(MAX_PIP + 1)],
    np.uint64,
)
DOUBLES: Final = np.uint64(sum(1 << tile for tile, (high, low) in enumerate(HALVES) if high == low))

TILE_NAMES: Final = tuple(f"{low}-{high}" for high, low in HALVES)
ACTION_NAMES: Final = tuple(f"{high}-{low}{end}" for high, low in HALVES for end in "LR")

_TILE = re.compile(r"([0-9])-([0-9])")
_MOVE = re.compile(r"([0-9]-[0-9])([LRlr]?)")


def num_tiles(max_pip: int) -> int:
    """The size of the double-`max_pip` set: 28 for double-six."""
    return (max_pip + 1) * (max_pip + 2) // 2


def tile_index(one: int, other: int) -> int:
    """The index of the tile with these two halves, in either order."""
    high, low = max(one, other), min(one, other)
    return high * (high + 1) // 2 + low


def parse_tile(text: str, max_pip: int = MAX_PIP) -> int:
    """The index of the tile written ``"6-4"`` or ``"4-6"``; ValueError if the set has no such tile."""
    match = _TILE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{text!r} is not a tile: write two halves, such as '6-4'")
    one, other = int(match[1]), int(match[2])
    if max(one, other) > max_pip:
        raise ValueError(f"{text!r} is not in the double-{max_pip} set: halves go from 0 to {max_pip}")
    return tile_index(one, other)


def parse_move(text: str, max_pip: int = MAX_PIP) -> tuple[int, int | None]:
    """(tile, end) of a move written ``"6-4L"``, ``"6-4R"`` or, with end None, ``"6-4"``."""
    match = _MOVE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{text!r} is not a move: write a tile and an end, such as '6-4L' or '6-4R'")
    end = {"": None, "L": LEFT, "R": RIGHT}[match[2].upper()]
    return parse_tile(match[1], max_pip), end


def tile_set(tiles: Iterable[int]) -> int:
    """The bit mask of these tiles."""
    mask = 0
    for tile in tiles:
        mask |= 1 << tile
    return mask


def tiles_in(mask: int) -> list[int]:
    """The tiles of a bit mask, in the table's order."""
    mask = int(mask)
    return [tile for tile in range(mask.bit_length()) if mask >> tile & 1]
