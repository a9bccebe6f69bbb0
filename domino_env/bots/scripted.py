"""Scripted players: a move's score is a weighted sum of what speaks for it, and the best is played.

A player is a row of weights, so all of them are one compiled function. Ties go to the first action,
except for a player that draws among its best moves.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .._checks import near, one_of
from .._jit import jit, lowest_bit
from .._rng import next_u32
from ..observation import Views
from ..players import Player, Streams
from ..rules import RuleSet
from ..tiles import HIGH, LOW, PIPS

#: What may speak for a move, in the order of the weights.
PREFERENCES: Final = ("pips", "double")
#: A kind's weights, and whether it draws among equally good moves.
SCRIPTED: Final[MappingProxyType[str, tuple[dict[str, float], bool]]] = MappingProxyType(
    {
        "random": ({}, True),
        "heaviest": ({"pips": 1.0}, False),
        "doubles": ({"double": 100.0, "pips": 1.0}, False),
    }
)
#: The record that a scripted player is.
WEIGHTS: Final = np.dtype([("values", np.float64, (len(PREFERENCES),)), ("draws", np.int64)])

_ONE = np.uint64(1)
_S32 = np.uint64(32)


@jit
def score(view: Any, weights: Any, tile: int, end: int) -> Any:
    """How much speaks for playing `tile` at `end`."""
    double = 1.0 if HIGH[tile] == LOW[tile] else 0.0
    return weights["values"][0] * PIPS[tile] + weights["values"][1] * double


@jit
def choose(view: Any, weights: Any, bits: Any) -> int:
    """The best legal action; of equals the first, or one drawn with the 32 random `bits`."""
    best, equals = -np.inf, 0
    for end in range(2):
        word = view["legal"][end]
        while word:
            value = score(view, weights, lowest_bit(word), end)
            word &= word - _ONE
            if value > best:
                best, equals = value, 1
            elif value == best:
                equals += 1
    left = np.int64(bits * np.uint64(equals) >> _S32) if weights["draws"] else 0
    for end in range(2):
        word = view["legal"][end]
        while word:
            tile = lowest_bit(word)
            word &= word - _ONE
            if score(view, weights, tile, end) == best:
                if left == 0:
                    return 2 * tile + end
                left -= 1
    return -1


@jit
def _choose_many(views: Any, weights: Any, states: Any, rows: Any, out: Any) -> None:
    for v in range(views.shape[0]):
        out[v] = choose(views[v], weights[0], next_u32(states[rows[v]]))


class ScriptedPlayer(Player):
    """A player made of weights.

    Args:
        rules: ignored; scripted players know all games.
        kind: one of `SCRIPTED`, whose weights are the start.
        preferences: weights by name that replace the kind's.
    """

    def __init__(self, rules: RuleSet, kind: str = "random", **preferences: float) -> None:
        super().__init__(rules)
        one_of("kind", kind, tuple(SCRIPTED))
        for name, weight in preferences.items():
            if name not in PREFERENCES:
                raise ValueError(
                    f"{name!r} is not a preference{near(name, PREFERENCES)}; preferences: {', '.join(PREFERENCES)}"
                )
            if isinstance(weight, bool | str) or not np.isfinite(weight):
                raise ValueError(f"{name}={weight!r} is not a finite number")
        values, draws = SCRIPTED[kind]
        merged = {**values, **preferences}
        self.name = kind
        self.weights = np.zeros(1, WEIGHTS)
        self.weights["values"] = [merged.get(name, 0.0) for name in PREFERENCES]
        self.weights["draws"] = draws

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """The best legal action by the weights for each view, (n,)."""
        out = np.empty(len(views), np.int64)
        _choose_many(views, self.weights, rng.states, rng.index, out)
        return out
