"""Golden games and deals: what was played and dealt once is played and dealt for ever.

``python tests/make_golden_games.py`` makes them anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from make_golden_games import DEALS, GAMES, SEEDS, TABLES, dealt, first_deals, full_matches, golden_texts

from domino_env import PRESETS, Batch, Deal, Game, Match
from domino_env.notation import dumps, load, loads
from domino_env.rules import preset_of

FILES = sorted(GAMES.glob("*.txt"))
FULL = [path for path in FILES if path.stem != "in-progress"]


def read(path: Path) -> str:
    return path.read_bytes().decode()


@pytest.mark.parametrize("path", FULL, ids=lambda path: path.stem)
def test_a_golden_match_is_played_as_it_was(path: Path) -> None:
    text = read(path)
    match = loads(text)  # every draw, pass, result and score is verified
    assert isinstance(match, Match)
    assert match.over
    assert dumps(match) == text


@pytest.mark.parametrize("name", ["in-progress", "deals"])
def test_a_golden_stream_is_read_and_written_as_it_was(name: str) -> None:
    path = DEALS if name == "deals" else GAMES / f"{name}.txt"
    text = read(path)
    uncommented = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    assert "\n".join(map(dumps, load(text.splitlines()))) == uncommented


def test_no_preset_lacks_a_golden_game() -> None:
    matches = [match for path in FULL for match in load(read(path).splitlines()) if isinstance(match, Match)]
    presets = [preset_of(match.rules) for match in matches]
    for name in PRESETS:
        assert presets.count((name, {})) >= 2, name
    tables = {
        (preset, match.rules.players, match.rules.max_pip) for (preset, _), match in zip(presets, matches, strict=True)
    }
    assert tables >= {("puxar", 3, 6), ("puxar", 4, 6), ("blocos", 5, 6), ("puxar", 9, 9)}


def test_golden_games_hold_all_that_can_happen() -> None:
    games = [game for path in FULL for match in load(read(path).splitlines()) for game in match.games]  # type: ignore[union-attr]
    assert {game.multiplier for game in games} == {1, 2, 3, 9}
    assert {event.kind for game in games for event in game.events} == {"play", "draw", "pass"}
    results = [game.result for game in games]
    assert {result.reason for result in results} == {"out", "blocked", "tied"}
    assert {result.finish for result in results} >= {None, "simples", "carroca", "la-e-lo"}


def test_the_golden_files_are_what_their_program_writes() -> None:
    texts = golden_texts()
    assert {path for path in texts if path != DEALS} == set(FILES)
    for path, text in texts.items():
        assert read(path) == text, path.name
    assert {path.stem for path in FULL} == set(full_matches())


def test_the_same_seed_deals_the_same_tiles_as_ever() -> None:
    assert read(DEALS) == first_deals()
    deals = [deal for deal in load(read(DEALS).splitlines()) if isinstance(deal, Deal)]
    assert len(deals) == len(PRESETS) * len(SEEDS) * len(TABLES)
    at = iter(deals)
    for rules in PRESETS.values():
        for seed in SEEDS:
            first, *others = (next(at) for _ in TABLES)
            assert first not in others
            game = Game(rules, seed)
            assert (game.deal, game.starter if game.forced is None else None) == (
                first._replace(lot=None),
                first.lot,
            )
            assert Match(rules, seed).game == game
            for table, deal in enumerate(others, 1):
                batch = Batch(rules, 1, seed, first_table=table, observe=False)
                assert dealt(rules, batch.state[0]) == deal
