"""`DominoVectorEnv` in play: its modes, arrays, copies and pictures, and how Gymnasium makes and wraps it."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from vector_envs import content, every_mode, same

from domino_env import PRESETS
from domino_env.envs.registration import IDS
from domino_env.envs.single import DominoEnv
from domino_env.envs.vector import DominoVectorEnv

# The modes, told apart without Gymnasium's environment


def ends(env: DominoVectorEnv, infos: dict[str, Any]) -> tuple[Any, ...]:
    """Play the first legal actions until table 0's episode ends; what that step returned."""
    while True:
        step = env.step(infos["action_mask"].argmax(axis=1))
        infos = step[4]
        if step[2][0]:
            return step


def test_next_step_returns_the_end_then_ignores_an_action() -> None:
    env = DominoVectorEnv("duplas", num_envs=2, seat=0)
    observation, rewards, ended, truncated, infos = ends(env, env.reset(seed=4)[1])
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert rewards[0] != 0
    assert not truncated.any()
    assert (infos["action_mask"][0] == 1).all()
    to_act = env.encoding.slices["to_act"]
    assert (observation[0, to_act.start : to_act.stop] == 0).all()  # the round is over
    legal = infos["action_mask"][1].argmax()
    observation, rewards, ended, _, infos = env.step([-7, legal])
    assert (rewards[0], ended[0]) == (0, False)
    assert observation[0, to_act.start] == 1
    assert 0 < infos["action_mask"][0].sum() < 56
    assert "final_obs" not in infos


def test_same_step_returns_the_next_start_and_tells_the_end() -> None:
    env = DominoVectorEnv("duplas", num_envs=2, autoreset_mode="SameStep", seat=0)
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    observation, rewards, ended, _, infos = ends(env, env.reset(seed=4)[1])
    to_act = env.encoding.slices["to_act"]
    assert rewards[0] != 0
    assert observation[0, to_act.start] == 1
    assert (infos["final_obs"][0][to_act.start : to_act.stop] == 0).all()
    assert (infos["final_info"]["action_mask"][0] == 1).all()
    assert infos["_final_obs"].tolist() == ended.tolist()
    assert 0 < infos["action_mask"][0].sum() < 56


def test_disabled_waits_for_a_reset() -> None:
    env = DominoVectorEnv("duplas", num_envs=3, autoreset_mode=AutoresetMode.DISABLED)
    assert env.metadata["autoreset_mode"] == AutoresetMode.DISABLED
    _, infos = env.reset(seed=4)
    over = np.zeros(3, np.bool_)
    while not over.any():
        _, _, over, _, infos = env.step(infos["action_mask"].argmax(axis=1))
    assert not over.all()
    before = content(env)
    with pytest.raises(ResetNeeded, match="over: call reset"):
        env.step(infos["action_mask"].argmax(axis=1))
    assert content(env) == before
    state = env._tables.batch.state.copy()
    _, infos = env.reset(options={"reset_mask": over})
    assert (env._tables.batch.state != state).tolist() == over.tolist()
    assert (infos["_action_mask"] == over).all()
    env.step(env.action_masks().argmax(axis=1))


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])  # with SAME_STEP the state is already the next match's
def test_rewards_add_up_to_the_match(mode: str) -> None:
    env = DominoVectorEnv("duplas", num_envs=8, episode="match", autoreset_mode=mode, seat=1)
    _, infos = env.reset(seed=3)
    scores, returns, seen = env._tables.batch.state["scores"], np.zeros(8), 0
    while seen < 30:
        _, rewards, ended, _, infos = env.step(infos["action_mask"].argmax(axis=1))
        returns += rewards
        assert (returns[ended] == scores[ended, 1] - scores[ended, 0]).all()
        assert (scores[ended].max(axis=1) >= 6).all()
        seen += int(ended.sum())
        returns[ended] = 0
        if mode == "Disabled" and ended.any():
            _, fresh = env.reset(options={"reset_mask": ended})
            infos["action_mask"][ended] = fresh["action_mask"][ended]


# Arrays, copies, pictures


@every_mode
def test_what_is_returned_stays_as_it_is(mode: str) -> None:
    env = DominoVectorEnv("duplas", num_envs=5, autoreset_mode=mode)
    returned: list[tuple[Any, Any]] = []

    def keep(value: Any) -> None:
        returned.append((value, copy.deepcopy(value)))

    first = env.reset(seed=2)
    keep(first)
    masks = first[1]["action_mask"]
    for _ in range(40):
        step = env.step(masks.argmax(axis=1))
        keep(step)
        masks = step[4]["action_mask"].copy()
        if mode == "Disabled" and step[2].any():
            keep(env.reset(options={"reset_mask": step[2]}))
            masks = env.action_masks()
    for value, kept in returned:
        same(value, kept)
    for array in (first[0], first[1]["action_mask"], first[1]["_action_mask"]):
        array[:] = 0  # the caller's own
    assert env.action_masks().any(axis=1).all()


def test_buffers_hold_the_same_and_are_written_over() -> None:
    plain, env = (DominoVectorEnv("duplas", num_envs=5, copy=kept, autoreset_mode="SameStep") for kept in (True, False))
    mine, its = env.reset(seed=2), plain.reset(seed=2)
    buffers = mine[0], mine[1]["action_mask"]
    finals = []
    for _ in range(30):
        actions = its[-1]["action_mask"].argmax(axis=1)
        mine, its = env.step(actions), plain.step(actions)
        same(mine, its)
        assert np.shares_memory(mine[0], buffers[0])
        assert np.shares_memory(mine[4]["action_mask"], buffers[1])
        if "final_obs" in mine[4]:
            finals.append((mine[4]["final_obs"], its[4]["final_obs"]))
    assert finals
    for one, other in finals:
        same(one, other)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@every_mode
def test_copies_go_on_alike_and_alone(clone: Any, mode: str) -> None:
    env: Any = gymnasium.make_vec("domino_env/Puxar-v0", num_envs=4, autoreset_mode=mode, copy=False)
    _, infos = env.reset(seed=3)
    for _ in range(3):
        _, _, over, _, infos = env.step(infos["action_mask"].argmax(axis=1))
        assert not over.any()
    other = clone(env)
    before, masks = content(other), infos["action_mask"].copy()
    steps = []
    for _ in range(30):
        if mode == "Disabled" and env._over.any():
            env.reset(options={"reset_mask": env._over.copy()})
        steps.append(copy.deepcopy(env.step(env.action_masks().argmax(axis=1))))
    assert content(other) == before
    assert (other.action_masks() == masks).all()
    for step in steps:
        if mode == "Disabled" and other._over.any():
            other.reset(options={"reset_mask": other._over.copy()})
        same(other.step(other.action_masks().argmax(axis=1)), step)
    assert content(env) == content(other)
    assert other.spec == env.spec


def test_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    for mode in ("ansi", "rgb_array"):
        ours = DominoVectorEnv("duplas", num_envs=2, render_mode=mode)
        with pytest.raises(ResetNeeded, match="nothing to render"):
            ours.render()
        theirs = SyncVectorEnv([lambda mode=mode: DominoEnv("duplas", render_mode=mode)] * 2)
        ours.reset(seed=1)
        theirs.reset(seed=1)
        same(ours.render(), theirs.render())
    assert capsys.readouterr().out == ""
    printing = DominoVectorEnv("duplas", num_envs=2, render_mode="human", autoreset_mode="SameStep")
    ansi = DominoVectorEnv("duplas", num_envs=2, render_mode="ansi")
    _, infos = printing.reset(seed=1)
    ansi.reset(seed=1)
    assert capsys.readouterr().out == "".join(f"{text}\n" for text in ansi.render())
    printing.step(infos["action_mask"].argmax(axis=1))
    ansi.step(infos["action_mask"].argmax(axis=1))
    assert capsys.readouterr().out == "".join(f"{text}\n" for text in ansi.render())
    env = DominoVectorEnv("duplas")
    env.reset()
    with pytest.warns(UserWarning, match="without a render_mode"):
        env.render()


# Gymnasium's ways in


@pytest.mark.parametrize("preset", PRESETS)
def test_made_by_gymnasium(preset: str) -> None:
    for how in ({}, {"vectorization_mode": "vector_entry_point"}):
        env: Any = gymnasium.make_vec(IDS[preset], num_envs=3, opponents="doubles", **how)
        assert type(env) is DominoVectorEnv
        assert env.num_envs == 3
        assert env.rules == PRESETS[preset]
        assert env.spec.id == IDS[preset]
        again: Any = gymnasium.make_vec(env.spec)
        assert (again.reset(seed=3)[0] == env.reset(seed=3)[0]).all()
        env.close()
        assert env.closed
        env.close()
    theirs = gymnasium.make_vec(IDS[preset], num_envs=3, vectorization_mode="sync", opponents="doubles")
    same(again.reset(seed=8), theirs.reset(seed=8))


def test_takes_all_that_the_single_environment_takes() -> None:
    single, vector = (inspect.signature(kind).parameters for kind in (DominoEnv, DominoVectorEnv))
    for name, parameter in single.items():
        assert vector[name] == parameter
    assert vector.keys() - single.keys() == {"num_envs", "autoreset_mode", "copy", "threads"}


@every_mode
def test_gymnasiums_episode_statistics(mode: str) -> None:
    env = RecordEpisodeStatistics(DominoVectorEnv("duplas", num_envs=6, autoreset_mode=mode))
    _, infos = env.reset(seed=1)
    returns, seen = np.zeros(6), 0
    for _ in range(60):
        masks = infos["action_mask"]
        _, rewards, ended, _, infos = env.step(masks.argmax(axis=1))
        returns += rewards
        if ended.any():
            seen += int(ended.sum())
            assert (infos["episode"]["r"][ended] == returns[ended]).all()
            returns[ended] = 0
            if mode == "Disabled":
                env.reset(options={"reset_mask": ended})
                infos = {"action_mask": env.unwrapped.action_masks()}
    assert seen > 20


def make_one() -> DominoEnv:
    return DominoEnv("duplas", opponents="heaviest")


@pytest.mark.long
@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_gymnasiums_asynchronous_environment(context: str) -> None:
    def play(env: Any) -> list[Any]:
        found = [env.reset(seed=4)]
        for _ in range(40):
            found.append(env.step(found[-1][-1]["action_mask"].argmax(axis=1)))
        env.close()
        return found

    expected = play(DominoVectorEnv("duplas", num_envs=2, opponents="heaviest"))
    makers: list[Callable[[], Any]] = [make_one, make_one]
    same_as(play(AsyncVectorEnv(makers, context=context)), expected)
    made = gymnasium.make_vec(
        "domino_env:domino_env/Duplas-v0", 2, "async", vector_kwargs={"context": context}, opponents="heaviest"
    )
    same_as(play(made), expected)


def same_as(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        same(tuple(one), tuple(other))
