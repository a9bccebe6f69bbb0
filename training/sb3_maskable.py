"""Train a policy with sb3-contrib's MaskablePPO, against itself and players of the package.

    python -m training.sb3_maskable configs/sb3_maskable/duplas.yaml
    python -m training.sb3_maskable configs/sb3_maskable/duplas.yaml total_steps=200000 run=runs/short
    python -m training.sb3_maskable --resume runs/short total_steps=400000

The learner sits at one seat of many tables at once. It sees its legal moves, a row each, and a perceptron
scores them. The other seats are held by players that are drawn anew each episode: those of the configuration,
and the newest of its own earlier policies.

The run folder gets ``config.yaml``, figures as JSON lines and for TensorBoard in ``metrics/``,
``evaluations.jsonl``, ``learning.png`` and ``checkpoints/<steps>/``. A checkpoint holds all that training needs
to go on exactly as if it had not been stopped. SIGINT and SIGTERM save one and end the run.
"""

from __future__ import annotations

import copy
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from safetensors.torch import load_file
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from agents import checkpoint
from agents.networks import ACTIVATIONS, MoveNet, PolicyNet
from agents.policy import PolicyPlayer
from agents.sb3 import MovePolicy, policy_of
from domino_env import RuleSet, make_rules
from domino_env.adapters.sb3 import DominoVecEnv
from domino_env.afterstates import Afterstates
from domino_env.bots import make_player
from domino_env.envs.seats import OneOf
from domino_env.observation import encoding_of

from . import runs
from .config import ConfigError
from .runs import Diverged, RunKeys, command_line
from .weights import (
    TRAINING_FILE,
    as_checkpoint_error,
    card_of,
    ignore_scores,
    optimizer_state,
    restore_optimizer,
)

#: The name of a player that is one of the run's own earlier policies.
SELF = "self"


class RunConfig(RunKeys):
    """What a run needs. A step is one decision of the learner."""

    opponents: str | list[str] = [SELF, "doubles", "counting"]  # one, drawn each episode, holds the other sides
    partner: str | list[str] | None = None  # the same for the partner's seat; None: "self", where there are pairs
    pool_size: int = Field(default=4, ge=1)  # so many of the newest snapshots of the policy are "self"
    snapshot_every: int = Field(default=100_000, ge=1)
    reward: Literal["points", "outcome"] = "outcome"
    moves: bool = True  # see the legal moves, a row each, and score them; otherwise the observation's vector
    num_envs: int = Field(default=1024, ge=1)
    steps_per_env: int = Field(default=8, ge=1)  # of each rollout
    gae_lambda: float = Field(default=0.9, ge=0, le=1)
    entropy: float = Field(default=0.01, ge=0)

    @property
    def rollout(self) -> int:
        """Decisions of all tables between two updates."""
        return self.num_envs * self.steps_per_env

    @model_validator(mode="after")
    def _check(self) -> RunConfig:
        for name in ("opponents", "partner"):
            if getattr(self, name) == []:
                raise ValueError(f"{name}=[]: give at least one player")
        if self.rollout % self.batch_size == 1:  # the spread of one advantage is not a number
            raise ValueError(
                f"batch_size={self.batch_size} leaves a batch of 1 of the {self.rollout} decisions of "
                "num_envs x steps_per_env; choose a divisor"
            )
        return self


class Scaled(VecEnvWrapper):
    """Multiplies rewards."""

    def __init__(self, env: VecEnv, scale: float) -> None:
        super().__init__(env)
        self.scale = scale

    def reset(self) -> Any:
        """As the environment within."""
        return self.venv.reset()

    def step_wait(self) -> Any:
        """As the environment within, but for the rewards."""
        observations, rewards, dones, infos = self.venv.step_wait()
        return observations, rewards * self.scale, dones, infos


class Figures(KVWriter):
    """Keeps what SB3 logs."""

    def __init__(self) -> None:
        self.last: dict[str, float] = {}

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        """Take the figures of an update."""
        self.last = {name: float(value) for name, value in key_values.items()}


class Pool:
    """Players that are the policy as it was: a ring of snapshots, the oldest of which is replaced."""

    def __init__(self, config: RunConfig, rules: RuleSet) -> None:
        torch.manual_seed(config.seed)
        if config.moves:
            first: MoveNet | PolicyNet = MoveNet(Afterstates(rules).size, config.hidden, 1, config.activation)
        else:
            first = PolicyNet(encoding_of(rules).size, config.hidden, rules.num_actions, config.activation)
        self.players = [PolicyPlayer(rules, mode="sample", policy=first) for _ in range(config.pool_size)]
        self.taken = 0  # snapshots so far

    def add(self, policy: MoveNet | PolicyNet) -> None:
        """Put a snapshot in the place of the oldest; the first is in all places."""
        places = self.players if not self.taken else [self.players[self.taken % len(self.players)]]
        for player in places:
            player.policy = policy
        self.taken += 1

    def holder(self, names: str | list[str]) -> OneOf:
        """One of the players with these names; "self", whichever of the snapshots it is, counts as one of them."""
        listed = [names] if isinstance(names, str) else names
        times = len(self.players) if SELF in listed else 1
        return OneOf([player for name in listed for player in (self.players if name == SELF else [name] * times)])

    def state(self) -> dict[str, torch.Tensor]:
        """The snapshots."""
        return {
            f"pool.{i}.{name}": tensor.clone()  # the first snapshot is several players'
            for i, player in enumerate(self.players)
            for name, tensor in player.policy.state_dict().items()
        }

    def restore(self, kept: Mapping[str, torch.Tensor], like: MoveNet | PolicyNet) -> None:
        """The inverse of `state`; `like` is a network of the same kind."""
        for i, player in enumerate(self.players):
            weights = {name: kept[f"pool.{i}.{name}"] for name in like.state_dict()}
            player.policy = copy.deepcopy(like)
            player.policy.load_state_dict(weights)


class Trainer:
    """A run's model, tables and pool."""

    def __init__(self, config: RunConfig, rules: RuleSet) -> None:
        self.config, self.rules = config, rules
        self.pool = Pool(config, rules)
        self.env = DominoVecEnv(
            rules, num_envs=config.num_envs, opponents=self.pool.holder(config.opponents),
            partner=self.pool.holder(config.partner or SELF) if rules.pairs else None, episode=config.episode,
            reward=config.reward, moves=config.moves, skip_single=True, seed=config.seed, threads=config.threads,
        )  # fmt: skip
        self.seconds, self.progress = 0.0, 0.0
        self.model = self._make_model()
        self.figures = Figures()
        self.model.set_logger(Logger(None, [self.figures]))
        self.model.policy.action_net.register_forward_hook(self._check_logits)
        self.pool.add(policy_of(self.model))

    def _make_model(self) -> MaskablePPO:
        config = self.config
        kwargs = {
            "net_arch": config.hidden, "activation_fn": ACTIVATIONS[config.activation],
            "optimizer_kwargs": {"eps": 1e-5, "fused": True},
        }  # fmt: skip
        if config.moves:
            kwargs["precision"] = config.precision
        model = MaskablePPO(
            MovePolicy if config.moves else "MlpPolicy",
            self.env if config.reward_scale == 1 else Scaled(self.env, config.reward_scale),
            n_steps=config.steps_per_env, batch_size=config.batch_size, n_epochs=config.epochs,
            learning_rate=lambda _: config.learning_rate * (1 - self.progress), gamma=config.gamma,
            gae_lambda=config.gae_lambda, ent_coef=config.entropy, policy_kwargs=kwargs, stats_window_size=4096,
            seed=config.seed, device="cuda" if torch.cuda.is_available() else "cpu",
        )  # fmt: skip
        if config.moves:
            for net in (model.policy.action_net, model.policy.value_net):
                ignore_scores(net, Afterstates(self.rules))
        return model

    def _check_logits(self, layer: Any, inputs: Any, logits: torch.Tensor) -> None:
        if not logits.isfinite().all():
            raise Diverged(self.config, self.steps)

    @property
    def steps(self) -> int:
        """Decisions the model has learnt from."""
        return int(self.model.num_timesteps)

    def update(self) -> dict[str, float]:
        """Play and learn once; what to note of it.

        Raises:
            Diverged: a logit or weight is not finite.
        """
        began, before = time.perf_counter(), self.steps
        self.progress = self.config.progress(before, self.seconds)
        self.model.learn(self.config.rollout, log_interval=None, reset_num_timesteps=False)
        if not all(weight.isfinite().all() for weight in self.model.policy.parameters()):
            raise Diverged(self.config, self.steps)
        every = self.config.snapshot_every
        if self.steps // every > before // every:
            self.pool.add(policy_of(self.model))
        self.seconds += time.perf_counter() - began
        self.model.dump_logs()
        figures = {name: value for name, value in self.figures.last.items() if not name.startswith("time/")}
        rate = self.config.rollout / (time.perf_counter() - began)
        return {
            "steps": self.steps, "seconds": round(self.seconds, 3), **figures, "snapshots": self.pool.taken,
            "decisions_per_second": rate,
        }  # fmt: skip

    def save(self, target: Path) -> None:
        """Write a checkpoint.

        Raises:
            OSError: it cannot be written. Nothing is left of it.
        """
        sees = "afterstates" if self.config.moves else "observations"
        card = card_of(self.config, self.rules, self.steps, sees)
        checkpoint.save(target, policy_of(self.model), card, {TRAINING_FILE: self.state()})

    def state(self) -> dict[str, torch.Tensor]:
        """All that goes on changing."""
        model = self.model
        _, words, at, has_gauss, gauss = np.random.get_state()  # noqa: NPY002 - SB3 orders its minibatches by it
        kept = {f"policy.{name}": tensor for name, tensor in model.policy.state_dict().items()}
        kept |= optimizer_state(model.policy.optimizer, "policy")
        kept |= self.pool.state()
        kept |= {f"tables.{name}": torch.from_numpy(array) for name, array in self.env.arrays().items()}
        kept["torch"] = torch.get_rng_state()
        if model.device.type == "cuda":
            kept["cuda"] = torch.cuda.get_rng_state()
        kept["numpy"] = torch.from_numpy(words.view(np.int32).copy())
        kept["numpy_at"] = torch.tensor([at, has_gauss, gauss], dtype=torch.float64)
        if model._last_obs is not None:
            kept["starts"] = torch.from_numpy(np.asarray(model._last_episode_starts))
            ends = [[episode["r"], episode["l"]] for episode in model.ep_info_buffer]
            kept["episodes"] = torch.tensor(ends, dtype=torch.float64).reshape(-1, 2)
        progress = [self.steps, self.seconds, self.pool.taken, model._n_updates]
        kept["progress"] = torch.tensor(progress, dtype=torch.float64)
        return kept

    def restore(self, folder: Path) -> None:
        """Go on from a checkpoint.

        Raises:
            CheckpointError: it is damaged, or not this run's.
        """
        policy, _ = checkpoint.load(folder)
        with as_checkpoint_error(folder):
            self._restore(load_file(folder / TRAINING_FILE), policy)

    def _restore(self, kept: Mapping[str, torch.Tensor], policy: MoveNet | PolicyNet) -> None:
        model = self.model
        weights = {name: kept[f"policy.{name}"] for name in model.policy.state_dict()}
        model.policy.load_state_dict(weights)
        restore_optimizer(model.policy.optimizer, "policy", kept)
        self.pool.restore(kept, policy)
        tables = {name.removeprefix("tables."): kept[name].numpy() for name in kept if name.startswith("tables.")}
        observations = self.env.put(tables)
        steps, self.seconds, taken, updates = kept["progress"].tolist()
        model.num_timesteps, self.pool.taken, model._n_updates = int(steps), int(taken), int(updates)
        if "starts" in kept:
            model._last_obs, model._last_episode_starts = observations, kept["starts"].numpy()
            ends = [{"r": r, "l": length} for r, length in kept["episodes"].tolist()]
            model.ep_info_buffer, model.ep_success_buffer = deque(ends, model._stats_window_size), deque()
        torch.set_rng_state(kept["torch"])
        if "cuda" in kept and model.device.type == "cuda":
            torch.cuda.set_rng_state(kept["cuda"])
        at, has_gauss, gauss = kept["numpy_at"].tolist()
        words = kept["numpy"].numpy().view(np.uint32)
        np.random.set_state(("MT19937", words, int(at), int(has_gauss), gauss))  # noqa: NPY002


def make_trainer(config: RunConfig) -> Trainer:
    """The trainer at its start.

    Raises:
        ConfigError: unknown rules or players, those of the evaluations included.
    """
    try:
        rules = make_rules(config.preset, **config.rules)
        for opponent in config.evaluation_opponents:
            make_player(opponent, rules)
        if config.partner is not None and not rules.pairs:
            raise ValueError(f"partner={config.partner!r}: these rules have no pairs, so a learner has no partner")
        return Trainer(config, rules)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def train(config: RunConfig, *, resume: bool = False, updates: int | None = None) -> Path:
    """Run a configuration, from its start or from the newest checkpoint of its folder; as `training.runs.train`."""
    return runs.train(config, lambda: make_trainer(config), resume=resume, updates=updates)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 2 where the configuration cannot be used, 1 where the run could not go on."""
    return command_line(RunConfig, train, "sb3_maskable", __doc__.split("\n\n")[0], arguments)


if __name__ == "__main__":
    sys.exit(main())
