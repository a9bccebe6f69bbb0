"""`LearnerTables`: compiled play and play through `Player.act` are the same, and tables do not touch each other."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from strategies import TABLES

from domino_env import IllegalAction, RuleSet, make_rules
from domino_env.bots import ScriptedPlayer
from domino_env.envs.seats import ASKED, seat_players
from domino_env.envs.tables import LearnerTables
from domino_env.observation import Views
from domino_env.players import Player, Streams
from domino_env.rules import pack

every_table = pytest.mark.parametrize("rules", TABLES.values(), ids=TABLES)
DUPLAS = TABLES["duplas"]


class Forwarding(Player):
    """A scripted player that compiled play does not know."""

    def __init__(self, rules: RuleSet, kind: str) -> None:
        super().__init__(rules)
        self.name, self.inner = kind, ScriptedPlayer(rules, kind)

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        return self.inner.act(views, rng)


class First(ScriptedPlayer):
    """Overrides `act`, so its weights do not count: plays the first legal tile, at the left end if it goes."""

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        left, right = views["legal"].T
        first = [int(a or b) & -int(a or b) for a, b in zip(left, right, strict=True)]
        at_right = np.array([not a for a in left])
        return np.array([bit.bit_length() - 1 for bit in first]) * 2 + at_right


class Draw:
    """Random legal actions of many tables: the same for a table, whatever the others are."""

    def __init__(self, n: int) -> None:
        self.rngs = [np.random.default_rng(t) for t in range(n)]

    def __call__(self, tables: LearnerTables, chosen: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.int64]:
        actions = np.full(len(tables.done), -1)
        for t in np.flatnonzero(~tables.done if chosen is None else chosen & ~tables.done).tolist():
            legal = np.flatnonzero(tables.action_mask[t])
            actions[t] = legal[self.rngs[t].integers(len(legal))]
        return actions


def content(tables: LearnerTables, rows: Any = slice(None)) -> list[bytes]:
    state = tables.batch.state.view(np.uint8).reshape(len(tables.done), -1)  # NumPy copies no padding otherwise
    arrays = (tables.observation, tables.action_mask, tables.rewards, tables.done, tables.learner, state)
    streams = tables._player_streams.states, tables._seat_streams.states
    return [array[rows].tobytes() for array in (*arrays, *streams)]


def lists(rules: RuleSet) -> list[str]:
    """Opponents, no two neighbours alike."""
    others = [seat for seat in range(1, rules.players) if rules.side_of(seat) != 0]
    return [("random", "heaviest", "doubles")[i % 3] for i in range(len(others))]


@every_table
@pytest.mark.parametrize(("episode", "reward"), [("round", "points"), ("match", "outcome"), ("match", "points")])
def test_compiled_play_equals_play_through_act(rules: RuleSet, episode: str, reward: str) -> None:
    arguments: dict[str, Any] = {"seed": 4, "episode": episode, "reward": reward}
    kinds = lists(rules)
    compiled = LearnerTables(rules, 6, opponents=kinds, **arguments)
    partner = {"partner": Forwarding(rules, kinds[0])} if rules.pairs else {}
    asked = LearnerTables(rules, 6, opponents=[Forwarding(rules, kind) for kind in kinds], **partner, **arguments)
    assert (compiled.lineups.kinds != ASKED).all()
    assert (asked.lineups.kinds == ASKED).all()
    draws = Draw(6), Draw(6)
    assert content(compiled) == content(asked)
    for _ in range(60):
        for tables, draw in zip((compiled, asked), draws, strict=True):
            tables.step(draw(tables))
        assert content(compiled) == content(asked)
        for tables in (compiled, asked):
            tables.reset(tables=tables.done)
        assert content(compiled) == content(asked)


def test_a_class_that_overrides_act_is_asked() -> None:
    plain, mine = (LearnerTables(DUPLAS, 20, opponents=spec, seed=1, seat=0) for spec in ("random", First(DUPLAS)))
    assert mine.lineups.kinds.tolist() == [ASKED]
    draws = Draw(20), Draw(20)
    for _ in range(3):
        plain.step(draws[0](plain))
        mine.step(draws[1](mine))
    assert (plain.batch.state["events"] != mine.batch.state["events"]).any()


@every_table
@pytest.mark.parametrize("opponents", ["doubles", "asked"])
def test_a_table_does_not_depend_on_how_many_there_are(rules: RuleSet, opponents: str) -> None:
    spec = Forwarding(rules, "random") if opponents == "asked" else opponents
    few, many = (LearnerTables(rules, n, opponents=spec, seed=9, episode="match") for n in (3, 11))
    draws = Draw(3), Draw(11)
    for _ in range(80):
        assert content(few) == content(many, slice(3))
        for tables, draw in zip((few, many), draws, strict=True):
            tables.step(draw(tables))
            tables.reset(tables=tables.done)
    assert len({row.tobytes() for row in many.batch.state["deck"]}) == 11


@every_table
def test_a_reset_or_step_of_some_tables_leaves_the_others_alone(rules: RuleSet) -> None:
    tables, draw = LearnerTables(rules, 8, seed=2), Draw(8)
    chosen = np.arange(8) % 3 == 0
    for n in range(30):
        before = content(tables, ~chosen)
        rewards = tables.rewards.copy()
        if n % 3 == 2:
            decks = tables.batch.state["deck"][chosen].copy()
            tables.reset(tables=chosen)
            assert (tables.batch.state["deck"][chosen] != decks).any(axis=1).all()
            assert not tables.done[chosen].any()
            assert (tables.rewards[chosen] == 0).all()
            assert (tables.rewards[~chosen] == rewards[~chosen]).all()
            assert content(tables, ~chosen) == before
        else:
            tables.step(draw(tables, chosen), tables=chosen)
            assert (tables.rewards[~chosen] == 0).all()
            after = content(tables, ~chosen)
            assert after[:2] + after[3:] == before[:2] + before[3:]  # all but the rewards


def test_a_table_that_is_over_stays_so_until_its_reset() -> None:
    tables, draw = LearnerTables(DUPLAS, 5, seed=1), Draw(5)
    while not tables.done.all():
        tables.step(draw(tables))
        assert (tables.action_mask[tables.done] == 1).all()
    before = content(tables)
    tables.step(np.full(5, -1))
    assert tables.done.all()
    assert (tables.rewards == 0).all()
    assert content(tables)[:2] == before[:2]
    tables.reset(tables=np.array([True, False, False, True, False]))
    assert tables.done.tolist() == [False, True, True, False, True]


def test_a_seed_starts_all_streams_again_as_at_the_beginning() -> None:
    def now(tables: LearnerTables) -> list[bytes]:  # without the events of earlier rounds that lie in the state
        state, parts = tables.batch.state, content(tables)
        views = tables.batch.views(np.arange(4), tables.learner)
        return [*parts[:5], *parts[6:], views.tobytes(), state["deck"].tobytes(), state["rng"].tobytes()]

    tables, draw = LearnerTables(DUPLAS, 4, seed=3), Draw(4)
    start = now(tables)
    for _ in range(5):
        tables.step(draw(tables))
    tables.reset()
    assert now(tables) != start
    tables.reset(3)
    assert now(tables) == start
    assert now(LearnerTables(DUPLAS, 4, seed=4)) != start
    assert now(LearnerTables(DUPLAS, 4)) != now(LearnerTables(DUPLAS, 4))


@every_table
@pytest.mark.parametrize("opponents", ["doubles", "random", "asked"])
def test_with_seeds_of_its_own_a_table_is_as_it_is_alone(rules: RuleSet, opponents: str) -> None:
    spec = Forwarding(rules, "random") if opponents == "asked" else opponents
    own = [7, 0, 2**40 + 1, 7, 2**128 - 1]
    many = LearnerTables(rules, 5, opponents=spec, episode="match")
    alone = [LearnerTables(rules, 1, opponents=spec, episode="match") for _ in own]
    many.reset(own)
    for tables, seed in zip(alone, own, strict=True):
        tables.reset(seed)
    rngs = [np.random.default_rng(t) for t in range(5)]
    for n in range(60):
        for t, tables in enumerate(alone):
            assert [many.learner[t], many.done[t], many.rewards[t]] == [
                tables.learner[0], tables.done[0], tables.rewards[0],
            ]  # fmt: skip
            assert (many.observation[t] == tables.observation[0]).all()
            assert (many.action_mask[t] == tables.action_mask[0]).all()
        actions = np.array([rng.choice(np.flatnonzero(row)) for rng, row in zip(rngs, many.action_mask, strict=True)])
        many.step(actions)
        for t, tables in enumerate(alone):
            tables.step(actions[t : t + 1])
        fresh = many.done | (n == 30)
        again = [1, None, 3, None, None]  # some from a seed again, the others go on
        many.reset(again if n == 30 else None, tables=fresh)
        for t, tables in enumerate(alone):
            if fresh[t]:
                tables.reset(again[t] if n == 30 else None)


def test_seeds_of_tables_that_are_not_chosen_change_nothing_there() -> None:
    tables = LearnerTables(DUPLAS, 4, seed=3)
    chosen = np.array([True, False, True, False])
    before = content(tables, ~chosen), tables._player_streams.states[~chosen].copy()
    tables.reset([5, 6, None, 7], tables=chosen)
    assert content(tables, ~chosen) == before[0]
    assert (tables._player_streams.states[~chosen] == before[1]).all()
    other = LearnerTables(DUPLAS, 1, seed=5)
    assert (tables.observation[0] == other.observation[0]).all()


def test_bad_input_is_refused_and_changes_nothing() -> None:
    tables = LearnerTables(DUPLAS, 3, seed=3)
    before = content(tables)
    legal = tables.action_mask.argmax(axis=1)
    bad: list[tuple[Any, dict[str, Any], str]] = [
        (legal[:2], {}, "shape"),
        (legal * 1.0, {}, "dtype"),
        (legal, {"tables": np.ones(2, np.bool_)}, r"bool array of shape \(3,\)"),
        (legal, {"tables": np.ones(3)}, "bool array"),
        (legal, {"tables": [0, 1, 2]}, "bool array"),
    ]
    for actions, arguments, message in bad:
        with pytest.raises(ValueError, match=message):
            tables.step(actions, **arguments)
    with pytest.raises(IllegalAction, match="table 1: seat ") as error:
        tables.step([legal[0], tables.action_mask[1].argmin(), legal[2]])
    assert error.value.table == 1
    for reset in (
        {"seed": 1, "tables": np.ones(3, np.bool_)}, {"tables": np.ones(3)}, {"seed": -1}, {"seed": [1, 2]},
        {"seed": [1, 2, -3]}, {"seed": [1, 2, 3.0]}, {"seed": "123"}, {"seed": np.ones((3, 1), int)},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"seed|bool array"):
            tables.reset(**reset)  # type: ignore[arg-type]
    assert content(tables) == before
    with pytest.raises(ValueError, match="of at least 1"):
        LearnerTables(DUPLAS, 0)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda tables: pickle.loads(pickle.dumps(tables))])
@pytest.mark.parametrize("opponents", ["doubles", "asked"])
def test_copies_go_on_alike_and_alone(clone: Any, opponents: str) -> None:
    spec = Forwarding(DUPLAS, "random") if opponents == "asked" else opponents
    tables, draw = LearnerTables(DUPLAS, 4, opponents=spec, seed=3, episode="match"), Draw(4)
    for _ in range(5):
        tables.step(draw(tables))
    other, its_draw = clone(tables), copy.deepcopy(draw)
    assert other._packed is pack(DUPLAS)  # any other array would be compiled for anew
    before = content(other)
    steps = []
    for _ in range(40):
        tables.step(draw(tables))
        tables.reset(tables=tables.done)
        steps.append(content(tables))
    assert content(other) == before
    for step in steps:
        other.step(its_draw(other))
        other.reset(tables=other.done)
        assert content(other) == step


def test_seats_with_the_same_name_share_a_player() -> None:
    blocos = make_rules("blocos", players=4)
    (a,), (b,), (c,) = seat_players(blocos, ["random", "doubles", "random"], None)
    assert (a.name, b.name) == ("random", "doubles")
    assert a is c
    assert [player.name for (player,) in seat_players(DUPLAS, ["heaviest", "doubles"], None)] == [
        "heaviest", "heaviest", "doubles",
    ]  # fmt: skip
    assert [player.name for (player,) in seat_players(DUPLAS, "random", "doubles")] == ["random", "doubles", "random"]


@pytest.mark.parametrize("name", ["duplas", "mano_a_mano", "puxar"])
@pytest.mark.parametrize("opponents", [ScriptedPlayer, Forwarding])
def test_equity_rewards_add_up_to_what_a_match_changes(name: str, opponents: Any) -> None:
    """Half a match won or lost, told round by round, whoever plays the other seats and however."""
    rules = TABLES[name]
    tables = LearnerTables(
        rules, 40, opponents=opponents(rules, "doubles"), seat=0, episode="match", reward="equity", seed=3
    )
    draw, total, paid = Draw(40), np.zeros(40), 0
    while not tables.done.all():
        tables.step(draw(tables))
        total += tables.rewards
        paid += int((tables.rewards != 0).sum())
    won = tables.batch.state["winner"] == 0
    assert np.allclose(total, np.where(won, 0.5, -0.5), atol=1e-5)
    assert paid > 2 * 40
    with pytest.raises(ValueError, match="episode must be 'match', not 'round'"):
        LearnerTables(rules, 1, reward="equity")
