"""OpenSpiel: what chance deals, what a seat knows of it, and dealing again what it does not know."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations, permutations
from random import Random
from typing import Any

import numpy as np
import pyspiel
import pytest
from openspiel_rounds import SMALL, every_small, walk
from strategies import TABLES

from domino_env import PRESETS, Encoding, Game, make_rules
from domino_env.adapters.openspiel import PREFIX, load
from domino_env.tiles import TILE_NAMES, tiles_in

# Chance


def chances(state: Any, so_far: float = 1.0) -> Iterator[tuple[Any, float]]:
    """Each state after the deal (and the lot), with its probability."""
    if not state.is_chance_node():
        yield state, so_far
        return
    for outcome, chance in state.chance_outcomes():
        yield from chances(state.child(outcome), so_far * chance)


@pytest.mark.parametrize("no_double", ["heaviest", "redeal"])
@pytest.mark.parametrize("hand_size", [1, 2, 3])
def test_every_deal_is_one_path_and_as_likely_as_any(hand_size: int, no_double: str) -> None:
    rules = make_rules("mano_a_mano", max_pip=2, hand_size=hand_size, no_double=no_double)
    doubles = {0, 2, 5}
    deals = [
        (one, other)
        for one in combinations(range(6), hand_size)
        for other in combinations(sorted(set(range(6)) - set(one)), hand_size)
        if no_double == "heaviest" or doubles & {*one, *other}
    ]
    found = {
        tuple(tuple(tiles_in(hand)) for hand in state.node.dealt): chance
        for state, chance in chances(load(rules).new_initial_state())
    }
    assert sorted(found) == sorted(deals)
    assert len(list(chances(load(rules).new_initial_state()))) == len(deals)
    assert list(found.values()) == pytest.approx([1 / len(deals)] * len(deals))


def by_random_play(state: Any) -> float:
    """What seat 0 gains on average where all play at random."""
    if state.is_terminal():
        return float(state.returns()[0])
    if state.is_chance_node():
        return sum(chance * by_random_play(state.child(outcome)) for outcome, chance in state.chance_outcomes())
    actions = state.legal_actions()
    return sum(by_random_play(state.child(action)) for action in actions) / len(actions)


def by_random_moves(game: Game) -> float:
    """The same of a `Game`, whose boneyard has an order."""
    if (result := game.result) is not None:
        return 0.0 if result.side is None else float(result.points if result.side == 0 else -result.points)
    total, moves = 0.0, game.legal_moves()
    for move in moves:
        game.play(move)
        total += by_random_moves(game)
        game.undo()
    return total / len(moves)


@every_small
@pytest.mark.parametrize("hand_size", [1, 2])
def test_tiles_drawn_by_chance_are_as_likely_as_from_a_shuffled_boneyard(small: str, hand_size: int) -> None:
    rules = make_rules(small, max_pip=2, hand_size=hand_size)
    tree = load(rules).new_initial_state()
    if hand_size == 1:  # 30 deals and 24 orders: three of the deals are enough
        tree.apply_action(1)
    total, weight = 0.0, 0
    for one in combinations(range(6), hand_size):
        if hand_size == 1 and one != (1,):
            continue
        for other in combinations(sorted(set(range(6)) - set(one)), hand_size):
            for order in permutations(sorted(set(range(6)) - {*one, *other})):
                hands = [[TILE_NAMES[tile] for tile in hand] for hand in (one, other)]
                boneyard = [TILE_NAMES[tile] for tile in order]
                for lot in (0, 1) if rules.opening == "lots" else (None,):
                    game = Game.from_deal(rules, hands, boneyard, starter=lot, first_round=True)
                    total += by_random_moves(game)
                    weight += 1
    assert by_random_play(tree) == pytest.approx(total / weight)


# What a seat knows


@every_small
def test_information_states_have_perfect_recall(small: str) -> None:
    """What a seat once knew and did follows from what it knows, in every state of the whole game."""
    past: dict[str, tuple[Any, ...]] = {}
    tensors: dict[str, bytes] = {}

    def visit(state: Any, pasts: tuple[tuple[Any, ...], ...]) -> None:
        for seat in (0, 1):
            text = state.information_state_string(seat)
            tensor = np.array(state.information_state_tensor(seat), np.float32).tobytes()
            assert tensors.setdefault(text, tensor) == tensor
            if state.current_player() == seat:
                known = (*pasts[seat], text)
                assert past.setdefault(text, (known, state.legal_actions())) == (known, state.legal_actions())
        for action in state.legal_actions():
            new = tuple(
                (*before, state.information_state_string(seat), action) if state.current_player() == seat else before
                for seat, before in enumerate(pasts)
            )
            visit(state.child(action), new)

    visit(load(SMALL[small]).new_initial_state(), ((), ()))
    assert len(set(tensors.values())) == len(tensors)
    assert len(past) > 300


@pytest.mark.parametrize("table", TABLES)
def test_strings_and_tensors_tell_the_same_apart(table: str) -> None:
    game = load(TABLES[table])
    pairs: dict[str, set[tuple[str, bytes]]] = defaultdict(set)
    for seed in range(4 if game.num_players() < 9 else 1):
        for state in walk(game, seed):
            for seat in range(game.num_players()):
                information = np.array(state.information_state_tensor(seat), np.float32)
                assert information.shape == tuple(game.information_state_tensor_shape())
                assert set(np.unique(information)) <= {0, 1}
                pairs["information"].add((state.information_state_string(seat), information.tobytes()))
                vector = np.array(state.observation_tensor(seat), np.float32)
                assert vector.shape == tuple(game.observation_tensor_shape())
                text = state.observation_string(seat).partition("; ")[2]  # the vector does not say which seat it is
                pairs["observation"].add((text, vector.tobytes()))
    for kind in pairs.values():
        assert len({text for text, _ in kind}) == len({tensor for _, tensor in kind}) == len(kind)


def test_an_information_state_in_words() -> None:
    rules = make_rules("mano_a_mano", max_pip=2, hand_size=2)
    state = load(rules).new_initial_state()
    for tile in ("0-0", "1-2", "1-1"):
        state.apply_action(TILE_NAMES.index(tile))
    assert state.information_state_string(1) == "seat 1; dealt 1-1"
    state.apply_action(TILE_NAMES.index("0-2"))
    assert state.current_player() == 1
    state.apply_action(state.string_to_action("1-1"))
    state.apply_action(state.string_to_action("2-1L"))
    state.apply_action(state.string_to_action("2-0L"))
    assert state.is_terminal()
    assert state.returns() == [-1, 1]
    assert state.information_state_string(0) == "seat 0; dealt 0-0 1-2; 1 starts; 1:1-1L 0:2-1L 1:2-0L"


def test_a_tile_drawn_is_shown_to_its_drawer_at_once_and_to_no_other() -> None:
    game, found = load(PRESETS["puxar"]), 0
    for seed in range(12):
        for state in walk(game, seed):
            if state.node.kind != "draw":
                continue
            drawer = state.node.next_seat
            tile, tried = state.legal_actions()[0], [state.child(action) for action in state.legal_actions()]
            assert state.action_to_string(tile) == f"seat {drawer} draws {TILE_NAMES[tile]}"
            seen = [child.information_state_string(drawer) for child in tried]
            assert len(set(seen)) == len(tried)
            assert f"{drawer}:+{TILE_NAMES[tile]}" in seen[0]
            before = state.information_state_string(1 - drawer)
            assert all(
                child.information_state_string(1 - drawer).startswith(f"{before} {drawer}:+?") for child in tried
            )
            found += 1
    assert found > 20


def test_observers_give_named_parts() -> None:
    game = pyspiel.load_game(f"{PREFIX}duplas")
    *_, state = walk(game, 1)
    observer = game.make_py_observer()
    observer.set_from(state, 2)
    assert set(observer.dict) == set(Encoding(PRESETS["duplas"]).slices)
    assert observer.tensor.tolist() == state.observation_tensor(2)
    observer = game.make_py_observer(pyspiel.IIGObservationType(perfect_recall=True))
    observer.set_from(state, 2)
    assert list(observer.dict) == ["player", "dealt", "starter", "events"]
    assert observer.dict["player"].tolist() == [0, 0, 1, 0]
    assert int(observer.dict["dealt"].sum()) == 7
    for public, private in ((True, "NONE"), (True, "ALL_PLAYERS"), (False, "SINGLE_PLAYER")):
        kind = pyspiel.IIGObservationType(public, False, getattr(pyspiel.PrivateInfoType, private))
        assert game.make_py_observer(kind) is None
    with pytest.raises(ValueError, match="no parameters"):
        game.make_py_observer(None, {"size": 3})


# Dealing the hidden tiles again


@pytest.mark.parametrize("table", TABLES)
def test_a_resampled_state_looks_the_same_to_its_seat(table: str) -> None:
    game, rng = load(TABLES[table]), Random(4)
    different = 0
    for seed in range(5):
        for number, state in enumerate(walk(game, seed)):
            if state.is_chance_node() or state.is_terminal() or number % 3:
                continue
            for seat in {state.current_player(), rng.randrange(game.num_players())}:
                other = state.resample_from_infostate(seat, rng.random)
                assert other.current_player() == state.current_player()
                assert other.information_state_string(seat) == state.information_state_string(seat)
                assert other.information_state_tensor(seat) == state.information_state_tensor(seat)
                assert other.observation_tensor(seat) == state.observation_tensor(seat)
                different += str(other) != str(state)
    assert different > 20


@every_small
def test_resampling_is_uniform_over_the_deals_a_seat_cannot_tell_apart(
    small: str, chi_square_limit: Callable[[int], float]
) -> None:
    """Counted against the whole tree, in the decisions with the most deals behind them."""
    alike: dict[str, dict[str, float]] = defaultdict(dict)
    one: dict[str, Any] = {}

    def visit(state: Any, chance: float) -> None:
        if state.is_terminal():
            return
        if state.is_chance_node():
            for outcome, share in state.chance_outcomes():
                visit(state.child(outcome), chance * share)
            return
        key = state.information_state_string()
        alike[key][str(state)] = chance
        one[key] = state
        for action in state.legal_actions():
            visit(state.child(action), chance)

    visit(load(SMALL[small]).new_initial_state(), 1.0)
    rng = Random(2)
    longest = sorted(alike, key=lambda key: (len(alike[key]) > 2) * len(key))[-8:]
    for key in longest:
        expected = alike[key]
        found = Counter(
            str(one[key].resample_from_infostate(one[key].current_player(), rng.random)) for _ in range(300)
        )
        assert found.keys() <= expected.keys()
        total = sum(expected.values())
        statistic = sum((found[s] - 300 * p / total) ** 2 / (300 * p / total) for s, p in expected.items())
        assert statistic < chi_square_limit(max(1, len(expected) - 1)), key


def test_only_a_decision_can_be_resampled() -> None:
    state = load(PRESETS["blocos"]).new_initial_state()
    with pytest.raises(ValueError, match="this node is 'deal'"):
        state.resample_from_infostate(0, Random(0).random)
