"""AEC environments of every kind of table, and random play in them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from pettingzoo.utils.env_logger import EnvLogger

from domino_env import PRESETS, RuleSet, make_rules
from domino_env.envs.aec import env, raw_env

CASES: dict[str, RuleSet] = {
    **PRESETS,
    "blocos of 4": make_rules("blocos", players=4),
    "puxar of 3": make_rules("puxar", players=3),
    "puxar of 4": make_rules("puxar", players=4),
}
every_case = pytest.mark.parametrize("rules", CASES.values(), ids=CASES)
both_makers = pytest.mark.parametrize("make", [env, raw_env])
KINDS = [(episode, reward) for episode in ("round", "match") for reward in ("points", "outcome")]
every_kind = pytest.mark.parametrize(("episode", "reward"), KINDS, ids=map("-".join, KINDS))


@pytest.fixture(autouse=True)
def quiet_logger() -> Any:
    """PettingZoo prints and gathers what its wrappers warn of; each test starts with nothing gathered."""
    EnvLogger.suppress_output()
    EnvLogger.flush()
    yield
    EnvLogger.unsuppress_output()


def legal(e: Any) -> list[int]:
    """The legal actions of the agent to act, as its mask has them."""
    return np.flatnonzero(e.observe(e.agent_selection)["action_mask"]).tolist()


def play_on(e: Any, rng: random.Random, steps: int = 10**6) -> list[int]:
    """Random legal play for some steps, at most to the end of the episode; the actions."""
    played: list[int] = []
    while len(played) < steps and not any(e.terminations.values()):
        played.append(rng.choice(legal(e)))
        e.step(played[-1])
    return played


def leave(e: Any) -> None:
    """All agents take their leave."""
    while e.agents:
        e.step(None)
