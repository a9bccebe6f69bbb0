"""Print a deal: the hands, the boneyard in the order it is drawn from, and who starts."""

from __future__ import annotations

import argparse

from .common import rules_from, rules_options, seed_option


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    rules_options(parser)
    seed_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the deal."""
    rules = rules_from(arguments)
    from .._rng import check_seed
    from ..game import Game
    from ..render.text import hand_text

    seed = check_seed(arguments.seed)
    game = Game(rules, seed)
    print(f"{arguments.preset}, seed {seed}")
    for seat, hand in enumerate(game.hands):
        print(f"seat {seat}    {hand_text(hand)}")
    if game.boneyard:
        print(f"boneyard  {hand_text(game.boneyard)}")
    forced = "" if game.forced is None else f" with {game.forced}"
    print(f"seat {game.starter} starts{forced}")
    return 0
