"""Count the lines of play from a deal, depth by depth: a check that two engines know the same rules."""

from __future__ import annotations

import argparse
import time

from .common import rules_from, rules_options, seed_option, whole_number


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("--depth", type=whole_number, default=6, metavar="N", help="plays ahead (default 6)")
    rules_options(parser)
    seed_option(parser, 0)


def run(arguments: argparse.Namespace) -> int:
    """Print the counts, each with the time it took."""
    rules = rules_from(arguments)
    if not 1 <= arguments.depth <= rules.num_tiles:
        raise ValueError(f"--depth {arguments.depth}: give 1 to {rules.num_tiles}, the tiles of the set")
    from ..game import Game
    from ..perft import perft

    game = Game(rules, arguments.seed)
    print(f"{arguments.preset}, seed {arguments.seed}")
    perft(game, 1)  # compiles it
    for depth in range(1, arguments.depth + 1):
        start = time.perf_counter()
        count = perft(game, depth)
        print(f"depth {depth:>2}  {count:>15,}  {time.perf_counter() - start:8.2f} s", flush=True)
    return 0
