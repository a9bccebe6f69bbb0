"""Measures what makes the arena's intervals narrower, and by which factor in deals: `python docs/measure_variance.py`.

Prints the tables of docs/arena.md: duplicate deals, pairing by deal against a common opponent, and two
controls that were tried and are not in use.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from domino_env import PRESETS, Batch, RuleSet
from domino_env.arena import Duel, compare, duel, play_games, seatings
from domino_env.bots import make_player
from domino_env.tiles import DOUBLES, PIPS, SUIT

Array = npt.NDArray[np.float64]
PAIRS = (("counting", "random"), ("counting", "doubles"), ("counting", "variety"), ("counting", "counting?pips=0.02"))
DEALS_FITTED, DEALS_JUDGED = 1, 2  # seeds: coefficients come from one, factors from the other


def duplicates(rules: RuleSet, pair: Sequence[str], deals: int) -> float:
    """How many times as many games single deals would need for the same interval of the share."""
    one, other = (make_player(name, rules) for name in pair)
    shares = []
    for number, mine in enumerate(seatings(rules)):
        seats = [one if own else other for own in mine]
        side = mine.index(True)
        shares.append(play_games(rules, seats, deals, DEALS_JUDGED, purpose=16 + number).shares(side))
    both = np.stack(shares)
    return float(both.var(axis=1).mean() / len(both) / both.mean(axis=0).var())


def hands(rules: RuleSet, deals: int, seed: int) -> Array:
    """What is known of each deal: differences between the sides in pips, doubles and suits, (deals, features)."""
    held = Batch(rules, deals, seed, observe=False).state["hands"][:, : rules.players, None]
    bits = (held >> np.arange(rules.num_tiles, dtype=np.uint64) & np.uint64(1)).astype(float)
    doubles = np.array([int(DOUBLES) >> tile & 1 for tile in range(rules.num_tiles)], float)
    suits = np.array([[int(suit) >> tile & 1 for suit in SUIT[:7]] for tile in range(rules.num_tiles)], float)
    held_suits = bits @ suits
    features = []
    for values in (
        bits @ PIPS[: rules.num_tiles],
        bits @ doubles,
        held_suits.max(axis=2),
        (held_suits == 0).sum(axis=2),
    ):
        sides = np.stack([values[:, side :: rules.num_sides].sum(axis=1) for side in range(rules.num_sides)])
        gap = sides.max(axis=0) - sides.min(axis=0)
        features += [gap, gap**2, sides.sum(axis=0), values.max(axis=1) - values.min(axis=1)]
    return np.stack(features, axis=1)


def shrinks(fitted: tuple[Array, Array], judged: tuple[Array, Array]) -> float:
    """The variance of what is judged, divided by what a linear control leaves of it."""
    (known, shares), (known_there, shares_there) = fitted, judged
    ones = np.ones((len(known), 1))
    weights = np.linalg.lstsq(np.hstack([ones, known]), shares, rcond=None)[0]
    return float(shares_there.var() / (shares_there - np.hstack([ones, known_there]) @ weights).var())


def shares_of(result: Duel) -> Array:
    """A duel's shares of games won, deal by deal."""
    assert result.samples is not None
    return result.samples.shares


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--deals", type=int, default=100_000)
    deals = parser.parse_args().deals
    seeds = (DEALS_FITTED, DEALS_JUDGED)
    for preset in ("duplas", "mano_a_mano"):
        rules = PRESETS[preset]
        known = [hands(rules, deals, seed) for seed in seeds]
        for pair in PAIRS:
            played = [duel(*pair, rules, deals=deals, seed=seed) for seed in seeds]
            shares = [shares_of(result) for result in played]
            weaker = [shares_of(duel("variety", "doubles", rules, deals=deals, seed=seed))[:, None] for seed in seeds]
            print(
                f"{preset:12} {' - '.join(pair):30} duplicates {duplicates(rules, pair, deals):6.2f}   "
                f"hands {shrinks((known[0], shares[0]), (known[1], shares[1])):.3f}   "
                f"another duel {shrinks((weaker[0], shares[0]), (weaker[1], shares[1])):.3f}",
                flush=True,
            )
        for one, other in (("counting", "variety"), ("counting", "counting?pips=0.02")):
            for opponent in ("random", "doubles"):
                pairs = (duel(name, opponent, rules, deals=deals, seed=DEALS_JUDGED) for name in (one, other))
                factor = compare(*pairs).win_share_factor
                print(f"{preset:12} {one} and {other} against {opponent}: paired {factor:.2f}", flush=True)


if __name__ == "__main__":
    main()
