"""What the tests of several files share."""

from __future__ import annotations

import importlib.util
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from domino_env import Batch, Match, RuleSet
from domino_env.observation import Views, new_views

if TYPE_CHECKING:
    from play_pages import Served
    from playwright.sync_api import Browser

# Each has an environment of its own, in which `tests/recipes.sh NAME` runs it; here it could not be imported.
_FRAMEWORKS = {"rllib": "ray", "tianshou": "tianshou", "torchrl": "torchrl"}
collect_ignore = [
    f"test_recipes_{name}.py" for name, module in _FRAMEWORKS.items() if importlib.util.find_spec(module) is None
]
if importlib.util.find_spec("playwright") is None:
    collect_ignore += ["test_play_browser.py", "test_play_page.py"]
if sys.version_info < (3, 11):  # open-spiel has no release for it
    collect_ignore += [
        "test_external.py",
        "test_adapters_openspiel.py",
        "test_adapters_openspiel_hidden.py",
        "test_adapters_exploitability.py",
    ]


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard() -> None:
    """What a shell starts in the background ignores SIGINT, and so would the programs that tests interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread() -> None:
    """Small networks are fastest on one thread. Tests that need torch have imported it by now; others shall not."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


@pytest.fixture(scope="session")
def random_views() -> Callable[..., Views]:
    """``random_views(rules, n, seed=0)``: views of seats to act, from all stages of randomly played matches."""

    def make(rules: RuleSet, n: int, seed: int = 0) -> Views:
        batch = Batch(rules, 100, seed=seed, episode="match", observe=False)
        views = new_views(rules, n)
        for start in range(0, n, 100):
            views[start : start + 100] = batch.views()[: n - start]
            batch.step(batch.sample_actions())
        return views

    return make


@pytest.fixture(scope="session")
def chi_square_limit() -> Callable[[int], float]:
    """What a chi-square statistic of that many degrees of freedom exceeds once in a million (Wilson, Hilferty 1931)."""

    def limit(degrees: int) -> float:
        return float(degrees * (1 - 2 / (9 * degrees) + 4.75 * np.sqrt(2 / (9 * degrees))) ** 3)

    return limit


@pytest.fixture
def same_deals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every match at a table in the browser is dealt the same tiles."""
    monkeypatch.setattr("domino_env.play.room.Match", partial(Match, seed=7))


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server of tables for pages in a browser."""
    from play_pages import Served

    server = Served()
    yield server
    server.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; only while a module's tests run, for as long as it does nothing else may run an event loop."""
    from play_pages import chromium

    with chromium() as program:
        yield program
