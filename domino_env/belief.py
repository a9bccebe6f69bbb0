"""What a seat can believe: the deals that are consistent with its view, counted and sampled exactly.

`Belief` is for people. Compiled players use its parts, one `Work` for each thread::

    work = new_work(rules)                # once
    prepare(view, rules, work)            # for each view, events included
    deal(work, view, rules, stream, dealt, now)

`deal` writes one deal as it lay at the start of the round, and the position that the round's plays lead to.
To play it again move by move, for example to weigh it by how likely its players would have moved so::

    restart(work, view, rules, row)
    for i in range(work["num_plays"]):
        ...                               # `row` stands before the move
        play(row, rules, work["plays"][i])

Where every tile is in a hand, `exchange` makes the last deal into another one that is nearly the same.

Every deal is as likely as any other that gives the seat the same view: no conclusions are drawn from what
others chose to play. Deals are counted in a table with room for every position of the presets (2**18 counts,
and 2**20 where more than four seats or larger sets are played). Where it is too small (many seats that lack
different numbers, or many draws under different ends), deals come from a random walk, which visits each as
often in the long run, and are not counted.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ._belief_count import choose_groups, find_shares, prepare
from ._belief_places import OPENING, Work, new_work
from ._checks import whole
from ._jit import jit, popcount
from ._rng import below, next_u32
from .events import View
from .game import check_rules
from .kernel import find_opening, is_legal, open_round, play
from .observation import Views, look_many, new_views, possible_tiles
from .players import Streams
from .rules import RuleSet, pack
from .state import DRAW, HIDDEN, NONE, PASS, State, new_state
from .tiles import TILE_NAMES

__all__ = ["Belief", "Work", "deal", "exchange", "new_work", "prepare", "put_back", "replay", "restart"]

_U64 = np.uint64
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_BELIEF: int = 4  # what random numbers are for, where they come from a seed: `_rng.seed_streams`


@jit
def _shuffle(tiles: Any, start: int, stop: int, stream: Any) -> None:
    for i in range(stop - 1, start, -1):
        j = start + below(stream, i - start + 1)
        tiles[i], tiles[j] = tiles[j], tiles[i]


@jit
def _line_up(work: Any, stream: Any) -> None:
    """Line up the tiles by group; of groups with several places, in random order."""
    end = 0
    for group in range(work["num_groups"]):
        work["start"][group] = end
        work["left"][group] = end
        end += work["room"][group]
    for tile in range(work["num_tiles"]):
        group = work["at"][tile]
        work["line"][work["left"][group]] = work["tile"][tile]
        work["left"][group] += 1
    shuffled = _ZERO
    for place in range(work["num_places"]):
        group = work["place_group"][place]
        if group == NONE or work["place_room"][place] == work["room"][group]:
            continue
        if not shuffled >> _U64(group) & _ONE:
            shuffled |= _ONE << _U64(group)
            start = work["start"][group]
            _shuffle(work["line"], start, start + work["room"][group], stream)


@jit
def _take(work: Any, place: int) -> Any:
    """The tiles of a place, the next of its group's line among them."""
    tiles = work["place_known"][place]
    group = work["place_group"][place]
    if group != NONE:
        for _ in range(work["place_room"][place]):
            tiles |= _ONE << _U64(work["line"][work["start"][group]])
            work["start"][group] += 1
    return tiles


@jit
def _put(work: Any, at: int, tiles: Any) -> int:
    """Write tiles to the deck from position `at`; the position after them."""
    while tiles:
        lowest = tiles & (~tiles + _ONE)
        work["deck"][at] = popcount(lowest - _ONE)
        tiles ^= lowest
        at += 1
    return at


@jit
def _put_hands(work: Any, players: int, observer: int) -> int:
    """Write the hands to the deck, by seat at the table; the position after them."""
    at = 0
    for seat in range(players):
        at = _put(work, at, work["hands"][seat - observer if seat >= observer else seat - observer + players])
    return at


@jit
def _lay_out(work: Any, view: Any, rules: Any, stream: Any) -> None:
    """Lay the deck as the kernel does: hands by seat, then what was drawn, then the boneyard (and what is left out)."""
    players, observer, last = int(rules["players"]), int(view["seat"]), int(work["num_places"]) - 1
    _line_up(work, stream)
    for seat in range(players):
        work["hands"][seat] = _take(work, seat)
    at = _put_hands(work, players, observer)
    for place in range(players, last):
        at = _put(work, at, _take(work, place))
    work["bottom"] = at
    _put(work, at, _take(work, last))
    _shuffle(work["deck"], at - int(view["boneyard"]), at, stream)
    for i in range(4):
        work["seed"][i] = next_u32(stream)


@jit
def _ties(rules: Any, multiplier: int) -> int:
    """How many tied rounds in a row gave this multiplier, at least."""
    factor, ties = int(rules["tie_multiplier"]), 0
    while factor > 1 and multiplier >= factor:
        multiplier //= factor
        ties += 1
    return ties


@jit
def restart(work: Any, view: Any, rules: Any, row: Any) -> None:
    """Write the last deal to `row`, as it lay before the first play."""
    players, sides, observer = int(rules["players"]), int(rules["sides"]), int(view["seat"])
    for i in range(rules["tiles"]):
        row["deck"][i] = work["deck"][i]
    for i in range(4):
        row["rng"][i] = work["seed"][i]
    seat, top = observer, 0
    for relative in range(players):
        row["hands"][seat] = work["hands"][relative]
        top += popcount(work["hands"][relative])
        seat = seat + 1 if seat + 1 < players else 0
    row["top"] = top
    row["bottom"] = work["bottom"]
    side = observer % sides
    for relative in range(sides):
        row["scores"][side] = view["scores"][relative]
        row["rewards"][side] = 0.0
        side = side + 1 if side + 1 < sides else 0
    row["round"] = view["round"]
    row["ties"] = _ties(rules, view["multiplier"])
    row["over"] = 0
    row["winner"] = NONE
    starter = int(view["starter"] + observer) % players
    row["next_starter"] = starter
    forced = int(work["forced"])
    if work["mode"] == OPENING:
        forced = find_opening(row, rules)[1]
    open_round(row, rules, starter, forced, view["multiplier"])


@jit
def replay(work: Any, rules: Any, row: Any) -> bool:
    """Play on a restarted `row` all that the view has seen played; False where that is illegal under these rules."""
    for i in range(work["num_plays"]):
        action = work["plays"][i]
        if row["seat"] == NONE or not is_legal(row, rules, action):
            return False
        play(row, rules, action)
    return True


@jit
def deal(work: Any, view: Any, rules: Any, stream: Any, dealt: Any, now: Any) -> bool:
    """Write a consistent deal to two records: to `dealt` before the first play, to `now` as the round stands.

    `work` is what `prepare` found out from `view`, where that is True. All randomness is from `stream` (uint32,
    (4,)), the records' own streams too. Seats in the records are those at the table. One try is always enough:
    False only for a view that is not one of these rules.
    """
    inner = work["rng"]  # numba counts references to an array at each call, but not to a part of a record
    for i in range(4):
        inner[i] = stream[i]
    choose_groups(work, inner)
    _lay_out(work, view, rules, inner)
    for i in range(4):
        stream[i] = inner[i]
    restart(work, view, rules, dealt)
    restart(work, view, rules, now)
    return replay(work, rules, now)


@jit
def _nth_tile(tiles: Any, n: int) -> Any:
    """The n-th of some tiles, as a set of one."""
    for _ in range(n):
        tiles &= tiles - _ONE
    return tiles & (~tiles + _ONE)


@jit
def put_back(work: Any, view: Any, rules: Any, hands: Any) -> None:
    """Make the last deal the one with these hands, counted from the observer, in which all tiles are."""
    for seat in range(rules["players"]):
        work["hands"][seat] = hands[seat]
    _put_hands(work, int(rules["players"]), int(view["seat"]))


@jit
def exchange(work: Any, view: Any, rules: Any, stream: Any, hands: Any) -> bool:
    """Write to `hands` those of the last deal, with a tile of one hidden hand exchanged for one of another.

    Hands are counted from the observer. All pairs of tiles that are not yet played are equally likely, and so is the
    way back. False where the two seats cannot hold the tiles. For rules without a boneyard, and three seats or more.
    """
    others = int(rules["players"]) - 1
    one = 1 + below(stream, others)
    other = 1 + below(stream, others - 1)
    other += other >= one
    for seat in range(rules["players"]):
        hands[seat] = work["hands"][seat]
    own, its = hands[one] & ~view["placed"][one], hands[other] & ~view["placed"][other]
    given = _nth_tile(own, below(stream, popcount(own)))
    taken = _nth_tile(its, below(stream, popcount(its)))
    hands[one] ^= given | taken
    hands[other] ^= given | taken
    fits = possible_tiles(view, rules, one) & taken != _ZERO and possible_tiles(view, rules, other) & given != _ZERO
    return bool(fits)


@jit
def _deal_many(work: Any, views: Any, rules: Any, streams: Any, which: int, dealt: Any, state: Any) -> bool:
    made, n = 0, state.shape[0]
    while made < n and deal(work[0], views[0], rules[0], streams[which], dealt[0], state[made]):
        made += 1
    return bool(made == n)


class Belief:
    """What one seat can know of the hidden tiles in a round that is being played.

    Args:
        rules: the rules.
        view: what the seat has seen: a `View`, or one record of `observation.Views` with its events.

    Attributes:
        seat: whose belief it is.
        exact: whether the deals could be counted, as always for the presets; see the module.

    Raises:
        ValueError: the round is over (all hands are shown), or the view is not one of these rules: no deal
            leads to it, which cannot happen to a view from play.
    """

    def __init__(self, rules: RuleSet, view: View | Views) -> None:
        self.rules = check_rules(rules)
        self._view = _checked(rules, view)
        self._work, self._packed = new_work(rules), pack(rules)
        self.seat = int(self._view[0]["seat"])
        if not prepare(self._view[0], self._packed[0], self._work[0]) or not self._leads_to_view():
            raise ValueError("no deal leads to this view: it is not one of a round under these rules")
        self.exact = bool(self._work[0]["exact"])

    def _leads_to_view(self) -> bool:
        state, seen = new_state(self.rules, 1), new_views(self.rules, 1)
        if not self._deal(state, Streams.from_seed(0, 1, purpose=_BELIEF)):
            return False
        look_many(state, self._packed, np.zeros(1, np.int64), np.array([self.seat]), seen)
        return all(np.array_equal(_used(seen, name), _used(self._view, name)) for name in seen.dtype.names or ())

    def _deal(self, state: State, streams: Streams) -> bool:
        dealt, which = new_state(self.rules, 1), int(streams.index[0])
        return bool(_deal_many(self._work, self._view, self._packed, streams.states, which, dealt, state))

    @cached_property
    def count(self) -> int:
        """The number of consistent deals: the tiles of each hand as dealt, each tile drawn, and those left.

        The order of the tiles in a hand and of those still in the boneyard makes no other deal. Exact up to
        2**53, correct to 12 digits beyond.

        Raises:
            ValueError: they are too many to be counted (`exact` is False).
        """
        self._need_counts()
        return int(self._work[0]["ways"])

    @cached_property
    def _marginals(self) -> npt.NDArray[np.float64]:
        self._need_counts()
        work, view, players = self._work[0], self._view[0], self.rules.players
        shares = np.zeros((self.rules.num_tiles, max(1, int(work["num_groups"]))))
        find_shares(work, np.zeros(2 * int(work["num_states"])), shares)
        found = np.zeros((players + 1, self.rules.num_tiles))
        free = work["tile"][: work["num_tiles"]]
        for place in range(int(work["num_places"]) - 1):
            seat = int(work["place_seat"][place])
            row = found[players if seat == NONE else (seat + self.seat) % players]
            known = int(work["place_known"][place])
            row += np.array([known >> tile & 1 for tile in range(self.rules.num_tiles)])
            if (group := int(work["place_group"][place])) != NONE:
                row[free] += shares[: len(free), group] * work["place_room"][place] / work["room"][group]
        played = int(np.bitwise_or.reduce(view["placed"]))
        found[:, [tile for tile in range(self.rules.num_tiles) if played >> tile & 1]] = 0.0
        return found

    def marginals(self) -> npt.NDArray[np.float64]:
        """The probability that each seat, or in the last row the boneyard, holds each tile now: (seats + 1, tiles).

        Seats as at the table; columns by tile index. Played tiles are zeros.

        Raises:
            ValueError: `exact` is False.
        """
        return self._marginals.copy()

    def possible(self, seat: int) -> list[str]:
        """The tiles that `seat` holds in some consistent deal.

        Raises:
            ValueError: no such seat, or `exact` is False.
        """
        held = self._marginals[whole("seat", seat, 0, self.rules.players - 1)]
        return [TILE_NAMES[tile] for tile in np.flatnonzero(held).tolist()]

    def sample(self, n: int, seed: int | Streams | None = None) -> State:
        """`n` positions that the seat could not tell from its own, each from a deal as likely as any.

        Args:
            n: how many.
            seed: what they follow from; None takes fresh entropy. `Streams` of one stream are drawn from.

        Returns:
            Records as in `state.py`, newly allocated. ``deck`` holds the deal: hands by seat, then the
            boneyard in the order that it was drawn and is yet to be drawn.

        Raises:
            ValueError: a negative `n`, a wrong seed, more or less than one stream.
        """
        streams = seed if isinstance(seed, Streams) else Streams.from_seed(seed, 1, purpose=_BELIEF)
        if len(streams) != 1:
            raise ValueError(f"seed: {len(streams)} streams given; a belief draws from one")
        state = new_state(self.rules, whole("n", n, 0))
        self._deal(state, streams)
        return state

    def _need_counts(self) -> None:
        if not self.exact:
            raise ValueError("the deals that lead to this view are too many to be counted; take samples")

    def __repr__(self) -> str:
        number = f"{self.count} deals" if self.exact else "too many deals to count"
        return f"<Belief of seat {self.seat}: {number}>"


def _used(views: Views, name: str) -> Any:
    """A field of one view, as far as it is written."""
    value = views[0][name]
    return value[: views[0]["num_events"]] if name == "events" else value


def _checked(rules: RuleSet, view: Any) -> Views:
    """One view in an array of its own, if compiled code may read it; ValueError where it may not."""
    own, players = new_views(rules, 1), rules.players
    if isinstance(view, View):
        if view.rules != rules:
            raise ValueError("view: it is of a round under other rules")
        view = view.record
    given = np.asarray(view)
    if given.dtype != own.dtype:
        raise ValueError(f"view is of {type(view).__name__}, not a View or an observation.Views record of these rules")
    if given.size != 1:
        raise ValueError(f"view: {given.size} records given; a belief is of one")
    own[0] = given.reshape(1)[0]
    seen = own[0]
    if seen["to_act"] == NONE:
        raise ValueError("view: the round is over, and its hands are shown to all")
    events = seen["events"][: max(0, int(seen["num_events"]))].astype(np.int64)
    kinds, tiles = events & 3, events >> 7
    seats = [seen[name] for name in ("seat", "to_act", "starter")] + [*(events >> 3 & 15)]
    masks = [seen["hand"], *seen["placed"]]
    fits = [
        all(0 <= seat < players for seat in seats),
        0 <= seen["num_events"] <= len(seen["events"]),
        all(int(mask) < 1 << rules.num_tiles for mask in masks),
        bool((kinds <= PASS).all() and ((tiles < rules.num_tiles) | ((kinds != 0) & (tiles == HIDDEN))).all()),
        rules.draw != "none" or not (kinds == DRAW).any(),
        (kinds == DRAW).sum() <= rules.num_tiles - players,
        len(events) == 0 or (kinds[0] == 0 and rules.max_pip >= max(seen["left"], seen["right"]) >= 0),
        (kinds == 0).sum() == sum(int(mask).bit_count() for mask in seen["placed"]) <= rules.num_tiles,
        bool((seen["counts"][:players] > 0).all() and not seen["counts"][players:].any() and seen["boneyard"] >= 0),
        not seen["placed"][players:].any(),
    ]
    if not all(fits):
        raise ValueError("no deal leads to this view: it is not one of a round under these rules")
    return own
