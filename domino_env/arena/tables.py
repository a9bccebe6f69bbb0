"""Results as text, JSON and CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Sequence
from typing import Any

from .results import Duel, Estimate, Forfeits


def names_of(duels: Sequence[Duel]) -> list[str]:
    """The players of these results, in order of appearance."""
    return list(dict.fromkeys(name for result in duels for name in (result.player, result.opponent)))


def shares_of(duels: Sequence[Duel]) -> dict[tuple[str, str], Estimate]:
    """The shares of games won, by (player, opponent).

    With two sides a game that one does not win the other does, so each pair is told both ways; with
    more, only as it was played.
    """
    shares = {}
    for result in duels:
        share = shares[result.player, result.opponent] = result.win_share
        if result.fair_share == 0.5 and result.player != result.opponent:
            shares[result.opponent, result.player] = Estimate(1 - share.mean, 1 - share.high, 1 - share.low)
    return shares


def share_table(duels: Sequence[Duel]) -> str:
    """The shares of games won of a cross table, a line a player, with half the width of the 95 % interval."""
    names, shares = names_of(duels), shares_of(duels)
    cells = {pair: f"{share.mean:.1%} ±{(share.high - share.low) / 2:.1%}" for pair, share in shares.items()}
    cells |= {(name, name): "" for name in names if (name, name) not in cells}
    width = max(len(text) for text in [*names, *cells.values()])
    head = [" " * width, *names]
    lines = [[name, *(cells.get((name, other), "-") for other in names)] for name in names]
    return "\n".join("  ".join(f"{text:>{width}}" for text in line).rstrip() for line in [head, *lines])


def _record(duel: Duel) -> dict[str, Any]:
    fields = dataclasses.asdict(dataclasses.replace(duel, samples=None))
    del fields["samples"]
    return {**fields, "games": duel.games, "verdict": duel.verdict}


def to_json(duels: Sequence[Duel]) -> str:
    """Results as JSON, one object a duel, the verdict included."""
    return json.dumps([_record(result) for result in duels], indent=2, ensure_ascii=False)


def from_json(text: str) -> list[Duel]:
    """Results that `to_json` wrote, without their samples."""
    duels = []
    for record in json.loads(text):
        fields = {name: value for name, value in record.items() if name not in ("games", "verdict")}
        fields |= {name: Estimate(**fields[name]) for name in ("points", "win_share")}
        for name in ("forfeits", "opponent_forfeits"):
            fields[name] = Forfeits(fields[name]["count"], tuple(fields[name]["reasons"]))
        fields["seats"] = tuple(map(tuple, fields["seats"]))
        duels.append(Duel(**fields))
    return duels


def to_csv(duels: Sequence[Duel]) -> str:
    """Results as CSV, one line a duel; intervals, and the reasons of forfeits, in columns of their own."""
    rows = []
    for result in duels:
        row: dict[str, Any] = {}
        for name, value in _record(result).items():
            if name == "seats":
                row[name] = " ".join("+".join(map(str, taken)) for taken in value)
            elif isinstance(value, dict):
                for key, part in value.items():
                    own = name if key in ("mean", "count") else f"{name}_{key}"
                    row[own] = " | ".join(part) if isinstance(part, tuple) else part
            else:
                row[name] = value
        rows.append(row)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else ["player", "opponent"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
