"""Rule sets as data: `RuleSet`, the four presets, and what the kernel reads of them.

A preset is a set of values, never a subclass: the kernel branches on fields alone. Every
combination that cannot be dealt or makes no sense is refused when the rule set is built.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ._checks import near, one_of, whole
from .tiles import MAX_PIP, MIN_PIP, num_tiles

MIN_PLAYERS: Final = 2
MAX_PLAYERS: Final = 9
MAX_POINTS: Final = 1000
MAX_TARGET: Final = 10**9
MAX_TIE_MULTIPLIER: Final = 10
# With tie_multiplier_stacks the multiplier stops growing at the last value below this bound.
MULTIPLIER_BOUND: Final = 2**31
# A score is shown to players on a scale of at most this many steps from 0 to the target.
MAX_SCORE_STEPS: Final = 20

# What each worded option may be. The order gives the number the kernel knows it by.
CHOICES: Final = MappingProxyType(
    {
        "draw": ("none", "until_fit", "one"),
        "opening": ("highest_double", "lots"),
        "next_starter": ("last_to_place", "loser", "rotation"),
        "tie_starter": ("last_to_place", "lots", "rotation", "opening", "same"),
        "scoring": ("batida", "pips"),
        "no_double": ("heaviest", "redeal"),
        "single_round_block": ("fewest", "draw"),
    }
)


def option(name: str, value: str) -> int:
    """The number the kernel knows a worded option by: ``option("draw", "one") == 2``."""
    return CHOICES[name].index(value)


@dataclass(frozen=True)
class RuleSet:
    """One game's rules. Built from `PRESETS`, `make_rules` or its own fields; checked when built.

    Raises:
        ValueError: a field's value is out of its range, or the combination cannot be dealt or makes
            no sense. The message names the field, the value and what is allowed.
    """

    players: int = field(metadata={"bounds": (MIN_PLAYERS, MAX_PLAYERS)})
    #: Seats 0 and 2 play seats 1 and 3; otherwise every seat is a side of its own.
    pairs: bool
    #: Tiles dealt to each seat.
    hand_size: int = field(metadata={"bounds": (1, num_tiles(MAX_PIP))})
    #: What a seat that cannot play does: pass ("none"), draw "until_fit", or draw "one" tile.
    draw: str
    #: Who starts a first round: the holder of the "highest_double" (with that tile), or "lots".
    opening: str
    #: Who starts a later round: who placed the last tile, the seat with most pips, or by rotation.
    next_starter: str
    #: Who starts after a tied block; "opening" means as in a first round, "same" the same seat again.
    tie_starter: str
    #: "batida" (by the last tile) or "pips" (what is left in hand).
    scoring: str
    #: Points that win the match; None makes the match a single round.
    target: int | None = field(metadata={"bounds": (1, MAX_TARGET)})
    #: What the round after a tied block is worth more.
    tie_multiplier: int = field(default=1, metadata={"bounds": (1, MAX_TIE_MULTIPLIER)})
    #: Whether ties in a row multiply on (x2, x4, …; the multiplier stays below 2**31).
    tie_multiplier_stacks: bool = False
    #: Whether a non-double on two equal ends is lá-e-lô rather than simples.
    la_e_lo_on_equal_ends: bool = False
    #: Where no double was dealt: the "heaviest" tile opens, or the tiles are dealt again ("redeal").
    no_double: str = "heaviest"
    #: With target=None, whether a blocked round is won by the "fewest" pips or is a "draw".
    single_round_block: str = "fewest"
    #: The set's highest number: 6 for double-six.
    max_pip: int = field(default=6, metadata={"bounds": (MIN_PIP, MAX_PIP)})
    points_simples: int = field(default=1, metadata={"bounds": (0, MAX_POINTS)})
    points_carroca: int = field(default=2, metadata={"bounds": (0, MAX_POINTS)})
    points_la_e_lo: int = field(default=3, metadata={"bounds": (0, MAX_POINTS)})
    points_cruzada: int = field(default=4, metadata={"bounds": (0, MAX_POINTS)})
    points_block: int = field(default=1, metadata={"bounds": (0, MAX_POINTS)})

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            object.__setattr__(self, spec.name, _checked(spec, getattr(self, spec.name)))
        dealt = self.players * self.hand_size
        if dealt > self.num_tiles:
            raise ValueError(
                f"hand_size={self.hand_size}: {self.players} players x {self.hand_size} = {dealt} tiles, but the "
                f"double-{self.max_pip} set has {self.num_tiles}; at most {self.num_tiles // self.players} each"
            )
        if self.pairs and self.players != 4:
            raise ValueError(f"pairs=True needs players=4 (seats 0 and 2 against 1 and 3), not players={self.players}")
        if self.pairs and self.next_starter == "loser":
            raise ValueError("next_starter='loser' needs pairs=False: partners lose together, so no one seat starts")
        last_tiles = (
            ("simples", "carroca") if self.hand_size == 1 else ("simples", "carroca", "la_e_lo", "cruzada", "block")
        )
        if (
            self.scoring == "batida"
            and self.target is not None
            and not any(getattr(self, f"points_{name}") for name in last_tiles)
        ):
            names = ", ".join(f"points_{name}" for name in last_tiles)
            raise ValueError(
                f"target={self.target}: no round scores, so no match would end; one of {names} must be above 0"
            )

    @property
    def num_tiles(self) -> int:
        """Tiles in the set: 28 for double-six."""
        return num_tiles(self.max_pip)

    @property
    def boneyard_size(self) -> int:
        """Tiles nobody is dealt."""
        return self.num_tiles - self.players * self.hand_size

    @property
    def num_sides(self) -> int:
        """How many score: two pairs, or each seat for itself."""
        return 2 if self.pairs else self.players

    @property
    def num_actions(self) -> int:
        """Action ids: two for each tile of the set, ``2*tile + end``."""
        return 2 * self.num_tiles

    @property
    def max_hand(self) -> int:
        """The most tiles a seat can come to hold."""
        return self.hand_size + (self.boneyard_size if self.draw != "none" else 0)

    @property
    def max_events(self) -> int:
        """No round has more plays, draws and passes than this."""
        draws = self.boneyard_size if self.draw != "none" else 0
        return self.players * self.num_tiles + draws

    @property
    def most_points(self) -> int:
        """The most that a round can be worth, before the multiplier, where the last tile scores (``batida``)."""
        kinds = ("simples", "carroca", "la_e_lo", "cruzada", "block")
        return max(int(getattr(self, f"points_{kind}")) for kind in kinds)

    @property
    def score_steps(self) -> int:
        """Steps of the scale on which a player's view gives scores; 0 where there is no target."""
        return 0 if self.target is None else min(self.target, MAX_SCORE_STEPS)

    def side_of(self, seat: int) -> int:
        """The side that `seat` scores for."""
        return seat % self.num_sides


def _checked(spec: dataclasses.Field[Any], value: Any) -> Any:
    """`value` for this field as a plain Python value; ValueError where it is not allowed."""
    if spec.name in CHOICES:
        return one_of(spec.name, value, CHOICES[spec.name])
    if "bounds" not in spec.metadata:
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{spec.name}={value!r} is not True or False")
        return bool(value)
    if value is None and spec.name == "target":
        return None
    return whole(spec.name, value, *spec.metadata["bounds"], also=", or None" if spec.name == "target" else "")


_BATIDA = {
    "opening": "highest_double",
    "next_starter": "last_to_place",
    "tie_starter": "last_to_place",
    "scoring": "batida",
    "target": 6,
    "tie_multiplier": 2,
}
_PIPS = {"pairs": False, "opening": "lots", "scoring": "pips"}
_FIELDS: Final[dict[str, dict[str, Any]]] = {
    "duplas": {**_BATIDA, "players": 4, "pairs": True, "draw": "none"},
    "mano_a_mano": {**_BATIDA, "players": 2, "pairs": False, "draw": "until_fit"},
    "blocos": {
        **_PIPS,
        "players": 2,
        "draw": "none",
        "next_starter": "loser",
        "tie_starter": "lots",
        "target": 50,
    },
    "puxar": {
        **_PIPS,
        "players": 2,
        "draw": "one",
        "next_starter": "rotation",
        "tie_starter": "rotation",
        "target": 100,
        "single_round_block": "draw",
    },
}
# Published hand sizes by number of players, where a preset's page gives more than 7 for all.
_HAND_SIZES: Final[dict[str, dict[int, int]]] = {"blocos": {4: 7, 5: 5, 6: 4, 7: 4, 8: 3, 9: 3}}


def make_rules(preset: str, **changes: Any) -> RuleSet:
    """The rules of a preset with some fields changed: ``make_rules("duplas", target=10)``.

    The hand size is the preset's published one for the number of players (for ``blocos``
    7 7 7 5 4 4 3 3 with 2 to 9) unless it is given; a given value is never adjusted.

    Raises:
        ValueError: unknown preset or field (near names are suggested), or what `RuleSet` refuses.
    """
    if not isinstance(preset, str) or preset not in _FIELDS:
        raise ValueError(f"unknown preset {preset!r}{near(preset, _FIELDS)}; presets: {', '.join(_FIELDS)}")
    names = [spec.name for spec in dataclasses.fields(RuleSet)]
    for name in changes:
        if name not in names:
            raise ValueError(f"unknown field {name!r}{near(name, names)}; fields: {', '.join(names)}")
    values = {**_FIELDS[preset], **changes}
    values.setdefault("hand_size", _published_hand_size(preset, values["players"]))
    return RuleSet(**values)


def _published_hand_size(preset: str, players: Any) -> int:
    by_players: dict[Any, int] = {**_HAND_SIZES.get(preset, {})}
    return by_players.get(players, 7) if isinstance(players, Hashable) else 7


#: The four published games.
PRESETS: Final = MappingProxyType({name: make_rules(name) for name in _FIELDS})


def preset_of(rules: RuleSet) -> tuple[str, dict[str, Any]]:
    """The nearest preset and the fields that differ from it: ``make_rules(preset, **fields) == rules``."""
    options: list[tuple[str, dict[str, Any]]] = []
    for name, preset in PRESETS.items():
        changes = {
            spec.name: getattr(rules, spec.name)
            for spec in dataclasses.fields(RuleSet)
            if getattr(rules, spec.name) != getattr(preset, spec.name)
        }
        if rules.hand_size == _published_hand_size(name, rules.players):
            changes.pop("hand_size", None)
        else:
            changes["hand_size"] = rules.hand_size
        options.append((name, changes))
    return min(options, key=lambda named: len(named[1]))


def describe(rules: RuleSet) -> str:
    """A rule set in words: its nearest preset and what differs, ``"duplas(target=10)"``."""
    preset, changes = preset_of(rules)
    inner = ", ".join(f"{name}={value!r}" for name, value in changes.items())
    return f"{preset}({inner})" if inner else preset


# What the kernel reads: one record, every field an int32, worded options as their numbers.
PACKED: Final = np.dtype(
    [(spec.name, np.int32) for spec in dataclasses.fields(RuleSet)]
    + [(name, np.int32) for name in ("sides", "tiles", "boneyard_size", "max_hand", "score_steps")],
    align=True,
)


@lru_cache(maxsize=256)
def pack(rules: RuleSet) -> npt.NDArray[np.void]:
    """`rules` as the kernel reads them: an array of one `PACKED` record, not writable. No target is 0."""
    packed = np.zeros(1, PACKED)
    for spec in dataclasses.fields(RuleSet):
        value = getattr(rules, spec.name)
        packed[spec.name] = option(spec.name, value) if spec.name in CHOICES else (value or 0)
    packed["sides"] = rules.num_sides
    packed["tiles"] = rules.num_tiles
    packed["boneyard_size"] = rules.boneyard_size
    packed["max_hand"] = rules.max_hand
    packed["score_steps"] = rules.score_steps
    packed.flags.writeable = False
    return packed
