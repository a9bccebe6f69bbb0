"""The AEC environment: PettingZoo's own tests, and what they do not see: whose reward comes when, masks, copies."""

from __future__ import annotations

import copy
import pickle
import random
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pettingzoo
import pytest
from gymnasium.error import ResetNeeded
from pettingzoo.utils.env_logger import EnvLogger
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper, TerminateIllegalWrapper

from domino_env import PRESETS, Game, IllegalAction, Match, RoundResult, RuleSet, make_rules
from domino_env.envs.aec import env, raw_env
from domino_env.envs.registration import register_aec
from domino_env.rules import pack

with warnings.catch_warnings():
    # The tests' own package imports one of PettingZoo's environments in a way that it deprecates (from 1.27 on).
    warnings.filterwarnings("ignore", "The old environment creation API", DeprecationWarning)
    from pettingzoo.test import api_test, render_test, seed_test

CASES: dict[str, RuleSet] = {
    **PRESETS,
    "blocos of 4": make_rules("blocos", players=4),
    "puxar of 3": make_rules("puxar", players=3),
    "puxar of 4": make_rules("puxar", players=4),
}
every_case = pytest.mark.parametrize("rules", CASES.values(), ids=CASES)
both_makers = pytest.mark.parametrize("make", [env, raw_env])
KINDS = [(episode, reward) for episode in ("round", "match") for reward in ("points", "outcome")]
every_kind = pytest.mark.parametrize(("episode", "reward"), KINDS, ids=map("-".join, KINDS))

# PettingZoo spares only its own environments these two, by name. Both are for observations in a Dict, which is
# how it documents that an action mask is given.
spare_dicts = [
    pytest.mark.filterwarnings("ignore:Observation is not a NumPy array:UserWarning"),
    pytest.mark.filterwarnings(
        "ignore:Observation space for each agent probably should be gymnasium.spaces.box:UserWarning"
    ),
]


@pytest.fixture(autouse=True)
def quiet_logger() -> Any:
    """PettingZoo prints and gathers what its wrappers warn of; each test starts with nothing gathered."""
    EnvLogger.suppress_output()
    EnvLogger.flush()
    yield
    EnvLogger.unsuppress_output()


def legal(e: Any) -> list[int]:
    return np.flatnonzero(e.observe(e.agent_selection)["action_mask"]).tolist()  # type: ignore[no-any-return]


def play_on(e: Any, rng: random.Random, steps: int = 10**6) -> list[int]:
    """Random legal play for some steps, at most to the end of the episode; the actions."""
    played: list[int] = []
    while len(played) < steps and not any(e.terminations.values()):
        played.append(rng.choice(legal(e)))
        e.step(played[-1])
    return played


def leave(e: Any) -> None:
    """All agents take their leave."""
    while e.agents:
        e.step(None)


def gains(rules: RuleSet, result: RoundResult) -> list[float]:
    """What each side gains by a round's result, with points for rewards."""
    sides = rules.num_sides
    if result.side is None:
        return [0.0] * sides
    if sides == 2:
        losses = [float(result.points)] * 2
    else:
        fewest = 0 if result.reason == "out" else min(result.pips)
        losses = [float((pips - fewest) * result.multiplier) for pips in result.pips]
    return [result.points if side == result.side else -losses[side] for side in range(sides)]


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


# Rewards


@every_case
@every_kind
@both_makers
def test_rewards_are_the_engines_each_once_and_to_each_agent(
    make: Any, rules: RuleSet, episode: Any, reward: Any
) -> None:
    e, rng = make(rules, episode=episode, reward=reward), random.Random(4)
    sides = rules.num_sides
    for seed in range(2 if episode == "match" else 8):
        e.reset(seed=seed)
        match = Match(rules, seed)
        assert set(e.rewards.values()) == set(e._cumulative_rewards.values()) == {0.0}
        totals: dict[str, float] = defaultdict(float)
        expected = [0.0] * sides
        for agent in e.agent_iter():
            _, cumulative, terminated, truncated, _ = e.last()
            totals[agent] += cumulative
            assert not truncated
            if terminated:
                e.step(None)
                continue
            assert agent == f"player_{match.game.seat}"
            owed = dict(e._cumulative_rewards)
            action = rng.choice(legal(e))
            e.step(action)
            result = match.play(action)
            over = result is not None and (match.over or episode == "round")
            won = [0.0] * sides
            if result is not None and reward == "points":
                won = gains(rules, result)
            elif over:
                winner = match.winner if episode == "match" or rules.target is None else result.side  # type: ignore[union-attr]
                if winner is not None:
                    won = [1.0 if side == winner else -1 / (sides - 1) for side in range(sides)]
            assert sum(won) == pytest.approx(0)
            expected = [a + b for a, b in zip(expected, won, strict=True)]
            # In this very step, for all; what the mover had been told in last() is cleared, all else is kept.
            owed[agent] = 0.0
            for seat, other in enumerate(e.possible_agents):
                assert e.rewards[other] == pytest.approx(won[seat % sides])
                assert e._cumulative_rewards[other] == pytest.approx(owed[other] + won[seat % sides])
            assert set(e.terminations.values()) == {over}
        for seat, agent in enumerate(e.possible_agents):
            assert totals[agent] == pytest.approx(expected[seat % sides])
        if reward == "points" and sides == 2 and episode == "match":
            assert expected[0] == match.scores[0] - match.scores[1]


# Turns, masks and observations


@every_case
def test_masks_are_for_the_agent_to_act_alone(rules: RuleSet) -> None:
    e, rng = raw_env(rules, episode="match"), random.Random(2)
    e.reset(seed=3)
    game = Match(rules, 3)
    while not game.over:
        for agent in e.possible_agents:
            seen = e.observe(agent)
            assert e.observation_space(agent).contains(seen)
            assert seen["action_mask"].dtype == np.int8
            actions = np.flatnonzero(seen["action_mask"]).tolist()
            acts = agent == e.agent_selection == f"player_{game.game.seat}"
            assert actions == ([move.action for move in game.game.legal_moves()] if acts else [])
            hand = e.encoding.slices["hand"]
            held = np.flatnonzero(seen["observation"][hand.start : hand.stop])
            assert len(held) == len(game.game.hands[int(agent[-1])])
        action = rng.choice(legal(e))
        e.step(action)
        game.play(action)
    assert all(not e.observe(agent)["action_mask"].any() for agent in e.possible_agents)


def test_the_same_agent_may_act_twice_running() -> None:
    e, rng = env("mano_a_mano"), random.Random(1)
    found = 0
    for seed in range(30):
        e.reset(seed=seed)
        game = Game(e.unwrapped.rules, seed)
        before = None
        while game.seat is not None:
            assert e.agent_selection == f"player_{game.seat}"
            found += e.agent_selection == before
            before, action = e.agent_selection, rng.choice(legal(e))
            e.step(action)
            game.play(action)
    assert found > 10


@every_case
@both_makers
def test_all_end_together_and_leave_one_by_one(make: Any, rules: RuleSet) -> None:
    e = make(rules)
    e.reset(seed=1)
    play_on(e, random.Random(1))
    n = rules.players
    assert e.agents == e.possible_agents
    assert e.terminations == dict.fromkeys(e.agents, True)
    assert e.truncations == dict.fromkeys(e.agents, False)
    left = []
    for gone in range(1, n + 1):
        for wrong in (0, 5):
            with pytest.raises(ValueError, match="the only valid action is None"):
                e.step(wrong)
        left.append(e.agent_selection)
        e.step(None)
        assert len(e.agents) == len(e.rewards) == len(e.terminations) == len(e.infos) == n - gone
        assert e.observe(left[-1])["action_mask"].sum() == 0
    assert sorted(left) == e.possible_agents
    assert e.agents == []
    if make is raw_env:
        with pytest.raises(ResetNeeded, match="no agent is left"):
            e.step(None)
    else:
        e.step(None)
        assert "Should reset() first" in EnvLogger.mqueue[-1]
    e.reset()
    assert e.agents == e.possible_agents
    assert play_on(e, random.Random(1))


@both_makers
def test_spaces_are_the_same_objects_at_every_call(make: Any) -> None:
    e = make("puxar", rules={"players": 3})
    before = [(e.observation_space(agent), e.action_space(agent)) for agent in e.possible_agents]
    e.reset(seed=1)
    play_on(e, random.Random(1))
    for agent, (observations, actions) in zip(e.possible_agents, before, strict=True):
        assert e.observation_space(agent) is observations
        assert e.action_space(agent) is actions
    assert len({id(space) for pair in before for space in pair}) == 6


@every_case
def test_sampling_with_the_mask_gives_legal_actions(rules: RuleSet) -> None:
    e = raw_env(rules)
    e.reset(seed=1)
    for agent in e.possible_agents:
        e.action_space(agent).seed(1)
    for _ in range(10_000 // len(CASES)):
        agent = e.agent_selection
        e.step(e.action_space(agent).sample(e.observe(agent)["action_mask"]))  # raises where it is illegal
        if any(e.terminations.values()):
            e.reset()


@every_case
def test_state_is_what_all_seats_see(rules: RuleSet) -> None:
    e, rng = raw_env(rules), random.Random(1)
    e.reset(seed=1)
    while True:
        state = e.state()
        assert state in e.state_space
        assert state.dtype == e.state_space.dtype
        parts = state.reshape(rules.players, -1)
        for part, agent in zip(parts, e.possible_agents, strict=True):
            assert (part == e.observe(agent)["observation"]).all()
        if any(e.terminations.values()):
            break
        play_on(e, rng, 1)
    assert env(rules).state_space == e.state_space


def test_infos_are_new_and_empty_each_step() -> None:
    e = env("duplas")
    e.reset(seed=1)
    seen = []
    for _ in range(5):
        assert set(e.infos) == set(e.agents)
        for info in e.infos.values():
            assert info == {}
            info["mine"] = 1
            seen.append(info)
        play_on(e, random.Random(1), 1)
    assert len({id(info) for info in seen}) == 20


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


# Seeds, options, copies, arrays


@every_case
def test_a_seed_gives_the_same_games_whatever_else_draws_numbers(rules: RuleSet) -> None:
    games = []
    for make in (env, raw_env, env):
        e, rng, seen = make(rules), random.Random(1), []
        for n in range(4):
            random.seed(n)
            np.random.seed(n)  # the global generator must not matter
            e.reset(seed=5 if n == 0 else None)
            seen.append((e.state().tobytes(), play_on(e, rng)))
        games.append(seen)
    assert games[0] == games[1] == games[2]
    assert len({state for state, _ in games[0]}) == 4


def test_without_a_seed_the_deals_go_on() -> None:
    e = raw_env("blocos")
    runs = []
    for _ in range(2):
        e.reset(seed=7)
        runs.append([])
        for _ in range(1000):
            e.reset()
            runs[-1].append(e._state["deck"].tobytes())
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 1000
    unseeded = set()
    for _ in range(10):
        e = raw_env("blocos")
        e.reset()
        unseeded.add(e.state().tobytes())
    assert len(unseeded) == 10


@pytest.mark.parametrize("seed", [-1, True, "7", 1.0], ids=repr)
def test_what_is_no_seed_is_refused_and_changes_nothing(seed: Any) -> None:
    e = env("puxar")
    e.reset(seed=1)
    play_on(e, random.Random(1), 3)
    before = e.unwrapped._state.tobytes(), e.agent_selection
    with pytest.raises(ValueError, match="seed="):
        e.reset(seed=seed)
    assert before == (e.unwrapped._state.tobytes(), e.agent_selection)


def test_options_reach_the_environment_through_the_wrappers(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    reset = raw_env.reset
    monkeypatch.setattr(
        raw_env, "reset", lambda e, seed=None, options=None: (given.append((seed, options)), reset(e, seed, options))
    )
    e = env("duplas")
    e.reset(seed=3, options={"anything": 1})
    assert given == [(3, {"anything": 1})]
    assert play_on(e, random.Random(1))


@every_case
@both_makers
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))], ids=["deepcopy", "pickle"])
def test_copies_go_on_alike_and_alone(make: Any, rules: RuleSet, clone: Any) -> None:
    e = make(rules, episode="match", render_mode="ansi")
    e.reset(seed=2)
    play_on(e, random.Random(1), 6)
    e.render()
    other = clone(e)
    assert other.unwrapped._packed is pack(rules)  # any other array would be compiled for anew

    def rest(one: Any) -> list[Any]:
        rng, seen = random.Random(3), []
        for _ in range(100):
            if any(one.terminations.values()):
                leave(one)
                one.reset()
            play_on(one, rng, 1)
            seen.append((one.agent_selection, one.state().tobytes(), one.rewards, dict(one._cumulative_rewards)))
        return [*seen, one.render()]

    before = other.state().tobytes(), other.render()
    first = rest(e)
    assert (other.state().tobytes(), other.render()) == before
    assert rest(other) == first


@both_makers
def test_arrays_given_out_are_the_callers(make: Any) -> None:
    e, other = make("puxar", episode="match"), make("puxar", episode="match")
    rngs = random.Random(1), random.Random(1)
    kept: list[npt.NDArray[np.int8]] = []
    copies: list[npt.NDArray[np.int8]] = []
    for one in (e, other):
        one.reset(seed=1)
    for _ in range(40):
        arrays = [array for agent in e.possible_agents for array in e.observe(agent).values()]
        arrays += [*e.last()[0].values(), e.state()]
        kept += arrays
        copies += [array.copy() for array in arrays]
        action = rngs[0].choice(legal(e))
        e.step(action)
        assert action == rngs[1].choice(legal(other))
        for garbage in (77, 0):  # written to all that was given out
            for agent in other.possible_agents:
                for array in (*other.observe(agent).values(), *other.last()[0].values(), other.state()):
                    array[:] = garbage
        other.step(action)
        assert e.agent_selection == other.agent_selection
        assert e.terminations == other.terminations
        assert e.state().tobytes() == other.state().tobytes()
    assert all((a == b).all() for a, b in zip(kept, copies, strict=True))
    other.observe(other.agent_selection)["action_mask"][:] = 1
    illegal = next(a for a in range(56) if a not in legal(e))
    if make is raw_env:
        with pytest.raises(IllegalAction):
            other.step(illegal)
    else:
        other.step(illegal)
        assert set(other.terminations.values()) == {True}
    assert max(Counter(array.ctypes.data for array in kept).values()) == 1
