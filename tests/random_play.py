"""Random play of rounds and matches, and settings for tests that try few examples."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from hypothesis import settings

from domino_env import Game, Match, RuleSet

few = settings(max_examples=80, deadline=None)


def positions(rules: RuleSet, seed: int) -> Iterator[Game]:
    """A round before each of its decisions."""
    game, rng = Game(rules, seed=seed), Random(seed)
    while game.seat is not None:
        yield game
        game.play(rng.choice(game.legal_moves()))


def play_on(match: Match, random: Random, moves: int) -> None:
    """Random legal play for some moves, at most to the end of the match."""
    while moves and not match.over:
        match.play(random.choice(match.game.legal_moves()))
        moves -= 1
