"""The events of a round as tokens: they say what the seat has seen, all of it, and nothing else."""

from __future__ import annotations

import random

import numpy as np
import pytest
from strategies import TABLES

from domino_env import PRESETS, Game, RuleSet
from domino_env.history import PADDING, History


def told(game: Game, seat: int) -> list[tuple[str, int, str | None, str | None]]:
    """What the tokens must say, from the view's own events."""
    players = game.rules.players
    return [(e.kind, (e.seat - seat) % players, e.tile, e.end) for e in game.view(seat).events]


@pytest.mark.parametrize("name", TABLES)
def test_tokens_say_what_the_seat_has_seen(name: str) -> None:
    rules = TABLES[name]
    history, rng = History(rules), random.Random(name)
    for seed in range(30):
        game = Game(rules, seed)
        while game.seat is not None:
            game.play(rng.choice(game.legal_moves()))
            for seat in range(rules.players):
                tokens = history.tokens(game.view(seat).record)
                assert tokens.dtype == np.int16
                assert tokens.shape == (1, history.length)
                assert 0 <= tokens.min() <= tokens.max() < history.num_tokens
                events = [history.event(token) for token in tokens[0].tolist() if token != PADDING]
                assert events == told(game, seat)
                assert not tokens[0, len(events) :].any()


@pytest.mark.parametrize("rules", [*TABLES.values(), RuleSet(**{**vars(PRESETS["puxar"]), "max_pip": 9, "players": 5})])
def test_every_token_has_a_meaning_of_its_own(rules: RuleSet) -> None:
    history = History(rules)
    meanings = [history.event(token) for token in range(history.num_tokens)]
    assert len(set(meanings)) == history.num_tokens
    assert history.num_tokens <= np.iinfo(np.int16).max
    for token in (-1, history.num_tokens):
        with pytest.raises(ValueError, match=f"token {token}: tokens go from 0 to {history.num_tokens - 1}"):
            history.event(token)


@pytest.mark.parametrize("name", ["mano_a_mano", "puxar", "duplas"])
def test_different_histories_never_give_the_same_tokens(name: str) -> None:
    rules = PRESETS[name]
    history, seen = History(rules), {}
    for seed in range(200):
        game = Game(rules, seed % 20)
        for move in random.Random(seed).choices(range(10**6), k=8):
            if game.seat is None:
                break
            game.play(game.legal_moves()[move % len(game.legal_moves())])
            for seat in range(rules.players):
                view = game.view(seat)
                key = (tuple(view.hand), history.tokens(view.record).tobytes())
                known = (seat, told(game, seat), view.hand)
                assert seen.setdefault((seat, key), known) == known
