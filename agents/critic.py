"""Critics that see all hands: for training, and for valuing positions whose hidden tiles are known or assumed.

A critic's input is what the seat to act sees, followed by what it does not see (`HiddenTiles`). Its
output is what the sides gain from here to the end of the episode: one number with two sides, the
deciding side's, since the other gains its opposite; else a number for each side, counted from the
deciding one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from domino_env import RuleSet
from domino_env.observation import encoding_of

from .checkpoint import CheckpointError, load, newest
from .networks import PolicyNet, network_of

CRITIC_FILE: Final = "critic.safetensors"
#: As many of the next tiles to draw a critic sees in their order.
DRAWS_SEEN: Final = 6


class HiddenTiles:
    """What a seat does not see, as zeros and ones: the other hands, and the tiles to be drawn next.

    The layout is (others, tiles), the hands in turn order after the seat; then, where tiles are drawn,
    (draws, tiles): the next `DRAWS_SEEN` tiles of the boneyard, first the one that is drawn next.
    """

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules
        self.draws = 0 if rules.draw == "none" else min(rules.boneyard_size, DRAWS_SEEN)
        self.size = (rules.players - 1 + self.draws) * rules.num_tiles

    def of(self, state: npt.NDArray[np.void], seats: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
        """Of each table's state, as one of its seats does not see it, int8 (n, `size`), newly allocated."""
        n, players, tiles = len(state), self.rules.players, self.rules.num_tiles
        rows = np.arange(n)[:, None]
        others = state["hands"][rows, (seats[:, None] + np.arange(1, players)) % players]
        packed = others.astype("<u8").view(np.uint8).reshape(n, players - 1, 8)
        parts = [np.unpackbits(packed, axis=2, count=tiles, bitorder="little").reshape(n, -1)]
        if self.draws:
            at = state["top"][:, None] + np.arange(self.draws)
            there = at < state["bottom"][:, None]
            tile = np.where(there, state["deck"][rows, np.where(there, at, 0)], tiles)
            parts.append((tile[:, :, None] == np.arange(tiles)).reshape(n, -1).view(np.uint8))
        return np.concatenate(parts, axis=1).view(np.int8)


def outputs_of(rules: RuleSet) -> int:
    """How many numbers a critic gives."""
    return 1 if rules.num_sides == 2 else rules.num_sides


def by_side(values: torch.Tensor, sides: torch.Tensor, num_sides: int) -> torch.Tensor:
    """A critic's values as what side 0, 1, … gains, (n, sides); `sides` (n,) are the deciding ones."""
    relative = torch.cat([values, -values], 1) if num_sides == 2 else values
    return relative.gather(1, (torch.arange(num_sides, device=sides.device) - sides[:, None]) % num_sides)


def from_side(gains: torch.Tensor, sides: torch.Tensor, num_sides: int) -> torch.Tensor:
    """The inverse of `by_side`: what a critic should have given, (n, outputs)."""
    seen = gains.gather(1, (torch.arange(num_sides, device=sides.device) + sides[:, None]) % num_sides)
    return seen[:, :1] if num_sides == 2 else seen


def new_critic(rules: RuleSet, hidden: list[int], activation: str) -> PolicyNet:
    """An untrained critic."""
    inputs = encoding_of(rules).size + HiddenTiles(rules).size
    return PolicyNet(inputs, hidden, outputs_of(rules), activation)


def load_critic(path: str | os.PathLike[str]) -> PolicyNet:
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
        inputs = encoding_of(rules).size + HiddenTiles(rules).size
        return network_of(weights, hidden, card.activation, inputs=inputs, actions=outputs_of(rules))
    except (TypeError, ValueError, OSError, RuntimeError, SafetensorError) as error:
        raise CheckpointError(f"{file}: {' '.join(str(error).split())}") from error
