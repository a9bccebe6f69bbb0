"""`Game`: its contract, undo, copies, deals by hand, refusals, and what a seat may know."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
from random import Random
from typing import Any

import numpy as np
import pytest
from compare_with_reference import read
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import TABLES, partial_deals, rule_sets, seeds

from domino_env import PRESETS, Deal, Event, Game, IllegalAction, Match, Move, RoundResult, make_rules

DUPLAS, MANO, BLOCOS, PUXAR = PRESETS.values()
#: Seat 0 may play 6-5 or 6-4 at either end once 6-6 lies.
HANDS = [["6-6", "6-5", "6-4"], ["6-1", "0-0"], ["6-2", "1-1"], ["6-3", "2-2"]]
SLOW = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def random_game(rules: Any, seed: int, plays: int) -> Game:
    game, rng = Game(rules, seed), Random(seed)
    for _ in range(plays):
        if game.seat is not None:
            game.play(rng.choice(game.legal_moves()))
    return game


def test_the_contract() -> None:
    rules = make_rules("duplas", target=10)
    deal = [["6-6", "5-4"], ["6-1", "0-0"], ["2-6", "1-1"], ["6-3", "2-2"]]
    game = Game.from_deal(rules, hands=deal, boneyard=["3-1"], starter=0, forced=None, multiplier=2)
    assert (game.seat, game.ends, game.chain, game.result, game.events) == (0, None, [], None, ())
    assert game.hands == [["4-5", "6-6"], ["0-0", "1-6"], ["1-1", "2-6"], ["2-2", "3-6"]]
    assert game.boneyard == ["1-3"]
    assert [str(move) for move in game.legal_moves()] == ["5-4", "6-6"]
    game.play("6-6")
    assert (game.seat, game.ends, game.chain) == (1, (6, 6), ["6-6"])
    assert [str(move) for move in game.legal_moves()] == ["6-1L", "6-1R"]
    game.play(game.legal_moves()[0])
    assert (game.seat, game.ends, game.chain) == (2, (1, 6), ["1-6", "6-6"])
    assert [str(move) for move in game.legal_moves()] == ["1-1L", "6-2R"]
    game.play(game.legal_moves()[0].action)
    assert game.chain == ["1-1", "1-6", "6-6"]
    game.play("3-6")  # fits one end alone
    assert (game.ends, game.chain) == ((1, 3), ["1-1", "1-6", "6-6", "6-3"])
    assert game.seat is None  # blocked: nobody holds a 1 or a 3, and nobody may draw
    assert game.legal_moves() == []
    assert game.events == (
        Event("play", 0, "6-6", "left", None),
        Event("play", 1, "1-6", "left", (6, 6)),
        Event("play", 2, "1-1", "left", (1, 6)),
        Event("play", 3, "3-6", "right", (1, 6)),
    )
    # 9 + 8 pips against 0 + 4
    assert game.result == RoundResult("blocked", None, 1, None, 1, 2, 2, (9, 0, 8, 4), 3, 3)
    assert [str(move) for move in game.moves] == ["6-6", "6-1L", "1-1L", "6-3R"]
    assert (game.starter, game.forced, game.multiplier, game.scores) == (0, None, 2, [0, 2])
    assert str(game.undo()) == "6-3R"
    assert (game.seat, game.result, game.scores) == (3, None, [0, 0])
    assert game.deal == Deal((("4-5", "6-6"), ("0-0", "1-6"), ("1-1", "2-6"), ("2-2", "3-6")), ("1-3",))


def test_moves() -> None:
    game = Game.from_deal(DUPLAS, HANDS)
    assert [(move.tile, move.end, str(move)) for move in game.legal_moves()] == [
        ("4-6", "left", "6-4"), ("5-6", "left", "6-5"), ("6-6", "left", "6-6"),
    ]  # fmt: skip
    game.play("6-6")
    assert [(move.tile, move.end, str(move), move.action) for move in game.legal_moves()] == [
        ("1-6", "left", "6-1L", 44), ("1-6", "right", "6-1R", 45),
    ]  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_the_same_seed_is_the_same_round(name: str) -> None:
    rules = TABLES[name]
    assert Game(rules, 7) == Game(rules, seed=np.int32(7)) == Match(rules, seed=7).game
    assert Game(rules, 7) != Game(rules, 8)
    np.random.seed(1)
    assert Game(rules) != Game(rules)
    np.random.seed(1)
    assert Game(rules) != Game(rules)


# Every round there is: undo, copies, views


@SLOW
@given(st.data(), rule_sets(), seeds)
def test_undo_all_the_way_back_and_forward(data: st.DataObject, rules: Any, seed: int) -> None:
    deal = data.draw(st.none() | partial_deals(rules))
    game = Game(rules, seed) if deal is None else Game.from_deal(rules, deal.hands, deal.boneyard, deal.lot)
    rng, record = Random(seed), [game._state.tobytes()]
    while game.seat is not None:
        game.play(rng.choice(game.legal_moves()))
        record.append(game._state.tobytes())
    moves = game.moves
    for move, state in zip(reversed(moves), reversed(record[:-1]), strict=True):
        assert game.undo() == move
        assert game._state.tobytes() == state
    with pytest.raises(ValueError, match="nothing to undo: no tile has been played"):
        game.undo()
    for move, state in zip(moves, record[1:], strict=True):
        game.play(move)
        assert game._state.tobytes() == state


@SLOW
@given(st.sampled_from(list(TABLES)), seeds, st.integers(0, 15))
def test_copies_are_equal_and_their_own(name: str, seed: int, plays: int) -> None:
    game = random_game(TABLES[name], seed, plays)
    before = game._state.tobytes()
    for other in (game.copy(), copy.copy(game), copy.deepcopy(game), pickle.loads(pickle.dumps(game))):
        assert other == game
        assert (other.events, other.hands, other.boneyard, other.result) == (
            game.events,
            game.hands,
            game.boneyard,
            game.result,
        )
        assert other._state.tobytes() == before
        assert [other.view(seat) for seat in range(other.rules.players)] == [
            game.view(seat) for seat in range(game.rules.players)
        ]
        if other.seat is not None:
            other.play(other.legal_moves()[-1])
            assert other != game
            other.undo()
            assert other == game
            other.play_out(3)
        assert game._state.tobytes() == before
    assert game != "a game"


def test_games_differ_by_rules_deal_starter_forced_multiplier_scores_and_plays() -> None:
    hands = [["6-6", "6-5"], ["5-5", "6-4"]]
    game = Game.from_deal(MANO, hands, ["1-1", "2-2"])
    assert game == Game.from_deal(MANO, [["5-6", "6-6"], ["6-4", "5-5"]], ["1-1", "2-2"])
    others = [
        Game.from_deal(dataclasses.replace(MANO, target=7), hands, ["1-1", "2-2"]),
        Game.from_deal(MANO, hands, ["2-2", "1-1"]),
        Game.from_deal(MANO, hands[::-1], ["1-1", "2-2"]),
        Game.from_deal(MANO, hands, ["1-1", "2-2"], starter=1),
        Game.from_deal(MANO, hands, ["1-1", "2-2"], forced="6-6"),
        Game.from_deal(MANO, hands, ["1-1", "2-2"], multiplier=2),
        Game.from_deal(MANO, hands, ["1-1", "2-2"], scores=[0, 1]),
    ]
    assert all(game != other for other in others)
    played = game.copy()
    played.play("6-6")
    assert played != game


@SLOW
@given(rule_sets(), seeds)
def test_play_out_plays_legal_moves_to_the_end(rules: Any, seed: int) -> None:
    game = Game(rules, seed)
    if seed % 2:
        game.play(game.legal_moves()[0])
    again = game.copy()
    result = game.play_out(5)
    assert game.result == result
    assert game.seat is None
    for move in game.moves[len(again.moves) :]:
        again.play(move)
    assert again == game
    assert again.result == result
    assert game.play_out(5) == result  # nothing left to play


@SLOW
@given(rule_sets(), seeds, st.integers(0, 20))
def test_a_view_shows_what_a_seat_may_know(rules: Any, seed: int, plays: int) -> None:
    game = random_game(rules, seed, plays)
    over = game.seat is None
    for seat in range(rules.players):
        view = game.view(seat)
        assert (view.rules, view.seat, view.hand, view.ends) == (rules, seat, game.hands[seat], game.ends)
        assert (view.chain, view.starter, view.scores) == (game.chain, game.starter, game.scores)
        assert (view.counts, view.boneyard) == ([len(hand) for hand in game.hands], len(game.boneyard))
        assert (view.to_act, view.multiplier) == (game.seat, game.multiplier)
        assert view.legal_moves == (game.legal_moves() if seat == game.seat else [])
        assert view.hands == (game.hands if over else None)
        assert view.events == tuple(
            event._replace(tile=None) if event.kind == "draw" and event.seat != seat else event for event in game.events
        )


@pytest.mark.parametrize("name", ["mano_a_mano", "puxar-3"])
def test_hidden_tiles_leave_no_trace_in_a_view(name: str) -> None:
    """Two deals that differ only in what seat 0 cannot know give it equal views, to the last byte."""
    rules = TABLES[name]
    for seed in range(60):
        game = random_game(rules, seed, 4)
        if game.seat != 0:
            continue
        hidden = [game.deal.boneyard[len(game.deal.boneyard) - len(game.boneyard) :]]
        other = Game.from_deal(
            rules,
            game.deal.hands,
            [*game.deal.boneyard[: -len(hidden[0])], *hidden[0][::-1]],
            game.starter,
            game.forced,
        )
        for move in game.moves:
            other.play(move)
        assert other.boneyard == game.boneyard[::-1]
        assert other.view(0) == game.view(0)
        assert other.view(0).record.tobytes() == game.view(0).record.tobytes()
        assert repr(other.view(0)) == repr(game.view(0))


# Deals by hand


def test_a_first_round_by_the_rules() -> None:
    hands = [["5-5", "6-5"], ["4-4", "6-6"]]
    for game in (
        Game.from_deal(MANO, hands, starter=None),
        Game.from_deal(MANO, hands, starter=1, first_round=True),
        Game.from_deal(MANO, hands, starter=None, first_round=True),
    ):
        assert (game.starter, game.forced, [str(m) for m in game.legal_moves()]) == (1, "6-6", ["6-6"])
    with pytest.raises(ValueError, match="starter=0: seat 1 holds the tile that opens a first round"):
        Game.from_deal(MANO, hands, starter=0, first_round=True)
    assert len(Game.from_deal(MANO, hands, starter=1).legal_moves()) == 2  # a later round
    free = Game.from_deal(BLOCOS, hands, starter=1, first_round=True)
    assert (free.starter, free.forced, len(free.legal_moves())) == (1, None, 2)
    starters = [Game.from_deal(BLOCOS, hands, starter=None, seed=seed).starter for seed in range(40)]
    assert set(starters) == {0, 1}
    assert starters == [Game.from_deal(BLOCOS, hands, starter=None, seed=seed).starter for seed in range(40)]


@pytest.mark.parametrize(
    ("hands", "opening"),
    [
        ([["6-5", "6-4"], ["0-0", "1-0"]], (1, "0-0")),  # a double too
        ([["6-5", "6-4"], ["6-3", "5-4"]], (0, "5-6")),
        ([["5-4", "2-1"], ["6-3", "1-0"]], (1, "3-6")),
        ([["6-0", "2-1"], ["5-4", "1-0"]], (1, "4-5")),
        ([["6-3", "5-4"], ["2-1", "1-0"]], (0, "3-6")),
    ],
)
def test_the_opening_tile(hands: list[list[str]], opening: tuple[int, str]) -> None:
    game = Game.from_deal(MANO, hands, starter=None)
    assert (game.starter, game.forced) == opening
    again = make_rules("mano_a_mano", no_double="redeal")
    if "0-0" not in hands[1]:
        with pytest.raises(
            ValueError, match="no hand holds a double: with no_double='redeal' these tiles are dealt again"
        ):
            Game.from_deal(again, hands, starter=None)
    else:
        assert Game.from_deal(again, hands, starter=None).starter == 1


def test_a_forced_opening_is_the_only_action_and_still_an_action() -> None:
    game = Game.from_deal(MANO, [["6-6", "6-5"], ["6-4", "3-3"]], forced="5-6")
    assert [str(move) for move in game.legal_moves()] == ["6-5"]
    assert game.events == ()
    refused(game, "6-6")
    game.play("6-5")
    assert [event.kind for event in game.events] == ["play"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hands": [["6-6"]]}, "hands: 1 given for 2 players"),
        ({"hands": [["6-6"], ["5-5"], ["4-4"]]}, "hands: 3 given for 2 players"),
        ({"hands": [["6-6"], []]}, "the hand of seat 1 is empty: that round is over before it starts"),
        ({"hands": [["6-6"], ["5-5", "7-1"]]}, "'7-1' is not in the double-6 set: halves go from 0 to 6"),
        ({"hands": [["6-6"], ["55"]]}, "'55' is not a tile: write two halves, such as '6-4'"),
        ({"hands": [["6-6"], [5]]}, "5 is not a tile: write two halves"),
        ({"hands": [["6-6"], "5-5"]}, "the hand of seat 1 is '5-5'; give a list of tiles"),
        ({"boneyard": "5-5"}, "the boneyard is '5-5'; give a list of tiles"),
        (
            {"hands": [["6-5"], ["5-6"]]},
            "tile '5-6' in the hand of seat 1 was already given in the hand of seat 0",
        ),
        ({"boneyard": ["1-1", "6-6"]}, "tile '6-6' in the boneyard was already given in the hand of seat 0"),
        ({"boneyard": ["1-2", "2-1"]}, "tile '2-1' in the boneyard was already given in the boneyard"),
        ({"starter": 2}, "starter=2 is not a whole number from 0 to 1"),
        ({"starter": -1}, "starter=-1 is not a whole number from 0 to 1"),
        ({"starter": True}, "starter=True is not a whole number from 0 to 1"),
        ({"starter": 0.0}, "starter=0.0 is not a whole number from 0 to 1"),
        ({"forced": "5-5"}, "forced='5-5': seat 0, which starts, does not hold it"),
        ({"forced": "5"}, "'5' is not a tile"),
        (
            {"forced": "6-6", "starter": None},
            "forced='6-6': the rules of a first round decide the opening tile; leave it out",
        ),
        ({"multiplier": 0}, "multiplier=0 is not a whole number from 1 to 2147483648"),
        ({"multiplier": 1.5}, "multiplier=1.5 is not a whole number from 1 to 2147483648"),
        ({"multiplier": 2**31 + 1}, "multiplier=2147483649 is not a whole number from 1 to 2147483648"),
        ({"scores": [1]}, "scores: 1 given for 2 sides"),
        ({"scores": [0, 6]}, "scores: side 1=6 is not a whole number from 0 to 5"),
        ({"scores": [-1, 0]}, "scores: side 0=-1 is not a whole number from 0 to 5"),
        ({"starter": None, "seed": -1}, "seed=-1: a seed is an integer of at least 0"),
        ({"rules": "mano_a_mano"}, "rules='mano_a_mano' is not a RuleSet: take PRESETS['duplas']"),
    ],
)
def test_a_deal_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    given_deal = {"rules": MANO, "hands": [["6-6"], ["5-5"]], "boneyard": ["1-1"]}
    Game.from_deal(**given_deal)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        Game.from_deal(**{**given_deal, **changes})


@pytest.mark.parametrize("seed", [-1, True, 1.5, "1", [1]])
def test_a_seed_that_cannot_be(seed: Any) -> None:
    for make in (Game, Match):
        with pytest.raises(ValueError, match="seed="):
            make(MANO, seed)


@pytest.mark.parametrize("draw", ["one", "until_fit"])
def test_given_deals_with_more_to_draw_than_the_rules_leave(draw: str) -> None:
    """One tile each but for the starter, 23 to draw, the opening number last: long rounds."""
    rules, rng = make_rules("puxar", players=4, draw=draw), Random(4)
    others = [f"{high}-{low}" for high in range(7) for low in range(high + 1) if (high, low) != (6, 6)]
    longest = 0
    for _ in range(300):
        others.sort(key=lambda name: rng.random() + ("6" in name))
        hands = [["6-6", others[0]], *([name] for name in others[1:4])]
        game = Game.from_deal(rules, hands, others[4:], forced="6-6")
        game.play_out(rng.randrange(2**31))
        longest = max(longest, len(game.events))
        chain = [read(tile) for tile in game.chain]
        held = [read(tile) for hand in [*game.hands, game.boneyard] for tile in hand]
        assert sorted(chain + held) == sorted(map(read, ["6-6", *others]))
    assert 45 < longest <= Game(rules, 1)._state["events"].shape[1]


# Refusals


def refused(game: Game, move: Any, *, what: str = "play|move|tile|set") -> None:
    """The move is refused, and not a byte of the game has changed."""
    before, seat, events = game._state.tobytes(), game.seat, game.events
    with pytest.raises(ValueError, match=what):
        game.play(move)
    assert (game._state.tobytes(), game.seat, game.events) == (before, seat, events)


@pytest.mark.parametrize("plays", [[], ["6-6"], ["6-6", "6-1L"]])
@pytest.mark.parametrize(
    "move",
    [
        "5-5", "5-5L", "3-3R", "0-0L", "6-3L", "7-7L", "", "6-", "64L", "pass", "draw",
        -1, -2, 56, 57, 110, 10**9, 2**62, 2**63, -(2**63), 10**30, np.uint64(2**63), np.int64(-1),
        True, False, np.True_, 1.0, float("nan"), np.float32(2), None, b"6-6", [54], ("6-6",), np.array([54]),
        Move(-1), Move(56), Move(10**30), Move(2.0), Move(None), Move(True), Move("x"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_cannot_be_played_changes_nothing(plays: list[str], move: Any) -> None:
    game = Game.from_deal(DUPLAS, HANDS)
    for played in plays:
        game.play(played)
    refused(game, move)
    assert game == Game.from_deal(DUPLAS, HANDS) or plays
    game.play(game.legal_moves()[0])  # goes on


def test_the_right_end_of_an_empty_table_is_refused() -> None:
    game = Game.from_deal(DUPLAS, HANDS)
    for move in ("6-6R", "6-5R", 55):
        refused(game, move)
    with pytest.raises(IllegalAction, match=r"seat 0 may not play '6-6R' \(action 55\); legal: 6-4, 6-5, 6-6"):
        game.play("6-6R")
    game.play("6-6L")  # the left end counts for an opening tile


@pytest.mark.parametrize("kind", [int, np.int8, np.int32, np.int64, np.uint8, np.uint64, str, Move])
def test_every_way_to_name_a_move(kind: Any) -> None:
    game = Game.from_deal(DUPLAS, HANDS)
    for name, action in [("6-6", 54), ("6-1L", 44), ("6-2R", 47)]:
        game.play(name if kind is str else kind(action))
    assert game.chain == ["1-6", "6-6", "6-2"]


def test_a_tile_that_fits_both_ends_needs_its_end() -> None:
    game = Game.from_deal(DUPLAS, HANDS)
    game.play("6-6")
    refused(game, "6-1", what="'6-1' fits both ends: say 6-1L or 6-1R$")
    refused(game, "1-6", what="fits both ends")
    game.play("1-6l")
    assert game.chain == ["1-6", "6-6"]


def test_a_refusal_names_the_seat_the_move_and_the_legal_ones() -> None:
    game = Game.from_deal(DUPLAS, HANDS)
    game.play("6-6")
    with pytest.raises(IllegalAction, match=r"seat 1 may not play '6-5L' \(action 52\); legal: 6-1L, 6-1R") as error:
        game.play("6-5L")
    assert (error.value.table, error.value.action) == (0, 52)
    copied = pickle.loads(pickle.dumps(error.value))
    assert (str(copied), copied.table, copied.action) == (str(error.value), 0, 52)


def test_nothing_can_be_played_when_the_round_is_over() -> None:
    game = Game(PUXAR, 4)
    game.play_out(1)
    for move in ("6-6", "6-6L", 0, Move(3)):
        refused(game, move, what="the round is over")


@pytest.mark.parametrize("seat", [-1, 2, True, None, "0", 1.0])
def test_a_view_of_no_seat(seat: Any) -> None:
    with pytest.raises(ValueError, match=r"seat=.* is not a whole number from 0 to 1"):
        Game(MANO, 1).view(seat)
    assert Game(MANO, 1).view(np.int64(1)).seat == 1


def test_what_is_returned_is_ones_own() -> None:
    game = Game(MANO, 6)
    game.hands[0].clear()
    game.boneyard.clear()
    game.legal_moves().clear()
    game.moves.clear()
    game.scores.clear()
    game.view(0).hand.clear()
    game.view(0).record["hand"] = 0
    assert game == Game(MANO, 6)
    assert game.view(0) == Game(MANO, 6).view(0)
    assert len(game.hands[0]) == 7


def test_repr() -> None:
    game = Game.from_deal(DUPLAS, HANDS)
    assert repr(game) == "<Game of 4 players, 0 played, ends None, seat 0 to act>"
    game.play_out(1)
    assert repr(game).endswith("over>")
    assert repr(Match(DUPLAS, 1)) == "<Match of 4 players, scores [0, 0], round 1>"
