"""Decisions a second of self-play PPO beside sb3-contrib's MaskablePPO, for docs/training.md.

    python docs/measure_training.py [REPEATS] [THREADS]

The same game, decisions, networks on moves (those of configs/ppo/duplas.yaml), precision, batches, epochs of the policy
and threads; 49,152 decisions between updates (12,288 on `DummyVecEnv`, which is slow). Self-play is timed twice: as a
run begins, and with the weights of zoo/duplas-v1, which is sure of most of its moves, as it is most of the time. All
take turns.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # training/ is no installed package

from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import DummyVecEnv

from agents.sb3 import MovePolicy
from domino_env import make_rules
from domino_env.adapters.sb3 import DominoVecEnv
from domino_env.envs.single import DominoEnv
from training.ppo import RunConfig, Trainer

ROLLOUT, UPDATES = 49_152, 2
HIDDEN = [256, 128]


def self_play(**keys: Any) -> Callable[[], float]:
    """Updates `Trainer` and gives its decisions a second; every seat's count."""
    config = RunConfig(
        run=tempfile.mkdtemp(), preset="duplas", hidden=HIDDEN, critic_hidden=HIDDEN, precision="bfloat16", **keys
    )
    assert config.rollout == ROLLOUT
    trainer = Trainer(config, make_rules("duplas"))

    def run() -> float:
        figures = [trainer.update() for _ in range(UPDATES)]
        print(f"  share of the environment {median(line['share_env'] for line in figures):.1%}", flush=True)
        return median(line["decisions_per_second"] for line in figures)

    return run


def maskable(env: Any, tables: int, rollout: int = ROLLOUT) -> Callable[[], float]:
    """Trains MaskablePPO and gives its decisions a second; those of the one learner's seat count."""
    model = MaskablePPO(
        MovePolicy, env, n_steps=rollout // tables, batch_size=1024, n_epochs=2, learning_rate=1e-3, device="cpu",
        policy_kwargs={"net_arch": HIDDEN, "precision": "bfloat16"},
    )  # fmt: skip

    def run() -> float:
        began = time.perf_counter()
        model.learn(UPDATES * rollout, reset_num_timesteps=False)
        return UPDATES * rollout / (time.perf_counter() - began)

    return run


def main(repeats: int, threads: int) -> None:
    """Print the decisions a second of each, and their ratios."""
    torch.set_num_threads(threads)
    runs = {
        "training/ppo.py, as a run begins": self_play(threads=threads),
        "training/ppo.py, from zoo/duplas-v1 on": self_play(threads=threads, start="zoo/duplas-v1"),
        "MaskablePPO on DominoVecEnv, 2,048 tables": maskable(
            DominoVecEnv("duplas", num_envs=2048, seed=1, moves=True, skip_single=True, threads=threads), 2048
        ),
        "MaskablePPO on DummyVecEnv of 8 DominoEnv": maskable(
            DummyVecEnv([lambda: DominoEnv("duplas", moves=True, skip_single=True)] * 8), 8, ROLLOUT // 4
        ),
    }
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(repeats + 1):
        for name, run in runs.items():
            rate = run()
            if turn:  # the first turn compiles
                rates[name].append(rate)
    ours = {name: median(found) for name, found in rates.items() if name.startswith("training")}
    for name, found in rates.items():
        spread = ", ".join(f"{rate:,.0f}" for rate in found)
        times = ", ".join(f"x{rate / median(found):.1f}" for rate in ours.values())
        print(f"{name:45}{median(found):>9,.0f} decisions/s ({spread})   ours {times}")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *(3, 1)[len(given) :])
