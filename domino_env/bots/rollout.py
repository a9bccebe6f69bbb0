"""Games between scripted players, played to their end in one compiled pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .._jit import jit
from .._rng import next_u32
from ..batch import Batch, settle
from ..kernel import play
from ..observation import look, new_views
from ..players import Player, Streams
from ..rules import pack
from .scripted import choose, weights_of


@jit
def _play_out(state, rules, weights, streams, match, lo, hi, views, points):  # type: ignore[no-untyped-def]
    """Play tables `lo` to `hi` to the end of their episodes; ``weights[seat]`` plays each seat."""
    view, sides = views[0], int(rules[0]["sides"])
    for t in range(lo, hi):
        row, over = state[t], False
        while not over:
            seat = int(row["seat"])
            look(row, rules[0], seat, view)
            for side in range(sides):
                row["rewards"][side] = 0.0
            play(row, rules[0], choose(view, rules[0], weights[seat], next_u32(streams[t])))
            over = settle(row, rules[0], match, False, False)
            for side in range(sides):
                points[t, side] += row["rewards"][side]


def play_out(batch: Batch, seats: Sequence[Player], streams: Streams) -> npt.NDArray[np.float64] | None:
    """Play a batch's episodes to their end; the points of each side, (n, sides).

    None, and nothing played, where a player is not made of weights alone. What is played is what
    asking the players for each decision would give.
    """
    parts = [weights_of(player) for player in seats]
    if any(part is None for part in parts):
        return None
    weights = np.concatenate([part for part in parts if part is not None])
    points = np.zeros((batch.num_tables, batch.rules.num_sides))
    rules = pack(batch.rules)
    batch.in_parts(
        lambda lo, hi: _play_out(
            batch.state, rules, weights, streams.states, batch.match, lo, hi, new_views(batch.rules, 1), points
        )
    )
    return points
