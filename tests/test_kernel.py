"""The kernel under random play: nothing is lost, nobody is stuck, every round ends in time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from check_rounds import (
    BLOCKED,
    DRAWS,
    FAULTS,
    LONGEST,
    PASSES,
    PLAYS,
    TIED,
    check_decision,
    check_end,
    check_log,
    run,
)  # fmt: skip
from hypothesis import HealthCheck, given, settings
from strategies import TABLES, rule_sets, seeds

from domino_env import Batch, Deal, Match, RuleSet, make_rules
from domino_env.rules import MULTIPLIER_BOUND, pack
from domino_env.tiles import HIGH, LOW

# Everyday rounds for each game; see check_rounds.py for a million.
ROUNDS = 2500


def unpacked(masks: npt.NDArray[np.uint64], tiles: int) -> npt.NDArray[np.bool_]:
    """Tile masks (…,) as booleans (…, tiles)."""
    return (masks[..., None] >> np.arange(tiles, dtype=np.uint64) & np.uint64(1)).astype(np.bool_)


def in_boneyard(state: Any, tiles: int) -> npt.NDArray[np.int64]:
    """How often each tile lies in each table's boneyard, (tables, tiles)."""
    counts = np.zeros((len(state), tiles), np.int64)
    place = np.arange(tiles)
    inside = (place >= state["top"][:, None]) & (place < state["bottom"][:, None])
    table, at = np.nonzero(inside)
    np.add.at(counts, (table, state["deck"][table, at]), 1)
    return counts


def brute_force(state: Any, tiles: int) -> npt.NDArray[np.bool_]:
    """What may be played at each table, (tables, tiles, ends), found from hands, halves and ends alone."""
    t = np.arange(len(state))
    hand = unpacked(state["hands"][t, state["seat"]], tiles)
    ends = np.stack([state["left"], state["right"]], -1)[:, None, :]
    halves = np.stack([HIGH[:tiles], LOW[:tiles]], -1)
    fits = (halves[None, :, None, :] == ends[..., None]).any(-1)
    opening, forced = state["left"] < 0, state["forced"]
    allowed = (forced[:, None] < 0) | (forced[:, None] == np.arange(tiles))
    fits[opening, :, 0] = allowed[opening]
    fits[opening, :, 1] = False
    return hand[..., None] & fits


def check_batch(rules: RuleSet, seed: int, tables: int, steps: int) -> tuple[int, int]:
    """Random matches at many tables, every position of each step checked: (rounds, decisions)."""
    tiles, players = rules.num_tiles, rules.players
    batch = Batch(rules, tables, seed, episode="match", threads=1)
    state = batch.state
    rounds, before = 0, state["num_events"].copy()
    for _ in range(steps):
        held = unpacked(state["hands"][:, :players], tiles)
        placed = unpacked(state["placed"][:, :players], tiles)
        assert (held.sum(1) + placed.sum(1) + in_boneyard(state, tiles) == 1).all()
        assert (batch.seat >= 0).all()
        assert (batch.seat < players).all()
        legal = brute_force(state, tiles)
        assert legal.any((1, 2)).all()
        assert (batch.action_mask.reshape(tables, tiles, 2) == legal).all()
        kinds = state["events"] & 3
        happened = np.arange(kinds.shape[1]) < state["num_events"][:, None]
        plays, draws, passes = (((kinds == kind) & happened).sum(1) for kind in range(3))
        assert (plays == placed.sum((1, 2))).all()
        assert (draws <= (rules.boneyard_size if rules.draw != "none" else 0)).all()
        assert (passes <= (players - 1) * plays).all()
        assert (state["num_events"] <= rules.max_events).all()
        assert held.sum(2).max() <= rules.max_hand
        batch.step(batch.sample_actions())
        rounds += int((state["num_events"] < before).sum())  # a new round's log begins anew
        before[:] = state["num_events"]
        assert np.abs(batch.rewards.sum(1)).max() <= 1e-6 * max(1.0, np.abs(batch.rewards).max()) * players
    return rounds, tables * steps


@pytest.mark.parametrize("name", TABLES)
def test_many_rounds_at_a_batch_of_tables(name: str) -> None:
    rounds, decisions = check_batch(TABLES[name], seed=11, tables=400, steps=150)
    assert rounds > 2000
    assert decisions == 60_000


@pytest.mark.parametrize("name", TABLES)
def test_the_log_of_every_round(name: str) -> None:
    rules = TABLES[name]
    fault, stats, state = run(rules, ROUNDS, seed=12)
    assert not fault, state
    assert stats[LONGEST] <= rules.max_events
    assert stats[PLAYS] > ROUNDS * 7
    assert (stats[DRAWS] > 0) == (rules.draw != "none" and rules.boneyard_size > 0)
    assert stats[PASSES] > 0
    assert stats[BLOCKED] > 0
    assert 0 < stats[TIED] < ROUNDS / 10


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rule_sets(target=6), seeds)
def test_rounds_of_any_rules(rules: RuleSet, seed: int) -> None:
    fault, _, state = run(rules, 40, seed)
    assert not fault, state
    check_batch(rules, seed, tables=8, steps=20)


def test_the_checks_see_faults() -> None:
    """A state that is damaged by hand is reported for what it is."""
    rules = pack(TABLES["puxar"])[0]
    batch = Batch(TABLES["puxar"], 1, 3, autoreset=False, observe=False)
    for _ in range(6):
        batch.step(batch.sample_actions())

    def fault_of(check: Any, *more: Any, **damage: Any) -> str:
        state = batch.state.copy()
        for name, (at, value) in damage.items():
            state[0][name][at] = value
        return FAULTS[check(state[0], rules, *more)]

    row = batch.state[0]
    seat = int(row["seat"])
    other = 1 - seat
    assert fault_of(check_decision) == ""
    assert fault_of(check_decision, hands=(seat, 0)) == FAULTS[1]
    assert fault_of(check_decision, placed=(0, row["placed"][0] | row["hands"][0])) == FAULTS[1]
    assert fault_of(check_decision, legal=(0, row["legal"][0] ^ np.uint64(1))) == FAULTS[2]
    assert fault_of(check_decision, legal=(1, row["hands"][other])) == FAULTS[2]
    assert fault_of(check_decision, lacks=((0, other), 0b1111111)) == FAULTS[4]
    while not batch.done[0]:
        batch.step(batch.sample_actions())
    stats, before = np.zeros(7, np.int64), np.zeros(9, np.int64)
    events = batch.state[0]["events"]
    assert fault_of(check_log, stats) == ""
    assert fault_of(check_log, stats, events=(0, events[0] ^ 8)) == FAULTS[5]
    assert fault_of(check_log, stats, events=(1, events[0])) in FAULTS[5:7]
    assert fault_of(check_log, stats, hands=(0, 1)) == FAULTS[11]
    assert fault_of(check_end, before, stats) == ""
    assert fault_of(check_end, before, stats, scores=(0, 7777)) == FAULTS[12]


def test_equal_seeds_play_equal_rounds_whatever_the_batch() -> None:
    rules = TABLES["mano_a_mano"]
    alone, many = Batch(rules, 1, 4, first_table=700), Batch(rules, 1500, 4, threads=2)
    for _ in range(60):
        assert alone.state["deck"].tobytes() == many.state["deck"][700:701].tobytes()
        actions = many.sample_actions()
        assert alone.sample_actions()[0] == actions[700]
        many.step(actions)
        alone.step(actions[700:701])
    assert Match(rules, 4).game.hands == Match(rules, seed=np.int64(4)).game.hands
    decks = Batch(rules, 2000, 5).state["deck"]
    assert (
        len({row.tobytes() for row in decks} | {row.tobytes() for row in Batch(rules, 2000, 6).state["deck"]}) == 4000
    )


def test_stacked_multipliers_stop_growing_before_they_overflow() -> None:
    rules = make_rules("mano_a_mano", tie_multiplier=10, tie_multiplier_stacks=True, target=10**9)
    tie = Deal((("2-1", "5-3"), ("4-4",)))  # 2-1 blocks at once, 8 pips each
    rules = RuleSet(**{**vars(rules), "opening": "lots"})
    match = Match(rules, 1, deals=[Deal(tie.hands, (), 0)] * 14)
    worth = []
    for _ in range(14):
        worth.append(match.multiplier)
        result = match.play("2-1")
        assert result is not None
        assert result.reason == "tied"
    assert worth == [10 ** min(n, 9) for n in range(14)]
    assert max(worth) < MULTIPLIER_BOUND <= max(worth) * 10
