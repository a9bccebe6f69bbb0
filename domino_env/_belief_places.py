"""Where the hidden tiles may have come from, as far as one view tells: what `belief` counts and samples.

Every hidden tile came from a *place*: a hand as dealt, one draw of another seat, the boneyard as it is
now or, in a deal that leaves tiles of the set out, from beside the table. What a seat has seen says which
tiles a place admits:

- a played tile came from its player, and was held after the last pass or draw that its numbers disprove;
- any other tile is where no pass and no draw since has shown that it is not;
- where the highest double opened, no higher tile was dealt.

One thing more may be known that no single place shows (`OPENING`, `HOLDS`): the starter holds a tile above
all others, or the seat to act holds a tile that fits. Seats count from the observer here, as in its view.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ._jit import jit, lowest_bit, popcount
from .rules import RuleSet, option
from .state import DRAW, LARGE, NONE, PLAY, SMALL, Sizes, sizes_for
from .tiles import HIGH, LEFT, LOW, PIPS, SUIT

_U64 = np.uint64
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_HIGHEST_DOUBLE: Final = option("opening", "highest_double")
_BY_OPENING: Final = option("tie_starter", "opening")
_REDEAL: Final = option("no_double", "redeal")

# What is known beside the places (`mode`).
NOTHING: Final = 0
OPENING: Final = 1  # the starter holds the tile that the rules say must open; which, is not known yet
HOLDS: Final = 2  # the seat to act holds a tile that fits

#: Stands for the free tiles where there is no deal.
IMPOSSIBLE: Final = np.uint64(2**64 - 1)

# Entries of the table of counts, by size class: 2 MiB and 8 MiB, of which only what is used is ever touched.
_ENTRIES: Final = {SMALL: 1 << 18, LARGE: 1 << 20}

#: What compiled functions know of one view's hidden tiles: an array of one record.
Work: TypeAlias = npt.NDArray[np.void]


def _work_dtype(sizes: Sizes) -> np.dtype[np.void]:
    s, tiles, _ = sizes
    places = tiles + 4  # hands, draws, the boneyard, what is not in the deal
    fields: list[Any] = [
        ("ways", np.float64),  # consistent deals; 0 where they are too many to be counted
        ("exact", np.int64),  # whether the counts fit the table; if not, deals come from a walk
        ("limit", np.int64),  # entries of the table that may be used
        ("mode", np.int64),
        ("forced", np.int64),  # the tile that had to open, or NONE
        ("num_places", np.int64),
        ("num_tiles", np.int64),  # tiles that have more than one place
        ("num_groups", np.int64),
        ("num_states", np.int64),  # of the table: the product of each group's room + 1
        ("num_plays", np.int64),
        ("plays", np.int64, (tiles,)),  # the round's plays, as action ids
        # By place: the hands by seat (the observer's own without room), every draw, the boneyard, the rest.
        ("place_tiles", np.uint64, (places,)),  # tiles it admits
        ("place_known", np.uint64, (places,)),  # tiles that came from there for certain
        ("place_room", np.int64, (places,)),  # for how many others
        ("place_seat", np.int64, (places,)),
        ("place_group", np.int64, (places,)),
        # By tile that has more than one place.
        ("tile", np.int64, (tiles,)),
        ("admits", np.uint64, (2, tiles)),  # groups that admit it: before, after the mode's fact is shown
        ("shows", np.uint64, (tiles,)),  # groups in which it shows it
        ("at", np.int64, (tiles,)),  # the group it was dealt to last
        ("order", np.int64, (tiles,)),
        # By group.
        ("room", np.int64, (places,)),
        ("stride", np.int64, (places,)),
        ("left", np.int64, (places,)),  # of its room, while tiles are put into it
        ("start", np.int64, (places,)),
        ("walked", np.int64),  # whether a walk has made its first steps
        ("rng", np.uint32, (4,)),  # the caller's stream, while a deal is drawn
        # The last deal: hands by seat from the observer, and what `restart` writes to records.
        ("hands", np.uint64, (s,)),
        ("line", np.uint8, (tiles,)),
        ("deck", np.uint8, (tiles,)),
        ("bottom", np.int64),
        ("seed", np.uint32, (4,)),
        # The ways to place what is left, by room left: with the mode's fact shown, then not yet.
        ("table", np.float64, (_ENTRIES[sizes],)),
    ]
    return np.dtype(fields, align=True)


_DTYPES: Final = {sizes: _work_dtype(sizes) for sizes in (SMALL, LARGE)}


def new_work(rules: RuleSet, limit: int | None = None) -> Work:
    """Room for what `prepare` finds out, one view at a time; `limit` (for tests) is the most counts it may keep."""
    dtype = _DTYPES[sizes_for(rules)]
    work = np.zeros(dtype.itemsize, np.uint8).view(dtype)  # pages that are never written to cost nothing
    most = _ENTRIES[sizes_for(rules)]
    work["limit"] = most if limit is None else min(limit, most)
    return work


@jit
def rank_of(tile: int) -> int:
    """What the highest tile opens by: doubles before all others, then pips, then the higher half."""
    return int(10 * PIPS[tile] + HIGH[tile] + (1000 if HIGH[tile] == LOW[tile] else 0))


@jit
def _up_to(rank: int, tiles: int) -> Any:
    """The tiles of the set of no higher rank."""
    found = _ZERO
    for tile in range(tiles):
        if rank_of(tile) <= rank:
            found |= _ONE << _U64(tile)
    return found


@jit
def opened_by_rule(view: Any, rules: Any) -> bool:
    """Whether the holder of the highest double opened, as far as the view tells.

    It does not say so itself; where it leaves that open, the rules of the round's number and multiplier stand.
    """
    if rules["opening"] != _HIGHEST_DOUBLE:
        return False
    if view["num_events"] == 0 and view["to_act"] == 0 and popcount(view["hand"]) > 1:
        return popcount(view["legal"][0]) == 1
    if view["round"] == 0:
        return True
    return bool(rules["tie_starter"] == _BY_OPENING and view["multiplier"] > 1)


@jit
def _read_events(view: Any, rules: Any, work: Any) -> Any:
    """Find each place's tiles and room from the events, last one first; the tiles that are hidden now."""
    players, events = int(rules["players"]), int(view["num_events"])
    set_of_tiles = (_ONE << _U64(rules["tiles"])) - _ONE
    hidden = set_of_tiles & ~_U64(view["hand"])
    draws, plays = 0, 0
    for i in range(events):
        event: Any = np.int64(view["events"][i])
        if event & 3 == DRAW:
            draws += 1
        elif event & 3 == PLAY:
            work["plays"][plays] = 2 * (event >> 7) + (event >> 2 & 1)
            plays += 1
    work["num_plays"] = plays
    last = draws - 1
    for seat in range(players):
        hidden &= ~view["placed"][seat]
    for seat in range(players):  # the hands, as they are now until the events are taken back
        work["place_tiles"][seat] = hidden if seat else _ZERO
        work["place_room"][seat] = view["counts"][seat] if seat else 0
        work["place_known"][seat] = _ZERO if seat else view["hand"]
        work["place_seat"][seat] = seat
    left, right = int(view["left"]), int(view["right"])
    for i in range(events - 1, -1, -1):
        event = np.int64(view["events"][i])
        kind, seat, tile = event & 3, event >> 3 & 15, event >> 7
        if kind == PLAY:
            bit = _ONE << _U64(tile)
            if seat == 0:
                work["place_known"][0] |= bit
            else:
                work["place_room"][seat] += 1
                work["place_tiles"][seat] |= bit
            if i and event >> 2 & 1 == LEFT:
                left = HIGH[tile] + LOW[tile] - left
            elif i:
                right = HIGH[tile] + LOW[tile] - right
            continue
        fits = SUIT[left] | SUIT[right]
        if kind == DRAW:
            draws -= 1
            place = players + draws
            work["place_seat"][place] = seat
            work["place_room"][place] = 1 if seat else 0
            work["place_known"][place] = _ZERO if seat else _ONE << _U64(tile)
            work["place_tiles"][place] = work["place_tiles"][seat]
            if seat == 0:
                work["place_known"][0] &= ~(_ONE << _U64(tile))
            else:
                work["place_room"][seat] -= 1
                if draws == last and view["drawer"] == seat:
                    work["place_tiles"][place] &= fits
        work["place_tiles"][seat] &= ~fits
    return hidden


@jit
def find_places(view: Any, rules: Any, work: Any, by_rule: bool) -> Any:
    """Find all places, and the mode; the tiles that came from them."""
    players = int(rules["players"])
    hidden = _read_events(view, rules, work)
    boneyard = players
    for i in range(view["num_events"]):
        if view["events"][i] & 3 == DRAW:
            boneyard += 1
    out = popcount(hidden) - int(view["boneyard"])
    for seat in range(1, players):
        out -= int(view["counts"][seat])
    work["place_room"][boneyard] = view["boneyard"]
    work["place_room"][boneyard + 1] = out
    for place in range(boneyard, boneyard + 2):
        work["place_tiles"][place] = hidden
        work["place_known"][place] = _ZERO
        work["place_seat"][place] = NONE
    work["num_places"] = boneyard + 2
    work["mode"] = NOTHING
    work["forced"] = NONE
    if view["num_events"] == 0:
        if by_rule and view["starter"] == 0:
            work["forced"] = lowest_bit(view["legal"][0])
        elif by_rule:
            work["mode"] = OPENING
    else:
        if by_rule:
            work["forced"] = work["plays"][0] >> 1
        if view["to_act"] != 0 and view["drawer"] == NONE:
            work["mode"] = HOLDS
    for seat in range(1, players):
        hidden |= view["placed"][seat]
    return hidden


@jit
def keep_no_higher(rules: Any, work: Any) -> bool:
    """No hand was dealt a higher tile than the one that had to open; whether the observer's bears that out."""
    tile = int(work["forced"])
    if rules["no_double"] == _REDEAL and HIGH[tile] != LOW[tile]:
        return False
    allowed = _up_to(rank_of(tile), rules["tiles"])
    for seat in range(rules["players"]):
        work["place_tiles"][seat] &= allowed
    return bool(work["place_known"][0] & ~allowed == _ZERO)


@jit
def settle_certain(work: Any, free: Any) -> Any:
    """Put tiles that have one place there, until each has several; those tiles. IMPOSSIBLE: one has no place."""
    again = True
    while again:
        again = False
        rest = free
        while rest:
            tile = _U64(lowest_bit(rest))
            rest &= rest - _ONE
            options, only = 0, 0
            for place in range(work["num_places"]):
                if work["place_room"][place] > 0 and work["place_tiles"][place] >> tile & _ONE:
                    options, only = options + 1, place
            if options == 0:
                return IMPOSSIBLE
            if options == 1:
                work["place_known"][only] |= _ONE << tile
                work["place_room"][only] -= 1
                free &= ~(_ONE << tile)
                again = True
    return free


@jit
def holds_certainly(view: Any, rules: Any, work: Any) -> bool:
    """Whether a tile whose place is certain shows that the seat to act holds one that fits."""
    fits = SUIT[view["left"]] | SUIT[view["right"]]
    for seat in range(rules["players"]):
        fits &= ~view["placed"][seat]
    for place in range(work["num_places"]):
        if work["place_seat"][place] == view["to_act"] and work["place_known"][place] & fits:
            return True
    return False


@jit
def rooms_match(work: Any, free: Any) -> bool:
    """Whether there is room for exactly the free tiles."""
    room = 0
    for place in range(work["num_places"]):
        if work["place_room"][place] < 0:
            return False
        room += work["place_room"][place]
    return bool(room == popcount(free))
