"""Play players against each other on duplicate deals and print a verdict for each pair."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .common import rules_from, rules_options, seed_option, whole_number

if TYPE_CHECKING:
    from ..arena import Duel

_SECONDS_BETWEEN = 0.2


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument(
        "players", nargs="+", metavar="PLAYER", help="two or more names, spec strings or addresses (http://host:port)"
    )
    parser.add_argument("--deals", type=whole_number, default=10_000, metavar="N", help="for each pair (default 10000)")
    parser.add_argument("--episode", default="round", metavar="KIND", help="round or match (default round)")
    parser.add_argument("--workers", type=whole_number, default=1, metavar="N", help="processes that play (default 1)")
    parser.add_argument(
        "--forfeit",
        action="store_true",
        help="a player that fails loses that game; without, its error ends the command",
    )
    parser.add_argument("--anchor", metavar="PLAYER", help="whose rating is 0 (default random, else the mean is 0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="paint the table there (.png, .svg or .pdf)")
    rules_options(parser)
    seed_option(parser, 0)


def run(arguments: argparse.Namespace) -> int:
    """Play every pair, print the verdicts, then the table of shares won and the ratings; write the files."""
    from ..arena import Stopped, cross_table
    from ..bots import make_player

    rules, names = rules_from(arguments), arguments.players
    if len(names) < 2:
        raise ValueError(f"{names[0]!r} alone: give two or more players")
    if arguments.anchor is not None:
        called = [make_player(name, rules).name for name in names]
        if arguments.anchor not in called:
            raise ValueError(f"--anchor {arguments.anchor!r} is not one of the players: {', '.join(called)}")
    if arguments.picture is not None:
        _check_picture(arguments.picture)
    progress = _Progress(len(names) * (len(names) - 1) // 2, arguments.deals)
    try:
        results = cross_table(
            names,
            rules,
            deals=arguments.deals,
            seed=arguments.seed,
            episode=arguments.episode,
            forfeit=arguments.forfeit,
            workers=arguments.workers,
            told=progress.tell,
            progress=progress if sys.stderr.isatty() else None,
        )
    except Stopped as stopped:
        for result in stopped.duels[progress.told :]:
            progress.tell(result)
        progress.clear()
        print("stopped; these are the results up to then", file=sys.stderr)
        _report(stopped.duels, arguments)
        return 130
    _report(results, arguments)
    return 0


def _report(results: Sequence[Duel], arguments: argparse.Namespace) -> None:
    from ..arena import picture, share_table, to_csv, to_json
    from ..rating import ratings

    rated = None
    names = {name for result in results for name in (result.player, result.opponent)}
    if len(names) > 2:
        anchor = arguments.anchor or ("random" if "random" in names else None)
        rated = ratings(results, anchor=anchor if anchor in names else None)
        print(f"\n{share_table(results)}\n\n{rated}")
    for file, text in ((arguments.json, to_json), (arguments.csv, to_csv)):
        if file is not None:
            file.write_text(text(results), encoding="utf-8")
    if arguments.picture is not None and results:
        picture(results, arguments.picture, ratings=rated)


def _check_picture(file: Path) -> None:
    """Refuse before anything is played what could not be painted after it."""
    if file.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--picture {file}: its name must end with .png, .svg or .pdf")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError("--picture needs Matplotlib: pip install matplotlib") from None


class _Progress:
    """Tells results as they come, and at a terminal how far the one in play is."""

    def __init__(self, pairs: int, deals: int) -> None:
        self.pairs, self.deals = pairs, deals
        self.told = 0
        self._begun = time.monotonic()
        self._shown = 0.0
        self._width = 0

    def __call__(self, player: str, opponent: str, played: int) -> None:
        now = time.monotonic()
        if now - self._shown < _SECONDS_BETWEEN:
            return
        self._shown = now
        done = (self.told + played / self.deals) / self.pairs
        left = (now - self._begun) * (1 - done) / done
        text = (
            f"{self.told + 1}/{self.pairs} {player} against {opponent}: {played:,} of {self.deals:,} deals, "
            f"about {left:,.0f} s left in all"
        )
        print(f"\r{text:<{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(text)

    def tell(self, result: Duel) -> None:
        """Print a result in place of the line that told how far it was."""
        self.clear()
        self.told += 1
        print(result, flush=True)

    def clear(self) -> None:
        """Wipe the line."""
        if self._width:
            print(f"\r{'':<{self._width}}\r", end="", file=sys.stderr, flush=True)
            self._width = 0
