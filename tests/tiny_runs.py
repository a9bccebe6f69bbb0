"""Runs of self-play that take no time: an update is a few hundredths of a second."""

from __future__ import annotations

from pathlib import Path

from training import ppo
from training.config import load_config
from training.ppo import RunConfig, Trainer

SMOKE = Path(__file__).parents[1] / "configs" / "ppo" / "smoke.yaml"
TINY = ("tables=16", "steps=8", "batch_size=64", "hidden=[16]", "critic_hidden=[16]", "total_steps=2560",
        "evaluate_every=1280", "evaluation_deals=20", "evaluation_opponents=[doubles]")  # fmt: skip


def tiny(run: Path, *changes: str) -> list[str]:
    """The command line of such a run."""
    return [str(SMOKE), f"run={run}", *TINY, *changes]


def trainer_of(*changes: str) -> Trainer:
    """The trainer of such a run."""
    config = load_config(RunConfig, SMOKE, [*TINY, *changes])
    return Trainer(config, ppo.make_rules_of(config))
