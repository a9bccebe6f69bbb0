"""The Tianshou recipe, in an environment that has Tianshou: ``bash tests/recipes.sh tianshou``."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy, Reinforce
from tianshou.algorithm.multiagent.marl import MultiAgentOnPolicyAlgorithm
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, ReplayBuffer, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, PettingZooEnv

import domino_env
from domino_env import PRESETS
from domino_env.envs import aec
from domino_env.envs.tables import LearnerTables

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).parents[1] / "docs" / "recipes" / "tianshou_ppo.py"
TABLES, STEPS = 8, 500


@pytest.fixture(scope="module")
def recipe() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(PROGRAM)))


def untrained(recipe: SimpleNamespace, preset: str) -> DiscreteActorPolicy:
    torch.manual_seed(0)
    rules = PRESETS[preset]
    return DiscreteActorPolicy(actor=recipe.MaskedActor(rules, 16), action_space=spaces.Discrete(rules.num_actions))


@pytest.mark.parametrize("preset", PRESETS)
def test_the_buffer_has_the_engines_masks_and_returns(recipe: SimpleNamespace, preset: str) -> None:
    rules = PRESETS[preset]
    buffer = VectorReplayBuffer(TABLES * STEPS, TABLES)
    collector = Collector(untrained(recipe, preset), recipe.make_envs(rules, TABLES, 3, opponents="doubles"), buffer)
    collector.reset()
    collector.collect(n_step=TABLES * STEPS)
    rounds = 0
    for table, part in enumerate(buffer.buffers):
        data = part.sample(0)[0]  # all, in order
        assert len(data) == STEPS
        tables = LearnerTables(rules, 1, opponents="doubles", seed=3 * TABLES + table)
        for _ in range(5):  # Tianshou resets more than once before it plays
            if (tables.observation[0] == data.obs.obs[0]).all():
                break
            tables.reset()
        for step in range(STEPS):
            np.testing.assert_array_equal(data.obs.obs[step], tables.observation[0])
            np.testing.assert_array_equal(data.obs.mask[step], tables.action_mask[0])
            assert data.obs.mask[step, data.act[step]]
            tables.step([data.act[step]])
            np.testing.assert_array_equal(data.obs_next.obs[step], tables.observation[0])  # the learner's own next
            assert data.rew[step] == tables.rewards[0]
            assert data.terminated[step] == tables.done[0]
            if tables.done[0]:
                rounds += 1
                tables.reset()
        assert data.obs.mask.dtype == np.bool_
        assert data.obs.obs.dtype == np.int8
    assert rounds > 300


def play_aec(recipe: SimpleNamespace, preset: str, rounds: int) -> tuple[PettingZooEnv, ReplayBuffer, Any]:
    """Rounds of Tianshou's PettingZooEnv, one learner a seat, as its collector stores them."""
    env = PettingZooEnv(aec.env(preset))
    algorithms = [
        Reinforce(policy=untrained(recipe, preset), optim=AdamOptimizerFactory(), gamma=1.0) for _ in env.agents
    ]
    algorithm = MultiAgentOnPolicyAlgorithm(algorithms=algorithms, env=env)
    buffer = VectorReplayBuffer(rounds * 60, 1)
    envs = DummyVectorEnv([lambda: env])
    envs.seed(3)
    collector = Collector(algorithm, envs, buffer)
    collector.reset()
    collector.collect(n_episode=rounds)
    return env, buffer, algorithm


@pytest.mark.parametrize("preset", PRESETS)
def test_pettingzoo_env_has_the_engines_masks_and_pays_every_seat(recipe: SimpleNamespace, preset: str) -> None:
    rules, rounds = PRESETS[preset], 200
    _, buffer, _ = play_aec(recipe, preset, rounds)
    data = buffer.sample(0)[0]
    assert data.done.sum() == rounds
    engine = domino_env.Batch(rules, 1, seed=3, autoreset=False)
    for _ in range(5):  # Tianshou resets more than once before it plays
        if (engine.observation[0] == data.obs.obs[0]).all():
            break
        engine.reset(tables=np.ones(1, bool))
    for step in range(len(data)):
        np.testing.assert_array_equal(data.obs.obs[step], engine.observation[0])
        np.testing.assert_array_equal(data.obs.mask[step], engine.action_mask[0])
        assert data.obs.agent_id[step] == f"player_{engine.seat[0]}"
        engine.step([data.act[step]])  # raises where the action is illegal
        expected = [engine.rewards[0, rules.side_of(seat)] for seat in range(rules.players)]
        np.testing.assert_array_equal(data.rew[step], expected)
        assert data.terminated[step] == engine.done[0]
        if engine.done[0]:
            engine.reset(tables=np.ones(1, bool))


def test_learners_of_pettingzoo_env_never_see_what_they_lose_on_others_moves(recipe: SimpleNamespace) -> None:
    """Why the recipe learns at one seat: docs/recipes/tianshou.md says so."""
    env, buffer, algorithm = play_aec(recipe, "mano_a_mano", 200)
    batch, indices = buffer.sample(0)
    ends = np.flatnonzero(batch.done)
    losses = np.minimum(batch.rew[ends], 0).sum()
    given = algorithm._preprocess_batch(batch, buffer, indices)
    seen = sum(np.minimum(given[agent].rew, 0).sum() for agent in env.agents)
    assert losses < 0
    assert seen > losses / 2  # a loser rarely moves last


def test_it_learns(recipe: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "policy.pt"
    against_random, _ = recipe.main(["--decisions", "100000", "--deals", "3000", "--save", str(saved)])
    assert against_random.verdict == "better", against_random
    untrained, trained = capsys.readouterr().out.split("Trained:\n")
    assert "Untrained:\n" in untrained
    assert str(against_random) in trained
    rules = PRESETS["duplas"]
    torch.manual_seed(0)
    before, after = recipe.MaskedActor(rules, 128), recipe.MaskedActor(rules, 128)
    after.load_state_dict(torch.load(saved, weights_only=True))
    player = recipe.NetPlayer(rules, after)
    assert recipe.duel(player, "random", rules, deals=3000, seed=10**6) == against_random
    gained = recipe.duel(player, recipe.NetPlayer(rules, before), rules, deals=3000, seed=10**6)
    assert gained.verdict == "better", gained


def test_masks_survive_batches_of_batches(recipe: SimpleNamespace) -> None:
    rules = PRESETS["blocos"]
    env = recipe.MaskedEnv(recipe.DominoEnv(rules))
    rows = [env.reset(seed=seed)[0] for seed in range(6)]
    stacked = Batch.stack([Batch(obs=row) for row in rows])
    for part in stacked.split(4, shuffle=False):
        assert part.obs.mask.dtype == np.bool_
    np.testing.assert_array_equal(stacked.obs.mask, [row["mask"] for row in rows])
