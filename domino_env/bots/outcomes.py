"""Counting how rounds end between equal players, which match equity is computed from."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from .._checks import whole
from ..batch import Batch
from ..equity import Outcomes, check_two_sides
from ..players import Player, PlayerSpec, Streams
from ..rules import RuleSet
from ..state import NONE
from . import make_player
from .rollout import play_out

_CHUNK = 16384


def measure(rules: RuleSet, player: PlayerSpec = "counting", *, rounds: int = 100_000, seed: int = 0) -> Outcomes:
    """Count how rounds end when `player` sits at every seat.

    Args:
        rules: with two sides.
        player: a scripted player.
        rounds: how many first rounds, and how many later ones.
        seed: what deals and the player's random numbers follow from.

    Raises:
        ValueError: more than two sides, or a player that is not scripted.
    """
    check_two_sides(rules)
    rounds, made = whole("rounds", rounds, 1), make_player(player, rules)
    # In a later round the starter is known beforehand and opens with any tile; lots make either side start.
    free = dataclasses.replace(rules, opening="lots")
    first, later = (_count(kind, made, rounds, seed, purpose) for kind, purpose in ((rules, 32), (free, 33)))
    return Outcomes(rules, made.name, seed, first, later)


def _count(rules: RuleSet, player: Player, rounds: int, seed: int, purpose: int) -> npt.NDArray[np.int64]:
    """The counts of first rounds under `rules`, as `Outcomes` holds them."""
    counts = np.zeros((3, 1, 2), np.int64)
    for start in range(0, rounds, _CHUNK):
        n = min(_CHUNK, rounds - start)
        batch = Batch(rules, n, seed, autoreset=False, observe=False, first_table=start)
        streams = Streams.from_seed(seed, n, purpose=purpose, first=start)
        if play_out(batch, [player] * rules.players, streams) is None:
            raise ValueError(f"player={player.name!r} is not a scripted player, which rounds are counted with")
        state = batch.state
        own = state["starter"] % 2
        scored = np.where(state["winning_side"] == NONE, 2, state["winning_side"] ^ own)
        last, points = state["last"] % 2 ^ own, state["base"]
        if (more := int(points.max()) + 1 - counts.shape[1]) > 0:
            counts = np.pad(counts, ((0, 0), (0, more), (0, 0)))
        np.add.at(counts, (scored, points, last), 1)
    return counts
