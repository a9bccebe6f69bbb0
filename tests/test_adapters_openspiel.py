"""OpenSpiel: a round as its game, against `Game`, by OpenSpiel's own checks, and under its algorithms."""

from __future__ import annotations

import pickle
import re
import runpy
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyspiel
import pytest
from absl import flags
from open_spiel.python import rl_environment
from open_spiel.python.algorithms import generate_playthrough, get_all_states, ismcts, mcts
from openspiel_rounds import SMALL, every_small, step, walk
from strategies import TABLES, build_rules

from domino_env import PRESETS, Encoding, Game, RuleSet, make_rules
from domino_env.adapters import openspiel
from domino_env.adapters.openspiel import PREFIX, load, most_points
from domino_env.tiles import TILE_NAMES, tiles_in

ROOT = Path(__file__).parents[1]
every_preset = pytest.mark.parametrize("preset", PRESETS)


def names(tiles: int) -> list[str]:
    return [TILE_NAMES[tile] for tile in tiles_in(tiles)]


def as_game(states: list[Any]) -> tuple[Game, list[int]]:
    """The same round as a `Game`, and the actions that were played, from copies of a state at all points."""
    last, rules = states[-1].node, states[-1].get_game().rules
    row = last.state[0]
    drawn = [TILE_NAMES[event >> 7] for event in last.events().tolist() if event & 3 == 1]
    rest = [TILE_NAMES[tile] for tile in row["deck"][row["top"] : row["bottom"]].tolist()]
    hands = [names(hand) for hand in last.dealt]
    game = Game.from_deal(rules, hands, drawn + rest, starter=int(row["starter"]), first_round=True)
    played = [action for state, action in zip(states, last_history(states), strict=False) if not state.is_chance_node()]
    return game, played


def last_history(states: list[Any]) -> list[int]:
    return list(states[-1].history())


def assert_same_round(game: Any, seed: int) -> Counter[str]:
    """A random round is the `Game` of the same tiles and actions; what kinds of points it had."""
    states = [state.clone() for state in walk(game, seed)]
    other, played = as_game(states)
    kinds: Counter[str] = Counter(state.node.kind for state in states)
    seats = range(game.num_players())
    for state in states:
        if state.is_chance_node():
            continue
        assert state.current_player() == (pyspiel.PlayerId.TERMINAL if other.seat is None else other.seat)
        assert state.legal_actions() == [move.action for move in other.legal_moves()]
        assert [state.action_to_string(action) for action in state.legal_actions()] == list(
            map(str, other.legal_moves())
        )
        for seat in seats:
            record = other.view(seat).record
            assert state.node.view(seat).tobytes() == record.tobytes()
            assert state.observation_tensor(seat) == Encoding(game.rules).vectors(record)[0].tolist()
        if other.seat is not None:
            other.play(played.pop(0))
    result = other.result
    assert result is not None
    returns = states[-1].returns()
    assert sum(returns) == pytest.approx(0, abs=1e-9)
    if result.side is None:
        assert not any(returns)
    elif game.reward == "points":
        assert returns[result.side] == result.points
    for seat in seats:
        assert returns[seat] == returns[game.rules.side_of(seat)]
    return kinds


# The game


@every_preset
def test_every_preset_is_registered(preset: str) -> None:
    rules = PRESETS[preset]
    game = pyspiel.load_game(PREFIX + preset)
    assert game.rules == rules
    assert str(game) == f"{PREFIX}{preset}()"
    assert game.num_players() == rules.players
    assert game.num_distinct_actions() == 56
    assert game.max_chance_outcomes() == 28
    assert game.utility_sum() == 0
    assert game.observation_tensor_size() == Encoding(rules).size
    kind = game.get_type()
    assert kind.chance_mode == pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC
    assert kind.information == pyspiel.GameType.Information.IMPERFECT_INFORMATION
    assert kind.utility == pyspiel.GameType.Utility.ZERO_SUM


def test_bounds_by_hand() -> None:
    lengths = {name: load(rules).max_game_length() for name, rules in PRESETS.items()}
    assert lengths == {"duplas": 25, "mano_a_mano": 27, "blocos": 13, "puxar": 27}
    # The seven heaviest tiles: 6-6, 6-5, 6-4, 5-5, then three of those with 9, 9, 8 pips.
    assert {name: most_points(rules) for name, rules in PRESETS.items()} == {
        "duplas": 4,
        "mano_a_mano": 4,
        "blocos": 12 + 11 + 10 + 10 + 9 + 9 + 8,
        "puxar": 168 - sum([0, 1, 2, 2, 3, 3, 4]),
    }
    assert load(make_rules("blocos", players=3), reward="outcome").max_utility() == 1


def test_any_rule_set_is_a_game() -> None:
    rng = Random(5)
    for _ in range(150):
        rules = build_rules(rng.randint)
        game = load(rules)
        assert game.rules == rules
        assert pyspiel.load_game(str(game)).rules == rules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pairs=True", "pairs=True needs players=4"),
        ("max_pip=20", "max_pip=20 is not a whole number from 2 to 9"),
        ("max_pip=2", "hand_size=7: 2 players x 7 = 14 tiles"),
        ("draw=some", "draw='some' is not one of none, until_fit, one"),
        ("reward=money", "reward='money' is not one of points, outcome"),
        ("pips=3", "Unknown parameter 'pips'"),
    ],
)
def test_what_is_no_game_is_refused(text: str, message: str) -> None:
    with pytest.raises((ValueError, pyspiel.SpielError), match=message):
        pyspiel.load_game(f"{PREFIX}blocos({text})")


@pytest.mark.parametrize("table", TABLES)
def test_rounds_are_those_of_the_engine(table: str) -> None:
    rules, kinds = TABLES[table], Counter[str]()
    for seed in range(12 if rules.players < 9 else 3):
        kinds += assert_same_round(load(rules), seed)
    assert kinds["over"] in (3, 12)
    assert (kinds["lot"] == kinds["over"]) == (rules.opening == "lots")
    assert (kinds["draw"] > 0) == (rules.draw != "none" and rules.boneyard_size > 0)


@pytest.mark.parametrize("reward", ["points", "outcome"])
def test_rounds_of_any_rules_are_those_of_the_engine(reward: str) -> None:
    rng = Random(8)
    for number in range(60):
        assert_same_round(load(build_rules(rng.randint), reward), number)


def test_a_won_round_is_worth_one_where_outcomes_count() -> None:
    seen = set()
    for seed in range(60):
        *_, state = walk(pyspiel.load_game(f"{PREFIX}duplas(reward=outcome)"), seed)
        seen.add(tuple(state.returns()))
    assert seen <= {(1, -1, 1, -1), (-1, 1, -1, 1), (0, 0, 0, 0)}
    assert len(seen) >= 2


def test_an_impossible_action_changes_nothing() -> None:
    for state in walk(load(PRESETS["puxar"]), 3):
        before, history = str(state), state.history()
        for action in (-1, 56, next(a for a in range(56) if a not in state.legal_actions())):
            with pytest.raises(ValueError, match=r"is not one of|is over|may not play"):
                state.node.apply(action)
        assert (str(state), state.history()) == (before, history)


# OpenSpiel's own checks


@pytest.mark.parametrize("reward", ["points", "outcome"])
@pytest.mark.parametrize("table", TABLES)
def test_openspiel_simulates_it(table: str, reward: str) -> None:
    pyspiel.random_sim_test(load(TABLES[table], reward), num_sims=3, serialize=True, verbose=False)


@every_small
def test_openspiel_enumerates_it(small: str) -> None:
    states = get_all_states.get_all_states(load(SMALL[small]), include_terminals=True, include_chance_states=True)
    assert len(states) > 500


@every_preset
def test_clones_and_pickles_go_their_own_way(preset: str) -> None:
    game = load(PRESETS[preset])
    assert str(pickle.loads(pickle.dumps(game))) == str(game)
    assert pickle.loads(pickle.dumps(game.get_type())) == game.get_type()
    for number, state in enumerate(walk(game, 6)):
        before = str(state)
        others = [state.clone(), pickle.loads(pickle.dumps(state))] if number % 4 == 0 else [state.clone()]
        for other in others:
            assert (str(other), other.history()) == (before, state.history())
            rng = Random(number)
            while not other.is_terminal():
                step(other, rng)
        assert len({tuple(other.returns()) for other in others}) == 1
        assert str(state) == before


@every_preset
def test_a_playthrough_can_be_replayed(preset: str, tmp_path: Path) -> None:
    if not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()
    text = generate_playthrough.playthrough(f"{PREFIX}{preset}()", None, seed=7)
    file = tmp_path / "playthrough.txt"
    file.write_text(text, encoding="utf-8")
    recorded, again = generate_playthrough.replay(str(file))
    assert again == recorded
    assert "Rewards" in text


@every_preset
def test_a_learning_environment_of_openspiel_plays_it(preset: str) -> None:
    env, rng = rl_environment.Environment(load(PRESETS[preset])), Random(3)
    env.seed(3)
    for _ in range(5):
        step = env.reset()
        while not step.last():
            legal = step.observations["legal_actions"][step.observations["current_player"]]
            step = env.step([rng.choice(legal)])
        assert sum(step.rewards) == 0


# OpenSpiel's algorithms


def exploitability_after(rules: RuleSet, iterations: list[int]) -> list[float]:
    """How much a best reply gains on each seat's average policy, after so many iterations of CFR+ in all."""
    game = load(rules)
    solver, done, found = pyspiel.CFRPlusSolver(game), 0, []
    for count in iterations:
        for _ in range(count - done):
            solver.evaluate_and_update_policy()
        done = count
        found.append(pyspiel.exploitability(game, solver.average_policy()))
    return found


@every_small
def test_cfr_falls_towards_an_equilibrium(small: str) -> None:
    first, last = exploitability_after(SMALL[small], [1, 8])
    assert first > 0.05
    assert last < first / 15


@pytest.mark.long
@pytest.mark.parametrize(
    "rules",
    [make_rules("blocos", max_pip=2, hand_size=3), make_rules("blocos", max_pip=3, hand_size=2)],
    ids=["double-two", "double-three"],
)
def test_cfr_solves_blocos(rules: RuleSet) -> None:
    first, middle, last = exploitability_after(rules, [1, 3, 6])
    assert first > middle > last
    assert last < 0.1


@every_preset
def test_bots_of_openspiel_play_the_full_game(preset: str) -> None:
    game = load(PRESETS[preset])
    random_state = np.random.RandomState(1)
    evaluator = mcts.RandomRolloutEvaluator(1, random_state)
    searching: dict[int, Any] = {
        0: ismcts.ISMCTSBot(game, evaluator, 2.0, 12, random_state=random_state),
        1: mcts.MCTSBot(game, 2.0, 12, evaluator, random_state=random_state),
    }
    state, rng, searched = game.new_initial_state(), Random(2), 0
    while not state.is_terminal():
        if (bot := searching.get(state.current_player())) is None:
            step(state, rng)
        else:
            searched += len(state.legal_actions()) > 1
            state.apply_action(int(bot.step(state)))
    assert searched > 3


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """The names that the recipe's page defines, run from top to bottom."""
    text = (ROOT / "docs" / "recipes" / "openspiel.md").read_text(encoding="utf-8")
    found: dict[str, Any] = {"__name__": "example"}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(block, found)
    return found


def test_the_page_of_the_recipe_runs(page: dict[str, Any]) -> None:
    assert page["game"].rules == PRESETS["duplas"]
    assert len(page["state"].history()) > 21


def test_the_recipe_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(ROOT / "docs" / "recipes" / "openspiel_cfr.py")
    monkeypatch.setattr("sys.argv", [file, "--preset", "mano_a_mano", "--iterations", "5"])
    runpy.run_path(file, run_name="__main__")
    table = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [int(row[0]) for row in table] == [1, 2, 5]
    assert float(table[-1][1]) < float(table[0][1]) / 5
    monkeypatch.setattr("sys.argv", [file, "--preset", "duplas", "--max-pip", "6"])
    with pytest.raises(SystemExit):
        runpy.run_path(file, run_name="__main__")
    assert "exploitability is defined for two seats" in capsys.readouterr().err


def test_importing_twice_registers_once() -> None:
    registered = [name for name in pyspiel.registered_names() if name.startswith(PREFIX)]
    assert sorted(registered) == sorted(PREFIX + preset for preset in PRESETS)
    assert openspiel.DominoGame.__mro__[1] is pyspiel.Game
