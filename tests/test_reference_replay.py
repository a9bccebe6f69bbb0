"""The reference model on whole deals: the presets, golden positions, and invariants in random play."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Literal

import pytest
from golden_positions import Position, load_positions, parse_move, parse_tile
from reference import (
    PRESETS,
    End,
    Move,
    ReferenceMatch,
    ReferenceRound,
    ReferenceRules,
    Tile,
    full_set,
    opening,
)

POSITIONS = load_positions()


def tiles(text: str) -> list[Tile]:
    return [parse_tile(tile) for tile in text.split()]


def test_the_presets_are_the_published_ones() -> None:
    table = """
        players         4               2               2     2
        hand_size       7               7               7     7
        draw            none            until_fit       none  one
        opening         highest_double  highest_double  lots  lots
        next_starter    last_to_place   last_to_place   loser rotation
        tie_starter     last_to_place   last_to_place   lots  rotation
        scoring         batida          batida          pips  pips
        target          6               6               50    100
        tie_multiplier  2               2               1     1
    """
    for field, *values in map(str.split, table.strip().splitlines()):
        assert [str(getattr(rules, field)) for rules in PRESETS.values()] == values
    assert [name for name, rules in PRESETS.items() if rules.single_round_block == "draw"] == ["puxar"]
    assert [PRESETS["duplas"].side(seat) for seat in range(4)] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("rules", "drawn_by", "pips", "side", "points", "starter"),
    [
        (PRESETS["blocos"], [], (2, 18), 0, 16, 1),
        (PRESETS["mano_a_mano"], [0] * 14, (72, 18), 1, 1, 1),
        (PRESETS["puxar"], [0, 1] * 7, (36, 54), 0, 18, 1),
    ],
)
def test_one_position_three_games(
    rules: ReferenceRules, drawn_by: list[int], pips: tuple[int, int], side: int, points: int, starter: int
) -> None:
    hands = ["6-6 6-2 6-3 5-4 1-0 0-0 1-1", "6-0 3-2 6-4 6-5 6-1 5-5 4-4"]
    boneyard = "2-0 2-1 3-0 3-1 4-0 4-1 5-0 2-2 5-1 5-2 4-2 3-3 5-3 4-3"
    plays = "6-6, 6-0 left, 6-2 right, 3-2 right, 6-3 right, 6-4 right, 5-4 right, 6-5 right, 1-0 left, 6-1 left"
    round_ = ReferenceRound(rules, [tiles(hand) for hand in hands], tiles(boneyard), starter=0)
    for text in plays.split(", "):
        tile, end = parse_move(text)
        round_.play(tile, "left" if end == "left" else "right")
    result = round_.result
    assert result is not None
    assert (round_.ends, sum(6 in tile for tile in round_.chain)) == ((6, 6), 7)
    assert [event.seat for event in round_.events[:10]] == [0, 1] * 5
    assert [event.seat for event in round_.events[10:] if event.kind == "draw"] == drawn_by
    assert len(round_.events) == 10 + len(drawn_by)  # no pass
    assert (result.reason, result.pips, result.last_placer) == ("blocked", pips, 1)
    assert (result.side, result.points, result.next_starter) == (side, points, starter)


@pytest.mark.parametrize("position", POSITIONS, ids=[position.name for position in POSITIONS])
def test_golden_position(position: Position) -> None:
    rules = PRESETS[position.rules]
    assert sorted(sum(position.hands, position.boneyard)) == full_set(rules.max_pip)
    if position.name != "g11":  # whose opening is given, against the preset's rule
        assert opening(rules, position.hands) == (position.starter, position.forced)
    round_ = ReferenceRound(rules, position.hands, position.boneyard, position.starter, position.forced)
    checks = {expectation.after: expectation for expectation in position.expectations}
    for event in position.plays:
        end: End = "left" if event.end == "left" else "right"
        assert event.tile is not None
        round_.play(event.tile, end)
        expected = checks.pop(len(round_.events), None)
        if expected is not None:
            assert round_.ends == expected.ends
            assert tuple(len(hand) for hand in round_.hands) == expected.hands
            assert len(round_.boneyard) == expected.boneyard
            assert round_.seat == (None if expected.seat == "none" else expected.seat)
            assert expected.legal is None or round_.legal() == sorted(expected.legal)
            assert expected.pips in (None, round_.pips)
    assert not checks
    assert [tuple(event[:4]) for event in round_.events] == [
        (event.kind, event.seat, event.tile, event.end) for event in position.log
    ]
    if position.result is None:
        assert round_.result is None
    else:
        assert round_.result is not None
        assert vars(round_.result) == vars(position.result)


def test_a_golden_position_where_one_tile_is_drawn_at_a_time() -> None:
    position = next(position for position in POSITIONS if position.name == "g10")
    round_ = ReferenceRound(PRESETS["puxar"], position.hands, position.boneyard, 0)
    for event in position.plays[:9]:
        assert event.tile is not None
        round_.play(event.tile, "left" if event.end == "left" else "right")
    drawn = [(1, (6, 4)), (0, (1, 0)), (1, (4, 3)), (0, (1, 1))]  # 4-3 fits, but the turn goes on
    assert [event[:3] for event in round_.events[9:]] == [("draw", *draw) for draw in drawn]
    assert round_.legal() == [((4, 3), "left")]


# Invariants

NEXT_STARTERS: tuple[Literal["last_to_place", "rotation", "loser"], ...] = (
    "last_to_place",
    "rotation",
    "loser",
)


def random_rules(rng: Random) -> ReferenceRules:
    max_pip, players = rng.randint(2, 6), rng.randint(2, 4)
    return ReferenceRules(
        players=players,
        pairs=players == 4 and rng.random() < 0.5,
        max_pip=max_pip,
        hand_size=rng.randint(1, min(7, len(full_set(max_pip)) // players)),
        draw=rng.choice(["none", "until_fit", "one"]),
        opening=rng.choice(["highest_double", "lots"]),
        next_starter=rng.choice(NEXT_STARTERS[: 3 if players < 4 else 2]),  # no loser among pairs
        tie_starter=rng.choice(["last_to_place", "lots", "rotation", "opening", "same"]),
        scoring=rng.choice(["batida", "pips"]),
        target=rng.choice([None, 1, 5, 20]),
        tie_multiplier=rng.randint(1, 3),
        tie_multiplier_stacks=rng.random() < 0.5,
        la_e_lo_on_equal_ends=rng.random() < 0.5,
        no_double=rng.choice(["heaviest", "redeal"]),
        single_round_block=rng.choice(["fewest", "draw"]),
    )


def fitting(hand: list[Tile], ends: tuple[int, int]) -> set[Move]:
    both: tuple[tuple[End, int], ...] = (("left", ends[0]), ("right", ends[1]))
    return {(tile, end) for tile in hand for end, number in both if number in tile}


def check_step(round_: ReferenceRound, forced: Tile | None) -> None:
    """Every tile is somewhere, once; the chain joins; the mover's moves are all that fit."""
    chain = [(max(tile), min(tile)) for tile in round_.chain]
    assert sorted(sum(round_.hands, chain + round_.boneyard)) == full_set(round_.rules.max_pip)
    assert all(one[1] == next_[0] for one, next_ in pairwise(round_.chain))
    if round_.seat is None:
        assert round_.legal() == []
    elif round_.ends is None:
        hand = [forced] if forced else round_.hands[round_.seat]
        assert round_.legal() == sorted((tile, "left") for tile in hand)
    else:
        assert round_.legal() == sorted(fitting(round_.hands[round_.seat], round_.ends)) != []


def check_events(round_: ReferenceRound, hands: list[list[Tile]], boneyard: list[Tile]) -> None:
    """Replay the log: draws and passes only where they are forced, in turn, and bounded in number."""
    rules, seat, left = round_.rules, round_.starter, boneyard[:]
    for event in round_.events:
        assert event.seat == seat
        hand = hands[seat]
        if event.kind == "play":
            assert event.tile is not None
            hand.remove(event.tile)
        else:
            assert event.ends is not None
            assert not fitting(hand, event.ends)
            assert (event.kind == "draw") == (rules.draw != "none" and bool(left))
        if event.kind == "draw":
            hand.append(left.pop(0))
            assert event.tile == hand[-1]
        if event.kind != "draw" or rules.draw == "one":
            seat = (seat + 1) % rules.players
    kinds = [event.kind for event in round_.events]
    assert kinds[-1] != "pass"
    assert kinds.count("play") <= len(full_set(rules.max_pip))
    assert kinds.count("draw") <= len(boneyard)
    assert kinds.count("pass") <= (rules.players - 1) * kinds.count("play")
    assert (hands, left) == (round_.hands, round_.boneyard)


def random_match(rules: ReferenceRules, rng: Random, rounds: int) -> ReferenceMatch:
    """Random play, checked at every step, until the match is over or so many rounds were played."""
    match = ReferenceMatch(rules)
    while not match.over and match.round < rounds:
        deal = rng.sample(full_set(rules.max_pip), len(full_set(rules.max_pip)))
        cuts = [seat * rules.hand_size for seat in range(rules.players + 1)]
        hands = [deal[start:stop] for start, stop in pairwise(cuts)]
        boneyard = deal[cuts[-1] :]
        if match.must_redeal(hands):
            continue
        round_ = match.start_round(hands, boneyard, lots=rng.randrange(rules.players))
        forced = opening(rules, hands)[1] if match.opens() else None  # type: ignore[index]
        check_step(round_, forced)
        while round_.seat is not None:
            round_.play(*rng.choice(round_.legal()))
            check_step(round_, forced)
        check_events(round_, hands, boneyard)
        before = match.scores[:]
        result = match.finish_round()
        gained = [after - score for after, score in zip(match.scores, before, strict=True)]
        assert [points for side, points in enumerate(gained) if side != result.side and points] == []
        assert sum(gained) == result.points
        assert sum(round_.rewards()) == 0
        assert max(round_.rewards()) == result.points
    return match


@pytest.mark.parametrize("name", PRESETS)
def test_invariants_of_the_presets(name: str) -> None:
    rng = Random(name)
    for players in [2, 3, 4] if name in ("blocos", "puxar") else [PRESETS[name].players]:
        rules = replace(PRESETS[name], players=players)
        for _ in range(75):
            match = random_match(rules, rng, rounds=200)
            assert match.winner is not None
            assert match.scores[match.winner] == max(match.scores)


def test_invariants_of_random_rules() -> None:
    rng = Random(1)
    for _ in range(2000):
        random_match(random_rules(rng), rng, rounds=6)
