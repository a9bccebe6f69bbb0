"""What a picture shows of a round, taken from a whole `Game` or from one seat's `View`, and its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..events import Event, Move, RoundResult, View
from ..game import Game
from ..rules import RuleSet, preset_of
from .layout import opening_index

FINISH_WORDS = {"simples": "simples", "carroca": "carroça", "la-e-lo": "lá-e-lô", "cruzada": "cruzada"}


@dataclass(frozen=True)
class Table:
    """A round as a painter shows it. From a view, what the observer does not know is not in it."""

    rules: RuleSet
    observer: int | None  # None: everything is shown
    chain: list[str]
    opening: int  # the opening tile's index in the chain
    ends: tuple[int, int] | None
    hands: list[list[str] | None]  # None where only the count is known
    counts: list[int]
    boneyard: int
    to_act: int | None
    starter: int
    scores: list[int]
    multiplier: int
    round: int  # from 1
    events: tuple[Event, ...]
    legal_moves: list[Move]
    result: RoundResult | None  # None too where a view does not tell it

    @property
    def last_tile(self) -> int | None:
        """The index in the chain of the tile placed last."""
        if not self.chain:
            return None
        played = next(event for event in reversed(self.events) if event.kind == "play")
        return 0 if played.end == "left" else len(self.chain) - 1

    @property
    def home(self) -> int:
        """The seat drawn nearest."""
        return 0 if self.observer is None else self.observer


def table_of(source: Game | View) -> Table:
    """What to show of a game (everything) or of a view (what its seat knows).

    Raises:
        ValueError: neither of the two.
    """
    if isinstance(source, Game):
        view, observer = source.view(source.seat or 0), None
        hands: list[list[str] | None] = [*source.hands]
        events, result, legal = source.events, source.result, source.legal_moves()
    elif isinstance(source, View):
        view, observer = source, source.seat
        hands = [None] * source.rules.players if source.hands is None else [*source.hands]
        hands[source.seat] = source.hand
        events, result, legal = source.events, None, source.legal_moves
    else:
        raise ValueError(f"{source!r} cannot be drawn: give a Game or a View")
    return Table(
        rules=view.rules,
        observer=observer,
        chain=view.chain,
        opening=min(opening_index(events), max(0, len(view.chain) - 1)),
        ends=view.ends,
        hands=hands,
        counts=view.counts,
        boneyard=view.boneyard,
        to_act=view.to_act,
        starter=view.starter,
        scores=view.scores,
        multiplier=view.multiplier,
        round=int(view.record["round"][0]) + 1,
        events=events,
        legal_moves=legal,
        result=result,
    )


def seat_names(rules: RuleSet, names: Sequence[str] | None = None) -> list[str]:
    """What to call each seat: ``"seat 0"``, …, unless `names` are given, one a seat."""
    if names is None:
        return [f"seat {seat}" for seat in range(rules.players)]
    if len(names) != rules.players:
        raise ValueError(f"names={list(names)!r}: {len(names)} given for {rules.players} players")
    return list(names)


def side_name(rules: RuleSet, side: int, names: Sequence[str]) -> str:
    """What to call a side: its seats' names, joined."""
    return " + ".join(names[side :: rules.num_sides])


def title_of(table: Table) -> str:
    """The game, the round, the target, and what ties have made the round worth."""
    preset, changes = preset_of(table.rules)
    parts = [preset.replace("_", " ") + (" (changed)" if set(changes) - {"players", "hand_size", "target"} else "")]
    if table.rules.target is not None:
        parts += [f"round {table.round}", f"to {table.rules.target}"]
    if table.multiplier > 1:
        parts.append(f"worth x{table.multiplier}")
    return ", ".join(parts)


def event_text(event: Event, names: Sequence[str]) -> str:
    """An event in words: ``"seat 1 plays 6-4 on the left"``."""
    who = names[event.seat]
    if event.kind == "pass":
        return f"{who} {_does('pass', who)}"
    if event.kind == "draw":
        return f"{who} {_does('draw', who)}" + (f" {event.tile}" if event.tile is not None else "")
    if event.ends is None:
        return f"{who} {_does('open', who)} with {event.tile}"
    return f"{who} {_does('play', who)} {event.tile} on the {event.end}"


def _does(verb: str, who: str) -> str:
    """The verb's form for this name, which may be ``"you"``."""
    if who == "you":
        return verb
    return verb + ("es" if verb.endswith("s") else "s")


def result_text(result: RoundResult, rules: RuleSet, names: Sequence[str]) -> str:
    """How a round ended and what it was worth, in words."""
    if result.reason == "out":
        assert result.seat is not None
        how = f"{names[result.seat]} went out"
        if result.finish is not None:
            how += f" with {FINISH_WORDS[result.finish]}"
    else:
        how = "blocked"
    if result.side is None:
        return f"{how} and tied: nobody scores"
    worth = f"{result.points} point" + ("" if result.points == 1 else "s")
    if result.multiplier > 1:
        worth += f" ({result.base} x {result.multiplier})"
    return f"{how}: {side_name(rules, result.side, names)} scored {worth}"
