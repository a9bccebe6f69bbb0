"""Speed, measured side by side in one run: ``python -m domino_env bench``.

Every contender plays uniformly random legal moves for a moment, in turns, several times over; the
table gives the median of its rates, so that a machine's mood falls on all of them alike. A decision
is one choice among legal moves; dealing and everything that is forced is included.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import PRESETS, Batch, Game
from ._jit import jit
from .observation import encode, expand, expand_mask, look
from .rules import pack

#: Plays for about this many seconds and returns how many decisions that were.
Contender = Callable[[float], int]


@dataclass
class Row:
    """A contender and the rates it reached."""

    name: str
    play: Contender
    rates: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Decisions a second: the median over the repeats."""
        return statistics.median(self.rates)


def until(seconds: float, some: Callable[[], int]) -> int:
    """Call `some` until `seconds` have passed; the sum of what it returned."""
    end, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        count += some()
    return count


def batch_contender(preset: str, *, observing: bool, threads: int, tables: int) -> Contender:
    """A batch of `tables` tables."""
    batch = Batch(PRESETS[preset], tables, seed=1, observe=observing, threads=threads)

    def some() -> int:
        for _ in range(8):
            batch.step(batch.sample_actions())
        return 8 * tables

    return lambda seconds: until(seconds, some)


def game_contender(preset: str) -> Contender:
    """`Game`, a move at a time from Python."""
    rules = PRESETS[preset]
    seeds = iter(range(10**9))

    def some() -> int:
        game, count = Game(rules, next(seeds)), 0
        while game.seat is not None:
            game.play(random.choice(game.legal_moves()))
            count += 1
        return count

    return lambda seconds: until(seconds, some)


def play_out_contender(preset: str) -> Contender:
    """`Game.play_out`, a round at a time."""
    rules = PRESETS[preset]
    seeds = iter(range(10**9))

    def some() -> int:
        seed = next(seeds)
        game = Game(rules, seed)
        game.play_out(seed)
        return len(game.moves)

    return lambda seconds: until(seconds, some)


def aec_contender(environment: Any, *, own_sampling: bool = False) -> Contender:
    """A PettingZoo environment through `last`, masked sampling and `step`."""
    generator = np.random.default_rng(0)
    environment.reset(seed=0)

    def some() -> int:
        environment.reset()
        count = 0
        for agent in environment.agent_iter():
            observation, _, terminated, truncated, _ = environment.last()
            if terminated or truncated:
                environment.step(None)
                continue
            mask = observation["action_mask"]
            if own_sampling:
                legal = mask.nonzero()[0]
                action = int(legal[generator.integers(len(legal))])
            else:
                action = environment.action_space(agent).sample(mask)
            environment.step(action)
            count += 1
        return count

    return lambda seconds: until(seconds, some)


def openspiel_contender() -> Contender:
    """OpenSpiel's team dominoes with its observation tensor and mask."""
    pyspiel = importlib.import_module("pyspiel")
    importlib.import_module("open_spiel.python.games")
    game = pyspiel.load_game("python_team_dominoes")

    def some() -> int:
        state, count = game.new_initial_state(), 0
        while not state.is_terminal():
            if not state.is_chance_node():
                state.observation_tensor()
                state.legal_actions_mask()
                count += 1
            state.apply_action(random.choice(state.legal_actions()))
        return count

    return lambda seconds: until(seconds, some)


def dominoes_contender() -> Contender:
    """The package `dominoes`: a game at a time."""
    dominoes = importlib.import_module("dominoes")

    def some() -> int:
        game, count = dominoes.Game.new(), 0
        while game.result is None:
            game.make_move(*random.choice(game.valid_moves))
            count += 1
        return count

    return lambda seconds: until(seconds, some)


def _others() -> Iterator[tuple[str, Callable[[], Contender]]]:
    """Other projects' games, where they are installed."""
    if importlib.util.find_spec("pyspiel"):
        yield "OpenSpiel python_team_dominoes, tensor + mask", openspiel_contender
    if importlib.util.find_spec("dominoes"):
        yield "package dominoes", dominoes_contender
    if importlib.util.find_spec("pettingzoo.classic"):

        def connect_four(own_sampling: bool) -> Contender:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                module = importlib.import_module("pettingzoo.classic.connect_four_v3")
                return aec_contender(module.env(), own_sampling=own_sampling)

        yield "PettingZoo connect_four_v3", lambda: connect_four(False)
        yield "PettingZoo connect_four_v3, own sampling", lambda: connect_four(True)


def contenders(tables: int) -> list[Row]:
    """Everything that can be measured here."""
    from .envs import aec

    rows = []
    for threads in (1, 2):
        if threads <= (os.cpu_count() or 1):
            rows += [
                Row(f"Batch {preset}, {what}, {threads} thread{'s'[: threads - 1]}",
                    batch_contender(preset, observing=observing, threads=threads, tables=tables))
                for preset in PRESETS
                for what, observing in (("observation + mask", True), ("no observation", False))
            ]  # fmt: skip
    rows += [
        Row("Game.play_out duplas", play_out_contender("duplas")),
        Row("Game duplas", game_contender("duplas")),
        Row("AEC env duplas", aec_contender(aec.env("duplas"))),
        Row("AEC raw_env duplas", aec_contender(aec.raw_env("duplas"))),
        Row("AEC raw_env duplas, own sampling", aec_contender(aec.raw_env("duplas"), own_sampling=True)),
    ]
    for name, make in _others():
        try:
            rows.append(Row(name, make()))
        except Exception as error:  # another project's failure must not end the run, but is told
            print(f"{name}: left out, {type(error).__name__}: {error}", file=sys.stderr)
    return rows


#: (what, compared with): the ratios printed below the rates.
RATIOS = (
    ("Batch duplas, observation + mask, 2 threads", "Batch duplas, observation + mask, 1 thread"),
    ("Batch duplas, observation + mask, 1 thread", "OpenSpiel python_team_dominoes, tensor + mask"),
    ("Batch duplas, observation + mask, 2 threads", "OpenSpiel python_team_dominoes, tensor + mask"),
    ("Game duplas", "package dominoes"),
    ("Game.play_out duplas", "package dominoes"),
    ("AEC env duplas", "PettingZoo connect_four_v3"),
    ("AEC raw_env duplas", "PettingZoo connect_four_v3"),
    ("AEC raw_env duplas, own sampling", "PettingZoo connect_four_v3, own sampling"),
)


@jit
def _time_looks(state: Any, rules: Any, views: Any) -> None:
    for t in range(state.shape[0]):
        if state[t]["seat"] >= 0:
            look(state[t], rules[0], state[t]["seat"], views[0])


@jit
def _time_encodes(state: Any, rules: Any, views: Any, vectors: Any) -> None:
    for _ in range(state.shape[0]):
        encode(views[0], rules[0], vectors[0])


@jit
def _time_expands(vectors: Any, observation: Any) -> None:
    for t in range(observation.shape[0]):
        expand(vectors[0], observation[t])


@jit
def _time_masks(state: Any, mask: Any) -> None:
    for t in range(state.shape[0]):
        expand_mask(state[t]["legal"][0], state[t]["legal"][1], mask[t])


def parts(tables: int) -> list[tuple[str, float]]:
    """Nanoseconds a decision takes in each part of `Batch.step` for duplas, on one thread."""
    batch = Batch(PRESETS["duplas"], tables, seed=1, threads=1)
    bare = Batch(PRESETS["duplas"], tables, seed=1, threads=1, observe=False)
    for _ in range(9):
        batch.step(batch.sample_actions())
    views, vectors = batch.scratch()
    packed = pack(batch.rules)
    observation, mask = batch.observation.view(np.uint64), batch.action_mask.view(np.uint64)
    work: list[tuple[str, Callable[[], object]]] = [
        ("choosing a random move", bare.sample_actions),
        ("playing, dealing and all else but seeing", lambda: bare.step(bare.sample_actions())),
        ("the view", lambda: _time_looks(batch.state, packed, views)),
        ("the vector, one bit an entry", lambda: _time_encodes(batch.state, packed, views, vectors)),
        (f"the vector's {observation.shape[1] * 8} bytes", lambda: _time_expands(vectors, observation)),
        (f"the mask's {mask.shape[1] * 8} bytes", lambda: _time_masks(batch.state, mask)),
    ]
    found: dict[str, list[float]] = {name: [] for name, _ in work}
    for _ in range(60):
        for name, once in work:
            start = time.perf_counter()
            once()
            found[name].append((time.perf_counter() - start) / tables * 1e9)
    medians = {name: statistics.median(times[5:]) for name, times in found.items()}
    medians[work[1][0]] -= medians[work[0][0]]
    return list(medians.items())


_START = """
import time; start = time.perf_counter()
import domino_env; imported = time.perf_counter()
import gymnasium
env = gymnasium.make("domino_env/Duplas-v0"); env.reset(seed=0)
env.step(int(env.unwrapped.action_masks().argmax()))
print(imported - start, time.perf_counter() - start)
"""


def starts() -> list[tuple[str, float, float]]:
    """(which, seconds for ``import domino_env``, seconds until the first step was made), with and without a cache."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for which in ("cold (nothing compiled yet)", "warm"):
            done = subprocess.run(
                [sys.executable, "-c", _START], env={**os.environ, "DOMINO_ENV_CACHE_DIR": folder},
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            imported, stepped = (float(word) for word in done.stdout.split())
            found.append((which, imported, stepped))
    return found


def measure(rows: Sequence[Row], seconds: float, repeats: int) -> None:
    """Let all play in turns, `repeats` times over, and note their rates."""
    for row in rows:
        row.play(0.05)
    for _ in range(repeats):
        for row in rows:
            start = time.perf_counter()
            count = row.play(seconds)
            row.rates.append(count / (time.perf_counter() - start))


def report(title: str, unit: str, rows: Sequence[Row], ratios: Sequence[tuple[str, str]]) -> None:
    """Print the rates, and of the pairs of names in `ratios` those that were measured."""
    width = max(len(title), *(len(row.name) for row in rows))
    print(f"{title:{width}}  {unit:>11}     us each   spread")
    for row in rows:
        spread = (max(row.rates) - min(row.rates)) / row.rate
        print(f"{row.name:{width}}  {row.rate:>11,.0f}  {1e6 / row.rate:>9.3f}   {spread:>5.0%}")
    rates = {row.name: row.rate for row in rows}
    print("\nratios")
    for one, other in ratios:
        if one in rates and other in rates:
            print(f"{rates[one] / rates[other]:>10,.1f}  {one} / {other}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m domino_env bench", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=0.3, help="of each contender in each repeat (default 0.3)")
    parser.add_argument("--repeats", type=int, default=5, help="how often each is measured (default 5)")
    parser.add_argument("--tables", type=int, default=32768, help="tables of a batch (default 32768)")
    parser.add_argument("--envs", action="store_true", help="measure the vector environments instead")
    parser.add_argument("--no-starts", action="store_true", help="leave out the time a fresh process takes to start")
    given = parser.parse_args(arguments)
    if given.seconds <= 0 or given.repeats < 1 or given.tables < 1:
        parser.error("--seconds, --repeats and --tables must be above 0")
    if given.envs:
        from .bench_envs import bench_envs

        bench_envs("duplas", given.seconds, given.repeats)
        return 0
    rows = contenders(given.tables)
    measure(rows, given.seconds, given.repeats)
    report("", "decisions/s", rows, RATIOS)
    print("\nnanoseconds a decision, Batch duplas, 1 thread")
    for name, nanoseconds in parts(given.tables):
        print(f"{nanoseconds:>10.1f}  {name}")
    print("\nbytes a table (state, observation, mask, streams)")
    for preset, rules in PRESETS.items():
        print(f"{Batch(rules, 1).bytes_per_table:>10,}  {preset}")
    if not given.no_starts:
        print("\nseconds to start a fresh process: import domino_env; that, gym.make, reset and a first step")
        for which, imported, stepped in starts():
            print(f"{imported:>10.2f}  {stepped:.2f}  {which}")
    return 0
