"""Judge a policy against scripted players, on duplicate deals that training never saw.

    python -m training.evaluate runs/duplas
    python -m training.evaluate runs/duplas --opponents doubles heaviest --deals 20000 --episode match

Prints a verdict for each opponent and writes ``evaluation.json`` and ``evaluation.csv`` beside the
checkpoint. A verdict of better or worse means that the 95 % interval of points a round is clear of 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch
from tqdm import tqdm

from agents import checkpoint
from agents.policy import MODES, PolicyPlayer
from domino_env.arena import Duel, duel, to_csv, to_json
from domino_env.bots import make_player
from domino_env.bots.scripted import SCRIPTED

from .config import EVALUATION_SEEDS

NAMES = {"round": "rounds", "match": "matches"}


def evaluate(
    path: str, opponents: Sequence[str], deals: int, episodes: Sequence[str], mode: str, seed: int
) -> list[Duel]:
    """Play the policy at `path` against every opponent in every kind of episode."""
    source = checkpoint.newest(path)
    rules = checkpoint.load(source)[1].rule_set
    player = PolicyPlayer(rules, str(source), mode)
    player.name = f"{source} ({mode})"
    others = [make_player(opponent, rules) for opponent in opponents]
    results = []
    for episode in episodes:
        for other in others:
            title = f"{NAMES[episode]} against {other.name}"
            with tqdm(total=deals, unit=" deals", desc=title, leave=False, file=sys.stderr) as bar:
                result = duel(
                    player, other, rules, deals=deals, seed=seed, episode=episode,
                    progress=lambda played, bar=bar: bar.update(played - bar.n),
                )  # fmt: skip
            print(result, flush=True)
            results.append(result)
    (source / "evaluation.json").write_text(to_json(results) + "\n", encoding="utf-8")
    (source / "evaluation.csv").write_text(to_csv(results), encoding="utf-8", newline="")
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 2 where the checkpoint or an opponent cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m training.evaluate", description=__doc__.split("\n\n")[0])
    parser.add_argument("path", help="a checkpoint, or a run folder (its newest checkpoint)")
    parser.add_argument("--opponents", nargs="+", default=list(SCRIPTED), metavar="PLAYER")
    parser.add_argument("--deals", type=int, default=10_000, help="deals for each opponent (default 10000)")
    parser.add_argument("--episode", choices=["round", "match", "both"], default="round")
    parser.add_argument("--mode", choices=MODES, default="greedy", help="play the likeliest action or draw one")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other deals; training uses none")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    episodes = ["round", "match"] if given.episode == "both" else [given.episode]
    try:
        if given.seed < 0:
            raise ValueError(f"--seed {given.seed}: give 0 or more")
        seed = EVALUATION_SEEDS + 1 + given.seed
        evaluate(given.path, given.opponents, given.deals, episodes, given.mode, seed)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
