"""PPO with Tianshou: a seat learns, players of the package hold the others.

    python docs/recipes/tianshou_ppo.py --preset duplas --opponents random --decisions 400000 --save policy.pt

Before and after, the greedy policy plays on duplicate deals; the results are printed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory, LRSchedulerFactoryLinear
from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import AbstractDiscreteActor
from torch import nn

from domino_env import RuleSet, make_rules
from domino_env.arena import Duel, duel
from domino_env.envs.single import DominoEnv
from domino_env.observation import Views, encoding_of, masks
from domino_env.players import Player, Streams


class MaskedEnv(gymnasium.Wrapper[dict[str, npt.NDArray[Any]], Any, npt.NDArray[np.int8], Any]):
    """`DominoEnv` with its mask where Tianshou looks for it: observations are ``{"obs": …, "mask": …}``."""

    def __init__(self, env: DominoEnv) -> None:
        super().__init__(env)
        self.domino = env
        self.observation_space = spaces.Dict(
            obs=env.observation_space, mask=spaces.Box(0, 1, (env.rules.num_actions,), np.bool_)
        )

    def _with_mask(self, observation: npt.NDArray[np.int8]) -> dict[str, npt.NDArray[Any]]:
        return {"obs": observation, "mask": self.domino.action_masks()}

    def reset(self, **kwargs: Any) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
        """As `DominoEnv.reset`."""
        observation, _ = self.env.reset(**kwargs)
        return self._with_mask(observation), {}

    def step(self, action: Any) -> tuple[dict[str, npt.NDArray[Any]], float, bool, bool, dict[str, Any]]:
        """As `DominoEnv.step`."""
        observation, reward, terminated, truncated, _ = self.env.step(action)
        return self._with_mask(observation), float(reward), terminated, truncated, {}


def make_envs(rules: RuleSet, n: int, seed: int, opponents: str = "random", reward: str = "points") -> DummyVectorEnv:
    """Tables as one of Tianshou's vector environments; an illegal action would raise."""

    def make() -> MaskedEnv:
        return MaskedEnv(DominoEnv(rules, opponents=opponents, reward=reward, strict=True))

    envs = DummyVectorEnv([make] * n)
    envs.seed([seed * n + table for table in range(n)])
    return envs


def network(inputs: int, outputs: int, hidden: int) -> nn.Sequential:
    """A multi-layer perceptron."""
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
    )


class MaskedActor(AbstractDiscreteActor):
    """Logits of the actions, the lowest number there is where an action is illegal."""

    def __init__(self, rules: RuleSet, hidden: int) -> None:
        super().__init__(rules.num_actions)
        self.net = network(encoding_of(rules).size, rules.num_actions, hidden)

    def get_preprocess_net(self) -> nn.Module:
        """Tianshou asks for it where nets are shared; here none is."""
        return self.net

    def forward(self, obs: Batch, state: Any = None, info: Any = None) -> tuple[torch.Tensor, Any]:
        """(n, actions), and the state of recurrent nets, which this one has not."""
        logits = self.net(torch.as_tensor(obs.obs, dtype=torch.float32))
        return logits.masked_fill(~torch.as_tensor(obs.mask), torch.finfo(torch.float32).min), state


class Critic(nn.Module):
    """What a position is worth."""

    def __init__(self, rules: RuleSet, hidden: int) -> None:
        super().__init__()
        self.net = network(encoding_of(rules).size, 1, hidden)

    def forward(self, obs: Batch) -> torch.Tensor:
        """(n, 1)."""
        return self.net(torch.as_tensor(obs.obs, dtype=torch.float32))


class NetPlayer(Player):
    """Plays the likeliest legal action."""

    name = "tianshou-ppo"

    def __init__(self, rules: RuleSet, actor: MaskedActor) -> None:
        super().__init__(rules)
        self.actor, self.encoding = actor, encoding_of(rules)

    @torch.no_grad()
    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """The greedy actions."""
        mask = masks(views, self.rules.num_actions).astype(np.bool_)
        logits, _ = self.actor(Batch(obs=self.encoding.vectors(views), mask=mask))
        return logits.argmax(dim=1).numpy()


def train(rules: RuleSet, actor: MaskedActor, args: argparse.Namespace) -> None:
    """Train the actor of the policy for ``args.decisions`` decisions."""
    rollout = args.tables * args.steps_per_table
    falling = LRSchedulerFactoryLinear(
        max_epochs=1, epoch_num_steps=args.decisions, collection_step_num_env_steps=rollout
    )
    algorithm = PPO(
        policy=DiscreteActorPolicy(actor=actor, action_space=spaces.Discrete(rules.num_actions)),
        critic=Critic(rules, args.hidden),
        optim=AdamOptimizerFactory(lr=args.learning_rate).with_lr_scheduler_factory(falling),
        gamma=1.0, gae_lambda=args.gae_lambda, ent_coef=args.entropy, max_grad_norm=0.5, max_batchsize=4096,
    )  # fmt: skip
    envs = make_envs(rules, args.tables, args.seed, args.opponents)
    collector = Collector(algorithm, envs, VectorReplayBuffer(rollout, args.tables))
    started = time.process_time()
    algorithm.run_training(
        OnPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=args.decisions,
            collection_step_num_env_steps=rollout,
            batch_size=args.batch_size,
            update_step_num_repetitions=args.epochs,
            show_progress=False,
        )
    )
    rate = collector.collect_step / (time.process_time() - started)
    print(f"{collector.collect_step:,} decisions, {rate:,.0f} a second of processor time", flush=True)


def evaluate(rules: RuleSet, actor: MaskedActor, args: argparse.Namespace) -> list[Duel]:
    """The greedy policy (at both seats of its side, in pairs) against those asked for, every deal in every seating."""
    player = NetPlayer(rules, actor)
    return [duel(player, opponent, rules, deals=args.deals, seed=10**6) for opponent in args.against]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="PPO with Tianshou.")
    parser.add_argument("--preset", default="duplas")
    parser.add_argument("--opponents", default="random", help="who plays the other seats")
    parser.add_argument("--decisions", type=int, default=400_000, help="of the learner")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tables", type=int, default=64)
    parser.add_argument("--steps-per-table", type=int, default=64, help="of each rollout")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--gae-lambda", type=float, default=0.9)
    parser.add_argument("--entropy", type=float, default=0.01)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--deals", type=int, default=2000, help="of the evaluation")
    parser.add_argument("--against", nargs="*", default=["random", "doubles"], help="opponents of the evaluation")
    parser.add_argument("--save", type=Path, help="a file for the actor's weights")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> list[Duel]:
    """Train, save if asked to, evaluate, print."""
    args = parse(argv)
    torch.set_num_threads(1)
    np.random.seed(args.seed)  # noqa: NPY002 - Tianshou shuffles with NumPy's global generator
    torch.manual_seed(args.seed)
    rules = make_rules(args.preset)
    actor = MaskedActor(rules, args.hidden)
    print("Untrained:", *evaluate(rules, actor, args), sep="\n", flush=True)
    train(rules, actor, args)
    if args.save:
        torch.save(actor.state_dict(), args.save)
    results = evaluate(rules, actor, args)
    print("Trained:", *results, sep="\n")
    return results


if __name__ == "__main__":
    main()
