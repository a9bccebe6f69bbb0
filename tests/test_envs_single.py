"""`DominoEnv`: Gymnasium's contract, masks, and the engine's rewards, given in the step that earns them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from single_envs import episode, every_case, legal

from domino_env import IllegalAction, Match, RoundResult, RuleSet, make_rules
from domino_env.bots import ScriptedPlayer
from domino_env.envs.registration import IDS
from domino_env.envs.single import DominoEnv
from domino_env.observation import Views
from domino_env.players import Player, Streams
from domino_env.tiles import TILE_NAMES, parse_tile

KINDS = [(episode, reward) for episode in ("round", "match") for reward in ("points", "outcome")]
every_kind = pytest.mark.parametrize(("episode", "reward"), KINDS, ids=map("-".join, KINDS))

# Sets so small that a seat is often never asked in a round.
TINY = {
    "one tile each": RuleSet(
        players=2, pairs=False, hand_size=1, max_pip=2, draw="none", opening="highest_double",
        next_starter="rotation", tie_starter="rotation", scoring="pips", target=3, tie_multiplier=1,
    ),
    "six seats": RuleSet(
        players=6, pairs=False, hand_size=1, max_pip=2, draw="none", opening="highest_double",
        next_starter="last_to_place", tie_starter="opening", scoring="batida", target=2, tie_multiplier=2,
        no_double="redeal",
    ),
    "two tiles, drawing": RuleSet(
        players=3, pairs=False, hand_size=1, max_pip=2, draw="one", opening="lots",
        next_starter="loser", tie_starter="lots", scoring="pips", target=None, tie_multiplier=1,
    ),
}  # fmt: skip


def new_process(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


# Gymnasium's contract


@pytest.mark.parametrize("name", IDS.values())
@every_kind
def test_gymnasium_finds_nothing_to_say(name: str, episode: str, reward: str) -> None:
    # Pictures of every render mode are drawn once a preset; they depend on neither argument.
    env = gymnasium.make(name, episode=episode, reward=reward).unwrapped
    check_env(env, skip_render_check=(episode, reward) != KINDS[0])


def test_importing_the_package_registers_it_and_naming_it_is_enough() -> None:
    assert list(IDS.values()) == [f"domino_env/{name}-v0" for name in ("Duplas", "ManoAMano", "Blocos", "Puxar")]
    code = (
        "import gymnasium\n"
        "first = gymnasium.make('domino_env:domino_env/Duplas-v0')\n"
        "for name in ('Duplas', 'ManoAMano', 'Blocos', 'Puxar'):\n"
        "    env = gymnasium.make(f'domino_env/{name}-v0')\n"
        "    observation, info = env.reset(seed=1)\n"
        "    env.step(env.action_space.sample(info['action_mask']))\n"
        "    print(env.unwrapped.rules.players, env.unwrapped.rules.draw)\n"
    )
    assert new_process(code).splitlines() == ["4 none", "2 until_fit", "2 none", "2 one"]


def test_arguments_survive_json() -> None:
    arguments = {
        "rules": {"target": 10}, "opponents": ["heaviest", "doubles"], "partner": "random", "seat": 2,
        "episode": "match", "reward": "outcome", "strict": True, "illegal_reward": -5.0, "render_mode": "ansi",
    }  # fmt: skip
    spec = gymnasium.make("domino_env/Duplas-v0", **json.loads(json.dumps(arguments))).spec
    assert spec is not None
    env = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(spec.to_json()))
    inner = env.unwrapped
    assert isinstance(inner, DominoEnv)
    assert inner.rules == make_rules("duplas", target=10)
    assert (inner.strict, inner.illegal_reward, inner.render_mode) == (True, -5.0, "ansi")
    env.reset(seed=3)
    assert inner.learner == 2


def test_wrapped_by_make_a_masked_game_raises_no_warning() -> None:
    env = gymnasium.make("domino_env/ManoAMano-v0")  # with the passive checker
    for seed in range(5):
        for observation, *_ in episode(env, random.Random(seed), seed):
            assert observation in env.observation_space


# Masks


def allowed(env: DominoEnv, observation: npt.NDArray[np.int8]) -> set[int]:
    """The legal actions as the rules say, from what an observation shows."""
    parts = {name: observation[s.start : s.stop].tolist() for name, s in env.encoding.slices.items()}
    hand = [tile for tile, held in enumerate(parts["hand"]) if held]
    if not any(parts["left_end"]):
        first_round = env._tables.batch.state["round"][0] == 0
        if first_round and env.rules.opening == "highest_double":
            halves = {tile: [int(half) for half in TILE_NAMES[tile].split("-")] for tile in hand}
            hand = [max(hand, key=lambda t: (halves[t][0] == halves[t][1], sum(halves[t]), max(halves[t])))]
        return {2 * tile for tile in hand}
    ends = parts["left_end"].index(1), parts["right_end"].index(1)
    return {2 * tile + end for tile in hand for end in (0, 1) if str(ends[end]) in TILE_NAMES[tile].split("-")}


def check_masks(env: DominoEnv, steps: Iterator[tuple[Any, ...]]) -> int:
    count = 0
    for observation, _, done, info in steps:
        mask = info["action_mask"]
        assert set(info) == {"action_mask"}
        assert mask.dtype == np.int8
        assert mask.shape == (env.rules.num_actions,)
        assert np.isin(mask, (0, 1)).all()
        assert env.action_masks().dtype == np.bool_
        assert (env.action_masks() == mask).all()
        assert observation in env.observation_space
        if done:
            assert mask.all()
        else:
            assert set(legal(info)) == allowed(env, observation) != set()
            count += 1
    return count


def test_tile_names_and_ids_agree() -> None:  # `allowed` relies on it
    assert all(parse_tile(name) == tile for tile, name in enumerate(TILE_NAMES))


@every_case
def test_masks_are_the_legal_actions_at_reset_and_each_step(options: dict[str, Any]) -> None:
    rng = random.Random(1)
    env = DominoEnv(**options, episode="match")
    decisions = sum(check_masks(env, episode(env, rng, seed)) for seed in range(4))
    env = DominoEnv(**options, opponents="heaviest")
    decisions += sum(check_masks(env, episode(env, rng)) for _ in range(25))
    assert decisions > 100


def test_sampling_with_the_mask_gives_legal_actions() -> None:
    env = DominoEnv("puxar", strict=True, episode="match")
    env.action_space.seed(4)
    _, info = env.reset(seed=4)
    for _ in range(10_000):
        action = env.action_space.sample(info["action_mask"])
        assert info["action_mask"][action]
        *_, terminated, _, info = env.step(action)  # strict: raises where it is illegal
        if terminated:
            _, info = env.reset()


@pytest.mark.parametrize("rules", TINY.values(), ids=TINY)
@pytest.mark.parametrize("seat", [None, 0, 1])
@pytest.mark.parametrize("kind", ["round", "match"])
def test_no_episode_is_over_when_it_starts(rules: RuleSet, seat: int | None, kind: Any) -> None:
    env = DominoEnv(rules, seat=seat, episode=kind, strict=True)
    rng = random.Random(2)
    asked = sum(check_masks(env, episode(env, rng, 0 if n == 0 else None)) for n in range(200))
    assert asked >= 200


# Actions that cannot be played


def test_an_illegal_action_ends_the_episode_with_the_penalty() -> None:
    env = DominoEnv("mano_a_mano", seat=0, illegal_reward=-7)
    before, info = env.reset(seed=5)
    illegal = int(np.flatnonzero(info["action_mask"] == 0)[0])
    observation, reward, terminated, truncated, info = env.step(illegal)
    assert (reward, terminated, truncated) == (-7.0, True, False)
    assert (observation == before).all()
    assert info["action_mask"].all()
    assert env.action_masks().all()
    with pytest.raises(ResetNeeded, match="the episode is over"):
        env.step(0)
    assert check_masks(env, episode(env, random.Random(1))) > 0


def test_strict_refuses_an_illegal_action_and_changes_nothing() -> None:
    env, other = (DominoEnv("duplas", strict=True) for _ in range(2))
    _, info = env.reset(seed=5)
    other.reset(seed=5)
    for illegal in np.flatnonzero(info["action_mask"] == 0).tolist():
        with pytest.raises(IllegalAction, match=r"may not play .*legal: "):
            env.step(illegal)
    rest = [env.step(legal(info)[0]), other.step(legal(info)[0])]
    assert (rest[0][0] == rest[1][0]).all()
    assert rest[0][1:4] == rest[1][1:4]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "action",
    [-1, 56, 10**9, 2**63, 10**30, 0.0, 1.5, float("nan"), True, np.True_, None, "3", [3], (3, 4), {},
     np.array([1, 2]), np.array(1.0), np.array([True]), np.array([], np.int64), np.uint64(2**63)],
    ids=repr,
)  # fmt: skip
def test_what_is_no_action_is_refused_and_changes_nothing(strict: bool, action: Any) -> None:
    env = DominoEnv("duplas", strict=strict)
    _, info = env.reset(seed=1)
    state = env._tables.batch.state.tobytes()
    with pytest.raises(ValueError, match="is not a whole number from 0 to 55") as error:
        env.step(action)
    assert repr(action) in str(error.value)
    assert env._tables.batch.state.tobytes() == state
    env.step(legal(info)[0])


@pytest.mark.parametrize("kind", [int, np.int8, np.int32, np.int64, np.uint8, np.array, lambda a: np.array([a])])
def test_any_kind_of_whole_number_is_an_action(kind: Any) -> None:
    env = DominoEnv("duplas", strict=True)
    _, info = env.reset(seed=1)
    observation = env.step(kind(legal(info)[-1]))[0]
    env.reset(seed=1)
    assert (env.step(legal(info)[-1])[0] == observation).all()


def test_no_step_before_a_reset_or_after_the_end() -> None:
    env = DominoEnv("duplas", render_mode="ansi")
    with pytest.raises(ResetNeeded, match="no episode was started"):
        env.step(0)
    with pytest.raises(ResetNeeded, match="reset"):
        env.render()
    *_, last = episode(env, random.Random(1), 1)
    assert last[2]
    with pytest.raises(ResetNeeded, match="the episode is over"):
        env.step(0)


# Rewards


class Recorder(Player):
    """Plays at random and writes down what it chose."""

    name = "recorder"
    played: list[int]

    def __init__(self, rules: RuleSet) -> None:
        super().__init__(rules)
        self.played = []
        self.random = ScriptedPlayer(rules)

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        actions = self.random.act(views, rng)
        self.played += actions.tolist()
        return actions


def gains(rules: RuleSet, result: RoundResult) -> list[float]:
    """What each side gains by a round's result, with points for rewards."""
    sides = rules.num_sides
    if result.side is None or result.points == 0:
        return [0.0] * sides
    if sides == 2:
        losses = [result.points] * 2
    elif rules.scoring == "batida":
        losses = [result.points / (sides - 1)] * sides
    else:
        fewest = 0 if result.reason == "out" else min(result.pips)
        losses = [(pips - fewest) * result.multiplier for pips in result.pips]
    return [result.points if side == result.side else -losses[side] for side in range(sides)]


def outcome(winner: int | None, side: int, sides: int) -> float:
    if winner is None:
        return 0.0
    return 1.0 if side == winner else -1.0 / (sides - 1)


def follow(match: Match, played: list[int], kind: str, reward: str, side: int) -> tuple[float, list[RoundResult], bool]:
    """Replay actions: what `side` gains, the rounds that end, whether the episode is over."""
    rules, gained, results, over = match.rules, 0.0, [], False
    for action in played:
        assert not over
        result = match.play(action)
        if result is None:
            continue
        results.append(result)
        over = match.over or kind == "round"
        winner = match.winner if kind == "match" or rules.target is None else result.side
        if reward == "points":
            gained += gains(rules, result)[side]
        elif over:
            gained += outcome(winner, side, rules.num_sides)
    return gained, results, over


@every_case
@every_kind
def test_each_step_gives_what_the_engine_says_was_won_in_it(options: dict[str, Any], episode: Any, reward: Any) -> None:
    recorders: list[Recorder] = []

    def opponents(rules: RuleSet) -> Player:
        recorders.append(Recorder(rules))
        return recorders[-1]

    env = DominoEnv(**options, opponents=opponents, episode=episode, reward=reward, strict=True)
    rng = random.Random(3)
    (recorder,) = recorders  # one for all other seats
    learner_out = other_out = 0
    for seed in range(6 if episode == "match" else 30):
        recorder.played.clear()
        _, info = env.reset(seed=seed)
        side, match = env.rules.side_of(env.learner), Match(env.rules, seed)
        assert follow(match, recorder.played, episode, reward, side) == (0.0, [], False)
        done = False
        while not done:
            action = rng.choice(legal(info))
            recorder.played[:] = [action]
            _, given, done, _, info = env.step(action)
            expected, results, over = follow(match, recorder.played, episode, reward, side)
            assert given == pytest.approx(expected)
            assert done == over
            if reward == "points" and len(results) == 1 and results[0].reason == "out" and results[0].points:
                assert (given > 0) == (results[0].side == side)
                learner_out += results[0].seat == env.learner
                other_out += results[0].side != side
    assert reward == "outcome" or min(learner_out, other_out) > 0


@pytest.mark.parametrize("seat", range(2))
def test_what_is_won_before_the_first_decision_comes_with_the_first_step(seat: int) -> None:
    env = DominoEnv(TINY["one tile each"], episode="match", seat=seat)
    rng, late = random.Random(1), 0
    for n in range(100):
        _, info = env.reset(seed=0 if n == 0 else None)
        before = env._tables.batch.state["scores"][0, :2].copy()
        late += before.any()
        total, done = 0.0, False
        while not done:
            _, reward, done, _, info = env.step(rng.choice(legal(info)))
            total += reward
        scores = env._tables.batch.state["scores"][0].astype(float)
        assert total == scores[seat] - scores[1 - seat]
    assert late > 10
