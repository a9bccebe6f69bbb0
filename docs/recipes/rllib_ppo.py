"""RLlib's PPO (new API stack) learns dominoes by self-play: one policy holds every seat.

    python docs/recipes/rllib_ppo.py
    python docs/recipes/rllib_ppo.py --preset puxar --decisions 300000

Prints what the policy gains a round against the player `random` on duplicate deals, before and after.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no reports over the network

import ray
import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from domino_env import PRESETS, make_rules
from domino_env.adapters.rllib import DominoMultiAgentEnv, MaskedModule, ModulePlayer
from domino_env.arena import Duel, duel

ROLLOUT = 8192  # decisions of all seats between two updates


def make_config(preset: str, seed: int, env_runners: int = 0) -> PPOConfig:
    """PPO for one shared policy."""
    return (
        PPOConfig()
        .environment(
            DominoMultiAgentEnv,
            env_config={"preset": preset, "reward": "outcome", "strict": True},
            disable_env_checking=True,  # the check plays actions without looking at the mask
        )
        # Complete episodes would be dealt the same tiles in every rollout, and long ones thrown away.
        .env_runners(
            num_env_runners=env_runners, num_envs_per_env_runner=32, batch_mode="truncate_episodes"
        )
        .learners(num_learners=0)
        .multi_agent(policies={"shared"}, policy_mapping_fn=lambda agent, episode, **kwargs: "shared")
        .rl_module(rl_module_spec=RLModuleSpec(module_class=MaskedModule, model_config={"hidden": [128, 128]}))
        .training(
            train_batch_size_per_learner=ROLLOUT,
            minibatch_size=512,
            num_epochs=4,
            lr=1e-3,
            gamma=1.0,  # rewards come at the end of a round
            lambda_=0.9,
            entropy_coeff=0.01,
            use_kl_loss=False,
            grad_clip=0.5,
        )
        .debugging(seed=seed, log_level="ERROR")  # without a seed RLlib's checks leave all tables with one
    )  # fmt: skip


def evaluate(algorithm: Algorithm, preset: str, deals: int) -> Duel:
    """The policy against `random`, on deals that no training seed gives."""
    rules = make_rules(preset)
    return duel(ModulePlayer(rules, algorithm.get_module("shared")), "random", rules, deals=deals, seed=10**9)


def train(preset: str, decisions: int, seed: int, env_runners: int, deals: int) -> Duel:
    """Train for at least so many decisions, printing as it goes; the last evaluation."""
    algorithm = make_config(preset, seed, env_runners).build_algo()
    try:
        print(f"untrained: {evaluate(algorithm, preset, deals)}", flush=True)
        start, done = time.perf_counter(), 0
        while done < decisions:
            done = int(algorithm.train()["env_runners"]["num_env_steps_sampled_lifetime"])
            print(f"{done:>9,} decisions, {done / (time.perf_counter() - start):,.0f}/s", flush=True)
        seconds = time.perf_counter() - start
        result = evaluate(algorithm, preset, deals)
        print(f"trained for {done:,} decisions in {seconds:.0f} s ({done / seconds:,.0f} decisions/s): {result}")
    finally:
        algorithm.stop()
    return result


def main(arguments: Sequence[str] | None = None) -> Duel:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--preset", choices=list(PRESETS), default="duplas")
    parser.add_argument("--decisions", type=int, default=150_000, help="of all seats together")
    parser.add_argument("--deals", type=int, default=2000, help="of each evaluation")
    parser.add_argument("--env-runners", type=int, default=0, help="processes that play; 0: this one")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ray.init(
        num_cpus=given.env_runners + 1, include_dashboard=False, object_store_memory=100 * 2**20,
        _node_ip_address="127.0.0.1", log_to_driver=False, logging_level="ERROR",
    )  # fmt: skip
    try:
        return train(given.preset, given.decisions, given.seed, given.env_runners, given.deals)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
