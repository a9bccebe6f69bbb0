"""The package's random numbers: the published generator, unbiased numbers, streams that share nothing."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from domino_env import PRESETS, Batch, Game
from domino_env._jit import jit
from domino_env._rng import below, check_seed, next_u32, seed_streams

LOW32 = 2**32 - 1


@jit
def many_words(stream: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i] = next_u32(stream[0])


@jit
def many_below(stream: Any, bound: int, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i] = below(stream[0], bound)


def words(state: list[int], n: int) -> list[int]:
    out = np.zeros(n, np.uint64)
    many_words(np.array([state], np.uint32), out)
    return [int(word) for word in out]


def numbers(state: npt.NDArray[np.uint32], bound: int, n: int) -> npt.NDArray[np.int64]:
    out = np.zeros(n, np.int64)
    many_below(state, bound, out)
    return out


def streams(seed: int, first: int, n: int, **options: int) -> npt.NDArray[np.uint32]:
    out = np.zeros((n, 4), np.uint32)
    seed_streams(seed, first, out, **options)
    return out


def sfc32(state: list[int]) -> int:
    """sfc32 as published in PractRand (RNGs/sfc.cpp), step by step."""
    a, b, c, counter = state
    tmp = (a + b + counter) & LOW32
    counter = (counter + 1) & LOW32
    a = b ^ (b >> 9)
    b = (c + (c << 3)) & LOW32
    c = (((c << 21) & LOW32 | c >> 11) + tmp) & LOW32
    state[:] = a, b, c, counter
    return tmp


@pytest.mark.parametrize(
    "state",
    [
        [0, 0, 0, 1],
        [1, 2, 3, 1],
        [LOW32] * 4,
        [0x9E3779B9, 0x243F6A88, 0xB7E15162, LOW32 - 500],
        [0, 1 << 31, 1, 0],
    ],
)
def test_words_are_those_of_the_published_generator(state: list[int]) -> None:
    copy = state.copy()
    assert words(state, 2000) == [sfc32(copy) for _ in range(2000)]


def test_below_is_the_published_method() -> None:
    """Lemire (2019), "Fast Random Integer Generation in an Interval", algorithm 5."""
    rng = random.Random(3)
    for bound in [
        1,
        2,
        3,
        7,
        28,
        55,
        56,
        2**31 + 1,
        3 * 2**30,
        2**32 - 1,
        *(rng.randrange(1, 2**32) for _ in range(20)),
    ]:
        state = streams(7, bound, 1)
        plain = [int(word) for word in state[0]]
        wanted = []
        for _ in range(50):
            m = sfc32(plain) * bound
            if m & LOW32 < bound:
                while m & LOW32 < (2**32 - bound) % bound:
                    m = sfc32(plain) * bound
            wanted.append(m >> 32)
        assert numbers(state, bound, 50).tolist() == wanted
        assert state[0].tolist() == plain


def test_below_is_uniform() -> None:
    # 3·2^30: without rejection, every third number would come up twice as often as the others.
    for bound, cells in ((3 * 2**30, 3), (7, 7), (28, 28), (55, 55)):
        drawn = numbers(streams(1, 0, 1), bound, 300_000)
        assert drawn.min() >= 0
        assert drawn.max() < bound
        counts = np.bincount(drawn % cells, minlength=cells)
        assert chi_square(counts) < cells + 5 * (2 * cells) ** 0.5


def chi_square(counts: npt.NDArray[Any]) -> float:
    """Pearson's statistic against equal shares; its mean is cells − 1, its variance twice that."""
    expected = counts.sum() / counts.size
    return float(((counts - expected) ** 2 / expected).sum())


def test_a_stream_follows_from_seed_number_and_purpose_alone() -> None:
    whole = streams(5, 0, 100)
    assert np.array_equal(whole[40:60], streams(5, 40, 20))
    assert np.array_equal(whole[99:], streams(5, 99, 1))
    strided = np.zeros((100, 8), np.uint32)
    seed_streams(5, 0, strided[:, 2:6])
    assert np.array_equal(strided[:, 2:6], whole)
    assert not strided[:, :2].any()
    assert not strided[:, 6:].any()


def test_no_two_streams_are_the_same() -> None:
    seen: set[bytes] = set()
    parts = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2**32, 0), (2**64, 0), (2**64 + 1, 0), (2**200, 0)]
    for seed, purpose in parts:
        for row in streams(seed, 0, 5000, purpose=purpose):
            seen.add(row[:3].tobytes())
    assert len(seen) == 5000 * len(parts)


def test_streams_of_one_seed_differ_far_out() -> None:
    far = 2**40
    rows = np.concatenate([streams(3, first, 1000) for first in (0, 1000, 2**32 - 500, far, far + 1000, 2**62)])
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_neighbouring_streams_are_not_correlated() -> None:
    for rows in (streams(0, 0, 4000), np.concatenate([streams(seed, 0, 1) for seed in range(2000)])):
        bits = np.unpackbits(rows[:, :3].copy().view(np.uint8), axis=1).astype(int)
        n = len(bits)
        assert np.all(abs(bits.mean(axis=0) - 0.5) < 6 * 0.5 / n**0.5)
        agree = (bits[1:] == bits[:-1]).mean(axis=0)
        assert np.all(abs(agree - 0.5) < 6 * 0.5 / n**0.5)


def test_golden_numbers() -> None:
    """The same on every platform and in every release: a change here changes every seed's deals."""
    assert streams(0, 0, 1)[0].tolist() == [1334928951, 3183430370, 3134365672, 61]
    assert numbers(streams(7, 3, 1), 28, 12).tolist() == [10, 4, 10, 14, 15, 23, 12, 6, 8, 10, 23, 3]
    assert numbers(streams(7, 3, 1, purpose=1), 28, 12).tolist() == [
        9,
        13,
        10,
        14,
        17,
        1,
        16,
        26,
        7,
        6,
        23,
        14,
    ]


def test_golden_deals() -> None:
    hands = """
        0-0 1-2 2-3 3-3 2-5 0-6 2-6
        0-1 1-1 1-3 0-4 1-4 4-6 5-6
        2-4 3-4 0-5 3-5 4-5 5-5 3-6
        0-2 2-2 0-3 4-4 1-5 1-6 6-6
    """
    dealt = [hand.split() for hand in hands.strip().splitlines()]
    assert Game(PRESETS["duplas"], seed=7).hands == dealt
    for name in PRESETS:  # one shuffle serves all
        assert Game(PRESETS[name], seed=7).hands[0] == dealt[0]
    deck = [
        5,
        3,
        0,
        12,
        9,
        21,
        24,
        26,
        8,
        2,
        11,
        20,
        4,
        18,
        16,
        17,
        15,
        10,
        13,
        27,
        7,
        6,
        23,
        25,
        14,
        1,
        19,
        22,
    ]
    assert Batch(PRESETS["blocos"], 1, seed=7, first_table=5).state["deck"][0].tolist() == deck


def plain_stream(seed: int, number: int, purpose: int = 0) -> list[int]:
    """The state of a stream, recomputed: purpose, seed, its length and the number, mixed in one by one."""
    words = [seed >> shift & LOW32 for shift in range(0, max(seed.bit_length(), 1), 32)]
    state = [0, 0, 0, 1]
    for word in [purpose, *words, len(words) + 1, number & LOW32, number >> 32]:
        state[0] ^= word
        for _ in range(12):
            sfc32(state)
    return state


def test_streams_are_seeded_word_by_word() -> None:
    for seed in (0, 1, LOW32, 2**32, 2**64 - 1, 2**64, 3**100):
        for number in (0, 1, LOW32, 2**32, 2**40 + 3):
            for purpose in (0, 1, 16):
                wanted = plain_stream(seed, number, purpose)
                assert streams(seed, number, 1, purpose=purpose)[0].tolist() == wanted
    assert streams(1, LOW32, 2)[1].tolist() == plain_stream(1, 2**32)


@pytest.mark.parametrize(("seed", "table"), [(0, 0), (7, 5), (2**64, 123), (2**70 + 1, 2**40)])
def test_a_deal_is_that_stream_shuffling_the_set(seed: int, table: int) -> None:
    state = plain_stream(seed, table)
    assert streams(seed, table, 1)[0].tolist() == state
    deck = list(range(28))
    for last in range(27, 0, -1):
        bound = last + 1
        m = sfc32(state) * bound
        while m & LOW32 < (2**32 - bound) % bound:
            m = sfc32(state) * bound
        other = m >> 32
        deck[last], deck[other] = deck[other], deck[last]
    batch = Batch(PRESETS["duplas"], 1, seed=seed, first_table=table)
    assert batch.state["deck"][0].tolist() == deck
    assert [sum(1 << tile for tile in deck[7 * seat : 7 * seat + 7]) for seat in range(4)] == batch.state["hands"][
        0
    ].tolist()


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**64, 2**200])
def test_seeds_of_any_size_are_accepted(seed: int) -> None:
    assert check_seed(seed) == seed
    assert Game(PRESETS["duplas"], seed=seed) == Game(PRESETS["duplas"], seed=seed)
    assert Game(PRESETS["duplas"], seed=seed) != Game(PRESETS["duplas"], seed=seed + 1)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_numpy_integers_are_seeds(kind: type[np.integer[Any]]) -> None:
    assert check_seed(kind(99)) == 99  # type: ignore[arg-type]
    assert type(check_seed(kind(99))) is int  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, np.int64(-5), 1.0, "7", True, np.True_, [1], float("nan"), b"1"])
def test_other_seeds_are_refused_by_name(seed: Any) -> None:
    for make in (
        check_seed,
        lambda seed: Game(PRESETS["duplas"], seed=seed),
        lambda seed: Batch(PRESETS["duplas"], 1, seed),
    ):
        with pytest.raises(ValueError, match="seed="):
            make(seed)


def test_no_seed_is_fresh_entropy() -> None:
    assert len({check_seed(None) for _ in range(100)}) == 100
    assert len({Game(PRESETS["duplas"]).deal for _ in range(20)}) == 20


def test_global_generators_are_neither_read_nor_moved() -> None:
    np.random.seed(1)
    random.seed(1)
    before = repr(np.random.get_state()), random.getstate()
    one = Batch(PRESETS["puxar"], 50, seed=3)
    for _ in range(5):
        one.step(one.sample_actions())
    assert (repr(np.random.get_state()), random.getstate()) == before
    two = Batch(PRESETS["puxar"], 50, seed=3)
    for _ in range(5):
        np.random.seed(9)
        random.seed(9)
        np.random.random(7)
        two.step(two.sample_actions())
    assert one.state.tobytes() == two.state.tobytes()
