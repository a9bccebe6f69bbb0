"""The events of a round as tokens, for recurrent and attention models.

A token is one number: who did what. With the observation vector, which holds the seat's tiles now,
the tokens give perfect recall: two histories that differ for a seat never give it the same tokens.
Like the vector they are made from views alone; seats count from the observer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ._jit import jit
from .observation import Views
from .rules import RuleSet, pack
from .state import DRAW, EVENT_NAMES, HIDDEN, PASS, PLAY
from .tiles import END_NAMES, TILE_NAMES

PADDING: Final = 0


class TokenEvent(NamedTuple):
    """What a token says; seat 0 is the observer, 1 the next in turn."""

    kind: str  # "play", "draw" or "pass"
    seat: int
    tile: str | None  # None for a pass and for a tile that another drew
    end: str | None  # "left" or "right" for a play


@jit
def write_tokens(view: Any, rules: Any, out: Any) -> None:
    """Write a view's events to `out` (int16, (length,)), oldest first, and padding after them."""
    players, tiles = int(rules["players"]), int(rules["tiles"])
    draws = 1 + players * 2 * tiles
    passes = draws + players * (tiles + 1)
    for i in range(out.shape[0]):
        if i >= view["num_events"]:
            out[i] = PADDING
            continue
        event: Any = np.int64(view["events"][i])
        kind, end, seat, tile = event & 3, event >> 2 & 1, event >> 3 & 15, event >> 7
        if kind == PLAY:
            out[i] = 1 + seat * 2 * tiles + 2 * tile + end
        elif kind == DRAW:
            out[i] = draws + seat * (tiles + 1) + (tiles if tile == HIDDEN else tile)
        else:
            out[i] = passes + seat


@jit
def _write_many(views: Any, rules: Any, out: Any) -> None:
    for v in range(out.shape[0]):
        write_tokens(views[v], rules[0], out[v])


@dataclass(frozen=True)
class History:
    """The tokens of a rule set's rounds.

    A round's tokens are int16, shape ``(length,)``, oldest first, 0 after the last. The others are
    numbered: plays by seat and action id, draws by seat and tile (the last for a tile not seen),
    passes by seat.
    """

    rules: RuleSet

    @property
    def length(self) -> int:
        """The most events a round can have, and so the number of tokens."""
        return self.rules.max_events

    @property
    def num_tokens(self) -> int:
        """Different tokens, padding included: the size of an embedding."""
        return self._passes + self.rules.players

    @property
    def _draws(self) -> int:
        return 1 + self.rules.players * self.rules.num_actions

    @property
    def _passes(self) -> int:
        return self._draws + self.rules.players * (self.rules.num_tiles + 1)

    def tokens(self, views: Views) -> npt.NDArray[np.int16]:
        """The tokens of a batch of views, int16 (n, length), newly allocated."""
        out = np.empty((len(views), self.length), np.int16)
        _write_many(views, pack(self.rules), out)
        return out

    def event(self, token: int) -> TokenEvent | None:
        """What a token says; None for padding.

        Raises:
            ValueError: there is no such token.
        """
        if not 0 <= token < self.num_tokens:
            raise ValueError(f"token {token!r}: tokens go from 0 to {self.num_tokens - 1}")
        if token == PADDING:
            return None
        if token >= self._passes:
            return TokenEvent(EVENT_NAMES[PASS], token - self._passes, None, None)
        if token >= self._draws:
            seat, tile = divmod(token - self._draws, self.rules.num_tiles + 1)
            return TokenEvent(EVENT_NAMES[DRAW], seat, TILE_NAMES[tile] if tile < self.rules.num_tiles else None, None)
        seat, action = divmod(token - 1, self.rules.num_actions)
        return TokenEvent(EVENT_NAMES[PLAY], seat, TILE_NAMES[action >> 1], END_NAMES[action & 1])
