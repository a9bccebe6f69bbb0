"""`DominoVectorEnv` equals `SyncVectorEnv` over `DominoEnv`, array for array; and what it says of bad input."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import SyncVectorEnv
from vector_envs import content, every_mode, same

from domino_env import PRESETS, IllegalAction, RuleSet
from domino_env.bots import ScriptedPlayer
from domino_env.envs.single import DominoEnv
from domino_env.envs.vector import DominoVectorEnv
from domino_env.observation import Views
from domino_env.players import Player, Streams

every_preset = pytest.mark.parametrize("preset", PRESETS)


class Asked(Player):
    """A scripted player that compiled play does not know; fails when it is told to."""

    def __init__(self, rules: RuleSet, kind: str = "random") -> None:
        super().__init__(rules)
        self.name, self.inner, self.fails = kind, ScriptedPlayer(rules, kind), False

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        if self.fails:
            raise RuntimeError("no move comes to mind")
        return self.inner.act(views, rng)


class Pair:
    """Our vector environment and Gymnasium's over the single one, driven alike and compared at every step."""

    def __init__(self, preset: str, n: int, mode: str, **options: Any) -> None:
        self.n, self.mode = n, mode
        self.ours = DominoVectorEnv(preset, num_envs=n, autoreset_mode=mode, **options)
        self.theirs = SyncVectorEnv([lambda: DominoEnv(preset, **options)] * n, autoreset_mode=mode)
        self.masks: npt.NDArray[Any] = np.ones((n, self.ours.rules.num_actions), np.int8)
        self.over = np.zeros(n, np.bool_)
        self.ended = 0

    def keep(self, infos: dict[str, Any]) -> None:
        told = infos["_action_mask"]
        self.masks[told] = infos["action_mask"][told]
        assert (self.ours.action_masks() == (self.masks != 0)).all()

    def reset(self, seed: Any = None, options: dict[str, Any] | None = None) -> None:
        mine = self.ours.reset(seed=seed, options=options)
        its = self.theirs.reset(seed=seed, options=None if options is None else dict(options))
        same(mine, its)
        self.keep(mine[1])
        self.over[:] = False if options is None else self.over & ~options["reset_mask"]

    def step(self, actions: npt.NDArray[np.int64]) -> None:
        mine, its = self.ours.step(actions), self.theirs.step(actions)
        same(mine, its)
        self.keep(mine[4])
        self.over = mine[2].copy()
        self.ended += int(self.over.sum())

    def play(self, steps: int, rng: np.random.Generator, illegal: float = 0.0) -> None:
        """Random actions, some of them illegal where that is asked for; resets where the mode leaves them to us."""
        for _ in range(steps):
            if self.mode == "Disabled" and self.over.any():
                self.reset(options={"reset_mask": self.over.copy()})
            actions = (self.masks * rng.random(self.masks.shape)).argmax(axis=1)
            wild = rng.random(self.n) < illegal
            actions[wild] = rng.integers(0, self.masks.shape[1], self.n)[wild]
            self.step(actions)


# Equality


@every_mode
@every_preset
@pytest.mark.parametrize("episode", ["round", "match"])
def test_equals_sync_vector_env(preset: str, episode: str, mode: str) -> None:
    pair = Pair(preset, 7, mode, episode=episode, opponents="heaviest", reward="points")
    assert pair.ours.metadata == pair.theirs.metadata
    for space in ("observation_space", "action_space", "single_observation_space", "single_action_space"):
        assert getattr(pair.ours, space) == getattr(pair.theirs, space)
    pair.reset(seed=11)
    pair.play(160, np.random.default_rng(1), illegal=0.01)
    pair.reset()
    pair.play(40, np.random.default_rng(2))
    assert pair.ended > 10


@every_mode
@pytest.mark.parametrize(
    ("preset", "options"),
    [
        ("duplas", {"seat": 2, "partner": "heaviest", "opponents": ["doubles", "random"]}),
        ("blocos", {"rules": {"players": 5}, "reward": "outcome", "illegal_reward": -0.1}),
        ("puxar", {"rules": {"players": 3, "target": 20}, "episode": "match", "reward": "outcome"}),
        ("mano_a_mano", {"rules": {"max_pip": 3, "hand_size": 2, "target": None}, "episode": "match"}),
        ("mano_a_mano", {"rules": {"max_pip": 2, "hand_size": 1}}),  # rounds that end before the learner has a say
    ],
)
def test_equals_sync_vector_env_with_other_options(preset: str, options: dict[str, Any], mode: str) -> None:
    pair = Pair(preset, 5, mode, **options)
    pair.reset(seed=[2**32 - 1, 5, 2**31, 0, 2**70])
    pair.play(150, np.random.default_rng(1), illegal=0.02)
    assert pair.ended > 10


@every_mode
@pytest.mark.parametrize("kinds", ["doubles", ["random", "heaviest"]])
def test_equals_sync_vector_env_with_players_that_are_asked(kinds: Any, mode: str) -> None:
    makers: list[Any] = [functools.partial(Asked, kind=kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    opponents = makers if len(makers) > 1 else makers[0]
    pair = Pair("duplas", 4, mode, opponents=opponents, partner="doubles", episode="match", rules={"target": 3})
    pair.reset(seed=3)
    pair.play(150, np.random.default_rng(1), illegal=0.01)
    assert pair.ended > 3


@pytest.mark.long
@every_mode
@every_preset
@pytest.mark.parametrize("episode", ["round", "match"])
@pytest.mark.parametrize("asked", [False, True])
def test_equals_sync_vector_env_over_thousands_of_steps(asked: bool, episode: str, preset: str, mode: str) -> None:
    opponents: Any = Asked if asked else "random"
    pair = Pair(preset, 16, mode, episode=episode, opponents=opponents)
    pair.reset(seed=11)
    pair.play(3000, np.random.default_rng(1), illegal=0.001)
    assert pair.ended > 300


def test_seeds_of_tables() -> None:
    """As Gymnasium has it: seed + i for a number, one each from a list, and None goes on."""
    pair = Pair("duplas", 3, "NextStep")
    rng = np.random.default_rng(1)
    for seed in (8, None, [8, 8, 9], [4, None, 4], [None] * 3):
        pair.reset(seed=seed)
        pair.play(15, rng)
    ours = pair.ours
    first, _ = ours.reset(seed=np.int64(8))
    for seed in ([8, 9, 10], np.array([8, 9, 10]), (np.uint32(8), 9, 10)):
        again, _ = ours.reset(seed=seed)
        assert (again == first).all()
    alone, _ = DominoEnv("duplas").reset(seed=10)
    assert (first[2] == alone).all()


def test_every_table_has_a_deal_of_its_own() -> None:
    env = DominoVectorEnv("duplas", num_envs=64)
    env.reset(seed=0)
    assert len({deck.tobytes() for deck in env._tables.batch.state["deck"]}) == 64
    one, _ = env.reset()
    other, _ = env.reset()
    assert (one != other).any(axis=1).all()
    unseeded, _ = DominoVectorEnv("duplas", num_envs=64).reset()
    assert (unseeded != one).any()


@every_mode
def test_a_masked_reset_starts_these_tables_alone(mode: str) -> None:
    pair = Pair("puxar", 6, mode, episode="match")
    pair.reset(seed=1)
    rng = np.random.default_rng(1)
    for n in range(60):
        pair.play(1, rng, illegal=0.3)
        chosen = rng.random(6) < 0.4
        if mode == "Disabled":
            chosen |= pair.over
        if chosen.any():
            pair.reset(seed=[None, None, n, n, n, None] if n % 3 == 0 else n if n % 3 == 1 else None,
                       options={"reset_mask": chosen, "other": 1})  # fmt: skip
    assert pair.ended > 20


# Actions that are no good


@every_mode
def test_bad_actions_are_refused_and_change_nothing(mode: str) -> None:
    env = DominoVectorEnv("duplas", num_envs=3, autoreset_mode=mode)
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step([0, 0, 0])
    _, infos = env.reset(seed=1)
    legal = infos["action_mask"].argmax(axis=1)
    before = content(env)
    bad: list[tuple[Any, str]] = [
        (legal[:2], "shape"),
        (legal[:, None], "shape"),
        (legal[0], "shape"),
        (None, "dtype"),
        ([[1], [1, 2], [3]], "unequal length"),
        (legal * 1.0, "dtype float64"),
        ([float("nan")] * 3, "dtype"),
        (legal == 0, "dtype bool"),
        (legal.astype(str), "dtype"),
        ([legal[0], -1, legal[2]], "table 1: action -1 is not a whole number from 0 to 55"),
        ([legal[0], legal[1], 56], "table 2: action 56"),
        ([10**9, legal[1], legal[2]], "table 0: action 1000000000"),
        (np.array([0, 2**64 - 1, 0], np.uint64), "no action"),
    ]
    for actions, message in bad:
        with pytest.raises(ValueError, match=message):
            env.step(actions)
        assert content(env) == before, message


def test_actions_of_any_integer_dtype_and_layout() -> None:
    one = DominoVectorEnv("duplas", num_envs=4)
    _, infos = one.reset(seed=1)
    legal = infos["action_mask"].argmax(axis=1)
    frozen = legal.copy()
    frozen.flags.writeable = False
    expected = one.step(legal)
    for actions in (legal.astype(np.int8), legal.astype(np.uint64), legal.tolist(), np.repeat(legal, 2)[::2], frozen):
        env = DominoVectorEnv("duplas", num_envs=4)
        env.reset(seed=1)
        kept = np.array(actions)
        same(env.step(actions), expected)
        assert (actions == kept).all()


@every_mode
def test_strict_raises_and_changes_nothing(mode: str) -> None:
    env = DominoVectorEnv("duplas", num_envs=3, strict=True, autoreset_mode=mode)
    _, infos = env.reset(seed=1)
    actions, before = infos["action_mask"].argmax(axis=1), content(env)
    actions[1] = infos["action_mask"][1].argmin()
    with pytest.raises(IllegalAction, match=r"table 1: seat . may not play .*; legal: ") as error:
        env.step(actions)
    assert error.value.table == 1
    assert content(env) == before


def test_an_illegal_action_ends_its_own_episode_alone() -> None:
    plain, env = (DominoVectorEnv("duplas", num_envs=3, illegal_reward=-2.5) for _ in range(2))
    plain.reset(seed=1)
    _, infos = env.reset(seed=1)
    actions = infos["action_mask"].argmax(axis=1)
    seen = plain.step(actions)
    actions[1] = infos["action_mask"][1].argmin()
    observation, rewards, ended, _, infos = env.step(actions)
    assert (rewards[1], ended.tolist()) == (-2.5, [False, True, False])
    assert (infos["action_mask"][1] == 1).all()
    assert (observation[[0, 2]] == seen[0][[0, 2]]).all()
    assert content(env, [0, 2])[:3] == content(plain, [0, 2])[:3]


def test_an_error_in_a_player_leaves_every_table_to_be_reset() -> None:
    player = Asked(PRESETS["duplas"])
    env = DominoVectorEnv("duplas", num_envs=3, opponents=player)
    _, infos = env.reset(seed=1)
    player.fails = True
    with pytest.raises(RuntimeError, match="no move"):
        env.step(infos["action_mask"].argmax(axis=1))
    player.fails = False
    with pytest.raises(ResetNeeded):
        env.step(infos["action_mask"].argmax(axis=1))
    with pytest.raises(ResetNeeded, match="never started"):
        env.reset(options={"reset_mask": np.array([True, False, False])})
    _, again = env.reset(seed=1)
    same(again, infos)
    env.step(infos["action_mask"].argmax(axis=1))


def test_bad_arguments_are_refused() -> None:
    env = DominoVectorEnv("duplas", num_envs=3)
    with pytest.raises(ResetNeeded, match="never started"):
        env.reset(options={"reset_mask": np.array([True, False, True])})
    env.reset(seed=1)
    before = content(env)
    mask = np.array([True, False, True])
    bad: list[tuple[type[Exception], dict[str, Any], str]] = [
        (ValueError, {"seed": [1, 2]}, "2 given, one for each of 3 tables"),
        (ValueError, {"seed": [1, -2, 3]}, "seed=-2"),
        (ValueError, {"seed": -1}, "seed=-1"),
        (ValueError, {"seed": [1, 2.0, 3]}, r"seed=2\.0"),
        (ValueError, {"seed": "123"}, "seed='123'"),
        (ValueError, {"seed": True}, "seed=True"),
        (TypeError, {"options": {"reset_mask": [True, False, True]}}, "bool array of shape .*, not list"),
        (TypeError, {"options": {"reset_mask": mask * 1}}, "not int64"),
        (ValueError, {"options": {"reset_mask": mask[:2]}}, "shape"),
        (ValueError, {"options": {"reset_mask": mask & False}}, "False everywhere"),
    ]
    for kind, arguments, message in bad:
        with pytest.raises(kind, match=message):
            env.reset(**arguments)
        assert content(env) == before, message
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"num_envs": 0}, "num_envs=0"),
        ({"num_envs": 2.0}, "num_envs=2.0"),
        (
            {"autoreset_mode": "same_step"},
            "autoreset_mode='same_step' is not one of 'NextStep', 'SameStep', 'Disabled'",
        ),
        ({"render_mode": "svg"}, "render_mode='svg'"),
        ({"opponents": "nobody"}, "unknown player"),
    ]
    for arguments, message in wrong:
        with pytest.raises(ValueError, match=message):
            DominoVectorEnv("duplas", **arguments)
