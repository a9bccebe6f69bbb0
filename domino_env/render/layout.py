"""Where the tiles of a chain lie: one pure function that every painter uses.

Lengths are in halves: a tile is 2 by 1. The row through the opening tile grows to both sides. Where
it reaches an edge it turns, by one tile set upright below (on the right) or above (on the left), and
runs back along the whole width; and so on, away from the opening tile. The two arms therefore never
meet. Doubles lie crosswise to their row, also at its ends; a row ends one tile early rather than turn
with a double. If the box is too low for that many rows, everything is laid again at a smaller scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from ..events import Event

#: The narrowest row that can always go on: the least room after a turn is two tiles and a double.
MIN_WIDTH: Final = 6
#: Where a tile's second half lies, seen from its first: turn 0 to the right, 1 below, 2 to the left, 3 above.
STEPS: Final = ((1, 0), (0, 1), (-1, 0), (0, -1))


class Half(NamedTuple):
    """Half a tile: its number (None face down) and the middle of its square."""

    number: int | None
    x: float
    y: float


class Placement(NamedTuple):
    """A tile where it lies.

    Attributes:
        numbers: its halves in the chain's order, left to right; None face down.
        x, y: the upper left corner, y growing downwards.
        turn: where the second half lies, an index of `STEPS`.
    """

    numbers: tuple[int, int] | None
    x: float
    y: float
    turn: int

    @property
    def width(self) -> int:
        """2 lying, 1 upright."""
        return 1 if self.turn & 1 else 2

    @property
    def height(self) -> int:
        """1 lying, 2 upright."""
        return 2 if self.turn & 1 else 1

    @property
    def halves(self) -> tuple[Half, Half]:
        """Both halves, the first in the chain's order first."""
        dx, dy = STEPS[self.turn]
        x, y = self.x + self.width / 2, self.y + self.height / 2
        first, second = self.numbers if self.numbers is not None else (None, None)
        return Half(first, x - dx / 2, y - dy / 2), Half(second, x + dx / 2, y + dy / 2)


class Layout(NamedTuple):
    """A chain laid into a box.

    Attributes:
        tiles: the placements in the chain's order, inside ``(0, 0, width, height)``.
        width, height: what the tiles take up, in halves.
        unit: the side of a half in the box's own unit: ``width * unit`` is at most the box's width.
    """

    tiles: tuple[Placement, ...]
    width: float
    height: float
    unit: float


def opening_index(events: Iterable[Event]) -> int:
    """The position in the chain of the tile that opened the round: how many were played to its left."""
    return sum(event.kind == "play" and event.end == "left" and event.ends is not None for event in events)


def lay_chain(
    chain: Sequence[str],
    width: float,
    height: float,
    *,
    opening: int | None = None,
    max_unit: float = float("inf"),
) -> Layout:
    """Lay a chain into a box of any size, as large as it will go.

    Args:
        chain: tiles as they lie, left to right: ``["6-4", "4-4", ...]``.
        width, height: of the box, in any unit.
        opening: the index of the tile the rows grow from; the middle one where it is None.
        max_unit: no half is larger than this.

    Raises:
        ValueError: a box without an area, an index outside the chain, or tiles that do not touch.
    """
    if not (width > 0 and height > 0 and max_unit > 0):
        raise ValueError(f"a box of {width} by {height} with halves of at most {max_unit}: give sizes above 0")
    tiles, at = _checked(chain, opening)
    if not tiles:
        return Layout((), 0, 0, min(max_unit, width / 2, height))
    best: Layout | None = None
    longest = max(MIN_WIDTH, sum(_length(tile) for tile in tiles))
    for columns in range(longest, MIN_WIDTH - 1, -1):
        placed, wide, high = _lay_rows(tiles, columns, at)
        unit = min(width / wide, height / high, max_unit)
        if best is None or unit > best.unit:
            best = Layout(placed, wide, high, unit)
        if unit == max_unit:
            break
    assert best is not None
    return best


def lay_in_columns(chain: Sequence[str], columns: int, *, opening: int | None = None) -> Layout:
    """Lay a chain at scale 1 in rows of at most `columns` halves, as high as it comes out.

    Raises:
        ValueError: fewer than `MIN_WIDTH` columns, or as in `lay_chain`.
    """
    if columns < MIN_WIDTH:
        raise ValueError(f"columns={columns}: a row takes at least {MIN_WIDTH} halves")
    tiles, at = _checked(chain, opening)
    if not tiles:
        return Layout((), 0, 0, 1)
    return Layout(*_lay_rows(tiles, columns, at), 1)


def _checked(chain: Sequence[str], opening: int | None) -> tuple[tuple[tuple[int, int], ...], int]:
    tiles = []
    for name in chain:
        first, dash, second = name.partition("-")
        if not dash or not first.isdecimal() or not second.isdecimal():
            raise ValueError(f"{name!r} in the chain is not a tile: write two halves, such as '6-4'")
        tiles.append((int(first), int(second)))
    for i in range(1, len(tiles)):
        if tiles[i - 1][1] != tiles[i][0]:
            raise ValueError(
                f"{chain[i - 1]!r} and {chain[i]!r} lie together in the chain but do not touch by one number"
            )
    if opening is not None and not 0 <= opening < max(1, len(tiles)):
        raise ValueError(f"opening={opening}: the chain's tiles are 0 to {len(tiles) - 1}")
    return tuple(tiles), len(tiles) // 2 if opening is None else opening


def _length(tile: tuple[int, int]) -> int:
    """How much of a row a tile takes: a double lies crosswise."""
    return 1 if tile[0] == tile[1] else 2


@lru_cache(maxsize=1024)
def _lay_rows(tiles: tuple[tuple[int, int], ...], columns: int, at: int) -> tuple[tuple[Placement, ...], float, float]:
    """Placements in rows of `columns` halves, from the corner (0, 0), with the width and height they take."""
    middle = _length(tiles[at])
    left = sum(_length(tile) for tile in tiles[:at])
    right = sum(_length(tile) for tile in tiles[at + 1 :])
    start = (columns - middle) / 2
    # An arm that ends in the first row leaves the rest of that row to the other.
    if left < start:
        start = max(left, columns - middle - right)
    elif right < columns - middle - start:
        start = columns - middle - max(right, columns - middle - left)
    after = _arm(tiles[at + 1 :], middle, columns - middle - start, columns)
    # The left arm is a right arm turned upside down, its tiles taken from the middle outwards.
    outwards = tuple((second, first) for first, second in reversed(tiles[:at]))
    before = [
        Placement(tile, middle - p.x - p.width, -p.y - p.height, p.turn)
        for tile, p in zip(reversed(tiles[:at]), _arm(outwards, middle, start, columns), strict=True)
    ]
    placed = [*reversed(before), _in_row(tiles[at], 0, 0, 1), *after]
    x, y = min(p.x for p in placed), min(p.y for p in placed)
    shifted = tuple(p._replace(x=p.x - x, y=p.y - y) for p in placed)
    return shifted, max(p.x + p.width for p in shifted), max(p.y + p.height for p in shifted)


def _in_row(tile: tuple[int, int], start: float, middle: float, way: int) -> Placement:
    """A tile of a row with its middle line at `middle`, from `start` on to the right (way 1) or left (-1)."""
    length = _length(tile)
    x = start if way == 1 else start - length
    if length == 1:
        return Placement(tile, x, middle - 1, 1)
    return Placement(tile, x, middle - 0.5, 0 if way == 1 else 2)


def _arm(tiles: Sequence[tuple[int, int]], start: float, room: float, columns: int) -> list[Placement]:
    """Tiles laid from `start` to the right, with `room` left in the first row, then back and forth below it.

    Before `start` lies the opening tile, on the middle line 0. A row leaves less than 3 halves unused,
    so that after a turn there is always room for a tile and a double.
    """
    edges = {1: start + room, -1: start + room - columns}
    placed: list[Placement] = []
    way, front, middle = 1, start, 0.0
    i = 0
    while i < len(tiles):
        if (edges[way] - front) * way >= _length(tiles[i]):
            placed.append(_in_row(tiles[i], front, middle, way))
            front += way * _length(tiles[i])
            i += 1
            continue
        if _length(tiles[i]) == 1:  # a double cannot turn; the tile before it can, not being one
            del placed[-1]
            i -= 1
            front -= way * 2
        last = placed[-1].height if placed else (2 if start == 1 else 1)
        top = middle + last / 2
        placed.append(Placement(tiles[i], front - 1 if way == 1 else front, top, 1))
        i += 1
        way = -way
        # The row back begins under the upright tile: with its middle line half the next tile's height lower.
        if i < len(tiles):
            middle = top + 2 + (1 if _length(tiles[i]) == 1 else 0.5)
            front = placed[-1].x if way == 1 else placed[-1].x + 1
    return placed
