"""Go through the rounds of a record: every event, the table at the end of each round (or after each play)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from ..events import Deal
from ..game import Game
from .common import output_options, text_style, whole_number

_Item = TypeVar("_Item")


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("file", metavar="FILE", help="a record; '-' for the input")
    parser.add_argument("--match", type=whole_number, metavar="N", help="this one of the file alone")
    parser.add_argument("--round", type=whole_number, metavar="N", help="this round of each match alone")
    parser.add_argument("--tables", action="store_true", help="the table after each play")
    parser.add_argument("--step", action="store_true", help="as --tables, waiting for Enter after each")
    output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the rounds."""
    style = text_style(arguments)
    if arguments.step and arguments.file == "-":
        raise ValueError("--step reads Enter from the input, so the record must be a file")
    matches: Iterable[list[Game]] = matches_in(arguments.file)
    first = arguments.match or 1
    if arguments.match is not None:
        matches = [numbered("--match", arguments.match, matches)]
    for number, games in enumerate(matches, first):
        if not games:
            print(f"match {number}: a deal by itself, nothing was played\n")
        chosen = games if arguments.round is None else [numbered("--round", arguments.round, games)]
        for place, game in enumerate(chosen, arguments.round or 1):
            print(f"match {number}, round {place}")
            if not _go_through(game, style, arguments.tables or arguments.step, arguments.step):
                return 0
    return 0


def matches_in(path: str) -> Iterator[list[Game]]:
    """The matches of a record, each as its rounds; a round by itself is a match of one, a deal of none."""
    from .. import notation

    # The input's end is its own; `closefd` leaves it open.
    with open(path if path != "-" else sys.stdin.fileno(), encoding="utf-8", closefd=path != "-") as file:
        try:
            for item in notation.load(file):
                if isinstance(item, Deal):
                    yield []
                else:
                    yield [item] if isinstance(item, Game) else list(item.games)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def numbered(option: str, number: int, items: Iterable[_Item]) -> _Item:
    """Item `number` of these, from 1; ValueError naming the option where there are not so many."""
    count = 0
    for count, item in enumerate(items, 1):
        if count == number:
            return item
    there = "there is 1" if count == 1 else f"there are {count}"
    raise ValueError(f"{option} {number}: {there}, counted from 1")


def _go_through(game: Game, style: dict[str, Any], tables: bool, wait: bool) -> bool:
    """Print a round; False if the reader has had enough."""
    from ..render.facts import event_text, seat_names
    from ..render.text import table, to_ascii

    names = seat_names(game.rules)
    again = game.copy()
    while again.moves:
        again.undo()
    told = 0
    for move in game.moves:
        again.play(move.action)
        for event in again.events[told:]:
            text = f"  {event_text(event, names)}"
            print(to_ascii(text) if style["ascii_only"] else text)
        told = len(again.events)
        if tables and len(again.moves) < len(game.moves):
            print("\n" + table(again, last_events=0, **style) + "\n", flush=True)
            if wait and not _enter():
                return False
    print("\n" + table(game, last_events=0, **style) + "\n", flush=True)
    return not wait or _enter()


def _enter() -> bool:
    print("Enter goes on, q leaves: ", end="", flush=True)
    line = sys.stdin.readline()
    return bool(line) and line.strip().lower() not in ("q", "quit")
