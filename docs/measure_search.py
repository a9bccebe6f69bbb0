"""Strength and time of `search` by its budget, for docs/results.md.

python docs/measure_search.py [DEALS] [POLICY]
"""

from __future__ import annotations

import sys
import time

import numpy as np
import numpy.typing as npt

from domino_env import PRESETS, RuleSet
from domino_env.arena import duel
from domino_env.bots.search import SearchPlayer
from domino_env.observation import Views, new_views
from domino_env.players import Streams

#: Deals sampled for a choice, by preset, policy and aim.
BUDGETS = {
    ("duplas", "counting", "round"): (4, 16, 64, 128, 256),
    ("duplas", "counting", "match"): (16, 64),
    ("mano_a_mano", "counting", "round"): (16, 64),
    ("mano_a_mano", "counting", "match"): (16, 64),
    ("blocos", "counting", "match"): (16, 64),
    ("puxar", "counting", "match"): (16, 64),
    ("duplas", "champion", "round"): (4, 16, 64, 256, 1024),
}


class Timed(SearchPlayer):
    """Counts what its choices cost, those among a single move left out."""

    def __init__(self, rules: RuleSet, deals: int, policy: str, aim: str) -> None:
        super().__init__(rules, deals=deals, policy=policy, aim=aim)
        self.seconds, self.choices = 0.0, 0

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """As `search`."""
        begin = time.process_time()
        chosen = super().act(views, rng)
        self.seconds += time.process_time() - begin
        bits = views["legal"][:, 0] & (views["legal"][:, 0] - np.uint64(1)) | views["legal"][:, 1]
        self.choices += int((bits != 0).sum())
        return chosen


def main(deals: int, only: str | None) -> None:
    """Print a line for each preset, policy, aim and budget; with `only`, of that policy."""
    print("| preset | policy | aim | deals sampled | rounds won against `counting` | points a round | ms a choice |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (preset, policy, aim), budgets in BUDGETS.items():
        for budget in budgets if only in (None, policy) else ():
            player = Timed(PRESETS[preset], budget, policy, aim)
            player.act(new_views(player.rules, 0), Streams.from_seed(0, 1))  # compiled first, and not counted
            player.seconds = 0.0
            result = duel(player, "counting", PRESETS[preset], deals=deals, seed=404)
            per_choice = 1000 * player.seconds / player.choices
            share = f"{result.win_share.mean:.1%} ± {(result.win_share.high - result.win_share.low) / 2:.1%}"
            cells = [
                f"`{preset}`",
                f"`{policy}`",
                aim,
                str(budget),
                share,
                f"{result.points.mean:+.3f}",
                f"{per_choice:.2f}",
            ]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, sys.argv[2] if len(sys.argv) > 2 else None)
