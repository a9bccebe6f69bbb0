"""Bots think in processes of their own, so that none of them holds up the tables, whatever it does."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, Final

from ..batch import check_actions
from ..bots import make_player
from ..events import View
from ..game import Game
from ..observation import Views
from ..players import Player, Streams
from ..rules import RuleSet
from .messages import clean

#: Players that a process keeps; then the one made first is forgotten.
_KEPT: Final = 64
#: The most letters of what a player says went wrong.
_DETAILS: Final = 300


class Trouble(Exception):
    """What went wrong with a bot, in words that follow its name.

    Args:
        what: for everybody.
        details: the bot's own words, which may tell its tiles.
    """

    def __init__(self, what: str, details: str = "") -> None:
        super().__init__(what)
        self.full = f"{what}: {details}" if details else what


class Thinkers:
    """Processes that make players and ask them for moves.

    Args:
        count: how many; each thinks about one move at a time, and the next one waits.
    """

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="thinker")
        self._workers = [_Worker() for _ in range(count)]
        self._free: asyncio.Queue[_Worker] = asyncio.Queue()
        for worker in self._workers:
            self._free.put_nowait(worker)

    async def make(self, spec: str, rules: RuleSet, seconds: float) -> None:
        """See that a player can be made for these rules and moves: what it compiles and loads is there then.

        Raises:
            Trouble: it cannot be made, or not in time.
        """
        await self._with_a_worker(_Worker.make, spec, rules, seconds)

    async def move(self, spec: str, view: View, seed: int, making: float, thinking: float) -> int:
        """The action that a player chooses.

        Args:
            spec: the player.
            view: what its seat sees; of a seat to act.
            seed: what its random numbers follow from.
            making: seconds until it has to be made, if it is not.
            thinking: seconds until it has to have chosen.

        Raises:
            Trouble: it has not: it failed, or took too long.
        """
        action: int = await self._with_a_worker(_Worker.move, spec, view, seed, making, thinking)
        return action

    async def _with_a_worker(self, ask: Any, *question: Any) -> Any:
        worker = await self._free.get()
        asked = asyncio.get_running_loop().run_in_executor(self._threads, ask, worker, *question)
        asked.add_done_callback(lambda answered: self._set_free(worker, answered))
        # Where nobody waits any more, the worker is still free only when it has answered.
        return await asyncio.shield(asked)

    def _set_free(self, worker: _Worker, answered: asyncio.Future[Any]) -> None:
        answered.exception()  # looked at, so that nobody is warned of it
        self._free.put_nowait(worker)

    def close(self) -> None:
        """End the processes, whatever they are thinking about."""
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown()
        for worker in self._workers:
            worker.end()


class _Worker:
    """One process. It is started when it is first needed, and anew after it had to be ended."""

    def __init__(self) -> None:
        self._process: Any = None
        self._connection: Connection | None = None
        self._closed = False
        self._lock = threading.Lock()  # `kill` comes from another thread

    def make(self, spec: str, rules: RuleSet, seconds: float) -> None:
        """Make a player, if it has not been made."""
        self._ask((spec, rules, None, 0), seconds)

    def move(self, spec: str, view: View, seed: int, making: float, thinking: float) -> int:
        """Ask a player for a move."""
        self.make(spec, view.rules, making)
        action: int = self._ask((spec, view.rules, view.record, seed), thinking)
        return action

    def _ask(self, question: tuple[Any, ...], seconds: float) -> Any:
        try:
            connection = self._started()
            connection.send(question)
            if not connection.poll(seconds):
                self.end()
                raise Trouble(f"did not answer within {seconds:g} s")
            answer = connection.recv()
        except (OSError, EOFError):
            self.end()
            raise Trouble("ended its process") from None
        if isinstance(answer, str):
            raise Trouble("failed", answer)
        return answer

    def _started(self) -> Connection:
        with self._lock:
            if self._closed:
                raise Trouble("is not asked any more: the tables are closed")
            if self._connection is None:
                context = multiprocessing.get_context("spawn")
                here, there = context.Pipe()
                process = context.Process(target=_serve, args=(there,), daemon=True)
                process.start()
                there.close()
                self._process, self._connection = process, here
            return self._connection

    def kill(self) -> None:
        """End the process from another thread, for good; whoever waits for its answer is told."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()

    def end(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.join()
            if self._connection is not None:
                self._connection.close()
            self._process = self._connection = None


def _serve(connection: Connection) -> None:
    """Answer questions until the connection ends: the action, or a text that says what went wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the process that serves
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # libraries that a player imports would each take all cores
    made: dict[tuple[str, RuleSet], Player] = {}
    while True:
        try:
            spec, rules, record, seed = connection.recv()
        except (EOFError, OSError):
            return
        answer: int | str = 0
        try:
            if (spec, rules) not in made:
                if len(made) == _KEPT:
                    del made[next(iter(made))]
                made[spec, rules] = _rehearsed(make_player(spec, rules), rules)
            if record is not None:
                answer = _choose(made[spec, rules], record, seed)
        except Exception as error:
            answer = clean(f"{type(error).__name__}: {error}"[:_DETAILS])
        try:
            connection.send(answer)
        except OSError:
            return


def _rehearsed(player: Player, rules: RuleSet) -> Player:
    """The player, after it has played a round: all that it compiles late is there then."""
    if player.sees_all:
        raise ValueError("it sees all hands: nobody plays against that")
    game = Game(rules, seed=1)
    while game.seat is not None:
        game.play(_choose(player, game.view(game.seat).record, seed=1))
    return player


def _choose(player: Player, record: Views, seed: int) -> int:
    return int(check_actions(player.act(record, Streams.from_seed(seed, 1)), 1)[0])
