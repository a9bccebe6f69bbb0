"""Perceptrons on rows of zeros and ones, run by compiled code, a row at a time.

The first layer is a sum of those rows of its weights where the input is 1; the others skip units that are 0. Sums
are in float32 and always in one order, so that every processor gives the same numbers.

Compiled players use `forward`, with one `Scratch` for each thread::

    scratch = new_scratch(actor, critic)            # once; room for several networks
    describe_move(..., scratch.row)                 # ones in a row of zeros
    forward(actor, scratch, np.float32 array)       # its numbers; the row is zeros again
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .._checks import one_of
from .._jit import jit, lowest_bit

ACTIVATIONS: Final = ("tanh", "relu")

_ONE = np.uint64(1)
#: Entries of a row to a word.
_BYTES: Final = 8
#: Rows of weights that are summed at once, and partial sums of an output.
_AT_ONCE: Final = 4

Layers = Sequence[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]


class Network(NamedTuple):
    """A perceptron. `network_of` makes one.

    All weights are rows of one matrix. Of every layer but the last those of an input's connections come one after
    another, and then the biases; of the last those of an output's, and then the biases.
    """

    matrix: Any  # float32 (rows, widest layer)
    widths: Any  # int64 (layers + 1,): inputs, units of the hidden layers, outputs
    relu: int  # 1, or 0 for tanh


class Scratch(NamedTuple):
    """What `forward` writes to beside its outputs."""

    row: Any  # int8 (entries,): the input; zeros but while one is being written
    words: Any  # uint64: the same memory
    active: Any  # int64: the inputs that are 1
    units: Any  # float32 (2, widest layer): those of the layer at hand and of the one before


def network_of(layers: Layers, activation: str) -> Network:
    """A network from its layers' weights (outputs, inputs) and biases (outputs,), first layer first.

    Raises:
        ValueError: an unknown activation; no layers, or of shapes that do not fit together; NaN or infinity.
    """
    relu = int(one_of("activation", activation, ACTIVATIONS) == "relu")
    shapes = [(np.shape(weight), np.shape(bias)) for weight, bias in layers]
    fits = all(len(weight) == 2 and min(weight) > 0 and bias == weight[:1] for weight, bias in shapes)
    if not shapes or not fits or any(before[0][0] != after[0][1] for before, after in pairwise(shapes)):
        raise ValueError(f"weights and biases of shapes {shapes} are no layers of a perceptron")
    if not all(np.isfinite(part).all() for layer in layers for part in layer):
        raise ValueError("the weights hold NaN or infinity")
    widths = [shapes[0][0][1], *(bias[0] for _, bias in shapes)]
    blocks = [part for weight, bias in layers[:-1] for part in (np.transpose(weight), bias[None])]
    blocks += [layers[-1][0], layers[-1][1][None]]
    columns = max(block.shape[1] for block in blocks)
    matrix = np.concatenate([np.pad(block, ((0, 0), (0, columns - block.shape[1]))) for block in blocks])
    return Network(np.ascontiguousarray(matrix, np.float32), np.array(widths, np.int64), relu)


def new_scratch(*networks: Network) -> Scratch:
    """Room to run any of these networks."""
    words = np.zeros(max(-(-int(net.widths[0]) // _BYTES) for net in networks), np.uint64)
    row = words.view(np.int8)
    widest = max(len(row), *(net.matrix.shape[1] for net in networks))
    return Scratch(row, words, np.zeros(widest, np.int64), np.zeros((2, widest), np.float32))


@jit
def _take_ones(scratch: Any) -> int:
    """List the inputs that are 1, and clear them; how many there are."""
    words, active = scratch.words, scratch.active
    count = 0
    for i in range(words.shape[0]):
        word = words[i]
        if word:
            words[i] = 0
            while word:
                active[count] = _BYTES * i + (lowest_bit(word) >> 3)
                word &= word - _ONE
                count += 1
    return count


@jit
def _add_rows(matrix: Any, active: Any, count: int, out: Any, width: int) -> None:
    """Add rows of a matrix to `out`."""
    n = 0
    while n + _AT_ONCE <= count:
        a, b, c, d = active[n], active[n + 1], active[n + 2], active[n + 3]
        for j in range(width):
            out[j] += (matrix[a, j] + matrix[b, j]) + (matrix[c, j] + matrix[d, j])
        n += _AT_ONCE
    while n < count:
        a = active[n]
        for j in range(width):
            out[j] += matrix[a, j]
        n += 1


@jit
def _add_scaled(matrix: Any, start: int, units: Any, active: Any, count: int, out: Any, width: int) -> None:
    """Add rows of a matrix, from row `start` on, to `out`, each times its unit."""
    n = 0
    while n + _AT_ONCE <= count:
        a, b, c, d = active[n], active[n + 1], active[n + 2], active[n + 3]
        p, q, r, s = units[a], units[b], units[c], units[d]
        a, b, c, d = start + a, start + b, start + c, start + d
        for j in range(width):
            out[j] += (p * matrix[a, j] + q * matrix[b, j]) + (r * matrix[c, j] + s * matrix[d, j])
        n += _AT_ONCE
    while n < count:
        a, p = start + active[n], units[active[n]]
        for j in range(width):
            out[j] += p * matrix[a, j]
        n += 1


@jit
def _activate(units: Any, width: int, relu: int, active: Any) -> int:
    """Apply the activation; the units that are not 0 are listed, and counted."""
    count = 0
    for j in range(width):
        value = units[j]
        value = max(value, np.float32(0.0)) if relu else np.tanh(value)
        units[j] = value
        active[count] = j
        count += value != 0
    return count


@jit
def _dot(weights: Any, units: Any, width: int) -> Any:
    a, b, c, d = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    j = 0
    while j + _AT_ONCE <= width:
        a += weights[j] * units[j]
        b += weights[j + 1] * units[j + 1]
        c += weights[j + 2] * units[j + 2]
        d += weights[j + 3] * units[j + 3]
        j += _AT_ONCE
    while j < width:
        a += weights[j] * units[j]
        j += 1
    return (a + b) + (c + d)


@jit
def forward(network: Any, scratch: Any, out: Any) -> None:
    """Write a network's outputs for the row in `scratch` to `out`; the row is zeros afterwards."""
    matrix, widths, active = network.matrix, network.widths, scratch.active
    count, last = _take_ones(scratch), widths.shape[0] - 2
    start = 0
    for layer in range(last):
        inputs, width = widths[layer], widths[layer + 1]
        units, before, biases = scratch.units[layer & 1], scratch.units[1 - (layer & 1)], matrix[start + inputs]
        for j in range(width):
            units[j] = biases[j]
        if layer == 0:
            _add_rows(matrix, active, count, units, width)
        else:
            _add_scaled(matrix, start, before, active, count, units, width)
        count = _activate(units, width, network.relu, active)
        start += inputs + 1
    inputs, outputs = widths[last], widths[last + 1]
    units = scratch.units[1 - (last & 1)]
    if last == 0:  # no hidden layer: the row itself
        for j in range(inputs):
            units[j] = 0.0
        for n in range(count):
            units[active[n]] = 1.0
    for k in range(outputs):
        out[k] = matrix[start + outputs, k] + _dot(matrix[start + k], units, inputs)


@jit
def _evaluate(network: Any, scratch: Any, rows: Any, out: Any) -> None:
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            scratch.row[j] = rows[i, j]
        forward(network, scratch, out[i])


def evaluate(network: Network, rows: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
    """A network's outputs for rows of zeros and ones, (n, outputs)."""
    out = np.zeros((len(rows), int(network.widths[-1])), np.float32)
    _evaluate(network, new_scratch(network), rows, out)
    return out
