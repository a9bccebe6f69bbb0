"""The networks that policies are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import torch
from torch import nn

ACTIVATIONS: Final = {"tanh": nn.Tanh, "relu": nn.ReLU}


class PolicyNet(nn.Module):
    """A perceptron from observations to one logit an action.

    Args:
        inputs: length of an observation.
        hidden: widths of the hidden layers.
        actions: number of actions.
        activation: ``"tanh"`` or ``"relu"``.
    """

    def __init__(self, inputs: int, hidden: Sequence[int], actions: int, activation: str = "relu") -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation={activation!r} is not one of {', '.join(ACTIVATIONS)}")
        widths = [inputs, *hidden]
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), ACTIVATIONS[activation]()]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], actions))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Logits, float32 (n, actions), of observations of any dtype, (n, inputs)."""
        logits: torch.Tensor = self.layers(observations.to(torch.float32))
        return logits


def network_of(
    weights: Mapping[str, torch.Tensor], hidden: Sequence[int], activation: str, *, inputs: int, actions: int
) -> PolicyNet:
    """The network with these weights, in evaluation mode. Draws no random numbers, unlike a new `PolicyNet`.

    Raises:
        RuntimeError: weights of other names or shapes; before any memory is taken for the network.
    """
    with torch.device("meta"):
        net = PolicyNet(inputs, hidden, actions, activation)
    own = {name: weight.detach().to("cpu", torch.float32) for name, weight in weights.items()}
    net.load_state_dict(own, assign=True)
    return net.eval()


def masked(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Logits with those of illegal actions at half the dtype's lowest value (all, where none is legal).

    Finite, so that neither 0 x inf nor inf - inf can occur further on. Half, because in float16 the lowest
    value less a logarithm of sums is minus infinity.
    """
    return torch.where(masks.to(torch.bool), logits, torch.finfo(logits.dtype).min / 2)
