"""Play players against each other on duplicate deals and print a verdict for each pair."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import rules_from, rules_options, seed_option, whole_number


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("players", nargs="+", metavar="PLAYER", help="two or more names or spec strings")
    parser.add_argument("--deals", type=whole_number, default=10_000, metavar="N", help="for each pair (default 10000)")
    parser.add_argument("--episode", default="round", metavar="KIND", help="round or match (default round)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the results there too")
    rules_options(parser)
    seed_option(parser, 0)


def run(arguments: argparse.Namespace) -> int:
    """Play every pair, print the verdicts and then the table of shares won."""
    from ..arena import cross_table, share_table, to_csv, to_json

    rules = rules_from(arguments)
    if len(arguments.players) < 2:
        raise ValueError(f"{arguments.players[0]!r} alone: give two or more players")
    results = cross_table(
        arguments.players, rules, deals=arguments.deals, seed=arguments.seed, episode=arguments.episode, told=print
    )
    if len(arguments.players) > 2:
        print("\n" + share_table(results))
    for file, text in ((arguments.json, to_json), (arguments.csv, to_csv)):
        if file is not None:
            file.write_text(text(results), encoding="utf-8")
    return 0
