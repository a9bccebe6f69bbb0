"""The arena at work: rounds that are duplicates, worker processes, interruption, comparisons, pictures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from strategies import TABLES

from domino_env import PRESETS, Match, RuleSet, make_rules
from domino_env.arena import Duel, Estimate, Samples, Stopped, compare, cross_table, duel, duels, picture
from domino_env.bots import ScriptedPlayer
from domino_env.events import RoundResult
from domino_env.observation import Views
from domino_env.players import Player, Streams
from domino_env.rating import ratings

DUPLAS = PRESETS["duplas"]


# Later rounds are duplicates too


def rounds_of(rules: RuleSet, seed: int, last: bool) -> tuple[list[list[list[str]]], list[RoundResult]]:
    """The hands dealt in each round, and the results, where everybody plays the first (or the last) legal move."""
    match = Match(rules, seed=seed)
    dealt, results = [match.game.hands], []
    while not match.over:
        if result := match.play(match.game.legal_moves()[-1 if last else 0]):
            results.append(result)
            if not match.over:
                dealt.append(match.game.hands)
    return dealt, results


@pytest.mark.parametrize("name", TABLES)
def test_round_k_is_dealt_the_same_tiles_whatever_was_played(name: str) -> None:
    rules, compared = TABLES[name], 0
    for seed in range(15):
        (one, results), (other, other_results) = (rounds_of(rules, seed, last) for last in (False, True))
        same = min(len(one), len(other))
        if rules.tie_starter == "lots":  # lots use the stream that deals: from a tie on, deals differ
            ties = [i for found in (results, other_results) for i, result in enumerate(found) if result.side is None]
            same = min([same, *(i + 1 for i in ties)])
        assert one[:same] == other[:same]
        compared += same
        assert results != other_results
    assert compared > 15  # not first rounds alone


# Worker processes


class Lowest(Player):
    """The lowest action; told apart from scripted players in that it has to be asked."""

    name = "lowest"

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        words = views["legal"]
        end = (words[:, 0] == 0).astype(np.int64)
        return 2 * np.array([(int(w[e]) & -int(w[e])).bit_length() - 1 for w, e in zip(words, end, strict=True)]) + end


class Broken(Player):
    """Raises an error that cannot be pickled."""

    name = "broken"

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        class Own(Exception):
            pass

        raise Own("no idea")


class Dying(Player):
    """Ends its process."""

    name = "dying"

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        import os

        os._exit(7)


def test_results_are_the_same_for_any_number_of_workers() -> None:
    players = ["random", Lowest, "counting"]
    options: dict[str, Any] = {"deals": 150, "seed": 3, "episode": "match"}
    seen: list[tuple[str, str, int]] = []
    alone = cross_table(players, PRESETS["mano_a_mano"], **options)
    shared = cross_table(
        players, PRESETS["mano_a_mano"], **options, workers=2, progress=lambda *args: seen.append(args)
    )
    assert shared == alone
    for one, other in zip(alone, shared, strict=True):
        assert one.samples is not None
        assert other.samples is not None
        for name, values in vars(one.samples).items():
            assert np.array_equal(values, getattr(other.samples, name))
    assert [one for one in seen if one[2] == 150] == [(one.player, one.opponent, 150) for one in alone]


def test_what_goes_wrong_in_a_worker_is_told() -> None:
    with pytest.raises(RuntimeError, match="Own: no idea") as caught:
        duel(Broken, "random", DUPLAS, deals=10, workers=1 + 1)
    if hasattr(caught.value, "__notes__"):
        assert "in act" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match=r"a worker process ended \(exit code 7\)"):
        duel(Dying, "random", DUPLAS, deals=10, workers=2)
    with pytest.raises(ValueError, match="cannot be sent to another process"):
        duel(lambda rules: ScriptedPlayer(rules), "random", DUPLAS, deals=10, workers=2)
    with pytest.raises(ValueError, match="workers=0 is not a whole number of at least 1"):
        duel("random", "random", DUPLAS, deals=10, workers=0)


# Interruption


class Interrupting(ScriptedPlayer):
    """Is asked so many times, then somebody presses Ctrl-C."""

    def __init__(self, rules: RuleSet, times: int) -> None:
        super().__init__(rules, "doubles")
        self.name, self.times = "interrupting", times

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        self.times -= 1
        if self.times < 0:
            raise KeyboardInterrupt
        return super().act(views, rng)


def test_an_interrupted_duel_gives_the_result_of_its_first_deals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duels, "next_size", lambda size, count, seconds: size)
    played: list[int] = []
    with pytest.raises(Stopped) as stopped:
        duel(Interrupting(DUPLAS, 100), "random", DUPLAS, deals=1000, seed=5, progress=played.append)
    (result,) = stopped.value.duels
    assert 100 < result.deals == played[-1] < 1000
    whole = duel(Interrupting(DUPLAS, 10**9), "random", DUPLAS, deals=result.deals, seed=5)
    assert result == whole
    with pytest.raises(KeyboardInterrupt) as stopped:  # before anything was finished
        duel(Interrupting(DUPLAS, 0), "random", DUPLAS, deals=1000, seed=5)
    assert stopped.value.duels == []


def test_an_interrupted_table_keeps_the_duels_before() -> None:
    told: list[Duel] = []
    players = ["random", "doubles", Interrupting(DUPLAS, 0)]
    with pytest.raises(Stopped) as stopped:
        cross_table(players, DUPLAS, deals=50, seed=5, told=told.append)
    assert stopped.value.duels == told == [duel("random", "doubles", DUPLAS, deals=50, seed=5)]


# Comparisons by deal


def test_a_comparison_is_the_difference_with_an_interval_of_its_own() -> None:
    options: dict[str, Any] = {"deals": 2000, "seed": 4}
    one, other = (duel(name, "doubles", DUPLAS, **options) for name in ("counting?pips=0.02", "counting"))
    found = compare(one, other)
    assert found.points.mean == pytest.approx(one.points.mean - other.points.mean, abs=1e-12)
    assert found.win_share.mean == pytest.approx(one.win_share.mean - other.win_share.mean, abs=1e-12)
    apart = math.hypot(one.points.error, other.points.error)
    assert found.points_factor == pytest.approx((apart / found.points.error) ** 2, rel=1e-9)
    assert found.points_factor > 1.5  # two players that are nearly the same
    reverse = compare(other, one)
    assert reverse.points.mean == -found.points.mean
    assert (reverse.points.low, reverse.points.high) == pytest.approx((-found.points.high, -found.points.low))
    assert str(found).startswith("counting?pips=0.02 rather than counting against doubles: ")
    same = compare(one, one)
    assert (same.points, same.win_share, same.verdict) == (Estimate(0, 0, 0), Estimate(0, 0, 0), "not separated")
    assert same.points_factor == math.inf


def test_a_comparison_of_matches_covers_the_truth_in_95_of_100() -> None:
    """Common luck a deal, matches of different lengths; the truth from one very long duel."""
    rng = np.random.default_rng(2)

    def some(deals: int) -> tuple[Duel, Duel]:
        luck = rng.normal(0, 3, deals)
        found = []
        for name, skill in (("a", 0.5), ("b", 0.2)):
            rounds = 2.0 * rng.integers(1, 6, deals)
            points = skill * rounds + luck + rng.normal(0, 2, deals)
            shares = (points > 0).astype(float)
            samples = Samples(points, rounds, shares, shares, shares)
            estimates = Estimate.ratio(points, rounds), Estimate.of(shares)
            found.append(Duel(name, "c", "duplas", "match", deals, 2, 1, *estimates, 0.5, 0, 0, 0, samples=samples))
        return found[0], found[1]

    truth = compare(*some(1_000_000))
    hits = np.zeros(2)
    for _ in range(1500):
        found = compare(*some(300))
        hits += [one.low <= real.mean <= one.high for one, real in
                 ((found.points, truth.points), (found.win_share, truth.win_share))]  # fmt: skip
    assert hits / 1500 == pytest.approx([0.95, 0.95], abs=0.02)
    assert truth.points_factor > 1.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 2}, "the duels have seed 1 and 2"),
        ({"deals": 20}, "the duels have deals 10 and 20"),
        ({"opponent": "heaviest"}, "the duels have opponent 'doubles' and 'heaviest'"),
        ({"rules": make_rules("duplas", target=9)}, "the duels have rules 'duplas' and 'duplas(target=9)'"),
        ({"episode": "match"}, "the duels have episode 'round' and 'match'"),
    ],
)
def test_only_duels_on_the_same_deals_compare(change: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"opponent": "doubles", "rules": DUPLAS, "deals": 10, "seed": 1}
    with pytest.raises(ValueError, match="the duels have") as caught:
        compare(duel("random", **options), duel("random", **(options | change)))
    assert message in str(caught.value)


# Pictures


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_is_painted(ending: str, tmp_path: Path) -> None:
    table = cross_table(["counting?pips=0.1", "doubles", "random"], DUPLAS, deals=50)
    for rated in (None, ratings(table)):
        file = tmp_path / f"table.{ending}"
        picture(table, file, ratings=rated)
        content = file.read_bytes()
        assert content.startswith(b"\x89PNG" if ending == "png" else b"<?xml")
        if ending == "svg":
            shares = [f"<!-- {one.win_share.mean:.1%} -->".encode() for one in table]
            assert all(share in content for share in shares)
            assert (b"<!-- Elo" in content) == (rated is not None)
    with pytest.raises(ValueError, match="at least one duel"):
        picture([], tmp_path / "none.png")
