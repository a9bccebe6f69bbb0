"""Print or paint a position: of a deal after some random plays, or of a record.

Everything is shown, unless a seat is given: then only what that seat knows.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .common import (
    output_options,
    rules_from,
    rules_options,
    seat_option,
    seed_option,
    text_style,
    whole_number,
)

if TYPE_CHECKING:
    from ..game import Game


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="a record; without one, a deal by --seed")
    parser.add_argument("--match", type=whole_number, default=1, metavar="N", help="of the file (default 1)")
    parser.add_argument("--round", type=whole_number, default=1, metavar="N", help="of the match (default 1)")
    parser.add_argument(
        "--plays",
        type=whole_number,
        metavar="N",
        help="after this many plays: of the record (default all), or random ones by the seed (default 0)",
    )
    parser.add_argument("--seat", type=whole_number, metavar="N", help="as this seat sees it")
    rules_options(parser)
    seed_option(parser, 0)
    output_options(parser)
    group = parser.add_argument_group("pictures")
    group.add_argument("--svg", metavar="FILE", help="write an SVG picture ('-' for the output)")
    group.add_argument("--png", metavar="FILE", help="write a PNG picture (needs Pillow)")
    group.add_argument("--size", default="960x640", metavar="WxH", help="in pixels (default 960x640)")


def run(arguments: argparse.Namespace) -> int:
    """Show the position."""
    game = _recorded(arguments) if arguments.file is not None else _played(arguments)
    seat = seat_option(arguments.seat, game.rules)
    shown = game if seat is None else game.view(seat)
    size = _size(arguments.size)
    if arguments.svg is not None:
        from ..render.svg import table as painted

        text = painted(shown, size)
        if arguments.svg == "-":
            sys.stdout.write(text)
        else:
            Path(arguments.svg).write_text(text, encoding="utf-8")
    if arguments.png is not None:
        from ..render.rgb import picture, write_png

        write_png(arguments.png, picture(shown, size))
    if arguments.svg is None and arguments.png is None:
        from ..render.text import table

        print(table(shown, **text_style(arguments)))
    return 0


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal() and 160 <= int(width) <= 8192 and 120 <= int(height) <= 8192):
        raise ValueError(f"--size {text!r}: write width x height in pixels, from 160x120 to 8192x8192")
    return int(width), int(height)


def _played(arguments: argparse.Namespace) -> Game:
    rules = rules_from(arguments)
    from ..game import Game

    game = Game(rules, arguments.seed)
    game.play_out(arguments.seed)
    return _after(game, arguments.plays or 0)


def _after(game: Game, plays: int) -> Game:
    """The game after its first `plays` plays."""
    played = len(game.moves)
    if plays > played:
        raise ValueError(f"--plays {plays}: the round has only {played}")
    for _ in range(played - plays):
        game.undo()
    return game


def _recorded(arguments: argparse.Namespace) -> Game:
    from .replay import matches_in, numbered

    match = numbered("--match", arguments.match, matches_in(arguments.file))
    game = numbered("--round", arguments.round, match).copy()
    return game if arguments.plays is None else _after(game, arguments.plays)
