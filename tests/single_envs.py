"""Single environments of every kind of table, and random play in them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from domino_env import PRESETS

CASES: dict[str, dict[str, Any]] = {
    **{preset: {"preset": preset} for preset in PRESETS},
    "blocos of 4": {"preset": "blocos", "rules": {"players": 4}},
    "puxar of 3": {"preset": "puxar", "rules": {"players": 3}},
    "puxar of 4": {"preset": "puxar", "rules": {"players": 4}},
}
every_case = pytest.mark.parametrize("options", CASES.values(), ids=CASES)


def legal(info: dict[str, Any]) -> list[int]:
    """The legal actions, as the mask of a reset or a step has them."""
    return np.flatnonzero(info["action_mask"]).tolist()


def episode(env: Any, rng: random.Random, seed: int | None = None) -> Iterator[tuple[Any, ...]]:
    """(observation, reward, terminated, info) of a reset, then of each step of random play to the end."""
    observation, info = env.reset(seed=seed)
    yield observation, 0.0, False, info
    terminated = False
    while not terminated:
        observation, reward, terminated, truncated, info = env.step(rng.choice(legal(info)))
        assert truncated is False
        yield observation, reward, terminated, info
