"""Players: whatever chooses moves from views.

A player acts for a batch of views at once and never sees a state. Its random numbers come from
`Streams`, one stream a view, so what it plays at one table does not depend on the others.
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ._checks import near
from ._jit import jit
from ._rng import below, check_seed, next_u32, seed_streams
from .observation import Views
from .rules import RuleSet
from .state import State

#: So often is a player asked whether it always chooses the same.
_ASKED: Final = 4
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")


@jit
def _random_many(states: Any, rows: Any, out: Any) -> None:
    for i in range(rows.shape[0]):
        high = np.int64(next_u32(states[rows[i]])) >> 5
        low = np.int64(next_u32(states[rows[i]])) >> 6
        out[i] = (high * 67108864.0 + low) / 9007199254740992.0


@jit
def _below_many(states: Any, rows: Any, bounds: Any, out: Any) -> None:
    for i in range(rows.shape[0]):
        out[i] = below(states[rows[i]], bounds[i])


class Streams:
    """One stream of random numbers a view."""

    def __init__(self, states: npt.NDArray[np.uint32], rows: npt.NDArray[np.int64] | None = None) -> None:
        self.states = states  # (tables, 4)
        self.index = np.arange(len(states)) if rows is None else rows

    @classmethod
    def from_seed(cls, seed: int | None, n: int, *, purpose: int = 2, first: int = 0) -> Streams:
        """Streams `first` … `first` + n − 1 of `seed`; `purpose` keeps apart what one seed is used for."""
        states = np.zeros((n, 4), np.uint32)
        seed_streams(check_seed(seed), first, states, purpose=purpose)
        return cls(states)

    def rows(self, rows: npt.NDArray[np.int64]) -> Streams:
        """The streams of these tables; drawing from them advances this object's too."""
        return Streams(self.states, self.index[rows])

    def __len__(self) -> int:
        return len(self.index)

    def random(self) -> npt.NDArray[np.float64]:
        """One uniform number in [0, 1) from each stream, (n,)."""
        out = np.empty(len(self.index))
        _random_many(self.states, self.index, out)
        return out

    def below(self, bounds: npt.NDArray[np.int64] | int) -> npt.NDArray[np.int64]:
        """One uniform integer in [0, bound) from each stream, (n,); a bound for each, or one for all."""
        out = np.empty(len(self.index), np.int64)
        _below_many(self.states, self.index, np.full(len(out), bounds, np.int64), out)
        return out


class Player(ABC):
    """Chooses moves. Made for one rule set; `name` is what tables of results call it.

    A player that `sees_all` is a cheat: the arena asks it by `act_on`, with all that lies on the table.
    """

    name: str
    sees_all: bool = False

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules

    @abstractmethod
    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """A legal action id for each view, (n,). Every view is of a seat to act.

        Views may be kept but not written to. What is chosen must follow from the view and its stream alone.
        """

    def act_on(self, state: State, rng: Streams) -> npt.NDArray[np.int64]:
        """As `act`, of a player that `sees_all`, for tables (n,) with a seat to act each."""
        raise NotImplementedError(f"player {self.name!r} chooses by what its seat sees alone")

    def chances(self, views: Views) -> npt.NDArray[np.float64]:
        """How likely it is to choose each action in each view, (n, actions).

        This asks several times, and so serves players that always choose the same; one that draws has its own.

        Raises:
            ValueError: it did not choose the same each time.
        """
        chosen = [self.act(views, Streams.from_seed(seed, len(views))) for seed in range(_ASKED)]
        if any((other != chosen[0]).any() for other in chosen):
            raise ValueError(f"player {self.name!r} draws its moves and does not say how likely each is")
        return np.eye(self.rules.num_actions)[chosen[0]]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class Forfeit(ValueError):
    """Raised by a player's `act` where it has no move to give for some of the views.

    The arena counts those games as lost and goes on; elsewhere it is an error like any other.

    Args:
        message: what an error says.
        actions: what it chose, (n,); anything where it has no move.
        reasons: why it has none, by view.
    """

    def __init__(self, message: str, actions: npt.NDArray[np.int64], reasons: Mapping[int, str]) -> None:
        super().__init__(message)
        self.actions = actions
        self.reasons = dict(reasons)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.actions, self.reasons)


PlayerSpec = str | Player | Callable[[RuleSet], Player]


class Registry:
    """Players by name: `names` maps a name to what makes the player from rules and options.

    `schemes` maps what stands before ``://`` in an address to what makes a player from rules, address and options;
    `folders` what stands before ``/`` to the spec string of a class that takes the rest as its option ``name``.
    """

    def __init__(
        self,
        names: Mapping[str, Callable[..., Player]],
        schemes: Mapping[str, Callable[..., Player]] | None = None,
        folders: Mapping[str, str] | None = None,
    ) -> None:
        self.names = dict(names)
        self.schemes = dict(schemes or {})
        self.folders = dict(folders or {})

    def make(self, spec: PlayerSpec, rules: RuleSet) -> Player:
        """The player that `spec` names, for `rules`.

        Args:
            spec: a name (``"doubles"``), a spec string (``"package.module:Class?sims=50&mode=greedy"``: the
                class is called with the rules and the options; values stand as they are, without escapes), a
                released policy (``"zoo/duplas-v1"``, in a checkout), an address (``"http://localhost:8000?timeout=5"``),
                a callable that takes the rules, or a `Player`.

        Raises:
            ValueError: an unknown name, a module or class that is not there, options it does not take.
        """
        if isinstance(spec, Player):
            return spec
        if not isinstance(spec, str):
            if not callable(spec):
                raise ValueError(f"{spec!r} is no player: give a name, a callable that takes the rules, or a Player")
            return _player(spec(rules), spec)
        path, _, query = spec.partition("?")
        folder, slash, name = path.partition("/")
        if slash and folder in self.folders:
            path, query = self.folders[folder], f"name={name}" + (f"&{query}" if query else "")
        scheme, address, _ = path.partition("://")
        if address and scheme in self.schemes:
            maker: Callable[..., Player] = partial(self.schemes[scheme], address=path)
        else:
            maker = self.names.get(path) or self._imported(path, spec)
        try:
            player = _player(maker(rules, **_options(query)), spec)
        except (TypeError, ValueError) as error:
            raise ValueError(f"player {spec!r}: {error}") from error
        if not address:
            player.name = spec if query or path in self.names else getattr(player, "name", spec)
        return player

    def _imported(self, path: str, spec: str) -> Callable[..., Player]:
        module, _, name = path.partition(":")
        if not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
            others = ["package.module:Class?option=value", *(f"{scheme}://host:port" for scheme in self.schemes)]
            known = ", or ".join([", ".join(self.names), *others])
            raise ValueError(f"unknown player {spec!r}{near(path, self.names)}; players: {known}")
        try:
            maker: Callable[..., Player] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"player {spec!r}: {error}") from error
        return maker


def _player(made: Any, spec: PlayerSpec) -> Player:
    if not isinstance(made, Player):
        raise ValueError(f"{spec!r} makes {type(made).__name__}, which is not a Player")
    return made


def _options(query: str) -> dict[str, Any]:
    """The options of a spec string, what stands after its question mark."""
    options: dict[str, Any] = {}
    for part in query.split("&") if query else ():
        name, equals, text = part.partition("=")
        if not equals or not name.isidentifier() or name in options:
            raise ValueError(f"option {part!r}: write name=value, each name once, with & between options")
        options[name] = _value(text)
    return options


def _value(text: str) -> Any:
    """An option's value: true, false and numbers as such (007 would lose its zeros: text), else the text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if number := _NUMBER.fullmatch(text):
        return float(text) if number[2] or number[3] else int(text)
    return text
