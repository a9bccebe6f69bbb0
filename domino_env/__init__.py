"""Dominoes as an environment for reinforcement learning: exact rules, a compiled kernel, standard interfaces."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .envs.registration import register_all
from .rules import PRESETS, RuleSet, make_rules

if TYPE_CHECKING:
    from .batch import Batch, IllegalAction
    from .events import Deal, Event, Move, RoundResult, View
    from .game import Game
    from .history import History
    from .match import Match
    from .observation import Encoding

__version__ = "0.1.0"

# Imported when first asked for: they need numba, which alone takes longer to import than the rest.
_LAZY = {
    "Batch": "batch",
    "Deal": "events",
    "Encoding": "observation",
    "Event": "events",
    "Game": "game",
    "History": "history",
    "IllegalAction": "batch",
    "Match": "match",
    "Move": "events",
    "RoundResult": "events",
    "View": "events",
}

__all__ = [
    "PRESETS",
    "Batch",
    "Deal",
    "Encoding",
    "Event",
    "Game",
    "History",
    "IllegalAction",
    "Match",
    "Move",
    "RoundResult",
    "RuleSet",
    "View",
    "make_rules",
]


register_all()


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
