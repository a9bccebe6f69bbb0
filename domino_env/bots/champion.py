"""The champion: policies that were trained by self-play and come with the package, one for each game.

Its networks are files in ``weights/``, written by ``training.export``. They are run by compiled code, so that it
needs no learning library.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from .._checks import one_of
from .._jit import jit
from ..observation import Views
from ..players import Player, Streams
from ..rules import RuleSet, describe, pack
from .networks import PolicyNetworks, best_move, drawn_move, new_guide, read, read_card, share_out, weigh_moves

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable  # since Python 3.11

MODES: Final = ("greedy", "sample")


@jit
def _choose_many(views: Any, rules: Any, guide: Any, draws: Any, out: Any) -> None:
    for v in range(views.shape[0]):
        if draws.shape[0] == 0:
            out[v] = best_move(views[v], rules[0], guide)
        else:
            out[v] = drawn_move(views[v], rules[0], guide, draws[v])


@jit
def _chances_many(views: Any, rules: Any, guide: Any, out: Any) -> None:
    for v in range(views.shape[0]):
        count = weigh_moves(views[v], rules[0], guide)
        total = share_out(guide, count, 1.0)
        for i in range(count):
            out[v, guide.actions[i]] = guide.shares[i] / total


def _check_turns(views: Views) -> None:
    if not views["legal"].any(axis=1).all():
        raise ValueError("a view is of a seat that is not to act")


@lru_cache(maxsize=1)
def _files() -> dict[RuleSet, Traversable]:
    """The files of networks that come with the package, by the rules they are for."""
    folder = resources.files(__package__) / "weights"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".npz")), key=lambda file: file.name)
    return {read_card(file)["rules"]: file for file in files}


def games() -> list[RuleSet]:
    """The rules that there is a champion for."""
    return list(_files())


@lru_cache(maxsize=8)
def champion_networks(rules: RuleSet) -> PolicyNetworks:
    """The champion's networks for exactly these rules.

    Raises:
        ValueError: there are none; or they are of another version.
    """
    if rules not in (files := _files()):
        known = ", ".join(map(describe, files))
        raise ValueError(f"there is no champion for {describe(rules)}; there is one for {known}")
    return read(files[rules])


class ChampionPlayer(Player):
    """Plays a trained policy.

    Args:
        rules: what it plays; exactly those that a policy was trained for.
        mode: ``"greedy"`` (the likeliest move; of equals the first) or ``"sample"`` (drawn as likely as the policy
            says).
        networks: networks to play instead of those that come with the package.

    Raises:
        ValueError: an unknown mode; rules that there is no policy for.
    """

    def __init__(self, rules: RuleSet, mode: str = "greedy", *, networks: PolicyNetworks | None = None) -> None:
        super().__init__(rules)
        self.mode = one_of("mode", mode, MODES)
        self.networks = champion_networks(rules) if networks is None else networks
        if self.networks.rules != rules:
            raise ValueError(f"these networks are for {describe(self.networks.rules)}, not {describe(rules)}")
        self.name = "champion"
        self._guide = new_guide(self.networks)

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """The policy's action for each view, (n,).

        Raises:
            ValueError: a view of a seat that is not to act.
        """
        _check_turns(views)
        out = np.zeros(len(views), np.int64)
        draws = rng.random() if self.mode == "sample" else np.zeros(0)
        _choose_many(views, pack(self.rules), self._guide, draws, out)
        return out

    def chances(self, views: Views) -> npt.NDArray[np.float64]:
        """How likely the policy is to choose each action in each view, (n, actions).

        Raises:
            ValueError: as `act`.
        """
        if self.mode == "greedy":
            return super().chances(views)
        _check_turns(views)
        out = np.zeros((len(views), self.rules.num_actions))
        _chances_many(views, pack(self.rules), self._guide, out)
        return out
