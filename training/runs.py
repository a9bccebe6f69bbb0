"""What the training programs share: the run folder, its checkpoints and evaluations, and how a run ends."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from agents.networks import PolicyNet
from agents.policy import PolicyPlayer
from domino_env import RuleSet
from domino_env._jit import source_hash
from domino_env.arena import duel

from .config import EVALUATION_SEEDS, Config, ConfigError

#: What a run leaves in its folder.
RUN_FILES: Final = ("config.yaml", "metrics", "evaluations.jsonl", "learning.png", "checkpoints")


class Diverged(RuntimeError):
    """The network gives NaN or infinity; nothing of it was saved."""


def check_free(run: str) -> Path:
    """The folder of a new run.

    Raises:
        ConfigError: it holds a run already.
    """
    folder = Path(run)
    if held := [name for name in RUN_FILES if (folder / name).exists()]:
        raise ConfigError(f"run={run}: that folder holds a run ({', '.join(held)}); choose another, or remove it")
    return folder


def write_config(folder: Path, config: Config) -> None:
    """Make the run folder, with its configuration in it."""
    folder.mkdir(parents=True, exist_ok=True)
    values = yaml.safe_dump(config.model_dump(), sort_keys=False)
    (folder / "config.yaml").write_text(f"# domino_env's sources: {source_hash()}\n{values}", encoding="utf-8")


def add_line(file: Path, values: dict[str, Any]) -> None:
    """Append a line of JSON."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(values) + "\n")


def read_lines(file: Path, last: int) -> list[dict[str, Any]]:
    """The lines of a file of JSON lines up to decision `last`; the others are removed from it.

    They are from after the checkpoint that a run goes on from; where it was killed, the last may be a part of one.
    """
    kept = []
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            values = json.loads(text)
        except ValueError:
            break
        if values["steps"] <= last:
            kept.append(values)
    part = file.with_suffix(".part")
    part.write_text("".join(json.dumps(values) + "\n" for values in kept), encoding="utf-8")
    part.replace(file)
    return kept


def judge(
    policy: PolicyNet, rules: RuleSet, opponents: Sequence[str], *, episode: Any, deals: int, **noted: Any
) -> Iterator[dict[str, Any]]:
    """Play the greedy policy against each opponent, on the same deals each time, which training never sees.

    Yields a line of ``evaluations.jsonl`` for each, beginning with what is `noted`.
    """
    for opponent in opponents:
        player = PolicyPlayer(rules, policy=policy)
        result = duel(player, opponent, rules, deals=deals, seed=EVALUATION_SEEDS, episode=episode)
        yield {
            **noted,
            "opponent": opponent,
            "points": [result.points.mean, result.points.low, result.points.high],
            "win_share": [result.win_share.mean, result.win_share.low, result.win_share.high],
            "verdict": result.verdict,
        }


@contextmanager
def stopping_at_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first SIGINT or SIGTERM; a second one does what it did before.

    Outside the main thread, which alone gets signals, this changes nothing.
    """
    in_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM) if in_main}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def first(number: int, frame: Any) -> None:
        restore()
        stop()

    for number in before:
        signal.signal(number, first)
    try:
        yield
    finally:
        restore()
