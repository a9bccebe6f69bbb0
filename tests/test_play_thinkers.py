from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from domino_env import PRESETS, Game
from domino_env.bots import ScriptedPlayer, make_player
from domino_env.events import View
from domino_env.play.thinkers import Thinkers, Trouble
from domino_env.players import Streams

MAKING = 120.0  # seconds, on a machine with other work
RULES = PRESETS["mano_a_mano"]


class Bot(ScriptedPlayer):
    """Plays as `doubles`; once the round of its rehearsal is over, as `kind` says."""

    def __init__(self, rules: Any, kind: str) -> None:
        super().__init__(rules, "doubles")
        self.kind = kind

    def act(self, views: Any, rng: Any) -> Any:
        if int(views["scores"][0, 0]) != SCORE:
            return super().act(views, rng)
        if self.kind == "sleeps":
            time.sleep(60)
        if self.kind == "exits":
            os._exit(3)
        if self.kind == "raises":
            raise RuntimeError("no idea\nwhat to play")
        return np.array([np.nan])


SCORE = 3  # of the side to move in `view`, so that the bots know it


def bot(kind: str) -> str:
    return f"test_play_thinkers:Bot?kind={kind}"


def view(score: int = 0) -> View:
    game = Game(RULES, seed=7)
    assert game.seat is not None
    scores = [0, 0]
    scores[game.seat] = score
    deal = game.deal
    game = Game.from_deal(RULES, deal.hands, deal.boneyard, game.seat, scores=scores)
    assert game.seat is not None
    return game.view(game.seat)


@asynccontextmanager
async def thinkers(count: int = 1) -> AsyncIterator[Thinkers]:
    made = Thinkers(count)
    try:
        yield made
    finally:
        await asyncio.to_thread(made.close)


def with_thinkers(scenario: Callable[[Thinkers], Awaitable[None]], count: int = 1) -> None:
    async def main() -> None:
        async with thinkers(count) as made:
            await scenario(made)

    asyncio.run(main())


def test_a_move_is_the_players_own() -> None:
    async def scenario(made: Thinkers) -> None:
        for spec in ("doubles", "random", "counting"):
            for seed in (1, 2, 3):
                expected = make_player(spec, RULES).act(view().record, Streams.from_seed(seed, 1))[0]
                assert await made.move(spec, view(), seed, MAKING, MAKING) == expected

    with_thinkers(scenario)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("nobody", "ValueError: unknown player 'nobody'"),
        ("oracle", "ValueError: it sees all hands"),
        ("test_play_thinkers:Bot", "ValueError: player 'test_play_thinkers:Bot': "),
    ],
)
def test_a_player_that_cannot_be_made_says_why(spec: str, says: str) -> None:
    async def scenario(made: Thinkers) -> None:
        for _ in range(2):
            with pytest.raises(Trouble) as trouble:
                await made.make(spec, RULES, MAKING)
            assert str(trouble.value) == "failed"
            assert trouble.value.full.startswith(f"failed: {says}")
        await made.make("doubles", RULES, MAKING)

    with_thinkers(scenario)


@pytest.mark.parametrize(
    ("kind", "thinking", "says"),
    [
        ("raises", MAKING, "failed: RuntimeError: no idea what to play"),
        ("nan", MAKING, "failed: ValueError: actions have dtype float64"),
        ("exits", MAKING, "ended its process"),
        ("sleeps", 0.3, "did not answer within 0.3 s"),
    ],
)
def test_after_a_bot_in_trouble_the_next_is_asked_as_ever(kind: str, thinking: float, says: str) -> None:
    async def scenario(made: Thinkers) -> None:
        await made.make(bot(kind), RULES, MAKING)
        with pytest.raises(Trouble) as trouble:
            await made.move(bot(kind), view(SCORE), 1, MAKING, thinking)
        assert trouble.value.full.startswith(says)
        assert await made.move("doubles", view(), 1, MAKING, MAKING) == await made.move(
            bot(kind), view(), 1, MAKING, MAKING
        )

    with_thinkers(scenario)


def test_a_worker_is_free_again_although_nobody_waits_for_its_answer() -> None:
    async def scenario(made: Thinkers) -> None:
        await made.make(bot("sleeps"), RULES, MAKING)
        asked = asyncio.create_task(made.move(bot("sleeps"), view(SCORE), 1, MAKING, 0.5))
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.sleep(0)
        assert made._free.empty()
        await made.make("doubles", RULES, MAKING)

    with_thinkers(scenario)


def test_one_that_sleeps_holds_up_no_other() -> None:
    async def scenario(made: Thinkers) -> None:
        await made.make(bot("sleeps"), RULES, MAKING)
        asleep = asyncio.create_task(made.move(bot("sleeps"), view(SCORE), 1, MAKING, MAKING))
        for seed in range(5):
            await made.move("random", view(), seed, MAKING, MAKING)
        assert not asleep.done()
        asleep.cancel()

    with_thinkers(scenario, count=2)
