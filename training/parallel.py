"""Several threads at work on parts of the same rows: torch's products let go of Python's lock.

torch can share one product among threads itself, but then they wait for each other at every product, and where the
machine has other work that costs more than it gains. Here they meet once for a whole pass through a network.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

R = TypeVar("R")
#: What differentiates a part of a minibatch: its share of the loss, and of what to note.
LossOf = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


class Threads:
    """So many threads, the caller's among them; torch uses one in each.

    Results come in the order of the rows, whichever thread was first, so that runs can be repeated.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._others = (
            ThreadPoolExecutor(count - 1, initializer=torch.set_num_threads, initargs=(1,)) if count > 1 else None
        )

    def each(self, do: Callable[[torch.Tensor], R], rows: torch.Tensor) -> list[R]:
        """What `do` gives for each thread's part of the rows."""
        if self._others is None or len(rows) < self.count:
            return [do(rows)]
        first, *parts = rows.tensor_split(self.count)
        begun = [self._others.submit(do, part) for part in parts]
        return [do(first), *(part.result() for part in begun)]

    def differentiate(self, loss_of: LossOf, rows: torch.Tensor, parameters: list[torch.Tensor]) -> torch.Tensor:
        """Set the parameters' gradients to those of the sum of all parts' losses; the sum of what they note."""

        def one(part: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
            loss, noted = loss_of(part)
            return torch.autograd.grad(loss, parameters), noted

        parts = self.each(one, rows)
        for parameter, *gradients in zip(parameters, *(found for found, _ in parts), strict=True):
            parameter.grad = sum(gradients[1:], start=gradients[0])
        return sum((noted for _, noted in parts[1:]), start=parts[0][1])
