"""Rounds against other projects' dominoes, wherever the rules are the same: identical deals and plays.

OpenSpiel's ``python_block_dominoes`` (two players) and ``python_team_dominoes`` (pairs), and the package
``dominoes`` (pairs). They name an end by its number and know one move where both ends show it; what else
they do differently is listed in docs/other_projects.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

import dominoes
import pyspiel
import pytest
from open_spiel.python.games import block_dominoes, team_dominoes

from domino_env import Game, make_rules
from domino_env.events import Move, RoundResult

#: A move with its ends by number: the tile's halves, and the number it was played at (None opens).
Play = tuple[tuple[int, int], int | None]

RULES = {"block": make_rules("blocos"), "team": make_rules("duplas")}
TILES = tuple((low, high) for low in range(7) for high in range(low, 7))
MODULES = {"block": block_dominoes, "team": team_dominoes}


def halves(name: str) -> tuple[int, int]:
    low, high = sorted((int(name[0]), int(name[2])))
    return low, high


def plain(game: Game, move: Move) -> Play:
    """A move of ours in the others' words."""
    return halves(move.tile), None if game.ends is None else game.ends[move.end == "right"]


def moves(game: Game) -> dict[Play, list[Move]]:
    """Our legal moves by the others' words: two of ours are one of theirs where both ends show a number."""
    found: dict[Play, list[Move]] = {}
    for move in game.legal_moves():
        found.setdefault(plain(game, move), []).append(move)
    return found


def dealt(seed: int, seats: int) -> tuple[list[list[str]], list[str]]:
    """Hands of seven tiles, and the rest."""
    tiles = [f"{low}-{high}" for low, high in TILES]
    Random(seed).shuffle(tiles)
    return [tiles[7 * seat : 7 * seat + 7] for seat in range(seats)], tiles[7 * seats :]


def pip_sums(hands: Any) -> tuple[int, ...]:
    return tuple(int(sum(one + other for one, other in hand)) for hand in hands)


# OpenSpiel


def openspiel_state(kind: str, hands: list[list[str]]) -> Any:
    """Their game with these hands dealt; each tile of theirs is a pair of floats."""
    state = pyspiel.load_game(f"python_{kind}_dominoes").new_initial_state()
    order = [tile for hand in hands for tile in hand] if kind == "block" else [t for deal in zip(*hands) for t in deal]  # noqa: B905
    for name in order:
        state.apply_action(TILES.index(halves(name)))
    assert not state.is_chance_node()
    return state


def openspiel_moves(kind: str, state: Any) -> dict[Play, int]:
    """Their legal actions; whose they are is part of the action."""
    found: dict[Play, int] = {}
    for action in state.legal_actions():
        theirs = MODULES[kind]._ACTIONS[action]
        assert theirs.player == state.current_player()
        low, high = theirs.tile
        found[(int(low), int(high)), None if theirs.edge is None else int(theirs.edge)] = action
    return found


def openspiel_rounds(kind: str, count: int, first: int = 0) -> Iterator[tuple[RoundResult, Any]]:
    """Rounds played on both sides with every point compared: our result, and their last state."""
    seats = RULES[kind].players
    for seed in range(first, first + count):
        hands, rest = dealt(seed, seats)
        state, rng = openspiel_state(kind, hands), Random(seed)
        game = Game.from_deal(RULES[kind], hands, rest if kind == "block" else (), starter=0)
        while game.seat is not None:
            assert not state.is_terminal()
            assert state.current_player() == game.seat
            assert [sorted((int(a), int(b)) for a, b in hand) for hand in state.hands] == [
                sorted(map(halves, hand)) for hand in game.hands
            ]
            if game.ends is not None:
                assert sorted(game.ends) == [int(end) for end in state.open_edges]
            ours, theirs = moves(game), openspiel_moves(kind, state)
            assert ours.keys() == theirs.keys()
            play = rng.choice(sorted(ours, key=str))
            game.play(rng.choice(ours[play]))
            state.apply_action(theirs[play])
        assert state.is_terminal()
        assert game.result is not None
        assert pip_sums(state.hands) == game.result.pips
        yield game.result, state


def assert_block_points(result: RoundResult, theirs: list[float]) -> None:
    """They win with all the loser's pips, we (after a block) with the difference; going out it is the same."""
    one, other = result.pips
    ours = 0 if result.side is None else result.points if result.side == 0 else -result.points
    if result.reason == "out":
        assert theirs == [ours, -ours]
    else:
        assert ours == other - one
        assert theirs[0] == (0 if one == other else other if one < other else -one)


def check_block(count: int, first: int = 0) -> Counter[str]:
    reasons: Counter[str] = Counter()
    for result, state in openspiel_rounds("block", count, first):
        assert_block_points(result, state.returns())
        reasons[result.reason] += 1
    return reasons


def check_team(count: int, first: int = 0) -> Counter[str]:
    """After a block the same pair wins. Going out our pair wins, theirs only if it has fewer pips left."""
    reasons: Counter[str] = Counter()
    for result, state in openspiel_rounds("team", count, first):
        sums = [result.pips[side] + result.pips[side + 2] for side in (0, 1)]
        theirs = state.returns()
        fewest = None if sums[0] == sums[1] else int(sums[1] < sums[0])
        assert theirs == (
            [0] * 4 if fewest is None else [sums[1 - fewest] * (-1) ** (s % 2 + fewest) for s in range(4)]
        )
        if result.reason != "out":
            assert result.side == fewest
        reasons[result.reason if result.side == fewest or result.reason == "tied" else "out, others fewer"] += 1
    return reasons


def test_blocos_is_block_dominoes() -> None:
    reasons = check_block(1000)
    assert reasons["out"] > 200
    assert reasons["blocked"] > 500


def test_duplas_is_team_dominoes() -> None:
    reasons = check_team(600)
    assert reasons["out"] > 200
    assert reasons["blocked"] > 100


@pytest.mark.long
def test_blocos_is_block_dominoes_in_many_rounds() -> None:
    reasons = check_block(5_000, first=10_000)
    assert all(reasons[reason] for reason in ("out", "blocked", "tied"))


@pytest.mark.long
def test_duplas_is_team_dominoes_in_many_rounds() -> None:
    reasons = check_team(4_000, first=10_000)
    assert all(reasons[reason] for reason in ("out", "blocked", "tied", "out, others fewer"))


# The package dominoes


def package_game(hands: list[list[str]], starter: int) -> Any:
    """Their game from given hands, before the first play."""
    held = [dominoes.Hand([dominoes.Domino(*halves(name)) for name in hand]) for hand in hands]
    valid = tuple((tile, True) for tile in held[starter])
    return dominoes.Game(dominoes.Board(), held, [], starter, valid, starter, None)


def package_moves(theirs: Any) -> dict[Play, tuple[Any, bool]]:
    found: dict[Play, tuple[Any, bool]] = {}
    for tile, left in theirs.valid_moves:
        end = None
        if len(theirs.board):
            end = theirs.board.left_end() if left else theirs.board.right_end()
        found[(min(tile), max(tile)), end] = tile, left
    assert len(found) == len(theirs.valid_moves)
    return found


def package_passes(theirs: Any) -> list[int]:
    """Who passed, in order."""
    return [(theirs.starting_player + at) % 4 for at, move in enumerate(theirs.moves) if move is None]


def assert_package_result(result: RoundResult, theirs: Any) -> None:
    """The same pair wins; they count the pips of all hands (of the other hands, going out)."""
    assert theirs.result.won == (result.reason == "out")
    points = theirs.result.points
    assert result.side == (None if points == 0 else int(points < 0)) or (result.reason == "out" and points == 0)
    if result.reason == "out":
        assert theirs.result.player == result.seat
    if result.reason != "tied":
        assert abs(points) == sum(result.pips)


def check_package(count: int, first: int = 0) -> Counter[str]:
    """Rounds on both sides. Half begin as a first round with 6-6, half with a seat's free choice."""
    reasons: Counter[str] = Counter()
    for seed in range(first, first + count):
        hands, _ = dealt(seed, 4)
        rng = Random(seed)
        opening = next(seat for seat, hand in enumerate(hands) if "6-6" in hand)
        starter = opening if seed % 2 else rng.randrange(4)
        theirs = package_game(hands, starter)
        game = Game.from_deal(RULES["team"], hands, starter=starter, first_round=bool(seed % 2))
        if seed % 2:
            game.play("6-6")
            theirs.make_move(dominoes.Domino(6, 6), True)
        while game.seat is not None:
            assert theirs.result is None
            assert theirs.turn == game.seat
            if game.ends is not None and game.ends[0] != game.ends[1]:  # else they may have played it at the other
                assert {*game.ends} == {theirs.board.left_end(), theirs.board.right_end()}
            ours, valid = moves(game), package_moves(theirs)
            assert ours.keys() == valid.keys()
            play = rng.choice(sorted(ours, key=str))
            game.play(rng.choice(ours[play]))
            theirs.make_move(*valid[play])
            passed = [event.seat for event in game.events if event.kind == "pass"]
            assert passed == package_passes(theirs)
        assert game.result is not None
        assert pip_sums(theirs.hands) == game.result.pips
        assert_package_result(game.result, theirs)
        reasons[game.result.reason] += 1
    return reasons


def test_duplas_is_the_package_dominoes() -> None:
    reasons = check_package(1500)
    assert reasons["out"] > 500
    assert reasons["blocked"] > 200


@pytest.mark.long
def test_duplas_is_the_package_dominoes_in_many_rounds() -> None:
    reasons = check_package(10_000, first=10_000)
    assert all(reasons[reason] for reason in ("out", "blocked", "tied"))


# The differences


def test_the_page_names_the_versions_compared() -> None:
    page = (Path(__file__).parents[1] / "docs" / "other_projects.md").read_text(encoding="utf-8")
    constraints = (Path(__file__).parents[1] / "constraints.txt").read_text(encoding="utf-8")
    for name in ("open-spiel", "dominoes"):
        assert f"{name}=={version(name)}" in constraints.replace("_", "-")
        assert version(name) in page


def test_both_ends_equal_is_one_move_of_theirs_and_two_of_ours() -> None:
    hands = [hand.split() for hand in ("0-6 1-6 0-5 1-1 2-2 3-3 4-4", "0-1 5-6 2-6 2-4 2-5 3-4 3-5")]
    game = Game.from_deal(RULES["block"], hands, starter=0)
    state = openspiel_state("block", hands)
    for tile, end in (((0, 6), None), ((0, 1), 0), ((1, 6), 1)):
        game.play(moves(game)[tile, end][0])
        state.apply_action(openspiel_moves("block", state)[tile, end])
    assert game.ends == (6, 6)
    assert [str(move) for move in game.legal_moves()] == ["6-2L", "6-2R", "6-5L", "6-5R"]
    assert openspiel_moves("block", state).keys() == {((2, 6), 6), ((5, 6), 6)}


def test_block_dominoes_pays_all_pips_after_a_block() -> None:
    hands = [hand.split() for hand in ("6-6 0-5 2-3", "4-6 1-1 0-0")]
    game = Game.from_deal(RULES["block"], hands, starter=0)
    state = pyspiel.load_game("python_block_dominoes").new_initial_state()
    state.hands = [[tuple(map(float, halves(name))) for name in hand] for hand in hands]
    state.deck, state._next_player = [], 0
    for tile, end in (((6, 6), None), ((4, 6), 6)):
        game.play(moves(game)[tile, end][0])
        state.apply_action(openspiel_moves("block", state)[tile, end])
    assert game.result is not None
    assert (game.result.pips, game.result.points) == ((10, 2), 8)
    assert state.returns() == [-10, 10]


def test_a_pair_that_goes_out_may_lose_at_team_dominoes() -> None:
    reasons = check_team(300)
    assert reasons["out, others fewer"] > 10
