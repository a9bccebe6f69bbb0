"""The compiled engine equals the reference model move for move: Game, Match and Batch."""

from __future__ import annotations

from random import Random
from typing import Any

import compare_with_reference
import pytest
from compare_with_reference import Mismatch, compare_batch, compare_game, compare_match, compare_some
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import ReferenceMatch, ReferenceRound, ReferenceRules
from strategies import TABLES, partial_deals, rule_sets, seeds

from domino_env import Deal, make_rules

EVERYDAY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@EVERYDAY
@given(st.data(), rule_sets(), seeds)
def test_a_round_of_any_deal(data: st.DataObject, rules: Any, seed: int) -> None:
    compare_game(rules, data.draw(partial_deals(rules)), Random(seed))


@EVERYDAY
@given(rule_sets(), seeds, seeds)
def test_a_match_of_any_rules(rules: Any, seed: int, choices: int) -> None:
    assert compare_match(rules, seed, Random(choices), rounds=6) >= 1


@EVERYDAY
@given(st.data(), rule_sets(no_double="heaviest", target=20), seeds)
def test_a_match_of_given_deals(data: st.DataObject, rules: Any, seed: int) -> None:
    deals = tuple(data.draw(st.lists(partial_deals(rules), min_size=1, max_size=4)))
    assert compare_match(rules, seed, Random(seed), deals, rounds=len(deals) + 1) >= 1


@EVERYDAY
@given(
    rules=rule_sets(),
    seed=seeds,
    episode=st.sampled_from(["match", "round"]),
    reward=st.sampled_from(["points", "outcome"]),
    autoreset=st.booleans(),
    skip=st.booleans(),
)
def test_a_batch_of_any_rules(rules: Any, seed: int, skip: bool, **options: Any) -> None:
    episodes, decisions = compare_batch(
        rules, seed, tables=6, steps=120, skip=skip and rules.hand_size > 2, most=12, **options
    )
    assert decisions >= episodes


@pytest.mark.parametrize("reward", ["points", "outcome"])
@pytest.mark.parametrize("name", TABLES)
def test_matches_of_the_published_games(name: str, reward: str) -> None:
    episodes, decisions = compare_batch(TABLES[name], 5, tables=12, steps=5000, reward=reward)
    assert episodes == 12  # every match came to its end
    assert decisions > 12 * 6
    assert compare_batch(TABLES[name], 6, tables=12, steps=300, reward=reward, skip=True)[1] > 60
    assert compare_match(TABLES[name], 7, Random(7), rounds=200) < 200


def test_the_comparison_sees_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each driver fails as soon as the reference model plays by a slightly other rule."""
    rules, rng = make_rules("mano_a_mano", target=20, points_carroca=5), Random(3)

    def expect_mismatch(what: str) -> None:
        with pytest.raises(Mismatch, match=what):
            compare_match(rules, 3, rng)
        with pytest.raises(Mismatch):
            compare_batch(rules, 3)

    with monkeypatch.context() as patch:
        patch.setattr(compare_with_reference, "reference_rules", lambda _: reference(points_carroca=4))
        expect_mismatch("base: engine 5, reference 4")
    with monkeypatch.context() as patch:
        patch.setattr(ReferenceRound, "_can_draw", lambda self: len(self.boneyard) > 2)
        expect_mismatch("seat|events|legal|hands")
    with monkeypatch.context() as patch:
        patch.setattr(ReferenceMatch, "must_redeal", lambda self, hands: len(hands[0]) == 7)
        expect_mismatch("did not deal again")
    with monkeypatch.context() as patch:
        patch.setattr(compare_with_reference, "reference_rules", lambda _: reference(next_starter="rotation"))
        expect_mismatch("next_starter")
    with monkeypatch.context() as patch:
        patch.setattr(ReferenceRound, "_after", lambda self, seat: seat)
        with pytest.raises(Mismatch, match="seat"):
            compare_game(rules, Deal((("6-6", "6-5", "6-4"), ("6-3", "6-2", "6-1"))), rng)


def reference(**changes: Any) -> Any:
    return ReferenceRules(**{**vars(make_rules("mano_a_mano", target=20, points_carroca=5)), **changes})


@pytest.mark.long
def test_twenty_thousand_matches() -> None:
    rng = Random(20_000)
    draws = matches = decisions = 0
    while matches < 20_000 or draws < 800:
        played = compare_some(rng)
        draws, matches, decisions = draws + 1, matches + played[0], decisions + played[1]
    assert decisions > 500_000
