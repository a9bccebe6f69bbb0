"""Random rounds of OpenSpiel's game, and games small enough for all of their states."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from domino_env import make_rules

SMALL = {
    preset: make_rules(preset, max_pip=2, hand_size=2) for preset in ("mano_a_mano", "blocos", "puxar")
}  # two seats, 6 tiles
every_small = pytest.mark.parametrize("small", SMALL)


def step(state: Any, rng: Random) -> int:
    """Apply and return a random action or outcome."""
    if state.is_chance_node():
        outcomes, chances = zip(*state.chance_outcomes(), strict=True)
        assert sum(chances) == pytest.approx(1, abs=1e-12)
        action = rng.choices(outcomes, chances)[0]
    else:
        action = rng.choice(state.legal_actions())
    state.apply_action(action)
    return int(action)


def walk(game: Any, seed: int) -> Iterator[Any]:
    """One state at every point of a random round; the last one is over."""
    state, rng = game.new_initial_state(), Random(seed)
    while True:
        yield state
        if state.is_terminal():
            return
        step(state, rng)
