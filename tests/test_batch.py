"""`Batch`: the same games however they are split, equal to `Game` and `Match`, and safe against bad input."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from domino_env import PRESETS, Batch, Game, Match, RuleSet, make_rules
from domino_env import batch as batch_module
from domino_env.observation import masks

CASES = {
    "duplas": PRESETS["duplas"],
    "mano_a_mano": PRESETS["mano_a_mano"],
    "blocos": PRESETS["blocos"],
    "blocos of 4": make_rules("blocos", players=4),
    "puxar": PRESETS["puxar"],
    "puxar of 3": make_rules("puxar", players=3),
    "puxar of 4": make_rules("puxar", players=4),
}
every_case = pytest.mark.parametrize("rules", CASES.values(), ids=CASES)
DUPLAS = PRESETS["duplas"]


def run(batch: Batch, steps: int) -> None:
    for _ in range(steps):
        batch.step(batch.sample_actions())


def content(batch: Batch) -> dict[str, bytes]:
    """Everything a batch holds and shows, its random streams included."""
    arrays = {name: getattr(batch, name) for name in ("state", "seat", "observation", "action_mask", "rewards", "done")}
    return {name: array.tobytes() for name, array in arrays.items()} | {"random": batch._random.tobytes()}


def rows(batch: Batch) -> bytes:
    return batch.state.tobytes() + batch.observation.tobytes() + batch.action_mask.tobytes() + batch.done.tobytes()


def run_python(code: str) -> str:
    """What a new Python process prints that runs `code`."""
    root = str(Path(batch_module.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=60)
    return ran.stdout.strip()


# The same games however they are split


@pytest.mark.parametrize("episode", ["round", "match"])
def test_threads_change_nothing(episode: Any) -> None:
    whole = [Batch(DUPLAS, 10_000, seed=5, episode=episode, threads=threads) for threads in (1, 2, 16)]
    assert [batch.threads for batch in whole] == [1, 2, 16]
    for _ in range(40):
        for batch in whole:
            batch.step(batch.sample_actions())
        assert rows(whole[0]) == rows(whole[1]) == rows(whole[2])
    assert whole[0].state["round"].any() or whole[0].done.any()


@every_case
def test_number_and_split_of_tables_change_nothing(rules: RuleSet) -> None:
    whole = Batch(rules, 40, seed=8, episode="match")
    cuts = [0, 1, 17, 40]
    parts = [Batch(rules, b - a, seed=8, first_table=a, episode="match") for a, b in pairwise(cuts)]
    for _ in range(120):
        for batch in (whole, *parts):
            batch.step(batch.sample_actions())
        for name in ("state", "observation", "action_mask", "rewards", "done", "seat"):
            joined = np.concatenate([getattr(part, name) for part in parts])
            assert joined.tobytes() == getattr(whole, name).tobytes(), name


def test_another_process_plays_the_same() -> None:
    code = """
import hashlib
from domino_env import PRESETS, Batch
batch = Batch(PRESETS["puxar"], 300, seed=11, episode="match")
for _ in range(100):
    batch.step(batch.sample_actions())
print(hashlib.sha256(batch.state.tobytes() + batch.observation.tobytes()).hexdigest())
"""
    ran = [run_python(code) for _ in range(2)]
    batch = Batch(PRESETS["puxar"], 300, seed=11, episode="match")
    run(batch, 100)
    here = hashlib.sha256(batch.state.tobytes() + batch.observation.tobytes()).hexdigest()
    assert ran == [here, here]


# Equal to Game and Match


@every_case
def test_a_round_is_that_of_game(rules: RuleSet) -> None:
    for seed in range(5):
        game, batch = Game(rules, seed=seed), Batch(rules, 3, seed=seed, autoreset=False)
        while game.seat is not None:
            assert (batch.seat[0], batch.done[0]) == (game.seat, False)
            view = game.view(game.seat)
            assert batch.encoding.vectors(view.record)[0].tobytes() == batch.observation[0].tobytes()
            assert masks(view.record, rules.num_actions)[0].tobytes() == batch.action_mask[0].tobytes()
            actions = batch.sample_actions()
            assert actions[0] in [move.action for move in game.legal_moves()]
            game.play(int(actions[0]))
            batch.step(actions)
        assert batch.done[0]
        result = game.result
        assert result is not None
        assert (batch.state["points"][0], batch.state["winning_side"][0]) == (
            result.points,
            -1 if result.side is None else result.side,
        )
        assert batch.rewards[0].max() == result.points


@every_case
def test_a_match_is_that_of_match(rules: RuleSet) -> None:
    for seed in range(3):
        match = Match(rules, seed=seed)
        batch = Batch(rules, 1, seed=seed, autoreset=False, episode="match")
        gained = np.zeros(rules.num_sides)
        while not match.over:
            assert (batch.seat[0], batch.done[0]) == (match.game.seat, False)
            assert batch.state["round"][0] == match.round - 1
            assert batch.state["scores"][0, : rules.num_sides].tolist() == match.scores
            assert batch.state["multiplier"][0] == match.multiplier
            action = int(batch.sample_actions()[0])
            result = match.play(action)
            batch.step([action])
            assert batch.rewards[0].any() == (result is not None and result.points > 0)
            gained += batch.rewards[0]
        assert batch.done[0]
        assert batch.state["winner"][0] == (-1 if match.winner is None else match.winner)
        if rules.num_sides == 2:
            assert gained.tolist() == [match.scores[0] - match.scores[1], match.scores[1] - match.scores[0]]
        assert gained.sum() == 0


@every_case
def test_observations_are_those_of_views(rules: RuleSet) -> None:
    batch = Batch(rules, 50, seed=2, episode="match")
    for _ in range(60):
        run(batch, 1)
        views = batch.views()
        assert batch.encoding.vectors(views).tobytes() == batch.observation.tobytes()
        assert masks(views, rules.num_actions).tobytes() == batch.action_mask.tobytes()
        legal = batch.action_mask.reshape(50, -1, 2)
        for end in (0, 1):
            words = batch.state["legal"][:, end]
            bits = (words[:, None] >> np.arange(rules.num_tiles, dtype=np.uint64)) & np.uint64(1)
            assert np.array_equal(bits, legal[:, :, end])


# Episodes, rewards


def result_rewards(rules: RuleSet, game: Game) -> list[float]:
    """What each side gains by a finished round, from its result."""
    result = game.result
    assert result is not None
    if result.side is None:
        return [0.0] * rules.num_sides
    if rules.num_sides == 2:
        return [float(result.points if side == result.side else -result.points) for side in range(2)]
    fewest = result.pips[result.side]
    lost = [float(-(pips - fewest) * result.multiplier) for pips in result.pips]
    lost[result.side] = float(result.points)
    return lost


@every_case
@pytest.mark.parametrize("episode", ["round", "match"])
def test_points_are_those_of_the_results(rules: RuleSet, episode: Any) -> None:
    """With a match beside each table, in the first episode and in those that its stream deals next."""
    for table in range(4):
        batch = Batch(rules, 1, seed=3, first_table=table, episode=episode)
        for _ in range(3):
            match = Match.__new__(Match)  # the match around the batch's table, whose stream has gone on
            match.rules, match._deals = rules, []
            match._games = [Game._from_state(rules, batch.state.copy())]
            while True:
                action = int(batch.sample_actions()[0])
                played = match.game
                result = match.play(action)
                batch.step([action])
                wanted = [0.0] * rules.num_sides if result is None else result_rewards(rules, played)
                assert batch.rewards[0].tolist() == wanted
                assert batch.rewards.sum() == 0
                over = match.over if episode == "match" else result is not None
                assert batch.done[0] == over
                if over:
                    break
            assert batch.state["round"][0] == 0
            assert not batch.state["scores"][0].any()


@every_case
@pytest.mark.parametrize("episode", ["round", "match"])
def test_outcomes_are_those_of_the_winner(rules: RuleSet, episode: Any) -> None:
    points = Batch(rules, 200, seed=6, episode=episode, autoreset=False)
    outcome = Batch(rules, 200, seed=6, episode=episode, autoreset=False, reward="outcome")
    total = np.zeros((200, rules.num_sides))
    while not outcome.done.all():
        open_before = ~outcome.done
        for batch in (points, outcome):
            batch.step(batch.sample_actions())
        assert points.state["hands"].tobytes() == outcome.state["hands"].tobytes()
        total += outcome.rewards
        ended = open_before & outcome.done
        assert not outcome.rewards[~ended].any()
    winner = outcome.state["winner" if episode == "match" else "winning_side"]
    for table in range(200):
        wanted = np.zeros(rules.num_sides)
        if winner[table] >= 0:
            wanted[:] = -1 / (rules.num_sides - 1)
            wanted[winner[table]] = 1
        assert total[table] == pytest.approx(wanted, abs=1e-6)
    assert abs(total.sum(axis=1)).max() < 1e-6
    assert (winner >= 0).sum() > 100


def test_a_single_round_blocked_at_puxar_is_a_drawn_match() -> None:
    rules = make_rules("puxar", target=None)
    for episode in ("round", "match"):
        points, outcome = (
            Batch(rules, 2000, seed=1, episode=episode, reward=reward, autoreset=False)  # type: ignore[arg-type]
            for reward in ("points", "outcome")
        )
        gained, won = np.zeros((2000, 2)), np.zeros((2000, 2))
        while not points.done.all():
            for batch, total in ((points, gained), (outcome, won)):
                batch.step(batch.sample_actions())
                total += batch.rewards
        out, blocked = (points.state["reason"] == reason for reason in (1, 2))
        assert blocked.any()
        assert not won[blocked].any()
        assert np.all(gained[blocked].any(axis=1))
        assert np.all(won[out].max(axis=1) == 1)


@every_case
def test_autoreset_starts_the_next_episode_in_the_step_that_ends_one(rules: RuleSet) -> None:
    going, stopping = Batch(rules, 60, seed=4), Batch(rules, 60, seed=4, autoreset=False)
    for _ in range(150):
        actions = going.sample_actions().copy()
        fresh = stopping.done.copy()
        stopping.reset(tables=fresh)
        assert stopping.seat.tobytes() == going.seat.tobytes()
        assert stopping.observation.tobytes() == going.observation.tobytes()
        going.step(actions)
        stopping.step(actions)
        assert going.done.tobytes() == stopping.done.tobytes()
        assert going.rewards.tobytes() == stopping.rewards.tobytes()
        assert np.all(stopping.seat[stopping.done] == -1)
        assert np.all(going.seat >= 0)
        assert np.all(stopping.action_mask[stopping.done] == 1)
        assert not stopping.observation[stopping.done].any()


def test_a_table_that_is_over_stays_over_and_ignores_its_action() -> None:
    batch = Batch(DUPLAS, 8, seed=4, autoreset=False)
    while not batch.done.all():
        run(batch, 1)
    before = batch.state["hands"].tobytes()
    for actions in ([0] * 8, [10**9] * 8, [-1] * 8, batch.sample_actions()):
        batch.step(actions)
        assert batch.done.all()
        assert not batch.rewards.any()
        assert np.all(batch.action_mask == 1)
        assert np.all(batch.seat == -1)
    assert batch.state["hands"].tobytes() == before
    assert not batch.sample_actions().any()
    batch.reset(tables=np.arange(8) < 3)
    assert batch.done.tolist() == [False] * 3 + [True] * 5


def test_a_chosen_step_leaves_the_other_tables_alone() -> None:
    batch, all_ = Batch(DUPLAS, 20, seed=4), Batch(DUPLAS, 20, seed=4)
    chosen = np.arange(20) % 3 == 0
    actions = batch.sample_actions().copy()
    before = {name: getattr(batch, name)[~chosen].tobytes() for name in ("state", "observation", "action_mask")}
    batch.step(np.where(chosen, actions, -7), tables=chosen)
    all_.step(actions)
    for name, content_ in before.items():
        assert getattr(batch, name)[~chosen].tobytes() == content_
        assert getattr(batch, name)[chosen].tobytes() == getattr(all_, name)[chosen].tobytes()


# Decisions with one legal action


@every_case
@pytest.mark.parametrize("episode", ["round", "match"])
@pytest.mark.parametrize("reward", ["points", "outcome"])
def test_skipping_is_playing_the_single_actions_by_hand(rules: RuleSet, episode: Any, reward: Any) -> None:
    options = {"episode": episode, "reward": reward, "autoreset": False}
    skipping = Batch(rules, 30, seed=9, skip_single=True, **options)
    plain = Batch(rules, 30, seed=9, **options)
    gained = np.zeros((30, rules.num_sides))

    def play_singles() -> None:
        while True:
            single = (plain.action_mask.sum(axis=1) == 1) & (plain.seat >= 0)
            if not single.any():
                return
            plain.step(np.where(single, plain.action_mask.argmax(axis=1), 0), tables=single)
            gained[single] += plain.rewards[single]

    def pass_over() -> None:  # episodes without a decision
        play_singles()
        while plain.done.any():
            gained[plain.done] = 0
            plain.reset(tables=plain.done.copy())
            play_singles()

    pass_over()
    for _ in range(30 if episode == "round" else 600):
        assert np.array_equal(plain.seat, skipping.seat)
        assert plain.observation.tobytes() == skipping.observation.tobytes()
        assert plain.action_mask.tobytes() == skipping.action_mask.tobytes()
        assert not np.any((skipping.action_mask.sum(axis=1) == 1) & ~skipping.done)
        actions = skipping.sample_actions().copy()
        open_ = ~skipping.done
        skipping.step(actions)
        gained[:] = 0
        plain.step(actions, tables=open_)
        gained[open_] += plain.rewards[open_]
        play_singles()
        assert gained[open_].tolist() == skipping.rewards[open_].astype(float).tolist()
        assert np.array_equal(plain.done, skipping.done)
        if skipping.done.all():
            break
    assert skipping.done.any()


# Memory, buffers


def memory(batch: Batch) -> int:
    """Bytes of all arrays that a batch holds, each counted once."""
    owners: dict[int, npt.NDArray[Any]] = {}
    for array in vars(batch).values():
        if isinstance(array, np.ndarray):
            while isinstance(array.base, np.ndarray):
                array = array.base
            owners[id(array)] = array
    return sum(array.nbytes for array in owners.values())


@every_case
def test_a_million_tables_fit_in_two_gibibytes(rules: RuleSet) -> None:
    for observe in (True, False):
        few, more = (Batch(rules, tables, seed=1, observe=observe) for tables in (3, 8))
        assert memory(more) - memory(few) == 5 * few.bytes_per_table
    assert few.bytes_per_table < Batch(rules, 3, seed=1).bytes_per_table
    assert Batch(rules, 3, seed=1).bytes_per_table * 1_000_000 < 2 * 2**30


def test_without_observing_the_games_are_the_same() -> None:
    seeing, blind = Batch(DUPLAS, 30, seed=2), Batch(DUPLAS, 30, seed=2, observe=False)
    run(seeing, 50)
    run(blind, 50)
    assert seeing.state.tobytes() == blind.state.tobytes()


def test_buffers_stay_the_same_arrays_and_overwriting_them_harms_nothing() -> None:
    batch, other = Batch(DUPLAS, 20, seed=2), Batch(DUPLAS, 20, seed=2)
    buffers = {name: getattr(batch, name) for name in ("seat", "observation", "action_mask", "rewards", "done")}
    for _ in range(40):
        batch.observation[:] = 77
        batch.action_mask[:] = 77
        batch.rewards[:] = 77
        run(batch, 1)
        run(other, 1)
        assert content(batch) == content(other)
    assert all(getattr(batch, name) is array for name, array in buffers.items())
    batch.reset()
    assert all(getattr(batch, name) is array for name, array in buffers.items())
