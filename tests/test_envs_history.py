"""``history=True`` in every environment: the tokens are those of what the seat has seen, at every step."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from pettingzoo.test import api_test
from strategies import TABLES
from test_envs_vector import Pair
from vector_envs import same

from domino_env import History, Match
from domino_env.envs import aec
from domino_env.envs.single import DominoEnv
from domino_env.envs.testing import check_domino_env
from domino_env.envs.vector import DominoVectorEnv

pytestmark = pytest.mark.filterwarnings("ignore:.*render_mode.*")
every_table = pytest.mark.parametrize("name", TABLES)


@every_table
@pytest.mark.parametrize("episode", ["round", "match"])
def test_every_agent_is_told_what_its_seat_has_seen(name: str, episode: Any) -> None:
    rules = TABLES[name]
    env, history = aec.env(rules, episode=episode, history=True), History(rules)
    rng = random.Random(name)
    for seed in range(3):
        env.reset(seed=seed)
        match = Match(rules, seed)
        while not match.over:
            for seat, agent in enumerate(env.possible_agents):
                seen = env.observe(agent)
                assert seen in env.observation_space(agent)
                assert (seen["history"] == history.tokens(match.game.view(seat).record)[0]).all()
            move = rng.choice(match.game.legal_moves())
            env.step(move.action)
            if match.play(move) is not None and episode == "round":
                break
        assert all(env.terminations.values())


@every_table
def test_the_learner_is_told_what_its_seat_has_seen(name: str) -> None:
    rules = TABLES[name]
    with_tokens, without = (DominoEnv(rules, history=history) for history in (True, False))
    history, rng = with_tokens.unwrapped._tables.history, random.Random(name)
    assert history == History(rules)
    for seed in range(10):
        seen, info = with_tokens.reset(seed=seed)
        plain, _ = without.reset(seed=seed)
        over = False
        while True:
            assert seen in with_tokens.observation_space
            assert (seen["observation"] == plain).all()
            tables = with_tokens.unwrapped._tables
            view = tables.batch.views(np.zeros(1, np.int64), tables.learner)
            assert (seen["history"] == history.tokens(view)[0]).all()
            if over:
                break
            action = rng.choice(np.flatnonzero(info["action_mask"]).tolist())
            seen, reward, over, _, info = with_tokens.step(action)
            plain, *others = without.step(action)
            assert (reward, over) == tuple(others[:2])
        assert (seen["history"] != 0).sum() == tables.batch.state["num_events"][0]


@pytest.mark.parametrize("mode", [mode.value for mode in AutoresetMode])
@pytest.mark.parametrize("preset", ["duplas", "puxar"])
def test_vectors_equal_those_of_single_environments(preset: str, mode: str) -> None:
    pair = Pair(preset, 5, mode, history=True)
    pair.reset(seed=3)
    pair.play(120, np.random.default_rng(3), illegal=0.02)
    assert pair.ended > 20
    assert isinstance(pair.theirs, SyncVectorEnv)
    assert pair.ours.observation_space == pair.theirs.observation_space


def test_arrays_given_out_do_not_change_later() -> None:
    env = DominoVectorEnv("mano_a_mano", num_envs=4, history=True, autoreset_mode="SameStep")
    seen, infos = env.reset(seed=1)
    kept, copies = [], []
    for _ in range(30):
        kept.append(seen)
        copies.append({name: part.copy() for name, part in seen.items()})
        seen, _, _, _, infos = env.step(infos["action_mask"].argmax(axis=1))
        if "final_obs" in infos:
            kept += [last for last in infos["final_obs"] if last is not None]
            copies += [{name: part.copy() for name, part in last.items()} for last in kept[len(copies) :]]
    same(tuple(kept), tuple(copies))


@pytest.mark.parametrize("preset", ["duplas", "mano_a_mano"])
def test_the_checkers_of_both_libraries_and_our_own(preset: str) -> None:
    check_env(DominoEnv(preset, history=True), skip_render_check=True)
    api_test(aec.env(preset, history=True), num_cycles=200)
    check_domino_env(aec.env(preset, history=True), episodes=2)


@pytest.mark.parametrize("opponents", ["doubles", "random"])
def test_threads_change_nothing(opponents: str) -> None:
    one, two = (
        DominoVectorEnv("puxar", num_envs=1100, history=True, threads=threads, opponents=opponents)
        for threads in (1, 2)
    )
    assert (one._tables.batch.threads, two._tables.batch.threads) == (1, 2)
    results = [env.reset(seed=5) for env in (one, two)]
    same(*results)
    for _ in range(25):
        actions = results[0][-1]["action_mask"].argmax(axis=1)
        results = [env.step(actions) for env in (one, two)]
        same(*results)


def test_tokens_tell_of_hidden_tiles_no_more_than_the_rules_allow() -> None:
    """What another seat draws is in its own tokens alone."""
    env = aec.raw_env("mano_a_mano", history=True)
    history, drawn = env.history, 0
    assert history is not None
    for seed in range(30):
        env.reset(seed=seed)
        while not any(env.terminations.values()):
            env.step(int(env.observe(env.agent_selection)["action_mask"].argmax()))
            for agent in env.agents:
                tokens = env.observe(agent)["history"]
                events = [history.event(token) for token in tokens[tokens > 0].tolist()]
                draws = [event for event in events if event is not None and event.kind == "draw"]
                drawn += len(draws)
                assert all((event.tile is None) == (event.seat != 0) for event in draws)
    assert drawn > 1000
