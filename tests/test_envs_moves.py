"""Environments whose observations are the learner's legal moves, and players drawn anew each episode."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv
from strategies import TABLES

from domino_env import PRESETS, IllegalAction, make_rules
from domino_env.afterstates import Afterstates
from domino_env.bots import ScriptedPlayer
from domino_env.envs.seats import ASKED, OneOf, seat_players
from domino_env.envs.single import DominoEnv
from domino_env.envs.tables import LearnerTables
from domino_env.envs.vector import DominoVectorEnv
from domino_env.players import Player

every_table = pytest.mark.parametrize("rules", TABLES.values(), ids=TABLES)
DUPLAS = TABLES["duplas"]


class Asked(Player):
    """A scripted player that compiled play does not know, and that counts its decisions."""

    def __init__(self, rules: Any, kind: str = "doubles") -> None:
        super().__init__(rules)
        self.name, self.inner, self.asked = f"asked {kind}", ScriptedPlayer(rules, kind), 0

    def act(self, views: Any, rng: Any) -> Any:
        self.asked += len(views)
        return self.inner.act(views, rng)


def draw(rng: np.random.Generator, mask: Any) -> Any:
    return np.array([rng.choice(np.flatnonzero(row)) for row in mask])


# Moves


@every_table
@pytest.mark.parametrize("episode", ["round", "match"])
def test_observations_are_the_moves_of_what_the_learner_may_see(rules: Any, episode: Any) -> None:
    tables, layout = LearnerTables(rules, 40, moves=True, seed=1, episode=episode), Afterstates(rules)
    rng, most, ended = np.random.default_rng(1), 0, 0
    assert tables.num_actions == layout.max_moves
    for _ in range(60):
        going = np.flatnonzero(~tables.done)
        found = layout.of(tables.batch.views(going, tables.learner[going]))
        for i, t in enumerate(going):
            rows, actions = (part[found.starts[i] : found.starts[i + 1]] for part in (found.rows, found.actions))
            assert tables.moves is not None
            assert (tables.observation[t, : len(rows)] == rows).all()
            assert not tables.observation[t, len(rows) :].any()
            assert rows.any(axis=1).all()
            assert tables.action_mask[t].tolist() == [1] * len(rows) + [0] * (layout.max_moves - len(rows))
            assert (tables.moves.actions[t, : len(rows)] == actions).all()
            most = max(most, len(rows))
        assert not tables.observation[tables.done].any()
        assert tables.action_mask[tables.done].all()
        ended += tables.done.sum()
        tables.reset(tables=tables.done)
        tables.step(draw(rng, tables.action_mask))
    assert 1 < most <= layout.max_moves
    assert ended


@every_table
def test_a_move_is_the_action_that_it_stands_for(rules: Any) -> None:
    seen, plain = (LearnerTables(rules, 12, moves=moves, seed=3, episode="match") for moves in (True, False))
    rng = np.random.default_rng(1)
    for _ in range(60):
        numbers = draw(rng, seen.action_mask)
        assert seen.moves is not None
        plain.step(seen.moves.actions[np.arange(12), numbers])
        seen.step(numbers)
        assert (seen.rewards == plain.rewards).all()
        assert (seen.done == plain.done).all()
        assert (seen.batch.state["hands"] == plain.batch.state["hands"]).all()
        for tables in (seen, plain):
            tables.reset(tables=tables.done)


def all_positions(rules: Any, deals: int) -> int:
    """The most moves that play at random comes to."""
    from domino_env import Batch

    batch, layout, most = Batch(rules, deals, 5, observe=False), Afterstates(rules), 0
    for _ in range(120):
        most = max(most, int(np.diff(layout.of_state(batch.state).starts).max()))
        batch.step(batch.sample_actions())
    return most


@pytest.mark.parametrize("changes", [{}, {"hand_size": 1}, {"hand_size": 3}, {"max_pip": 2, "hand_size": 1}])
@pytest.mark.parametrize("preset", PRESETS)
def test_no_position_has_more_moves_than_there_is_room_for(preset: str, changes: dict[str, int]) -> None:
    rules = make_rules(preset, **changes)
    assert all_positions(rules, 200) <= Afterstates(rules).max_moves


def test_room_for_moves_is_not_wasted() -> None:
    assert [Afterstates(PRESETS[name]).max_moves for name in ("duplas", "blocos", "puxar", "mano_a_mano")] == [
        8, 8, 12, 12,
    ]  # fmt: skip
    assert all_positions(DUPLAS, 2000) == 8  # seven tiles, one of which goes at both ends


def test_a_number_of_no_move_is_refused_and_changes_nothing() -> None:
    tables = LearnerTables(DUPLAS, 3, moves=True, seed=3, seat=1)
    before, room = tables.arrays(), tables.num_actions
    right = tables.action_mask.argmax(axis=1)
    for number in (tables.action_mask[1].argmin(), room, -1, 55):
        with pytest.raises(IllegalAction, match=rf"table 1: seat 1 has no move {number}; its moves: 0 '") as error:
            tables.step([right[0], number, right[2]])
        assert (error.value.table, error.value.action) == (1, number)
    for wrong in (right * 1.0, right[:2]):
        with pytest.raises(ValueError, match="actions have"):
            tables.step(wrong)
    assert all((before[name] == array).all() for name, array in tables.arrays().items())
    with pytest.raises(ValueError, match="either its moves or the events"):
        LearnerTables(DUPLAS, 1, moves=True, history=True)


@pytest.mark.parametrize("preset", PRESETS)
def test_single_and_vector_environments_of_moves(preset: str) -> None:
    env = DominoEnv(preset, moves=True, opponents="doubles", episode="match")
    check_env(env, skip_render_check=True)
    with pytest.raises(ValueError, match=f"is not a whole number from 0 to {env._tables.num_actions - 1}"):
        env.step(env._tables.num_actions)
    ours = DominoVectorEnv(preset, num_envs=3, moves=True, opponents="doubles", episode="match")
    theirs = SyncVectorEnv([lambda: DominoEnv(preset, moves=True, opponents="doubles", episode="match")] * 3)
    rng = np.random.default_rng(1)
    pairs = [(ours.reset(seed=3), theirs.reset(seed=3))]
    assert ours.single_observation_space == theirs.single_observation_space
    for n in range(80):
        mask = pairs[-1][0][-1]["action_mask"]
        actions = draw(rng, mask)
        if n % 20 == 7:
            actions[1] = mask[1].argmin()  # illegal, where a move is missing
        pairs.append((ours.step(actions), theirs.step(actions)))
    for mine, its in pairs:
        for one, other in zip(mine[:-1], its[:-1], strict=True):
            assert (one == other).all()
        assert (mine[-1]["action_mask"] == its[-1]["action_mask"]).all()


def test_a_strict_environment_names_the_moves() -> None:
    env = gymnasium.make("domino_env/Duplas-v0", moves=True, strict=True, seat=2)
    _, info = env.reset(seed=1)
    with pytest.raises(IllegalAction, match=r"seat 2 has no move \d; its moves: 0 '"):
        env.step(int(info["action_mask"].argmin()))


# Decisions with one legal action


@pytest.mark.parametrize("opponents", ["doubles", "asked"])
@pytest.mark.parametrize("name", ["duplas", "puxar"])
def test_single_actions_are_played_without_asking(name: str, opponents: str) -> None:
    """With two seats' moves fixed the rest follows: what is skipped is exactly what had one action."""
    rules = TABLES[name]
    specs: list[Any] = [Asked(rules) if opponents == "asked" else opponents for _ in range(2)]
    short = LearnerTables(rules, 30, opponents=specs[0], seed=3, seat=0, skip_single=True)
    long = LearnerTables(rules, 30, opponents=specs[1], seed=3, seat=0)
    gained = [np.zeros(30), np.zeros(30)]
    for i, tables in enumerate((short, long)):
        asked_once = 0
        while not tables.done.all():
            several = tables.action_mask.sum(axis=1) > 1
            asked_once += int((~several & ~tables.done).sum())
            tables.step(tables.action_mask.argmax(axis=1))
            gained[i] += tables.rewards
        assert (asked_once == 0) == (tables is short)
    same = (short.batch.state["deck"] == long.batch.state["deck"]).all(axis=1)  # but for rounds that were passed over
    assert same.sum() > 20
    assert (gained[0] == gained[1])[same].all()


# Players drawn anew


def test_one_of_several_players_is_drawn_for_each_side_anew() -> None:
    opponents, partner = OneOf(["doubles", "heaviest", "doubles"]), OneOf(["random", "counting"])
    tables = LearnerTables(DUPLAS, 3000, opponents=opponents, partner=partner, seed=1, moves=True)
    names = np.array([player.name for player in tables.lineups.players])
    first = names[tables.lineups.of]
    assert (first[:, 1] == first[:, 3]).all()
    assert abs((first[:, 1] == "doubles").mean() - 2 / 3) < 0.04
    assert abs((first[:, 2] == "counting").mean() - 1 / 2) < 0.04
    together = ((first[:, 1] == "doubles") & (first[:, 2] == "counting")).mean()
    assert abs(together - 1 / 3) < 0.04
    some = np.arange(3000) % 2 == 0
    tables.reset(tables=some)
    again = names[tables.lineups.of]
    assert (again[~some] == first[~some]).all()
    assert 0.3 < (again[some, 1] != first[some, 1]).mean() < 0.6
    alone = LearnerTables(DUPLAS, 100, opponents=opponents, partner=partner, seed=1)
    assert (names[alone.lineups.of] == first[:100]).all()


def test_a_partner_by_default_is_the_drawn_opponent() -> None:
    tables = LearnerTables(DUPLAS, 50, opponents=OneOf(["doubles", "heaviest"]), seed=1)
    assert (tables.lineups.of[:, 1:] == tables.lineups.of[:, 1:2]).all()
    assert len(np.unique(tables.lineups.of[:, 1])) == 2
    with pytest.raises(ValueError, match=r"OneOf\(\[\]\): give a list of at least one player"):
        OneOf([])
    with pytest.raises(ValueError, match="give a list"):
        OneOf("doubles")
    with pytest.raises(ValueError, match="unknown player 'nobody'"):
        LearnerTables(DUPLAS, 1, opponents=OneOf(["doubles", "nobody"]))
    seats = seat_players(DUPLAS, OneOf(["doubles", "random"]), "doubles")
    assert seats[0] is seats[2]
    assert seats[0][0] is seats[1][0]


def test_tables_with_players_of_both_kinds_are_those_of_either_kind_alone() -> None:
    """Seats that compiled code plays beside seats that are asked: the same game as when all are asked."""
    mixed = LearnerTables(DUPLAS, 200, opponents=OneOf(["doubles", "counting"]), partner=Asked(DUPLAS), seed=1)
    pure = LearnerTables(
        DUPLAS, 200, opponents=OneOf([Asked(DUPLAS, "doubles"), Asked(DUPLAS, "counting")]), partner=Asked(DUPLAS),
        seed=1,
    )  # fmt: skip
    assert (mixed.lineups.kinds == ASKED).sum() == 1
    rng = np.random.default_rng(1)
    for _ in range(20):
        actions = draw(rng, mixed.action_mask)
        for tables in (mixed, pure):
            tables.step(actions)
            tables.reset(tables=tables.done)
        assert (mixed.observation == pure.observation).all()
        assert (mixed.rewards == pure.rewards).all()


# Going on


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda tables: pickle.loads(pickle.dumps(tables)), None])
def test_tables_go_on_from_their_arrays_or_as_copies(moves: bool, again: Any) -> None:
    def make(seed: int) -> LearnerTables:
        return LearnerTables(
            DUPLAS, 20, opponents=OneOf(["doubles", Asked(DUPLAS, "random")]), moves=moves, skip_single=True,
            seed=seed, episode="match", reward="equity",
        )  # fmt: skip

    tables, rng = make(1), np.random.default_rng(1)
    for _ in range(7):
        tables.step(draw(rng, tables.action_mask))
        tables.reset(tables=tables.done)
    if again is None:
        other = make(2)
        other.put(tables.arrays())
    else:
        other = again(tables)
    assert (other.observation == tables.observation).all()
    for _ in range(60):
        actions = draw(rng, tables.action_mask)
        for each in (tables, other):
            each.step(actions)
            each.reset(tables=each.done)
        for name in ("observation", "action_mask", "rewards", "done", "learner"):
            assert (getattr(tables, name) == getattr(other, name)).all()


def test_arrays_of_other_tables_are_refused() -> None:
    tables, kept = LearnerTables(DUPLAS, 3, seed=1), LearnerTables(DUPLAS, 4, seed=1).arrays()
    before = tables.arrays()
    with pytest.raises(ValueError, match="state has shape"):
        tables.put(kept)
    with pytest.raises(ValueError, match="lineups is missing"):
        tables.put({name: array for name, array in before.items() if name != "lineups"})
    assert all((before[name] == array).all() for name, array in tables.arrays().items())
