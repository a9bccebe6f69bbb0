"""The PettingZoo AEC environment: every seat an agent.

`env` gives the environment in PettingZoo's usual wrappers, `raw_env` the bare one. Draws and passes
are forced, so they are no turns: `agent_selection` goes from decision to decision, and the same
agent may be asked twice running.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

from .._checks import one_of
from .._jit import jit
from .._rng import check_seed, seed_streams
from ..batch import EPISODES, REWARDS, IllegalAction, check_actions, illegal_action, settle
from ..history import History, write_tokens
from ..kernel import is_legal, play, start_match
from ..observation import (
    VECTOR,
    encode,
    encoding_of,
    expand,
    expand_mask,
    look,
    look_events,
    new_masks,
    new_views,
)
from ..rules import RuleSet, pack
from ..state import NONE, new_state
from .picture import RENDER_MODES, seen_by, show
from .registration import register_aec
from .single import rules_from

AgentID: TypeAlias = str
Observation: TypeAlias = dict[str, npt.NDArray[Any]]
_ILLEGAL: Final = -2


@jit
def _reset(state: Any, rules: Any) -> int:
    start_match(state[0], rules[0])
    return state[0]["seat"]


@jit
def _step(state: Any, rules: Any, action: int, match: bool, outcome: bool) -> int:
    """Play an action: the seat to act next, NONE when the episode is over, _ILLEGAL where the action is."""
    row = state[0]
    if not is_legal(row, rules[0], action):
        return _ILLEGAL
    for side in range(rules[0]["sides"]):
        row["rewards"][side] = 0.0
    play(row, rules[0], action)
    if settle(row, rules[0], match, outcome, False):
        return NONE
    return row["seat"]


@jit
def _observe(state: Any, rules: Any, seat: int, over: bool, views: Any, vectors: Any, seen: Any, words: int) -> None:
    """Write to `seen` the observation (so many words of 8 bytes), and the mask after it."""
    row, view = state[0], views[0]
    look(row, rules[0], seat, view)
    encode(view, rules[0], vectors[0])
    expand(vectors[0], seen[:words])
    if over:
        view["legal"][0] = np.uint64(0)
        view["legal"][1] = np.uint64(0)
    expand_mask(view["legal"][0], view["legal"][1], seen[words:])


@jit
def _tell(state: Any, rules: Any, seat: int, views: Any, tokens: Any) -> None:
    """Write to `tokens` the round's events, after `_observe`."""
    look_events(state[0], rules[0], seat, views[0])
    write_tokens(views[0], rules[0], tokens)


class raw_env(AECEnv[AgentID, Observation, int]):
    """The environment without wrappers; see `env` for the arguments.

    Observations: ``{"observation": int8 (size,), "action_mask": int8 (actions,)}``, laid out as
    `domino_env.Encoding` says. The mask is all zeros for every agent but the one to act (another's
    would show its hand), and for all when the episode is over. With `history` also ``"history"``,
    int16 (length,): the round's events as tokens, as `domino_env.History` says.

    Rewards are given, for all agents, in the step that ends a round; all agents terminate together.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": list(RENDER_MODES), "name": "domino_v0", "is_parallelizable": False, "render_fps": 2,
    }  # fmt: skip

    def __init__(
        self,
        preset: str | RuleSet = "duplas",
        *,
        rules: Mapping[str, Any] | None = None,
        episode: Literal["round", "match"] = "round",
        reward: Literal["points", "outcome"] = "points",
        history: bool = False,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(f"render_mode={render_mode!r} is not one of {', '.join(RENDER_MODES)}, or None")
        one_of("episode", episode, EPISODES)
        one_of("reward", reward, REWARDS)
        self.rules = rules_from(preset, rules)
        self.encoding = encoding_of(self.rules)
        self.history = History(self.rules) if history else None
        self.render_mode = render_mode
        self._match, self._outcome = episode == "match", reward == "outcome"
        self._packed = pack(self.rules)
        self._state = new_state(self.rules, 1)
        self._views, self._vectors = new_views(self.rules, 1), np.zeros(1, VECTOR)
        seats, size, actions = self.rules.players, self.encoding.size, self.rules.num_actions
        self.possible_agents = [f"player_{seat}" for seat in range(seats)]
        self.agents: list[AgentID] = []
        self._seat_of = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self.observation_spaces = {agent: self._new_space() for agent in self.possible_agents}
        self.action_spaces = {agent: spaces.Discrete(actions) for agent in self.possible_agents}
        self.state_space = spaces.Box(0, 1, (seats * size,), np.int8)
        # An observation and its mask lie in one piece of memory, each in whole words.
        self._size, self._stop = size, size + actions
        self._words = (size + new_masks(1, actions).shape[1]) // 8
        self._seeded = False
        self._skip_agent_selection = None

    def _new_space(self) -> spaces.Space[Any]:
        parts: dict[str, spaces.Space[Any]] = {
            "observation": spaces.Box(0, 1, (self.encoding.size,), np.int8),
            "action_mask": spaces.Box(0, 1, (self.rules.num_actions,), np.int8),
        }
        if self.history:
            parts["history"] = spaces.Box(0, self.history.num_tokens - 1, (self.history.length,), np.int16)
        return spaces.Dict(parts)

    def observation_space(self, agent: AgentID) -> spaces.Space[Any]:
        """The space of an agent's observations, the same object at every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: AgentID) -> spaces.Discrete:
        """The space of an agent's actions, the same object at every call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start an episode. Without a seed the deals go on where they were; `options` has no effect."""
        if seed is not None or not self._seeded:
            seed_streams(check_seed(seed), 0, self._state["rng"])
            self._seeded = True
        seat = self._deal()
        self.agents = self.possible_agents.copy()
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[AgentID, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._skip_agent_selection = None
        self._over = False
        self.agent_selection = self.possible_agents[seat]
        if self.render_mode == "human":
            self.render()

    def _deal(self) -> int:
        """Deal an episode's first round; the seat to act. In its place `testing` deals hands of its own."""
        return _reset(self._state, self._packed)

    def step(self, action: int | None) -> None:
        """Play an action of `agent_selection`; None where it has terminated.

        Raises:
            ValueError: not an action, or (`IllegalAction`) an illegal one; nothing has changed.
            gymnasium.error.ResetNeeded: all agents have taken their leave, or no episode was started.
        """
        if not self.agents:
            raise ResetNeeded("no agent is left to act: call reset() before step()")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if isinstance(action, int | np.integer) and not isinstance(action, bool):
            number = int(action)
        else:
            number = int(check_actions([action], 1)[0])
        seat = _ILLEGAL
        if 0 <= number < self.rules.num_actions:  # others may not even fit a machine word
            seat = _step(self._state, self._packed, number, self._match, self._outcome)
        if seat == _ILLEGAL:
            raise illegal_action(self._state, 0, number)
        cumulative = self._cumulative_rewards
        cumulative[agent] = 0.0
        rewards = self._state["rewards"][0].tolist()
        sides = self.rules.num_sides
        self.rewards = {other: rewards[i % sides] for i, other in enumerate(self.agents)}
        for other, reward in self.rewards.items():
            cumulative[other] += reward
        self.infos = {other: {} for other in self.agents}
        if seat == NONE:
            self._over = True
            self.terminations = dict.fromkeys(self.agents, True)
        else:
            self.agent_selection = self.possible_agents[seat]
        if self.render_mode == "human":
            self.render()

    def observe(self, agent: AgentID) -> Observation:
        """What an agent sees now, newly allocated."""
        if not self._seeded:
            raise ResetNeeded("nothing to observe: call reset() first")
        size, over = self._size, self._over or self.terminations.get(agent, True)
        words = np.empty(self._words, np.uint64)
        _observe(
            self._state, self._packed, self._seat_of[agent], over, self._views, self._vectors, words, size >> 3
        )  # fmt: skip
        seen = words.view(np.int8)
        found: Observation = {"observation": seen[:size], "action_mask": seen[size : self._stop]}
        if self.history:
            found["history"] = np.empty(self.history.length, np.int16)
            _tell(self._state, self._packed, self._seat_of[agent], self._views, found["history"])
        return found

    def state(self) -> npt.NDArray[np.int8]:
        """What all seats see together, for critics in training: their observations one after the other."""
        return np.concatenate([self.observe(agent)["observation"] for agent in self.possible_agents])

    def render(self) -> Any:
        """The table as the agent to act sees it: text, RGB (height, width, 3), or printed, by `render_mode`."""
        if not self._seeded:
            raise ResetNeeded("nothing to render: call reset() first")
        return show(self.render_mode, seen_by(self._state, self.rules, self._seat_of[self.agent_selection]))

    def close(self) -> None:
        """Nothing to free."""

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._packed = pack(self.rules)  # a copy is writable: to compiled code another type


class _TerminateIllegal(wrappers.TerminateIllegalWrapper[AgentID, Observation, int]):
    """PettingZoo's judges by the mask that it last gave out, so writing to that changed what is legal."""

    def observe(self, agent: AgentID) -> Observation | None:
        return self.env.observe(agent)

    def step(self, action: int) -> None:
        self._prev_obs = self.env.observe(self.agent_selection)
        super().step(action)


class _OrderEnforcing(wrappers.OrderEnforcingWrapper[AgentID, Observation, int]):
    """PettingZoo's, outermost; but looks at the environment itself instead of through three wrappers.

    What the environment accepts is played at once. All else goes the long way, to the wrapper whose matter it is.
    """

    agents = property(attrgetter("_inner.agents"))
    agent_selection = property(attrgetter("_inner.agent_selection"))
    rewards = property(attrgetter("_inner.rewards"))
    terminations = property(attrgetter("_inner.terminations"))
    truncations = property(attrgetter("_inner.truncations"))
    infos = property(attrgetter("_inner.infos"))
    _cumulative_rewards = property(attrgetter("_inner._cumulative_rewards"))

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self._inner = self.env.unwrapped  # not there before, so that `__getattr__` says what is wrong
        super().reset(seed=seed, options=options)

    def step(self, action: int | None) -> None:
        if self._has_reset and self._inner.agents:
            inner = self._inner
            over = inner.terminations[inner.agent_selection]
            if action is None if over else type(action) is int or isinstance(action, np.integer):
                self._has_updated = True
                try:
                    inner.step(action)
                except IllegalAction:
                    # Some releases of Gymnasium cannot compare a number as large as this.
                    if action is not None and abs(action) >= 2**63:
                        raise
                else:
                    return
        super().step(action)

    def last(self, observe: bool = True) -> tuple[Observation | None, float, bool, bool, dict[str, Any]]:
        if not self._has_reset:
            last: Any = super().last(observe)  # raises
            return last
        return self._inner.last(observe)

    def __str__(self) -> str:
        return str(self.env)


def env(preset: str | RuleSet = "duplas", **kwargs: Any) -> AECEnv[AgentID, Observation, int]:
    """The environment in PettingZoo's wrappers: an illegal action ends the episode with −1 for its agent.

    All agents are then both terminated and truncated, as in every environment in these wrappers.

    Args:
        preset: a preset's name, or a `RuleSet`.
        rules: changed fields, such as ``{"target": 10}``.
        episode: ``"round"`` (each episode a first round) or ``"match"``.
        reward: ``"points"`` of each round, or ``"outcome"``: +1 and −1 at the episode's end.
        history: observe the round's events too, under the key ``"history"``.
        render_mode: None, ``"ansi"``, ``"rgb_array"`` or ``"human"`` (printed text).
    """
    wrapped: AECEnv[AgentID, Observation, int] = raw_env(preset, **kwargs)
    wrapped = _TerminateIllegal(wrapped, illegal_reward=-1)
    wrapped = wrappers.AssertOutOfBoundsWrapper(wrapped)
    return _OrderEnforcing(wrapped)


register_aec()
