"""Rule sets: the presets' table, every field's bounds and messages, what cannot be dealt."""

from __future__ import annotations

import dataclasses
import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from strategies import rule_sets

from domino_env import PRESETS, Game, RuleSet, make_rules
from domino_env.rules import CHOICES, option, pack, preset_of

# The table of the rules' page, and the defaults of the options beside it.
TABLE = """
    field           duplas          mano_a_mano     blocos   puxar
    players         4               2               2        2
    pairs           True            False           False    False
    hand_size       7               7               7        7
    draw            none            until_fit       none     one
    opening         highest_double  highest_double  lots     lots
    next_starter    last_to_place   last_to_place   loser    rotation
    tie_starter     last_to_place   last_to_place   lots     rotation
    scoring         batida          batida          pips     pips
    target          6               6               50       100
    tie_multiplier  2               2               1        1
    single_round_block     fewest   fewest          fewest   draw
    tie_multiplier_stacks  False    False           False    False
    la_e_lo_on_equal_ends  False    False           False    False
    no_double       heaviest        heaviest        heaviest heaviest
    max_pip         6               6               6        6
    points_simples  1               1               1        1
    points_carroca  2               2               2        2
    points_la_e_lo  3               3               3        3
    points_cruzada  4               4               4        4
    points_block    1               1               1        1
"""
FIELDS = [spec.name for spec in dataclasses.fields(RuleSet)]


def test_the_presets_are_the_published_ones() -> None:
    (_, *names), *rows = map(str.split, TABLE.strip().splitlines())
    assert list(PRESETS) == names
    assert sorted(name for name, *_ in rows) == sorted(FIELDS)
    for name, *values in rows:
        assert [str(getattr(rules, name)) for rules in PRESETS.values()] == values, name


@pytest.mark.parametrize(
    ("preset", "sizes"),
    [
        ("blocos", {2: 7, 3: 7, 4: 7, 5: 5, 6: 4, 7: 4, 8: 3, 9: 3}),
        ("puxar", {2: 7, 3: 7, 4: 7}),
        ("duplas", {4: 7}),
    ],
)
def test_hand_sizes_by_players(preset: str, sizes: dict[int, int]) -> None:
    for players, size in sizes.items():
        rules = make_rules(preset, players=players)
        assert rules.hand_size == size
        game = Game(rules, 1)
        assert [len(hand) for hand in game.hands] == [size] * players
        assert len(game.boneyard) == rules.boneyard_size == 28 - players * size
        assert make_rules(preset, players=players, hand_size=2).hand_size == 2  # a given value is kept
        assert make_rules(preset, players=np.int64(players)) == rules


@pytest.mark.parametrize("players", range(1, 6))
@pytest.mark.parametrize("hand_size", range(16))
def test_a_deal_with_the_right_counts_or_an_error(players: int, hand_size: int) -> None:
    possible = players > 1 and hand_size >= 1 and players * hand_size <= 28
    for preset in ("blocos", "puxar", "mano_a_mano"):
        if possible:
            game = Game(make_rules(preset, players=players, hand_size=hand_size), 2)
            assert [len(hand) for hand in game.hands] == [hand_size] * players
            assert len(game.boneyard) == 28 - players * hand_size
        else:
            with pytest.raises(ValueError, match=r"^(players|hand_size)="):
                make_rules(preset, players=players, hand_size=hand_size)


GOOD: dict[str, list[Any]] = {
    "players": [2, 3, 9, np.int64(2)],
    "pairs": [False, np.bool_(False)],
    "hand_size": [1, 7, np.int32(2)],
    "target": [1, 10**9, None, np.uint8(200)],
    "tie_multiplier": [1, 10],
    "tie_multiplier_stacks": [True, False, np.True_],
    "la_e_lo_on_equal_ends": [True, False],
    "max_pip": [6, 7, 8, 9],
    **{f"points_{kind}": [0, 1, 1000] for kind in ("simples", "carroca", "la_e_lo", "cruzada", "block")},
    **{name: list(options) for name, options in CHOICES.items()},
}
WHOLE = ["3", 2.0, 2.5, True, np.True_, float("nan"), [2], -1]
BAD: dict[str, list[Any]] = {
    "players": [*WHOLE, None, 0, 1, 10],
    "pairs": [0, 1, None, "yes", "False"],
    "hand_size": [*WHOLE, None, 0, 56, 10**30],
    "target": [*WHOLE, 0, 10**9 + 1, "None"],
    "tie_multiplier": [*WHOLE, None, 0, 11],
    "tie_multiplier_stacks": [0, 1, None, "on"],
    "la_e_lo_on_equal_ends": [0, 1, None, "off"],
    "max_pip": [*WHOLE, None, 0, 1, 10, 12],
    **{f"points_{kind}": [*WHOLE, None, 1001] for kind in ("simples", "carroca", "la_e_lo", "cruzada", "block")},
    **{
        name: ["", "nothing", "None", None, 0, True, options[0].upper(), [options[0]]]
        for name, options in CHOICES.items()
    },
}
BOUNDS = {
    "players": "a whole number from 2 to 9",
    "hand_size": "a whole number from 1 to 55",
    "target": "a whole number from 1 to 1000000000, or None",
    "tie_multiplier": "a whole number from 1 to 10",
    "max_pip": "a whole number from 2 to 9",
    "pairs": "True or False",
    "tie_multiplier_stacks": "True or False",
    "la_e_lo_on_equal_ends": "True or False",
    **{
        f"points_{kind}": "a whole number from 0 to 1000"
        for kind in ("simples", "carroca", "la_e_lo", "cruzada", "block")
    },
    **{name: "one of " + ", ".join(options) for name, options in CHOICES.items()},
}


def test_every_field_has_its_cases() -> None:
    assert sorted(GOOD) == sorted(BAD) == sorted(BOUNDS) == sorted(FIELDS)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in FIELDS for value in GOOD[name]])
def test_good_values(name: str, value: Any) -> None:
    # Two tiles each, so that every set and number of players can be dealt.
    fixed: dict[str, Any] = {"hand_size": 2} if name != "hand_size" else {}
    kept = getattr(make_rules("mano_a_mano", **{**fixed, name: value}), name)
    assert kept == value
    assert type(kept) in (int, bool, str, type(None))


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in FIELDS for value in BAD[name]])
def test_bad_values_are_named_with_the_field_and_the_bound(name: str, value: Any) -> None:
    message = re.escape(f"{name}={value!r} is not {BOUNDS[name]}")
    with pytest.raises(ValueError, match=rf"^{message}( \(did you mean '\w+'\?\))?$"):
        make_rules("mano_a_mano", **{name: value})
    with pytest.raises(ValueError, match=rf"^{message}( \(did you mean '\w+'\?\))?$"):
        dataclasses.replace(PRESETS["mano_a_mano"], **{name: value})


@pytest.mark.parametrize(
    ("preset", "changes", "what", "bound"),
    [
        (
            "blocos",
            {"players": 4, "hand_size": 8},
            "hand_size=8: 4 players x 8 = 32 tiles",
            "6 set has 28; at most 7",
        ),
        ("puxar", {"players": 5}, "hand_size=7: 5 players x 7 = 35 tiles", "6 set has 28; at most 5"),
        ("mano_a_mano", {"max_pip": 2}, "hand_size=7: 2 players x 7 = 14 tiles", "2 set has 6; at most 3"),
        ("duplas", {"players": 3}, "pairs=True needs players=4", "not players=3"),
        ("duplas", {"players": 2}, "pairs=True needs players=4", "not players=2"),
        (
            "duplas",
            {"next_starter": "loser"},
            "next_starter='loser' needs pairs=False",
            "partners lose together",
        ),
    ],
)
def test_combinations_that_make_no_sense(preset: str, changes: dict[str, Any], what: str, bound: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(what)}.*{re.escape(bound)}"):
        make_rules(preset, **changes)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "dupla",
            "unknown preset 'dupla' (did you mean 'duplas'?); presets: duplas, mano_a_mano, blocos, puxar",
        ),
        ("mano-a-mano", "unknown preset 'mano-a-mano' (did you mean 'mano_a_mano'?)"),
        ("Blocos", "unknown preset 'Blocos' (did you mean 'blocos'?)"),
        ("chess", "unknown preset 'chess'; presets:"),
        (None, "unknown preset None; presets:"),
        (3, "unknown preset 3; presets:"),
    ],
)
def test_an_unknown_preset_suggests_a_near_one(name: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        make_rules(name)


@pytest.mark.parametrize(
    ("field", "near"),
    [
        ("targets", "target"),
        ("handsize", "hand_size"),
        ("nextstarter", "next_starter"),
        ("point_block", "points_block"),
    ],
)
def test_an_unknown_field_suggests_a_near_one(field: str, near: str) -> None:
    with pytest.raises(ValueError, match=f"^unknown field '{field}' \\(did you mean '{near}'\\?\\); fields: players, "):
        make_rules("duplas", **{field: 1})


def test_an_unknown_field_without_a_near_one() -> None:
    with pytest.raises(ValueError, match=r"^unknown field 'zzz'; fields: players, pairs, hand_size, draw"):
        make_rules("duplas", zzz=1)


def test_sides() -> None:
    duplas, nine = PRESETS["duplas"], make_rules("blocos", players=9)
    assert (duplas.num_sides, [duplas.side_of(seat) for seat in range(4)]) == (2, [0, 1, 0, 1])
    assert (nine.num_sides, [nine.side_of(seat) for seat in range(9)]) == (9, list(range(9)))
    assert (duplas.num_tiles, duplas.num_actions, duplas.max_hand) == (28, 56, 7)
    assert PRESETS["mano_a_mano"].max_hand == 21


def test_a_rule_set_is_a_value() -> None:
    rules = make_rules("duplas", target=10)
    assert rules == dataclasses.replace(PRESETS["duplas"], target=10) != PRESETS["duplas"]
    assert len({rules, make_rules("duplas", target=10), PRESETS["duplas"]}) == 2
    assert pickle.loads(pickle.dumps(rules)) == rules
    with pytest.raises(dataclasses.FrozenInstanceError):
        rules.target = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        PRESETS["duplas"] = rules  # type: ignore[index]


@given(rule_sets())
def test_any_rule_set_is_its_nearest_preset_with_changes(rules: RuleSet) -> None:
    preset, changes = preset_of(rules)
    assert make_rules(preset, **{"hand_size": rules.hand_size, **changes}) == rules
    assert RuleSet(**vars(rules)) == rules
    assert pickle.loads(pickle.dumps(rules)) == rules


@given(rule_sets())
def test_the_kernel_reads_every_field(rules: RuleSet) -> None:
    packed = pack(rules)
    for name in FIELDS:
        value = getattr(rules, name)
        assert packed[name][0] == (option(name, value) if name in CHOICES else value or 0)
    assert packed["sides"][0] == rules.num_sides
    assert packed["tiles"][0] == rules.num_tiles
    assert packed["boneyard_size"][0] == rules.boneyard_size
    assert pack(dataclasses.replace(rules)) is packed
    with pytest.raises(ValueError, match="read-only"):
        packed["players"] = 3
