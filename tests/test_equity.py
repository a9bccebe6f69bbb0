"""Match equity: exact on chains worked out by hand, what must hold in any, and as often as it says in real matches."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from domino_env import PRESETS, Batch, RuleSet, make_rules
from domino_env._jit import jit
from domino_env.bots import make_player
from domino_env.bots.outcomes import measure
from domino_env.bots.rollout import play_out
from domino_env.equity import CHANCE, STARTERS, Equity, Outcomes, shipped_outcomes
from domino_env.kernel import start_round
from domino_env.observation import Views
from domino_env.players import Player, Streams
from domino_env.rules import pack
from domino_env.state import BY_LOTS, BY_OPENING
from training import measure_outcomes

every_preset = pytest.mark.parametrize("preset", PRESETS)
OWN, OTHER, NOBODY = 0, 1, 2


def chain(rules: RuleSet, later: dict[tuple[int, int, int], int], first: Any = None) -> Equity:
    """The equity where rounds end so: (who scores, points, who placed last), seen from the starter, and how often."""

    def counts(rows: dict[tuple[int, int, int], int]) -> npt.NDArray[np.int64]:
        table = np.zeros((3, 1 + max(points for _, points, _ in rows), 2), np.int64)
        for at, count in rows.items():
            table[at] = count
        return table

    return Equity(rules, Outcomes(rules, "by hand", 0, counts(first or later), counts(later)))


def test_the_starter_changes_and_ties_go_round() -> None:
    # x (own starts) = 1/2 + 1/4 y; y (the other starts) = 1/4 + 1/4 x.
    equity = chain(make_rules("puxar", target=1), {(OWN, 1, 0): 2, (OTHER, 1, 0): 1, (NOBODY, 0, 0): 1})
    assert equity.chance(0, 0, starter="own") == pytest.approx(0.6)
    assert equity.chance(0, 0, starter="other") == pytest.approx(0.4)
    assert equity.chance(0, 0, starter="lots") == equity.chance(0, 0) == pytest.approx(0.5)


def test_a_win_of_no_points_goes_round_as_well() -> None:
    # x = 1/2 y; y = 1/2 + 1/2 x.
    equity = chain(make_rules("puxar", target=1), {(OWN, 0, 0): 1, (OTHER, 1, 0): 1})
    assert equity.chance(0, 0, starter="own") == pytest.approx(1 / 3)
    assert equity.chance(0, 0, starter="other") == pytest.approx(2 / 3)


def test_after_a_tie_the_next_round_counts_double() -> None:
    # At 1-0 of 2 half the rounds tie, and from then on the next to score wins; else 2-0, or 1-1, which is even.
    rules = make_rules("mano_a_mano", target=2)
    equity = chain(rules, {(OWN, 1, 0): 1, (OTHER, 1, 1): 1, (NOBODY, 0, 0): 2})
    assert equity.chance(1, 0, starter="own") == pytest.approx(1 / 4 + 1 / 4 * 1 / 2 + 1 / 2 * 1 / 2)
    assert equity.chance(1, 0, multiplier=2, starter="own") == pytest.approx(1 / 2)


def test_multipliers_stack_up_to_where_more_changes_nothing() -> None:
    rows = {(OWN, 1, 0): 1, (OTHER, 1, 1): 1, (NOBODY, 0, 0): 2}
    assert chain(make_rules("duplas"), rows).multipliers == (1, 2)
    assert chain(make_rules("duplas", tie_multiplier_stacks=True), rows).multipliers == (1, 2, 4, 8)
    assert chain(make_rules("duplas", tie_multiplier_stacks=True, target=1), rows).multipliers == (1,)
    assert chain(make_rules("puxar"), rows).multipliers == (1,)


@pytest.mark.parametrize(
    ("next_starter", "after_ours", "after_theirs"),
    [("last_to_place", "own", "own"), ("loser", "other", "own"), ("rotation", "other", "other")],
)
def test_who_starts_after_a_win(next_starter: str, after_ours: Any, after_theirs: Any) -> None:
    # The starter places the last tile; it scores 1 in two rounds of three, else the other side scores 2.
    equity = chain(make_rules("blocos", target=4, next_starter=next_starter), {(OWN, 1, 0): 2, (OTHER, 2, 0): 1})
    for own, other in ((1, 0), (0, 2)):
        assert equity.chance(own, other, starter="own") != pytest.approx(equity.chance(own, other, starter="other"))
    won, lost = equity.chance(1, 0, starter=after_ours), equity.chance(0, 2, starter=after_theirs)
    assert equity.chance(0, 0, starter="own") == pytest.approx(2 / 3 * won + 1 / 3 * lost)


@pytest.mark.parametrize(
    ("tie_starter", "own_starts"),
    [("last_to_place", 2 / 3), ("rotation", 2 / 3), ("same", 1.0), ("lots", 3 / 4), ("opening", 3 / 4)],
)
def test_who_starts_after_a_tie(tie_starter: str, own_starts: float) -> None:
    # Half the rounds tie, the other side placing last; else the starter wins. So x = 1/2 + 1/2 (1 - x), or x, or 1/2.
    rules = make_rules("mano_a_mano", target=1, tie_starter=tie_starter, tie_multiplier=1)
    equity = chain(rules, {(OWN, 1, 0): 1, (NOBODY, 0, 1): 1}, first={(OWN, 1, 0): 1})
    assert equity.chance(0, 0, starter="own") == pytest.approx(own_starts)
    assert equity.chance(0, 0, starter="opening") == pytest.approx(0.5)


def test_a_first_round_ends_as_first_rounds_do() -> None:
    # Whoever opens wins the first round of two, then places last and goes on; elsewhere the starter loses.
    rules = make_rules("mano_a_mano", target=2, tie_starter="opening")
    equity = chain(rules, {(OTHER, 2, 0): 1}, first={(OWN, 2, 0): 1})
    assert equity.chance(0, 0, starter="own") == 0
    assert equity.chance(1, 0) == equity.chance(0, 1) == pytest.approx(0.5)


@every_preset
def test_the_chances_of_both_sides_sum_to_1_and_grow_with_the_score(preset: str) -> None:
    rules = PRESETS[preset]
    table = Equity.of(rules).table
    assert table.shape == (rules.target, rules.target, 1 if rules.tie_multiplier == 1 else 2, 4)
    swapped = table.transpose(1, 0, 2, 3)[..., [1, 0, 2, 3]]
    assert np.abs(table + swapped - 1).max() < 1e-12
    assert np.all((table > 0) & (table < 1))
    # With a round at x2 the last two scores of `batida` may be worth the same.
    assert np.all(np.diff(table, axis=0) >= 0)
    assert np.all(np.diff(table, axis=1) <= 0)
    assert np.all(np.diff(table[:, :, 0], axis=0) > 0)
    assert np.all(np.diff(table[:, :, 0], axis=1) < 0)
    assert np.allclose(table[..., 3], table[..., :2].mean(axis=-1))
    assert not table.flags.writeable


def test_a_chance_by_name_is_the_table_s() -> None:
    equity = Equity.of(PRESETS["duplas"])
    for own, other, level, starter in itertools.product((0, 3, 5), (0, 2, 5), (0, 1), range(4)):
        chance = equity.chance(own, other, multiplier=equity.multipliers[level], starter=STARTERS[starter])  # type: ignore[arg-type]
        assert chance == equity.table[own, other, level, starter]
    assert equity.chance(6, 5) == equity.chance(9, 0) == 1.0
    assert equity.chance(5, 6) == 0.0
    assert Equity.of(PRESETS["duplas"]) is equity


def test_what_differs_between_rounds_alone_needs_no_new_count() -> None:
    longer = Equity.of(make_rules("duplas", target=12, tie_multiplier=3, tie_starter="same"))
    assert longer.table.shape == (12, 12, 2, 4)
    assert longer.multipliers == (1, 3)
    lead = longer.chance(9, 6), Equity.of(make_rules("duplas", target=24)).chance(9, 6)
    assert lead[0] > lead[1] > 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": None}, "needs a target"),
        ({"target": 501}, "targets up to 500, not target=501"),
        ({"points_cruzada": 5, "target": 10}, "for mano_a_mano with points_cruzada=5; count them"),
        ({"players": 3}, "for two sides, not 3"),
    ],
)
def test_rules_without_equity_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Equity.of(make_rules("mano_a_mano", **changes))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"own": 6, "other": 7}, "only one side can have reached 6"),
        ({"own": -1, "other": 0}, "own=-1"),
        ({"own": 0, "other": 0, "multiplier": 3}, "multiplier=3: under these rules a round is worth one of 1, 2 times"),
        ({"own": 0, "other": 0, "starter": "both"}, "starter='both'"),
    ],
)
def test_a_state_that_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Equity.of(PRESETS["duplas"]).chance(**arguments)


def test_outcomes_of_other_rules_or_other_shapes_are_refused() -> None:
    kept = shipped_outcomes()[0]
    with pytest.raises(ValueError, match="under other rules"):
        Equity(PRESETS["mano_a_mano"], kept)
    with pytest.raises(ValueError, match=r"later has shape \(3, 2\)"):
        dataclasses.replace(kept, later=np.ones((3, 2), np.int64))
    with pytest.raises(ValueError, match="not 3"):
        measure(make_rules("blocos", players=3), rounds=10)
    with pytest.raises(ValueError, match="player='first' is not a scripted player"):
        measure(PRESETS["duplas"], First, rounds=10)


class First(Player):
    """A player that is not made of weights."""

    name = "first"

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        raise AssertionError("nobody shall be asked")


@every_preset
def test_a_new_count_agrees_with_the_one_that_comes_with_the_package(preset: str) -> None:
    (kept,) = [outcomes for outcomes in shipped_outcomes() if outcomes.rules == PRESETS[preset]]
    assert kept.first.sum() == kept.later.sum() == 1_000_000
    again = measure(PRESETS[preset], rounds=20_000, seed=99)
    for one, other in ((kept.first, again.first), (kept.later, again.later)):
        for axes in ((1, 2), (0, 1)):  # who scored, who placed last
            share, seen = one.sum(axes) / one.sum(), other.sum(axes) / 20_000
            assert np.all(np.abs(share - seen) < 4.5 * np.sqrt(share * (1 - share) / 20_000))


def test_the_file_is_what_the_program_writes(tmp_path: Path) -> None:
    file = tmp_path / "outcomes.json"
    assert measure_outcomes.main(["--rounds", "500", "--seed", "4", "--out", str(file)]) == 0
    read = [Outcomes.from_dict(kept) for kept in json.loads(file.read_text())]
    assert [outcomes.rules for outcomes in read] == list(PRESETS.values())
    for outcomes in read:
        again = measure(outcomes.rules, rounds=500, seed=4)
        assert np.array_equal(outcomes.first, again.first)
        assert np.array_equal(outcomes.later, again.later)
        assert (outcomes.player, outcomes.seed) == ("counting", 4)
    assert measure_outcomes.text(read) == file.read_text()


@jit
def start_rounds(state: Any, rules: Any) -> None:
    for t in range(state.shape[0]):
        start_round(state[t], rules[0])


def played_from(
    rules: RuleSet, scores: tuple[int, int], ties: int, starter: int, n: int, seed: int
) -> npt.NDArray[np.bool_]:
    """Whether side 0 won each of n matches between equal players that stood so before a round."""
    batch = Batch(rules, n, seed, episode="match", autoreset=False, observe=False)
    batch.state["scores"][:, :2] = scores
    batch.state["ties"], batch.state["next_starter"] = ties, starter
    start_rounds(batch.state, pack(rules))
    player = make_player("counting", rules)
    assert play_out(batch, [player] * rules.players, Streams.from_seed(seed, n)) is not None
    assert np.all(batch.state["over"] == 1)
    return np.asarray(batch.state["winner"] == 0)


def standings(rules: RuleSet) -> list[tuple[tuple[int, int], int, int]]:
    """Scores, ties and who starts, of all kinds."""
    target = int(rules.target or 0)
    low, high = target // 3, target - 1
    scores = [(low, 0), (0, 0), (high, low), (low, 2 * low), (high, high), (low, high), (0, 2 * low)]
    return list(itertools.product(scores, (0, 1), (0, BY_LOTS, 1, BY_OPENING)))


def error_of_prediction(rules: RuleSet, standing: tuple[tuple[int, int], int, int], n: int, seed: int) -> float:
    """What share of n matches side 0 won, less its chance, in standard errors."""
    scores, ties, starter = standing
    multiplier = rules.tie_multiplier if ties else 1
    chance = Equity.of(rules).chance(*scores, multiplier=multiplier, starter=STARTERS[starter])  # type: ignore[arg-type]
    won = played_from(rules, *standing, n, seed).mean()
    return float((won - chance) / np.sqrt(chance * (1 - chance) / n))


@every_preset
def test_matches_are_won_as_often_as_predicted(preset: str) -> None:
    rules = PRESETS[preset]
    for number, standing in enumerate(standings(rules)[::9]):
        assert abs(error_of_prediction(rules, standing, 4000, seed=number)) < 3, standing


@pytest.mark.long
@every_preset
def test_matches_are_won_as_often_as_predicted_from_everywhere(preset: str) -> None:
    rules = PRESETS[preset]
    errors = [error_of_prediction(rules, standing, 20_000, seed) for seed, standing in enumerate(standings(rules))]
    assert np.abs(errors).max() < 4
    assert np.square(errors).mean() < 1.8  # 1 where the predictions are exact


@every_preset
def test_rewards_are_what_each_round_changed(preset: str) -> None:
    rules = PRESETS[preset]
    equity = Equity.of(rules)
    batch = Batch(rules, 60, seed=8, episode="match", reward="equity", autoreset=False)
    before, rounds = np.full(60, 0.5), 0
    while not batch.done.all():
        number = batch.state["round"].copy()
        batch.step(batch.sample_actions())
        for t in range(60):
            row = batch.state[t]
            if row["round"] == number[t]:
                assert not batch.rewards[t].any()
                continue
            after = float(row["winner"] == 0)
            if not row["over"]:
                next_starter = int(row["next_starter"])
                starter = STARTERS[next_starter % 2 if next_starter >= 0 else next_starter]
                scores = row["scores"][:2].tolist()
                after = equity.chance(*scores, multiplier=int(row["multiplier"]), starter=starter)  # type: ignore[arg-type]
            assert batch.rewards[t].tolist() == pytest.approx([after - before[t], before[t] - after], abs=1e-6)
            before[t] = after
            rounds += 1
    assert rounds > 300
    assert set(before) == {0.0, 1.0}


@pytest.mark.parametrize("skip_single", [False, True])
@every_preset
def test_rewards_of_a_match_sum_to_the_outcome_less_what_it_began_with(preset: str, skip_single: bool) -> None:
    kwargs: dict[str, Any] = {"episode": "match", "skip_single": skip_single, "observe": False}
    batch = Batch(PRESETS[preset], 50, seed=2, reward="equity", **kwargs)
    twin = Batch(PRESETS[preset], 50, seed=2, reward="outcome", **kwargs)
    totals, matches = np.zeros((50, 2)), 0
    for step in range(1500):
        if step == 700:  # in the middle of matches
            batch.reset(tables=np.arange(50) < 20)
            twin.reset(tables=np.arange(50) < 20)
            totals[:20] = 0
        actions = batch.sample_actions()
        batch.step(actions)
        twin.step(actions)
        assert np.array_equal(batch.done, twin.done)
        totals += batch.rewards
        assert np.allclose(totals[batch.done], twin.rewards[batch.done] / 2, atol=1e-5)
        matches += int(batch.done.sum())
        totals[batch.done] = 0
    assert matches > 100


def test_an_equity_of_one_s_own_may_be_the_reward() -> None:
    rules = make_rules("mano_a_mano", points_cruzada=6)
    equity = Equity(rules, measure(rules, "doubles", rounds=2000))
    batch = Batch(rules, 20, seed=1, episode="match", reward=equity, autoreset=False)
    totals = np.zeros((20, 2))
    while not batch.done.all():
        batch.step(batch.sample_actions())
        totals += batch.rewards
    assert np.allclose(totals[:, 0], np.where(batch.state["winner"] == 0, 0.5, -0.5), atol=1e-5)
    with pytest.raises(ValueError, match="that of other rules"):
        Batch(PRESETS["mano_a_mano"], 1, episode="match", reward=equity)


@pytest.mark.parametrize(
    ("preset", "kwargs", "message"),
    [
        ("duplas", {}, "episode must be 'match', not 'round'"),
        ("duplas", {"reward": "equities", "episode": "match"}, "did you mean 'equity'"),
    ],
)
def test_a_reward_of_equity_is_for_matches(preset: str, kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Batch(PRESETS[preset], 1, **{"reward": "equity", **kwargs})


def test_chances_are_a_record_each() -> None:
    batch = Batch(PRESETS["duplas"], 3, episode="match", reward="equity")
    assert batch.chances.dtype == CHANCE
    assert batch.chances["before"].tolist() == [0.5, 0.5, 0.5]
    assert Batch(PRESETS["duplas"], 3).equity is None
