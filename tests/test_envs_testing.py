"""The conformance test for AEC environments: it passes ours, and each of its checks catches what it is for."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import numpy as np
import pytest
from check_envs import GAMES, KINDS
from gymnasium import spaces
from pettingzoo.utils import BaseWrapper

from domino_env import RuleSet, make_rules
from domino_env.envs.aec import env, raw_env
from domino_env.envs.follow import frozen
from domino_env.envs.redeal import Redeals
from domino_env.envs.testing import CHECKS, ConformanceError, check_domino_env
from domino_env.state import copy_state


@pytest.mark.parametrize("rules", GAMES.values(), ids=GAMES)
@pytest.mark.parametrize(("episode", "reward"), KINDS, ids=map("-".join, KINDS))
def test_ours_pass(rules: RuleSet, episode: Any, reward: Any) -> None:
    make = env if (episode == "round") == (reward == "points") else raw_env
    check_domino_env(make(rules, episode=episode, reward=reward, render_mode="ansi"), episodes=2)


@pytest.mark.long
@pytest.mark.parametrize("rules", [*GAMES.values(), make_rules("blocos", players=9)], ids=[*GAMES, "blocos of 9"])
def test_ours_pass_in_many_episodes(rules: RuleSet) -> None:
    for episode, reward in KINDS:
        check_domino_env(env(rules, episode=episode, reward=reward), episodes=20, seed=100)  # type: ignore[arg-type]


class Noting(BaseWrapper):
    """A wrapper as users write them: one entry more in the observation."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self._spaces = {
            agent: spaces.Dict({**inner.observation_space(agent), "mine": spaces.Box(0, 9, (1,), np.int64)})
            for agent in inner.possible_agents
        }

    def observation_space(self, agent: Any) -> Any:
        return self._spaces[agent]

    def observe(self, agent: Any) -> Any:
        return {**self.env.observe(agent), "mine": np.array([len(self.env.agents)])}


class Derived(raw_env):
    def observe(self, agent: Any) -> Any:
        return {**super().observe(agent)}


def test_wrapped_and_derived_ones_pass() -> None:
    check_domino_env(Noting(env("puxar", render_mode="rgb_array")), episodes=2)
    check_domino_env(Noting(raw_env("duplas")), episodes=2)
    check_domino_env(Derived("blocos"), episodes=2)


# One broken environment for each of these; the check that must find it, and words of its message.


class HalfReward(raw_env):
    def step(self, action: Any) -> None:
        super().step(action)
        self.rewards = {agent: reward / 2 for agent, reward in self.rewards.items()}


class StaleReward(raw_env):
    """What the mover was told stays owed to it."""

    def step(self, action: Any) -> None:
        owed = self._cumulative_rewards.get(self.agent_selection, 0.0)
        mover = self.agent_selection
        super().step(action)
        if action is not None and self._match:
            self._cumulative_rewards[mover] += owed


class DoubledReward(raw_env):
    def step(self, action: Any) -> None:
        super().step(action)
        if action is not None:
            self._accumulate_rewards()


class LateReward(raw_env):
    """Rewards come with the agents' leave, for none but the mover."""

    def step(self, action: Any) -> None:
        mover = self.agent_selection
        super().step(action)
        if action is not None:
            for agent in self.agents:
                if agent != mover:
                    self._cumulative_rewards[agent] -= self.rewards[agent]


class OtherMasks(raw_env):
    """Waiting seats' masks show what they could play."""

    def observe(self, agent: Any) -> Any:
        seen = super().observe(agent)
        if agent != self.agent_selection and not self._over:
            hand = self.encoding.slices["hand"]
            seen["action_mask"][::2] = seen["observation"][hand.start : hand.stop]
        return seen


class EmptyMask(raw_env):
    def observe(self, agent: Any) -> Any:
        seen = super().observe(agent)
        if seen["action_mask"].sum() > 3:
            seen["action_mask"][np.flatnonzero(seen["action_mask"])[0]] = 0
        return seen


class WrongTurn(raw_env):
    def step(self, action: Any) -> None:
        super().step(action)
        if self._state["num_events"][0] == 9 and not self._over:
            seat = self.possible_agents.index(self.agent_selection)
            self.agent_selection = self.possible_agents[seat - 1]


class NewSpaces(raw_env):
    def action_space(self, agent: Any) -> Any:
        return spaces.Discrete(self.rules.num_actions)


class OutOfSpace(raw_env):
    def observe(self, agent: Any) -> Any:
        seen = super().observe(agent)
        seen["observation"][-1] = len(self.agents) > 1 and self._state["num_events"][0] > 8 and 2
        return seen


class FirstAloneEnds(raw_env):
    def step(self, action: Any) -> None:
        super().step(action)
        if action is not None and self._over:
            self.terminations = {agent: agent == self.agent_selection for agent in self.agents}


class AnythingFromTheDead(raw_env):
    def step(self, action: Any) -> None:
        super().step(None if self.agents and self.terminations[self.agent_selection] else action)


class SameInfos(raw_env):
    def step(self, action: Any) -> None:
        before = self.infos
        super().step(action)
        if action is not None:
            self.infos = before


class WordsInInfos(raw_env):
    def step(self, action: Any) -> None:
        super().step(action)
        for info in self.infos.values():
            info["mover"] = self.agent_selection


class IllegalGoesUnpunished(raw_env):
    def step(self, action: Any) -> None:
        if action is not None and not self._over and not self.observe(self.agent_selection)["action_mask"][action]:
            action = int(self.observe(self.agent_selection)["action_mask"].argmax())
        super().step(action)


class IllegalLeavesATrace(raw_env):
    """It ends the episode, and the next one too."""

    broken = False

    def step(self, action: Any) -> None:
        if action is not None and not self._over and not self.observe(self.agent_selection)["action_mask"][action]:
            self.terminations = dict.fromkeys(self.agents, True)
            self.rewards[self.agent_selection] = -1.0
            self.broken = True
        else:
            super().step(action)

    def reset(self, seed: Any = None, options: Any = None) -> None:
        super().reset(seed, options)
        if self.broken:
            self._cumulative_rewards["player_0"] = -1.0


class ForgetsItsEpisode(raw_env):
    def reset(self, seed: Any = None, options: Any = None) -> None:
        super().reset(seed, options)
        if options is not None:
            self._match = not self._match


class ResetInTheMiddle(raw_env):
    """A reset before the end keeps what was owed."""

    def reset(self, seed: Any = None, options: Any = None) -> None:
        begun = self._state["num_events"][0] > 0 and not self._over
        super().reset(seed, options)
        if begun:
            self._cumulative_rewards["player_1"] = 1.0


class FreshCopies(raw_env):
    def __deepcopy__(self, memo: Any) -> Any:
        other = type(self)(self.rules)
        other.reset(seed=0)
        return other


class SharedCopies(raw_env):
    def __deepcopy__(self, memo: Any) -> Any:
        return copy.copy(self)


class FreshPickles(raw_env):
    def __deepcopy__(self, memo: Any) -> Any:
        other = type(self).__new__(type(self))
        other.__setstate__(copy.deepcopy(self.__dict__, memo))
        return other

    def __reduce__(self) -> Any:
        return _made_anew, (type(self), self.rules)


def _made_anew(kind: Any, rules: Any) -> Any:
    other = kind(rules)
    other.reset(seed=0)
    return other


class OneBuffer(raw_env):
    def observe(self, agent: Any) -> Any:
        seen = super().observe(agent)
        kept = self.__dict__.setdefault("kept", {}).setdefault(agent, seen)
        for name, part in seen.items():
            kept[name][:] = part
        return kept


class ListensToItsMask(raw_env):
    """What is written to the observation given out last comes back."""

    def observe(self, agent: Any) -> Any:
        seen = super().observe(agent)
        before = self.__dict__.setdefault("given", {})
        if agent in before and before[agent]["observation"].all():
            seen["observation"][:] = 1
        before[agent] = dict(seen)
        return seen


class GlobalSeeds(raw_env):
    def reset(self, seed: Any = None, options: Any = None) -> None:
        super().reset(seed if seed is not None else random.randrange(10**9), options)


class SameDeal(raw_env):
    def reset(self, seed: Any = None, options: Any = None) -> None:
        super().reset(seed=5 if seed is None else seed)


class SeedOnce(raw_env):
    def reset(self, seed: Any = None, options: Any = None) -> None:
        super().reset(seed=None if self._seeded else seed)


class StaleObservations(raw_env):
    """Agents see what was there at their own last turn."""

    def observe(self, agent: Any) -> Any:
        cache = self.__dict__.setdefault("cache", {})
        if agent == self.agent_selection or agent not in cache:
            cache[agent] = super().observe(agent)
        seen = {name: part.copy() for name, part in cache[agent].items()}
        if agent != self.agent_selection:
            seen["action_mask"][:] = 0
        return seen


class FirstAgentsObservation(raw_env):
    def observe(self, agent: Any) -> Any:
        return {**super().observe(agent), "observation": super().observe("player_0")["observation"]}


class BoneyardShown(raw_env):
    def observe(self, agent: Any) -> Any:
        seen = super().observe(agent)
        seen["observation"][-1] = int(self._state["deck"][0, -1]) & 1
        return seen


class HandsInInfos(raw_env):
    def step(self, action: Any) -> None:
        super().step(action)
        hands = self._state["hands"][0].tolist()
        for info in self.infos.values():
            info["opponent"] = float(hands[1 if self.agent_selection == "player_0" else 0] % 97)


class HandsAtReset(raw_env):
    """It keeps a tile of the deal at reset, and shows it later."""

    def reset(self, seed: Any = None, options: Any = None) -> None:
        super().reset(seed, options)
        self.kept = int(self._state["deck"][0, -1]) & 1

    def observe(self, agent: Any) -> Any:
        seen = super().observe(agent)
        seen["observation"][-1] = self.kept
        return seen


class RewardForHands(raw_env):
    def step(self, action: Any) -> None:
        super().step(action)
        if action is not None and not self._over:
            self.rewards["player_0"] = float(int(self._state["hands"][0, 1]) & 1)


class PictureOfAllHands(raw_env):
    def render(self) -> Any:
        return str(super().render()) + str(self._state["hands"][0].tolist())


class NoText(raw_env):
    def render(self) -> Any:
        return None


BROKEN: list[tuple[Any, str, str]] = [
    (HalfReward, "rewards", "rewards is"),
    (StaleReward, "rewards", "_cumulative_rewards is"),
    (DoubledReward, "rewards", "_cumulative_rewards is"),
    (LateReward, "rewards", "_cumulative_rewards is"),
    (OtherMasks, "turns and masks", "not to act; that shows its hand"),
    (EmptyMask, "turns and masks", "legal are"),
    (WrongTurn, "turns and masks", "by the rules player_"),
    (NewSpaces, "spaces", "another object"),
    (OutOfSpace, "spaces", "not in its observation space"),
    (FirstAloneEnds, "end", "the episode is over, but terminations are"),
    (AnythingFromTheDead, "end", "step(0) is taken"),
    (SameInfos, "infos", "given out before"),
    (WordsInInfos, "infos", "numbers and arrays"),
    (IllegalGoesUnpunished, "illegal moves", "terminations"),
    (IllegalLeavesATrace, "illegal moves", "after an episode that an illegal move ended"),
    (ForgetsItsEpisode, "resets", "options={}"),
    (ResetInTheMiddle, "resets", "at step 3"),
    (FreshCopies, "copies", "copy.deepcopy is not where"),
    (SharedCopies, "copies", "has changed the original"),
    (FreshPickles, "copies", "pickle is not where"),
    (OneBuffer, "arrays", "shares memory"),
    (ListensToItsMask, "arrays", "writing to an array"),
    (GlobalSeeds, "seeds", "differ in episode 1"),
    (SameDeal, "seeds", "same tiles again"),
    (SeedOnce, "seeds", "that seed's deal"),
    (StaleObservations, "observing", "what"),
    (FirstAgentsObservation, "observing", "wrong are hand"),
    (BoneyardShown, "leaks", "tiles it cannot know"),
    (HandsInInfos, "leaks", "tiles it cannot know"),
    (HandsAtReset, "leaks", "tiles it cannot know"),
    (RewardForHands, "leaks", "tiles it cannot know"),
    (PictureOfAllHands, "leaks", "tiles it cannot know"),
    (NoText, "render", "not a text"),
]


@pytest.mark.parametrize(("kind", "check", "words"), BROKEN, ids=[kind.__name__ for kind, _, _ in BROKEN])
def test_a_broken_environment_is_caught_by_the_check_it_is_for(kind: Any, check: str, words: str) -> None:
    for preset in ("blocos", "duplas"):
        with pytest.raises(ConformanceError) as caught:
            check_domino_env(kind(preset, episode="match", render_mode="ansi"), episodes=3, skip=set(CHECKS) - {check})
        error = caught.value
        assert error.check == check
        assert words in str(error)
        assert str(error).startswith(f"{check}: ")
        assert f"after {error.step} steps" in str(error)
        assert error.agent is None or error.agent in str(error)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_every_check_has_a_broken_environment() -> None:
    assert {check for _, check, _ in BROKEN} == set(CHECKS)


def test_an_error_inside_the_environment_is_told_with_its_place() -> None:
    def step(e: Any, action: Any) -> None:
        if e._state["num_events"][0] > 4:
            raise ZeroDivisionError("tired")
        raw_env.step(e, action)

    tired = type("tired", (raw_env,), {"step": step})("blocos")
    with pytest.raises(ConformanceError, match=r"turns and masks: after \d+ steps: raises ZeroDivisionError: tired"):
        check_domino_env(tired)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(TypeError, match="does not stand on"):
        check_domino_env(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"no check 'reward' .did you mean 'rewards'"):
        check_domino_env(env("duplas"), skip=["reward"])
    with pytest.raises(ValueError, match="episodes=0"):
        check_domino_env(env("duplas"), episodes=0)
    with pytest.raises(ValueError, match="seed=-1"):
        check_domino_env(env("duplas"), seed=-1)


# The walk over deals


@pytest.mark.parametrize("rules", GAMES.values(), ids=GAMES)
def test_redeals_keep_what_a_seat_has_seen_and_change_the_rest(rules: RuleSet) -> None:
    e, rng, found, changed = raw_env(rules), random.Random(1), 0, 0
    for seed in range(4):
        e.reset(seed=seed)
        start = copy_state(e._state)
        while not any(e.terminations.values()):
            now, truth = copy_state(e._state), e._state[0]
            for seat in range(rules.players):
                walk = Redeals(rules, start, now, seat, seed, 20)
                for other in walk:
                    found += 1
                    row = other[0]
                    assert row["hands"][seat] == truth["hands"][seat]
                    held = [int(hand).bit_count() for hand in row["hands"]]
                    assert held == [int(hand).bit_count() for hand in truth["hands"]]
                    everything = sum(
                        int(hand) + int(gone) for hand, gone in zip(row["hands"], row["placed"], strict=True)
                    )
                    everything += sum(1 << int(tile) for tile in row["deck"][row["top"] : row["bottom"]])
                    assert everything == (1 << rules.num_tiles) - 1
                    assert (row["placed"] == truth["placed"]).all()
                    changed += (row["hands"] != truth["hands"]).any()
                    assert frozen(row["lacks"]) == frozen(truth["lacks"])
            e.step(int(rng.choice(np.flatnonzero(e.observe(e.agent_selection)["action_mask"]))))
    assert changed > found / 2 > 100
    with pytest.raises(ValueError, match="shown to all"):
        Redeals(rules, start, e._state, 0, 1, 1)
