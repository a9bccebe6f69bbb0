"""The package's own random numbers: one small generator a table.

The generator is sfc32 (Chris Doty-Humphrey's Small Fast Counting generator, three mixed 32-bit
words and a counter). Its 32-bit arithmetic is done in 64-bit words, so that compiled code and
plain Python give the same numbers on every platform. Streams are seeded from (seed, stream
number) alone, word by word: table 5 of a batch of ten is dealt what table 5 of a batch of a million is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ._checks import integer
from ._jit import jit

_U64 = np.uint64
_LOW32 = np.uint64(0xFFFFFFFF)
_S3, _S9, _S11, _S21, _S32 = (np.uint64(n) for n in (3, 9, 11, 21, 32))
_ONE = np.uint64(1)
_MIXING_STEPS = 12  # as many as sfc32's author runs after seeding

#: One seed for all tables, or one for each; a table given None goes on where it was.
Seeds: TypeAlias = int | Sequence[int | None] | npt.NDArray[np.integer[Any]]


@jit
def next_u32(stream: Any) -> Any:
    """The next 32 random bits of a stream (uint32, (4,)), as a uint64."""
    a, b, c, count = _U64(stream[0]), _U64(stream[1]), _U64(stream[2]), _U64(stream[3])
    value = (a + b + count) & _LOW32
    stream[0] = b ^ (b >> _S9)
    stream[1] = (c + (c << _S3)) & _LOW32
    stream[2] = (((c << _S21) | (c >> _S11)) + value) & _LOW32
    stream[3] = (count + _ONE) & _LOW32
    return value


@jit
def below(stream: Any, bound: int) -> int:
    """A uniform integer in [0, bound) from a stream, without bias (Lemire's method with rejection)."""
    limit = _U64(bound)
    product = next_u32(stream) * limit
    if product & _LOW32 < limit:
        threshold = (_LOW32 + _ONE) % limit
        while product & _LOW32 < threshold:
            product = next_u32(stream) * limit
    return int(np.int64(product >> _S32))


@jit
def next_uniform(stream: Any) -> float:
    """A number from [0, 1), in steps of 2**-32."""
    return float(next_u32(stream)) / 4294967296.0


@jit
def _absorb(stream: Any, word: int) -> None:
    """Mix 32 bits into a stream's state; every bit of it then depends on them."""
    stream[0] ^= np.uint32(word)
    for _ in range(_MIXING_STEPS):
        next_u32(stream)


@jit
def _seed_many(words: Any, first: int, streams: Any) -> None:
    for t in range(streams.shape[0]):
        stream = streams[t]
        stream[0], stream[1], stream[2], stream[3] = 0, 0, 0, 1
        for word in words:
            _absorb(stream, word)
        _absorb(stream, (first + t) & 0xFFFFFFFF)
        _absorb(stream, (first + t) >> 32)


@jit
def _seed_rows(words: Any, rows: Any, streams: Any) -> None:
    for i in range(rows.shape[0]):
        stream = streams[rows[i]]
        stream[0], stream[1], stream[2], stream[3] = 0, 0, 0, 1
        for k in range(words[i, 0]):
            _absorb(stream, words[i, 1 + k])
        _absorb(stream, 0)
        _absorb(stream, 0)


def check_seed(seed: int | None) -> int:
    """A non-negative Python integer from `seed`; from the operating system's entropy where it is None."""
    if seed is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    value = integer(seed)
    if value is None or value < 0:
        raise ValueError(f"seed={seed!r}: a seed is an integer of at least 0 (or None)")
    return value


def is_many(seed: Any) -> bool:
    """Whether `seed` is a seed for each table, not one for all."""
    return (isinstance(seed, Sequence) and not isinstance(seed, str | bytes)) or np.ndim(seed) == 1


def check_seeds(seeds: Any, chosen: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], list[int]]:
    """The tables that are chosen and have a seed of their own, and those seeds.

    Raises:
        ValueError: not one seed for each table, chosen or not; something that is no seed (None is allowed).
    """
    given = list(seeds)
    if len(given) != len(chosen):
        raise ValueError(f"seed: {len(given)} given, one for each of {len(chosen)} tables is needed")
    checked = [None if one is None else check_seed(one) for one in given]
    rows = [t for t in np.flatnonzero(chosen).tolist() if checked[t] is not None]
    return np.array(rows, np.int64), [seed for t in rows if (seed := checked[t]) is not None]


def _words(seed: int, purpose: int) -> list[int]:
    """What a stream absorbs of its seed, 32 bits a word."""
    words = [purpose]
    while seed or len(words) == 1:
        words.append(seed & 0xFFFFFFFF)
        seed >>= 32
    return [*words, len(words)]


def seed_streams(seed: int, first: int, streams: npt.NDArray[np.uint32], *, purpose: int = 0) -> None:
    """Fill `streams` (uint32, (n, 4)) with the states of streams first … first+n−1 of `seed`.

    `purpose` keeps apart what one seed is used for (0 the deals, 1 random play, 2 the players, 3 the
    learners' seats or a terminal's hints, 4 beliefs, 16 and up an arena's players, 32 and 33 counts of outcomes): no
    streams are shared.
    """
    seeded = np.empty(streams.shape, np.uint32)
    _seed_many(np.array(_words(seed, purpose), np.int64), first, seeded)
    streams[:] = seeded


def seed_rows(
    seeds: Sequence[int], rows: npt.NDArray[np.int64], streams: npt.NDArray[np.uint32], *, purpose: int = 0
) -> None:
    """Fill row ``rows[i]`` of `streams` with the state of stream 0 of ``seeds[i]``; otherwise as `seed_streams`."""
    lists = [_words(seed, purpose) for seed in seeds]
    words = np.zeros((len(lists), 1 + max(map(len, lists), default=0)), np.int64)
    for i, own in enumerate(lists):
        words[i, 0], words[i, 1 : 1 + len(own)] = len(own), own
    seeded = np.ascontiguousarray(streams)  # a batch's streams lie in its records: to compiled code another type
    _seed_rows(words, rows, seeded)
    if seeded is not streams:
        streams[:] = seeded
