"""The solver: against all play in the reference model, by its own certificates, and at its edges."""

from __future__ import annotations

from random import Random
from typing import Any

import numba
import numpy as np
import pytest
from check_solver import PAYOFFS, WORTHS, check_certificate, compare_endings, deals, points
from reference import ReferenceRound
from strategies import TABLES, build_deal, build_rules

from domino_env import PRESETS, Game, RuleSet, make_rules
from domino_env.bots._solver_search import _find_slot
from domino_env.bots.solver import (
    NEITHER,
    NO_LIMIT,
    OTHER,
    OWN,
    action_values,
    move_values,
    new_work,
    points_payoff,
    set_payoff,
    solve,
    value_of,
    win_payoff,
)
from domino_env.rules import pack
from domino_env.state import copy_state


def random_game(random: Random) -> Game:
    """A deal of some of the tiles, under random rules."""
    rules = build_rules(random.randint)
    deal = build_deal(random.randint, rules)
    multiplier = random.choice((1, 1, 2, 7))
    return Game.from_deal(rules, deal.hands, deal.boneyard, deal.lot, multiplier=multiplier)


@pytest.mark.parametrize("value", WORTHS)
@pytest.mark.parametrize("name", TABLES)
def test_endings_of_published_games_are_worth_what_all_play_gives(name: str, value: str) -> None:
    rules, random = TABLES[name], Random(f"{name} {value}")
    compared = 0
    for _ in range(6):
        game, side = Game(rules, seed=random.randrange(2**32)), random.randrange(rules.num_sides)
        compared += compare_endings(game, random.randrange(2**32), value, WORTHS[value], side, 150)
    assert compared >= 18


@pytest.mark.parametrize("value", WORTHS)
def test_endings_under_random_rules_are_worth_what_all_play_gives(value: str) -> None:
    random, compared, large = Random(value), 0, 0
    for _ in range(100):
        game = random_game(random)
        large += game.rules.players > 4 or game.rules.num_tiles > 28  # these have keys of another form
        side = random.randrange(game.rules.num_sides)
        compared += compare_endings(game, random.randrange(2**32), value, WORTHS[value], side, 100)
    assert compared >= 250
    assert large >= 20


@pytest.mark.long
@pytest.mark.parametrize("value", WORTHS)
def test_many_endings_are_worth_what_all_play_gives(value: str) -> None:
    random, compared = Random(f"many {value}"), 0
    for i in range(600):
        rules = list(TABLES.values())[i % len(TABLES)]
        game = random_game(random) if i % 2 else Game(rules, seed=i)
        side = random.randrange(game.rules.num_sides)
        compared += compare_endings(game, i, value, WORTHS[value], side, 1500)
    assert compared >= 2500


@pytest.mark.parametrize("max_pip", [2, 3])
def test_whole_rounds_of_small_sets_are_worth_what_all_play_gives(max_pip: int) -> None:
    random = Random(max_pip)
    for draw in ("none", "until_fit", "one"):
        for scoring in ("batida", "pips"):
            rules = make_rules("mano_a_mano", max_pip=max_pip, hand_size=2, draw=draw, scoring=scoring)
            game = Game(rules, seed=random.randrange(2**32))
            compared = compare_endings(game, 0, "points", points, random.randrange(2), 20_000)
            game.play_out(0)
            assert compared == len(game.moves)


@pytest.mark.parametrize("value", WORTHS)
@pytest.mark.parametrize("name", ["duplas", "mano_a_mano", "blocos", "puxar", "blocos-3", "puxar-3", "blocos-9"])
def test_a_solution_bears_itself_out(name: str, value: str) -> None:
    for game in deals(TABLES[name], 3, 0 if name in ("duplas", "blocos") else 4, seed=2):
        assert check_certificate(game, value) > 0


def test_what_payoffs_say() -> None:
    rules = TABLES["duplas"]
    doubled = points_payoff(rules, multiplier=2)
    assert doubled.shape == (3, 5, 2)
    assert doubled[OWN, :, 0].tolist() == [0, 2, 4, 6, 8]
    assert doubled[OTHER, :, 1].tolist() == [0, -2, -4, -6, -8]
    assert not doubled[NEITHER].any()
    assert win_payoff(rules)[:, :, 1].tolist() == [[1] * 5, [-1] * 5, [0] * 5]
    assert points_payoff(TABLES["puxar"]).shape == (3, 169, 2)
    three = make_rules("blocos", players=3, scoring="batida")
    assert points_payoff(three)[OTHER, 4, 0] == -2  # two losers share what the winner scores


@pytest.mark.parametrize("name", ["duplas", "mano_a_mano", "blocos-3", "puxar-3"])
def test_any_payoff_may_be_given(name: str) -> None:
    rules, random = TABLES[name], Random(name)
    shape = points_payoff(rules).shape
    values = np.array([random.randrange(-9, 10) / 8 for _ in range(int(np.prod(shape)))])

    def worth(round_: ReferenceRound, side: int) -> float:
        result = round_.result
        assert result is not None
        last = int(round_.rules.side(result.last_placer) != side)
        if result.side is None:
            return float(payoff[NEITHER, 0, last])
        amount = result.base
        if result.side != side and rules.num_sides > 2 and rules.scoring == "pips":
            amount = result.pips[side] - result.pips[result.side]
        return float(payoff[OWN if result.side == side else OTHER, amount, last])

    for payoff in (values.reshape(shape), np.zeros(shape)):
        compared = 0
        for seed in range(8):
            side = random.randrange(rules.num_sides)
            compared += compare_endings(Game(rules, seed=seed), seed, payoff, worth, side, 100)
        assert compared >= 20


def test_the_last_tile_is_played_where_it_is_worth_most() -> None:
    rules = PRESETS["mano_a_mano"]
    game = Game.from_deal(rules, [["6-6", "6-1"], ["5-5", "4-4"]], multiplier=2)
    # 6-1 first leaves the double for last: carroca, 2 points, times 2. The other way round 6-1 would be simples.
    solution = solve(game)
    assert (solution.value, solution.side, solution.seat, str(solution.move)) == (4.0, 0, 0, "6-1")
    assert [str(move) for move in solution.line] == ["6-1", "6-6L"]
    assert {str(move): value for move, value in move_values(game).items()} == {"6-1": 4.0, "6-6": 2.0}
    assert solve(game, "win").value == 1.0
    assert solve(game, side=1).value == -4.0


def test_the_game_is_left_as_it_is() -> None:
    game = deals(PRESETS["puxar"], 1, 3, seed=5)[0]
    before, copied = copy_state(game._state), game.copy()
    solve(game)
    move_values(game, "win")
    assert game._state.tobytes() == before.tobytes()
    assert game == copied


def test_the_table_s_size_and_what_it_holds_change_nothing_but_the_work() -> None:
    rules = PRESETS["mano_a_mano"]
    games, packed = deals(rules, 12, 5, seed=3), pack(rules)
    small, shared = new_work(rules, 4), new_work(rules, 12)
    shared.info["age"] = 2**16 - 4  # the table's count of solves starts again on the way
    for work in (small, shared):
        set_payoff(work, points_payoff(rules))
    for game in games:
        side = game.seat or 0
        expected = solve(game).value
        assert value_of(game._state[0], packed, small, side, NO_LIMIT) == expected
        assert value_of(game._state[0], packed, shared, side, NO_LIMIT) == expected
    assert 0 < shared.info["age"][0] < 20


def key_of(row: Any, rules: RuleSet) -> tuple[int, int]:
    key = np.zeros(2, np.uint64)
    _find_slot(row, pack(rules)[0], key, np.uint64(15))
    return int(key[0]), int(key[1])


@pytest.mark.parametrize("name", ["mano_a_mano", "puxar-3", "puxar-4", "blocos-9"])
def test_positions_have_keys_of_their_own(name: str) -> None:
    rules = TABLES[name]
    game = next(game for game in deals(rules, 20, 2, seed=11) if game.ends and game.ends[0] != game.ends[1])
    state = game._state
    changes: list[tuple[str, Any]] = [("top", state["top"] + 1), ("seat", (state["seat"] + 1) % rules.players)]
    for end in ("left", "right"):
        changes += [(end, number) for number in range(7) if number not in (game.ends or ())]
    for seat in range(rules.players):
        for tile in range(28):
            hands = state["hands"].copy()
            hands[0, seat] ^= np.uint64(1 << tile)
            changes.append(("hands", hands))
    keys = {key_of(state[0], rules)}
    for field, value in changes:
        changed = copy_state(state)
        changed[field] = value
        keys.add(key_of(changed[0], rules))
    assert len(keys) == len(changes) + 1
    turned = copy_state(state)
    turned["left"], turned["right"] = state["right"], state["left"]
    assert key_of(turned[0], rules) == key_of(state[0], rules)


def test_a_payoff_holds_until_the_next() -> None:
    game = deals(PRESETS["duplas"], 1, 6, seed=4)[0]
    work, packed, side = new_work(game.rules), pack(game.rules), (game.seat or 0) % 2
    for value, payoff in PAYOFFS.items():
        set_payoff(work, payoff(game.rules))
        assert value_of(game._state[0], packed, work, side, NO_LIMIT) == solve(game, value).value


def test_a_search_stops_at_its_limit() -> None:
    game = deals(PRESETS["duplas"], 1, 1, seed=6)[0]
    work, packed, out = new_work(game.rules), pack(game.rules), np.zeros(56)
    set_payoff(work, points_payoff(game.rules))
    for limit in (0, 1, 50):
        before = int(work.info[0]["nodes"])
        assert np.isnan(value_of(game._state[0], packed, work, 0, limit))
        assert work.info[0]["nodes"] == before + limit
        assert not action_values(game._state[0], packed, work, 0, limit, out)
    assert action_values(game._state[0], packed, work, 0, NO_LIMIT, out)


@numba.njit
def total(state: Any, rules: Any, work: Any, out: Any) -> float:
    """What a compiled player does: solve many positions in one pass."""
    worth = 0.0
    for t in range(state.shape[0]):
        side = state[t]["seat"] % rules[0]["sides"]
        worth += value_of(state[t], rules, work, side, NO_LIMIT)
        action_values(state[t], rules, work, side, NO_LIMIT, out)
        worth += out.max()
        out[:] = -np.inf
    return worth


def test_compiled_code_can_call_it() -> None:
    games = deals(PRESETS["duplas"], 5, 8, seed=8)
    state, work = np.concatenate([game._state for game in games]), new_work(games[0].rules)
    set_payoff(work, points_payoff(games[0].rules))
    expected = sum(2 * solve(game).value for game in games)
    assert total(state, pack(games[0].rules), work, np.full(56, -np.inf)) == expected


def over() -> Game:
    game = Game(PRESETS["duplas"], seed=1)
    game.play_out(1)
    return game


@pytest.mark.parametrize(
    ("game", "arguments", "message"),
    [
        (over(), {}, "the round is over: there is nothing to solve"),
        (Game(PRESETS["duplas"], seed=1).view(0), {}, "a View does not show all hands and the boneyard"),
        ("duplas", {}, "'duplas' is not a Game"),
        (Game(PRESETS["duplas"], seed=1), {"value": "point"}, r"not one of points, win \(did you mean 'points'\?\)"),
        (Game(PRESETS["duplas"], seed=1), {"value": 3}, "value=3 is not one of points, win"),
        (Game(PRESETS["duplas"], seed=1), {"value": np.zeros((3, 4, 2))}, r"has shape \(3, 5, 2\), not \(3, 4, 2\)"),
        (Game(PRESETS["duplas"], seed=1), {"value": np.full((3, 5, 2), np.nan)}, "a payoff holds finite numbers"),
        (Game(PRESETS["duplas"], seed=1), {"side": 2}, "side=2 is not a whole number from 0 to 1"),
        (Game(PRESETS["duplas"], seed=1), {"table_bits": 40}, "table_bits=40 is not a whole number from 4 to 26"),
    ],
)
def test_what_cannot_be_solved_is_refused(game: Any, arguments: dict[str, Any], message: str) -> None:
    for function in (solve, move_values):
        with pytest.raises(ValueError, match=message):
            function(game, **arguments)


def test_a_payoff_of_whole_numbers_is_as_good() -> None:
    rules: RuleSet = PRESETS["duplas"]
    game = deals(rules, 1, 8, seed=9)[0]
    assert solve(game, points_payoff(rules).astype(np.int64)).value == solve(game).value
