"""Solve a small round of dominoes with OpenSpiel's CFR+: how exploitable the average policies are, exactly."""

from __future__ import annotations

import argparse
import time

import pyspiel

from domino_env import PRESETS, make_rules
from domino_env.adapters.openspiel import load


def main() -> None:
    """Print the exploitability as the iterations go on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", choices=list(PRESETS), default="blocos")
    parser.add_argument("--max-pip", type=int, default=2, help="2 for the double-two set (6 tiles), 3 for double-three")
    parser.add_argument("--hand-size", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=50)
    options = parser.parse_args()
    rules = make_rules(options.preset, max_pip=options.max_pip, hand_size=options.hand_size)
    if rules.players != 2:
        parser.error(f"exploitability is defined for two seats, and {options.preset} has {rules.players}")
    game = load(rules)
    start = time.perf_counter()
    solver = pyspiel.CFRPlusSolver(game)
    print("iterations  exploitability  seconds")
    for done in range(1, options.iterations + 1):
        solver.evaluate_and_update_policy()
        if done == options.iterations or done in (1, 2, 5, 10, 20, 50, 100, 200, 500):
            # What a best reply gains, on average over the two seats.
            gain = pyspiel.exploitability(game, solver.average_policy())
            print(f"{done:10}  {gain:14.6f}  {time.perf_counter() - start:7.1f}", flush=True)


if __name__ == "__main__":
    main()
