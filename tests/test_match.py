"""`Match`: rounds after rounds, by the rules: starters, multipliers, targets, ends; given deals; copies."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import TABLES, partial_deals, rule_sets, seeds

from domino_env import PRESETS, Deal, Game, Match, RoundResult, RuleSet, make_rules

DUPLAS, MANO, BLOCOS, PUXAR = PRESETS.values()

# Rounds for two seats, all started by seat 0: a deal and its plays.
Round = tuple[Deal, str]
TIED: Round = (Deal((("2-1", "5-3"), ("4-4",)), (), 0), "2-1")  # 8 pips each
BLOCK: Round = (Deal((("2-1", "0-0"), ("5-5",)), (), 0), "2-1")  # seat 0 wins, 0 pips against 10
LOST_BLOCK: Round = (
    Deal((("2-1", "5-5"), ("0-0",)), (), 0),
    "2-1",
)  # seat 1 wins; seat 0 placed the last tile
SIMPLES: Round = (Deal((("6-6", "6-5"), ("6-4", "3-3")), (), 0), "6-6 6-4R 6-5L")  # 6 pips left
CRUZADA: Round = (Deal((("6-4", "6-1", "6-6"), ("4-1", "5-5")), (), 0), "6-4 4-1R 6-1R 6-6L")  # 10 left
NOTHING: Round = (Deal((("6-6",), ("0-0",)), (), 0), "6-6")  # out, with nothing left to count


def by_lots(rules: RuleSet, **changes: Any) -> RuleSet:
    """The same with lots for every start, so that the deals above go with any rules."""
    return dataclasses.replace(rules, **{"opening": "lots", "tie_starter": "lots", **changes})


def match_of(rules: RuleSet, rounds: list[Round], more: int = 0) -> tuple[Match, list[RoundResult], list[int]]:
    """A match after these rounds, their results, and each round's starter; `more` deals remain."""
    match = Match(rules, 1, deals=[deal for deal, _ in rounds] + [SIMPLES[0]] * more)
    results, starters = [], []
    for _, plays in rounds:
        starters.append(match.starter)
        for move in plays.split():
            result = match.play(move)
        assert result is not None
        results.append(result)
    return match, results, starters


def test_the_contract() -> None:
    match = Match(make_rules("duplas", target=2), seed=7)
    assert match.game == Game(make_rules("duplas", target=2), seed=7)
    assert (match.scores, match.round, match.multiplier, match.winner, match.over) == (
        [0, 0],
        1,
        1,
        None,
        False,
    )
    assert match.starter == match.game.starter == match.game.seat
    assert (match.results, match.seed, match.deals) == ((), 7, ())
    while not match.over:
        game = match.game
        move = game.legal_moves()[-1]
        result = match.play(str(move))
        assert (result is None) == (game.seat is not None)
        assert result == game.result
    assert match.winner is not None
    assert match.scores[match.winner] >= 2
    assert match.game.seat is None
    assert len(match.results) == len(match.games) == match.round
    scores = [0, 0]
    for result in match.results:
        if result.side is not None:
            scores[result.side] += result.points
    assert scores == match.scores


# Multipliers and starters


@pytest.mark.parametrize(
    ("changes", "rounds", "multipliers", "score"),
    [
        ({}, [TIED, SIMPLES, SIMPLES], [1, 2, 1], 3),
        ({}, [TIED, TIED, SIMPLES, SIMPLES], [1, 2, 2, 1], 3),
        ({}, [TIED, BLOCK, TIED, BLOCK], [1, 2, 1, 2], 4),
        ({}, [TIED, CRUZADA], [1, 2], 8),
        ({"tie_multiplier_stacks": True}, [TIED, TIED, TIED, CRUZADA, BLOCK], [1, 2, 4, 8, 1], 33),
        ({"tie_multiplier": 3}, [TIED, TIED, SIMPLES], [1, 3, 3], 3),
        ({"tie_multiplier": 3, "tie_multiplier_stacks": True}, [TIED, TIED, BLOCK], [1, 3, 9], 9),
        ({"tie_multiplier": 1, "tie_multiplier_stacks": True}, [TIED, TIED, BLOCK], [1, 1, 1], 1),
    ],
)
def test_the_multiplier_after_ties(
    changes: dict[str, Any], rounds: list[Round], multipliers: list[int], score: int
) -> None:
    match, results, _ = match_of(by_lots(MANO, next_starter="last_to_place", target=100, **changes), rounds)
    assert [result.multiplier for result in results] == multipliers
    assert [result.points for result in results] == [result.base * result.multiplier for result in results]
    assert match.scores == [score, 0]
    assert match.multiplier == 1


def test_no_doubling_where_the_preset_has_none() -> None:
    match, results, _ = match_of(by_lots(BLOCOS), [TIED, TIED, LOST_BLOCK], more=1)
    assert [result.multiplier for result in results] == [1, 1, 1]
    assert match.scores == [0, 10]


@pytest.mark.parametrize("rule", ["last_to_place", "loser", "rotation"])
def test_the_next_starter(rule: str) -> None:
    lots_free = dataclasses.replace(BLOCOS, next_starter=rule, target=1000)
    after = {"last_to_place": [0, 0, 0], "loser": [1, 0, 1], "rotation": [1, 1, 1]}[rule]
    for round_, starter in zip([SIMPLES, LOST_BLOCK, BLOCK], after, strict=True):
        match, (result,), _ = match_of(lots_free, [round_], more=1)
        assert result.next_starter == match.starter == match.game.seat == starter
        assert match.game.forced is None


def test_rotation_goes_on_whoever_won() -> None:
    rules = make_rules("puxar", players=3)
    deal = Deal((("6-6", "2-1"), ("5-5", "1-0"), ("4-4", "0-0")), (), 1)
    match = Match(rules, 1, deals=[deal] * 6)
    starters = []
    for first in ["5-5", "4-4", "6-6", "5-5", "4-4"]:
        starters.append(match.starter)
        match.play(first)
    assert starters == [1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("tie_starter", "starter", "forced"),
    [
        ("last_to_place", 0, None),
        ("same", 1, None),
        ("rotation", 0, None),
        ("lots", 1, None),
        ("opening", 1, "4-4"),
    ],
)
def test_the_starter_after_a_tied_block(tie_starter: str, starter: int, forced: str | None) -> None:
    rules = dataclasses.replace(MANO, tie_starter=tie_starter)
    # Seat 1 opens with the only double, seat 0 places the last tile: nobody holds a 0 or a 5; 7 pips each.
    tie = Deal((("5-0", "4-3"), ("5-5", "6-1")))
    match = Match(rules, 1, deals=[tie, Deal((("6-3", "6-5"), ("4-4", "2-1")), (), 1)])
    assert (match.starter, match.game.forced) == (1, "5-5")
    match.play("5-5")
    result = match.play("5-0L")
    assert result is not None
    assert (result.reason, result.points, result.pips, result.last_placer) == ("tied", 0, (7, 7), 0)
    assert result.next_starter == (starter if tie_starter in ("last_to_place", "same", "rotation") else None)
    assert (match.starter, match.game.seat, match.game.forced) == (starter, starter, forced)
    assert (match.scores, match.multiplier, match.round) == ([0, 0], 2, 2)


def test_lots_follow_from_the_seed() -> None:
    starters = [Match(BLOCOS, seed).starter for seed in range(60)]
    assert set(starters) == {0, 1}
    assert starters == [Match(BLOCOS, seed).starter for seed in range(60)]
    nine = [Match(TABLES["blocos-9"], seed).starter for seed in range(300)]
    assert set(nine) == set(range(9))


# Targets and ends


@pytest.mark.parametrize(
    ("target", "over"), [(9, True), (10, True), (11, False), (1, True), (10**9, False), (20, False)]
)
def test_at_least_the_target_wins_and_nothing_is_cut_off(target: int, over: bool) -> None:
    match, _, _ = match_of(dataclasses.replace(BLOCOS, target=target), [BLOCK], more=1)
    assert (match.scores, match.over, match.winner) == ([10, 0], over, 0 if over else None)
    assert match.round == (1 if over else 2)


def test_a_score_far_above_the_target_and_the_other_close_below() -> None:
    rules = dataclasses.replace(BLOCOS, next_starter="rotation", target=100)
    poor, rich = (
        ("2-1", "0-0"),
        ("6-6", "5-5", "4-4", "3-3", "6-5", "6-4", "6-3", "5-4"),
    )  # blocked: 0 against 75
    match = Match(rules, 1, deals=[Deal((poor, rich), (), 0), Deal((rich, poor)), Deal((poor, rich))])
    seen = []
    while not match.over:
        match.play("2-1")
        seen.append(match.scores)
    assert seen == [[75, 0], [75, 75], [150, 75]]
    assert (match.winner, match.round) == (0, 3)


@pytest.mark.parametrize(
    ("rules", "round_", "winner", "scores"),
    [
        (MANO, BLOCK, 0, [1, 0]),
        (MANO, LOST_BLOCK, 1, [0, 1]),
        (MANO, CRUZADA, 0, [4, 0]),
        (MANO, TIED, None, [0, 0]),
        (BLOCOS, BLOCK, 0, [10, 0]),
        (BLOCOS, NOTHING, 0, [0, 0]),  # a win worth nothing is a win
        (BLOCOS, TIED, None, [0, 0]),
        (PUXAR, BLOCK, None, [10, 0]),  # drawn; its points are still reported
        (PUXAR, SIMPLES, 0, [6, 0]),
        (PUXAR, TIED, None, [0, 0]),
    ],
)
def test_a_single_round(rules: RuleSet, round_: Round, winner: int | None, scores: list[int]) -> None:
    match, (result,), _ = match_of(by_lots(rules, target=None), [round_], more=1)
    assert (match.over, match.winner, match.scores, match.round) == (True, winner, scores, 1)
    assert result.points == sum(scores)
    assert ("drawn" in repr(match)) == (winner is None)
    # With a target the block is worth the same, and the match goes on.
    match, _, _ = match_of(by_lots(rules, target=99), [round_], more=1)
    assert (match.over, match.winner, match.scores, match.round) == (False, None, scores, 2)


@pytest.mark.parametrize("move", ["6-6", "6-6L", 54, None])
def test_nothing_can_be_played_when_the_match_is_over(move: Any) -> None:
    for rules, verdict in [(MANO, "won by side 0"), (PUXAR, "drawn")]:
        match, _, _ = match_of(by_lots(rules, target=None), [BLOCK])
        before = match.copy()
        with pytest.raises(ValueError, match=rf"the match is over \({verdict}\), so '{move}' cannot be played"):
            match.play(move)
        assert match == before


def test_an_illegal_move_changes_nothing() -> None:
    match = Match(DUPLAS, 3)
    before = match.game._state.tobytes()
    for move in ("6-6R", 55, -1, 10**30, True, 1.0, None, "x"):
        with pytest.raises(ValueError, match=r"play|is not a move"):
            match.play(move)  # type: ignore[arg-type]
        assert (match.game._state.tobytes(), match.round) == (before, 1)


def test_scores_of_pairs() -> None:
    deal = Deal((("5-0",), ("4-0",), ("3-0",), ("6-6",)))
    match = Match(make_rules("duplas", target=2), deals=[deal])
    result = match.play("6-6")
    assert result is not None
    assert (result.seat, result.side, result.finish, match.scores, match.winner) == (
        3,
        1,
        "carroca",
        [0, 2],
        1,
    )


# Every round as a fresh one


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rule_sets(), seeds)
def test_every_round_is_as_fresh_as_a_game_of_its_deal(rules: RuleSet, seed: int) -> None:
    match = Match(rules, seed)
    scores = [0] * rules.num_sides
    for number in range(1, 6):
        game = match.game
        assert (match.round, match.scores) == (number, scores)
        fresh = Game.from_deal(
            rules,
            game.deal.hands,
            game.deal.boneyard,
            game.starter,
            game.forced,
            game.multiplier,
            scores=scores,
        )
        assert fresh == game
        game.play_out(seed)
        for move in game.moves:
            fresh.play(move)
        assert (fresh.result, fresh.events, fresh.scores) == (game.result, game.events, game.scores)
        result = game.result
        assert result is not None
        if result.side is not None:
            scores[result.side] += result.points
        assert match.over == (rules.target is None or max(scores) >= rules.target)
        if match.over:
            return
        assert result.next_starter in (None, match.starter)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(list(TABLES)), seeds, st.integers(0, 120))
def test_copies_are_equal_and_go_on_alike(name: str, seed: int, plays: int) -> None:
    match = Match(TABLES[name], seed)
    for _ in range(plays):
        if not match.over:
            match.play(match.game.legal_moves()[0])
    others = [match.copy(), copy.copy(match), copy.deepcopy(match), pickle.loads(pickle.dumps(match))]
    if match.over:
        assert all(other == match and other.winner == match.winner for other in others)
        return
    for other in others:
        assert (other, other.scores, other.results, repr(other)) == (
            match,
            match.scores,
            match.results,
            repr(match),
        )
        other.play(other.game.legal_moves()[-1])
        assert other != match
    kept = match.copy()
    for other in (copy.deepcopy(match), pickle.loads(pickle.dumps(match))):
        match = kept.copy()
        for _ in range(100):  # into rounds that are dealt later
            if not match.over:
                match.play(match.game.legal_moves()[0])
                other.play(other.game.legal_moves()[0])
        assert other == match
        assert other.scores == match.scores


@pytest.mark.parametrize("name", TABLES)
def test_the_same_seed_is_the_same_match(name: str) -> None:
    def play_all(match: Match) -> Match:
        while not match.over:
            match.game.play_out(5)
        return match

    assert play_all(Match(TABLES[name], 3)) == play_all(Match(TABLES[name], np.uint8(3)))
    assert play_all(Match(TABLES[name], 3)) != play_all(Match(TABLES[name], 4))


def test_a_round_played_otherwise_is_followed_by_the_same_tiles() -> None:
    """Deals follow from the seed, not from what is played: duplicate matches share their deals."""
    one, other = Match(DUPLAS, 9), Match(DUPLAS, 9)
    one.game.play_out(1)
    other.game.play_out(2)
    assert one.games[0] != other.games[0]
    assert (one.round, other.round) == (2, 2)
    assert one.game.hands == other.game.hands


def test_undo_at_the_end_of_a_match() -> None:
    match, _, _ = match_of(by_lots(MANO, target=None), [SIMPLES])
    assert match.over
    match.game.undo()
    assert (match.over, match.scores, match.winner, match.round, match.results) == (
        False,
        [0, 0],
        None,
        1,
        (),
    )
    match.play("6-5L")
    assert (match.over, match.scores, match.winner) == (True, [1, 0], 0)


# Given deals


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.sampled_from(list(TABLES)), seeds)
def test_after_the_given_deals_the_seeds_follow(data: st.DataObject, name: str, seed: int) -> None:
    rules = dataclasses.replace(TABLES[name], target=10**6)
    deals = data.draw(st.lists(partial_deals(rules), min_size=1, max_size=3))
    match = Match(rules, seed, deals=iter(deals))
    assert len(match.deals) == len(deals)
    for deal in match.deals:
        assert (match.game.deal.hands, match.game.deal.boneyard) == (deal.hands, deal.boneyard)
        match.game.play_out(1)
    assert [len(hand) for hand in match.game.deal.hands] == [rules.hand_size] * rules.players
    assert match.round == len(deals) + 1


def test_given_deals_are_checked_at_once_and_named() -> None:
    good = SIMPLES[0]
    cases = [
        (Deal((("6-6",),)), "deal 1: hands: 1 given for 2 players"),
        (Deal((("6-6",), ())), "deal 1: the hand of seat 1 is empty"),
        (
            Deal((("6-6",), ("6-6",))),
            "deal 1: tile '6-6' in the hand of seat 1 was already given in the hand of seat 0",
        ),
        (Deal((("6-6",), ("8-1",))), "deal 1: '8-1' is not in the double-6 set"),
        (Deal((("6-6",), ("5-5",)), (), 2), "deal 1: lot=2 is not a whole number from 0 to 1"),
        (Deal((("6-6",), ("5-5",)), (), -1), "deal 1: lot=-1 is not a whole number from 0 to 1"),
    ]
    for deal, message in cases:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            Match(BLOCOS, 1, deals=[good, deal])
    with pytest.raises(ValueError, match="deal 0: no hand holds a double, so these tiles are dealt again"):
        Match(dataclasses.replace(MANO, no_double="redeal"), 1, deals=[Deal((("6-5",), ("6-4",)))])


def test_a_lot_says_who_starts() -> None:
    for lot in (0, 1):
        deal = SIMPLES[0]._replace(lot=lot)
        assert Match(BLOCOS, 1, deals=[deal]).starter == lot
        assert Match(MANO, 1, deals=[deal]).starter == 0  # who holds the highest double
