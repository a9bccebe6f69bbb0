"""Ratings: the strengths behind simulated results are found, with intervals that hold, in any order."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections.abc import Sequence

import numpy as np
import pytest

from domino_env import PRESETS
from domino_env.arena import Duel, Estimate, Samples, cross_table, duel
from domino_env.rating import ELO, ratings


def simulated(
    strengths: dict[str, float], rng: np.random.Generator, deals: int, pairs: Sequence[tuple[str, str]] | None = None,
    sides: int = 2,
) -> list[Duel]:  # fmt: skip
    """Duels on the same deals: each deal's luck is common to all seatings and, in part, to all pairs."""
    duels = []
    common = rng.random(deals)
    for one, other in pairs or itertools.combinations(strengths, 2):
        # Half of a deal's chance is the deal's own, the rest is drawn for each game.
        chance = 1 / (1 + (sides - 1) * 10 ** ((strengths[other] - strengths[one]) / 400))
        games = np.stack([np.where(rng.random(deals) < 0.5, common, rng.random(deals)) < chance for _ in range(sides)])
        shares = games.mean(axis=0)
        samples = Samples(shares, shares, shares, shares, shares)
        estimate = Estimate.of(shares)
        duels.append(
            Duel(one, other, "r", "round", deals, sides, 1, estimate, estimate, 1 / sides, 0, 0, 0, samples=samples)
        )
    return duels


def without_samples(duels: Sequence[Duel]) -> list[Duel]:
    return [dataclasses.replace(one, samples=None) for one in duels]


STRENGTHS = {"a": 0.0, "b": 60.0, "c": 100.0, "d": 250.0}


@pytest.mark.parametrize("sides", [2, 4])
def test_known_strengths_are_found(sides: int) -> None:
    found = ratings(simulated(STRENGTHS, np.random.default_rng(1), 200_000, sides=sides), anchor="a")
    assert found.players == ("d", "c", "b", "a")
    assert found["a"] == Estimate(0.0, 0.0, 0.0)
    for name, strength in STRENGTHS.items():
        assert found[name].mean == pytest.approx(strength, abs=4)
    centred = ratings(simulated(STRENGTHS, np.random.default_rng(1), 200_000, sides=sides))
    assert sum(one.mean for one in centred.elo) == pytest.approx(0, abs=1e-9)
    assert centred["d"].mean - centred["a"].mean == pytest.approx(found["d"].mean, abs=1e-9)
    one, other = found.difference("d", "b"), centred.difference("d", "b")
    assert (one.mean, one.error) == pytest.approx((other.mean, other.error), abs=1e-9)
    assert found.difference("a", "d").mean == -found["d"].mean


@pytest.mark.parametrize("samples", [True, False], ids=["by deal", "from the shares alone"])
def test_intervals_hold_the_truth_in_95_of_100(samples: bool) -> None:
    """On the same deals, whose luck all pairs share. Without the samples that covariance cannot be known."""
    rng = np.random.default_rng(5)
    truth = {name: strength - np.mean(list(STRENGTHS.values())) for name, strength in STRENGTHS.items()}
    hits, gaps, runs = 0, 0, 250
    for _ in range(runs):
        duels = simulated(STRENGTHS, rng, 300) if samples else without_samples(
            [one for pair in itertools.combinations(STRENGTHS, 2) for one in simulated(STRENGTHS, rng, 300, [pair])]
        )  # fmt: skip
        found = ratings(duels)
        hits += sum(found[name].low <= strength <= found[name].high for name, strength in truth.items())
        gap = found.difference("d", "b")
        gaps += gap.low <= 190 <= gap.high
    assert hits / (4 * runs) == pytest.approx(0.95, abs=0.02)
    assert gaps / runs == pytest.approx(0.95, abs=0.03)


def test_intervals_are_not_those_of_independent_games() -> None:
    """Where both games of a deal are won by the same player, there are half as many results as games."""
    rng = np.random.default_rng(0)
    results = rng.random(1000) < 0.6
    apart = rng.random((1000, 2)) < 0.6
    widths = []
    for shares in (results.astype(float), apart.mean(axis=1)):
        estimate = Estimate.of(shares)
        one = Duel("a", "b", "r", "round", 1000, 2, 1, estimate, estimate, 0.5, 0, 0, 0)
        widths.append(ratings([one]).difference("a", "b").error)
    assert widths[0] / widths[1] == pytest.approx(math.sqrt(2), rel=0.05)


@pytest.mark.parametrize("samples", [True, False])
def test_ratings_are_the_same_in_any_order(samples: bool) -> None:
    duels = simulated(STRENGTHS, np.random.default_rng(2), 300)
    duels += simulated(STRENGTHS, np.random.default_rng(3), 200)[:3]
    duels = duels if samples else without_samples(duels)
    first = ratings(duels, anchor="b")
    for seed in range(20):
        random.Random(seed).shuffle(duels)
        again = ratings(duels, anchor="b")
        assert again == first
        assert np.array_equal(again.covariance, first.covariance)


def test_a_duel_counts_the_same_from_either_side() -> None:
    table = cross_table(["random", "doubles", "counting"], PRESETS["mano_a_mano"], deals=300)
    turned = cross_table(["counting", "doubles", "random"], PRESETS["mano_a_mano"], deals=300)
    one, other = ratings(table), ratings(turned)
    assert one.players == other.players == ("counting", "doubles", "random")
    for name in one.players:
        # The seatings come in another order, so random players draw other numbers: not to the bit.
        assert one[name].mean == pytest.approx(other[name].mean, abs=40)
    mirrored = [
        dataclasses.replace(
            result, player=result.opponent, opponent=result.player, samples=None,
            win_share=Estimate.around(1 - result.win_share.mean, result.win_share.error),
        ) for result in table
    ]  # fmt: skip
    plain = ratings(without_samples(table))
    back = ratings(mirrored)
    for name in plain.players:
        assert (back[name].mean, back[name].error) == pytest.approx((plain[name].mean, plain[name].error), abs=1e-9)


def test_equal_players_have_a_difference_of_exactly_0() -> None:
    found = ratings([duel("doubles", "doubles?pips=1", PRESETS["duplas"], deals=500)])
    gap = found.difference(*found.players)
    assert gap.mean == 0
    assert 0 < gap.error < 1  # it stays above 0: the model's one extra deal varies


@pytest.mark.parametrize("deals", [2, 100, 100_000])
def test_a_shut_out_has_a_rating_and_an_interval(deals: int) -> None:
    always = Estimate(1.0, 1.0, 1.0)
    games = Duel("strong", "weak", "r", "round", deals, 2, 1, always, always, 0.5, 0, 0, 0)
    gap = ratings([games]).difference("strong", "weak")
    assert gap.mean == pytest.approx(ELO * math.log(2 * deals + 1), rel=1e-9)
    assert 300 < gap.high - gap.low < 1500
    # With so many games won and none lost, chances of at least 1 - 3/n are plausible (the "rule of three").
    plausible = ELO * math.log(max(deals, 4) / 3 - 1)
    assert gap.low == pytest.approx(plausible, abs=150)


def test_cycles_and_chains_are_rated() -> None:
    rng = np.random.default_rng(7)
    chain = simulated(STRENGTHS, rng, 50_000, [("a", "b"), ("b", "c"), ("c", "d")])
    found = ratings(chain, anchor="a")
    for name, strength in STRENGTHS.items():
        assert found[name].mean == pytest.approx(strength, abs=8)
    assert found["b"].error < found["c"].error < found["d"].error
    equal = dict.fromkeys("abc", 0.0)
    circle = simulated(equal, rng, 1000, [("a", "b"), ("b", "c"), ("c", "a")])
    for i, one in enumerate(circle):
        circle[i] = dataclasses.replace(one, win_share=Estimate(0.7, 0.65, 0.75), samples=None)
    assert [one.mean for one in ratings(circle).elo] == pytest.approx([0, 0, 0], abs=1e-9)


def test_what_cannot_be_rated_is_refused() -> None:
    rng = np.random.default_rng(1)
    duels = simulated({**STRENGTHS, "e": 0.0}, rng, 10, [("a", "b"), ("c", "d"), ("d", "e")])
    with pytest.raises(ValueError, match=r"no duels connect these groups of players.*: a, b; c, d, e"):
        ratings(duels)
    with pytest.raises(ValueError, match="anchor='f' is not one of a, b"):
        ratings(duels[:1], anchor="f")
    with pytest.raises(ValueError, match="0 players; ratings need duels of at least two"):
        ratings([])
    with pytest.raises(ValueError, match="different episode: match, round"):
        ratings([duels[0], dataclasses.replace(duels[0], episode="match")])
    with pytest.raises(ValueError, match="no rating for 'z'; rated: "):
        ratings(duels[:1])["z"]


def test_ratings_in_words() -> None:
    text = str(ratings(simulated(STRENGTHS, np.random.default_rng(1), 1000), anchor="a"))
    assert text.splitlines()[0] == "ratings (Elo, a = 0, with 95 % intervals)"
    assert text.splitlines()[-1] == "  a      +0  [+0, +0]"
    assert "mean = 0" in str(ratings(simulated(STRENGTHS, np.random.default_rng(1), 1000)))
