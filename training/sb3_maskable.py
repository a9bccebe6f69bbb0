"""Train a policy with sb3-contrib's MaskablePPO against players of the package.

    python -m training.sb3_maskable configs/sb3_maskable/duplas.yaml
    python -m training.sb3_maskable configs/sb3_maskable/duplas.yaml total_steps=200000 run=runs/short

The learner sits at one seat of many tables at once; the players of the configuration hold the other
seats, the partner's included. The run folder gets ``config.yaml``, SB3's figures as JSON lines and for
TensorBoard in ``metrics/``, ``evaluations.jsonl``, ``learning.png`` and ``checkpoints/<steps>/``.
SIGINT and SIGTERM save a checkpoint and end the run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, model_validator
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from tqdm import tqdm

from agents import checkpoint
from agents.networks import ACTIVATIONS
from agents.sb3 import policy_of
from domino_env._jit import source_hash
from domino_env.adapters.sb3 import DominoVecEnv
from domino_env.bots import make_player

from .config import EVALUATION_SEEDS, Config, ConfigError, load_config
from .plots import learning_curve
from .runs import Diverged, add_line, check_free, judge, stopping_at_signals, write_config


class RunConfig(Config):
    """What a run needs. Counts of steps are the learner's decisions."""

    run: str  # the run folder; it must not hold a run already
    preset: str = "duplas"
    rules: dict[str, Any] = {}  # changed fields of the preset
    opponents: str | list[str] = "doubles"
    partner: str | None = None  # None: as the (first) opponent
    episode: Literal["round", "match"] = "round"
    reward: Literal["points", "outcome"] = "points"
    seed: int = Field(default=0, ge=0, lt=EVALUATION_SEEDS)
    total_steps: int = Field(default=5_000_000, ge=1)
    num_envs: int = Field(default=256, ge=1)
    steps_per_env: int = Field(default=32, ge=1)  # of each rollout
    batch_size: int = Field(default=1024, ge=2)
    epochs: int = Field(default=3, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)  # of the first rollout; falls linearly towards 0
    gamma: float = Field(default=1.0, gt=0, le=1)
    gae_lambda: float = Field(default=0.9, ge=0, le=1)
    entropy: float = Field(default=0.01, ge=0)
    hidden: list[Annotated[int, Field(ge=1)]] = [128, 128]
    activation: Literal["relu", "tanh"] = "relu"
    threads: int = Field(default=1, ge=1)  # torch's; small networks are fastest on one
    evaluate_every: int = Field(default=500_000, ge=1)
    evaluation_opponents: list[str] = ["random", "doubles"]
    evaluation_deals: int = Field(default=2000, ge=2)

    @property
    def rollout(self) -> int:
        """Decisions of all tables between two updates."""
        return self.num_envs * self.steps_per_env

    @model_validator(mode="after")
    def _check_minibatches(self) -> RunConfig:
        if self.rollout % self.batch_size == 1:  # the spread of one advantage is not a number
            raise ValueError(
                f"batch_size={self.batch_size} leaves a batch of 1 of the {self.rollout} decisions of "
                "num_envs x steps_per_env; choose a divisor"
            )
        return self


class Progress(BaseCallback):
    """Progress bar, evaluations, checkpoints, and an end when one is asked for."""

    def __init__(self, config: RunConfig, folder: Path, env: DominoVecEnv) -> None:
        super().__init__()
        self.config, self.folder = config, folder
        self.rules = env.rules
        self.stopping = False
        self.next_evaluation = 0
        self.started = time.perf_counter()
        self.bar = tqdm(total=config.total_steps, unit=" decisions", unit_scale=True, file=sys.stderr)

    def _init_callback(self) -> None:
        self.model.policy.action_net.register_forward_hook(self._check_logits)

    def _check_logits(self, layer: Any, inputs: Any, logits: torch.Tensor) -> None:
        if not logits.isfinite().all():
            raise Diverged(
                f"run={self.config.run}: after {self.num_timesteps:,} decisions the network gives NaN or "
                f"infinity; the checkpoints are from before. Try a lower learning_rate "
                f"than {self.config.learning_rate:g}"
            )

    def _on_step(self) -> bool:
        return not self.stopping

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self.next_evaluation:
            self.evaluate()
            self.next_evaluation += self.config.evaluate_every

    def _on_rollout_end(self) -> None:
        self.bar.update(min(self.num_timesteps, self.config.total_steps) - self.bar.n)

    def stop(self) -> None:
        """End the run at the next decision."""
        self.stopping = True

    def evaluate(self) -> None:
        """Save a checkpoint and play its greedy policy against the ladder, on the same deals each time."""
        with torch.no_grad():  # for the check above, after the last update too
            self.model.policy.get_distribution(torch.as_tensor(self.model._last_obs, device=self.model.device))
        policy = policy_of(self.model)
        steps = self.num_timesteps
        card = checkpoint.make_card(
            self.rules, self.config.hidden, self.config.activation,
            steps=steps, code=source_hash(), config=self.config.model_dump(),
        )  # fmt: skip
        checkpoint.save(self.folder / "checkpoints" / f"{steps:012d}", policy, card)
        shown = []
        for line in judge(
            policy, self.rules, self.config.evaluation_opponents, episode=self.config.episode,
            deals=self.config.evaluation_deals, steps=steps, seconds=round(time.perf_counter() - self.started, 1),
        ):  # fmt: skip
            add_line(self.folder / "evaluations.jsonl", line)
            shown.append(f"{line['opponent']} {line['points'][0]:+.3f}")
        if shown:
            against = ", ".join(shown)
            self.bar.write(f"{steps:>9,} decisions, points a round against {against}", file=sys.stderr)


def make_tables(config: RunConfig) -> DominoVecEnv:
    """The learner's tables.

    Raises:
        ConfigError: unknown rules or players, those of the evaluations included.
    """
    try:
        env = DominoVecEnv(
            config.preset, rules=config.rules, num_envs=config.num_envs, opponents=config.opponents,
            partner=config.partner, episode=config.episode, reward=config.reward, seed=config.seed,
        )  # fmt: skip
        for opponent in config.evaluation_opponents:
            make_player(opponent, env.rules)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return env


def make_model(config: RunConfig, env: DominoVecEnv) -> MaskablePPO:
    """The learner, untrained."""
    step = config.rollout / config.total_steps
    return MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=config.steps_per_env,
        batch_size=config.batch_size,
        n_epochs=config.epochs,
        # `left` is what remains after the rollout: below 0 where the last one goes beyond total_steps.
        learning_rate=lambda left: config.learning_rate * min(1.0, left + step),
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        ent_coef=config.entropy,
        policy_kwargs={"net_arch": config.hidden, "activation_fn": ACTIVATIONS[config.activation]},
        stats_window_size=4096,
        seed=config.seed,
        device="cuda" if torch.cuda.is_available() else "cpu",
    )


def train(config: RunConfig) -> Path:
    """Run a configuration; the run folder.

    Raises:
        ConfigError: the run folder holds a run already; unknown rules or players. Nothing was written.
        Diverged: the network came to give NaN.
        OSError: the run folder cannot be written.
    """
    folder = check_free(config.run)
    torch.set_num_threads(config.threads)
    env = make_tables(config)
    write_config(folder, config)
    model = make_model(config, env)
    model.set_logger(configure(str(folder / "metrics"), ["json", "tensorboard"]))
    progress = Progress(config, folder, env)
    try:
        with stopping_at_signals(progress.stop):
            model.learn(config.total_steps, callback=progress)
            progress.evaluate()
    finally:
        progress.bar.close()
        model.logger.close()
    if config.evaluation_opponents:
        learning_curve(folder / "evaluations.jsonl", folder / "learning.png")
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 2 where the configuration cannot be used, 1 where the run could not go on."""
    about = __doc__.split("\n\n")[0]
    parser = argparse.ArgumentParser(prog="python -m training.sb3_maskable", description=about)
    parser.add_argument("config", help="a YAML file, such as configs/sb3_maskable/duplas.yaml")
    parser.add_argument("changes", nargs="*", metavar="key=value", help="values that replace the file's")
    given = parser.parse_args(arguments)
    try:
        folder = train(load_config(RunConfig, given.config, given.changes))
    except (ConfigError, Diverged, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    print(f"{folder}: newest checkpoint {checkpoint.newest(folder)}", end="")
    print(f", learning curve {folder / 'learning.png'}" if (folder / "learning.png").exists() else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
