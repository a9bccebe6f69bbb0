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

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch.nn import functional

from agents import checkpoint
from agents.critic import CRITIC_FILE, by_side, new_critic
from agents.networks import NEVER, MoveNet, by_decision, moves_mask
from domino_env import Batch, RuleSet, make_rules
from domino_env._jit import source_hash
from domino_env.afterstates import Afterstates, Deals
from domino_env.bots import make_player
from domino_env.equity import reward_table

from . import runs
from .config import ConfigError
from .runs import Diverged, RunKeys, begin_with, command_line, optimizer_state, restore_optimizer
from .selfplay import Lookahead, Opponents, Rollout, arrays_of, credit

TRAINING_FILE = "training.safetensors"


class RunConfig(RunKeys):
    """What a run needs. A step is one decision of any seat."""

    reward: Literal["points", "outcome", "equity"] = "outcome"  # as `Batch` has them
    reward_scale: float = Field(default=1.0, gt=0)  # rewards are multiplied by it; the critic learns best about 1
    tables: int = Field(default=2048, ge=1)
    steps: int = Field(default=24, ge=1)  # of each table between two updates
    batch_size: int = Field(default=1024, ge=2)
    epochs: int = Field(default=2, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    learning_rate_end: float = Field(default=1e-5, ge=0)  # the rate falls linearly to it, with steps or time
    entropy: float = Field(default=0.04, ge=0)
    entropy_end: float = Field(default=0.005, ge=0)
    clip: float = Field(default=0.2, gt=0)
    max_grad_norm: float = Field(default=0.5, gt=0)  # of each network
    gamma: float = Field(default=1.0, gt=0, le=1)  # from one decision of the table to the next
    gae_lambda: float = Field(default=0.7, ge=0, le=1)
    opponents: list[str] = []  # players to learn against beside itself
    opponent_share: float = Field(default=0.25, ge=0, le=1)  # of the tables: there one of them holds all other sides
    start: str | None = None  # a checkpoint or run whose policy and critic to begin with
    lookahead: bool = False  # compare all legal moves through the critic, instead of judging the one played by GAE
    hidden: list[Annotated[int, Field(ge=1)]] = [128, 128]
    critic_hidden: list[Annotated[int, Field(ge=1)]] = [128, 128]
    activation: Literal["relu", "tanh"] = "relu"
    precision: Literal["float32", "bfloat16"] = "float32"  # of the networks' products; weights are float32 anyhow
    evaluate_every: int = Field(default=5_000_000, ge=1)  # a checkpoint each time

    @property
    def rollout(self) -> int:
        """Decisions of all tables between two updates."""
        return self.tables * self.steps

    @model_validator(mode="after")
    def _check_minibatches(self) -> RunConfig:
        if self.rollout % self.batch_size:
            raise ValueError(
                f"batch_size={self.batch_size} does not divide the {self.rollout} decisions of tables x steps"
            )
        return self


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
                # What single rounds never show must not matter to a policy that then plays matches.
                for name in ("scores", "multiplier"):
                    if part := layout.slices.get(name):
                        net.layers[0].weight[:, part.start : part.stop] = 0
                net.to(self.device)
        if config.start is not None and not resume:  # a run that goes on has weights of its own
            begin_with(config.start, rules, self.actor, self.critic)
        parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.Adam(parameters, lr=config.learning_rate, eps=1e-5, fused=True)
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
        with self.precision():
            in_env = self.play()
        played = time.perf_counter()
        figures = self.learn()
        self.steps += self.config.rollout
        took = time.perf_counter() - began
        self.seconds += took
        finite = all(weight.isfinite().all() for net in (self.actor, self.critic) for weight in net.parameters())
        if not finite or not all(map(np.isfinite, figures.values())):
            raise Diverged(
                f"run={self.config.run}: after {self.steps:,} decisions the network gives NaN or infinity; the "
                f"checkpoints are from before. Try a lower learning_rate than {self.config.learning_rate:g}"
            )
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
                kept.outlook.append(self.lookahead.values(self.critic, tables, moves.actions, device))
            logits = by_decision(self.actor(rows.to(device))[:, 0], counts.to(device), NEVER)
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
        kept.value[t] = by_side(self.critic(deals.to(self.device)).cpu(), kept.side[t], self.rules.num_sides)
        return deals

    def learn(self) -> dict[str, float]:
        """Some epochs of minibatch steps on the rollout; losses and the like, averaged over all of them."""
        config, kept, device = self.config, self.rollout, self.device
        for group in self.optimizer.param_groups:
            group["lr"] = self._now(config.learning_rate, config.learning_rate_end)
        entropy_weight = self._now(config.entropy, config.entropy_end)
        gained, advantage, targets = credit(kept, config.gamma, config.gae_lambda, all_actions=config.lookahead)
        counts = torch.cat(kept.counts)
        starts = counts.cumsum(0) - counts
        old = torch.cat(kept.log_prob)
        if config.lookahead:  # PPO's objective is a mean over the moves played; with a value for every one, over all
            weight = old.exp()
        else:
            weight = torch.zeros_like(old).index_fill_(0, starts + kept.played.flatten(), 1.0)
        own = kept.own.flatten().repeat_interleave(counts).to(old.dtype)  # opponents' moves are nothing to learn from
        by_move = [column.to(device) for column in (torch.cat(kept.moves), own, old, weight * own, advantage)]
        by_row = [column.to(device) for column in (torch.cat(kept.deals), targets)]
        counts, starts = counts.to(device), starts.to(device)
        told: list[torch.Tensor] = []
        for _ in range(config.epochs):
            order = torch.randperm(config.rollout, device=device, generator=self.generator)
            for rows in order.split(config.batch_size):
                some = counts[rows]
                first = starts[rows] - (some.cumsum(0) - some)
                moves = torch.arange(int(some.sum()), device=device) + first.repeat_interleave(some)
                told.append(self._step(
                    some, *(column[moves] for column in by_move), *(column[rows] for column in by_row),
                    entropy_weight=entropy_weight,
                ))  # fmt: skip
        names = ("loss_policy", "loss_value", "entropy", "kl", "clipped", "grad_actor", "grad_critic")
        figures = dict(zip(names, torch.stack(told).mean(0).tolist(), strict=True))
        spread = targets.var().item()
        return {
            **figures,
            "value_explained": 1 - figures["loss_value"] / spread if spread else 0.0,
            "advantage_std": gained.std().item(),
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "entropy_weight": entropy_weight,
            "episode_length": config.rollout / max(1, int(kept.done.sum())),
        }

    def _now(self, start: float, end: float) -> float:
        return start + (end - start) * self.progress

    def _step(
        self,
        counts: torch.Tensor,
        moves: torch.Tensor,
        own: torch.Tensor,
        old_log_prob: torch.Tensor,
        weight: torch.Tensor,
        advantage: torch.Tensor,
        deals: torch.Tensor,
        target: torch.Tensor,
        *,
        entropy_weight: float,
    ) -> torch.Tensor:
        """One minibatch; its losses and figures. The five after `counts`, which is by decision, are by move."""
        n = len(counts)
        with self.precision():
            logits, values = self.actor(moves)[:, 0], self.critic(deals)
        log_probs = by_decision(logits, counts, NEVER).log_softmax(1)[moves_mask(counts)]
        # Within bounds, so that a move that was all but impossible cannot count as 0 x infinity.
        change = (log_probs - old_log_prob).clamp(-20, 20)
        ratio, clip = change.exp(), self.config.clip
        clipped = ratio.clamp(1 - clip, 1 + clip)
        policy_loss = -(weight * torch.minimum(ratio * advantage, clipped * advantage)).sum() / n
        entropy = -(own * log_probs.exp() * log_probs).sum() / n
        value_loss = functional.mse_loss(values, target)
        self.optimizer.zero_grad(set_to_none=True)
        # The networks share nothing, and Adam does not mind a loss's scale: no weights between the two losses.
        (policy_loss - entropy_weight * entropy + value_loss).backward()
        norms = [
            torch.nn.utils.clip_grad_norm_(net.parameters(), self.config.max_grad_norm)
            for net in (self.actor, self.critic)
        ]
        self.optimizer.step()
        with torch.no_grad():
            kl, outside = (weight * (ratio - 1 - change)).sum() / n, (weight * (ratio != clipped)).sum() / n
            figures = (policy_loss, value_loss, entropy, kl, outside)
            return torch.stack([*(figure.detach() for figure in figures), *norms])

    def save(self, target: Path) -> None:
        """Write a checkpoint.

        Raises:
            OSError: it cannot be written. Nothing is left of it.
        """
        card = checkpoint.make_card(
            self.rules, self.config.hidden, self.config.activation, steps=self.steps, code=source_hash(),
            config=self.config.model_dump(), sees="afterstates",
        )  # fmt: skip
        others = {CRITIC_FILE: self.critic.state_dict(), TRAINING_FILE: self.state()}
        checkpoint.save(target, self.actor, card, others)

    def state(self) -> dict[str, torch.Tensor]:
        """All that goes on changing, but for the networks."""
        kept = {name: torch.from_numpy(array) for name, array in arrays_of(self.batch, self.opponents).items()}
        kept |= optimizer_state(self.optimizer)
        kept["generator"] = self.generator.get_state()
        kept["progress"] = torch.tensor([self.steps, self.seconds], dtype=torch.float64)
        return kept

    def restore(self, folder: Path) -> None:
        """Go on from a checkpoint.

        Raises:
            CheckpointError: it is damaged, or not this run's.
        """
        policy, _ = checkpoint.load(folder)
        try:
            critic, kept = load_file(folder / CRITIC_FILE), load_file(folder / TRAINING_FILE)
            self.actor.load_state_dict(policy.state_dict())
            self.critic.load_state_dict(critic)
            for name, array in arrays_of(self.batch, self.opponents).items():
                if array.shape != tuple(kept[name].shape):
                    raise ValueError(f"{name} has shape {tuple(kept[name].shape)}; this run's has {array.shape}")
            restore_optimizer(self.optimizer, kept)
            self.generator.set_state(kept["generator"])
            self.steps, self.seconds = int(kept["progress"][0]), float(kept["progress"][1])
        except (KeyError, ValueError, OSError, RuntimeError, SafetensorError) as error:
            raise checkpoint.CheckpointError(f"{folder}: {' '.join(str(error).split())}") from error
        for name, array in arrays_of(self.batch, self.opponents).items():
            array[:] = kept[name].numpy()


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
