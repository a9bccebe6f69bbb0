"""The cheat: what it sees, and that nobody but the arena can ask it."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import TABLES

from domino_env import PRESETS, Batch, Game
from domino_env.arena import duel
from domino_env.bots import make_player
from domino_env.bots.oracle import OraclePlayer
from domino_env.bots.solver import move_values
from domino_env.envs.single import DominoEnv
from domino_env.players import Streams


@pytest.mark.parametrize("name", ["duplas", "mano_a_mano", "puxar"])
@pytest.mark.parametrize(("aim", "value"), [("points", "points"), ("round", "win")])
def test_plays_what_the_solver_finds_best(name: str, aim: str, value: str) -> None:
    rules = TABLES[name]
    batch = Batch(rules, 40, 3, autoreset=False, observe=False)
    for _ in range(6):
        batch.step(batch.sample_actions(), tables=~batch.done)
    rows = np.flatnonzero(~batch.done)
    chosen = OraclePlayer(rules, aim=aim).act_on(batch.state[rows], Streams.from_seed(1, len(rows)))
    for row, action in zip(rows.tolist(), chosen.tolist(), strict=True):
        game = Game(rules, 0)
        game._state[0] = batch.state[row]
        game._look()
        values = move_values(game, value)
        best = max(values.values())
        assert next(worth for move, worth in values.items() if move.action == action) == best


def test_wins_more_than_any_honest_player() -> None:
    result = duel("oracle?aim=round", "counting", PRESETS["blocos"], deals=300, seed=1)
    assert result.win_share.low > 0.65, result


def test_only_the_arena_can_ask_it() -> None:
    player = make_player("oracle", PRESETS["duplas"])
    with pytest.raises(ValueError, match="sees all hands, and a view does not show them: only the arena"):
        DominoEnv("duplas", opponents=player).reset(seed=1)
    with pytest.raises(NotImplementedError, match="'random' chooses by what its seat sees alone"):
        make_player("random", PRESETS["duplas"]).act_on(Batch(PRESETS["duplas"], 1, 0).state, Streams.from_seed(0, 1))
    with pytest.raises(ValueError, match="aim='match' is not one of points, round"):
        make_player("oracle?aim=match", PRESETS["duplas"])
