"""The AEC environment in play: whose reward comes when, turns, masks, observations, seeds, options, copies."""

from __future__ import annotations

import copy
import pickle
import random
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from aec_envs import CASES, both_makers, every_case, every_kind, leave, legal, play_on
from aec_envs import quiet_logger as quiet_logger  # autouse: each test of this file has it
from gymnasium.error import ResetNeeded
from pettingzoo.utils.env_logger import EnvLogger

from domino_env import Game, IllegalAction, Match, RoundResult, RuleSet
from domino_env.envs.aec import env, raw_env
from domino_env.rules import pack

# Rewards


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
                winner = match.winner if episode == "match" or rules.target is None else result.side
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
