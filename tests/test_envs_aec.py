"""The AEC environment: PettingZoo's own tests, its wrappers, and what is refused."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pettingzoo
import pytest
from aec_envs import both_makers, every_case, every_kind, leave, legal, play_on
from aec_envs import quiet_logger as quiet_logger  # autouse: each test of this file has it
from gymnasium.error import ResetNeeded
from pettingzoo.utils.env_logger import EnvLogger
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper, TerminateIllegalWrapper

from domino_env import PRESETS, IllegalAction, RuleSet
from domino_env.envs.aec import env, raw_env
from domino_env.envs.registration import register_aec

with warnings.catch_warnings():
    # The tests' own package imports one of PettingZoo's environments in a way that it deprecates (from 1.27 on).
    warnings.filterwarnings("ignore", "The old environment creation API", DeprecationWarning)
    from pettingzoo.test import api_test, render_test, seed_test

# PettingZoo spares only its own environments these two, by name. Both are for observations in a Dict, which is
# how it documents that an action mask is given.
spare_dicts = [
    pytest.mark.filterwarnings("ignore:Observation is not a NumPy array:UserWarning"),
    pytest.mark.filterwarnings(
        "ignore:Observation space for each agent probably should be gymnasium.spaces.box:UserWarning"
    ),
]


# PettingZoo's own tests


@every_case
@both_makers
class TestPettingZoo:
    pytestmark = spare_dicts

    def test_api(self, rules: RuleSet, make: Any) -> None:
        api_test(make(rules), num_cycles=60)

    def test_seed(self, rules: RuleSet, make: Any) -> None:
        seed_test(lambda: make(rules), num_cycles=30)


@every_kind
@pytest.mark.filterwarnings("ignore:Observation is not a NumPy array:UserWarning")
@pytest.mark.filterwarnings("ignore:Observation space for each agent probably should be:UserWarning")
def test_api_of_matches_and_outcomes(episode: Any, reward: Any) -> None:
    api_test(env("duplas", episode=episode, reward=reward), num_cycles=100)


@pytest.mark.parametrize("preset", PRESETS)
def test_render(preset: str, capsys: pytest.CaptureFixture[str]) -> None:
    render_test(lambda render_mode: env(preset, render_mode=render_mode))
    assert "seat 0" in capsys.readouterr().out


def test_render_needs_a_reset_and_a_mode() -> None:
    with pytest.raises(ResetNeeded, match="reset"):
        raw_env(render_mode="ansi").render()
    with pytest.raises(AssertionError, match="reset"):
        env(render_mode="ansi").render()
    e = raw_env()
    e.reset(seed=1)
    with pytest.warns(UserWarning, match="without a render_mode"):
        assert e.render() is None
    e = raw_env(render_mode="ansi")
    e.reset(seed=1)
    play_on(e, random.Random(1))
    assert "\u25ae" not in e.render()  # the end shows all hands
    leave(e)
    assert isinstance(e.render(), str)
    e.close()
    e.close()


def test_registered_with_pettingzoo_where_it_has_a_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(pettingzoo, "register"):
        check_registered()
        monkeypatch.delattr(pettingzoo, "register")
    register_aec()  # as with a release without one


def check_registered() -> None:
    for preset, rules in PRESETS.items():
        made = pettingzoo.make("aec", f"domino/{preset}-v0", episode="match")
        assert made.unwrapped.rules == rules
        made.reset(seed=1)
        play_on(made, random.Random(1), 5)
    before = dict(pettingzoo.aec_registry)
    register_aec()
    assert pettingzoo.aec_registry == before


# The wrappers


def test_the_wrappers_are_pettingzoos_in_its_order() -> None:
    e, found = env("duplas"), []
    assert str(e) == "domino_v0"
    while e is not e.unwrapped:
        found.append(next(kind for kind in type(e).__mro__ if kind.__module__.startswith("pettingzoo")))
        e = e.env
    assert found == [OrderEnforcingWrapper, AssertOutOfBoundsWrapper, TerminateIllegalWrapper]
    assert type(e) is raw_env


def by_pettingzoo() -> Any:
    """The environment in PettingZoo's own wrappers, without the short ways of ours."""
    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(TerminateIllegalWrapper(raw_env("mano_a_mano"), -1)))


def outcome_of(act: Callable[..., Any], *arguments: Any) -> Any:
    """What comes of a call: its value, or its error's kind and words."""
    try:
        return act(*arguments)
    except Exception as error:
        return type(error), str(error)


READ = (
    "agents", "agent_selection", "rewards", "terminations", "truncations", "infos", "_cumulative_rewards",
    "num_agents", "max_num_agents", "possible_agents", "render_mode", "metadata", "_has_updated", "_over", "nothing",
)  # fmt: skip
# What may be done with an environment, and how often it is in the walk below.
CALLS: list[tuple[int, Callable[[Any, random.Random], Any]]] = [
    (100, lambda e, rng: e.step(rng.choice(legal(e) or [None]))),
    (20, lambda e, rng: e.step(np.int64(rng.choice(legal(e) or [3])))),
    (5, lambda e, rng: e.step(np.array(rng.choice(legal(e) or [3])))),
    (3, lambda e, rng: e.step(rng.randrange(-2, 60))),
    (1, lambda e, rng: e.step("3")),
    (5, lambda e, rng: e.step(None)),
    (5, lambda e, rng: e.last()[1:]),
    (5, lambda e, rng: {name: part.tobytes() for name, part in e.last()[0].items()}),
    (5, lambda e, rng: e.last(observe=False)),
    (5, lambda e, rng: next(iter(e.agent_iter()))),
    (5, lambda e, rng: e.state().tobytes()),
    (6, lambda e, rng: e.reset(seed=rng.randrange(5))),
    (1, lambda e, rng: e.reset(seed=-1)),
    (1, lambda e, rng: e.reset()),
]


def test_short_ways_end_where_the_wrappers_long_ones_do() -> None:
    ours, theirs = env("mano_a_mano"), by_pettingzoo()
    rngs, which, seen = (random.Random(5), random.Random(5)), random.Random(6), Counter[str]()
    for call in CALLS[3:-3]:  # before a reset nothing can be chosen by its mask
        assert outcome_of(call[1], ours, rngs[0]) == outcome_of(call[1], theirs, rngs[1])
    for name in READ:
        assert outcome_of(getattr, ours, name) == outcome_of(getattr, theirs, name)
    ours.reset(seed=1)
    theirs.reset(seed=1)
    for _ in range(2500):
        ((_, call),) = which.choices(CALLS, [weight for weight, _ in CALLS])
        one, two = (outcome_of(call, e, rng) for e, rng in zip((ours, theirs), rngs, strict=True))
        assert one == two
        for name in READ:
            assert outcome_of(getattr, ours, name) == outcome_of(getattr, theirs, name)
        assert ours.unwrapped._state.tobytes() == theirs.unwrapped._state.tobytes()
        seen["left"] += not ours.agents
        seen["illegal"] += any(ours.truncations.values())
        seen["refused"] += isinstance(one, tuple) and one[:1] == (AssertionError,)
    assert min(seen["left"], seen["illegal"], seen["refused"]) > 20


# Actions that cannot be played


def test_an_illegal_action_ends_the_episode_and_the_next_is_clean() -> None:
    e, fresh = env("mano_a_mano", episode="match"), env("mano_a_mano", episode="match")
    for move in range(0, 12, 3):
        e.reset(seed=move)
        play_on(e, random.Random(1), move)
        agent = e.agent_selection
        other = next(a for a in e.agents if a != agent)
        owed = e._cumulative_rewards[other]
        e.step(next(a for a in range(56) if a not in legal(e)))
        assert "Illegal move" in EnvLogger.mqueue[-1]
        assert e.rewards == {agent: -1.0, other: 0}
        assert e._cumulative_rewards == {agent: -1.0, other: owed}
        assert set(e.terminations.values()) == {True}
        assert not e.observe(agent)["action_mask"].any()
        leave(e)
        e.reset(seed=9)
        fresh.reset(seed=9)
        assert not any(e.terminations.values())
        assert not any(e.truncations.values())
        rngs = random.Random(2), random.Random(2)
        for _ in range(20):
            for one in (e, fresh):
                play_on(one, rngs[one is fresh], 1)
            assert e.agent_selection == fresh.agent_selection
            assert e.rewards == fresh.rewards
            assert e._cumulative_rewards == fresh._cumulative_rewards
            assert e.terminations == fresh.terminations
            assert e.state().tobytes() == fresh.state().tobytes()


@pytest.mark.parametrize(
    "action", [-1, 56, 2**63, 10**30, 1.0, True, None, "3", [3], np.array([1, 2]), np.array(5.0), np.uint64(2**63)],
    ids=repr,
)  # fmt: skip
def test_what_is_no_action_is_refused_and_changes_nothing(action: Any) -> None:
    e = raw_env("duplas")
    e.reset(seed=1)
    before = e._state.tobytes(), e.agent_selection, e.rewards, e._cumulative_rewards.copy()
    with pytest.raises(ValueError, match=r"legal: |dtype|shape"):
        e.step(action)
    assert before == (e._state.tobytes(), e.agent_selection, e.rewards, e._cumulative_rewards)
    wrapped = env("duplas")
    wrapped.reset(seed=1)
    with pytest.raises((AssertionError, ValueError)):
        wrapped.step(action)
    assert wrapped.unwrapped._state.tobytes() == before[0]
    wrapped.step(legal(wrapped)[0])


def test_an_illegal_action_of_the_bare_environment_is_refused() -> None:
    e = raw_env("duplas")
    e.reset(seed=1)
    before = e._state.tobytes()
    with pytest.raises(IllegalAction, match=r"seat \d may not play '0-0' \(action 0\); legal: 6-6"):
        e.step(0)
    assert e._state.tobytes() == before


@pytest.mark.parametrize("kind", [int, np.int8, np.int32, np.int64, np.uint8, np.array])
def test_any_kind_of_whole_number_is_an_action(kind: Callable[[int], Any]) -> None:
    for make in (raw_env, env):
        e, same = make("duplas"), make("duplas")
        for one, action in ((e, kind), (same, int)):
            one.reset(seed=1)
            one.step(action(legal(one)[0]))
        assert e.state().tobytes() == same.state().tobytes()


@both_makers
def test_nothing_before_a_reset(make: Any) -> None:
    for use in ("step", "observe", "state", "last"):
        e = make("duplas")
        arguments = {"step": [0], "observe": ["player_0"]}.get(use, [])
        with pytest.raises((ResetNeeded, AssertionError, AttributeError), match=r"reset|agent_selection"):
            getattr(e, use)(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"preset": "dupla"}, "unknown preset 'dupla'"),
        ({"rules": {"targt": 1}}, "unknown field 'targt'"),
        ({"preset": PRESETS["puxar"], "rules": {"target": 1}}, "changed fields go with a preset's name"),
        ({"episode": "game"}, "episode='game' is not one of"),
        ({"reward": 1}, "reward=1 is not one of"),
        ({"render_mode": "svg"}, "render_mode='svg' is not one of"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    for make in (env, raw_env):
        with pytest.raises(ValueError, match=message):
            make(**arguments)
