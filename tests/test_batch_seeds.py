"""A batch's seeds and streams: new deals at every reset, the same after the same seed, all equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from test_batch import content, run

from domino_env import PRESETS, Batch, make_rules

DUPLAS = PRESETS["duplas"]

# Seeds


def deals(batch: Batch) -> list[bytes]:
    return [deck.tobytes() for deck in batch.state["deck"]]


def test_a_thousand_resets_deal_a_thousand_deals_and_the_same_again() -> None:
    batch = Batch(PRESETS["blocos"], 2, seed=7)
    lines: list[list[list[bytes]]] = []
    for _ in range(2):
        line = [deals(batch)]
        for _ in range(999):
            batch.reset()
            line.append(deals(batch))
        lines.append(line)
        batch.reset(7)
    assert lines[0] == lines[1]
    assert len({deal for both in lines[0] for deal in both}) == 2000


@pytest.mark.parametrize("seed", [0, 2**31, 2**32 - 1, 2**64, np.int64(3), np.uint8(3)])
def test_seeds(seed: Any) -> None:
    batch = Batch(DUPLAS, 64, seed=seed)
    assert len(set(deals(batch))) == 64
    again = Batch(DUPLAS, 64, seed=int(seed))
    assert content(batch) == content(again)
    run(batch, 5)
    batch.reset(seed)
    assert deals(batch) == deals(again)
    assert content(batch)["random"] == content(again)["random"]


def test_a_refused_seed_changes_nothing() -> None:
    batch = Batch(DUPLAS, 4, seed=1)
    before = content(batch)
    for seed in (-1, 0.5, "1", True):
        with pytest.raises(ValueError, match="seed="):
            batch.reset(seed)  # type: ignore[arg-type]
    assert content(batch) == before


def test_neighbouring_seeds_share_no_deals() -> None:
    seen: list[set[bytes]] = []
    for seed in (0, 1):
        batch = Batch(DUPLAS, 64, seed=seed)
        seen.append(set(deals(batch)))
        for _ in range(99):
            batch.reset()
            seen[-1] |= set(deals(batch))
    assert [len(found) for found in seen] == [6400, 6400]
    assert not seen[0] & seen[1]


# Uniformity


def chi_square(counts: npt.NDArray[Any]) -> float:
    expected = counts.sum() / counts.size
    return float(((counts - expected) ** 2 / expected).sum())


def within(counts: npt.NDArray[Any]) -> bool:
    """Whether the statistic is within 5 standard deviations of its mean, from both sides."""
    free = counts.size - 1
    return abs(chi_square(counts) - free) < 5 * (2 * free) ** 0.5


def test_sampled_actions_are_uniform_over_the_legal_ones() -> None:
    batch = Batch(PRESETS["blocos"], 20_000, seed=3)
    batch.state[:], batch.legal[:] = batch.state[0], batch.legal[0]  # one position at every table
    numbers_of_choices = set()
    for _ in range(6):
        words = [int(word) for word in batch.state["legal"][0]]
        legal = [2 * tile + end for tile in range(28) for end in (0, 1) if words[end] >> tile & 1]
        counts = np.zeros(56, np.int64)
        for _ in range(5):
            counts += np.bincount(batch.sample_actions(), minlength=56)
        assert np.flatnonzero(counts).tolist() == legal
        assert chi_square(counts[legal]) < 30
        numbers_of_choices.add(len(legal))
        batch.step(np.full(20_000, legal[-1]))
    assert len(numbers_of_choices) > 2


def test_shuffles_are_uniform() -> None:
    places = np.zeros((28, 28), np.int64)
    pairs = np.zeros((28, 28), np.int64)
    batch = Batch(PRESETS["blocos"], 50_000, seed=12, observe=False)
    for _ in range(2):
        deck = batch.state["deck"].astype(np.int64)
        assert np.array_equal(np.sort(deck, axis=1), np.broadcast_to(np.arange(28), deck.shape))
        for place in range(28):
            places[place] += np.bincount(deck[:, place], minlength=28)
        np.add.at(pairs, (deck[:, 0], deck[:, 27]), 1)
        batch.reset()
    assert abs(chi_square(places) - 27 * 27) < 5 * (2 * 27 * 27) ** 0.5
    assert within(pairs[~np.eye(28, dtype=bool)])


def test_every_order_of_a_small_set_is_dealt_equally_often() -> None:
    rules = make_rules("blocos", max_pip=2, hand_size=2)
    deck = Batch(rules, 72_000, seed=1, observe=False).state["deck"][:, :6].astype(np.int64)
    counts = np.unique(deck @ 6 ** np.arange(6), return_counts=True)[1]
    assert counts.size == 720
    assert within(counts)


def test_lots_are_uniform() -> None:
    for players in (2, 3, 4):
        batch = Batch(make_rules("puxar", players=players), 30_000, seed=5, observe=False)
        assert chi_square(np.bincount(batch.seat, minlength=players)) < 30


def test_tables_are_not_correlated_with_their_neighbours() -> None:
    deck = Batch(PRESETS["blocos"], 30_000, seed=9, observe=False).state["deck"].astype(np.int64)
    first = np.zeros((28, 28), np.int64)
    np.add.at(first, (deck[:-1, 0], deck[1:, 0]), 1)
    assert within(first)


def test_tables_with_seeds_of_their_own() -> None:
    own = [3, 2**70, None, 0]
    batch = Batch(DUPLAS, 4, seed=1, first_table=9)
    batch.reset(own)
    for _ in range(50):
        batch.step(batch.sample_actions())
    for t, seed in enumerate(own):
        if seed is not None:
            alone = Batch(DUPLAS, 1, seed=seed)
            for _ in range(50):
                alone.step(alone.sample_actions())
            assert batch.state[t]["deck"].tobytes() == alone.state[0]["deck"].tobytes()
            assert (batch.observation[t] == alone.observation[0]).all()


def test_seeds_of_chosen_tables_leave_the_others_alone() -> None:
    batch, chosen = Batch(DUPLAS, 3, seed=1), np.array([True, False, True])
    state, seen = batch.state.copy(), batch.observation.copy()
    batch.reset(np.array([7, 8, 7]), tables=chosen)
    assert batch.state[1] == state[1]
    assert (batch.observation[1] == seen[1]).all()
    assert deals(batch)[0] == deals(batch)[2] == deals(Batch(DUPLAS, 1, seed=7))[0]
    kept = batch.state.copy()
    for bad in ([1, 2], [1, -2, 3], [1, 2.0, 3], [1, True, 3]):
        with pytest.raises(ValueError, match="seed"):
            batch.reset(bad, tables=chosen)
    assert (batch.state == kept).all()
