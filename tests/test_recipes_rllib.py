"""RLlib's adapter and recipe, in an environment that has RLlib: ``bash tests/recipes.sh rllib``."""

from __future__ import annotations

import os
import random
import re
import runpy
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import numpy as np
import pytest
import ray
import torch
from gymnasium.error import ResetNeeded
from ray.rllib.core.columns import Columns
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

from domino_env import PRESETS, Batch, IllegalAction, RuleSet, make_rules
from domino_env.adapters.rllib import DominoMultiAgentEnv, MaskedModule, ModulePlayer
from domino_env.arena import duel
from domino_env.envs import aec

# Of Ray's own making, not of what is tested here.
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]

PROGRAM = Path(__file__).parents[1] / "docs" / "recipes" / "rllib_ppo.py"
EPISODES = 500
#: Every preset, and a table of four that each play for themselves.
RULES = {**PRESETS, "puxar for four": make_rules("puxar", players=4)}
every_rules = pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
Step = Callable[[dict[str, int]], tuple[dict[str, Any], ...]]


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    return runpy.run_path(str(PROGRAM))


@pytest.fixture(scope="module")
def running_ray() -> Iterator[None]:
    ray.init(
        num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, _node_ip_address="127.0.0.1",
        log_to_driver=False, logging_level="ERROR",
    )  # fmt: skip
    yield
    ray.shutdown()


class Table:
    """One table of the engine beside an environment: plays the same, and checks whose turn it is and what is legal."""

    def __init__(self, rules: RuleSet, seed: int, key: str, episode: Any = "round", reward: Any = "points") -> None:
        self.batch = Batch(rules, 1, seed=seed, episode=episode, reward=reward, autoreset=False)
        self.key = key
        self.returns = np.zeros(rules.num_sides)
        self.sides = {f"player_{seat}": rules.side_of(seat) for seat in range(rules.players)}

    def choose(self, observations: dict[str, Any], rng: random.Random) -> dict[str, int]:
        """A random legal action of the one agent that has an observation."""
        assert list(observations) == [f"player_{self.batch.seat[0]}"]
        ((agent, seen),) = observations.items()
        assert set(seen) == {self.key, "action_mask"}
        assert np.array_equal(seen[self.key], self.batch.observation[0])
        assert np.array_equal(seen["action_mask"], self.batch.action_mask[0])
        assert seen[self.key].dtype == seen["action_mask"].dtype == np.int8
        return {agent: rng.choice(np.flatnonzero(seen["action_mask"]).tolist())}

    def play(self, actions: dict[str, int]) -> bool:
        self.batch.step(list(actions.values()))
        self.returns += self.batch.rewards[0]
        return bool(self.batch.done[0])

    def expected(self, agent: str) -> float:
        return float(self.returns[self.sides[agent]])


def new_episode(env: Any) -> MultiAgentEpisode:
    return MultiAgentEpisode(
        observation_space=env.observation_spaces,
        action_space=env.action_spaces,
        agent_to_module_mapping_fn=lambda agent, episode, **kwargs: "shared",
    )


def check_episodes(env: Any, rules: RuleSet, key: str, episodes: int, cut_every: int, **options: Any) -> None:
    """Random masked episodes: what the environment gives, and what RLlib's episodes keep, is the engine's return.

    With `cut_every` RLlib's episodes are cut and continued every so many steps, as rollouts cut them.
    """
    rng = random.Random(1)
    idle = 0
    for seed in range(episodes):
        table = Table(rules, seed, key, **options)
        observations, infos = env.reset(seed=seed)
        episode = new_episode(env)
        episode.add_env_reset(observations=observations, infos=infos)
        parts = [episode]
        given: Counter[str] = Counter()
        decisions: Counter[str] = Counter()
        over = False
        while not over:
            actions = table.choose(observations, rng)
            observations, rewards, terminated, truncated, infos = env.step(actions)
            over = table.play(actions)
            assert terminated["__all__"] is over
            assert not any(truncated.values())
            given.update(rewards)
            decisions.update(list(actions))
            episode.add_env_step(
                observations, actions, rewards, infos, terminateds=terminated, truncateds=truncated,
                extra_model_outputs={agent: {Columns.ACTION_LOGP: 0.0} for agent in actions},
            )  # fmt: skip
            if cut_every and not over and episode.env_t % cut_every == 0:
                episode = episode.cut(len_lookback_buffer=1)
                parts.append(episode)
        assert all(terminated[agent] for agent in env.possible_agents)
        kept: Counter[str] = Counter()
        steps: Counter[str] = Counter()
        for part in parts:
            for agent, own in part.agent_episodes.items():
                kept[agent] += own.get_return()
                steps[agent] += len(own)
        for agent in env.possible_agents:
            assert given[agent] == pytest.approx(table.expected(agent))
            assert steps[agent] == decisions[agent]
            if decisions[agent]:
                assert kept[agent] == pytest.approx(table.expected(agent))
            else:  # it passed all along: RLlib has no episode of it
                idle += 1
                assert kept[agent] == 0
    assert idle < episodes / 10


@pytest.mark.parametrize("reward", ["points", "outcome"])
@pytest.mark.parametrize("episode", ["round", "match"])
@every_rules
def test_each_agent_receives_the_engines_return(rules: RuleSet, episode: str, reward: str) -> None:
    env = DominoMultiAgentEnv({"preset": rules, "episode": episode, "reward": reward, "strict": True})
    check_episodes(env, rules, "observations", EPISODES, 0, episode=episode, reward=reward)


@pytest.mark.parametrize("cut_every", [3, 7, 20])
@pytest.mark.parametrize("episode", ["round", "match"])
@every_rules
def test_no_decision_and_no_reward_is_lost_where_rollouts_cut_episodes(
    rules: RuleSet, episode: str, cut_every: int
) -> None:
    env = DominoMultiAgentEnv({"preset": rules, "episode": episode, "strict": True})
    check_episodes(env, rules, "observations", 60, cut_every, episode=episode)


@pytest.mark.parametrize("wrapped", [True, False])
@every_rules
def test_rllibs_own_pettingzoo_wrapper_gives_the_engines_return(rules: RuleSet, wrapped: bool) -> None:
    env = PettingZooEnv(aec.env(rules) if wrapped else aec.raw_env(rules))
    check_episodes(env, rules, "observation", EPISODES, 0)


def test_rllibs_own_pettingzoo_wrapper_loses_what_comes_before_a_first_decision() -> None:
    """Why the adapter keeps it back: here each round is one decision, and rewards come to seats that had none yet."""
    rules = make_rules("duplas", hand_size=1, max_pip=3, next_starter="rotation")
    env = DominoMultiAgentEnv({"preset": rules, "episode": "match", "strict": True})
    ours = kept_and_due(env, rules, "observations")
    theirs = kept_and_due(PettingZooEnv(aec.raw_env(rules, episode="match")), rules, "observation")
    assert ours[0] == ours[1]
    assert theirs[0] != theirs[1]


def kept_and_due(env: Any, rules: RuleSet, key: str) -> tuple[list[float], list[float]]:
    """The returns that RLlib's episodes keep, of agents that decided anything, and those of the engine."""
    rng = random.Random(1)
    kept, due = [], []
    for seed in range(20):
        table = Table(rules, seed, key, episode="match")
        observations, infos = env.reset(seed=seed)
        episode = new_episode(env)
        episode.add_env_reset(observations=observations, infos=infos)
        while not episode.is_done:
            actions = table.choose(observations, rng)
            observations, rewards, terminated, truncated, infos = env.step(actions)
            table.play(actions)
            episode.add_env_step(observations, actions, rewards, infos, terminateds=terminated, truncateds=truncated)
        for agent, own in episode.agent_episodes.items():
            kept.append(float(own.get_return()))
            due.append(table.expected(agent))
    return kept, due


def test_rllibs_own_check_accepts_it() -> None:
    for _ in range(20):
        check_multiagent_environments(DominoMultiAgentEnv())


@every_rules
def test_the_spaces_hold_the_observations(rules: RuleSet) -> None:
    env = DominoMultiAgentEnv({"preset": rules})
    assert env.possible_agents == [f"player_{seat}" for seat in range(rules.players)]
    rng = random.Random(0)
    for _ in range(20):
        observations, _ = env.reset()
        over = False
        while not over:
            for agent, seen in observations.items():
                assert env.get_observation_space(agent).contains(seen)
            ((agent, seen),) = observations.items()
            action = rng.choice(np.flatnonzero(seen["action_mask"]).tolist())
            assert env.get_action_space(agent).contains(action)
            observations, _, terminated, _, _ = env.step({agent: action})
            over = terminated["__all__"]
        assert list(observations) == env.possible_agents
        for agent, seen in observations.items():
            assert env.get_observation_space(agent).contains(seen)
            assert not seen["action_mask"].any()


def test_an_illegal_action_ends_the_episode_or_raises() -> None:
    for strict in (False, True):
        env = DominoMultiAgentEnv({"preset": "blocos", "strict": strict, "illegal_reward": -3})
        ((agent, seen),) = env.reset(seed=4)[0].items()
        illegal = int(np.flatnonzero(seen["action_mask"] == 0)[0])
        if strict:
            with pytest.raises(IllegalAction, match="legal"):
                env.step({agent: illegal})
            env.step({agent: int(np.flatnonzero(seen["action_mask"])[0])})
            continue
        observations, rewards, terminated, truncated, _ = env.step({agent: illegal})
        assert rewards == {other: -3.0 if other == agent else 0.0 for other in env.possible_agents}
        assert terminated == {**dict.fromkeys(env.possible_agents, True), "__all__": True}
        assert truncated == {"__all__": False}
        assert not any(one["action_mask"].any() for one in observations.values())
        with pytest.raises(ResetNeeded):
            env.step({agent: illegal})
        ((_, again),) = env.reset(seed=4)[0].items()
        assert np.array_equal(again["action_mask"], seen["action_mask"])


def test_mistakes_have_a_message_and_change_nothing() -> None:
    with pytest.raises(ValueError, match=r"'epsiode' .did you mean 'episode'.*may have preset, rules"):
        DominoMultiAgentEnv({"epsiode": "match"})
    with pytest.raises(ValueError, match="episode='set'"):
        DominoMultiAgentEnv({"episode": "set"})
    env = DominoMultiAgentEnv({"preset": "mano_a_mano"})
    with pytest.raises(ResetNeeded):
        env.step({"player_0": 0})
    ((agent, seen),) = env.reset(seed=1)[0].items()
    action = int(np.flatnonzero(seen["action_mask"])[0])
    other = next(name for name in env.possible_agents if name != agent)
    for wrong in ({}, {other: action}, {agent: action, other: action}):
        with pytest.raises(ValueError, match=f"{agent} alone is to act"):
            env.step(wrong)
    for wrong_action in (-1, 56, "6-6L", 1.5, None):
        with pytest.raises(ValueError, match="action"):
            env.step({agent: wrong_action})
    env.step({agent: action})
    with pytest.raises(ValueError, match="seed=-1"):
        env.reset(seed=-1)


def first_hands(env: DominoMultiAgentEnv, seed: int) -> bytes:
    (seen,) = env.reset(seed=seed)[0].values()
    return bytes(seen["observations"].tobytes())


def test_workers_are_dealt_different_tiles_for_neighbouring_seeds() -> None:
    """RLlib seeds table i of worker w with seed + w + i."""
    seen = set()
    for worker in (1, 2, 3):
        env = DominoMultiAgentEnv(EnvContext({"preset": "blocos"}, worker_index=worker))
        seen |= {first_hands(env, 7 + worker + table) for table in range(8)}
        assert first_hands(env, 9) == first_hands(env, 9)
    assert len(seen) == 24
    plain = DominoMultiAgentEnv({"preset": "blocos"})
    assert first_hands(plain, 9) == first_hands(DominoMultiAgentEnv(EnvContext({"preset": "blocos"}, 0)), 9)


def module_for(env: DominoMultiAgentEnv, **options: Any) -> MaskedModule:
    torch.manual_seed(0)
    return MaskedModule(
        observation_space=env.get_observation_space("player_0"),
        action_space=env.get_action_space("player_0"),
        **options,
    )


def batch_of(env: DominoMultiAgentEnv, n: int) -> dict[str, Any]:
    seen = [next(iter(env.reset()[0].values())) for _ in range(n)]
    return {Columns.OBS: {key: torch.from_numpy(np.stack([one[key] for one in seen])) for key in seen[0]}}


@every_rules
def test_the_module_gives_illegal_actions_no_probability_and_has_finite_gradients(rules: RuleSet) -> None:
    env = DominoMultiAgentEnv({"preset": rules})
    module = module_for(env, model_config={"hidden": [32]})
    batch = batch_of(env, 50)
    mask = batch[Columns.OBS]["action_mask"]
    mask[0] = 0  # as at an episode's end
    legal = mask.to(torch.bool)
    for forward in (module.forward_inference, module.forward_exploration, module.forward_train):
        logits = forward(batch)[Columns.ACTION_DIST_INPUTS]
        assert logits.shape == (50, rules.num_actions)
        assert logits.isfinite().all()
        assert (logits.softmax(1)[1:][~legal[1:]] == 0).all()
        assert (logits.softmax(1)[1:][legal[1:]] > 0).all()
    distribution = module.get_train_action_dist_cls().from_logits(logits)
    other = module.get_train_action_dist_cls().from_logits(torch.where(legal, logits * 2, logits))
    values = module.compute_values(batch)
    assert values.shape == (50,)
    loss = (
        distribution.entropy().mean() + distribution.kl(other).mean() + values.mean()
        + distribution.logp(distribution.sample()).mean()
    )  # fmt: skip
    loss.backward()
    gradients = [weight.grad for weight in module.parameters()]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)
    assert any(gradient.any() for gradient in gradients)  # type: ignore[union-attr]


def test_the_modules_networks_are_those_asked_for() -> None:
    env = DominoMultiAgentEnv()
    widths = [weight.shape[0] for name, weight in module_for(env, model_config={"hidden": [64, 16]}).named_parameters()]
    assert widths == [64, 64, 16, 16, 56, 56, 64, 64, 16, 16, 1, 1]
    assert module_for(env).policy[0].out_features == 128
    assert not hasattr(module_for(env, inference_only=True), "value")
    with pytest.raises(ValueError, match="hidden=0"):
        module_for(env, model_config={"hidden": [0]})


def test_a_module_for_other_rules_is_refused_as_a_player() -> None:
    module = module_for(DominoMultiAgentEnv({"preset": "blocos"}))
    with pytest.raises(ValueError, match="made for observations of"):
        ModulePlayer(PRESETS["duplas"], module)


@pytest.mark.parametrize("preset", PRESETS)
def test_rollouts_keep_all_decisions_and_returns(recipe: dict[str, Any], running_ray: None, preset: str) -> None:
    """RLlib's own runner: every finished episode's returns are those that the table gave."""

    class Recorded(DominoMultiAgentEnv):
        def reset(self, **kwargs: Any) -> Any:
            self.sums = Counter(dict.fromkeys(self.possible_agents, 0.0))
            self.acted = set()
            return super().reset(**kwargs)

        def step(self, action_dict: Any) -> Any:
            result = super().step(action_dict)
            self.acted |= set(action_dict)
            for agent, reward in self._env.rewards.items():
                self.sums[agent] += reward
            if result[2]["__all__"]:
                finished.append(sorted((agent, self.sums[agent]) for agent in self.acted))
            return result

    finished: list[Any] = []
    config = recipe["make_config"](preset, seed=3)
    config.environment(Recorded, env_config={"preset": preset, "strict": True})
    config.env_runners(rollout_fragment_length=25, num_envs_per_env_runner=4)
    runner = MultiAgentEnvRunner(config=config, worker_index=0)
    parts: dict[str, Counter[str]] = {}
    collected: list[Any] = []
    for _ in range(20):
        for episode in runner.sample():
            sums = parts.setdefault(episode.id_, Counter())
            for agent, own in episode.agent_episodes.items():
                sums[agent] += own.get_return()
            if episode.is_done:
                collected.append(sorted(parts.pop(episode.id_).items()))
    assert len(collected) == len(finished) > 40
    assert sorted(collected) == sorted(finished)


def test_a_policy_trained_for_a_moment_never_plays_an_illegal_action(recipe: dict[str, Any], running_ray: None) -> None:
    """On a worker of its own; `strict` raises at the first illegal action, and so does the arena."""
    config = recipe["make_config"]("mano_a_mano", seed=1, env_runners=1)
    config.training(train_batch_size_per_learner=1024, minibatch_size=256)
    algorithm = config.build_algo()
    try:
        for _ in range(2):
            result = algorithm.train()
        learned = result["learners"]["shared"]
        assert all(np.isfinite(learned[name]) for name in ("policy_loss", "vf_loss", "entropy"))
        played = duel(
            ModulePlayer(PRESETS["mano_a_mano"], algorithm.get_module("shared")), "random", PRESETS["mano_a_mano"],
            deals=1000,
        )  # fmt: skip
        assert played.games == 2000
    finally:
        algorithm.stop()


def test_the_recipe_learns_to_beat_random(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), "--decisions", "60000", "--deals", "2000"]
    environment = {**os.environ, "HOME": str(tmp_path)}  # RLlib makes a folder there
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^trained for .* policy against random: better$", done.stdout, re.M), done.stdout
