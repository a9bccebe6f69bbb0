"""Stable-Baselines3: its checker, `DominoVecEnv` against SB3's own vector environments, and a short training."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy as evaluate_masked
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecMonitor

from agents.sb3 import MovePolicy
from domino_env import PRESETS, History, IllegalAction, make_rules
from domino_env.adapters.sb3 import DominoVecEnv
from domino_env.envs.single import DominoEnv
from domino_env.envs.tables import LearnerTables

every_preset = pytest.mark.parametrize("preset", PRESETS)
vectors_or_moves = pytest.mark.parametrize("moves", [False, True], ids=["vectors", "moves"])


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def choose(env: VecEnv, rng: random.Random) -> npt.NDArray[np.int64]:
    """A random legal action for each environment."""
    return np.array([rng.choice(np.flatnonzero(mask).tolist()) for mask in get_action_masks(env)])


# The single environment


@every_preset
@pytest.mark.parametrize("episode", ["round", "match"])
def test_sb3_finds_nothing_to_say(preset: str, episode: Any) -> None:
    check_env(DominoEnv(preset, episode=episode, render_mode="ansi"), skip_render_check=False)


def test_masks_are_found_through_wrappers() -> None:
    env = gymnasium.wrappers.TimeLimit(Monitor(gymnasium.make("domino_env/Puxar-v0")), 1000)
    _, info = env.reset(seed=1)
    assert is_masking_supported(env)
    assert (get_action_masks(env) == info["action_mask"]).all()


# DominoVecEnv


@every_preset
@vectors_or_moves
def test_equals_sb3s_own_vector_environment(preset: str, moves: bool) -> None:
    arguments: dict[str, Any] = {"opponents": "heaviest", "episode": "match", "moves": moves}
    ours = DominoVecEnv(preset, num_envs=1, seed=3, **arguments)
    theirs = DummyVecEnv([lambda: Monitor(DominoEnv(preset, **arguments))])
    theirs._seeds = [3]
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    rng, ended = random.Random(1), 0
    pairs = [(ours.reset(), theirs.reset())]
    for _ in range(300):
        assert (get_action_masks(ours) == get_action_masks(theirs)).all()
        actions = choose(ours, rng)
        mine, its = ours.step(actions), theirs.step(actions)
        pairs += list(zip(mine[:3], its[:3], strict=True))
        ended += mine[2][0]
        info, other = mine[3][0], its[3][0]
        assert not other["TimeLimit.truncated"]
        assert not info.get("TimeLimit.truncated", False)
        assert ("terminal_observation" in info) == ("terminal_observation" in other) == mine[2][0]
        if mine[2][0]:
            pairs.append((info["terminal_observation"], other["terminal_observation"]))
            episode, expected = info["episode"], other["episode"]
            assert (episode["r"], episode["l"]) == (expected["r"], expected["l"])
            assert episode.keys() == expected.keys()
    assert ended > 0
    for mine, its in pairs:
        assert mine.dtype == its.dtype
        assert mine.shape == its.shape
        assert (mine == its).all()


@vectors_or_moves
def test_many_tables_are_those_of_learner_tables_and_rewards_add_up(moves: bool) -> None:
    env = DominoVecEnv("puxar", num_envs=9, seed=5, episode="match", rules={"target": 20}, moves=moves)
    tables = LearnerTables(make_rules("puxar", target=20), 9, seed=5, episode="match", moves=moves)
    rng, returns, lengths, ended = random.Random(1), np.zeros(9), np.zeros(9, int), 0
    assert (env.reset() == tables.observation).all()
    for _ in range(200):
        actions = choose(env, rng)
        observation, rewards, dones, infos = env.step(actions)
        tables.step(actions)
        assert (tables.rewards == rewards).all()
        assert (tables.done == dones).all()
        returns += rewards
        lengths += 1
        last = tables.observation.copy()
        tables.reset(tables=tables.done)
        assert (tables.observation == observation).all()
        assert (tables.action_mask == get_action_masks(env)).all()
        for i, (done, info) in enumerate(zip(dones, infos, strict=True)):
            if not done:
                assert info == {}
                continue
            ended += 1
            assert (info["terminal_observation"] == last[i]).all()
            assert (info["episode"]["r"], info["episode"]["l"]) == (returns[i], lengths[i])
            assert info["episode"]["t"] > 0
            returns[i], lengths[i] = 0, 0
    assert ended > 20


@vectors_or_moves
def test_masks_through_env_method(moves: bool) -> None:
    env = DominoVecEnv("duplas", num_envs=5, seed=1, moves=moves)
    env.reset()
    masks = env.env_method("action_masks")
    assert masks.dtype == np.bool_
    assert masks.shape == (5, 8 if moves else 56)
    assert masks.any(axis=1).all()
    assert (np.stack(env.env_method("action_masks", indices=[3, 1])) == masks[[3, 1]]).all()
    assert (env.env_method("action_masks", indices=2)[0] == masks[2]).all()
    for i, action in enumerate(masks.argmin(axis=1)):
        actions = masks.argmax(axis=1)
        actions[i] = action
        with pytest.raises(IllegalAction, match=f"table {i}: seat"):
            env.step(actions)
    masks[:] = False  # a copy
    assert env.action_masks().any(axis=1).all()
    env.step(choose(env, random.Random(1)))


def test_attributes() -> None:
    env = DominoVecEnv("duplas", num_envs=3)
    assert is_masking_supported(env)
    assert env.get_attr("rules") == [PRESETS["duplas"]] * 3
    assert env.get_attr("render_mode", indices=[0]) == [None]
    assert not env.has_attr("no_such")
    for call in (
        lambda: env.get_attr("no_such"),
        lambda: env.set_attr("rules", 1),
        lambda: env.env_method("no_such"),
        lambda: env.no_such,
    ):
        with pytest.raises(AttributeError):
            call()
    assert env.env_is_wrapped(Monitor) == [True] * 3
    assert env.env_is_wrapped(gymnasium.wrappers.TimeLimit, indices=1) == [False]
    env.close()
    env.close()


@vectors_or_moves
def test_arrays_given_out_are_the_callers(moves: bool) -> None:
    env, other = (DominoVecEnv("mano_a_mano", num_envs=4, seed=1, moves=moves) for _ in range(2))
    rngs = random.Random(1), random.Random(1)
    kept = [env.reset()]
    copies = [kept[0].copy()]
    other.reset()[:] = 77
    for _ in range(60):
        observation, rewards, dones, infos = env.step(choose(env, rngs[0]))
        given = [observation, rewards, dones, env.action_masks()]
        given += [info["terminal_observation"] for info in infos if info]
        kept += given
        copies += [array.copy() for array in given]
        actions = choose(other, rngs[1])
        *arrays, infos = other.step(actions)
        for array in (*arrays, actions, other.action_masks(), *(i["terminal_observation"] for i in infos if i)):
            array[:] = 1
    assert all((a == b).all() for a, b in zip(kept, copies, strict=True))
    assert (env.tables.observation == other.tables.observation).all()


@vectors_or_moves
def test_seeds(moves: bool) -> None:
    env = DominoVecEnv("blocos", num_envs=4, seed=7, moves=moves)
    first = env.reset()
    second = env.reset()
    assert len(np.unique(np.argwhere(first != second)[:, 0])) == 4  # without a seed the deals go on
    assert env.seed(7) is not None
    assert (env.reset() == first).all()
    assert (env.reset() == second).all()
    assert (DominoVecEnv("blocos", num_envs=4, seed=8, moves=moves).reset() != first).any()
    unseeded = [DominoVecEnv("blocos", num_envs=4, moves=moves).reset() for _ in range(2)]
    assert (unseeded[0] != unseeded[1]).any()
    assert len({row.tobytes() for row in DominoVecEnv("blocos", num_envs=64, seed=0, moves=moves).reset()}) == 64


def put_into_another(env: DominoVecEnv) -> DominoVecEnv:
    other = DominoVecEnv("duplas", num_envs=3, seed=2, moves=env.tables.moves is not None)
    assert (other.put(env.arrays()) == env.tables.observation).all()
    return other


@vectors_or_moves
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env)), put_into_another])
def test_copies_go_on_alike(clone: Any, moves: bool) -> None:
    env = DominoVecEnv("duplas", num_envs=3, seed=1, moves=moves)
    env.reset()
    env.step(choose(env, random.Random(1)))
    other = clone(env)
    rngs = random.Random(2), random.Random(2)
    steps = [env.step(choose(env, rngs[0])) for _ in range(50)]
    for step in steps:
        again = other.step(choose(other, rngs[1]))
        for mine, its in zip(step[:3], again[:3], strict=True):
            assert (mine == its).all()
        for info, its_info in zip(step[3], again[3], strict=True):
            assert {**info.get("episode", {}), "t": 0} == {**its_info.get("episode", {}), "t": 0}


def test_arrays_of_another_environment_are_refused() -> None:
    env, other = (DominoVecEnv("duplas", num_envs=n, seed=1) for n in (3, 4))
    before = env.arrays()
    later = DominoVecEnv("duplas", num_envs=3, seed=2).arrays()
    del later["steps"]
    for arrays, message in ((other.arrays(), "state has shape"), (later, "steps is missing")):
        with pytest.raises(ValueError, match=message):
            env.put(arrays)
    assert all((before[name] == array).all() for name, array in env.arrays().items())


class Masked:
    """A policy without a network: draws among the legal actions of the environment it plays."""

    def __init__(self, env: VecEnv) -> None:
        self.env, self.rng = env, random.Random(1)

    def predict(self, observation: Any, state: Any = None, **_: Any) -> tuple[npt.NDArray[np.int64], Any]:
        return choose(self.env, self.rng), state


def test_evaluation_counts_each_episode() -> None:
    env = DominoVecEnv("blocos", num_envs=3, seed=1, reward="outcome")
    returns, lengths = evaluate_policy(Masked(env), env, n_eval_episodes=30, return_episode_rewards=True)  # type: ignore[arg-type]
    assert len(returns) == 30
    assert set(returns) <= {-1.0, 0.0, 1.0}
    assert len(set(returns)) > 1
    assert min(lengths) >= 1


def test_the_monitor_of_vectors_gives_the_same_figures() -> None:
    inner = DominoVecEnv("blocos", num_envs=3, seed=1)
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):  # for these tables give its figures
        env = VecMonitor(inner)
    other, rngs, ended = DominoVecEnv("blocos", num_envs=3, seed=1), (random.Random(1), random.Random(1)), 0
    env.reset()
    other.reset()
    for _ in range(60):
        infos = env.step(choose(env, rngs[0]))[3]
        for mine, its in zip(infos, other.step(choose(other, rngs[1]))[3], strict=True):
            assert mine.keys() == its.keys()
            if mine:
                ended += 1
                assert (mine["episode"]["r"], mine["episode"]["l"]) == (its["episode"]["r"], its["episode"]["l"])
    assert ended > 5


# Training


@every_preset
@vectors_or_moves
def test_learns_without_an_illegal_action(preset: str, moves: bool, tmp_path: Path) -> None:
    env = DominoVecEnv(preset, num_envs=8, seed=1, moves=moves)  # raises where an action is illegal
    policy: Any = MovePolicy if moves else "MlpPolicy"
    model = MaskablePPO(policy, env, n_steps=64, batch_size=128, n_epochs=2, seed=1, device="cpu")
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(2_000)
    assert model.num_timesteps >= 2_000
    assert len(model.ep_info_buffer) > 50
    assert any((a != b).any() for a, b in zip(before, model.policy.parameters(), strict=True))
    model.save(tmp_path / "model")
    loaded = MaskablePPO.load(tmp_path / "model", device="cpu")
    mean, spread = evaluate_masked(loaded, DominoVecEnv(preset, num_envs=4, seed=2, moves=moves), n_eval_episodes=20)
    assert np.isfinite([mean, spread]).all()


def monitored() -> gymnasium.Env[Any, Any]:
    """One environment as a process makes it for itself."""
    return Monitor(gymnasium.make("domino_env:domino_env/Duplas-v0", strict=True))


@pytest.mark.long
def test_processes_started_afresh_give_masks_and_train() -> None:
    env = SubprocVecEnv([monitored] * 4, start_method="spawn")
    try:
        assert is_masking_supported(env)
        env.seed(1)
        env.reset()
        rng, ended, length = random.Random(1), 0, PRESETS["duplas"].num_actions
        for _ in range(500):
            masks = get_action_masks(env)
            assert masks.shape == (4, length)
            _, _, dones, infos = env.step(choose(env, rng))
            for mask, info in zip(get_action_masks(env), infos, strict=True):
                if "terminal_observation" in info:
                    assert info["action_mask"].all()
                else:
                    assert (mask == info["action_mask"]).all()
            ended += dones.sum()
        assert ended > 100
        model = MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=128, n_epochs=2, seed=1, device="cpu")
        model.learn(2_000)  # an illegal action would have ended a process
        assert model.num_timesteps >= 2_000
    finally:
        env.close()


def test_observations_with_history() -> None:
    check_env(DominoEnv("duplas", history=True), skip_render_check=True)
    env = DominoVecEnv("duplas", num_envs=8, history=True, seed=1)
    model = MaskablePPO("MultiInputPolicy", env, n_steps=8, batch_size=32, n_epochs=1, device="cpu")
    model.learn(128)
    seen: Any = env.reset()
    assert {name: (part.dtype, part.shape) for name, part in seen.items()} == {
        "observation": (np.int8, (8, env.tables.encoding.size)),
        "history": (np.int16, (8, History(env.rules).length)),
    }
    first = {name: part.copy() for name, part in seen.items()}
    _, _, done, infos = env.step(env.action_masks().argmax(axis=1))
    assert all((seen[name] == part).all() for name, part in first.items())
    while not done.any():
        _, _, done, infos = env.step(env.action_masks().argmax(axis=1))
    last = infos[int(done.argmax())]["terminal_observation"]
    assert last in env.observation_space
    assert last["history"].any()
