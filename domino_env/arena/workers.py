"""Processes that play parts of duels.

Processes and not threads, because a player written in Python holds the interpreter's lock. They are
started anew, not forked: a fork would copy the locks of threads that it does not copy.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

from .._jit import source_hash
from ..batch import cores
from .partners import SideSpec, make_side

if TYPE_CHECKING:
    from .duels import Part, Plan


class Workers:
    """So many processes, each with all players of a table."""

    def __init__(self, players: Sequence[SideSpec], plan: Plan, workers: int) -> None:
        self.plan = plan
        given = (list(players), replace(plan, threads=max(1, cores() // workers)), source_hash())
        for player in players:
            try:
                pickle.dumps(player)
            except Exception as error:
                raise ValueError(
                    f"workers={workers}: {player!r} cannot be sent to another process ({error}); give a spec string"
                ) from None
        context = multiprocessing.get_context("spawn")
        self._processes: dict[Connection, Any] = {}
        self._sizes: dict[Connection, int] = {}
        try:
            for _ in range(workers):
                here, there = context.Pipe()
                process = context.Process(target=_serve, args=(there, *given), daemon=True)
                process.start()
                there.close()
                self._processes[here] = process
        except BaseException:
            self.close()
            raise

    def parts(self, one: int, other: int) -> Iterator[Part]:
        """All parts of a duel between two of the players, as they are finished."""
        start, busy = 0, set[Connection]()
        idle = list(self._processes)
        while True:
            while idle and start < self.plan.deals:
                connection = idle.pop()
                count = min(self._sizes.get(connection, 16), self.plan.deals - start)
                self._send(connection, (one, other, start, count))
                busy.add(connection)
                start += count
            if not busy:
                return
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                part, self._sizes[ready] = self._received(ready)
                busy.remove(ready)
                idle.append(ready)
                yield part

    def _send(self, connection: Connection, task: tuple[int, int, int, int]) -> None:
        try:
            connection.send(task)
        except OSError:
            self._ended(connection)

    def _received(self, connection: Connection) -> tuple[Part, int]:
        try:
            answer = connection.recv()
        except (EOFError, OSError):
            self._ended(connection)
        if isinstance(answer, BaseException):
            raise answer
        part, size = answer
        return part, size

    def _ended(self, connection: Connection) -> None:
        process = self._processes[connection]
        process.join(5)
        raise RuntimeError(
            f"a worker process ended (exit code {process.exitcode}). In a script, what starts workers must stand "
            "under `if __name__ == '__main__':`"
        )

    def close(self) -> None:
        """End the processes, in the midst of a part or not."""
        for process in self._processes.values():
            process.terminate()
        for connection, process in self._processes.items():
            process.join()
            connection.close()
        self._processes.clear()


def _serve(connection: Connection, specs: list[SideSpec], plan: Plan, sources: str) -> None:
    """Play what is asked for until the connection ends."""
    from .duels import next_size, play_part

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the process that counts
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # libraries that a player imports would each take all cores
    made: list[Any] = []
    while True:
        try:
            one, other, start, count = connection.recv()
        except (EOFError, OSError):
            return
        began = time.perf_counter()
        try:
            if source_hash() != sources:
                raise RuntimeError(
                    "domino_env was edited since this program was started: its workers would run other code"
                )
            if not made:
                made = [make_side(spec, plan.rules) for spec in specs]
                began = time.perf_counter()
            part = play_part(made[one], made[other], plan, start, count)
            connection.send((part, next_size(count, count, time.perf_counter() - began)))
        except OSError:
            return
        except Exception as error:
            connection.send(_portable(error))


def _portable(error: Exception) -> Exception:
    """`error` with its traceback as a note, in a form that another process can read."""
    import traceback

    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    if hasattr(error, "add_note"):
        error.add_note(f"in a worker process:\n{text}")
    return error
