"""The writing half of `notation`: what each line of a record says, as words.

The reading half verifies a record by writing the same lines again from what the engine plays, so
every line that can be derived is made here and nowhere else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ._checks import whole
from .events import Deal, Event, RoundResult
from .game import Game
from .match import Match
from .rules import RuleSet, preset_of
from .tiles import END_NAMES, HALVES, parse_tile

#: The format's version, written in every record's first line.
VERSION: Final = 1
#: No more events than this are written on one line.
EVENTS_A_LINE: Final = 12
#: Stands for None.
NOTHING: Final = "-"


def tile_word(name: str) -> str:
    """A tile as records write it, high half first: ``"6-4"``."""
    high, low = HALVES[parse_tile(name)]
    return f"{high}-{low}"


def event_word(event: Event) -> str:
    """``"0:6-6"``, ``"1:6-4L"``, ``"2:+5-1"`` or ``"3:pass"``."""
    if event.tile is None:
        return f"{event.seat}:pass"
    tile = tile_word(event.tile)
    if event.kind == "draw":
        return f"{event.seat}:+{tile}"
    end = "" if event.ends is None or event.end is None else "LR"[END_NAMES.index(event.end)]
    return f"{event.seat}:{tile}{end}"


def value_word(value: Any) -> str:
    """A field's value: ``-`` for None, ``true`` and ``false``, numbers in a row with commas between."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)


def rules_words(rules: RuleSet) -> list[str]:
    """The nearest preset and every field that differs from it, in the fields' order."""
    preset, changes = preset_of(rules)
    names = [spec.name for spec in dataclasses.fields(RuleSet) if spec.name in changes]
    return ["rules", preset, *(f"{name}={value_word(changes[name])}" for name in names)]


def start_words(game: Game) -> list[str]:
    """Who starts a round, with which tile, for what multiplier."""
    forced = NOTHING if game.forced is None else tile_word(game.forced)
    return ["start", f"seat={game.starter}", f"forced={forced}", f"multiplier={game.multiplier}"]


def result_words(result: RoundResult) -> list[str]:
    """A round's result: its reason, and all other fields by name."""
    fields = [spec.name for spec in dataclasses.fields(result) if spec.name != "reason"]
    return ["result", result.reason, *(f"{name}={value_word(getattr(result, name))}" for name in fields)]


def scores_words(scores: Iterable[int]) -> list[str]:
    """Each side's points."""
    return ["scores", *map(str, scores)]


def verdict_words(winner: int | None) -> list[str]:
    """How a match that is over ended."""
    return ["drawn"] if winner is None else ["winner", str(winner)]


def scores_before(game: Game) -> list[int]:
    """Each side's points when the round began."""
    scores, result = game.scores, game.result
    if result is not None and result.side is not None:
        scores[result.side] -= result.points
    return scores


def _deal_lines(deal: Deal) -> Iterator[str]:
    for seat, hand in enumerate(deal.hands):
        yield " ".join(["hand", f"{seat}:", *map(tile_word, hand)])
    if deal.boneyard:
        yield " ".join(["boneyard:", *map(tile_word, deal.boneyard)])


def _event_lines(game: Game) -> Iterator[str]:
    """The events, a line for each time the turn comes back to the starter."""
    line: list[str] = []
    last: int | None = None
    for event in game.events:
        if line and (len(line) == EVENTS_A_LINE or (event.seat == game.starter and event.seat != last)):
            yield " ".join(line)
            line = []
        line.append(event_word(event))
        last = event.seat
    if line:
        yield " ".join(line)


def _round_lines(game: Game) -> Iterator[str]:
    yield from _deal_lines(game.deal)
    yield " ".join(start_words(game))
    yield from _event_lines(game)
    result = game.result
    if result is not None:
        yield " ".join(result_words(result))
        yield " ".join(scores_words(game.scores))


def _lot_words(deal: Deal) -> list[str]:
    return [] if deal.lot is None else ["lot", str(deal.lot)]


def _heading(kind: str, rules: RuleSet, seed: int | None) -> Iterator[str]:
    yield f"domino {kind} {VERSION}"
    yield " ".join(rules_words(rules))
    if seed is not None:
        yield f"seed {seed}"


def deal_record(deal: Deal) -> Iterator[str]:
    """The lines of a record of a deal alone."""
    if not 2 <= len(deal.hands) <= 9 or not all(deal.hands):
        sizes = [len(hand) for hand in deal.hands]
        raise ValueError(f"a deal has 2 to 9 hands, none of them empty; given hands of {sizes} tiles")
    tiles = [parse_tile(name) for names in (*deal.hands, deal.boneyard) for name in names]
    if len(set(tiles)) < len(tiles):
        raise ValueError("a deal has no tile twice")
    if deal.lot is not None:
        whole("lot", deal.lot, 0, len(deal.hands) - 1)
    yield f"domino deal {VERSION}"
    yield from _deal_lines(deal)
    if deal.lot is not None:
        yield " ".join(_lot_words(deal))
    yield "end"


def game_record(game: Game) -> Iterator[str]:
    """The lines of a record of one round, or of a position in it."""
    yield from _heading("game", game.rules, game.seed)
    before = scores_before(game)
    if any(before):
        yield " ".join(scores_words(before))
    yield from _round_lines(game)
    yield "end"


def match_record(match: Match) -> Iterator[str]:
    """The lines of a record of a match, over or in progress, with the given deals it has still to come to."""
    yield from _heading("match", match.rules, match.seed)
    games, deals = match.games, match.deals
    for number, game in enumerate(games, 1):
        heading = ["round", str(number)]
        if match.seed is not None and number <= len(deals):
            heading += ["given", *_lot_words(deals[number - 1])]
        yield ""
        yield " ".join(heading)
        yield from _round_lines(game)
    for number, deal in enumerate(deals[len(games) :], len(games) + 1):
        yield ""
        yield " ".join(["deal", str(number), *_lot_words(deal)])
        yield from _deal_lines(deal)
    if match.over:
        yield ""
        yield " ".join(verdict_words(match.winner))
    yield "end"
