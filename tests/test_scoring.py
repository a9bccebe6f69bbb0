"""What endings made by hand are worth, to whom, who starts next, and how rewards share it out."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from domino_env import PRESETS, Game, RoundResult, RuleSet, make_rules
from domino_env.rules import pack
from domino_env.scoring import add_outcome_rewards, add_round_rewards, finish_of, pips_in
from domino_env.state import CARROCA, CRUZADA, LA_E_LO, NONE, SIMPLES
from domino_env.tiles import parse_tile, tile_set

DUPLAS, MANO, BLOCOS, PUXAR = PRESETS.values()
THREE = make_rules("blocos", players=3)


def played(
    rules: RuleSet, hands: list[str], plays: str, boneyard: str = "", starter: int = 0, multiplier: int = 1
) -> Game:
    deal = [hand.split() for hand in hands]
    game = Game.from_deal(rules, deal, boneyard.split(), starter, multiplier=multiplier)
    for move in plays.split():
        game.play(move)
    return game


def result_of(*args: Any, **options: Any) -> RoundResult:
    result = played(*args, **options).result
    assert result is not None
    return result


def rewards_of(game: Game) -> list[float]:
    """By side, from the finished round."""
    state = game._state.copy()
    state["rewards"] = 0
    add_round_rewards(state[0], pack(game.rules)[0])
    return state[0]["rewards"][: game.rules.num_sides].tolist()


# hands, plays, finish, points: the last tile goes in at either end wherever it fits.
EQUAL_ENDS = "6-4 4-1R 6-1R"  # ends 6 and 6; seat 1 passes
FINISHES = [
    (["6-6 6-5", "6-4 3-3"], "6-6 6-4R 6-5L", "simples", 1),
    (["6-5 5-5", "6-4 3-3"], "6-5 6-4L 5-5R", "carroca", 2),
    (["6-5 5-4", "6-4 3-3"], "6-5 6-4L 5-4L", "la-e-lo", 3),
    (["6-5 5-4", "6-4 3-3"], "6-5 6-4L 5-4R", "la-e-lo", 3),
    (["0-1 0-2", "1-2 3-3"], "1-0 2-1L 2-0L", "la-e-lo", 3),  # with a blank
    (["6-4 6-1 6-6", "4-1 5-5"], f"{EQUAL_ENDS} 6-6L", "cruzada", 4),
    (["6-4 6-1 6-6", "4-1 5-5"], f"{EQUAL_ENDS} 6-6R", "cruzada", 4),
    (["6-4 6-1 6-5", "4-1 5-5"], f"{EQUAL_ENDS} 6-5L", "simples", 1),
    (["6-4 6-1 6-5", "4-1 5-5"], f"{EQUAL_ENDS} 6-5R", "simples", 1),
    (["6-6", "5-5"], "6-6", "carroca", 2),  # a first tile that is also the last
    (["6-5", "5-5"], "6-5", "simples", 1),
]


@pytest.mark.parametrize("multiplier", [1, 2, 2**31])
@pytest.mark.parametrize(("hands", "plays", "finish", "points"), FINISHES)
def test_batida_scores_by_the_last_tile(
    hands: list[str], plays: str, finish: str, points: int, multiplier: int
) -> None:
    result = result_of(MANO, hands, plays, multiplier=multiplier)
    assert (result.reason, result.seat, result.side, result.last_placer) == ("out", 0, 0, 0)
    assert (result.finish, result.base, result.multiplier) == (finish, points, multiplier)
    assert result.points == points * multiplier
    by_pips = result_of(BLOCOS, hands, plays, multiplier=multiplier)
    assert (by_pips.finish, by_pips.points) == (None, by_pips.pips[1] * multiplier)
    changed = dataclasses.replace(
        MANO, points_simples=11, points_carroca=12, points_la_e_lo=13, points_cruzada=14, points_block=15
    )
    assert result_of(changed, hands, plays).base == points + 10


@pytest.mark.parametrize("option", [False, True])
@pytest.mark.parametrize(
    ("tile", "ends", "finish"),
    [
        ("6-5", (6, 5), LA_E_LO),
        ("6-5", (5, 6), LA_E_LO),
        ("6-5", (6, 4), SIMPLES),
        ("6-5", (6, 6), None),
        ("6-5", (5, 5), None),
        ("6-2", (5, 3), SIMPLES),  # equal sums are not equal halves (and it would not fit)
        ("5-3", (5, 4), SIMPLES),
        ("6-6", (6, 6), CRUZADA),
        ("6-6", (6, 5), CARROCA),
        ("6-6", (5, 6), CARROCA),
        ("0-0", (0, 0), CRUZADA),
        ("6-5", (NONE, NONE), SIMPLES),
        ("6-6", (NONE, NONE), CARROCA),
        ("0-0", (NONE, NONE), CARROCA),
    ],
)
def test_the_name_of_the_last_tile(option: bool, tile: str, ends: tuple[int, int], finish: int | None) -> None:
    rules = pack(dataclasses.replace(MANO, la_e_lo_on_equal_ends=option))[0]
    low, high = sorted(int(half) for half in tile.split("-"))
    expected = finish if finish is not None else (LA_E_LO if option else SIMPLES)
    assert finish_of(rules, high, low, *ends) == expected
    assert finish_of(pack(BLOCOS)[0], high, low, *ends) == 0


def test_pips() -> None:
    def pips(*tiles: str) -> int:
        return int(pips_in(np.uint64(tile_set(map(parse_tile, tiles)))))

    assert (pips(), pips("0-0"), pips("6-4", "3-3", "0-0"), pips("9-9", "9-8")) == (0, 0, 16, 35)
    assert int(pips_in(np.uint64((1 << 28) - 1))) == 168
    assert int(pips_in(np.uint64((1 << 55) - 1))) == 495


def test_a_block_by_batida_counts_sides() -> None:
    # 10 + 0 against 1 + 8: seat 2 holds the fewest, the other side wins
    result = result_of(DUPLAS, ["3-2 5-5", "1-0", "0-0", "4-4"], "3-2", multiplier=2)
    assert (result.reason, result.seat, result.side, result.finish) == ("blocked", None, 1, None)
    assert (result.base, result.points, result.pips) == (1, 2, (10, 1, 0, 8))
    assert (result.last_placer, result.next_starter) == (0, 0)  # who placed it, though its side lost
    result = result_of(MANO, ["2-1 0-0", "5-5"], "2-1")
    assert (result.seat, result.side, result.points) == (0, 0, 1)
    result = result_of(DUPLAS, ["3-2 5-5", "1-0", "0-0", "5-4"], "3-2")
    assert (result.reason, result.seat, result.side, result.points) == ("tied", None, None, 0)
    assert result.next_starter == 0


def test_a_block_by_pips_scores_the_sum_of_the_differences() -> None:
    game = played(THREE, ["2-1 4-0", "5-4", "6-5 3-0"], "2-1", multiplier=2)
    assert game.result is not None
    assert (game.result.pips, game.result.base, game.result.points) == ((4, 9, 14), 15, 30)
    assert rewards_of(game) == [30, -10, -20]
    assert result_of(BLOCOS, ["2-1 6-6", "4-0"], "2-1").points == 8


@pytest.mark.parametrize(
    ("hands", "pips", "side"),
    [
        (["2-1 5-0", "6-6", "5-3 0-0"], (5, 12, 8), 0),
        (["2-1 4-4", "6-6", "5-3 0-0"], (8, 12, 8), None),
        (["2-1 6-6", "6-3", "5-4"], (12, 9, 9), None),
        (["2-1 4-4", "5-3", "4-0"], (8, 8, 4), 2),  # two are equal, but not the fewest
        (["2-1 3-0", "6-6", "4-4"], (3, 12, 8), 0),
        (["2-1 4-4", "5-3", "6-0 0-0 3-0"], (8, 8, 9), None),
    ],
)
def test_several_with_the_fewest_are_tied(hands: list[str], pips: tuple[int, ...], side: int | None) -> None:
    for rules in (THREE, dataclasses.replace(MANO, players=3)):
        result = result_of(rules, hands, "2-1")
        assert (result.pips, result.side, result.seat) == (pips, side, side)
        assert result.reason == ("tied" if side is None else "blocked")


def test_a_win_may_be_worth_nothing() -> None:
    result = result_of(BLOCOS, ["6-6", "0-0"], "6-6")
    assert (result.reason, result.seat, result.points, result.next_starter) == ("out", 0, 0, 1)


def test_going_out_ends_a_round_that_nobody_could_go_on_with() -> None:
    result = result_of(MANO, ["6-6 6-5", "6-4 3-3"], "6-6 6-4R 6-5L", boneyard="0-0 1-1")
    assert (result.reason, result.pips) == ("out", (0, 6))


def test_points_between_pairs_by_pips() -> None:
    rules = dataclasses.replace(DUPLAS, scoring="pips")
    game = played(rules, ["6-6", "5-0", "4-0", "1-0"], "6-6")
    assert game.result is not None
    assert (game.result.points, rewards_of(game)) == (10, [10, -10])  # the partner's hand too
    result = result_of(rules, ["3-2 5-5", "1-0", "0-0", "4-4"], "3-2")
    assert (result.seat, result.side, result.points) == (2, 0, 19)


@pytest.mark.parametrize(
    ("hands", "winner", "starter"),
    [
        (["5-0", "6-6", "4-1"], 1, 2),
        (["6-6", "5-0", "4-1"], 0, 1),
        (["5-0", "4-1", "6-6"], 2, 0),
        (["6-0", "6-6", "4-1"], 1, 0),
        (["5-0", "6-6", "1-0", "4-1"], 1, 3),
        (["5-0", "3-2", "6-6", "4-1"], 2, 3),
        (["0-0", "6-6"], 1, 0),  # the winner has no fewer pips than the loser
    ],
)
def test_the_loser_starts_next(hands: list[str], winner: int, starter: int) -> None:
    rules = make_rules("blocos", players=len(hands))
    assert result_of(rules, hands, "6-6", starter=winner).next_starter == starter


@pytest.mark.parametrize(("rules", "out", "blocked"), [(MANO, 0, 0), (BLOCOS, 1, 0), (PUXAR, 1, 1)])
def test_the_next_starter(rules: RuleSet, out: int, blocked: int) -> None:
    assert result_of(rules, *FINISHES[0][:2]).next_starter == out
    result = result_of(rules, ["2-1 5-5", "0-0"], "2-1")  # seat 0 places the last tile and loses the count
    assert (result.side, result.last_placer, result.next_starter) == (1, 0, blocked)


@pytest.mark.parametrize(
    ("tie_starter", "expected"),
    [("last_to_place", 0), ("rotation", 2), ("same", 1), ("lots", None), ("opening", None)],
)
def test_the_starter_after_a_tied_block(tie_starter: str, expected: int | None) -> None:
    rules = dataclasses.replace(THREE, tie_starter=tie_starter)
    result = result_of(rules, ["3-0 4-4", "2-1 5-1 1-1", "1-0 6-6"], "2-1 1-0R 3-0R", starter=1)
    assert (result.reason, result.pips, result.last_placer) == ("tied", (8, 8, 12), 0)
    assert (result.seat, result.side, result.points, result.next_starter) == (None, None, 0, expected)


def test_rewards_sum_to_nothing() -> None:
    assert rewards_of(played(MANO, *FINISHES[5][:2], multiplier=2)) == [8, -8]
    assert rewards_of(played(BLOCOS, ["2-1 0-0", "5-5"], "2-1")) == [10, -10]
    assert rewards_of(played(BLOCOS, ["2-1 5-3", "4-4"], "2-1")) == [0, 0]
    assert rewards_of(played(THREE, ["6-6", "5-0", "1-0"], "6-6")) == [6, -5, -1]
    three = dataclasses.replace(MANO, players=3)
    assert rewards_of(played(three, ["6-6", "5-0", "1-0"], "6-6")) == [2, -1, -1]
    assert rewards_of(played(DUPLAS, ["6-5", "5-0", "4-0", "1-0"], "6-5")) == [1, -1]


@pytest.mark.parametrize(
    ("rules", "winner", "expected"),
    [(DUPLAS, 1, [-1, 1]), (DUPLAS, NONE, [0, 0]), (THREE, 2, [-0.5, -0.5, 1]), (BLOCOS, 0, [1, -1])],
)
def test_outcome_rewards(rules: RuleSet, winner: int, expected: list[float]) -> None:
    state = Game(rules, 1)._state.copy()
    add_outcome_rewards(state[0], pack(rules)[0], winner)
    assert state[0]["rewards"][: rules.num_sides].tolist() == expected
