"""Put trained policies into the package, for `champion` to play.

    python -m training.export zoo/duplas-v2 zoo/blocos-v1

Each is a released policy, a checkpoint or a run folder. Policy and critic are written to
``domino_env/bots/weights/<preset>.npz``, where what was there for other rules stays.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import domino_env
from agents import checkpoint, zoo
from agents.policy import PolicyPlayer
from domino_env.bots.networks import write
from domino_env.rules import describe

FOLDER: Final = Path(domino_env.__file__).parent / "bots" / "weights"


def export(spec: str, folder: Path) -> Path:
    """Write the networks of a released policy, a checkpoint or a run folder; the file.

    Raises:
        ValueError: there is no such policy, it has no critic, or it sees observations.
        OSError: it cannot be written.
    """
    source = zoo.path_of(spec) if spec.startswith("zoo/") else checkpoint.newest(spec)
    rules = checkpoint.load(source)[1].rule_set
    networks = replace(PolicyPlayer(rules, str(source)).networks, name=spec if spec.startswith("zoo/") else source.name)
    if networks.critic is None:
        raise ValueError(f"{source} has no critic")
    plain = "".join(letter if letter.isalnum() or letter == "_" else "-" for letter in describe(rules)).strip("-")
    file = folder / f"{plain}.npz"
    write(file, networks)
    return file


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 2 where there is nothing that can be exported."""
    parser = argparse.ArgumentParser(prog="python -m training.export", description=__doc__.split("\n\n")[0])
    parser.add_argument("policies", nargs="+", metavar="policy", help="zoo/NAME, a checkpoint or a run folder")
    given = parser.parse_args(arguments)
    for spec in given.policies:
        try:
            print(export(spec, FOLDER))
        except (ValueError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
