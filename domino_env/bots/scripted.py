"""Scripted players: a move's score is a weighted sum of what speaks for it, and the best is played.

A player is a row of weights, so all of them are one compiled function, and one can be made of another
by changing a weight (``"counting?pips=2"``). Ties go to the first action, except for a player that
draws among its best moves.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .._checks import near, one_of
from .._jit import jit, lowest_bit, popcount
from .._rng import next_u32
from ..observation import Views, possible_tiles, stuck_chance
from ..players import Player, Streams
from ..rules import RuleSet, option, pack, preset_of
from ..scoring import finish_of, pips_in
from ..state import CARROCA, LA_E_LO, NONE, SIMPLES
from ..tiles import HIGH, LOW, PIPS, SUIT

#: What may speak for a move, in the order of the weights. Those below "double" are counted from what was
#: played and from what passes and draws have shown.
PREFERENCES: Final = MappingProxyType(
    {
        "pips": "the tile's pips",
        "double": "it is a double",
        "variety": "different numbers on the tiles kept",
        "suit": "tiles kept that fit one of the two new ends",
        "stranded": "doubles kept, each by the share of its suit that is gone",
        "bonus": "points of the last tile, where one tile is kept and fits the new ends",
        "next_stuck": "chance that the next seat cannot play",
        "last_stuck": "chance that the seat before the player cannot, the other opponent in pairs",
        "partner_stuck": "chance that the partner cannot",
        "partner_end": "the tile covers an end that the partner made",
        "own_end": "it covers an end that the player made",
        "dead": "share of the new end's suit that is gone or held",
        "closed": "chance that nobody can play, by the lead in pips then expected",
    }
)
_COUNTED: Final = 2
_HANDS: Final = [list(PREFERENCES).index(name) for name in ("next_stuck", "last_stuck", "partner_stuck", "closed")]
#: A kind's weights, and whether it draws among equally good moves.
SCRIPTED: Final[MappingProxyType[str, tuple[dict[str, float], bool]]] = MappingProxyType(
    {
        "random": ({}, True),
        "heaviest": ({"pips": 1.0}, False),
        "doubles": ({"double": 100.0, "pips": 1.0}, False),
        "variety": ({}, False),  # their weights are in TUNED
        "counting": ({}, False),
    }
)
#: A kind's weights where they differ by game: those of the preset that the rules are nearest to.
TUNED: Final[MappingProxyType[str, dict[str, dict[str, float]]]] = MappingProxyType(
    {
        "variety": {
            "duplas": {
                "double": 4.0, "pips": 0.003, "variety": -0.132, "suit": 0.336, "partner_end": -0.128,
                "own_end": -0.259,
            },
            "mano_a_mano": {"double": 4.0, "pips": 0.767, "variety": 1.789, "suit": 0.7, "own_end": -8.762},
            "blocos": {"double": 4.0, "pips": 0.06, "variety": 0.346, "suit": 0.009, "own_end": -0.77},
            "puxar": {"double": 4.0, "pips": 0.055, "variety": 0.249, "suit": 0.064, "own_end": -0.821},
        },
        "counting": {
            "duplas": {
                "double": 4.0, "pips": 0.44, "variety": 3.057, "suit": 1.535, "stranded": 0.222, "bonus": 4.262,
                "next_stuck": 37.229, "last_stuck": 1.436, "partner_stuck": -12.83, "partner_end": -2.19,
                "own_end": -1.869, "dead": -0.642, "closed": 24.73,
            },
            "mano_a_mano": {
                "double": 4.0, "pips": -0.014, "variety": -0.05, "suit": 0.076, "stranded": -1.065, "bonus": 33.216,
                "next_stuck": 22.123, "last_stuck": 1.991, "own_end": -15.519, "dead": 1.045, "closed": 6.535,
            },
            "blocos": {
                "double": 4.0, "pips": 0.443, "variety": 1.645, "suit": 0.665, "stranded": 1.378,
                "next_stuck": 7.305, "last_stuck": 7.079, "own_end": -8.449, "dead": 0.305, "closed": 10.797,
            },
            "puxar": {
                "double": 4.0, "pips": 0.073, "variety": -0.278, "suit": 0.769, "stranded": 0.114,
                "next_stuck": 7.531, "last_stuck": 7.135, "own_end": -6.234, "dead": -0.018, "closed": -0.7,
            },
        }
    }
)  # fmt: skip
#: The record that a scripted player is. Counts: 1 where anything beyond the tile is looked at, 2 where the other
#: hands are too.
WEIGHTS: Final = np.dtype([("values", np.float64, (len(PREFERENCES),)), ("counts", np.int64), ("draws", np.int64)])

_BATIDA: Final = option("scoring", "batida")
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_S32 = np.uint64(32)
#: A lead of so many pips in a blocked round is taken for certain.
_SURE_LEAD: Final = 12.0


@jit
def points_of(rules: Any, finish: int) -> int:
    """The points of a last tile of this name."""
    if finish == SIMPLES:
        return rules["points_simples"]
    if finish == CARROCA:
        return rules["points_carroca"]
    return rules["points_la_e_lo"] if finish == LA_E_LO else rules["points_cruzada"]


@jit
def _counted(view: Any, rules: Any, weights: Any, tile: int, end: int) -> float:
    """The part of a move's score that is counted from what was played."""
    values, bit = weights["values"], _ONE << np.uint64(tile)
    kept = view["hand"] & ~bit
    high, low = HIGH[tile], LOW[tile]
    covered = int(view["left"] if end == 0 else view["right"])
    owner = int(view["left_owner"] if end == 0 else view["right_owner"])
    if covered == NONE:
        new, other = high, low
    else:
        new, other = high + low - covered, int(view["right"] if end == 0 else view["left"])
    fits = SUIT[new] | SUIT[other]
    known = kept | bit
    for seat in range(rules["players"]):
        known |= view["placed"][seat]
    numbers = int(rules["max_pip"]) + 1
    score = values[3] * popcount(kept & fits)
    for number in range(numbers):
        suit = SUIT[number]
        if kept & suit:
            score += values[2]
        if kept >> np.uint64(number * (number + 3) // 2) & _ONE:  # the double
            score += values[4] * (popcount(suit & known) - 1) / numbers
    if popcount(kept) == 1 and kept & fits and rules["scoring"] == _BATIDA:
        last = lowest_bit(kept)
        finish = finish_of(rules, HIGH[last], LOW[last], new, other)
        score += values[5] * points_of(rules, finish)
    if owner != NONE:
        if rules["pairs"] and owner == 2:
            score += values[9]
        elif owner == 0:
            score += values[10]
    score += values[11] * popcount(SUIT[new] & known) / numbers
    return score + _chances(view, rules, weights, kept, fits) if weights["counts"] == 2 else score


@jit
def _chances(view: Any, rules: Any, weights: Any, kept: Any, fits: Any) -> float:
    """The part of a move's score that the others' possible answers make: `kept` is left, `fits` can be played."""
    values, players, pairs = weights["values"], int(rules["players"]), rules["pairs"] != 0
    score, all_stuck = 0.0, 1.0
    theirs, ours, opponents = 0.0, pips_in(kept) * 1.0, 0
    for seat in range(1, players):
        possible = possible_tiles(view, rules, seat)
        chance = stuck_chance(possible, view["counts"][seat], fits)
        all_stuck *= chance
        total = popcount(possible)
        expected = pips_in(possible) * view["counts"][seat] / total if total else 0.0
        if pairs and seat == 2:
            score += values[8] * chance
            ours += expected
            continue
        theirs += expected
        opponents += 1
        if seat == 1:
            score += values[6] * chance
        if seat == players - 1:
            score += values[7] * chance
    if kept & fits == _ZERO and all_stuck > 0.0:
        lead = theirs - ours if pairs else theirs / opponents - ours
        score += values[12] * all_stuck * max(-1.0, min(1.0, lead / _SURE_LEAD))
    return score


@jit
def score(view: Any, rules: Any, weights: Any, tile: int, end: int) -> float:
    """How much speaks for playing `tile` at `end`."""
    double = 1.0 if HIGH[tile] == LOW[tile] else 0.0
    value = weights["values"][0] * PIPS[tile] + weights["values"][1] * double
    return value + _counted(view, rules, weights, tile, end) if weights["counts"] else value


@jit
def _best(view: Any, rules: Any, weights: Any) -> Any:
    """The highest score of a legal action, how many actions have it, and the first that has."""
    best, equals, first = -np.inf, 0, -1
    for end in range(2):
        word = view["legal"][end]
        while word:
            tile = lowest_bit(word)
            word &= word - _ONE
            value = score(view, rules, weights, tile, end)
            if value > best:
                best, equals, first = value, 1, 2 * tile + end
            elif value == best:
                equals += 1
    return best, equals, first


@jit
def choose(view: Any, rules: Any, weights: Any, bits: Any) -> int:
    """The best legal action; of equals the first, or one drawn with the 32 random `bits`."""
    best, equals, first = _best(view, rules, weights)
    if not weights["draws"] or equals == 1:
        return first
    left = np.int64(bits * np.uint64(equals) >> _S32)
    for end in range(2):
        word = view["legal"][end]
        while word:
            tile = lowest_bit(word)
            word &= word - _ONE
            if score(view, rules, weights, tile, end) == best:
                if left == 0:
                    return 2 * tile + end
                left -= 1
    return first


@jit
def _choose_many(views: Any, rules: Any, weights: Any, states: Any, rows: Any, out: Any) -> None:
    for v in range(views.shape[0]):
        out[v] = choose(views[v], rules[0], weights[0], next_u32(states[rows[v]]))


@jit
def _share_many(views: Any, rules: Any, weights: Any, out: Any) -> None:
    """Share 1 equally among the best actions of each view, those that `choose` draws from."""
    for v in range(views.shape[0]):
        best, equals, _ = _best(views[v], rules[0], weights[0])
        for end in range(2):
            word = views[v]["legal"][end]
            while word:
                tile = lowest_bit(word)
                word &= word - _ONE
                if score(views[v], rules[0], weights[0], tile, end) == best:
                    out[v, 2 * tile + end] = 1.0 / equals


def preferences_of(kind: str, rules: RuleSet) -> dict[str, float]:
    """The weights of a kind of scripted player under `rules`, by name."""
    tuned = TUNED.get(kind, {})
    return {**SCRIPTED[kind][0], **(tuned.get(preset_of(rules)[0], {}) if tuned else {})}


class ScriptedPlayer(Player):
    """A player made of weights.

    Args:
        rules: what it plays.
        kind: one of `SCRIPTED`, whose weights are the start.
        preferences: weights by name that replace the kind's.
    """

    def __init__(self, rules: RuleSet, kind: str = "random", **preferences: float) -> None:
        super().__init__(rules)
        one_of("kind", kind, tuple(SCRIPTED))
        for name, weight in preferences.items():
            if name not in PREFERENCES:
                raise ValueError(
                    f"{name!r} is not a preference{near(name, PREFERENCES)}; preferences: {', '.join(PREFERENCES)}"
                )
            if isinstance(weight, bool | str) or not np.isfinite(weight):
                raise ValueError(f"{name}={weight!r} is not a finite number")
        draws = SCRIPTED[kind][1]
        merged = {**preferences_of(kind, rules), **preferences}
        self.name = kind
        self.weights = np.zeros(1, WEIGHTS)
        self.weights["values"] = [merged.get(name, 0.0) for name in PREFERENCES]
        used = self.weights["values"][0] != 0
        self.weights["counts"] = 2 if used[_HANDS].any() else used[_COUNTED:].any()
        self.weights["draws"] = draws

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """The best legal action by the weights for each view, (n,)."""
        out = np.empty(len(views), np.int64)
        _choose_many(views, pack(self.rules), self.weights, rng.states, rng.index, out)
        return out

    def chances(self, views: Views) -> npt.NDArray[np.float64]:
        """How likely it is to choose each action in each view, (n, actions)."""
        if not self.weights["draws"].any():
            return super().chances(views)
        out = np.zeros((len(views), self.rules.num_actions))
        _share_many(views, pack(self.rules), self.weights, out)
        return out


def weights_of(player: Player) -> npt.NDArray[np.void] | None:
    """The weights a player is made of; None for another player, and for one that overrides `act`."""
    if isinstance(player, ScriptedPlayer) and type(player).act is ScriptedPlayer.act:
        return player.weights
    return None
