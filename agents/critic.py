"""Critics that see all hands: for training, and for valuing positions whose hidden tiles are known or assumed.

A critic's input is a table with all tiles open (`domino_env.afterstates.Deals`). Its output is what the
sides gain from here to the end of the episode: one number with two sides, the deciding side's, since
the other gains its opposite; else a number for each side, counted from the deciding one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from domino_env import RuleSet
from domino_env.afterstates import Deals
from domino_env.bots.networks import critic_outputs

from .checkpoint import CheckpointError, load, newest
from .networks import Perceptron, network_of

CRITIC_FILE: Final = "critic.safetensors"


def by_side(values: torch.Tensor, sides: torch.Tensor, num_sides: int) -> torch.Tensor:
    """A critic's values as what side 0, 1, … gains, (n, sides); `sides` (n,) are the deciding ones."""
    relative = torch.cat([values, -values], 1) if num_sides == 2 else values
    return relative.gather(1, (torch.arange(num_sides, device=sides.device) - sides[:, None]) % num_sides)


def from_side(gains: torch.Tensor, sides: torch.Tensor, num_sides: int) -> torch.Tensor:
    """The inverse of `by_side`: what a critic should have given, (n, outputs)."""
    seen = gains.gather(1, (torch.arange(num_sides, device=sides.device) + sides[:, None]) % num_sides)
    return seen[:, :1] if num_sides == 2 else seen


def new_critic(rules: RuleSet, hidden: list[int], activation: str) -> Perceptron:
    """An untrained critic."""
    return Perceptron(Deals(rules).size, hidden, critic_outputs(rules), activation)


def load_critic(path: str | os.PathLike[str]) -> Perceptron:
    """The critic of a checkpoint, or of a run's newest, on the CPU, in evaluation mode.

    Raises:
        CheckpointError: as `agents.checkpoint.load`; a checkpoint without a critic, or with a damaged one.
    """
    source = newest(path)
    _, card = load(source)
    rules, file = card.rule_set, Path(source) / CRITIC_FILE
    if not file.is_file():
        raise CheckpointError(f"{source} has no critic: {CRITIC_FILE} is missing")
    try:
        weights = load_file(file)
        hidden = [len(weight) for name, weight in weights.items() if name.endswith("bias")][:-1]
        return network_of(
            Perceptron, weights, hidden, card.activation, inputs=Deals(rules).size, outputs=critic_outputs(rules)
        )
    except (TypeError, ValueError, OSError, RuntimeError, SafetensorError) as error:
        raise CheckpointError(f"{file}: {' '.join(str(error).split())}") from error
