"""Judge a policy against a ladder of players, on duplicate deals that training never saw.

    python -m training.evaluate runs/duplas
    python -m training.evaluate runs/duplas --opponents doubles heaviest --deals 20000 --episode both
    python -m training.evaluate runs/duplas --opponents random counting zoo/duplas-v1 "search?deals=50" --deals 500

Prints a verdict for each opponent and writes ``evaluation.json`` and ``evaluation.csv`` beside the
checkpoint. A verdict of better or worse means that the 95 % interval of points a round is clear of 0.
With two or more opponents it also rates all players, and paints the table (``evaluation.png``, for matches
``evaluation-match.png``); the scripted ones play each other for it. A run's learning curve is drawn anew.

A result that is lower than the best earlier one against the same opponent is reported where the intervals
say so: of the run's ``evaluations.jsonl``, of its checkpoints' ``evaluation.json`` and of the one that is replaced.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist

import torch

from agents import checkpoint
from agents.policy import PolicyPlayer
from domino_env import RuleSet
from domino_env.arena import Duel, Estimate, cross_table, from_json, games_of, picture, share_table, to_csv, to_json
from domino_env.bots.champion import MODES
from domino_env.bots.scripted import SCRIPTED, ScriptedPlayer
from domino_env.players import Player
from domino_env.rating import ratings

from .config import evaluation_seed
from .plots import learning_curve
from .runs import duel_shown, player_of

#: The chance of reporting a drop where there is none, against one opponent.
FALSE_ALARM = 0.025


@dataclass(frozen=True)
class Earlier:
    """What a policy gained against an opponent once."""

    episode: str
    opponent: str
    points: Estimate
    place: str


def run_of(source: Path) -> Path | None:
    """The run folder that a checkpoint lies in; None for one that lies elsewhere."""
    return source.parents[1] if source.parent.name == "checkpoints" else None


def earlier(source: Path, mode: str) -> list[Earlier]:
    """The evaluations of the checkpoint at `source`, and of those before it in its run, that are noted.

    Raises:
        ValueError: a file of evaluations that is damaged.
    """
    _, card = checkpoint.load(source)
    run = run_of(source)
    found = []
    lines = None if run is None else run / "evaluations.jsonl"
    if lines is not None and mode == "greedy" and lines.exists():
        episode = card.config.get("episode", "round")
        for number, text in enumerate(lines.read_text(encoding="utf-8").splitlines(), 1):
            try:
                line = json.loads(text)
                if line["steps"] < card.steps:
                    place = f"after {line['steps']:,} decisions"
                    found.append(Earlier(episode, line["opponent"], Estimate(*line["points"]), place))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{lines}, line {number}: not an evaluation ({error})") from error
    folders = [source] if run is None else sorted(source.parent.glob("[!.]*"))
    for file in (folder / "evaluation.json" for folder in folders if folder.name <= source.name):
        if not file.exists():
            continue
        try:
            duels = from_json(file.read_text(encoding="utf-8"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{file}: not an evaluation ({error}); remove it") from error
        found += [
            Earlier(duel.episode, duel.opponent, duel.points, str(file))
            for duel in duels
            if duel.player.endswith(f"({mode})")
        ]
    return found


def drops(results: Sequence[Duel], known: Sequence[Earlier]) -> list[str]:
    """A line for each result that is clearly below the best earlier one in the same game against the same opponent.

    The best of many is high by luck, too: the more there are, the larger a difference has to be (Bonferroni).
    """
    lines = []
    for result in results:
        same = [one for one in known if (one.episode, one.opponent) == (result.episode, result.opponent)]
        if not same:
            continue
        best = max(same, key=lambda one: one.points.mean)
        gap = result.points.mean - best.points.mean
        error = math.hypot(result.points.error, best.points.error)
        if gap < -NormalDist().inv_cdf(1 - FALSE_ALARM / len(same)) * error:
            lines.append(
                f"below the best, in {games_of(result.episode)} against {result.opponent}: "
                f"{result.points:+.3f} points a round; it was {best.points:+.3f} {best.place}"
            )
    return lines


def evaluate(
    source: Path, player: Player, others: Sequence[Player], *, deals: int, episodes: Sequence[str], seed: int
) -> list[Duel]:
    """Play `player`, the policy at `source`, against all others in every kind of episode, and write the results."""
    results = []
    for episode in episodes:
        for other in others:
            results.append(duel_shown(player, other, player.rules, deals=deals, seed=seed, episode=episode))
            print(results[-1], flush=True)
    (source / "evaluation.json").write_text(to_json(results) + "\n", encoding="utf-8")
    (source / "evaluation.csv").write_text(to_csv(results), encoding="utf-8", newline="")
    return results


def rate(source: Path, results: Sequence[Duel], others: Sequence[Player], rules: RuleSet) -> list[Path]:
    """Print tables of shares and ratings, and paint them beside the checkpoint, a picture for each kind of episode.

    The scripted players among `others` play each other on the same deals; the rest, which may be slow, only
    played the policy.
    """
    pictures = []
    run = run_of(source)
    name = source.name if run is None else f"{run.name}/{source.name}"
    scripted = [other for other in others if isinstance(other, ScriptedPlayer)]
    for episode in dict.fromkeys(result.episode for result in results):
        duels = [replace(result, player=name) for result in results if result.episode == episode]
        if len(scripted) > 1:
            duels += cross_table(scripted, rules, deals=duels[0].deals, seed=duels[0].seed, episode=episode)
        anchor = "random" if any(other.name == "random" for other in others) else None
        rated = ratings(duels, anchor=anchor)
        print(f"\n{games_of(episode)} won, by row against column\n{share_table(duels)}\n\n{rated}")
        pictures.append(source / ("evaluation.png" if episode == "round" else f"evaluation-{episode}.png"))
        picture(duels, pictures[-1], ratings=rated)
    return pictures


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 2 where the checkpoint or an opponent cannot be used, 1 for a drop, where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m training.evaluate", description=__doc__.split("\n\n")[0])
    parser.add_argument("path", help="a checkpoint, or a run folder (its newest checkpoint)")
    parser.add_argument(
        "--opponents",
        nargs="+",
        default=list(SCRIPTED),
        metavar="PLAYER",
        help="names, spec strings, checkpoints or run folders (default all scripted players)",
    )
    parser.add_argument("--deals", type=int, default=10_000, help="deals for each opponent (default 10000)")
    parser.add_argument("--episode", choices=["round", "match", "both"], default="round")
    parser.add_argument("--mode", choices=MODES, default="greedy", help="play the likeliest action or draw one")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other deals; training uses none")
    parser.add_argument("--fail-on-drop", action="store_true", help="exit status 1 where a result is below the best")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    episodes = ["round", "match"] if given.episode == "both" else [given.episode]
    try:
        seed = evaluation_seed(given.seed)
        source = checkpoint.newest(given.path)
        known = earlier(source, given.mode)
        rules = checkpoint.load(source)[1].rule_set
        player = PolicyPlayer(rules, str(source), given.mode)
        player.name = f"{source} ({given.mode})"
        others = [player_of(opponent, rules) for opponent in dict.fromkeys(given.opponents)]
        results = evaluate(source, player, others, deals=given.deals, episodes=episodes, seed=seed)
        if len(others) > 1:
            for file in rate(source, results, others, rules):
                print(f"picture: {file}")
        run = run_of(source)
        if run is not None and (lines := run / "evaluations.jsonl").exists() and lines.stat().st_size:
            learning_curve(lines, run / "learning.png")
            print(f"learning curve: {run / 'learning.png'}")
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    below = drops(results, known)
    if below:
        print("\n".join(below))
    elif known:
        print(f"not below the best of what was noted earlier ({len(known)} results)")
    return 1 if below and given.fail_on_drop else 0


if __name__ == "__main__":
    sys.exit(main())
