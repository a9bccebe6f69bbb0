"""The golden games and deals, made anew: ``python tests/make_golden_games.py`` writes tests/golden.

Do so only where the rules, the deals of a seed or the notation have changed on purpose, and say so in
the changelog; the difference is there to be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from domino_env import PRESETS, Batch, Deal, Game, Match, RuleSet, make_rules
from domino_env.events import tile_names
from domino_env.notation import Record, dumps
from domino_env.state import NONE
from domino_env.tiles import TILE_NAMES

GOLDEN = Path(__file__).parent / "golden"
GAMES = GOLDEN / "games"
DEALS = GOLDEN / "deals.txt"
SEEDS = range(5)
TABLES = range(3)


def play_randomly(match: Match, seed: int, moves: int | None = None) -> Match:
    """Play `moves` random moves, or to the end; only `Random.random` stays the same for ever."""
    random = Random(seed)
    while not match.over and moves != 0:
        legal = match.game.legal_moves()
        match.play(legal[int(random.random() * len(legal))])
        moves = None if moves is None else moves - 1
    return match


def full_matches() -> dict[str, Match]:
    """Full matches by the name of their file."""
    tables: dict[str, tuple[RuleSet, int]] = {}
    for preset, rules in PRESETS.items():
        tables |= {f"{preset}-{seed}": (rules, seed) for seed in (1, 2)}
    tables["blocos-5-players"] = make_rules("blocos", players=5), 3
    tables["puxar-3-players"] = make_rules("puxar", players=3), 4
    tables["puxar-4-players"] = make_rules("puxar", players=4), 5
    tables["double-nine-9-players"] = make_rules("puxar", players=9, hand_size=5, max_pip=9, target=400), 4
    matches = {name: play_randomly(Match(rules, seed), seed) for name, (rules, seed) in tables.items()}
    duplas = (play_randomly(Match(PRESETS["duplas"], seed), seed) for seed in count(3))
    matches["duplas-tied"] = next(match for match in duplas if any(game.multiplier > 1 for game in match.games))
    stacking = make_rules("blocos", tie_starter="same", tie_multiplier=3, tie_multiplier_stacks=True)
    tie = Deal((("6-6", "2-1"), ("3-0",)), lot=0)  # blocked by the 6-6, three pips each
    match = Match(stacking, 7, deals=[tie, tie])
    match.play("6-6")
    match.play("6-6")
    return {**matches, "ties-that-stack": play_randomly(match, 7)}


def in_progress() -> Iterator[Record]:
    """Records that end before their round or match does, from deals of all kinds."""
    yield Game(PRESETS["duplas"], 8)
    hands = [["6-4", "4-4", "2-0"], ["5-5", "2-1", "5-4"]]
    boneyard = ["4-1", "3-3"]
    ending = Game.from_deal(PRESETS["mano_a_mano"], hands, boneyard, 1, "5-5", multiplier=2, scores=[4, 5])
    ending.play("5-5")
    yield ending
    lots = make_rules("blocos", max_pip=3, hand_size=3, target=30)
    deals = [Game(lots, seed).deal._replace(lot=lot) for seed, lot in ((1, 1), (2, None), (3, 0), (4, None))]
    yield play_randomly(Match(lots, 9, deals=deals), 9, 5)
    yield play_randomly(Match(lots, 9, deals=deals[:2]), 9, 12)
    yield play_randomly(Match(lots, deals=[deals[0], deals[2]]), 9, 3)
    yield deals[0]


def dealt(rules: RuleSet, row: Any) -> Deal:
    """What lies on a table whose first round has begun; the lot where one decided who starts."""
    hands = tuple(tuple(tile_names(int(hand))) for hand in row["hands"][: rules.players])
    boneyard = tuple(TILE_NAMES[tile] for tile in row["deck"][row["top"] : row["bottom"]])
    return Deal(hands, boneyard, int(row["starter"]) if row["forced"] == NONE else None)


def first_deals() -> str:
    """The first deals of `SEEDS` at `TABLES` of a batch, for each preset."""
    text = []
    for preset, rules in PRESETS.items():
        for seed in SEEDS:
            state = Batch(rules, len(TABLES), seed, observe=False).state
            for table, row in zip(TABLES, state, strict=True):
                text.append(f"# {preset}, seed {seed}, table {table}\n" + dumps(dealt(rules, row)))
    return "\n".join(text)


def golden_texts() -> dict[Path, str]:
    """What each golden file holds."""
    texts = {GAMES / f"{name}.txt": dumps(match) for name, match in full_matches().items()}
    texts[GAMES / "in-progress.txt"] = "\n".join(dumps(record) for record in in_progress())
    texts[DEALS] = first_deals()
    return texts


def main() -> None:
    GAMES.mkdir(parents=True, exist_ok=True)
    for old in GAMES.glob("*.txt"):
        old.unlink()
    for path, text in golden_texts().items():
        path.write_text(text, encoding="utf-8", newline="\n")
        print(path.relative_to(GOLDEN), text.count("\n"), "lines")


if __name__ == "__main__":
    main()
