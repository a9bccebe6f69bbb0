"""`DominoEnv` in play: seeds and seats, who plays the other seats, what is given out and copied, pictures."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.error import ResetNeeded
from single_envs import episode, every_case, legal

from domino_env import PRESETS, RuleSet, make_rules
from domino_env.bots import ScriptedPlayer
from domino_env.envs.registration import IDS
from domino_env.envs.single import DominoEnv
from domino_env.observation import Views
from domino_env.players import Player, Streams


def content(steps: Iterator[tuple[Any, ...]]) -> list[Any]:
    return [(o.tobytes(), reward, done, info["action_mask"].tobytes()) for o, reward, done, info in steps]


# Seeds and seats


@every_case
def test_a_seed_gives_the_same_episodes_whatever_else_draws_numbers(options: dict[str, Any]) -> None:
    one, two = (DominoEnv(**options) for _ in range(2))
    rngs = random.Random(1), random.Random(1)
    first = [content(episode(one, rngs[0], 7 if n == 0 else None)) for n in range(5)]
    second = []
    for n in range(5):
        np.random.seed(n)  # the global generator must not matter
        random.seed(n)
        second.append(content(episode(two, rngs[1], 7 if n == 0 else None)))
        np.random.rand()
        two.action_space.sample()
    assert first == second
    assert len({str(steps) for steps in first}) == 5


def test_without_a_seed_the_deals_go_on() -> None:
    env = DominoEnv("blocos", seat=0)
    runs = []
    for _ in range(2):
        env.reset(seed=7)
        runs.append([env.reset()[0].tobytes() for _ in range(300)])
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 295  # hands alone, which may come again
    unseeded = {DominoEnv("blocos", seat=0).reset()[0].tobytes() for _ in range(10)}
    assert len(unseeded) == 10


@pytest.mark.parametrize("seed", [0, 2**31, 2**32 - 1, 2**32, 2**100, np.int64(5), np.uint8(5)], ids=repr)
def test_seeds_of_any_size(seed: Any) -> None:
    env = DominoEnv("puxar")
    assert (env.reset(seed=seed)[0] == DominoEnv("puxar").reset(seed=int(seed))[0]).all()


@pytest.mark.parametrize("seed", [-1, True, "7", 1.0], ids=repr)
def test_what_is_no_seed_is_refused_and_changes_nothing(seed: Any) -> None:
    env, other = DominoEnv("puxar"), DominoEnv("puxar")
    _, info = env.reset(seed=1)
    other.reset(seed=1)
    with pytest.raises(ValueError, match="seed="):
        env.reset(seed=seed)
    assert (env.step(legal(info)[0])[0] == other.step(legal(info)[0])[0]).all()


def test_neighbouring_seeds_share_no_deal() -> None:
    env = DominoEnv("duplas", seat=0, rules={"opening": "lots"})
    deals = []
    for seed in (0, 1):
        env.reset(seed=seed)
        deals.append(set())
        for _ in range(200):
            env.reset()
            deals[-1].add(env._tables.batch.state["deck"][0].tobytes())
    assert not deals[0] & deals[1]
    assert len(deals[0]) == len(deals[1]) == 200


@every_case
def test_the_seat_is_the_given_one_or_drawn(options: dict[str, Any]) -> None:
    players = DominoEnv(**options).rules.players
    for seat in range(players):
        env = DominoEnv(**options, seat=seat)
        assert {env.reset(seed=seed)[0].size and env.learner for seed in range(3)} == {seat}
    env = DominoEnv(**options)
    env.reset(seed=0)
    seats = []
    for _ in range(400):
        env.reset()
        seats.append(env.learner)
    assert np.bincount(seats, minlength=players).min() > 400 / players * 0.7


# Who plays the other seats


class Noted(Player):
    """Plays the first legal action and notes at which seats it was asked."""

    seats: set[int]

    def __init__(self, rules: RuleSet, mark: str = "x") -> None:
        super().__init__(rules)
        self.name, self.seats = mark, set()

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        self.seats |= set(views["seat"].tolist())
        assert (views["to_act"] == 0).all()
        return ScriptedPlayer(self.rules, "heaviest").act(views, rng)


def asked(env: DominoEnv, *players: Noted) -> list[set[int]]:
    rng = random.Random(1)
    for n in range(10):
        list(episode(env, rng, 0 if n == 0 else None))
    return [player.seats for player in players]


def test_opponents_sit_in_turn_order_after_the_learner_and_the_partner_opposite() -> None:
    duplas, blocos = PRESETS["duplas"], make_rules("blocos", players=4)
    a, b, c = (Noted(duplas, mark) for mark in "abc")
    assert asked(DominoEnv(duplas, seat=1, opponents=[a, b], partner=c), a, b, c) == [{2}, {0}, {3}]
    a, b = Noted(duplas), Noted(duplas)
    assert asked(DominoEnv(duplas, seat=0, opponents=[a, b]), a, b) == [{1, 2}, {3}]
    a, b, c = (Noted(blocos, mark) for mark in "abc")
    assert asked(DominoEnv(blocos, seat=2, opponents=[a, b, c]), a, b, c) == [{3}, {0}, {1}]
    a = Noted(blocos)
    assert asked(DominoEnv(blocos, seat=3, opponents=a), a) == [{0, 1, 2}]
    made: list[Noted] = []

    def maker(rules: RuleSet) -> Player:
        made.append(Noted(rules))
        return made[-1]

    env = DominoEnv(duplas, seat=0, opponents=maker, partner="random")
    assert asked(env, *made) == [{1, 3}]


@pytest.mark.parametrize(
    "opponents", ["heaviest", ["heaviest"], ScriptedPlayer(PRESETS["blocos"], "heaviest"),
                  lambda rules: ScriptedPlayer(rules, "heaviest"), "domino_env.bots:ScriptedPlayer?kind=heaviest"],
    ids=["name", "list", "Player", "callable", "spec"],
)  # fmt: skip
def test_a_player_may_be_given_in_any_form(opponents: Any) -> None:
    rng = random.Random(1)
    same = content(episode(DominoEnv("blocos", opponents="heaviest"), random.Random(1), 3))
    assert content(episode(DominoEnv("blocos", opponents=opponents), rng, 3)) == same
    assert content(episode(DominoEnv("blocos", opponents="random"), random.Random(1), 3)) != same


@pytest.mark.parametrize(
    ("preset", "arguments", "message"),
    [
        ("dupla", {}, "unknown preset 'dupla'"),
        ("duplas", {"rules": {"targt": 3}}, "unknown field 'targt'"),
        (PRESETS["duplas"], {"rules": {"target": 3}}, "changed fields go with a preset's name"),
        ("duplas", {"opponents": "dubles"}, "unknown player 'dubles'"),
        ("duplas", {"opponents": ["random"]}, "opponents: 1 given; a learner here has 2"),
        ("duplas", {"opponents": ["random"] * 3}, "opponents: 3 given; a learner here has 2"),
        ("duplas", {"opponents": []}, "opponents: 0 given"),
        ("duplas", {"opponents": None}, "None is no player: give a name"),
        ("duplas", {"opponents": 3}, "3 is no player: give a name"),
        ("duplas", {"opponents": ["random", 3]}, "3 is no player"),
        ("duplas", {"partner": 3}, "3 is no player"),
        ("duplas", {"opponents": lambda rules: "random"}, "makes str, which is not a Player"),
        ("duplas", {"partner": "dubles"}, "unknown player 'dubles'"),
        ("mano_a_mano", {"partner": "random"}, "no pairs"),
        ("duplas", {"seat": 4}, "seat=4 is not a whole number from 0 to 3"),
        ("duplas", {"seat": -1}, "seat=-1"),
        ("duplas", {"seat": True}, "seat=True"),
        ("duplas", {"episode": "game"}, "episode='game' is not one of round, match"),
        ("duplas", {"reward": "pips"}, "reward='pips' is not one of points, outcome"),
        ("duplas", {"render_mode": "svg"}, "render_mode='svg' is not one of ansi, rgb_array, human"),
    ],
)
def test_wrong_arguments_are_named(preset: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DominoEnv(preset, **arguments)


class Broken(Player):
    """Plays well until told what to answer."""

    name = "broken"
    answer: Any = None

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        good = ScriptedPlayer(self.rules).act(views, rng)
        return good if self.answer is None else self.answer(good)


@pytest.mark.parametrize(
    ("answer", "message"),
    [(lambda good: good * 0 - 1, "may not play action -1"), (lambda good: good + 0.5, "dtype float64"),
     (lambda good: [], "dtype float64|shape"), (lambda good: None, "dtype object"), (lambda good: 1 / 0, None)],
)  # fmt: skip
def test_a_players_error_names_it_and_leaves_no_half_step_to_go_on_from(answer: Any, message: str | None) -> None:
    player = Broken(PRESETS["blocos"])
    env = DominoEnv("blocos", opponents=player, rules={"opening": "highest_double"})
    for _ in range(3):
        _, info = env.reset()
        env.step(legal(info)[0])
    _, info = env.reset(seed=1)  # a deal in which the opponent acts
    player.answer = answer

    def play() -> None:
        given = info
        while True:
            *_, given = env.step(legal(given)[0])

    with pytest.raises(ValueError if message else ZeroDivisionError, match=message) as error:
        play()
    assert message is None or "player 'broken'" in str(error.value)
    with pytest.raises(ResetNeeded):
        env.step(legal(info)[0])
    player.answer = None
    env.reset()


# What is given out and copied


@every_case
def test_arrays_given_out_are_the_callers(options: dict[str, Any]) -> None:
    env, other = (DominoEnv(**options, episode="match") for _ in range(2))
    kept, copies = [], []
    rngs = random.Random(1), random.Random(1)
    for mine, its in zip(episode(env, rngs[0], 1), episode(other, rngs[1], 1), strict=True):
        kept += [mine[0], mine[3]["action_mask"], env.action_masks()]
        copies += [array.copy() for array in kept[-3:]]
        for array in (its[0], env.action_masks(), other.action_masks()):
            array[:] = 77 if array.dtype == np.int8 else ~array
    assert all((a == b).all() for a, b in zip(kept, copies, strict=True))
    assert len({array.ctypes.data for array in kept}) == len(kept)
    # Garbage in arrays that were given out has changed nothing.
    assert content(episode(env, random.Random(2))) == content(episode(other, random.Random(2)))


def clones(env: Any) -> list[Any]:
    return [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]


@every_case
@pytest.mark.parametrize("wrapped", [False, True])
def test_copies_go_on_alike_and_alone(options: dict[str, Any], wrapped: bool) -> None:
    arguments: dict[str, Any] = {**options, "episode": "match", "render_mode": "ansi", "opponents": "doubles"}
    preset = arguments.pop("preset")
    env: Any = gymnasium.make(IDS[preset], **arguments) if wrapped else DominoEnv(preset, **arguments)
    _, info = env.reset(seed=3)
    rng = random.Random(1)
    for _ in range(4):
        *_, info = env.step(rng.choice(legal(info)))
    env.render()
    others = clones(env)
    frozen = clones(env)[0].render()

    def rest(one: Any) -> list[Any]:
        draw, given, seen = random.Random(5), info, []
        for _ in range(100):
            action = draw.choice(np.flatnonzero(one.unwrapped.action_masks()).tolist())
            observation, *flags, given = one.step(action)
            seen.append((observation.tobytes(), *flags, given["action_mask"].tobytes()))
            if flags[1]:
                one.reset()
        return [*seen, one.render()]

    first = rest(env)
    assert all(other.render() == frozen for other in others)
    assert all(rest(other) == first for other in others)


# Pictures


@every_case
def test_render_modes(options: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    envs = {mode: DominoEnv(**options, seat=1, render_mode=mode) for mode in ("ansi", "rgb_array", "human")}
    printed = []
    for env in envs.values():
        *_, last = episode(env, random.Random(1), 1)
        assert last[2]
        printed.append(capsys.readouterr().out)
    assert printed[:2] == ["", ""]
    assert "seat 1" in printed[2]
    for _ in range(2):  # at the end, then after a reset
        text, pixels = envs["ansi"].render(), envs["rgb_array"].render()
        assert isinstance(text, str)
        assert text in capsys.readouterr().out + printed[2] or envs["human"].render() is None
        assert pixels.dtype == np.uint8
        assert pixels.ndim == 3
        assert pixels.shape[2] == 3
        assert len(np.unique(pixels.astype(np.int32) @ (65536, 256, 1))) > 5
        for env in envs.values():
            env.reset(seed=2)
    for env in envs.values():
        env.close()
        env.close()


def test_the_picture_hides_other_hands_until_the_end() -> None:
    env = DominoEnv("duplas", seat=0, render_mode="ansi")
    steps = episode(env, random.Random(1), 1)
    next(steps)
    hidden = env.render()
    assert "\u25ae" in hidden  # backs of tiles
    *_, _ = steps
    assert "\u25ae" not in env.render()


def test_without_a_render_mode_there_is_a_warning() -> None:
    env = DominoEnv("duplas")
    env.reset(seed=1)
    with pytest.warns(UserWarning, match="without a render_mode"):
        assert env.render() is None
