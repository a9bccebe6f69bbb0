"""What the training programs share: the run folder, its checkpoints and evaluations, how a run ends and goes on."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar

import torch
import yaml
from pydantic import Field
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from agents import checkpoint, zoo
from agents.checkpoint import newest
from agents.networks import MoveNet, PolicyNet
from agents.policy import PolicyPlayer
from domino_env import RuleSet
from domino_env._jit import source_hash
from domino_env.arena import Duel, SideSpec, duel, games_of
from domino_env.bots import make_player
from domino_env.players import Player

from .config import EVALUATION_SEEDS, Config, ConfigError, load_config
from .plots import learning_curve

#: What a run leaves in its folder.
RUN_FILES: Final = ("config.yaml", "metrics", "evaluations.jsonl", "learning.png", "checkpoints")


class Diverged(RuntimeError):
    """The network gives NaN or infinity; nothing of it was saved."""

    def __init__(self, config: RunKeys, steps: int) -> None:
        super().__init__(
            f"run={config.run}: after {steps:,} decisions the network gives NaN or infinity; the checkpoints are from "
            f"before. Try a lower learning_rate than {config.learning_rate:g}"
        )


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
    part = folder / "config.part"  # a run that is killed now must not lose the configuration it was resumed with
    part.write_text(f"# domino_env's sources: {source_hash()}\n{values}", encoding="utf-8")
    part.replace(folder / "config.yaml")


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
    policy: PolicyNet | MoveNet, rules: RuleSet, opponents: Sequence[str], *, episode: Any, deals: int, **noted: Any
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


def duel_shown(player: SideSpec, opponent: Player, rules: RuleSet, *, deals: int, seed: int, episode: Any) -> Duel:
    """A duel, with a progress bar on standard error."""
    title = f"{games_of(episode)} against {opponent.name}"
    with tqdm(total=deals, unit=" deals", desc=title, leave=False, file=sys.stderr) as bar:
        return duel(
            player, opponent, rules, deals=deals, seed=seed, episode=episode,
            progress=lambda played: bar.update(played - bar.n),
        )  # fmt: skip


def checkpoint_of(spec: str) -> Path | None:
    """The checkpoint of a released policy, a `PolicyPlayer`'s spec string, a checkpoint or a run; None of others.

    Raises:
        ValueError: an unknown released policy; a path that is neither a checkpoint nor a run.
    """
    path, _, query = spec.partition("?")
    if path.startswith("zoo/"):
        return zoo.path_of(path)
    if path == f"{PolicyPlayer.__module__}:{PolicyPlayer.__name__}":
        options = dict(part.partition("=")[::2] for part in query.split("&"))
        return newest(options["path"]) if "path" in options else None
    return newest(path) if Path(path).is_dir() else None


def spec_of(player: str) -> str:
    """What `make_player` takes for a player that may also be given as a folder."""
    path, question, options = player.partition("?")
    if not Path(path).is_dir() or path.startswith("zoo/"):
        return player
    return f"{PolicyPlayer.__module__}:{PolicyPlayer.__name__}?path={path}{'&' if question else ''}{options}"


def player_of(player: str, rules: RuleSet) -> Player:
    """The player of a name, a spec string, a checkpoint or a run folder; a folder's is called by its path.

    Raises:
        ValueError: as `make_player`.
    """
    spec = spec_of(player)
    made = make_player(spec, rules)
    if spec != player:
        made.name = player
    return made


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


class RunKeys(Config):
    """The keys that every run has. A step is a decision."""

    run: str  # the run folder; it must not hold a run already
    preset: str = "duplas"
    rules: dict[str, Any] = {}  # changed fields of the preset
    episode: Literal["round", "match"] = "round"
    seed: int = Field(default=0, ge=0, lt=EVALUATION_SEEDS)
    total_steps: int = Field(default=100_000_000, ge=1)
    minutes: float | None = Field(default=None, gt=0)  # end after so much time, if total_steps are not reached
    threads: int = Field(default=1, ge=1)
    reward_scale: float = Field(default=1.0, gt=0)  # rewards are multiplied by it; values are learnt best about 1
    batch_size: int = Field(default=1024, ge=2)
    epochs: int = Field(default=2, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)  # at first; it falls linearly, with steps or time
    gamma: float = Field(default=1.0, gt=0, le=1)
    hidden: list[Annotated[int, Field(ge=1)]] = [128, 128]
    activation: Literal["relu", "tanh"] = "relu"
    precision: Literal["float32", "bfloat16"] = "float32"  # of networks' products; weights are float32 anyhow
    evaluate_every: int = Field(default=500_000, ge=1)  # a checkpoint each time
    evaluation_opponents: list[str] = ["random", "doubles", "counting"]
    evaluation_deals: int = Field(default=2000, ge=2)

    def progress(self, steps: int, seconds: float) -> float:
        """How much of the run is done, by steps or time, 0 to 1."""
        passed = steps / self.total_steps
        if self.minutes is not None:
            passed = max(passed, seconds / 60 / self.minutes)
        return min(passed, 1.0)


#: What a resumed run may change; anything else would make it another run.
MAY_CHANGE: Final = (
    "total_steps", "minutes", "threads", "evaluate_every", "evaluation_opponents", "evaluation_deals",
)  # fmt: skip

K = TypeVar("K", bound=RunKeys)


class Trainer(Protocol):
    """What learns in a run: all that its checkpoints keep."""

    rules: RuleSet
    seconds: float  # of all updates

    @property
    def steps(self) -> int:
        """Decisions it has learnt from."""

    def update(self) -> dict[str, float]:
        """Play and learn once; what to note of it, ``steps`` and ``seconds`` among it.

        Raises:
            Diverged: something is not finite.
        """

    def save(self, target: Path) -> None:
        """Write a checkpoint."""

    def restore(self, folder: Path) -> None:
        """Go on from a checkpoint.

        Raises:
            CheckpointError: it is damaged, or not this run's.
        """


class Run:
    """A run's folder, and the loop that fills it."""

    def __init__(self, config: RunKeys, folder: Path, trainer: Trainer) -> None:
        self.config, self.folder, self.trainer = config, folder, trainer
        self.stopping = False
        self.metrics = folder / "metrics" / "progress.json"
        self.metrics.parent.mkdir(exist_ok=True)
        read_lines(self.metrics, trainer.steps)
        self.evaluations = read_lines(folder / "evaluations.jsonl", trainer.steps)
        self.board = SummaryWriter(str(self.metrics.parent), purge_step=trainer.steps + 1 if trainer.steps else None)
        timed = config.minutes is not None
        self.bar = tqdm(
            total=round(60 * config.minutes) if timed else config.total_steps, unit=" s" if timed else " decisions",
            unit_scale=not timed, file=sys.stderr,
        )  # fmt: skip
        self._show()

    def _show(self) -> None:
        """Move the progress bar on."""
        steps, seconds, timed = self.trainer.steps, self.trainer.seconds, self.config.minutes is not None
        self.bar.update((min(round(seconds), self.bar.total) if timed else steps) - self.bar.n)
        if timed:
            self.bar.set_postfix_str(f"{steps:,} decisions")

    def stop(self) -> None:
        """End the run after this update."""
        self.stopping = True

    def go(self, updates: int | None = None) -> None:
        """Train to the run's end, or for so many updates, or until `stop`; checkpoints and evaluations on the way."""
        trainer, every = self.trainer, self.config.evaluate_every
        if not trainer.steps:
            self.mark()
        while self.config.progress(trainer.steps, trainer.seconds) < 1 and not self.stopping and updates != 0:
            before = trainer.steps
            figures = trainer.update()
            add_line(self.metrics, figures)
            for name, value in figures.items():
                self.board.add_scalar(name, value, trainer.steps)
            self._show()
            updates = updates if updates is None else updates - 1
            if trainer.steps // every > before // every:
                self.mark()
        self.mark()

    def mark(self) -> None:
        """Save a checkpoint and play its greedy policy against the ladder; what is there already is not made again."""
        trainer, config = self.trainer, self.config
        target = self.folder / "checkpoints" / f"{trainer.steps:012d}"
        if not target.exists():
            trainer.save(target)
        policy, _ = checkpoint.load(target)
        played = {line["opponent"] for line in self.evaluations if line["steps"] == trainer.steps}
        opponents = [opponent for opponent in config.evaluation_opponents if opponent not in played]
        shown = []
        for line in judge(
            policy, trainer.rules, opponents, episode=config.episode, deals=config.evaluation_deals,
            steps=trainer.steps, seconds=round(trainer.seconds, 1),
        ):  # fmt: skip
            self.evaluations.append(line)
            add_line(self.folder / "evaluations.jsonl", line)
            shown.append(f"{line['opponent']} {line['win_share'][0]:.1%}")
        if shown:
            games = games_of(config.episode)
            self.bar.write(f"{trainer.steps:>11,} decisions, {games} won against {', '.join(shown)}", file=sys.stderr)

    def close(self) -> None:
        """Close the files."""
        self.bar.close()
        self.board.close()


def train(config: RunKeys, make: Callable[[], Trainer], *, resume: bool, updates: int | None) -> Path:
    """Run a configuration, from its start or from the newest checkpoint of its folder; the run folder.

    Args:
        make: the trainer at its start.
        updates: end after so many.

    Raises:
        ConfigError: the run folder holds a run already, or what `make` raises. Nothing was written.
        CheckpointError: there is no checkpoint to go on from, or it is damaged.
        Diverged: the network came to give NaN.
        OSError: the run folder cannot be written.
    """
    folder = Path(config.run) if resume else check_free(config.run)
    torch.set_num_threads(config.threads)
    trainer = make()
    if resume:
        trainer.restore(checkpoint.newest(folder))
        checkpoint.remove_parts(folder)
    write_config(folder, config)
    run = Run(config, folder, trainer)
    try:
        with stopping_at_signals(run.stop):
            run.go(updates)
    finally:
        run.close()
    if run.evaluations:
        learning_curve(folder / "evaluations.jsonl", folder / "learning.png")
    return folder


def resumed_config(kind: type[K], run: str, changes: Sequence[str]) -> K:
    """The configuration of a run, with changes.

    Raises:
        ConfigError: as `load_config`; a change that would make it another run.
    """
    for change in changes:
        if (key := change.partition("=")[0]) not in MAY_CHANGE and key in kind.model_fields:
            raise ConfigError(f"{change!r}: a resumed run may change only {', '.join(MAY_CHANGE)}")
    return load_config(kind, Path(run) / "config.yaml", [*changes, f"run={run}"])


def command_line(
    kind: type[K], train: Callable[..., Path], program: str, about: str, arguments: Sequence[str] | None
) -> int:
    """A training program's command line; 2 where the configuration cannot be used, 1 where the run could not go on.

    Args:
        kind: the program's configuration.
        train: its ``train(config, resume=..., updates=...)``, which gives the run folder.
        program: the name of its module, and of its folder of configurations.
    """
    parser = argparse.ArgumentParser(prog=f"python -m training.{program}", description=about)
    example = f"configs/{program}/duplas.yaml"
    parser.add_argument("config", help=f"a YAML file, such as {example}; with --resume, a run folder")
    parser.add_argument("changes", nargs="*", metavar="key=value", help="values that replace the file's")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint of a run")
    parser.add_argument("--updates", type=int, metavar="N", help="end after N updates, to be resumed later")
    given = parser.parse_intermixed_args(arguments)
    try:
        if given.resume:
            config = resumed_config(kind, given.config, given.changes)
        else:
            config = load_config(kind, given.config, given.changes)
        folder = train(config, resume=given.resume, updates=given.updates)
    except (ConfigError, checkpoint.CheckpointError, Diverged, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if isinstance(error, Diverged | OSError) else 2
    print(f"{folder}: newest checkpoint {checkpoint.newest(folder)}", end="")
    print(f", learning curve {folder / 'learning.png'}" if (folder / "learning.png").exists() else "")
    return 0
