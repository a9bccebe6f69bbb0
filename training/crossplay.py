"""Do policies play well with partners they never trained with? Mixed pairs against pure ones, on the same deals.

    python -m training.crossplay zoo/duplas-v1 runs/other counting
    python -m training.crossplay runs/seed-0 runs/seed-1 --opponents counting zoo/duplas-v1 --deals 20000

Every two of the players, and each with itself, sit down as partners against a pair of each opponent. On every deal a
pair takes both sides and partners also exchange their seats. A pair of two kinds is compared with the mean of the two
pairs of one kind, deal by deal: below 0, partners who trained apart understand each other less well than
each understands itself.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from agents import checkpoint
from domino_env import RuleSet, make_rules
from domino_env.arena import Duel, Estimate, describe, games_of
from domino_env.players import Player

from .config import evaluation_seed
from .runs import checkpoint_of, duel_shown, player_of


@dataclass(frozen=True)
class CrossPlay:
    """How pairs of players do against one opponent."""

    players: tuple[str, ...]
    opponent: str
    pairs: dict[tuple[str, str], Duel]
    #: The share of games that a mixed pair wins, less the mean of its players' pure pairs.
    less_pure: dict[tuple[str, str], Estimate]
    average: Estimate  # of all mixed pairs

    def __str__(self) -> str:
        """A table of shares won, half the width of the 95 % interval beside, and the differences."""
        first = next(iter(self.pairs.values()))
        cells = {
            (one, other): f"{duel.win_share.mean:.1%} ±{(duel.win_share.high - duel.win_share.low) / 2:.1%}"
            for pair, duel in self.pairs.items()
            for one, other in (pair, pair[::-1])
        }
        width = max(len(text) for text in (*self.players, *cells.values()))
        rows = [["", *self.players], *([one, *(cells[one, other] for other in self.players)] for one in self.players)]
        lines = [
            f"pairs against {self.opponent}, {games_of(first.episode)} won "
            f"({first.deals:,} deals, {first.rules}, seed {first.seed}, 95 % intervals):",
            *("  ".join(f"{text:>{width}}" for text in row).rstrip() for row in rows),
            "mixed pairs less pure ones, paired by deal:",
            *(f"  {' + '.join(pair)}: {found:+.2%}, {_in_words(found)}" for pair, found in self.less_pure.items()),
        ]
        if len(self.less_pure) > 1:
            lines.append(f"  all mixed pairs: {self.average:+.2%}, {_in_words(self.average)}")
        return "\n".join(lines)


def _in_words(found: Estimate) -> str:
    return found.verdict if found.verdict == "not separated" else f"{found.verdict} than with themselves"


def cross_play(
    players: Sequence[Player], opponent: Player, rules: RuleSet, *, deals: int, seed: int, episode: str = "round"
) -> CrossPlay:
    """Play all pairs of at least two players against a pair of `opponent`, on the same deals.

    Raises:
        ValueError: fewer than two players, two of one name, or rules without partners.
    """
    names = [player.name for player in players]
    if len(set(names)) < max(2, len(names)):
        raise ValueError(f"players {', '.join(names)}: give at least two, of different names")
    if not rules.pairs:
        raise ValueError(f"{describe(rules)} has no partners; cross-play needs rules with pairs")
    pairs, shares = {}, {}
    for one, other in itertools.combinations_with_replacement(players, 2):
        side = one if one is other else (one, other)
        pair = one.name, other.name
        pairs[pair] = duel_shown(side, opponent, rules, deals=deals, seed=seed, episode=episode)
        samples = pairs[pair].samples
        assert samples is not None
        shares[pair] = samples.shares
    differences = {
        pair: shares[pair] - (shares[pair[0], pair[0]] + shares[pair[1], pair[1]]) / 2
        for pair in itertools.combinations(names, 2)
    }
    less_pure = {pair: Estimate.of(values) for pair, values in differences.items()}
    average = Estimate.of(np.mean(list(differences.values()), axis=0))
    return CrossPlay(tuple(names), opponent.name, pairs, less_pure, average)


def to_json(results: Sequence[CrossPlay]) -> str:
    """Results as JSON, an object for each opponent."""
    records = [
        {
            "opponent": result.opponent, "players": result.players,
            "pairs": [
                {"pair": pair, "deals": duel.deals, "seed": duel.seed, "win_share": asdict(duel.win_share),
                 "points": asdict(duel.points)}
                for pair, duel in result.pairs.items()
            ],
            "less_pure": [{"pair": pair, **asdict(found)} for pair, found in result.less_pure.items()],
            "average": asdict(result.average),
        }
        for result in results
    ]  # fmt: skip
    return json.dumps(records, indent=2, ensure_ascii=False)


def rules_of(players: Sequence[str], preset: str) -> RuleSet:
    """The rules that the policies among `players` were trained under; `preset` where there is none.

    Raises:
        ValueError: a checkpoint that cannot be loaded.
    """
    for player in players:
        if (source := checkpoint_of(player)) is not None:
            return checkpoint.load(source)[1].rule_set
    return make_rules(preset)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 2 where a player cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m training.crossplay", description=__doc__.split("\n\n")[0])
    parser.add_argument("players", nargs="+", help="two or more names, spec strings, checkpoints or run folders")
    parser.add_argument("--opponents", nargs="+", default=["counting"], metavar="PLAYER", help="(default counting)")
    parser.add_argument("--deals", type=int, default=10_000, help="deals for each pair (default 10000)")
    parser.add_argument("--episode", choices=["round", "match"], default="round")
    parser.add_argument("--preset", default="duplas", help="the rules, where no player is a policy (default duplas)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other deals; training uses none")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    try:
        seed = evaluation_seed(given.seed)
        rules = rules_of([*given.players, *given.opponents], given.preset)
        players, opponents = ([player_of(spec, rules) for spec in some] for some in (given.players, given.opponents))
        results = []
        for opponent in opponents:
            results.append(cross_play(players, opponent, rules, deals=given.deals, seed=seed, episode=given.episode))
            print(results[-1], flush=True)
        if given.json is not None:
            given.json.write_text(to_json(results) + "\n", encoding="utf-8")
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
