"""Scripted players, weakest first, and players by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..players import Player, PlayerSpec, Registry
from ..rules import RuleSet
from .scripted import SCRIPTED, ScriptedPlayer


def _search(rules: RuleSet, **options: Any) -> Player:
    from .search import SearchPlayer  # not before it is asked for: it brings the solver along

    return SearchPlayer(rules, **options)


def _champion(rules: RuleSet, **options: Any) -> Player:
    from .champion import ChampionPlayer

    return ChampionPlayer(rules, **options)


def _oracle(rules: RuleSet, **options: Any) -> Player:
    from .oracle import OraclePlayer

    return OraclePlayer(rules, **options)


def _remote(rules: RuleSet, **options: Any) -> Player:
    from ..remote.player import HTTPPlayer  # Python's HTTP client takes a while to import

    return HTTPPlayer(rules, **options)


def _scripted(kind: str) -> Callable[..., Player]:
    def make(rules: RuleSet, **preferences: float) -> Player:
        return ScriptedPlayer(rules, kind, **preferences)

    return make


#: Every player that has a name of its own; beside these, players behind an address, and a checkout's released policies.
PLAYERS: Final = Registry(
    {**{name: _scripted(name) for name in SCRIPTED}, "search": _search, "champion": _champion, "oracle": _oracle},
    schemes={"http": _remote},
    folders={"zoo": "agents.zoo:Zoo"},
)


def make_player(spec: PlayerSpec, rules: RuleSet) -> Player:
    """The player that a name, a spec string or a callable stands for; see `players.Registry.make`."""
    return PLAYERS.make(spec, rules)


__all__ = ["PLAYERS", "ScriptedPlayer", "make_player"]
