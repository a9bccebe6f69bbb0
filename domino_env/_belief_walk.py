"""Deals where there are too many to be counted: a random walk over them.

One step rotates the groups of a few tiles; it is undone where a tile would come to a group that does not
admit it. Steps are as likely as their opposites and any two deals are joined by some, so in the long run
each deal is visited as often as any other (a Metropolis walk). Deals that follow each other are alike, though;
the walk makes `_STEPS` steps a tile from one to the next, and `_FIRST_STEPS` before the first.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ._jit import jit, lowest_bit
from ._rng import below, next_u32
from .state import NONE

_U64 = np.uint64
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_STEPS: Final = 40
_FIRST_STEPS: Final = 1000


@jit
def _reach(work: Any, tile: int, reached: Any, tail: int) -> Any:
    """Queue the groups to which a tile may move and that were not reached before."""
    options = work["admits"][1, tile] & ~reached
    while options:
        group = lowest_bit(options)
        options &= options - _ONE
        reached |= _ONE << _U64(group)
        work["order"][tail] = group
        work["start"][group] = tile
        tail += 1
    return reached, tail


@jit
def _augment(work: Any, tile: int) -> bool:
    """Give a tile a group, moving others where need be (a shortest augmenting path)."""
    reached, tail = _reach(work, tile, _ZERO, 0)
    head = 0
    while head < tail:
        group = work["order"][head]
        head += 1
        if work["left"][group]:
            work["left"][group] -= 1
            while group != NONE:  # back along the path
                mover = work["start"][group]
                group, work["at"][mover] = work["at"][mover], group
            return True
        for other in range(work["num_tiles"]):
            if work["at"][other] == group:
                reached, tail = _reach(work, other, reached, tail)
    return False


@jit
def _match_all(work: Any) -> bool:
    for group in range(work["num_groups"]):
        work["left"][group] = work["room"][group]
    for tile in range(work["num_tiles"]):
        work["at"][tile] = NONE
    placed = 0
    while placed < work["num_tiles"] and _augment(work, placed):
        placed += 1
    return bool(placed == work["num_tiles"])


@jit
def _shows(work: Any, tile: int, group: int) -> int:
    return 1 if work["shows"][tile] >> _U64(group) & _ONE else 0


@jit
def match(work: Any, needs_shown: bool) -> bool:
    """Find a first deal, where one is needed with the mode's fact shown; whether there is any."""
    if not _match_all(work):
        return False
    if not needs_shown:
        return True
    for tile in range(work["num_tiles"]):
        if _shows(work, tile, work["at"][tile]):
            return True
    for tile in range(work["num_tiles"]):
        admitted, shows = work["admits"][1, tile], work["shows"][tile]
        while shows:
            work["admits"][1, tile] = shows & (~shows + _ONE)
            shows &= shows - _ONE
            found = _match_all(work)
            work["admits"][1, tile] = admitted
            if found:
                return True
    return False


@jit
def walk(work: Any, needs_shown: bool, stream: Any) -> None:
    """Walk on from the last deal to the next."""
    tiles, at, order = int(work["num_tiles"]), work["at"], work["order"]
    shown = 0
    for tile in range(tiles):
        order[tile] = tile
        shown += _shows(work, tile, at[tile])
    steps = tiles * (_STEPS if work["walked"] else _FIRST_STEPS)
    work["walked"] = 1
    for _ in range(steps):
        size = 1  # every other step does nothing, lest an even number of steps never lead to half of the deals
        while size < tiles and next_u32(stream) & _ONE:
            size += 1
        fits, gained = True, 0
        for i in range(size):
            other = i + below(stream, tiles - i)
            order[i], order[other] = order[other], order[i]
        for i in range(size):
            tile, group = order[i], at[order[i + 1 if i + 1 < size else 0]]
            fits = fits and work["admits"][1, tile] >> _U64(group) & _ONE != _ZERO
            gained += _shows(work, tile, group) - _shows(work, tile, at[tile])
        if not fits or (needs_shown and shown + gained == 0):
            continue
        shown += gained
        first = at[order[0]]
        for i in range(size - 1):
            at[order[i]] = at[order[i + 1]]
        at[order[size - 1]] = first
