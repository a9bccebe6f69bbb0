"""The networks that policies are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

ACTIVATIONS: Final = {"tanh": nn.Tanh, "relu": nn.ReLU}


class Perceptron(nn.Module):
    """A perceptron on rows of zeros and ones.

    Args:
        inputs: length of a row.
        hidden: widths of the hidden layers.
        outputs: how many numbers it gives.
        activation: ``"tanh"`` or ``"relu"``.
    """

    def __init__(self, inputs: int, hidden: Sequence[int], outputs: int, activation: str = "relu") -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation={activation!r} is not one of {', '.join(ACTIVATIONS)}")
        self.activation = activation
        widths = [inputs, *hidden]
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), ACTIVATIONS[activation]()]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], outputs))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Its numbers, float32 (n, outputs), for rows of any dtype, (n, inputs)."""
        kind = rows.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
        found: torch.Tensor = self.layers(rows.to(dtype))
        return found.to(torch.float32)


def shape_of(net: Perceptron) -> tuple[list[int], str]:
    """The widths of a network's hidden layers, and its activation."""
    widths = [layer.out_features for layer in net.layers if isinstance(layer, nn.Linear)]
    return widths[:-1], net.activation


class PolicyNet(Perceptron):
    """A policy that gives every action of an observation a logit."""


class MoveNet(Perceptron):
    """A policy that gives a legal move a logit, by its afterstate (`domino_env.afterstates`): one output."""


#: The kinds of policies, by what they see.
POLICIES: Final[dict[str, type[PolicyNet | MoveNet]]] = {"observations": PolicyNet, "afterstates": MoveNet}

Net = TypeVar("Net", bound=Perceptron)


def network_of(
    kind: type[Net],
    weights: Mapping[str, torch.Tensor],
    hidden: Sequence[int],
    activation: str,
    *,
    inputs: int,
    outputs: int,
) -> Net:
    """The network with these weights, in evaluation mode. Draws no random numbers, unlike a new one.

    Raises:
        RuntimeError: weights of other names or shapes; before any memory is taken for the network.
    """
    with torch.device("meta"):
        net = kind(inputs, hidden, outputs, activation)
    own = {name: weight.detach().to("cpu", torch.float32) for name, weight in weights.items()}
    net.load_state_dict(own, assign=True)
    return net.eval()


def layers_of(net: Perceptron) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
    """The weights (outputs, inputs) and biases (outputs,) of a network's layers, copies on the CPU."""
    linear = (layer for layer in net.layers if isinstance(layer, nn.Linear))
    return [(layer.weight.detach().cpu().numpy().copy(), layer.bias.detach().cpu().numpy().copy()) for layer in linear]


def masked(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Logits with those of illegal actions at half the dtype's lowest value (all, where none is legal).

    Finite, so that neither 0 x inf nor inf - inf can occur further on. Half, because in float16 the lowest
    value less a logarithm of sums is minus infinity.
    """
    return torch.where(masks.to(torch.bool), logits, torch.finfo(logits.dtype).min / 2)


#: The logit of no move.
NEVER: Final = -1e9


def moves_mask(counts: torch.Tensor) -> torch.Tensor:
    """Where a row of `by_decision` holds moves, bool (decisions, most moves)."""
    return torch.arange(int(counts.max()) if len(counts) else 0, device=counts.device) < counts[:, None]


def by_decision(values: torch.Tensor, counts: torch.Tensor, fill: float) -> torch.Tensor:
    """Numbers of moves, `counts` of them a decision, as a row a decision, (decisions, most moves), filled up."""
    return spread(values, moves_mask(counts), fill)


def spread(values: torch.Tensor, places: torch.Tensor, fill: float) -> torch.Tensor:
    """An array with numbers where `places` are, in their order, and `fill` elsewhere."""
    return values.new_full(places.shape, fill).masked_scatter(places, values)
