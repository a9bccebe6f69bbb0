"""OpenSpiel: a round of every preset, and of every rule set, as a Python game.

Importing this module registers ``python_domino_env_duplas``, ``…_mano_a_mano``, ``…_blocos`` and
``…_puxar`` with `pyspiel`. A game's parameters are the fields of a `RuleSet`, and ``reward``; those
left out are the preset's. ``hand_size=0``, the default, is the preset's hand size for that number of
players; ``target=0`` is no target. `load` gives the same game for a `RuleSet`.

Chance deals tile by tile, draws lots where the rules say so, and gives each tile that a seat draws at
the moment it is drawn. Its outcomes are tiles (or seats, for lots); nodes with a single outcome are
passed over. Actions are the package's action ids. Draws and passes are forced, so they are no actions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyspiel

from ..batch import REWARDS
from ..events import MOVES
from ..observation import Slice, encoding_of
from ..rules import PRESETS, RuleSet, make_rules, preset_of
from ..state import DRAW, HIDDEN, NONE, PASS, PLAY
from ..tiles import ACTION_NAMES, PIPS, TILE_NAMES, tiles_in
from ._redeal import Redealer
from ._tree import DEAL, DECISION, LOT, OVER, Node

#: What the games are called: this and the preset's name.
PREFIX: Final = "python_domino_env_"


def load(rules: RuleSet, reward: str = "points") -> Any:
    """The `pyspiel.Game` of one round under `rules`.

    Args:
        rules: a rule set.
        reward: ``"points"`` (the scoring side gains the round's points, the others lose as many between
            them) or ``"outcome"`` (+1 and −1).

    Raises:
        ValueError: another reward.
    """
    preset, changes = preset_of(rules)
    if "target" in changes:
        changes["target"] = changes["target"] or 0
    return pyspiel.load_game(PREFIX + preset, {**changes, "reward": reward})


def rules_of(preset: str, params: dict[str, Any]) -> RuleSet:
    """The rule set that a game's parameters name; ValueError where there is none such."""
    changes = {name: value for name, value in params.items() if name != "reward"}
    if not changes.get("hand_size"):
        changes.pop("hand_size", None)
    if "target" in changes:
        changes["target"] = changes["target"] or None
    return make_rules(preset, **changes)


def _defaults(preset: str) -> dict[str, Any]:
    """Every parameter of a game with its default, as OpenSpiel can hold it."""
    values = {spec.name: getattr(PRESETS[preset], spec.name) for spec in fields(RuleSet)}
    return {**values, "hand_size": 0, "target": values["target"] or 0, "reward": REWARDS[0]}


def _game_type(preset: str) -> Any:
    kinds = pyspiel.GameType
    return kinds(
        short_name=PREFIX + preset,
        long_name=f"Dominoes, a round of {preset} (domino-env)",
        dynamics=kinds.Dynamics.SEQUENTIAL,
        chance_mode=kinds.ChanceMode.EXPLICIT_STOCHASTIC,
        information=kinds.Information.IMPERFECT_INFORMATION,
        utility=kinds.Utility.ZERO_SUM,
        reward_model=kinds.RewardModel.TERMINAL,
        max_num_players=9,
        min_num_players=2,
        provides_information_state_string=True,
        provides_information_state_tensor=True,
        provides_observation_string=True,
        provides_observation_tensor=True,
        provides_factored_observation_string=False,
        parameter_specification=_defaults(preset),
    )


def most_points(rules: RuleSet) -> int:
    """No first round is worth more than this."""
    if rules.scoring == "batida":
        names = ("simples", "carroca", "la_e_lo", "cruzada", "block")
        return max(int(getattr(rules, f"points_{name}")) for name in names)
    # All that the others can hold: the heaviest tiles.
    held = min(rules.num_tiles - 1, (rules.players - 1) * rules.hand_size + _drawable(rules))
    return sum(sorted(PIPS[: rules.num_tiles].tolist())[-held:])


def _drawable(rules: RuleSet) -> int:
    return 0 if rules.draw == "none" else rules.boneyard_size


def _game_info(rules: RuleSet, reward: str) -> Any:
    most = 1.0 if reward == "outcome" else float(max(1, most_points(rules)))
    return pyspiel.GameInfo(
        num_distinct_actions=rules.num_actions,
        max_chance_outcomes=max(rules.num_tiles, rules.players),
        num_players=rules.players,
        min_utility=-most,
        max_utility=most,
        utility_sum=0.0,
        # Every play lays a tile, and all seats but one are left with one.
        max_game_length=rules.players * rules.hand_size + _drawable(rules) - (rules.players - 1),
    )


class DominoGame(pyspiel.Game):  # type: ignore[misc]
    """One round, the first of a match, as OpenSpiel's game; see the module for the parameters."""

    preset: ClassVar[str]

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        params, preset = dict(params or {}), self.preset
        self.reward = params.get("reward", REWARDS[0])
        if self.reward not in REWARDS:
            raise ValueError(f"reward={self.reward!r} is not one of {', '.join(REWARDS)}")
        self.rules = rules_of(preset, params)
        defaults = _defaults(preset)
        changed = {name: value for name, value in params.items() if defaults.get(name) != value}
        super().__init__(_GAME_TYPES[preset], _game_info(self.rules, self.reward), changed)
        self._root = Node(self.rules, self.reward == "outcome")
        self._redealer: tuple[str, Redealer] | None = None

    def new_initial_state(self) -> DominoState:
        """A round before its first tile is dealt."""
        return DominoState(self)

    def max_chance_nodes_in_history(self) -> int:
        """Tiles dealt, a lot, and tiles drawn."""
        return self.rules.players * self.rules.hand_size + 1 + _drawable(self.rules)

    def redealer(self, state: DominoState, player: int) -> Redealer:
        """What samples states like `state` to `player`; kept until another is asked for, as a search asks often."""
        key = state.information_state_string(player)
        if self._redealer is None or self._redealer[0] != key:
            self._redealer = key, Redealer(state.node, player)
        return self._redealer[1]

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> DominoObserver | None:
        """What writes a seat's observation or, with perfect recall, its information state.

        None (which OpenSpiel takes for "not provided") for kinds that do not show what one seat knows: its
        own tiles and all that is public.
        """
        if params:
            raise ValueError(f"an observer of dominoes has no parameters; given {params}")
        iig_obs_type = iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False)
        if not iig_obs_type.public_info or iig_obs_type.private_info != pyspiel.PrivateInfoType.SINGLE_PLAYER:
            return None
        return _InformationState(self.rules) if iig_obs_type.perfect_recall else _Observation(self.rules)

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, (str(self),)


def _loaded(name: str) -> Any:
    """The game of that name and parameters; a function of this module, so that unpickling registers it."""
    return pyspiel.load_game(name)


class DominoState(pyspiel.State):  # type: ignore[misc]
    """A point of a round."""

    def __init__(self, game: DominoGame) -> None:
        super().__init__(game)
        self.node = game._root.copy()

    def current_player(self) -> int:
        """The seat to act, or OpenSpiel's number for chance or for the end."""
        kind = self.node.kind
        if kind == DECISION:
            return self.node.seat
        return int(pyspiel.PlayerId.TERMINAL if kind == OVER else pyspiel.PlayerId.CHANCE)

    def _legal_actions(self, player: int) -> list[int]:
        return self.node.legal_actions() if player == self.node.seat else []

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """(outcome, probability): a tile, or for lots a seat."""
        return self.node.chance_outcomes()

    def _apply_action(self, action: int) -> None:
        self.node.apply(action)

    def _action_to_string(self, player: int, action: int) -> str:
        if player != pyspiel.PlayerId.CHANCE:
            return str(MOVES[not self.node.num_events][action])
        if self.node.kind == LOT:
            return f"seat {action} starts"
        verb = "is dealt" if self.node.kind == DEAL else "draws"
        return f"seat {self.node.next_seat} {verb} {TILE_NAMES[action]}"

    def is_terminal(self) -> bool:
        """Whether the round is over."""
        return self.node.kind == OVER

    def returns(self) -> list[float]:
        """What each seat has gained or lost; partners alike. Zeros until the round is over."""
        return self.node.returns()

    def resample_from_infostate(self, player: int, sampler: Callable[[], float]) -> DominoState:
        """A state that `player` could not tell from this one, each deal of the hidden tiles as likely as any.

        Raises:
            ValueError: no seat has to decide here.
        """
        game: DominoGame = self.get_game()
        state = game.new_initial_state()
        for action in game.redealer(self, player).sample(sampler)[1]:
            state.apply_action(action)
        return state

    def __str__(self) -> str:
        hands = [
            " ".join(TILE_NAMES[tile] for tile in tiles_in(hand))
            for hand in self.node.state["hands"][0].tolist()[: self.node.rules.players]
        ]
        lines = [f"seat {seat}: {hand}" for seat, hand in enumerate(hands)]
        row, kind = self.node.state[0], self.node.kind
        if row["starter"] != NONE:
            lines.append(f"played: {' '.join(_events(self.node, NONE))}")
        return "\n".join([*lines, f"seat {self.node.seat} to act" if kind == DECISION else kind])


def _events(node: Node, observer: int) -> list[str]:
    """A word for each play, draw and pass; tiles that others drew are ``?`` unless the observer is NONE."""
    words = []
    for packed in node.events().tolist():
        kind, end, seat, tile = packed & 3, packed >> 2 & 1, packed >> 3 & 15, packed >> 7
        if kind == PLAY:
            words.append(f"{seat}:{ACTION_NAMES[2 * tile + end]}")
        elif kind == DRAW:
            words.append(f"{seat}:+{TILE_NAMES[tile] if observer in (NONE, seat) else '?'}")
        else:
            words.append(f"{seat}:pass")
    return words


class DominoObserver:
    """One flat float32 tensor and its named parts, rewritten by `set_from`; `string_from` says the same in words."""

    def __init__(self, rules: RuleSet, parts: list[tuple[str, tuple[int, ...]]]) -> None:
        self.rules = rules
        sizes = [int(np.prod(shape)) for _, shape in parts]
        self.tensor: npt.NDArray[np.float32] = np.zeros(sum(sizes), np.float32)
        self.dict: dict[str, npt.NDArray[np.float32]] = {}
        start = 0
        for (name, shape), size in zip(parts, sizes, strict=True):
            self.dict[name] = self.tensor[start : start + size].reshape(shape)
            start += size

    def set_from(self, state: DominoState, player: int) -> None:
        """Write what `player` knows to `tensor`."""
        raise NotImplementedError

    def string_from(self, state: DominoState, player: int) -> str:
        """What `player` knows, in words."""
        raise NotImplementedError


class _Observation(DominoObserver):
    """The vector of `domino_env.Encoding`, by its named slices."""

    def __init__(self, rules: RuleSet) -> None:
        self._slices = list(encoding_of(rules).slices.values())
        super().__init__(rules, [(part.name, part.shape) for part in self._slices])

    def set_from(self, state: DominoState, player: int) -> None:
        self.tensor[:] = state.node.vector(player)

    def string_from(self, state: DominoState, player: int) -> str:
        vector = state.node.vector(player)
        return "; ".join([f"seat {player}", *filter(None, (self._named(part, vector) for part in self._slices))])

    def _named(self, part: Slice, vector: npt.NDArray[np.int8]) -> str:
        """A slice's name and the places of its ones; nothing where it has none."""
        values = vector[part.start : part.stop].reshape(part.shape)
        words = []
        for place in np.argwhere(values).tolist():
            last = TILE_NAMES[place[-1]] if part.shape[-1] == self.rules.num_tiles else str(place[-1])
            words.append("/".join([*map(str, place[:-1]), last]))
        return f"{part.name} {' '.join(words)}" if words else ""


class _InformationState(DominoObserver):
    """All a seat has seen: its hand as dealt, who started, and every event, with the tiles that it drew itself.

    Seats in ``starter`` and ``events`` count from the observer. A row of ``events`` is an event: whether it is
    a play, a draw, a pass; whether at the right end; by which seat; which tile.
    """

    def __init__(self, rules: RuleSet) -> None:
        self._width = 4 + rules.players + rules.num_tiles
        super().__init__(
            rules,
            [
                ("player", (rules.players,)),
                ("dealt", (rules.num_tiles,)),
                ("starter", (rules.players,)),
                ("events", (rules.max_events, self._width)),
            ],
        )

    def set_from(self, state: DominoState, player: int) -> None:
        self.tensor.fill(0)
        self.dict["player"][player] = 1
        self.dict["dealt"][tiles_in(state.node.dealt[player])] = 1
        view = state.node.view(player)[0]
        if view["starter"] != NONE:
            self.dict["starter"][view["starter"]] = 1
        seen = view["events"][: view["num_events"]].astype(np.int64)
        rows, events = np.arange(len(seen)), self.dict["events"]
        kind, tile = seen & 3, seen >> 7
        events[rows, kind] = 1
        events[rows, 3] = seen >> 2 & 1
        events[rows, 4 + (seen >> 3 & 15)] = 1
        shown = (kind != PASS) & (tile != HIDDEN)
        events[rows[shown], 4 + self.rules.players + tile[shown]] = 1

    def string_from(self, state: DominoState, player: int) -> str:
        node = state.node
        dealt = " ".join(TILE_NAMES[tile] for tile in tiles_in(node.dealt[player]))
        starter = int(node.state[0]["starter"])
        words = [] if starter == NONE else [f"{starter} starts", " ".join(_events(node, player))]
        return "; ".join([f"seat {player}", f"dealt {dealt}", *filter(None, words)])


_GAME_TYPES: Final = {preset: _game_type(preset) for preset in PRESETS}

# A class each: what OpenSpiel holds of Python is released when the interpreter is gone, and a class, which
# refers to itself, is never freed by that.
_GAMES: Final = {preset: type(f"DominoGame_{preset}", (DominoGame,), {"preset": preset}) for preset in PRESETS}

for _preset, _game in _GAMES.items():
    if PREFIX + _preset not in pyspiel.registered_names():  # a reloaded module registers nothing twice
        pyspiel.register_game(_GAME_TYPES[_preset], _game)
