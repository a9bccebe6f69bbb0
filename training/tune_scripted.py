"""Tune the weights of a scripted player for a preset, by CMA-ES on duplicate deals.

    python -m training.tune_scripted counting duplas
    python -m training.tune_scripted variety duplas --generations 60 --deals 3000 --seed 1

Every candidate plays the opponents below on the same deals; each generation gets new ones. Its value is
the mean of what it gains a round against each, in units of that opponent's own spread. The search is
Hansen's CMA-ES (package ``cma``), from the weights in use. At the end the candidate at the search's
centre and the weights in use play each other on deals of their own; the new weights are printed as
they are written in ``domino_env/bots/scripted.py``, to be put there only if the verdict is "better".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import cma
import numpy as np

from domino_env import PRESETS, RuleSet
from domino_env.arena import duel
from domino_env.bots import ScriptedPlayer
from domino_env.bots.scripted import PREFERENCES, preferences_of

from .config import EVALUATION_SEEDS


@dataclass(frozen=True)
class Kind:
    """What is tuned of a player, and against whom."""

    preferences: tuple[str, ...]
    opponents: tuple[str, ...]


#: `variety` looks at its hand and at the ends alone; `counting` at everything.
KINDS = {
    "variety": Kind(("double", "pips", "variety", "suit", "partner_end", "own_end"), ("random", "doubles")),
    "counting": Kind(tuple(PREFERENCES), ("doubles", "variety", "counting")),
}
#: Held where it is: multiplying all weights by a number changes nothing.
FIXED = "double"


def candidate(kind: str, rules: RuleSet, names: Sequence[str], values: Sequence[float]) -> ScriptedPlayer:
    """The player with these weights instead of its own."""
    return ScriptedPlayer(rules, kind, **dict(zip(names, map(float, values), strict=True)))


def worth(player: ScriptedPlayer, opponents: Sequence[str], rules: RuleSet, deals: int, seed: int) -> float:
    """What the player gains, over the opponents, in standard deviations of a deal's result."""
    total = 0.0
    for opponent in opponents:
        points = duel(player, opponent, rules, deals=deals, seed=seed).points
        total += points.mean / ((points.high - points.low) * deals**0.5)
    return total / len(opponents)


def tune(kind: str, preset: str, *, generations: int, deals: int, seed: int, spread: float) -> dict[str, float]:
    """The weights at the search's centre after so many generations."""
    rules, tuned = PRESETS[preset], KINDS[kind]
    start = preferences_of(kind, rules)
    # Without pairs there is no partner; where pips score, the last tile has no points of its own.
    idle = [*([] if rules.pairs else ["partner_stuck", "partner_end"]), *(["bonus"] if rules.scoring == "pips" else [])]
    names = [name for name in tuned.preferences if name not in (FIXED, *idle)]
    scale = np.array([max(abs(start.get(name, 0.0)), 0.3) for name in names])
    search = cma.CMAEvolutionStrategy(
        np.array([start.get(name, 0.0) for name in names]) / scale,
        spread,
        {"seed": seed + 1, "verbose": -9, "maxiter": generations},
    )
    for generation in range(generations):
        asked = search.ask()
        deal_seed = seed * generations + generation
        values = [
            worth(candidate(kind, rules, names, values * scale), tuned.opponents, rules, deals, deal_seed)
            for values in asked
        ]
        search.tell(asked, [-value for value in values])
        print(f"generation {generation + 1}: mean {np.mean(values):+.4f}, best {max(values):+.4f}", file=sys.stderr)
    best = search.result.xfavorite * scale
    return {FIXED: start[FIXED], **dict(zip(names, map(float, best), strict=True))}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    about = (__doc__ or "").split("\n\n")[0]
    parser = argparse.ArgumentParser(prog="python -m training.tune_scripted", description=about)
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("preset", choices=list(PRESETS))
    parser.add_argument("--generations", type=int, default=60)
    parser.add_argument("--deals", type=int, default=3000, help="for each candidate and opponent (default 3000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test-deals", type=int, default=50_000, help="of the test at the end (default 50,000)")
    parser.add_argument("--spread", type=float, default=0.3, help="of the first candidates, by weight (default 0.3)")
    given = parser.parse_args(arguments)
    tuned = tune(
        given.kind, given.preset,
        generations=given.generations, deals=given.deals, seed=given.seed, spread=given.spread,
    )  # fmt: skip
    rules = PRESETS[given.preset]
    tuned = {name: round(value, 3) for name, value in tuned.items()}
    player = ScriptedPlayer(rules, given.kind, **tuned)
    result = duel(player, given.kind, rules, deals=given.test_deals, seed=EVALUATION_SEEDS + given.seed)
    print(f'"{given.preset}": {tuned},')
    print(f"against the weights in use: {result.verdict}, points a round {result.points:+.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
