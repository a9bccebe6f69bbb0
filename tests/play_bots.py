"""Bots that behave while they are tried out, and then not; for tests, by spec strings such as ``play_bots:Raises``."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from domino_env import RuleSet
from domino_env.bots import ScriptedPlayer
from domino_env.events import view_of
from domino_env.observation import Views
from domino_env.players import Streams

#: The variable of the environment that names the file for which busy bots wait.
FILE = "PLAY_BOTS_WAIT_FOR"


def compute() -> None:
    """Use the processor until there is that file; a minute at most."""
    end, file = time.monotonic() + 60, Path(os.environ[FILE])
    while not file.exists() and time.monotonic() < end:
        sum(range(10_000))


class Tame(ScriptedPlayer):
    """Plays well in its first round, when it is tried out; then it does what `misbehave` does."""

    def __init__(self, rules: RuleSet) -> None:
        super().__init__(rules)
        self.events, self.wild = 0, False

    def act(self, views: Views, rng: Streams) -> Any:
        events = int(views["num_events"][0])
        self.wild |= events < self.events
        self.events = events
        return self.misbehave(views) if self.wild else super().act(views, rng)

    def misbehave(self, views: Views) -> Any:
        raise NotImplementedError


class Raises(Tame):
    def misbehave(self, views: Views) -> Any:
        raise KeyError("no idea")


class Shouts(Tame):
    """What it raises is long, of many lines, and cannot be written as UTF-8."""

    def misbehave(self, views: Views) -> Any:
        raise ValueError("<b>\ud800\u202e\n\x00" + "x" * 100_000)


class Tells(Tame):
    """What it raises tells its hand."""

    def misbehave(self, views: Views) -> Any:
        raise ValueError(f"what shall I do with {', '.join(view_of(self.rules, views).hand)}")


class Illegal(Tame):
    def misbehave(self, views: Views) -> Any:
        return np.array([109])


class NotANumber(Tame):
    def misbehave(self, views: Views) -> Any:
        return np.array([np.nan])


class Nothing(Tame):
    def misbehave(self, views: Views) -> Any:
        return None


class Many(Tame):
    def misbehave(self, views: Views) -> Any:
        return np.zeros(50, np.int64)


class Sleeps(Tame):
    def misbehave(self, views: Views) -> Any:
        time.sleep(60)


class Exits(Tame):
    def misbehave(self, views: Views) -> Any:
        os._exit(1)


class Quits(Tame):
    def misbehave(self, views: Views) -> Any:
        sys.exit("enough")


class Computes(Tame):
    """Uses the processor before it moves."""

    def misbehave(self, views: Views) -> Any:
        compute()
        return super(Tame, self).act(views, Streams.from_seed(1, len(views)))


class LoadsLong(ScriptedPlayer):
    """Uses the processor while it is made."""

    def __init__(self, rules: RuleSet) -> None:
        super().__init__(rules)
        compute()


class CannotBe(ScriptedPlayer):
    def __init__(self, rules: RuleSet) -> None:
        raise ValueError("not today\ud800" + "x" * 100_000)


class NeverReady(ScriptedPlayer):
    def __init__(self, rules: RuleSet) -> None:
        time.sleep(60)
