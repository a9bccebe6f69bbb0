"""How many deals put the hidden tiles where they may be: the table that exact sampling reads.

Places that admit the same tiles make a group. Tiles are put, one after the other, into the groups' rooms. In how
many ways the rest can still be placed depends on the rooms left alone, which are one number in mixed radix, and on
whether the fact of the mode (`_belief_places`) is shown yet. A deal is drawn tile by tile, in proportion.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ._belief_places import (
    HOLDS,
    IMPOSSIBLE,
    NOTHING,
    OPENING,
    find_places,
    holds_certainly,
    keep_no_higher,
    opened_by_rule,
    rank_of,
    rooms_match,
    settle_certain,
)
from ._belief_walk import match, walk
from ._jit import jit, lowest_bit
from ._rng import next_u32
from .rules import option
from .state import NONE
from .tiles import HIGH, LOW, SUIT

_U64 = np.uint64
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_REDEAL: Final = option("no_double", "redeal")


@jit
def _role(view: Any, work: Any, place: int) -> int:
    """What sets a place apart in this mode, beside the tiles that it admits."""
    seat = work["place_seat"][place]
    if work["mode"] == HOLDS:
        return 1 if seat == view["to_act"] else 0
    if work["mode"] == OPENING and seat != NONE:
        return 1 if seat == view["starter"] else 2
    return 0


@jit
def _form_groups(view: Any, work: Any, free: Any) -> float:
    """Find the groups, their rooms and strides; in how many ways groups fill their places."""
    groups, splits, states = 0, 1.0, 1
    for place in range(work["num_places"]):
        work["place_group"][place] = NONE
        room = work["place_room"][place]
        if room == 0:
            continue
        for other in range(place):
            group = work["place_group"][other]
            if (
                group != NONE
                and (work["place_tiles"][place] ^ work["place_tiles"][other]) & free == _ZERO
                and _role(view, work, place) == _role(view, work, other)
            ):
                work["place_group"][place] = group
                break
        group = work["place_group"][place]
        if group == NONE:
            group = groups
            groups += 1
            work["place_group"][place] = group
            work["room"][group] = 0
        for _ in range(room):
            work["room"][group] += 1
        for k in range(1, room + 1):  # each step a whole number
            splits = splits * (work["room"][group] - room + k) / k
    for group in range(groups):
        work["stride"][group] = states
        # More states than can be kept are not counted on, lest the number overflow.
        states = min(states * (work["room"][group] + 1), 1 << 40)
    work["num_groups"], work["num_states"] = groups, states
    return splits


@jit
def _admit(view: Any, rules: Any, work: Any, free: Any) -> None:
    """Write for each free tile the groups that admit it; where it matters, from the highest tile down."""
    fits = SUIT[view["left"]] | SUIT[view["right"]] if work["mode"] == HOLDS else _ZERO
    highest = -1
    if work["mode"] == OPENING:
        hand = view["hand"]
        while hand:
            highest = max(highest, rank_of(lowest_bit(hand)))
            hand &= hand - _ONE
    count = 0
    while free:
        tile = lowest_bit(free)
        if work["mode"] == OPENING:
            rest = free
            while rest:
                if rank_of(lowest_bit(rest)) > rank_of(tile):
                    tile = lowest_bit(rest)
                rest &= rest - _ONE
        free &= ~(_ONE << _U64(tile))
        groups, shows, unseen = _ZERO, _ZERO, _ZERO
        for place in range(work["num_places"]):
            group = work["place_group"][place]
            if group == NONE or not work["place_tiles"][place] >> _U64(tile) & _ONE:
                continue
            bit = _ONE << _U64(group)
            role = _role(view, work, place)
            groups |= bit
            if role == 1 and (work["mode"] == OPENING or fits >> _U64(tile) & _ONE):
                shows |= bit
            if role == 0:
                unseen |= bit
        work["tile"][count] = tile
        work["admits"][1, count] = groups
        work["admits"][0, count] = groups
        work["shows"][count] = shows
        if work["mode"] == HOLDS:  # a played tile is not held any more
            for seat in range(rules["players"]):
                if view["placed"][seat] >> _U64(tile) & _ONE:
                    work["shows"][count] = _ZERO
        elif work["mode"] == OPENING:  # until the starter has been given the highest, all is still in the boneyard
            if rules["no_double"] == _REDEAL and HIGH[tile] != LOW[tile]:
                shows = _ZERO
            work["shows"][count] = shows
            work["admits"][0, count] = unseen | shows if rank_of(tile) > highest else _ZERO
        count += 1
    work["num_tiles"] = count


@jit
def _count(work: Any) -> float:
    """Fill the table; the ways to fill all rooms."""
    table, stride, room, digit = work["table"], work["stride"], work["room"], work["left"]
    states, tiles = int(work["num_states"]), int(work["num_tiles"])
    shown_only = work["mode"] == NOTHING
    for group in range(work["num_groups"]):
        digit[group] = 0
    table[0] = 1.0
    if not shown_only:
        table[states] = 0.0
    to_place = 0
    for index in range(1, states):
        group = 0
        while digit[group] == room[group]:
            to_place -= digit[group]
            digit[group] = 0
            group += 1
        digit[group] += 1
        to_place += 1
        tile = tiles - to_place
        ways = 0.0
        options = work["admits"][1, tile]
        while options:
            group = lowest_bit(options)
            options &= options - _ONE
            if digit[group]:
                ways += table[index - stride[group]]
        table[index] = ways
        if shown_only:
            continue
        ways = 0.0
        options, shows = work["admits"][0, tile], work["shows"][tile]
        while options:
            group = lowest_bit(options)
            options &= options - _ONE
            if digit[group]:
                shown = shows >> _U64(group) & _ONE
                ways += table[index - stride[group] + (0 if shown else states)]
        table[states + index] = ways
    return float(table[states - 1 if shown_only else 2 * states - 1])


@jit
def _weigh(work: Any, splits: float) -> bool:
    """Count the deals, or find one where they are too many; whether there is any."""
    work["walked"] = 0
    needed = work["num_states"] * (1 if work["mode"] == NOTHING else 2)
    work["exact"] = 1 if needed <= work["limit"] or work["mode"] == OPENING else 0  # that one always fits
    if work["exact"]:
        work["ways"] = _count(work) * splits
        return bool(work["ways"] > 0)
    work["ways"] = 0.0
    return bool(match(work, work["mode"] != NOTHING))


@jit
def prepare(view: Any, rules: Any, work: Any) -> bool:
    """Find out from a view, events included, what `deal` needs; whether any deal is consistent with it.

    The round must not be over. Where the view would fit a first round opened by the rules, but no such deal
    is consistent, it was opened freely (`Game.from_deal` can do that).
    """
    by_rule = opened_by_rule(view, rules)
    while True:
        free = find_places(view, rules, work, by_rule)
        fits = work["forced"] == NONE or keep_no_higher(rules, work)
        if fits and work["mode"] != OPENING:  # there no tile is certain before it is known which opens
            free = settle_certain(work, free)
        if fits and free != IMPOSSIBLE and rooms_match(work, free):
            if work["mode"] == HOLDS and holds_certainly(view, rules, work):
                work["mode"] = NOTHING
            splits = _form_groups(view, work, free)
            _admit(view, rules, work, free)
            if _weigh(work, splits):
                return True
        if not by_rule:
            return False
        by_rule = False


@jit
def find_shares(work: Any, reach: Any, shares: Any) -> None:
    """Write the probability that free tile i is in group g to ``shares[i, g]``, from a table that was filled.

    `reach` has the table's size, all zeros.
    """
    table, stride, room, digit = work["table"], work["stride"], work["room"], work["left"]
    states, groups = int(work["num_states"]), int(work["num_groups"])
    both = 0 if work["mode"] == NOTHING else 1
    reach[states - 1 + both * states] = 1.0
    for group in range(groups):
        digit[group] = room[group]
    placed = 0
    for index in range(states - 1, 0, -1):
        for shown in range(1, -both, -1):
            start = index + (1 - shown) * states
            if reach[start] == 0.0:
                continue
            options = work["admits"][shown, placed]
            while options:
                group = lowest_bit(options)
                options &= options - _ONE
                if digit[group]:
                    unseen = shown == 0 and work["shows"][placed] >> _U64(group) & _ONE == _ZERO
                    after = index - stride[group] + (states if unseen else 0)
                    share = reach[start] * table[after] / table[start]
                    reach[after] += share
                    shares[placed, group] += share
        group = 0
        while digit[group] == 0:
            placed -= room[group]
            digit[group] = room[group]
            group += 1
        digit[group] -= 1
        placed += 1


@jit
def _uniform(stream: Any) -> float:
    """A number from 0 to below 1."""
    high = np.int64(next_u32(stream)) >> 5
    low = np.int64(next_u32(stream)) >> 6
    return (high * 67108864.0 + low) / 9007199254740992.0


@jit
def choose_groups(work: Any, stream: Any) -> None:
    """Deal the free tiles to groups (`at`), every deal as likely as any."""
    if not work["exact"]:
        walk(work, work["mode"] != NOTHING, stream)
        return
    table, stride, room = work["table"], work["stride"], work["left"]
    states = int(work["num_states"])
    index = states - 1
    unseen = work["mode"] != NOTHING
    for group in range(work["num_groups"]):
        room[group] = work["room"][group]
    for tile in range(work["num_tiles"]):
        options = work["admits"][0 if unseen else 1, tile]
        shows = work["shows"][tile]
        if options & (options - _ONE) == _ZERO:
            chosen = lowest_bit(options)
        else:
            rest = _uniform(stream) * table[index + (states if unseen else 0)]
            chosen = NONE
            while options and rest >= 0.0:
                group = lowest_bit(options)
                options &= options - _ONE
                if room[group] == 0:
                    continue
                still = unseen and shows >> _U64(group) & _ONE == _ZERO
                ways = table[index - stride[group] + (states if still else 0)]
                if ways > 0.0:  # the last of these stands where rounding exceeds the sum
                    chosen = group
                    rest -= ways
        unseen = unseen and shows >> _U64(chosen) & _ONE == _ZERO
        room[chosen] -= 1
        index -= stride[chosen]
        work["at"][tile] = chosen
