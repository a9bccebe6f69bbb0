"""The solver, timed on random deals and checked two ways.

    python tests/check_solver.py --deals 200 --endings 200

Each deal is solved from where its first tile lies (and duplas from where eight lie as well), on one thread.
Its certificate: the line that comes with a value, played in a game, ends the round with that value; the best
of the moves' values is the value; and between two sides, what one gains the other loses. That no better play
exists is checked on endings: what every move is worth, found by looking at all play to the end of the round
in the reference model, without a table and without cutting anything off.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable, Iterator
from random import Random

import numpy as np
from compare_with_reference import read, reference_rules
from reference import ReferenceRound
from strategies import TABLES

from domino_env import Game, RuleSet
from domino_env.bots.solver import (
    Payoff,
    Work,
    move_values,
    new_work,
    points_payoff,
    set_payoff,
    solve,
    value_of,
    win_payoff,
)
from domino_env.rules import pack

#: What a finished round of the reference model is worth to a side.
Worth = Callable[[ReferenceRound, int], float]


def points(round_: ReferenceRound, side: int) -> float:
    """What the side gains or loses."""
    return float(round_.rewards()[side])


def wins(round_: ReferenceRound, side: int) -> float:
    """1, 0 or −1."""
    assert round_.result is not None
    winner = round_.result.side
    return 0.0 if winner is None else 1.0 if winner == side else -1.0


WORTHS: dict[str, Worth] = {"points": points, "win": wins}
PAYOFFS: dict[str, Callable[[RuleSet], Payoff]] = {"points": points_payoff, "win": win_payoff}


class TooLarge(Exception):
    """More play to look at than was allowed."""


class AllPlay:
    """Minimax in the reference model, with nothing left out: the side's best against the others' worst for it."""

    def __init__(self, worth: Worth, side: int, most: int) -> None:
        self.worth, self.side, self.left = worth, side, most

    def moves(self, round_: ReferenceRound) -> dict[tuple[tuple[int, int], str], float]:
        """What each move is worth to the side; `TooLarge` past the plays allowed."""
        found = {}
        for tile, end in round_.legal():
            self.left -= 1
            if self.left < 0:
                raise TooLarge
            after = copy.copy(round_)
            after.hands = [list(hand) for hand in round_.hands]
            after.boneyard, after.chain, after.events = list(round_.boneyard), list(round_.chain), round_.events[-1:]
            after.play(tile, end)
            found[tile, end] = self.value(after)
        return found

    def value(self, round_: ReferenceRound) -> float:
        """What the rest of the round is worth to the side."""
        if round_.result is not None:
            return self.worth(round_, self.side)
        ours = round_.rules.side(round_.seat or 0) == self.side
        return (max if ours else min)(self.moves(round_).values())


def reference_of(game: Game) -> ReferenceRound:
    """The same round in the reference model."""
    deal = game.deal
    hands = [[read(tile) for tile in hand] for hand in deal.hands]
    forced = None if game.forced is None else read(game.forced)
    boneyard = [read(tile) for tile in deal.boneyard]
    round_ = ReferenceRound(reference_rules(game.rules), hands, boneyard, game.starter, forced, game.multiplier)
    for move in game.moves:
        round_.play(read(move.tile), "left" if move.end == "left" else "right")
    return round_


def endings(game: Game, seed: int) -> Iterator[Game]:
    """Play the round to its end at random, and give the positions on the way, the last first."""
    game.play_out(seed)
    while game.moves:
        game.undo()
        yield game


def compare_endings(game: Game, seed: int, value: str | Payoff, worth: Worth, side: int, most: int) -> int:
    """Compare the values of all moves in a round's last positions, back to where that takes over `most` plays.

    How many positions that were. AssertionError where the solver and the reference model differ.
    """
    compared = 0
    for position in endings(game.copy(), seed):
        try:
            expected = AllPlay(worth, side, most).moves(reference_of(position))
        except TooLarge:
            break
        solved = move_values(position, value, side=side, table_bits=10)
        found = {(read(move.tile), move.end): value for move, value in solved.items()}
        same = found.keys() == expected.keys() and np.allclose(list(found.values()), [expected[at] for at in found])
        assert same, (
            f"side {side} in {position!r}, hands {position.hands}, boneyard {position.boneyard}, multiplier "
            f"{position.multiplier}, {position.rules}: solver {found}, reference {expected}"
        )
        compared += 1
    return compared


def check_certificate(game: Game, value: str) -> int:
    """Check a solution by its own line, and the plays its search took. AssertionError where it is wrong."""
    solution = solve(game, value, table_bits=16)
    end = game.copy()
    for move in solution.line:
        end.play(move)
    reached = WORTHS[value](reference_of(end), solution.side)
    assert abs(reached - solution.value) < 1e-9, f"{value}, {game!r}: {solution} ends with {reached}"
    assert solution.move == solution.line[0]
    assert max(move_values(game, value, table_bits=16).values()) == solution.value
    if game.rules.num_sides == 2:
        other = solve(game, value, side=1 - solution.side, table_bits=16)
        assert other.value == -solution.value, f"{value}, {game!r}: {solution.value} and {other.value}"
    return solution.nodes


def deals(rules: RuleSet, number: int, plays: int, seed: int) -> list[Game]:
    """Random deals after so many random plays, those that are over by then left out."""
    games: list[Game] = []
    random = Random(seed)
    while len(games) < number:
        game = Game(rules, seed=random.randrange(2**32))
        for _ in range(plays):
            if game.seat is not None:
                game.play(random.choice(game.legal_moves()))
        if game.seat is not None:
            games.append(game)
    return games


def milliseconds(game: Game, work: Work, repeats: int) -> float:
    """How long the position takes to solve, the fastest of some repeats; each starts with an empty table."""
    side = game.rules.side_of(game.seat or 0)
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        value_of(game._state[0], pack(game.rules), work, side, 2**60)
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description="time and check the solver")
    parser.add_argument("--deals", type=int, default=200, help="deals to time and certify, for each line")
    parser.add_argument("--endings", type=int, default=100, help="rounds of each game whose endings are compared")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--games", nargs="*", choices=list(TABLES), default=list(TABLES))
    options = parser.parse_args()
    headings = "median mean 95% most plays".split()
    print(f"{'ms a position':28}" + "".join(f"{heading:>10}" for heading in headings))
    for name in options.games:
        rules = TABLES[name]
        for plays in (1, 8) if name == "duplas" else (1,):
            games = deals(rules, options.deals, plays, options.seed)
            for value in WORTHS:
                work = new_work(rules)
                set_payoff(work, PAYOFFS[value](rules))
                milliseconds(games[0], work, 1)  # compiled before the clock starts
                times = np.array([milliseconds(game, work, 3) for game in games])
                nodes = np.median([check_certificate(game, value) for game in games])
                cells = [np.median(times), times.mean(), np.percentile(times, 95), times.max()]
                shown = "".join(f"{cell:10.3f}" for cell in cells) + f"{nodes:10,.0f}"
                print(f"{name + f', {plays} down, {value}':28}{shown}", flush=True)
    for name in options.games if options.endings else ():
        rules, random, compared = TABLES[name], Random(options.seed), 0
        for _ in range(options.endings):
            game = Game(rules, seed=random.randrange(2**32))
            seed, side = random.randrange(2**32), random.randrange(rules.num_sides)
            for value, worth in WORTHS.items():
                compared += compare_endings(game, seed, value, worth, side, 300)
        print(f"{name}: {compared:,} endings as in the reference model")


if __name__ == "__main__":
    main()
