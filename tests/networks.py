"""Networks for tests: untrained ones of any rules, with weights large enough to prefer some moves to others."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from domino_env import RuleSet
from domino_env.afterstates import Afterstates, Deals
from domino_env.bots.networks import PolicyNetworks, critic_outputs
from domino_env.bots.perceptron import Layers


def random_layers(widths: list[int], seed: int) -> Layers:
    """Weights and biases of a perceptron."""
    rng = np.random.default_rng(seed)
    return [
        (
            (rng.standard_normal((after, before)) / before**0.5).astype(np.float32),
            rng.standard_normal(after).astype(np.float32),
        )
        for before, after in pairwise(widths)
    ]


def random_networks(rules: RuleSet, *, critic: bool = True, hidden: int = 12, **said: Any) -> PolicyNetworks:
    """An untrained policy and critic; `said` of them as `PolicyNetworks` takes it."""
    sides = critic_outputs(rules)
    policy = random_layers([Afterstates(rules).size, hidden, 1], 1)
    values = random_layers([Deals(rules).size, hidden, hidden, sides], 2) if critic else None
    return PolicyNetworks(rules, policy, values, **{"activation": "relu", "reward": "outcome", **said})


def heaviest_first(rules: RuleSet, strictness: float = 3.0) -> PolicyNetworks:
    """A policy whose logits are those of the tile's pips, in steps of 4: linear in what it keeps. Its critic is 0."""
    layout = Afterstates(rules)
    weight = np.zeros((1, layout.size), np.float32)
    part = layout.slices["pips"]
    weight[0, part.start : part.stop] = -strictness
    sides = critic_outputs(rules)
    nothing = np.zeros((sides, Deals(rules).size), np.float32), np.zeros(sides, np.float32)
    return PolicyNetworks(rules, [(weight, np.zeros(1, np.float32))], [nothing], "relu", reward="outcome")
