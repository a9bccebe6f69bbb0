"""What a player may know: only what its seat has seen."""

from __future__ import annotations

import random

import numpy as np

from domino_env import Batch, Game
from domino_env.belief import Belief
from domino_env.players import Player, Streams


def check_that_hidden_tiles_change_nothing(player: Player, seed: str) -> None:
    """With the same random numbers a player chooses the same, wherever the tiles lie that it cannot see."""
    rules, rng, moved = player.rules, random.Random(seed), 0
    for deal in range(8):
        game = Game(rules, deal)
        for _ in range(rng.randrange(2, 10)):
            if game.seat is not None:
                game.play(rng.choice(game.legal_moves()))
        if game.seat is None:
            continue
        batch = Batch(rules, 21, 0, observe=False)
        batch.state[0] = game._state[0]
        batch.state[1:] = Belief(rules, game.view(game.seat)).sample(20, deal)
        moved += sum((row["hands"] != batch.state["hands"][0]).any() for row in batch.state)
        views = batch.views(np.arange(21), np.full(21, game.seat))
        streams = Streams(np.repeat(Streams.from_seed(deal, 1).states, 21, axis=0))
        assert len(set(player.act(views, streams).tolist())) == 1
    assert moved > 50
