"""Rows of moves and of deals: what makes no difference to them, of what the numbers are called and of hidden tiles."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from test_afterstates import every_case, positions
from test_observation import halves, tiles_of

from domino_env import PRESETS, Batch, RuleSet, make_rules
from domino_env.afterstates import Afterstates, Deals
from domino_env.belief import Belief
from domino_env.observation import Views, look_many, new_views
from domino_env.rules import pack
from domino_env.state import PLAY, copy_state
from domino_env.tiles import HALVES

TABLES = {
    **PRESETS,
    "puxar of 3": make_rules("puxar", players=3),
    "double-nine, 3 players": make_rules("puxar", players=3, max_pip=9, hand_size=12),
    "double-nine, 9 players": make_rules("blocos", players=9, max_pip=9, hand_size=6, target=900),
}
some_tables = pytest.mark.parametrize("rules", TABLES.values(), ids=TABLES)


def some_states(rules: RuleSet, seed: int) -> npt.NDArray[np.void]:
    """Tables of matches at all stages."""
    batch, found = Batch(rules, 60, seed=seed, episode="match", observe=False), []
    for step in range(90):
        batch.step(batch.sample_actions())
        if step % 15 == 14:
            found.append(copy_state(batch.state))
    return np.concatenate(found)


def views_of(rules: RuleSet, states: npt.NDArray[np.void]) -> Views:
    """What the seats to act know."""
    views = new_views(rules, len(states))
    look_many(states, pack(rules), np.arange(len(states)), states["seat"].astype(np.int64), views)
    return views


def part_of(layout: Afterstates | Deals, rows: npt.NDArray[np.int8], name: str) -> npt.NDArray[np.int8]:
    part = layout.slices[name]
    return rows[:, part.start : part.stop].reshape(len(rows), *part.shape)


def without(layout: Afterstates | Deals, rows: npt.NDArray[np.int8], *names: str) -> list[list[int]]:
    """The rows, with zeros in the slices of these names."""
    kept = rows.copy()
    for name, part in layout.slices.items():
        if name.rstrip("_0123456789") in names:
            kept[:, part.start : part.stop] = 0
    listed: list[list[int]] = kept.tolist()
    return listed


def tiles_called(names: list[int]) -> list[int]:
    """For each tile, the one it becomes where number n is called ``names[n]``."""
    tiles = tiles_of(len(names) - 1)
    pairs = [sorted(names[int(half)] for half in (tile[0], tile[2])) for tile in tiles]
    return [tiles.index(f"{low}-{high}") for low, high in pairs]


def renamed(records: npt.NDArray[np.void], names: list[int]) -> npt.NDArray[np.void]:
    """Views or tables with number n called ``names[n]``."""
    to = tiles_called(names)

    def moved(masks: Any, to: list[int]) -> list[Any]:
        return [sum(1 << to[i] for i in range(len(to)) if mask >> i & 1) for mask in masks]

    found = records.copy()
    for name in {"hand", "hands", "placed", "legal", "lacks"} & set(found.dtype.names or ()):
        masks = moved(records[name].flatten().tolist(), names if name == "lacks" else to)
        found[name] = np.array(masks, found[name].dtype).reshape(found[name].shape)
    for name in ("left", "right"):
        found[name] = [number if number < 0 else names[number] for number in records[name].tolist()]
    if "hand" in (found.dtype.names or ()):
        found["events"] = [renamed_events(view["events"][: view["num_events"]].tolist(), names, to) +
                           [0] * (found["events"].shape[1] - view["num_events"]) for view in records]  # fmt: skip
    if "deck" in (found.dtype.names or ()):
        found["deck"][:, : len(to)] = np.array(to)[records["deck"][:, : len(to)]]
    return found


def renamed_events(events: list[int], names: list[int], to: list[int]) -> list[int]:
    """The round's events with number n called ``names[n]``. A round's first tile lies with its higher half left."""
    plays = [event >> 7 for event in events if event & 3 == PLAY]
    high, low = HALVES[plays[0]] if plays else (0, 0)
    turned = 4 if names[high] < names[low] else 0
    found, first = [], True
    for event in events:
        known = event >> 7 < len(to)
        kept = event & 127 ^ (turned if event & 3 == PLAY and not first else 0)
        found.append(kept | (to[event >> 7] if known else event >> 7) << 7)
        first = first and event & 3 != PLAY
    return found


def assert_same_but_for_names(
    layout: Afterstates | Deals, rows: npt.NDArray[np.int8], others: npt.NDArray[np.int8], names: list[int]
) -> None:
    assert without(layout, rows, "names", "pips") == without(layout, others, "names", "pips")
    assert np.array_equal(part_of(layout, others, "names")[:, :, names], part_of(layout, rows, "names"))


def clear_order(rules: RuleSet, own: Any, hidden: Any, ends: Any) -> npt.NDArray[np.bool_]:
    """The rows in which no two places follow from what the numbers are called; the first `ends` are the ends'."""
    tiles, numbers = tiles_of(rules.max_pip), rules.max_pip + 1
    carries = np.array([[n in halves(tile) for n in range(numbers)] for tile in tiles], np.int64)
    weight = own.astype(np.int64) @ carries * 100 + hidden.astype(np.int64) @ carries
    later = np.arange(numbers - 1) >= np.asarray(ends)[:, None]
    clear: npt.NDArray[np.bool_] = ~(later & (weight[:, 1:] == weight[:, :-1])).any(1)
    return clear


@some_tables
def test_what_the_numbers_are_called_shows_in_names_and_pips_alone(rules: RuleSet) -> None:
    layout, views = Afterstates(rules), views_of(rules, some_states(rules, 5))
    names = Random(8).sample(range(rules.max_pip + 1), rules.max_pip + 1)
    moves, others = layout.of(views), layout.of(renamed(views, names))
    assert moves.starts.tolist() == others.starts.tolist()
    called, same = tiles_called(names), []
    for view, (start, stop) in enumerate(pairwise(moves.starts)):
        for action in moves.actions[start:stop].tolist():
            same.append(start + others.find(view, 2 * called[action // 2] + action % 2))
    rows, turned = moves.rows, others.rows[same]
    own, placed = part_of(layout, rows, "hand"), part_of(layout, rows, "placed").sum(1)
    clear = clear_order(rules, own, 1 - own - placed, 2 - part_of(layout, rows, "equal_ends")[:, 0])
    # Of the two halves of a round's first tile, the higher has the first place.
    clear &= part_of(layout, rows, "last").any(1) | (part_of(layout, rows, "double")[:, 0] == 1)
    assert clear.sum() > 20
    assert_same_but_for_names(layout, rows[clear], turned[clear], names)


@some_tables
def test_what_the_numbers_are_called_shows_in_a_deal_in_names_and_pips_alone(rules: RuleSet) -> None:
    layout, states = Deals(rules), some_states(rules, 6)
    names = Random(9).sample(range(rules.max_pip + 1), rules.max_pip + 1)
    rows, turned = layout.of(states), layout.of(renamed(states, names))
    others = sum(part_of(layout, rows, f"hand_{seat}").astype(np.int64) for seat in range(1, rules.players))
    ends = np.where(states["left"] < 0, 0, np.where(states["left"] == states["right"], 1, 2))
    clear = clear_order(rules, part_of(layout, rows, "hand_0"), others, ends)
    assert clear.sum() > 20
    assert_same_but_for_names(layout, rows[clear], turned[clear], names)


@every_case
def test_a_chain_turned_round_has_the_same_moves(rules: RuleSet) -> None:
    layout, views = Afterstates(rules), views_of(rules, some_states(rules, 7))
    turned = views.copy()
    for one, other in (("left", "right"), ("left_owner", "right_owner")):
        turned[one], turned[other] = views[other], views[one]
    begun = views["left"] >= 0  # a round's first tile has no end, and counts as played at the left
    turned["legal"][begun] = views["legal"][begun][:, ::-1]
    moves, others = layout.of(views), layout.of(turned)
    assert moves.starts.tolist() == others.starts.tolist()
    for v, (start, stop) in enumerate(pairwise(moves.starts)):
        # Where both ends show one number, the tile at the left is covered.
        names = ("covered_owner", "other_owner") if moves.equal_ends[v] else ()
        mine, theirs = (sorted(without(layout, found.rows[start:stop], *names)) for found in (moves, others))
        assert mine == theirs


@some_tables
def test_moves_say_nothing_of_hidden_tiles_and_deals_do(rules: RuleSet) -> None:
    told = 0
    layout, deals = Afterstates(rules), Deals(rules)
    for i, position in enumerate(positions(rules, 4, seed=2)):
        if i % 3:
            continue
        assert position.game.seat is not None
        view = position.game.view(position.game.seat)
        found, states = layout.of(view.record), Belief(rules, view).sample(6, seed=i)
        others = layout.of_state(states)
        assert others.rows.tolist() == found.rows.tolist() * 6
        assert others.actions.tolist() == found.actions.tolist() * 6
        told += len(np.unique(deals.of(states), axis=0)) > 1
    assert told > 5
