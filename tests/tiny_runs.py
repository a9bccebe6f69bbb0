"""Runs of the training programs that take no time, and what tests do with runs."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from agents.checkpoint import load, newest
from training import ppo
from training.config import load_config
from training.ppo import RunConfig, Trainer

ROOT = Path(__file__).parents[1]
SMOKE = ROOT / "configs" / "ppo" / "smoke.yaml"
# Self-play whose updates are a few hundredths of a second.
TINY = ("tables=16", "steps=8", "batch_size=64", "hidden=[16]", "critic_hidden=[16]", "total_steps=2560",
        "evaluate_every=1280", "evaluation_deals=20", "evaluation_opponents=[doubles]")  # fmt: skip


def tiny(run: Path, *changes: str) -> list[str]:
    """The command line of such a run."""
    return [str(SMOKE), f"run={run}", *TINY, *changes]


def trainer_of(*changes: str) -> Trainer:
    """The trainer of such a run."""
    config = load_config(RunConfig, SMOKE, [*TINY, *changes])
    return Trainer(config, ppo.make_rules_of(config))


def tick(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let so much time pass between one look at the clock and the next, however busy the machine is."""
    monkeypatch.setattr(time, "perf_counter", itertools.count(step=seconds).__next__)


def lines(file: Path) -> list[dict[str, Any]]:
    """The objects in a file of JSON lines."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def without_times(run: Path) -> list[dict[str, Any]]:
    """The figures of a run's updates but for those that differ from run to run."""
    times = ("seconds", "decisions_per_second", "share_env", "share_play")
    found = lines(run / "metrics" / "progress.json")
    return [{key: value for key, value in line.items() if key not in times} for line in found]


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Whether these are the same tensors, to the bit, by the same names."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def start(code: Sequence[str], **environment: str) -> subprocess.Popen[str]:
    """Start Python with this command line, on a machine without a display."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return subprocess.Popen(
        [sys.executable, *code], cwd=ROOT, env={**kept, **environment}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def wait_for(file: Path, process: subprocess.Popen[str], size: int = 1) -> None:
    """Wait until a running process has written so many bytes to a file."""
    until = time.monotonic() + 240
    while not file.exists() or file.stat().st_size < size:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


def kill_and_resume(
    main: Callable[[list[str]], int], run: Path, process: subprocess.Popen[str], rng: random.Random
) -> None:
    """Kill a run that saves after every update of 128 decisions at a random moment; `main` must go on with it."""
    metrics = run / "metrics" / "progress.json"
    wait_for(metrics, process, 2000)
    time.sleep(rng.uniform(0, 0.3))
    process.kill()
    process.communicate()
    before = load(newest(run))[1].steps
    assert main(["--resume", str(run), "--updates", "3"]) == 0
    assert load(newest(run))[1].steps == before + 3 * 128
    assert not list((run / "checkpoints").glob(".*"))
    steps = [line["steps"] for line in lines(metrics)]
    assert steps == [128 * k for k in range(1, len(steps) + 1)]
