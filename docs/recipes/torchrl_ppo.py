"""Self-play PPO with TorchRL: one policy learns from the decisions of all seats.

    python docs/recipes/torchrl_ppo.py --preset mano_a_mano --decisions 40000 --save policy.pt

Before and after, the greedy policy plays `random` on duplicate deals; the results are printed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs.libs.pettingzoo import PettingZooWrapper
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from domino_env import RuleSet, make_rules
from domino_env.arena import Duel, duel
from domino_env.envs import aec
from domino_env.observation import Views, encoding_of, masks
from domino_env.players import Player, Streams

#: The group that all seats are in: their entries are rows of the same tensors.
GROUP = "players"
OBSERVATION, MASK = (GROUP, "observation", "observation"), (GROUP, "action_mask")


def make_env(preset: str | RuleSet, seed: int, reward: str = "points") -> PettingZooWrapper:
    """The AEC environment for TorchRL. At every step every seat has a row; ``mask`` marks the seat to act.

    The bare environment: PettingZoo's wrappers would only punish an illegal action, this one raises.
    """
    env = aec.raw_env(preset, reward=reward)
    with warnings.catch_warnings():  # it says of every PettingZoo but 1.24.3 that it was not tried
        warnings.filterwarnings("ignore", "PettingZoo in TorchRL is tested", UserWarning)
        return PettingZooWrapper(env, use_mask=True, group_map={GROUP: list(env.possible_agents)}, seed=seed)


def network(inputs: int, outputs: int, hidden: int) -> nn.Sequential:
    """A multi-layer perceptron over int8 observations."""

    class Floats(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.float()

    return nn.Sequential(
        Floats(), nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
    )


def make_actor(logits: nn.Module) -> ProbabilisticActor:
    """The policy: an action for every seat, drawn among those that its mask allows."""
    return ProbabilisticActor(
        TensorDictModule(logits, in_keys=[OBSERVATION], out_keys=[(GROUP, "logits")]),
        in_keys={"logits": (GROUP, "logits"), "mask": MASK},
        out_keys=[(GROUP, "action")],
        distribution_class=MaskedCategorical,
        return_log_prob=True,
        log_prob_key=(GROUP, "log_prob"),
    )


def make_advantages(critic: ValueOperator, gamma: float, lmbda: float) -> GAE:
    """Generalised advantages along each seat's own row, from its rewards at every step of the table."""
    advantages = GAE(gamma=gamma, lmbda=lmbda, value_network=critic)
    advantages.set_keys(
        advantage=(GROUP, "advantage"), value_target=(GROUP, "value_target"), value=(GROUP, "state_value"),
        reward=(GROUP, "reward"), done=(GROUP, "done"), terminated=(GROUP, "terminated"),
    )  # fmt: skip
    return advantages


def decisions_of(data: TensorDictBase) -> TensorDict:
    """The rows of the seats that acted, one after the other: the others' actions went nowhere."""
    rows = data[GROUP].reshape(-1)
    return TensorDict({GROUP: rows[rows["mask"]]}, batch_size=[int(rows["mask"].sum())])


class NetPlayer(Player):
    """Plays the likeliest legal action."""

    name = "torchrl-ppo"

    def __init__(self, rules: RuleSet, logits: nn.Module) -> None:
        super().__init__(rules)
        self.logits, self.encoding = logits, encoding_of(rules)

    @torch.no_grad()
    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """The greedy actions."""
        legal = torch.from_numpy(masks(views, self.rules.num_actions)).bool()
        logits = self.logits(torch.from_numpy(self.encoding.vectors(views)))
        return logits.masked_fill(~legal, -torch.inf).argmax(dim=1).numpy()


def train(rules: RuleSet, logits: nn.Module, args: argparse.Namespace) -> None:
    """Train the network of the policy for ``args.decisions`` decisions."""
    env = make_env(rules, args.seed)
    actor = make_actor(logits)
    value = network(encoding_of(rules).size, 1, args.hidden)
    critic = ValueOperator(value, in_keys=[OBSERVATION], out_keys=[(GROUP, "state_value")])
    advantages = make_advantages(critic, gamma=1.0, lmbda=args.gae_lambda)
    loss = ClipPPOLoss(actor, critic, clip_epsilon=0.2, entropy_coeff=args.entropy, critic_coeff=0.5)
    loss.set_keys(
        action=(GROUP, "action"), sample_log_prob=(GROUP, "log_prob"), advantage=(GROUP, "advantage"),
        value_target=(GROUP, "value_target"), value=(GROUP, "state_value"),
    )  # fmt: skip
    optimizer = torch.optim.Adam(loss.parameters(), lr=args.learning_rate)
    collector = Collector(
        env, actor, frames_per_batch=args.rollout, total_frames=args.decisions, auto_register_policy_transforms=False
    )
    started, done = time.process_time(), 0
    for data in collector:
        with torch.no_grad():
            advantages(data)
        decisions = decisions_of(data)
        rows = decisions[GROUP]
        rows["advantage"] = (rows["advantage"] - rows["advantage"].mean()) / (rows["advantage"].std() + 1e-6)
        for _ in range(args.epochs):
            for part in torch.randperm(len(rows)).split(args.batch_size):
                losses = loss(decisions[part])
                optimizer.zero_grad()
                (losses["loss_objective"] + losses["loss_entropy"] + losses["loss_critic"]).backward()
                nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                optimizer.step()
        done += len(rows)
        rate = done / (time.process_time() - started)
        print(
            f"{done:,} decisions, {rate:,.0f} a second of processor time, entropy {losses['entropy']:.3f}", flush=True
        )
    collector.shutdown()


def evaluate(rules: RuleSet, logits: nn.Module, args: argparse.Namespace) -> list[Duel]:
    """The greedy policy against the opponents asked for, every deal in every seating."""
    player = NetPlayer(rules, logits)
    return [duel(player, opponent, rules, deals=args.deals, seed=10**6) for opponent in args.opponents]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Self-play PPO with TorchRL.")
    parser.add_argument("--preset", default="mano_a_mano")
    parser.add_argument("--decisions", type=int, default=40_000, help="of all seats together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rollout", type=int, default=2000, help="decisions between two updates")
    parser.add_argument("--batch-size", type=int, default=250)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--gae-lambda", type=float, default=0.95)
    parser.add_argument("--entropy", type=float, default=0.01)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--deals", type=int, default=2000, help="of the evaluation")
    parser.add_argument("--opponents", nargs="*", default=["random"])
    parser.add_argument("--save", type=Path, help="a file for the policy's weights")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> list[Duel]:
    """Train, save if asked to, evaluate, print."""
    args = parse(argv)
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    rules = make_rules(args.preset)
    logits = network(encoding_of(rules).size, rules.num_actions, args.hidden)
    print("Untrained:", *evaluate(rules, logits, args), sep="\n", flush=True)
    train(rules, logits, args)
    if args.save:
        torch.save(logits.state_dict(), args.save)
    results = evaluate(rules, logits, args)
    print("Trained:", *results, sep="\n")
    return results


if __name__ == "__main__":
    main()
