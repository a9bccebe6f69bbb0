"""What the tests draw from: valid rule sets over all fields, deals whole and partial, seeds.

The same builders serve hypothesis (`rule_sets`, `partial_deals`) and long runs with a plain generator
(``build_rules(rng.randint)``): each takes one function that gives an integer between two bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from domino_env import Deal, RuleSet, make_rules
from domino_env.rules import CHOICES, num_tiles
from domino_env.tiles import TILE_NAMES

T = TypeVar("T")
#: integer(low, high): a whole number from low to high.
Integer = Callable[[int, int], int]

#: Every published game, by name, and the sizes of table that its page allows.
TABLES: dict[str, RuleSet] = {
    "duplas": make_rules("duplas"),
    "mano_a_mano": make_rules("mano_a_mano"),
    "blocos": make_rules("blocos"),
    "blocos-3": make_rules("blocos", players=3),
    "blocos-4": make_rules("blocos", players=4),
    "blocos-9": make_rules("blocos", players=9),
    "puxar": make_rules("puxar"),
    "puxar-3": make_rules("puxar", players=3),
    "puxar-4": make_rules("puxar", players=4),
}


def pick(integer: Integer, options: Sequence[T]) -> T:
    """One of `options`."""
    return options[integer(0, len(options) - 1)]


def build_rules(integer: Integer, **fixed: Any) -> RuleSet:
    """A valid rule set, any field of which may be `fixed`."""
    max_pip = fixed.get("max_pip") or integer(2, 9)
    tiles = num_tiles(max_pip)
    players = fixed.get("players") or integer(2, min(9, tiles))
    pairs = fixed.get("pairs", players == 4 and bool(integer(0, 1)))
    most = tiles // players
    values: dict[str, Any] = {
        "max_pip": max_pip,
        "players": players,
        "pairs": pairs,
        "hand_size": integer(1, min(most, 9)) if integer(0, 9) else most,
        "target": pick(integer, (None, 1, 3, 6, 6, 20, 50)),
        "tie_multiplier": pick(integer, (1, 2, 2, 3, 10)),
        "tie_multiplier_stacks": bool(integer(0, 1)),
        "la_e_lo_on_equal_ends": bool(integer(0, 1)),
    }
    for name, options in CHOICES.items():
        values[name] = pick(integer, [o for o in options if not (pairs and name == "next_starter" and o == "loser")])
    for name, usual in (("simples", 1), ("carroca", 2), ("la_e_lo", 3), ("cruzada", 4), ("block", 1)):
        values[f"points_{name}"] = usual if integer(0, 3) else pick(integer, (0, 5, 7, 1000))
    values = {**values, **fixed}
    if not values["points_simples"] and not values["points_carroca"]:  # a match in which nothing scores is refused
        values["points_simples"] = 1
    return RuleSet(**values)


def build_deal(integer: Integer, rules: RuleSet) -> Deal:
    """A deal of any number of the set's tiles: hands of any size of at least 1, and a boneyard."""
    left = list(range(rules.num_tiles))
    order = [left.pop(integer(0, len(left) - 1)) for _ in range(rules.num_tiles)]
    sizes = []
    for seat in range(rules.players):
        spare = len(order) - sum(sizes) - (rules.players - seat)
        sizes.append(1 + integer(0, min(spare, 8)))
    names = [TILE_NAMES[tile] for tile in order]
    hands = tuple(tuple(names[sum(sizes[:seat]) : sum(sizes[: seat + 1])]) for seat in range(rules.players))
    rest = names[sum(sizes) :]
    return Deal(hands, tuple(rest[: integer(0, len(rest))]), integer(0, rules.players - 1))


@st.composite
def rule_sets(draw: st.DrawFn, **fixed: Any) -> RuleSet:
    """Valid rule sets over all fields."""
    return build_rules(lambda low, high: draw(st.integers(low, high)), **fixed)


@st.composite
def partial_deals(draw: st.DrawFn, rules: RuleSet) -> Deal:
    """Deals for `rules` as `build_deal` makes them."""
    return build_deal(lambda low, high: draw(st.integers(low, high)), rules)


#: Seeds of deals and of random play.
seeds = st.integers(0, 2**32 - 1)
