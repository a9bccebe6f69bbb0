"""Count how rounds end when `counting` plays itself, and write the file that match equity is computed from.

    python -m training.measure_outcomes
    python -m training.measure_outcomes --rounds 2000000 --seed 0 --out domino_env/outcomes.json

For each preset with two sides: so many first rounds, and so many later ones, in which a side starts and opens
with any tile. The file that comes with the package was written with the defaults. To be repeated when the
weights of `counting` or the rules have changed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from domino_env import PRESETS
from domino_env.bots.outcomes import measure
from domino_env.equity import Outcomes


def text(outcomes: Sequence[Outcomes]) -> str:
    """The outcomes as JSON, a line for each kind of round, so that a change is readable."""
    parts = []
    for kept in outcomes:
        lines = [f'  "{name}": {json.dumps(value)}' for name, value in kept.to_dict().items()]
        parts.append("{\n" + ",\n".join(lines) + "\n}")
    return "[\n" + ",\n".join(parts) + "\n]\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    about = (__doc__ or "").split("\n\n")[0]
    parser = argparse.ArgumentParser(prog="python -m training.measure_outcomes", description=about)
    parser.add_argument("--rounds", type=int, default=1_000_000, help="of each kind (default 1,000,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("domino_env/outcomes.json"))
    given = parser.parse_args(arguments)
    outcomes = [measure(rules, rounds=given.rounds, seed=given.seed) for rules in PRESETS.values()]
    given.out.write_text(text(outcomes), encoding="utf-8")
    print(f"{given.out}: {', '.join(PRESETS)}, {given.rounds:,} first and as many later rounds each, seed {given.seed}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
