"""What a seat knows (`Views`), and that as a flat vector of zeros and ones (`Encoding`).

Information flows one way: `look` copies from a table what one seat may know into a view;
`encode` and every player read views alone. Seats in a view count from the observer: 0 is the
observer, 1 the next in turn, with four seats 2 is opposite (the partner, in pairs). Sides likewise.

A vector is a sequence of named slices, declared once in `Encoding`; docs/observation.md is
generated from it. Each entry is 0 or 1: sets of tiles and numbers as they are, a number or seat as
one-hot, a count n of at most m as n ones and m−n zeros.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ._jit import jit, jit_inline, lowest_bit, popcount
from .rules import RuleSet, option, pack
from .state import DRAW, HIDDEN, LARGE, NONE, SMALL, Sizes, sizes_for
from .tiles import SUIT

#: Rises when the meaning of a slice changes, so that a trained network is never fed another's input.
ENCODING_VERSION: Final = 1
_TIE_STEPS: Final = 4
_DRAW_NONE: Final = option("draw", "none")

_U64 = np.uint64
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_SIX = np.uint64(6)
_LOW6 = np.uint64(63)
_BYTE = np.uint64(255)
_NIBBLE = np.uint64(15)

_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
# _EXPAND[b]: the 8 bits of b as 8 bytes. _INTERLEAVE[b]: those of its low and high half in turn.
_EXPAND = np.ascontiguousarray(_BITS).view(np.uint64).reshape(256)
_INTERLEAVE = np.ascontiguousarray(_BITS[:, [0, 4, 1, 5, 2, 6, 3, 7]]).view(np.uint64).reshape(256)

# A vector packed one bit an entry. (A record, because numba counts references to every array it passes on.)
VECTOR: Final = np.dtype([("words", np.uint64, (24,))])

#: An array of views, one record each.
Views: TypeAlias = npt.NDArray[np.void]


def _view_dtype(sizes: Sizes) -> np.dtype[np.void]:
    """What one seat knows. Seats and sides count from the observer."""
    s, _, events = sizes
    fields: list[Any] = [
        ("hand", np.uint64),  # the observer's tiles, a bit a tile
        ("legal", np.uint64, (2,)),  # tiles it may play at the left, at the right end; zeros off turn
        ("placed", np.uint64, (s,)),  # tiles each seat has played
        ("scores", np.int64, (s,)),  # by side
        ("multiplier", np.int64),
        ("seat", np.int32),  # the observer's seat at the table
        ("to_act", np.int32),  # NONE when the round is over
        ("left", np.int32),  # the chain's two open numbers; NONE before the first tile
        ("right", np.int32),
        ("left_owner", np.int32),  # who placed the tile at each end
        ("right_owner", np.int32),
        ("starter", np.int32),
        ("last", np.int32),  # who placed the last tile
        ("drawer", np.int32),  # who has just drawn a tile that it must now play
        ("boneyard", np.int32),  # tiles left to draw
        ("round", np.int32),  # rounds of the match before this one
        ("counts", np.int32, (s,)),  # tiles in each hand
        ("lacks", np.uint16, (2, s)),  # numbers of which a seat, as all can tell, holds none; at most one
        ("num_events", np.int32),
        ("events", np.uint16, (events,)),  # see state.py; tiles that others drew are HIDDEN
    ]
    return np.dtype(fields, align=True)


_DTYPES: Final = {sizes: _view_dtype(sizes) for sizes in (SMALL, LARGE)}


def new_views(rules: RuleSet, n: int) -> Views:
    """Room for `n` views."""
    return np.zeros(n, _DTYPES[sizes_for(rules)])


@jit
def _relative(seat: int, observer: int, players: int) -> int:
    if seat == NONE:
        return NONE
    return seat - observer if seat >= observer else seat - observer + players


@jit
def look(row: Any, rules: Any, seat: int, view: Any) -> None:
    """Write to `view` what `seat` knows, all but the events."""
    players, sides = int(rules["players"]), int(rules["sides"])
    view["seat"] = seat
    view["to_act"] = _relative(row["seat"], seat, players)
    view["left"] = row["left"]
    view["right"] = row["right"]
    view["left_owner"] = _relative(row["left_owner"], seat, players)
    view["right_owner"] = _relative(row["right_owner"], seat, players)
    view["starter"] = _relative(row["starter"], seat, players)
    view["last"] = _relative(row["last"], seat, players)
    view["drawer"] = _relative(row["drawer"], seat, players)
    view["boneyard"] = row["bottom"] - row["top"]
    view["num_events"] = row["num_events"]
    view["round"] = row["round"] - (1 if row["seat"] == NONE else 0)
    view["multiplier"] = row["multiplier"]
    view["hand"] = row["hands"][seat]
    on_turn = row["seat"] == seat
    view["legal"][0] = row["legal"][0] if on_turn else _ZERO
    view["legal"][1] = row["legal"][1] if on_turn else _ZERO
    other = seat
    for relative in range(players):
        view["placed"][relative] = row["placed"][other]
        view["counts"][relative] = popcount(row["hands"][other])
        if row["drawer"] == other:  # the tile it is about to play may carry anything
            view["lacks"][0, relative] = 0
            view["lacks"][1, relative] = row["lacks"][0, other]
        else:
            view["lacks"][0, relative] = row["lacks"][0, other]
            view["lacks"][1, relative] = row["lacks"][1, other]
        other = other + 1 if other + 1 < players else 0
    side = seat % sides
    for relative in range(sides):
        view["scores"][relative] = row["scores"][side]
        side = side + 1 if side + 1 < sides else 0


@jit
def look_events(row: Any, rules: Any, seat: int, view: Any) -> None:
    """Write to `view` the round's events as `seat` has seen them."""
    for i in range(row["num_events"]):
        event: Any = np.int64(row["events"][i])
        actor = event >> 3 & 15
        tile = event >> 7
        if event & 3 == DRAW and actor != seat:
            tile = HIDDEN
        view["events"][i] = event & 7 | _relative(actor, seat, rules["players"]) << 3 | tile << 7


@jit
def look_many(state: Any, rules: Any, tables: Any, seats: Any, views: Any) -> None:
    """Fill `views` one by one: what ``seats[v]`` knows at table ``tables[v]``, events included."""
    for v in range(tables.shape[0]):
        look(state[tables[v]], rules[0], seats[v], views[v])
        look_events(state[tables[v]], rules[0], seats[v], views[v])


@jit
def _put(vector: Any, word: Any, at: int, bits: Any, width: int) -> tuple[Any, int]:
    """Append the low `width` bits to `vector` at position `at`; its unfinished word and the new position.

    Words are kept in a register until they are full: through memory this takes twice the time.
    """
    shift = _U64(at) & _LOW6
    word |= bits << shift
    end = at + width
    if end >> 6 != at >> 6:
        vector["words"][at >> 6] = word
        word = bits >> (_U64(64) - shift)
    return word, end


@jit
def _ones(count: int, width: int) -> Any:
    """`count` one bits, no more than `width` (at most 63)."""
    return (_ONE << _U64(min(count, width))) - _ONE


@jit
def _hot(index: int) -> Any:
    """The bit of an index; none for NONE."""
    return _ONE << _U64(index) if index >= 0 else _ZERO


@jit
def encode(view: Any, rules: Any, vector: Any) -> None:
    """Write a view to `vector` (a `VECTOR` record), slice by slice as `Encoding` declares them."""
    players, sides = int(rules["players"]), int(rules["sides"])
    tiles, numbers = int(rules["tiles"]), int(rules["max_pip"]) + 1
    draws = rules["draw"] != _DRAW_NONE
    ends = _hot(view["left"]) | _hot(view["right"]) << _U64(numbers)
    word, at = _put(vector, _ZERO, 0, view["hand"], tiles)
    word, at = _put(vector, word, at, ends, 2 * numbers)
    for seat in range(players):
        word, at = _put(vector, word, at, view["placed"][seat], tiles)
    for seat in range(1, players):
        word, at = _put(vector, word, at, _U64(view["lacks"][0, seat]), numbers)
    if draws:
        for seat in range(1, players):
            word, at = _put(vector, word, at, _U64(view["lacks"][1, seat]), numbers)
    max_hand = int(rules["max_hand"])
    for seat in range(1, players):
        word, at = _put(vector, word, at, _ones(view["counts"][seat], max_hand), max_hand)
    if draws:
        boneyard_size = int(rules["boneyard_size"])
        word, at = _put(vector, word, at, _ones(view["boneyard"], boneyard_size), boneyard_size)
    s = _U64(players)
    seats = _hot(view["left_owner"]) | _hot(view["right_owner"]) << s
    seats = _hot(view["last"]) | seats << s
    seats = _hot(view["to_act"]) | (_hot(view["starter"]) | seats << s) << s
    word, at = _put(vector, word, at, seats, 5 * players)
    steps = int(rules["score_steps"])
    if steps:
        for side in range(sides):
            word, at = _put(vector, word, at, _ones(score_level(view, rules, side), steps), steps)
        ties = _ones(tie_steps(rules["tie_multiplier"], view["multiplier"]), _TIE_STEPS)
        word, at = _put(vector, word, at, ties, _TIE_STEPS)
    if at & 63:
        vector["words"][at >> 6] = word


@jit
def score_level(view: Any, rules: Any, side: int) -> int:
    """A side's score in steps of the target's part that vectors count."""
    return view["scores"][side] * rules["score_steps"] // rules["target"] if view["scores"][side] else 0


@jit
def tie_steps(factor: int, multiplier: int) -> int:
    """How many times the multiplier has grown by `factor`."""
    steps = 0
    while factor > 1 and multiplier >= factor:
        multiplier //= factor
        steps += 1
    return steps


@jit
def list_moves(view: Any, actions: Any) -> int:
    """Write the legal actions of a view to `actions`, those at the left first; how many there are.

    Where both ends show one number a tile leads to the same position at either, and is listed once, at the left.
    """
    count = 0
    for end in range(2):
        if end == 1 and view["left"] == view["right"]:
            break
        word = view["legal"][end]
        while word:
            actions[count] = 2 * lowest_bit(word) + end
            word &= word - _ONE
            count += 1
    return count


@jit
def possible_tiles(view: Any, rules: Any, seat: int) -> Any:
    """The tiles that another seat (counted from the observer) may hold, as the observer can tell."""
    gone = view["hand"]
    for other in range(rules["players"]):
        gone |= view["placed"][other]
    for number in range(rules["max_pip"] + 1):
        if view["lacks"][0, seat] >> number & 1:
            gone |= SUIT[number]
    return ((_ONE << np.uint64(rules["tiles"])) - _ONE) & ~gone


@jit
def stuck_chance(possible: Any, count: int, fits: Any) -> float:
    """The chance that `count` tiles drawn from `possible` include none of `fits`."""
    total, without = popcount(possible), popcount(possible & ~fits)
    chance = 1.0
    for i in range(count):
        if without <= i:
            return 0.0
        chance *= (without - i) / (total - i)
    return chance


@jit_inline
def expand(vector: Any, out: Any) -> None:
    """Write a vector as zeros and ones to `out`, a row of bytes seen as uint64."""
    for i in range(out.shape[0]):
        out[i] = _EXPAND[vector["words"][i >> 3] >> _U64((i & 7) << 3) & _BYTE]


@jit_inline
def expand_mask(left: Any, right: Any, out: Any) -> None:
    """Write the action mask of legal tiles `left` and `right` to `out`, a row of bytes seen as uint64."""
    for i in range(out.shape[0]):
        shift = _U64(i << 2)
        out[i] = _INTERLEAVE[left >> shift & _NIBBLE | (right >> shift & _NIBBLE) << _U64(4)]


@dataclass(frozen=True)
class Slice:
    """One named part of an observation vector: ``vector[start:stop].reshape(shape)``."""

    name: str
    start: int
    shape: tuple[int, ...]
    meaning: str

    @property
    def stop(self) -> int:
        """One past the last entry."""
        return self.start + int(np.prod(self.shape))


#: Slices as a layout declares them: name, shape and meaning.
Declared: TypeAlias = list[tuple[str, tuple[int, ...], str]]


@dataclass(frozen=True)
class Layout:
    """What the entries of a row mean under `rules`.

    Two rule sets with equal `fingerprint` share the layout and its meaning.
    """

    rules: RuleSet

    multiple: ClassVar[int] = 1  # the size is one of it

    @property
    def version(self) -> int:
        """Rises when the meaning of a slice changes."""
        raise NotImplementedError  # each kind of layout has its own

    def _declared(self) -> Declared:
        """The slices in order; those of no entries are left out."""
        raise NotImplementedError  # each layout declares its own

    @cached_property
    def slices(self) -> dict[str, Slice]:
        """The named slices in order, by name."""
        found: dict[str, Slice] = {}
        start = 0
        for name, shape, meaning in self._declared():
            if np.prod(shape):
                found[name] = Slice(name, start, shape, meaning)
                start = found[name].stop
        if rest := -start % self.multiple:
            found["padding"] = Slice(
                "padding", start, (rest,), f"always 0; makes the size a multiple of {self.multiple}"
            )
        return found

    @cached_property
    def size(self) -> int:
        """Entries of a row, a multiple of `multiple`."""
        return max(part.stop for part in self.slices.values())

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the layout and its version; stored with trained weights and compared on loading."""
        text = repr((self.version, self.rules.target, [(s.name, s.start, s.shape) for s in self.slices.values()]))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Encoding(Layout):
    """The layout of observation vectors under `rules`.

    Vectors are int8, shape ``(size,)``, every entry 0 or 1. Two rule sets with equal `fingerprint`
    share the layout and its meaning.
    """

    multiple: ClassVar[int] = 8

    @property
    def version(self) -> int:
        """As all layouts have it."""
        return ENCODING_VERSION

    def _declared(self) -> Declared:
        rules = self.rules
        s, tiles, numbers, steps = rules.players, rules.num_tiles, rules.max_pip + 1, rules.score_steps
        draws = rules.draw != "none"
        return [
            ("hand", (tiles,), "the tiles I hold"),
            ("left_end", (numbers,), "the number at the chain's left end; zeros before the first tile"),
            ("right_end", (numbers,), "the number at its right end"),
            ("placed", (s, tiles), "the tiles each seat has played, mine first"),
            (
                "holds_none",
                (s - 1, numbers),
                "numbers the other seats hold no tile of, as their passes and draws have shown",
            ),
            (
                "holds_at_most_one",
                (s - 1 if draws else 0, numbers),
                "numbers they hold at most one tile of: as before, and one tile drawn since",
            ),
            ("hand_count", (s - 1, rules.max_hand), "how many tiles the other seats hold (count)"),
            ("boneyard", (rules.boneyard_size if draws else 0,), "how many tiles are left to draw (count)"),
            ("to_act", (s,), "the seat to act; zeros when the round is over"),
            ("starter", (s,), "the seat that started the round"),
            ("last", (s,), "the seat that placed the last tile"),
            ("left_owner", (s,), "the seat that placed the tile at the left end"),
            ("right_owner", (s,), "the seat that placed the tile at the right end"),
            (
                "scores",
                (rules.num_sides, steps),
                f"each side's score, mine first (count), in steps of target/{steps}" if steps else "",
            ),
            (
                "multiplier",
                (_TIE_STEPS if steps else 0,),
                "how often ties in a row have multiplied this round's points (count, at most 4)",
            ),
        ]

    def vectors(self, views: Views) -> npt.NDArray[np.int8]:
        """The vectors of a batch of views, int8 (n, size), newly allocated."""
        out = np.zeros((len(views), self.size), np.int8)
        _encode_many(views, pack(self.rules), np.zeros(1, VECTOR), out.view(np.uint64))
        return out


@jit
def _encode_many(views: Any, rules: Any, vectors: Any, out: Any) -> None:
    for v in range(out.shape[0]):
        encode(views[v], rules[0], vectors[0])
        expand(vectors[0], out[v])


def masks(views: Views, actions: int) -> npt.NDArray[np.int8]:
    """The action masks of a batch of views, int8 (n, actions), newly allocated; zeros off turn."""
    out = new_masks(len(views), actions)
    _mask_many(views, out.view(np.uint64))
    return np.ascontiguousarray(out[:, :actions])


def new_masks(n: int, actions: int) -> npt.NDArray[np.int8]:
    """Rows for `n` masks, their length rounded up to whole words as `expand_mask` writes them."""
    return np.zeros((n, -(-actions // 8) * 8), np.int8)


@jit
def _mask_many(views: Any, out: Any) -> None:
    for v in range(out.shape[0]):
        expand_mask(views[v]["legal"][0], views[v]["legal"][1], out[v])


@lru_cache(maxsize=256)
def encoding_of(rules: RuleSet) -> Encoding:
    """The (shared) encoding of a rule set."""
    return Encoding(rules)
