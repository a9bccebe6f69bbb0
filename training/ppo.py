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

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch.nn import functional
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from agents import checkpoint
from agents.critic import CRITIC_FILE, HiddenTiles, by_side, new_critic
from agents.networks import PolicyNet, masked
from domino_env import Batch, RuleSet, make_rules
from domino_env._jit import source_hash
from domino_env.arena import games_of
from domino_env.bots import make_player
from domino_env.observation import encoding_of

from .config import EVALUATION_SEEDS, Config, ConfigError, load_config
from .plots import learning_curve
from .runs import Diverged, add_line, check_free, judge, read_lines, stopping_at_signals, write_config
from .selfplay import Lookahead, Rollout, arrays_of, credit

TRAINING_FILE = "training.safetensors"


class RunConfig(Config):
    """What a run needs. A step is one decision of any seat."""

    run: str  # the run folder; it must not hold a run already
    preset: str = "duplas"
    rules: dict[str, Any] = {}  # changed fields of the preset
    episode: Literal["round", "match"] = "round"
    reward: Literal["points", "outcome"] = "outcome"
    reward_scale: float = Field(default=1.0, gt=0)  # rewards are multiplied by it; the critic learns best about 1
    seed: int = Field(default=0, ge=0, lt=EVALUATION_SEEDS)
    total_steps: int = Field(default=100_000_000, ge=1)
    minutes: float | None = Field(default=None, gt=0)  # end after so much time, if total_steps are not reached
    tables: int = Field(default=2048, ge=1)
    steps: int = Field(default=24, ge=1)  # of each table between two updates
    batch_size: int = Field(default=1024, ge=2)
    epochs: int = Field(default=2, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    learning_rate_end: float = Field(default=1e-5, ge=0)  # the rate falls linearly to it, with steps or time
    entropy: float = Field(default=0.02, ge=0)
    entropy_end: float = Field(default=0.005, ge=0)
    clip: float = Field(default=0.2, gt=0)
    max_grad_norm: float = Field(default=0.5, gt=0)  # of each network
    gamma: float = Field(default=1.0, gt=0, le=1)  # from one decision of the table to the next
    gae_lambda: float = Field(default=0.5, ge=0, le=1)
    lookahead: bool = True  # compare all legal actions through the critic; else only the played one, by GAE
    hidden: list[Annotated[int, Field(ge=1)]] = [128, 128]
    critic_hidden: list[Annotated[int, Field(ge=1)]] = [128, 128]
    activation: Literal["relu", "tanh"] = "relu"
    threads: int = Field(default=1, ge=1)  # torch's; small networks are fastest on one
    evaluate_every: int = Field(default=5_000_000, ge=1)  # a checkpoint each time
    evaluation_opponents: list[str] = ["random", "doubles", "counting"]
    evaluation_deals: int = Field(default=2000, ge=2)

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


#: What a resumed run may change; anything else would make it another run.
MAY_CHANGE = ("total_steps", "minutes", "threads", "evaluate_every", "evaluation_opponents", "evaluation_deals")


class Trainer:
    """A run's networks, optimizer, tables and random numbers: all that a checkpoint keeps."""

    def __init__(self, config: RunConfig, rules: RuleSet) -> None:
        self.config, self.rules = config, rules
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        encoding, self.hidden_tiles = encoding_of(rules), HiddenTiles(rules)
        torch.manual_seed(config.seed)
        self.actor = PolicyNet(encoding.size, config.hidden, rules.num_actions, config.activation)
        self.critic = new_critic(rules, config.critic_hidden, config.activation)
        with torch.no_grad():
            for net in (self.actor, self.critic):  # begins by playing uniformly, and expecting nothing
                net.layers[-1].weight.mul_(0.01)
                net.layers[-1].bias.zero_()
                # What single rounds never show must not matter to a policy that then plays matches.
                for name in ("scores", "multiplier"):
                    if part := encoding.slices.get(name):
                        net.layers[0].weight[:, part.start : part.stop] = 0
                net.to(self.device)
        parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.Adam(parameters, lr=config.learning_rate, eps=1e-5, fused=True)
        self.generator = torch.Generator(self.device).manual_seed(config.seed)
        self.batch = Batch(
            rules, config.tables, config.seed, episode=config.episode, reward=config.reward, skip_single=True, threads=1
        )
        self.lookahead = Lookahead(self.batch, self.hidden_tiles, config.gamma, config.reward_scale)
        self.rollout = Rollout(
            config.steps, config.tables, encoding.size, self.hidden_tiles.size, rules.num_actions, rules.num_sides
        )
        self.steps, self.seconds = 0, 0.0

    @property
    def progress(self) -> float:
        """How much of the run is done, by steps or time, 0 to 1."""
        passed = self.steps / self.config.total_steps
        if self.config.minutes is not None:
            passed = max(passed, self.seconds / 60 / self.config.minutes)
        return min(passed, 1.0)

    def update(self) -> dict[str, float]:
        """Play and learn once; what to note of it.

        Raises:
            Diverged: a loss or weight is not finite.
        """
        began = time.perf_counter()
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
        in_env = self.lookahead.seconds = 0.0
        for t in range(self.config.steps):
            kept.observation[t] = torch.from_numpy(batch.observation)
            kept.mask[t] = torch.from_numpy(batch.action_mask)
            self._look(t)
            if self.config.lookahead:
                kept.outlook[t] = self.lookahead.values(self.critic, device)
            logits = masked(self.actor(kept.observation[t].to(device)), kept.mask[t].to(device))
            kept.log_prob[t] = logits.log_softmax(1)
            # The first action whose cumulated share passes the draw; in double, or rounding could pass them all.
            shares = logits.softmax(1).double().cumsum(1)
            drawn = torch.rand((len(shares), 1), dtype=torch.float64, device=device, generator=self.generator)
            kept.action[t] = (shares <= drawn * shares[:, -1:]).sum(1)
            began = time.perf_counter()
            batch.step(kept.action[t].numpy())
            in_env += time.perf_counter() - began
            kept.reward[t] = torch.from_numpy(batch.rewards)
            kept.done[t] = torch.from_numpy(batch.done)
        self._look(self.config.steps)
        kept.reward *= self.config.reward_scale
        return in_env + self.lookahead.seconds

    def _look(self, t: int) -> None:
        """Note the sides to act, what they do not see, and what the critic expects."""
        batch, kept = self.batch, self.rollout
        kept.side[t] = torch.from_numpy(batch.seat % self.rules.num_sides)
        kept.hidden[t] = torch.from_numpy(self.hidden_tiles.of(batch.state, batch.seat))
        seen = torch.cat([torch.from_numpy(batch.observation), kept.hidden[t]], 1).to(self.device)
        kept.value[t] = by_side(self.critic(seen).cpu(), kept.side[t], self.rules.num_sides)

    def learn(self) -> dict[str, float]:
        """Some epochs of minibatch steps on the rollout; losses and the like, averaged over all of them."""
        config, kept = self.config, self.rollout
        for group in self.optimizer.param_groups:
            group["lr"] = self._now(config.learning_rate, config.learning_rate_end)
        entropy_weight = self._now(config.entropy, config.entropy_end)
        own, advantage, targets = credit(kept, config.gamma, config.gae_lambda, all_actions=config.lookahead)
        flat = (
            kept.observation.flatten(0, 1), kept.hidden[:-1].flatten(0, 1), kept.mask.flatten(0, 1),
            kept.action.flatten(), kept.log_prob.flatten(0, 1), advantage, targets,
        )  # fmt: skip
        flat = tuple(column.to(self.device) for column in flat)
        told: list[torch.Tensor] = []
        for _ in range(config.epochs):
            order = torch.randperm(config.rollout, device=self.device, generator=self.generator)
            for rows in order.split(config.batch_size):
                told.append(self._step(*(column.index_select(0, rows) for column in flat), entropy_weight))
        names = ("loss_policy", "loss_value", "entropy", "kl", "clipped", "grad_actor", "grad_critic")
        figures = dict(zip(names, torch.stack(told).mean(0).tolist(), strict=True))
        spread = targets.var().item()
        return {
            **figures,
            "value_explained": 1 - figures["loss_value"] / spread if spread else 0.0,
            "advantage_std": own.std().item(),
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "entropy_weight": entropy_weight,
            "episode_length": config.rollout / max(1, int(kept.done.sum())),
        }

    def _now(self, start: float, end: float) -> float:
        return start + (end - start) * self.progress

    def _step(
        self,
        observation: torch.Tensor,
        hidden: torch.Tensor,
        mask: torch.Tensor,
        action: torch.Tensor,
        old_log_prob: torch.Tensor,
        advantage: torch.Tensor,
        target: torch.Tensor,
        entropy_weight: float,
    ) -> torch.Tensor:
        """One minibatch; its losses and figures."""
        log_probs = masked(self.actor(observation), mask).log_softmax(1)
        # PPO's objective is a mean over the actions played; with a value for every action, over all of them.
        played = functional.one_hot(action, mask.shape[1]).to(old_log_prob.dtype)
        weight = old_log_prob.exp() if self.config.lookahead else played
        # Within bounds, so that an action that was all but impossible cannot count as 0 x infinity.
        change = torch.where(mask.bool(), log_probs - old_log_prob, 0.0).clamp(-20, 20)
        ratio, clip = change.exp(), self.config.clip
        clipped = ratio.clamp(1 - clip, 1 + clip)
        policy_loss = -(weight * torch.minimum(ratio * advantage, clipped * advantage)).sum(1).mean()
        entropy = -(log_probs.exp() * log_probs).sum(1).mean()  # 0 x a large finite number for the illegal ones
        value_loss = functional.mse_loss(self.critic(torch.cat([observation, hidden], 1)), target)
        self.optimizer.zero_grad(set_to_none=True)
        # The networks share nothing, and Adam does not mind a loss's scale: no weights between the two losses.
        (policy_loss - entropy_weight * entropy + value_loss).backward()
        norms = [
            torch.nn.utils.clip_grad_norm_(net.parameters(), self.config.max_grad_norm)
            for net in (self.actor, self.critic)
        ]
        self.optimizer.step()
        with torch.no_grad():
            kl, outside = (weight * (ratio - 1 - change)).sum(1).mean(), (weight * (ratio != clipped)).sum(1).mean()
            figures = (policy_loss, value_loss, entropy, kl, outside)
            return torch.stack([*(figure.detach() for figure in figures), *norms])

    def state(self) -> dict[str, torch.Tensor]:
        """All that goes on changing, but for the networks."""
        kept = {name: torch.from_numpy(array) for name, array in arrays_of(self.batch).items()}
        for i, parameter in enumerate(self.optimizer.param_groups[0]["params"]):
            kept |= {f"adam.{i}.{name}": value for name, value in self.optimizer.state[parameter].items()}
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
            for name, array in arrays_of(self.batch).items():
                if array.shape != tuple(kept[name].shape):
                    raise ValueError(f"{name} has shape {tuple(kept[name].shape)}; this run's has {array.shape}")
            for i, parameter in enumerate(self.optimizer.param_groups[0]["params"]):
                start = f"adam.{i}."
                values = {name.removeprefix(start): kept[name] for name in kept if name.startswith(start)}
                self.optimizer.state[parameter] = {name: value.to(self.device) for name, value in values.items()}
            self.generator.set_state(kept["generator"])
            self.steps, self.seconds = int(kept["progress"][0]), float(kept["progress"][1])
        except (KeyError, ValueError, OSError, RuntimeError, SafetensorError) as error:
            raise checkpoint.CheckpointError(f"{folder}: {' '.join(str(error).split())}") from error
        for name, array in arrays_of(self.batch).items():
            array[:] = kept[name].numpy()


class Run:
    """A run's folder, and the loop that fills it."""

    def __init__(self, config: RunConfig, folder: Path, trainer: Trainer) -> None:
        self.config, self.folder, self.trainer = config, folder, trainer
        self.stopping = False
        self.metrics = folder / "metrics" / "progress.json"
        self.metrics.parent.mkdir(exist_ok=True)
        read_lines(self.metrics, trainer.steps)
        self.evaluations = read_lines(folder / "evaluations.jsonl", trainer.steps)
        self.board = SummaryWriter(str(self.metrics.parent), purge_step=trainer.steps + 1 if trainer.steps else None)
        self.bar = tqdm(
            total=config.total_steps, initial=trainer.steps, unit=" decisions", unit_scale=True, file=sys.stderr
        )

    def stop(self) -> None:
        """End the run after this update."""
        self.stopping = True

    def go(self, updates: int | None = None) -> None:
        """Train to the run's end, or for so many updates, or until `stop`; checkpoints and evaluations on the way."""
        trainer, every = self.trainer, self.config.evaluate_every
        if not trainer.steps:
            self.mark()
        while trainer.progress < 1 and not self.stopping and updates != 0:
            before = trainer.steps
            figures = trainer.update()
            add_line(self.metrics, figures)
            for name, value in figures.items():
                self.board.add_scalar(name, value, trainer.steps)
            self.bar.update(trainer.steps - before)
            updates = updates if updates is None else updates - 1
            if trainer.steps // every > before // every:
                self.mark()
        self.mark()

    def mark(self) -> None:
        """Save a checkpoint and play its greedy policy against the ladder; what is there already is not made again."""
        trainer, config = self.trainer, self.config
        target = self.folder / "checkpoints" / f"{trainer.steps:012d}"
        if not target.exists():
            card = checkpoint.make_card(
                trainer.rules, config.hidden, config.activation,
                steps=trainer.steps, code=source_hash(), config=config.model_dump(),
            )  # fmt: skip
            others = {CRITIC_FILE: trainer.critic.state_dict(), TRAINING_FILE: trainer.state()}
            checkpoint.save(target, trainer.actor, card, others)
        policy, _ = checkpoint.load(target)
        played = {line["opponent"] for line in self.evaluations if line["steps"] == trainer.steps}
        opponents = [opponent for opponent in config.evaluation_opponents if opponent not in played]
        shown = []
        for line in judge(
            policy, trainer.rules, opponents, episode=config.episode, deals=config.evaluation_deals,
            steps=trainer.steps, seconds=round(trainer.seconds, 1),
        ):  # fmt: skip
            self.evaluations.append(line)
            add_line(self.folder / "evaluations.jsonl", line)
            shown.append(f"{line['opponent']} {line['win_share'][0]:.1%}")
        if shown:
            games = games_of(config.episode)
            self.bar.write(f"{trainer.steps:>11,} decisions, {games} won against {', '.join(shown)}", file=sys.stderr)

    def close(self) -> None:
        """Close the files."""
        self.bar.close()
        self.board.close()


def make_rules_of(config: RunConfig) -> RuleSet:
    """The rules to train under.

    Raises:
        ConfigError: unknown rules, or unknown players to be evaluated against.
    """
    try:
        rules = make_rules(config.preset, **config.rules)
        for opponent in config.evaluation_opponents:
            make_player(opponent, rules)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return rules


def train(config: RunConfig, *, resume: bool = False, updates: int | None = None) -> Path:
    """Run a configuration, from its start or from the newest checkpoint of its folder; the run folder.

    Raises:
        ConfigError: the run folder holds a run already; unknown rules or players. Nothing was written.
        CheckpointError: there is no checkpoint to go on from, or it is damaged.
        Diverged: the network came to give NaN.
        OSError: the run folder cannot be written.
    """
    rules = make_rules_of(config)
    folder = Path(config.run) if resume else check_free(config.run)
    torch.set_num_threads(config.threads)
    trainer = Trainer(config, rules)
    if resume:
        trainer.restore(checkpoint.newest(folder))
        checkpoint.remove_parts(folder)
    write_config(folder, config)
    run = Run(config, folder, trainer)
    try:
        with stopping_at_signals(run.stop):
            run.go(updates)
    finally:
        run.close()
    if run.evaluations:
        learning_curve(folder / "evaluations.jsonl", folder / "learning.png")
    return folder


def resumed_config(run: str, changes: Sequence[str]) -> RunConfig:
    """The configuration of a run, with changes.

    Raises:
        ConfigError: as `load_config`; a change that would make it another run.
    """
    for change in changes:
        if (key := change.partition("=")[0]) not in MAY_CHANGE and key in RunConfig.model_fields:
            raise ConfigError(f"{change!r}: a resumed run may change only {', '.join(MAY_CHANGE)}")
    return load_config(RunConfig, Path(run) / "config.yaml", [*changes, f"run={run}"])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 2 where the configuration cannot be used, 1 where the run could not go on."""
    parser = argparse.ArgumentParser(prog="python -m training.ppo", description=__doc__.split("\n\n")[0])
    parser.add_argument("config", help="a YAML file, such as configs/ppo/duplas.yaml; with --resume, a run folder")
    parser.add_argument("changes", nargs="*", metavar="key=value", help="values that replace the file's")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint of a run")
    parser.add_argument("--updates", type=int, metavar="N", help="end after N updates, to be resumed later")
    given = parser.parse_intermixed_args(arguments)
    try:
        if given.resume:
            config = resumed_config(given.config, given.changes)
        else:
            config = load_config(RunConfig, given.config, given.changes)
        folder = train(config, resume=given.resume, updates=given.updates)
    except (ConfigError, checkpoint.CheckpointError, Diverged, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if isinstance(error, Diverged | OSError) else 2
    print(f"{folder}: newest checkpoint {checkpoint.newest(folder)}", end="")
    print(f", learning curve {folder / 'learning.png'}" if (folder / "learning.png").exists() else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
