"""`Batch` refuses bad input whole, takes actions in any form, and can be copied."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from test_batch import content, run, run_python

from domino_env import PRESETS, Batch, IllegalAction
from domino_env import batch as batch_module

DUPLAS = PRESETS["duplas"]

# Refusals


def bad_actions(batch: Batch) -> dict[str, Any]:
    good = batch.sample_actions().copy()
    mask = batch.action_mask[5]
    illegal = int(mask.argmin())

    def with_one(value: Any, dtype: Any = np.int64) -> Any:
        actions = good.astype(dtype)
        actions[5] = value
        return actions

    return {
        "illegal": with_one(illegal),
        "minus one": with_one(-1),
        "n": with_one(batch.rules.num_actions),
        "past the table of tiles": with_one(110),
        "huge": with_one(10**9),
        "2**63 - 1": with_one(2**63 - 1),
        "-2**63": with_one(-(2**63)),
        "int8 -128": with_one(-128, np.int8),
        "uint64 2**64 - 1": with_one(2**64 - 1, np.uint64),
        "nan": with_one(np.nan, float),
        "float": good.astype(float),
        "bool": good.astype(bool),
        "object": good.astype(object),
        "string": good.astype(str),
        "too few": good[:-1],
        "too many": np.append(good, 0),
        "two dimensions": good[:, None],
        "one number": int(good[0]),
        "nothing": [],
        "None": None,
        "big Python integer": [10**30] * batch.num_tables,
        "ragged": [[1], [1, 2]],
        "mixed": [*good[:-1].tolist(), 1.5],
    }


NAMES = list(bad_actions(Batch(DUPLAS, 8, seed=1)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [0, 3])
def test_what_is_refused_changes_nothing(name: str, steps: int) -> None:
    batch = Batch(DUPLAS, 8, seed=1)
    run(batch, steps)
    actions = bad_actions(batch)[name]
    before = content(batch)
    with pytest.raises(ValueError, match=r"action"):
        batch.step(actions)
    assert content(batch) == before
    run(batch, 1)  # and the batch goes on


def test_the_message_names_table_seat_action_and_legal_ones() -> None:
    batch = Batch(PRESETS["blocos"], 8, seed=1)
    run(batch, 3)
    game = batch.state[5]
    actions = batch.sample_actions().copy()
    actions[5] = 2 * 20 + 1  # 5-5R
    assert not batch.action_mask[5, 41]
    with pytest.raises(IllegalAction) as error:
        batch.step(actions)
    legal = [i for i, bit in enumerate(batch.action_mask[5]) if bit]
    names = [batch_module.action_name(action) for action in legal]
    wanted = f"table 5: seat {game['seat']} may not play '5-5R' (action 41); legal: {', '.join(names)}"
    assert str(error.value) == wanted
    assert (error.value.table, error.value.action) == (5, 41)
    again = pickle.loads(pickle.dumps(error.value))
    assert (str(again), again.table, again.action) == (wanted, 5, 41)


def test_the_message_at_an_opening_names_tiles_without_ends() -> None:
    batch = Batch(DUPLAS, 4, seed=1)
    with pytest.raises(IllegalAction, match=r"table 0: seat \d may not play '1-0' \(action 2\); legal: 6-6$"):
        batch.step([2] * 4)
    with pytest.raises(IllegalAction, match=r"table 0: seat \d may not play action -9; legal: 6-6$"):
        batch.step([-9] * 4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tables": 0}, "tables=0"),
        ({"tables": -3}, "tables=-3"),
        ({"episode": "game"}, "episode='game'"),
        ({"reward": "pips"}, "reward='pips'"),
        ({"threads": 0}, "threads=0"),
        ({"tables": 2.5}, "tables=2.5"),
        ({"tables": "4"}, "tables='4'"),
        ({"tables": True}, "tables=True"),
        ({"threads": 1.5}, "threads=1.5"),
        ({"first_table": -1}, "first_table=-1"),
        ({"first_table": 0.5}, "first_table=0.5"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 1.5}, "seed=1.5"),
        ({"seed": True}, "seed=True"),
    ],
)
def test_bad_options_are_refused_by_name(options: dict[str, Any], said: str) -> None:
    given = {"tables": 4, "seed": 1} | options
    with pytest.raises(ValueError, match=said):
        Batch(DUPLAS, **given)


def test_rules_without_any_decision_cannot_be_skipped_through() -> None:
    code = """
from domino_env import Batch, make_rules
try:
    Batch(make_rules("blocos", hand_size=1), 4, seed=1, skip_single=True)
except ValueError as error:
    print(error)
"""
    assert "hand_size=1" in run_python(code)


def test_bad_selections_are_refused() -> None:
    batch = Batch(DUPLAS, 4, seed=1)
    before = content(batch)
    for chosen in ([0, 1], np.ones(3, bool), np.ones((4, 1), bool), np.array([0, 1, 0, 1])):
        for call in (lambda: batch.reset(tables=chosen), lambda: batch.step([0] * 4, tables=chosen)):  # noqa: B023
            with pytest.raises(ValueError, match="tables"):
                call()
    with pytest.raises(ValueError, match="seed"):
        batch.reset(seed=3, tables=np.ones(4, bool))
    for tables, seats in (([4], [0]), ([-1], [0]), ([0], [4]), ([0], [-1]), ([0, 1], [0])):
        with pytest.raises(ValueError, match=r"tables|seats"):
            batch.views(np.array(tables), np.array(seats))
    assert content(batch) == before


# Forms of actions


def test_any_integers_are_actions() -> None:
    wanted = Batch(DUPLAS, 8, seed=1)
    run(wanted, 12)

    def strided(actions: npt.NDArray[Any]) -> Any:
        wide = np.full(16, -1)
        wide[::2] = actions
        return wide[::2]

    def read_only(actions: npt.NDArray[Any]) -> Any:
        actions = actions.copy()
        actions.flags.writeable = False
        return actions

    def unaligned(actions: npt.NDArray[Any]) -> Any:
        room = np.zeros(8 * 8 + 1, np.uint8)[1:].view(np.int64)
        room[:] = actions
        return room

    forms: list[Any] = [lambda a, kind=kind: a.astype(kind) for kind in "bBhHiIqQ"]
    forms += [
        strided,
        read_only,
        unaligned,
        lambda a: a.tolist(),
        lambda a: tuple(a),
        lambda a: a[::-1].copy()[::-1],
    ]
    forms += [lambda a: a.astype(">i8"), lambda a: a.astype(">u2")]
    batch = Batch(DUPLAS, 8, seed=1)
    run(batch, 1)
    compiled = len(getattr(batch_module._step_many, "signatures", ()))
    for form in forms:
        batch = Batch(DUPLAS, 8, seed=1)
        for _ in range(12):
            given = form(batch.sample_actions())
            kept = copy.copy(given)
            batch.step(given)
            assert np.array_equal(given, kept)
        assert content(batch) == content(wanted)
    assert len(getattr(batch_module._step_many, "signatures", ())) == compiled  # none needs a compilation of its own


# Copies


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda batch: pickle.loads(pickle.dumps(batch))], ids=["copy", "pickle"]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_copies_go_on_alike_and_apart(copied: Any, threads: int) -> None:
    batch = Batch(PRESETS["mano_a_mano"], 1100, seed=7, episode="match", threads=threads)
    run(batch, 21)
    before = content(batch)
    other = copied(batch)
    assert content(other) == before
    compiled = len(getattr(batch_module._step_many, "signatures", ()))
    run(other, 30)
    assert content(batch) == before  # not moved by the copy
    run(batch, 30)
    assert content(batch) == content(other)
    for name in ("seat", "rewards"):
        assert np.shares_memory(getattr(other, name), other.state)
    assert len(getattr(batch_module._step_many, "signatures", ())) == compiled
