"""Train a policy by self-play: PPO with one policy on all seats and a critic that sees all hands.

    python -m training.ppo configs/ppo/duplas.yaml
    python -m training.ppo configs/ppo/duplas.yaml minutes=5 run=runs/short
    python -m training.ppo --resume runs/short minutes=10

Every decision of every seat is a row to learn from; those with one legal action are played without
asking. The policy sees what its seat may see. The critic, which only training needs, sees the whole
deal, so what follows a decision can be valued at the very next one, whoever's it is. The objective is
PPO's (Schulman et al. 2017), the advantages are GAE's (Schulman et al. 2016).

The run folder gets ``config.yaml``, figures as JSON lines and for TensorBoard in ``metrics/``,
``evaluations.jsonl``, ``learning.png`` and ``checkpoints/<steps>/``. A checkpoint holds all that
training needs to go on exactly as if it had not been stopped. SIGINT and SIGTERM save one and end the run.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from safetensors.torch import load_file

from agents import checkpoint
from agents.critic import CRITIC_FILE, by_side, new_critic
from agents.networks import NEVER, MoveNet, Perceptron, by_decision, moves_mask
from agents.policy import one_thread
from domino_env import Batch, RuleSet, make_rules
from domino_env.afterstates import Afterstates, Deals
from domino_env.bots import make_player
from domino_env.equity import reward_table

from . import runs
from .config import ConfigError
from .parallel import LossOf, Threads
from .runs import Diverged, RunKeys, command_line
from .selfplay import Lookahead, Opponents, Rollout, arrays_of, credit
from .weights import (
    TRAINING_FILE,
    as_checkpoint_error,
    begin_with,
    card_of,
    ignore_scores,
    optimizer_state,
    restore_optimizer,
)


class RunConfig(RunKeys):
    """What a run needs. A step is one decision of any seat."""

    reward: Literal["points", "outcome", "equity"] = "outcome"  # as `Batch` has them
    tables: int = Field(default=2048, ge=1)
    steps: int = Field(default=24, ge=1)  # of each table between two updates
    critic_epochs: int = Field(default=1, ge=1)  # `epochs` are the policy's
    learning_rate_end: float = Field(default=1e-5, ge=0)  # the rate falls linearly to it, with steps or time
    entropy: float = Field(default=0.04, ge=0)
    entropy_end: float = Field(default=0.005, ge=0)
    clip: float = Field(default=0.2, gt=0)
    max_grad_norm: float = Field(default=0.5, gt=0)  # of each network
    gae_lambda: float = Field(default=0.7, ge=0, le=1)
    opponents: list[str] = []  # players to learn against beside itself
    opponent_share: float = Field(default=0.25, ge=0, le=1)  # of the tables: there one of them holds all other sides
    start: str | None = None  # a checkpoint or run whose policy and critic to begin with
    sure: float = Field(default=0.99, gt=0, le=1)  # a move that the policy played with a higher chance teaches little:
    sure_share: float = Field(default=0.1, gt=0, le=1)  # of these decisions so many are learnt from, each for several
    lookahead: bool = False  # compare all legal moves through the critic, instead of judging the one played by GAE
    critic_hidden: list[Annotated[int, Field(ge=1)]] = [128, 128]
    evaluate_every: int = Field(default=5_000_000, ge=1)  # a checkpoint each time

    @property
    def rollout(self) -> int:
        """Decisions of all tables between two updates."""
        return self.tables * self.steps


class Trainer:
    """A run's networks, optimizer, tables and random numbers: all that a checkpoint keeps."""

    def __init__(self, config: RunConfig, rules: RuleSet, *, resume: bool = False) -> None:
        self.config, self.rules = config, rules
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.afterstates, self.deals = Afterstates(rules), Deals(rules)
        torch.manual_seed(config.seed)
        self.actor = MoveNet(self.afterstates.size, config.hidden, 1, config.activation)
        self.critic = new_critic(rules, config.critic_hidden, config.activation)
        with torch.no_grad():
            for net, layout in ((self.actor, self.afterstates), (self.critic, self.deals)):
                # Begins by playing uniformly, and expecting nothing.
                net.layers[-1].weight.mul_(0.01)
                net.layers[-1].bias.zero_()
                ignore_scores(net, layout)
                net.to(self.device)
        if config.start is not None and not resume:  # a run that goes on has weights of its own
            begin_with(config.start, rules, self.actor, self.critic)
        self.optimizers = {
            name: torch.optim.Adam(net.parameters(), lr=config.learning_rate, eps=1e-5, fused=True)
            for name, net in (("actor", self.actor), ("critic", self.critic))
        }
        self.threads = Threads(config.threads)
        self.generator = torch.Generator(self.device).manual_seed(config.seed)
        self.batch = Batch(
            rules, config.tables, config.seed, episode=config.episode, reward=config.reward, skip_single=True,
            observe=False, threads=1,
        )  # fmt: skip
        self.opponents = Opponents(
            [make_player(opponent, rules) for opponent in config.opponents],
            self.batch, round(config.tables * config.opponent_share), config.seed,
        )  # fmt: skip
        self.lookahead = Lookahead(self.batch, self.deals, config.gamma, config.reward_scale)
        self.rollout = Rollout(config.steps, config.tables, rules.num_sides)
        self.steps, self.seconds = 0, 0.0

    @property
    def progress(self) -> float:
        """How much of the run is done, 0 to 1."""
        return self.config.progress(self.steps, self.seconds)

    def precision(self) -> torch.autocast:
        """A context in which networks compute as the configuration says."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16")

    def update(self) -> dict[str, float]:
        """Play and learn once; what to note of it.

        Raises:
            Diverged: a loss or weight is not finite.
        """
        began = time.perf_counter()
        with one_thread():
            in_env = self.play()
            played = time.perf_counter()
            figures = self.learn()
        self.steps += self.config.rollout
        took = time.perf_counter() - began
        self.seconds += took
        finite = all(weight.isfinite().all() for net in (self.actor, self.critic) for weight in net.parameters())
        if not finite or not all(map(np.isfinite, figures.values())):
            raise Diverged(self.config, self.steps)
        return {
            "steps": self.steps, "seconds": round(self.seconds, 3), **figures,
            "decisions_per_second": self.config.rollout / took,
            "share_env": in_env / took, "share_play": (played - began) / took,
        }  # fmt: skip

    @torch.no_grad()
    def play(self) -> float:
        """Fill the rollout with the policy's decisions, at all seats; the seconds spent in the environment."""
        batch, kept, device = self.batch, self.rollout, self.device
        kept.clear()
        in_env = self.lookahead.seconds = 0.0
        for t in range(self.config.steps):
            moves = self.afterstates.of_state(batch.state)
            rows, counts = torch.from_numpy(moves.rows), torch.from_numpy(np.diff(moves.starts))
            kept.deals.append(self._look(t))
            if self.config.lookahead:
                tables = np.repeat(np.arange(batch.num_tables), counts.numpy())
                kept.outlook.append(self.lookahead.values(partial(self._ask, self.critic), tables, moves.actions))
            logits = by_decision(self._ask(self.actor, rows)[:, 0], counts.to(device), NEVER)
            kept.log_prob.append(logits.log_softmax(1).cpu()[moves_mask(counts)])
            # The first move whose cumulated share passes the draw; in double, or rounding could pass them all.
            shares = logits.softmax(1).double().cumsum(1)
            drawn = torch.rand((len(shares), 1), dtype=torch.float64, device=device, generator=self.generator)
            kept.played[t] = (shares <= drawn * shares[:, -1:]).sum(1)
            kept.own[t] = ~torch.from_numpy(self.opponents.decide(moves, kept.played[t].numpy()))
            kept.action[t] = torch.from_numpy(moves.actions[moves.starts[:-1] + kept.played[t].numpy()])
            kept.moves.append(rows)
            kept.counts.append(counts)
            began = time.perf_counter()
            batch.step(kept.action[t].numpy())
            in_env += time.perf_counter() - began
            kept.reward[t] = torch.from_numpy(batch.rewards)
            kept.done[t] = torch.from_numpy(batch.done)
        self._look(self.config.steps)
        kept.reward *= self.config.reward_scale
        return in_env + self.lookahead.seconds

    def _look(self, t: int) -> torch.Tensor:
        """Note the sides to act, and what the critic expects; the deals it sees."""
        batch, kept = self.batch, self.rollout
        kept.side[t] = torch.from_numpy(batch.seat % self.rules.num_sides)
        deals = torch.from_numpy(self.deals.of(batch.state))
        kept.value[t] = by_side(self._ask(self.critic, deals).cpu(), kept.side[t], self.rules.num_sides)
        return deals

    def _ask(self, net: Perceptron, rows: torch.Tensor) -> torch.Tensor:
        """A network's numbers for rows."""

        def ask(part: torch.Tensor) -> torch.Tensor:
            with torch.no_grad(), self.precision():  # which hold for a thread alone
                return net(part.to(self.device))

        return torch.cat(self.threads.each(ask, rows))

    def learn(self) -> dict[str, float]:
        """Some epochs of minibatch steps on the rollout; losses and the like, averaged over all of them."""
        config, kept, device = self.config, self.rollout, self.device
        rate = self._now(config.learning_rate, config.learning_rate_end)
        for optimizer in self.optimizers.values():
            optimizer.param_groups[0]["lr"] = rate
        entropy_weight = self._now(config.entropy, config.entropy_end)
        gained, advantage, targets = credit(kept, config.gamma, config.gae_lambda, all_actions=config.lookahead)
        counts = torch.cat(kept.counts)
        starts = counts.cumsum(0) - counts
        old = torch.cat(kept.log_prob)
        if config.lookahead:  # PPO's objective is a mean over the moves played; with a value for every one, over all
            weight = old.exp()
        else:
            weight = torch.zeros_like(old).index_fill_(0, starts + kept.played.flatten(), 1.0)
        decisions, copies = self._worth_learning(starts, old)
        by_move = [column.to(device) for column in (torch.cat(kept.moves), old, weight, advantage)]
        counts, starts, copies = counts.to(device), starts.to(device), copies.to(device)
        deals, expected = torch.cat(kept.deals).to(device), targets.to(device)

        def policy_loss(total: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            some = counts[rows]
            first = starts[rows] - (some.cumsum(0) - some)
            moves = torch.arange(int(some.sum()), device=device) + first.repeat_interleave(some)
            columns = (column[moves] for column in by_move)
            return self._policy_loss(some, copies[rows] / total, *columns, entropy_weight=entropy_weight)

        def value_loss(total: int, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self._value_loss(deals[rows], expected[rows], total)

        told = [
            self._descend("actor", partial(policy_loss, copies[rows].sum()), rows)
            for rows in self._minibatches(decisions.to(device), config.epochs)
        ]
        learnt = [
            self._descend("critic", partial(value_loss, len(rows)), rows)
            for rows in self._minibatches(torch.arange(config.rollout, device=device), config.critic_epochs)
        ]
        figures = _means(("loss_policy", "entropy", "kl", "clipped", "grad_actor"), told)
        figures |= _means(("loss_value", "grad_critic"), learnt)
        spread = targets.var().item()
        return {
            **figures,
            "value_explained": 1 - figures["loss_value"] / spread if spread else 0.0,
            "share_learnt": len(decisions) / config.rollout,
            "advantage_std": gained.std().item(),
            "learning_rate": rate,
            "entropy_weight": entropy_weight,
            "episode_length": config.rollout / max(1, int(kept.done.sum())),
        }

    def _now(self, start: float, end: float) -> float:
        return start + (end - start) * self.progress

    def _worth_learning(self, starts: torch.Tensor, log_prob: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The decisions that the policy learns from, and how many each of all decisions stands for.

        Where the policy was sure of the move that it played, next to nothing can be learnt: of these a share is
        drawn, and stands for all of them. Opponents' decisions are nothing to learn from.
        """
        config, kept = self.config, self.rollout
        sure = log_prob[starts + kept.played.flatten()] > math.log(config.sure)
        drawn = torch.rand(len(sure), device=self.device, generator=self.generator).cpu() < config.sure_share
        chosen = kept.own.flatten() & (~sure | drawn)
        return chosen.nonzero()[:, 0], torch.where(sure, 1 / config.sure_share, 1.0)

    def _minibatches(self, rows: torch.Tensor, epochs: int) -> list[torch.Tensor]:
        """So many times all rows in a random order, in parts of about the batch size."""
        found: list[torch.Tensor] = []
        for _ in range(epochs if len(rows) else 0):
            parts = max(1, round(len(rows) / self.config.batch_size))
            order = torch.randperm(len(rows), device=self.device, generator=self.generator)
            found += rows[order].tensor_split(parts)
        return found

    def _policy_loss(
        self,
        counts: torch.Tensor,
        share: torch.Tensor,
        moves: torch.Tensor,
        old_log_prob: torch.Tensor,
        weight: torch.Tensor,
        advantage: torch.Tensor,
        *,
        entropy_weight: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What some decisions add to a minibatch's loss and figures, each by its share of the minibatch.

        The first two are by decision, the others by move.
        """
        with self.precision():
            logits = self.actor(moves)[:, 0]
        log_probs = by_decision(logits, counts, NEVER).log_softmax(1)[moves_mask(counts)]
        # Within bounds, so that a move that was all but impossible cannot count as 0 x infinity.
        change = (log_probs - old_log_prob).clamp(-20, 20)
        ratio, clip = change.exp(), self.config.clip
        clipped = ratio.clamp(1 - clip, 1 + clip)
        each = share.repeat_interleave(counts)
        weight = weight * each
        loss = -(weight * torch.minimum(ratio * advantage, clipped * advantage)).sum()
        entropy = -(each * log_probs.exp() * log_probs).sum()
        with torch.no_grad():
            kl, outside = (weight * (ratio - 1 - change)).sum(), (weight * (ratio != clipped)).sum()
            noted = torch.stack([loss.detach(), entropy.detach(), kl, outside])
        return loss - entropy_weight * entropy, noted

    def _value_loss(self, deals: torch.Tensor, target: torch.Tensor, total: int) -> tuple[torch.Tensor, torch.Tensor]:
        """What some deals of a minibatch of `total` add to the critic's loss; the same as a figure."""
        with self.precision():
            values = self.critic(deals)
        loss = (values - target).square().sum() / (total * target.shape[1])
        return loss, loss.detach()[None]

    def _descend(self, network: str, loss_of: LossOf, rows: torch.Tensor) -> torch.Tensor:
        """One step of a network's optimizer; the minibatch's figures, and the gradient's norm before it was cut."""
        optimizer = self.optimizers[network]
        parameters = optimizer.param_groups[0]["params"]
        noted = self.threads.differentiate(loss_of, rows, parameters)
        norm = torch.nn.utils.clip_grad_norm_(parameters, self.config.max_grad_norm)
        optimizer.step()
        return torch.cat([noted, norm[None]])

    def save(self, target: Path) -> None:
        """Write a checkpoint.

        Raises:
            OSError: it cannot be written. Nothing is left of it.
        """
        card = card_of(self.config, self.rules, self.steps, "afterstates")
        others = {CRITIC_FILE: self.critic.state_dict(), TRAINING_FILE: self.state()}
        checkpoint.save(target, self.actor, card, others)

    def state(self) -> dict[str, torch.Tensor]:
        """All that goes on changing, but for the networks."""
        kept = {name: torch.from_numpy(array) for name, array in arrays_of(self.batch, self.opponents).items()}
        for name, optimizer in self.optimizers.items():
            kept |= optimizer_state(optimizer, name)
        kept["generator"] = self.generator.get_state()
        kept["progress"] = torch.tensor([self.steps, self.seconds], dtype=torch.float64)
        return kept

    def restore(self, folder: Path) -> None:
        """Go on from a checkpoint.

        Raises:
            CheckpointError: it is damaged, or not this run's.
        """
        policy, _ = checkpoint.load(folder)
        with as_checkpoint_error(folder):
            critic, kept = load_file(folder / CRITIC_FILE), load_file(folder / TRAINING_FILE)
            self.actor.load_state_dict(policy.state_dict())
            self.critic.load_state_dict(critic)
            for name, array in arrays_of(self.batch, self.opponents).items():
                if array.shape != tuple(kept[name].shape):
                    raise ValueError(f"{name} has shape {tuple(kept[name].shape)}; this run's has {array.shape}")
            for name, optimizer in self.optimizers.items():
                restore_optimizer(optimizer, name, kept)
            self.generator.set_state(kept["generator"])
            self.steps, self.seconds = int(kept["progress"][0]), float(kept["progress"][1])
        for name, array in arrays_of(self.batch, self.opponents).items():
            array[:] = kept[name].numpy()


def _means(names: Sequence[str], figures: Sequence[torch.Tensor]) -> dict[str, float]:
    """Each figure's mean over the minibatches; 0 where there was none."""
    means = torch.stack(list(figures)).mean(0).tolist() if figures else [0.0] * len(names)
    return dict(zip(names, means, strict=True))


def make_rules_of(config: RunConfig) -> RuleSet:
    """The rules to train under.

    Raises:
        ConfigError: unknown rules, or unknown players to be evaluated against.
    """
    try:
        rules = make_rules(config.preset, **config.rules)
        if config.reward == "equity":
            reward_table("equity", rules, config.episode)
        for opponent in (*config.opponents, *config.evaluation_opponents):
            make_player(opponent, rules)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return rules


def train(config: RunConfig, *, resume: bool = False, updates: int | None = None) -> Path:
    """Run a configuration, from its start or from the newest checkpoint of its folder; as `training.runs.train`."""
    rules = make_rules_of(config)
    return runs.train(config, lambda: Trainer(config, rules, resume=resume), resume=resume, updates=updates)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 2 where the configuration cannot be used, 1 where the run could not go on."""
    return command_line(RunConfig, train, "ppo", __doc__.split("\n\n")[0], arguments)


if __name__ == "__main__":
    sys.exit(main())
