"""Nodes of the game tree that a seat could not tell from the true one: `belief`'s deals, as paths of the tree.

`envs.redeal` deals hidden tiles again as well, by a walk over records that looks at no view: it measures
whether a view gives anything away, and a sampler that starts from the view could not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..belief import Belief
from ..state import PLAY
from ._tree import DEAL, DECISION, DRAWING, LOT, Node


class Redealer:
    """Samples nodes that look to `observer` as `node` does.

    Args:
        node: a node with a decision.
        observer: whose knowledge counts.

    Raises:
        ValueError: the node has no decision to make.
    """

    def __init__(self, node: Node, observer: int) -> None:
        if node.kind != DECISION:
            raise ValueError(f"tiles are dealt again where a seat has to decide; this node is {node.kind!r}")
        self.node = node
        self._belief = Belief(node.rules, node.view(observer))
        events = node.events().tolist()
        self._plays = [2 * (event >> 7) + (event >> 2 & 1) for event in events if event & 3 == PLAY]

    def sample(self, uniform: Callable[[], float]) -> tuple[Node, list[int]]:
        """A node like the true one, and what was applied to come to it; `uniform` gives numbers from 0 to below 1."""
        row = self._belief.sample(1, seed=int(uniform() * 2**53))[0]
        return self._replayed(row)

    def _replayed(self, row: Any) -> tuple[Node, list[int]]:
        """The node to which the same plays lead from the deal of a record."""
        other, path = Node(self.node.rules, self.node.outcome), list[int]()
        deck, size = row["deck"].tolist(), self.node.rules.hand_size
        hands = [sorted(deck[seat * size : seat * size + size]) for seat in range(self.node.rules.players)]
        boneyard, plays = iter(deck[size * len(hands) :]), iter(self._plays)
        while True:
            action: int | None
            if other.kind == DEAL:
                seat = other.next_seat
                action = hands[seat][other.dealt[seat].bit_count()]
            elif other.kind == LOT:
                action = int(row["starter"])
            elif other.kind == DRAWING:
                action = next(boneyard)
            elif (action := next(plays, None)) is None:
                return other, path
            other.apply(action)
            path.append(action)
