"""What `render()` returns, for every environment."""

from __future__ import annotations

from typing import Any, Final

import gymnasium
import numpy as np

from ..events import View, tile_names, view_of
from ..observation import look_many, new_views
from ..rules import RuleSet, pack
from ..state import NONE, State

RENDER_MODES: Final = ("ansi", "rgb_array", "human")


def seen_by(state: State, rules: RuleSet, seat: int) -> View:
    """What `seat` knows at the first table; all hands too once the round is over."""
    record = new_views(rules, 1)
    look_many(state, pack(rules), np.zeros(1, np.int64), np.array([seat]), record)
    over = state["seat"][0] == NONE
    hands = [tile_names(hand) for hand in state["hands"][0].tolist()[: rules.players]] if over else None
    return view_of(rules, record, hands)


def show(mode: str | None, view: View) -> Any:
    """A view as this render mode gives it: str, uint8 (height, width, 3), or None once it is printed."""
    if mode is None:
        gymnasium.logger.warn("render() was called on an environment made without a render_mode")
        return None
    if mode == "rgb_array":
        from ..render.rgb import picture

        return picture(view)
    from ..render.text import table

    text = table(view)
    if mode == "ansi":
        return text
    print(text)
    return None
