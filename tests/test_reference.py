"""The reference model against rounds and matches worked by hand, section by section of RULES.md.

Small rounds here hold a few tiles of the set only: the model takes any hands. Tiles are written
"6-4", moves "6-4L" and "6-4R", an opening tile "6-4".
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from reference import (
    PRESETS,
    End,
    Move,
    ReferenceMatch,
    ReferenceResult,
    ReferenceRound,
    ReferenceRules,
    Tile,
    finish_name,
    full_set,
    opening,
    pips_of,
)

DUPLAS, MANO, BLOCOS, PUXAR = (PRESETS[name] for name in ("duplas", "mano_a_mano", "blocos", "puxar"))


def tiles(text: str) -> list[Tile]:
    return [(int(tile[0]), int(tile[2])) for tile in text.split()]


def hands_of(*hands: str) -> list[list[Tile]]:
    return [tiles(hand) for hand in hands]


def move(text: str) -> Move:
    end: End = "right" if text.endswith("R") else "left"
    return tiles(text)[0], end


def play(round_: ReferenceRound, plays: str) -> ReferenceRound:
    for text in plays.split():
        round_.play(*move(text))
    return round_


def played(rules: ReferenceRules, hands: list[str], plays: str, boneyard: str = "", **options: Any) -> ReferenceRound:
    """A round after these plays; seat 0 starts unless the options say otherwise."""
    starter = options.pop("starter", 0)
    return play(ReferenceRound(rules, hands_of(*hands), tiles(boneyard), starter, **options), plays)


def rewards_of(round_: ReferenceRound) -> tuple[Any, ...]:
    return round_.rewards()


def result_of(round_: ReferenceRound) -> ReferenceResult:
    assert round_.result is not None
    return round_.result


def log_of(round_: ReferenceRound) -> list[str]:
    """Each event as "0 6-4L", "1 +2-2" or "1 pass"."""
    lines = []
    for kind, seat, tile, end, ends in round_.events:
        name = f"{tile[0]}-{tile[1]}" if tile else "pass"
        mark = end[0].upper() if end and ends else ""
        lines.append(f"{seat} {'+' if kind == 'draw' else ''}{name}{mark}")
    return lines


# A tied block (8 pips each), a block that seat 0 wins (0 against 10), seat 0 going out as simples.
TIED = (["2-1 5-3", "4-4"], "2-1")
BLOCK = (["2-1 0-0", "5-5"], "2-1")
SIMPLES = (["6-6 6-5", "6-4 3-3"], "6-6 6-4R 6-5L")


# §2, playing


def test_an_opening_tile_has_one_action_and_a_forced_one_is_the_only_action() -> None:
    free = played(DUPLAS, ["6-4 6-6", "5-5", "4-4", "3-3"], "")
    assert (free.ends, free.legal()) == (None, [((6, 4), "left"), ((6, 6), "left")])
    forced = ReferenceRound(DUPLAS, free.hands, [], starter=0, forced=(6, 6))
    assert forced.legal() == [((6, 6), "left")]
    with pytest.raises(ValueError, match="cannot play"):
        forced.play((6, 4), "left")


def test_a_tile_that_fits_both_equal_ends_has_two_actions() -> None:
    def chain_with_ends_6_and_6() -> ReferenceRound:
        return played(BLOCOS, ["4-1 3-3 1-0", "6-4 6-1 6-2 6-6 3-0"], "6-4 4-1R 6-1R", starter=1)

    round_ = chain_with_ends_6_and_6()
    assert round_.chain == [(6, 4), (4, 1), (1, 6)]
    assert log_of(round_)[-1] == "0 pass"
    assert round_.legal() == [(tile, end) for tile in ((6, 2), (6, 6)) for end in ("left", "right")]
    for text, ends in [("6-2L", (2, 6)), ("6-2R", (6, 2)), ("6-6L", (6, 6)), ("6-6R", (6, 6))]:
        assert play(chain_with_ends_6_and_6(), text).ends == ends


@pytest.mark.parametrize(("text", "ends"), [("5-1L", (1, 1)), ("5-1R", (5, 5))])
def test_a_tile_that_carries_both_ends_goes_in_at_either(text: str, ends: tuple[int, int]) -> None:
    three = replace(BLOCOS, players=3)
    assert played(three, ["5-3 3-0", "3-1 5-0", "5-1 1-0"], f"5-3 3-1R {text}").ends == ends


def test_an_illegal_play_changes_nothing() -> None:
    round_ = played(MANO, ["6-6 6-5 0-0", "6-4 4-4"], "6-6", boneyard="1-1")
    before = (round_.chain[:], [hand[:] for hand in round_.hands], round_.boneyard[:], round_.events[:])
    for tile, end in [((4, 4), "left"), ((6, 5), "left"), ((1, 1), "left"), ((6, 4), "top")]:
        with pytest.raises(ValueError, match="cannot play"):
            round_.play(tile, end)  # type: ignore[arg-type]
    assert (round_.chain, round_.hands, round_.boneyard, round_.events) == before
    with pytest.raises(ValueError, match="cannot play"):
        played(BLOCOS, BLOCK[0], "2-1 0-0L")  # over


@pytest.mark.parametrize(
    ("draw", "boneyard", "log", "seat", "left"),
    [
        ("none", "6-1", "1 pass", 0, 1),
        ("until_fit", "3-3 6-1 6-2", "1 +3-3, 1 +6-1", 1, 1),
        ("until_fit", "3-3 6-1", "1 +3-3, 1 +6-1", 1, 0),  # the last tile fits
        ("until_fit", "3-3 2-2", "1 +3-3, 1 +2-2, 1 pass", 0, 0),
        ("until_fit", "", "1 pass", 0, 0),
        ("one", "6-1 2-2", "1 +6-1", 0, 1),  # the turn goes on although it fits
        ("one", "3-3", "1 +3-3", 0, 0),
        ("one", "", "1 pass", 0, 0),
    ],
)
def test_draws_and_passes(draw: Any, boneyard: str, log: str, seat: int, left: int) -> None:
    round_ = played(replace(MANO, draw=draw), ["6-6 6-5 0-0", "5-5 4-4"], "6-6", boneyard)
    assert log_of(round_) == ["0 6-6", *log.split(", ")]
    assert (round_.seat, len(round_.boneyard)) == (seat, left)
    assert all(event.ends == (6, 6) for event in round_.events[1:])
    assert all(tile[0] == 6 for tile, _ in round_.legal())


def test_going_out_ends_the_round_even_if_nobody_could_play() -> None:
    result = result_of(played(MANO, *SIMPLES))
    assert (result.reason, result.seat, result.pips) == ("out", 0, (0, 6))


def test_a_block_is_found_after_the_play_before_any_pass() -> None:
    for rules in (MANO, BLOCOS, PUXAR):
        round_ = played(rules, *BLOCK)
        assert log_of(round_) == ["0 2-1"]
        assert (result_of(round_).reason, round_.seat, round_.legal()) == ("blocked", None, [])


def test_a_block_is_found_after_the_last_draw() -> None:
    round_ = played(MANO, *BLOCK, boneyard="4-4 3-3")
    assert log_of(round_) == ["0 2-1", "1 +4-4", "1 +3-3"]
    assert (result_of(round_).pips, result_of(round_).last_placer) == ((0, 24), 0)
    round_ = played(PUXAR, *BLOCK, boneyard="4-4 3-3")
    assert log_of(round_) == ["0 2-1", "1 +4-4", "0 +3-3"]
    assert (result_of(round_).pips, result_of(round_).points) == ((6, 18), 12)
    round_ = played(BLOCOS, *BLOCK, boneyard="4-4 3-3")  # never drawn from
    assert (log_of(round_), result_of(round_).points) == (["0 2-1"], 10)


def test_pips_count_both_halves_and_double_blank_has_no_bonus() -> None:
    assert pips_of(tiles("0-0 6-4 3-3")) == 16
    assert (len(full_set(6)), pips_of(full_set(6))) == (28, 168)
    assert (len(full_set(2)), len(full_set(9)), pips_of(full_set(9))) == (6, 55, 495)


# §3, who starts


@pytest.mark.parametrize(
    ("hands", "expected"),
    [
        (["5-5 6-5", "6-6 1-0"], (1, (6, 6))),
        (["5-5 6-5", "4-4 6-4"], (0, (5, 5))),
        (["6-5 6-4", "0-0 1-0"], (1, (0, 0))),  # a double too
        (["6-5 6-4", "6-3 5-4"], (0, (6, 5))),
        (["5-4 2-1", "6-3 1-0"], (1, (6, 3))),
        (["6-3 2-1", "5-4 1-0"], (0, (6, 3))),
        (["6-0 2-1", "5-4 1-0"], (1, (5, 4))),
    ],
)
def test_the_opening_tile(hands: list[str], expected: tuple[int, Tile]) -> None:
    assert opening(MANO, hands_of(*hands)) == expected
    assert opening(BLOCOS, hands_of(*hands)) == (None, None)
    match = ReferenceMatch(MANO)
    assert not match.by_lots()
    round_ = match.start_round(hands_of(*hands), [])
    assert (round_.seat, round_.legal()) == (expected[0], [(expected[1], "left")])


def test_a_deal_without_a_double_can_be_dealt_again() -> None:
    match = ReferenceMatch(replace(MANO, no_double="redeal"))
    assert match.must_redeal(hands_of("6-5", "4-3"))
    assert not match.must_redeal(hands_of("6-5", "0-0"))
    with pytest.raises(ValueError, match="deal again"):
        match.start_round(hands_of("6-5", "4-3"), [])


def test_a_first_round_by_lots_needs_the_seat_drawn() -> None:
    match = ReferenceMatch(BLOCOS)
    assert match.by_lots()
    with pytest.raises(ValueError, match="which seat was drawn"):
        match.start_round(hands_of("6-6", "5-5"), [])
    round_ = match.start_round(hands_of("6-6", "5-5 5-4"), [], lots=1)
    assert (round_.seat, [tile for tile, _ in round_.legal()]) == (1, [(5, 4), (5, 5)])


@pytest.mark.parametrize(("rules", "out", "blocked"), [(MANO, 0, 0), (BLOCOS, 1, 0), (PUXAR, 1, 1)])
def test_the_next_starter(rules: ReferenceRules, out: int, blocked: int) -> None:
    assert result_of(played(rules, *SIMPLES)).next_starter == out
    # seat 0 places the last tile and loses the count
    result = result_of(played(rules, ["2-1 5-5", "0-0"], "2-1"))
    assert (result.side, result.last_placer, result.next_starter) == (1, 0, blocked)


@pytest.mark.parametrize(
    ("hands", "winner", "starter"),
    [
        (["5-0", "6-6", "4-1"], 1, 2),
        (["6-6", "5-0", "4-1"], 0, 1),
        (["5-0", "4-1", "6-6"], 2, 0),
        (["6-0", "6-6", "4-1"], 1, 0),
        (["5-0", "6-6", "1-0", "4-1"], 1, 3),
        (["5-0", "3-2", "6-6", "4-1"], 2, 3),
        (["0-0", "6-6"], 1, 0),  # the winner shares the most: still the other seat
    ],
)
def test_of_several_losers_the_first_after_the_winner_starts(hands: list[str], winner: int, starter: int) -> None:
    rules = replace(BLOCOS, players=len(hands))
    assert result_of(played(rules, hands, "6-6", starter=winner)).next_starter == starter


@pytest.mark.parametrize(
    ("tie_starter", "expected"),
    [("last_to_place", 0), ("rotation", 2), ("same", 1), ("lots", None), ("opening", None)],
)
def test_the_starter_after_a_tied_block(tie_starter: Any, expected: int | None) -> None:
    rules = replace(BLOCOS, players=3, tie_starter=tie_starter)
    deal = ["3-0 4-4", "2-1 5-1 1-1", "1-0 6-6"]
    result = result_of(played(rules, deal, "2-1 1-0R 3-0R", starter=1))
    assert (result.reason, result.pips, result.last_placer) == ("tied", (8, 8, 12), 0)
    assert (result.seat, result.side, result.points) == (None, None, 0)
    assert result.next_starter == expected

    match = ReferenceMatch(rules)
    play(match.start_round(hands_of(*deal), [], lots=1), "2-1 1-0R 3-0R")
    match.finish_round()
    assert match.by_lots() == (expected is None)
    assert match.starter_for_next(hands_of(*deal), lots=2) == (2 if expected is None else expected, None)


def test_a_tied_block_may_be_followed_by_an_opening_as_in_a_first_round() -> None:
    match = ReferenceMatch(replace(MANO, tie_starter="opening"))
    play(match.start_round(hands_of("1-1 3-2", "5-0"), []), "1-1")
    assert match.finish_round().reason == "tied"
    assert match.starter_for_next(hands_of("6-5", "3-3 4-2")) == (1, (3, 3))
    assert match.starter_for_next(hands_of("6-3", "5-4 4-2")) == (0, (6, 3))
    play(match.start_round(hands_of("1-1 3-2", "5-4"), []), "1-1")
    assert match.finish_round().reason == "blocked"
    assert match.starter_for_next(hands_of("6-5", "3-3 4-2")) == (0, None)


# §4, scoring

EQUAL_ENDS = "6-4 4-1R 6-1R"  # then seat 1 passes
FINISHES = [
    (*SIMPLES, "simples", 1),
    (["6-5 5-5", "6-4 3-3"], "6-5 6-4L 5-5R", "carroca", 2),
    (["6-5 5-4", "6-4 3-3"], "6-5 6-4L 5-4L", "la-e-lo", 3),
    (["6-5 5-4", "6-4 3-3"], "6-5 6-4L 5-4R", "la-e-lo", 3),
    (["6-4 6-1 6-6", "4-1 5-5"], f"{EQUAL_ENDS} 6-6L", "cruzada", 4),
    (["6-4 6-1 6-5", "4-1 5-5"], f"{EQUAL_ENDS} 6-5L", "simples", 1),
    (["6-6", "5-5"], "6-6", "carroca", 2),  # a first tile that is also the last
    (["6-5", "5-5"], "6-5", "simples", 1),
]


@pytest.mark.parametrize(("hands", "plays", "finish", "points"), FINISHES)
def test_batida_scores_by_the_last_tile(hands: list[str], plays: str, finish: str, points: int) -> None:
    for multiplier in (1, 2):
        result = result_of(played(MANO, hands, plays, multiplier=multiplier))
        assert (result.reason, result.seat, result.side) == ("out", 0, 0)
        assert (result.finish, result.base, result.points) == (finish, points, points * multiplier)
    result = result_of(played(BLOCOS, hands, plays))
    assert (result.finish, result.points) == (None, result.pips[1])


def test_la_e_lo_on_equal_ends_is_an_option() -> None:
    rules = replace(MANO, la_e_lo_on_equal_ends=True)
    result = result_of(played(rules, ["6-4 6-1 6-5", "4-1 5-5"], f"{EQUAL_ENDS} 6-5R"))
    assert (result.finish, result.points) == ("la-e-lo", 3)
    assert finish_name(rules, (6, 5), (6, 4)) == finish_name(rules, (6, 5), None) == "simples"
    assert finish_name(rules, (6, 6), (6, 6)) == "cruzada"


def test_the_five_point_values_are_options() -> None:
    rules = replace(MANO, points_simples=11, points_carroca=12, points_la_e_lo=13, points_cruzada=14, points_block=15)
    for hands, plays, _, points in FINISHES:
        assert result_of(played(rules, hands, plays)).base == points + 10
    assert result_of(played(rules, *BLOCK)).base == 15


def test_a_batida_block_counts_sides() -> None:
    # 10 + 0 against 1 + 8: seat 2 holds the fewest, the other side wins
    result = result_of(played(DUPLAS, ["3-2 5-5", "1-0", "0-0", "4-4"], "3-2", multiplier=2))
    assert (result.reason, result.seat, result.side) == ("blocked", None, 1)
    assert (result.base, result.points, result.finish) == (1, 2, None)
    assert (result.last_placer, result.next_starter) == (0, 0)
    result = result_of(played(MANO, *BLOCK))
    assert (result.seat, result.side, result.points) == (0, 0, 1)
    three = replace(MANO, players=3)
    round_ = played(three, ["2-1 0-0", "5-5", "4-4"], "2-1")
    assert (result_of(round_).side, rewards_of(round_)) == (0, (1, Fraction(-1, 2), Fraction(-1, 2)))
    assert result_of(played(three, ["2-1 5-3", "4-4", "6-6"], "2-1")).reason == "tied"
    assert result_of(played(three, ["2-1 6-6", "4-4", "5-5"], "2-1")).side == 1


def test_a_pips_block_scores_the_sum_of_the_differences() -> None:
    round_ = played(replace(BLOCOS, players=3), ["2-1 4-0", "5-4", "6-5 3-0"], "2-1", multiplier=2)
    assert (result_of(round_).pips, result_of(round_).base) == ((4, 9, 14), 15)
    assert (result_of(round_).seat, rewards_of(round_)) == (0, (30, -10, -20))
    assert result_of(played(BLOCOS, ["2-1 6-6", "4-0"], "2-1")).points == 8
    assert result_of(played(replace(BLOCOS, players=3), ["2-1 4-0", "6-6", "4-0"], "2-1")).reason == "tied"


def test_pips_scoring_between_pairs_counts_seats() -> None:
    rules = replace(DUPLAS, scoring="pips")
    round_ = played(rules, ["6-6", "5-0", "4-0", "1-0"], "6-6")
    assert (result_of(round_).points, rewards_of(round_)) == (10, (10, -10))  # the partner's hand too
    round_ = played(rules, ["3-2 5-5", "1-0", "0-0", "4-4"], "3-2")
    assert (result_of(round_).seat, result_of(round_).side, result_of(round_).points) == (2, 0, 19)
    assert result_of(played(rules, ["3-2 4-1", "6-6", "5-0", "5-5"], "3-2")).reason == "tied"


def test_rewards_are_zero_sum() -> None:
    assert rewards_of(played(MANO, *FINISHES[4][:2], multiplier=2)) == (8, -8)
    assert rewards_of(played(BLOCOS, *BLOCK)) == (10, -10)
    assert rewards_of(played(BLOCOS, *TIED)) == (0, 0)
    assert rewards_of(played(replace(BLOCOS, players=3), ["6-6", "5-0", "1-0"], "6-6")) == (6, -5, -1)
    assert rewards_of(played(replace(MANO, players=3), ["6-6", "5-0", "1-0"], "6-6")) == (2, -1, -1)
    with pytest.raises(ValueError, match="not over"):
        played(BLOCOS, BLOCK[0], "").rewards()


# §2.8, §4 and §5, matches


def match_of(rules: ReferenceRules, rounds: list[tuple[list[str], str]]) -> tuple[ReferenceMatch, list[int]]:
    """A match after these rounds, seat 0 drawn where by lots, and each round's multiplier."""
    match, multipliers = ReferenceMatch(rules), []
    for hands, plays in rounds:
        play(match.start_round(hands_of(*hands), [], lots=0), plays)
        multipliers.append(match.finish_round().multiplier)
    return match, multipliers


@pytest.mark.parametrize(
    ("rules", "rounds", "multipliers", "scores"),
    [
        (MANO, [TIED, SIMPLES, SIMPLES], [1, 2, 1], 3),
        (MANO, [TIED, TIED, SIMPLES, SIMPLES], [1, 2, 2, 1], 3),
        (MANO, [TIED, BLOCK, TIED, BLOCK], [1, 2, 1, 2], 4),
        (replace(MANO, tie_multiplier_stacks=True), [TIED, TIED, SIMPLES, SIMPLES], [1, 2, 4, 1], 5),
        (replace(MANO, tie_multiplier=3), [TIED, TIED, SIMPLES], [1, 3, 3], 3),
        (replace(MANO, tie_multiplier=3, tie_multiplier_stacks=True), [TIED, TIED, BLOCK], [1, 3, 9], 9),
        (BLOCOS, [TIED, TIED, BLOCK], [1, 1, 1], 10),
    ],
)
def test_the_multiplier_after_ties(
    rules: ReferenceRules, rounds: list[tuple[list[str], str]], multipliers: list[int], scores: int
) -> None:
    match, seen = match_of(replace(rules, opening="lots"), rounds)
    assert (seen, match.scores, match.round) == (multipliers, [scores, 0], len(rounds))


@pytest.mark.parametrize(
    ("scores", "booked", "over"), [([39, 45], 49, False), ([40, 45], 50, True), ([47, 49], 57, True)]
)
def test_at_least_the_target_wins_and_nothing_is_cut_off(scores: list[int], booked: int, over: bool) -> None:
    match = ReferenceMatch(BLOCOS)
    match.scores = scores[:]
    play(match.start_round(hands_of(*BLOCK[0]), [], lots=0), BLOCK[1])
    match.finish_round()
    assert (match.scores, match.over) == ([booked, scores[1]], over)
    assert match.winner == (0 if over else None)
    if over:
        with pytest.raises(ValueError, match="match is over"):
            match.start_round(hands_of(*BLOCK[0]), [], lots=0)


def test_a_match_between_pairs_scores_by_sides() -> None:
    match = ReferenceMatch(replace(DUPLAS, target=2))
    play(match.start_round(hands_of("5-0", "4-0", "3-0", "6-6"), []), "6-6")
    assert (match.finish_round().side, match.scores, match.winner) == (1, [0, 2], 1)


def test_rounds_are_started_and_booked_in_turn() -> None:
    match = ReferenceMatch(PUXAR)
    with pytest.raises(ValueError, match="no round has ended"):
        match.finish_round()
    play(match.start_round(hands_of(*SIMPLES[0]), [], lots=1), "6-4")
    with pytest.raises(ValueError, match="not finished"):
        match.start_round(hands_of(*SIMPLES[0]), [])
    with pytest.raises(ValueError, match="no round has ended"):
        match.finish_round()
    assert match.starter == 1


def test_rotation_goes_on_from_the_last_starter_whoever_won() -> None:
    match = ReferenceMatch(replace(PUXAR, players=3))
    starters = []
    for first in ["5-5", "4-4", "6-6", "5-5"]:
        round_ = match.start_round(hands_of("6-6 2-1", "5-5 1-0", "4-4 0-0"), [], lots=1)
        starters.append(round_.seat)
        play(round_, first)
        match.finish_round()
    assert starters == [1, 2, 0, 1]


@pytest.mark.parametrize(
    ("rules", "case", "winner", "scores"),
    [
        (MANO, BLOCK, 0, [1, 0]),
        (BLOCOS, BLOCK, 0, [10, 0]),
        (PUXAR, BLOCK, None, [10, 0]),  # drawn; its points are still reported
        (PUXAR, SIMPLES, 0, [6, 0]),
        (BLOCOS, TIED, None, [0, 0]),
        (PUXAR, TIED, None, [0, 0]),
        (BLOCOS, (["6-6", "0-0"], "6-6"), 0, [0, 0]),  # a win worth 0 is a win
    ],
)
def test_a_single_round(
    rules: ReferenceRules, case: tuple[list[str], str], winner: int | None, scores: list[int]
) -> None:
    for target, expected in [(None, (True, winner, scores)), (99, (False, None, scores))]:
        match, _ = match_of(replace(rules, target=target, opening="lots"), [case])
        assert (match.over, match.winner, match.scores) == expected
