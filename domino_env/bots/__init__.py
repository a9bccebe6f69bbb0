"""Scripted players, weakest first, and players by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..players import Player, PlayerSpec, Registry
from ..rules import RuleSet
from .scripted import SCRIPTED, ScriptedPlayer


def _scripted(kind: str) -> Callable[..., Player]:
    def make(rules: RuleSet, **preferences: float) -> Player:
        return ScriptedPlayer(rules, kind, **preferences)

    return make


#: Every player that has a name of its own.
PLAYERS: Final = Registry({name: _scripted(name) for name in SCRIPTED})


def make_player(spec: PlayerSpec, rules: RuleSet) -> Player:
    """The player that a name, a spec string or a callable stands for; see `players.Registry.make`."""
    return PLAYERS.make(spec, rules)


__all__ = ["PLAYERS", "ScriptedPlayer", "make_player"]
