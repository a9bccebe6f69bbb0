"""PPO in one file, with nothing but PyTorch: a seat learns, players of the package hold the others.

    python docs/recipes/ppo.py --preset duplas --opponents doubles --decisions 400000 --save policy.pt

Afterwards the greedy policy plays `random` and `doubles` on duplicate deals that training never saw; the
results are printed. After CleanRL's ppo.py (Huang et al. 2022), with masks.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.distributions import Categorical

from domino_env import RuleSet, make_rules
from domino_env.arena import Duel, duel
from domino_env.envs.vector import DominoVectorEnv
from domino_env.observation import Views, encoding_of, masks
from domino_env.players import Player, Streams

EVALUATION_SEED = 10**9  # training deals from other seeds


class Agent(nn.Module):
    """Logits of the actions and the value of a position, from one trunk."""

    def __init__(self, rules: RuleSet, hidden: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(encoding_of(rules).size, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.actor = nn.Linear(hidden, rules.num_actions)
        self.critic = nn.Linear(hidden, 1)
        nn.init.orthogonal_(self.actor.weight, 0.01)  # begins by playing uniformly
        nn.init.zeros_(self.actor.bias)

    def forward(self, observations: torch.Tensor, legal: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        """The policy and the values, of observations (n, size) and masks (n, actions) of any dtype."""
        features = self.trunk(observations.float())
        # A large number and not the lowest there is, from which nothing could be taken away.
        logits = torch.where(legal.bool(), self.actor(features), -1e8)
        return Categorical(logits=logits, validate_args=False), self.critic(features).squeeze(-1)


class AgentPlayer(Player):
    """Plays the likeliest legal action."""

    name = "ppo"

    def __init__(self, rules: RuleSet, agent: Agent) -> None:
        super().__init__(rules)
        self.agent, self.encoding = agent, encoding_of(rules)

    @torch.no_grad()
    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """The action for each view, (n,)."""
        legal = masks(views, self.rules.num_actions)
        policy, _ = self.agent(torch.from_numpy(self.encoding.vectors(views)), torch.from_numpy(legal))
        return policy.logits.argmax(dim=1).numpy()


class Rollout(NamedTuple):
    """What `steps` decisions at each of n tables were like: (steps, n, …)."""

    observations: torch.Tensor
    legal: torch.Tensor
    actions: torch.Tensor
    log_probs: torch.Tensor
    values: torch.Tensor
    rewards: torch.Tensor
    ended: torch.Tensor
    last_value: torch.Tensor  # (n,), of the decisions that come next


class Tables:
    """The environment with where it stands.

    With SAME_STEP a table whose episode ends starts the next at once. So every row that comes out of `step` is a
    position to decide in, every action that goes in is played, and no row is there only to be reset. What the old
    episode ended with is not needed: all rewards have been given, and after the end there is nothing to bootstrap.
    """

    def __init__(self, rules: RuleSet, n: int, opponents: str, seed: int) -> None:
        # An illegal action would raise: with masks there is none.
        self.env = DominoVectorEnv(rules, num_envs=n, opponents=opponents, autoreset_mode="SameStep", strict=True)
        # A seed for each table, so that runs with neighbouring seeds share no deals.
        seeds = np.random.SeedSequence(seed).generate_state(n, np.uint64)
        self.observation, self.infos = self.env.reset(seed=seeds)

    @torch.no_grad()
    def play(self, agent: Agent, steps: int) -> Rollout:
        """Play `steps` decisions at each table."""
        rows: list[tuple[torch.Tensor, ...]] = []
        for _ in range(steps):
            observation = torch.from_numpy(self.observation)
            legal = torch.from_numpy(self.infos["action_mask"])
            policy, value = agent(observation, legal)
            action = policy.sample()
            self.observation, reward, ended, _, self.infos = self.env.step(action.numpy())
            given = torch.from_numpy(reward).float(), torch.from_numpy(ended).float()
            rows.append((observation, legal, action, policy.log_prob(action), value, *given))
        _, last_value = agent(torch.from_numpy(self.observation), torch.from_numpy(self.infos["action_mask"]))
        return Rollout(*(torch.stack(column) for column in zip(*rows, strict=True)), last_value)


def advantages(rollout: Rollout, gamma: float, gae_lambda: float) -> torch.Tensor:
    """How much better than expected each decision was (Schulman et al. 2016), (steps, n)."""
    found = torch.zeros_like(rollout.rewards)
    following, next_value = torch.zeros_like(rollout.last_value), rollout.last_value
    for t in reversed(range(len(found))):
        on = 1 - rollout.ended[t]  # nothing of the next episode counts for this one
        error = rollout.rewards[t] + gamma * on * next_value - rollout.values[t]
        found[t] = following = error + gamma * gae_lambda * on * following
        next_value = rollout.values[t]
    return found


def update(
    agent: Agent, optimizer: torch.optim.Optimizer, rollout: Rollout, args: argparse.Namespace
) -> dict[str, float]:
    """Some epochs of minibatch steps on PPO's clipped objective (Schulman et al. 2017)."""
    advantage = advantages(rollout, args.gamma, args.gae_lambda)
    target = (advantage + rollout.values).flatten()
    flat = Rollout(*(column.flatten(0, 1) for column in rollout[:-1]), rollout.last_value)
    advantage = advantage.flatten()
    told = []
    for _ in range(args.epochs):
        for rows in torch.randperm(len(target)).split(args.batch_size):
            policy, value = agent(flat.observations[rows], flat.legal[rows])
            change = policy.log_prob(flat.actions[rows]) - flat.log_probs[rows]
            ratio, better = change.exp(), advantage[rows]
            better = (better - better.mean()) / (better.std(correction=0) + 1e-8)
            clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
            policy_loss = -torch.min(ratio * better, clipped * better).mean()
            value_loss = (value - target[rows]).square().mean()
            entropy = policy.entropy().mean()
            optimizer.zero_grad()
            (policy_loss + args.value_weight * value_loss - args.entropy * entropy).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
            told.append((((ratio - 1) - change).mean().item(), entropy.item(), value_loss.item()))
    return dict(zip(("kl", "entropy", "value loss"), np.mean(told, axis=0).tolist(), strict=True))


def train(rules: RuleSet, args: argparse.Namespace) -> Agent:
    """Train for ``args.decisions`` decisions."""
    torch.manual_seed(args.seed)
    agent = Agent(rules, args.hidden)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    tables = Tables(rules, args.tables, args.opponents, args.seed)
    each = args.tables * args.steps
    updates = -(-args.decisions // each)
    scale, start = 0.0, time.process_time()
    for number in range(updates):
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - number / updates)
        rollout = tables.play(agent, args.steps)
        scale = scale or rollout.rewards[rollout.ended.bool()].abs().mean().item() or 1.0
        told = update(agent, optimizer, rollout._replace(rewards=rollout.rewards / scale), args)
        if (number + 1) % args.log_every == 0 or number + 1 == updates:
            episodes, count = int(rollout.ended.sum()), (number + 1) * each
            told |= {"reward an episode": rollout.rewards.sum().item() / max(episodes, 1)}
            shown = "  ".join(f"{name} {value:.3f}" for name, value in told.items())
            rate = count / (time.process_time() - start)  # of processor time: what else runs does not count
            print(f"{count:>9,} decisions  {rate:>7,.0f}/s  {shown}", flush=True)
    return agent


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="PPO in one file.")
    add: Any = parser.add_argument
    add("--preset", default="duplas")
    add("--opponents", default="doubles", help="who plays the other seats")
    add("--decisions", type=int, default=400_000, help="of the learner")
    add("--seed", type=int, default=0)
    add("--tables", type=int, default=256)
    add("--steps", type=int, default=32, help="decisions of a table in each rollout")
    add("--epochs", type=int, default=4)
    add("--batch-size", type=int, default=512)
    add("--learning-rate", type=float, default=1e-3, help="falls to 0 in a line")
    add("--gamma", type=float, default=1.0, help="episodes are short: nothing is discounted")
    add("--gae-lambda", type=float, default=0.95)
    add("--clip", type=float, default=0.2)
    add("--entropy", type=float, default=0.01)
    add("--value-weight", type=float, default=0.5)
    add("--hidden", type=int, default=128)
    add("--log-every", type=int, default=10, help="updates")
    add("--deals", type=int, default=2000, help="of the evaluation")
    add("--against", nargs="*", default=["random", "doubles"], help="opponents of the evaluation")
    add("--save", type=Path, help="a file for the weights")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> list[Duel]:
    """Train, save if asked to, evaluate, print."""
    args = parse(argv)
    torch.set_num_threads(1)  # such small networks are fastest on one
    rules = make_rules(args.preset)
    agent = train(rules, args)
    if args.save:
        torch.save(agent.state_dict(), args.save)
    player = AgentPlayer(rules, agent)
    results = [duel(player, opponent, rules, deals=args.deals, seed=EVALUATION_SEED) for opponent in args.against]
    print(*results, sep="\n")
    return results


if __name__ == "__main__":
    main()
