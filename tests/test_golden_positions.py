"""The golden positions in `Game`: each play's events, what is expected on the way, and undo."""

from __future__ import annotations

from typing import Any

import pytest
from compare_with_reference import read
from golden_positions import Expectation, Position, Tile, load_positions

from domino_env import PRESETS, Deal, Game, Match, make_rules

POSITIONS = {position.name: position for position in load_positions()}


def names(tiles: list[Tile]) -> list[str]:
    return [f"{high}-{low}" for high, low in tiles]


def game_of(position: Position, preset: str = "") -> Game:
    forced = None if position.forced is None else names([position.forced])[0]
    return Game.from_deal(
        PRESETS[preset or position.rules],
        [names(hand) for hand in position.hands],
        names(position.boneyard),
        position.starter,
        forced,
    )


def move_name(event: Any, opening: bool) -> str:
    return names([event.tile])[0] + ("" if opening else event.end[0].upper())


def log_of(game: Game) -> list[tuple[Any, ...]]:
    return [(e.kind, e.seat, None if e.tile is None else read(e.tile), e.end) for e in game.events]


def check(game: Game, expected: Expectation) -> None:
    assert game.ends == expected.ends
    assert tuple(len(hand) for hand in game.hands) == expected.hands
    assert len(game.boneyard) == expected.boneyard
    assert game.seat == (None if expected.seat == "none" else expected.seat)
    if expected.legal is not None:
        assert sorted((read(m.tile), m.end) for m in game.legal_moves()) == expected.legal
    if expected.pips is not None:
        assert tuple(sum(sum(read(tile)) for tile in hand) for hand in game.hands) == expected.pips


def test_every_published_position_is_here() -> None:
    assert list(POSITIONS) == ["g03", "g07", "g08", "g09", "g10", "g11", "g12"]


@pytest.mark.parametrize("name", POSITIONS)
def test_replay_and_undo(name: str) -> None:
    position = POSITIONS[name]
    game = game_of(position)
    log = [tuple(vars(event).values()) for event in position.log]
    checks = {expectation.after: expectation for expectation in position.expectations}
    before = []
    for number, event in enumerate(position.plays):
        before.append((game.copy(), game._state.tobytes()))
        game.play(move_name(event, opening=number == 0))
        done = len(game.events)
        assert log_of(game) == log[:done]
        if done in checks:
            check(game, checks.pop(done))
    assert not checks
    assert log_of(game) == log
    if position.result is None:
        assert game.result is None
    else:
        assert vars(game.result) == vars(position.result)

    end, bytes_at_end = game.copy(), game._state.tobytes()
    for earlier, record in reversed(before):
        move = game.undo()
        assert str(move) == move_name(position.plays[len(game.moves)], opening=not game.moves)
        assert game == earlier
        assert game._state.tobytes() == record
        assert game.result is None
    with pytest.raises(ValueError, match="nothing to undo"):
        game.undo()
    for number, event in enumerate(position.plays):
        game.play(move_name(event, opening=number == 0))
    assert game == end
    assert game._state.tobytes() == bytes_at_end


@pytest.mark.parametrize("name", [name for name in POSITIONS if name != "g11"])
def test_the_rules_alone_give_the_opening(name: str) -> None:
    """All but g11, whose opening is given against the preset's rule."""
    position = POSITIONS[name]
    game = Game.from_deal(
        PRESETS[position.rules],
        [names(hand) for hand in position.hands],
        names(position.boneyard),
        starter=None,
    )
    assert (game.starter, game.forced and read(game.forced)) == (position.starter, position.forced)
    assert [read(move.tile) for move in game.legal_moves()] == [position.forced]


@pytest.mark.parametrize(("name", "side", "points"), [("g07", 1, 1), ("g08", None, 0)])
def test_a_block_between_pairs_inside_a_match(name: str, side: int | None, points: int) -> None:
    """After it, the match goes on as the rules say, and its next round is as fresh as any."""
    position = POSITIONS[name]
    deal = Deal(tuple(tuple(names(hand)) for hand in position.hands))
    match = Match(PRESETS["duplas"], 3, deals=[deal, deal, deal])
    for number, event in enumerate(position.plays):
        assert match.round == 1
        result = match.play(move_name(event, opening=number == 0))
    assert result is not None
    assert (result.side, result.points, result.seat) == (side, points, None)
    assert (match.round, match.over, match.winner) == (2, False, None)
    assert match.scores == [0, points]
    last_placer = position.plays[-1].seat
    assert match.starter == match.game.seat == last_placer
    assert match.multiplier == (2 if side is None else 1)
    fresh = Game.from_deal(PRESETS["duplas"], deal.hands, starter=last_placer, multiplier=match.multiplier)
    assert_same_table(match.game, fresh)
    assert [move.tile for move in match.game.legal_moves()] == fresh.hands[last_placer]  # any tile


def assert_same_table(one: Game, other: Game) -> None:
    """Equal states but for what belongs to the match around them, then and after the same plays."""
    of_the_match = {"scores", "round", "ties", "rng", "over", "winner", "next_starter", "rewards"}
    beyond_use = {"events", "deck", "top", "bottom"}  # compared below, as far as they count
    one, other = one.copy(), other.copy()
    while True:
        for name in set(one._state.dtype.names or ()) - of_the_match - beyond_use:
            assert one._state[name].tolist() == other._state[name].tolist(), name
        assert one.events == other.events
        assert one.boneyard == other.boneyard
        assert one.legal_moves() == other.legal_moves()
        if one.seat is None:
            return
        one.play(one.legal_moves()[0])
        other.play(other.legal_moves()[0])


def test_draw_one_where_the_others_draw_until_it_fits() -> None:
    """g10 at `puxar`: the turn goes on after each drawn tile, also after 4-3, which fits."""
    position = POSITIONS["g10"]
    game = game_of(position, "puxar")
    for number, event in enumerate(position.plays[:9]):
        game.play(move_name(event, opening=number == 0))
    assert log_of(game)[9:] == [
        ("draw", seat, tile, None) for seat, tile in [(1, (6, 4)), (0, (1, 0)), (1, (4, 3)), (0, (1, 1))]
    ]
    assert [str(move) for move in game.legal_moves()] == ["4-3L"]


@pytest.mark.parametrize(
    ("preset", "drawn_by", "pips", "side", "points", "starter"),
    [
        ("blocos", [], (2, 18), 0, 16, 1),
        ("mano_a_mano", [0] * 14, (72, 18), 1, 1, 1),
        ("puxar", [0, 1] * 7, (36, 54), 0, 18, 1),
    ],
)
def test_one_position_three_games(
    preset: str, drawn_by: list[int], pips: tuple[int, ...], side: int, points: int, starter: int
) -> None:
    hands = ["6-6 6-2 6-3 5-4 1-0 0-0 1-1".split(), "6-0 3-2 6-4 6-5 6-1 5-5 4-4".split()]
    boneyard = "2-0 2-1 3-0 3-1 4-0 4-1 5-0 2-2 5-1 5-2 4-2 3-3 5-3 4-3".split()
    game = Game.from_deal(PRESETS[preset], hands, boneyard, starter=0)
    for move in "6-6 6-0L 6-2R 3-2R 6-3R 6-4R 5-4R 6-5R 1-0L 6-1L".split():
        game.play(move)
    assert game.ends == (6, 6)
    assert sum("6" in tile for tile in game.chain) == 7
    assert [event.seat for event in game.events[10:]] == drawn_by
    assert {event.kind for event in game.events[10:]} <= {"draw"}
    result = game.result
    assert result is not None
    assert (result.reason, result.last_placer, result.pips) == ("blocked", 1, pips)
    assert (result.seat, result.side, result.points, result.next_starter) == (side, side, points, starter)


def test_the_edge_of_a_signed_byte() -> None:
    """g11 with pips scoring: 127 pips in one hand, all scored; twice that with a multiplier."""
    position = POSITIONS["g11"]
    for multiplier in (1, 2, 1000):
        rules = make_rules("mano_a_mano", scoring="pips")
        game = Game.from_deal(
            rules,
            [names(hand) for hand in position.hands],
            names(position.boneyard),
            0,
            multiplier=multiplier,
        )
        for number, event in enumerate(position.plays):
            game.play(move_name(event, opening=number == 0))
        assert game.result is not None
        assert (game.result.pips, game.result.points) == ((0, 127), 127 * multiplier)
        assert len(game.hands[1]) == 16
