"""Perft: how many sequences of plays there are from a position, the usual check of a move generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._checks import whole
from ._jit import jit, lowest_bit
from .game import Game
from .kernel import num_legal, play
from .rules import pack
from .state import NONE, new_state

_ONE = np.uint64(1)


@jit
def _count(stack: Any, rules: Any, depth: int, left: Any) -> int:
    """Sequences of `depth` plays from ``stack[0]``, depth first; `left[d]`: level d's moves still to try."""
    total, d = 0, 0
    left[0] = stack[0]["legal"]
    while d >= 0:
        if d == depth - 1:  # the last plays need not be made to be counted
            total += num_legal(stack[d])
            d -= 1
            continue
        end = 0 if left[d, 0] else 1
        word = left[d, end]
        if not word:
            d -= 1
            continue
        left[d, end] = word & (word - _ONE)
        stack[d + 1] = stack[d]
        play(stack[d + 1], rules[0], 2 * lowest_bit(word) + end)
        if stack[d + 1]["seat"] != NONE:
            d += 1
            left[d] = stack[d]["legal"]
    return total


def perft(game: Game, depth: int) -> int:
    """The number of different sequences of exactly `depth` plays from the game's position.

    A tile that fits both ends makes two plays, also where both ends show the same number. Draws and
    passes are forced and count nothing. Sequences that end the round before `depth` plays are not
    counted. The game is left as it is.

    Raises:
        ValueError: `depth` is not a whole number from 0 to the number of tiles in the set.
    """
    depth = whole("depth", depth, 0, game.rules.num_tiles)
    if depth == 0:
        return 1
    stack = new_state(game.rules, depth)
    stack[0] = game._state[0]
    return int(_count(stack, pack(game.rules), depth, np.zeros((depth, 2), np.uint64)))
