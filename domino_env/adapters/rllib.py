"""RLlib's new API stack: a `MultiAgentEnv` of one table, a masking module for PPO, and its policy as a player.

    PPOConfig().environment(DominoMultiAgentEnv, env_config={"preset": "duplas", "reward": "outcome"})
    config.rl_module(rl_module_spec=RLModuleSpec(module_class=MaskedModule, model_config={"hidden": [128, 128]}))

Observations have the keys ``observations`` and ``action_mask``, as in RLlib's own example of masking.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from torch import nn

from .._checks import near, whole
from .._rng import check_seed
from ..batch import IllegalAction
from ..envs.aec import AgentID, raw_env
from ..observation import Views, encoding_of, masks
from ..players import Player, Streams
from ..rules import RuleSet

Observation = dict[str, npt.NDArray[Any]]

OBSERVATIONS: Final = "observations"
ACTION_MASK: Final = "action_mask"
HISTORY: Final = "history"
_HIDDEN: Final = (128, 128)
# RLlib gives neighbouring workers neighbouring seeds, and their tables neighbouring ones again; a step beyond
# 32 bits keeps the tables of one worker from being dealt what those of the next are.
_SEEDS_A_WORKER: Final = 1 << 32


def _renamed(parts: Any) -> dict[str, Any]:
    """An observation, or its space, with the keys that RLlib's examples use."""
    found = {OBSERVATIONS: parts["observation"], ACTION_MASK: parts["action_mask"]}
    return {**found, HISTORY: parts["history"]} if "history" in parts.keys() else found  # noqa: SIM118 - a Dict space


class DominoMultiAgentEnv(MultiAgentEnv):
    """A table with every seat an agent, ``player_0`` and so on.

    `reset` and `step` return one observation, that of the agent to act; the last step returns one for every agent,
    with nothing legal. Without those RLlib loses the last action, and its reward, of an agent that was waiting when
    its episode was cut at the end of a rollout. ``observations`` are int8 (size,), zeros and ones, laid out as
    `domino_env.Encoding` says; ``action_mask``, int8 (actions,), marks the legal actions. With ``history`` in the
    config, ``history``, int16 (length,), holds the round's events as `domino_env.History` says.

    What an agent gained comes with its next observation, and at the end, when all agents terminate, all get what is
    left. What it gained in rounds of a match before its first decision comes with its first step, since before that
    RLlib has nothing to add it to.

    Args:
        config: ``preset``, ``rules``, ``episode``, ``reward``, ``history`` and ``render_mode`` as for
            `domino_env.envs.aec.env`; ``strict``: raise `IllegalAction` for an illegal action, instead of ending
            the episode with ``illegal_reward`` (−1) for its agent and nothing more for the others.

    Raises:
        ValueError: an unknown key, or a value that its key does not take.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        options = dict(config or {})
        known = [*inspect.signature(raw_env).parameters, "strict", "illegal_reward"]
        for name in options:
            if name not in known:
                raise ValueError(f"env_config has no {name!r}{near(name, known)}; it may have {', '.join(known)}")
        self.strict = bool(options.pop("strict", False))
        self.illegal_reward = float(options.pop("illegal_reward", -1.0))
        self._env = raw_env(**options)
        self._worker: int = getattr(config, "worker_index", 0) or 0
        self.rules, self.encoding = self._env.rules, self._env.encoding
        self.metadata = dict(raw_env.metadata)  # RLlib writes to it
        self.render_mode = self._env.render_mode
        self.possible_agents: list[AgentID] = self._env.possible_agents.copy()
        self.agents: list[AgentID] = self.possible_agents.copy()
        self.observation_spaces: dict[AgentID, spaces.Dict] = {}
        for agent in self.possible_agents:
            self.observation_spaces[agent] = spaces.Dict(_renamed(self._env.observation_space(agent)))
        self.action_spaces = {agent: self._env.action_space(agent) for agent in self.possible_agents}
        self._over = True
        self._owed = dict.fromkeys(self.possible_agents, 0.0)
        self._acted: set[AgentID] = set()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[AgentID, Observation], dict[AgentID, Any]]:
        """Start an episode. Without a seed the deals go on where they were; `options` has no effect.

        In a worker of RLlib's the deals follow from the seed and the worker's number.
        """
        if seed is not None:
            seed = check_seed(seed)
        super().reset(seed=seed)
        self._env.reset(seed=None if seed is None else seed + _SEEDS_A_WORKER * self._worker)
        self._owed = dict.fromkeys(self.possible_agents, 0.0)
        self._acted.clear()
        self._over = False
        return self._observations([self._env.agent_selection]), {}

    def step(
        self, action_dict: Mapping[AgentID, Any]
    ) -> tuple[
        dict[AgentID, Observation], dict[AgentID, float], dict[AgentID, bool], dict[AgentID, bool], dict[AgentID, Any]
    ]:
        """Play the action of the agent to act: observations, rewards, terminations, truncations, infos.

        Raises:
            ValueError: not the action of the agent to act and of no other; not in the action space, or (with
                ``strict``) illegal. Nothing has changed.
            gymnasium.error.ResetNeeded: the episode is over, or none was started.
        """
        if self._over:
            raise ResetNeeded("the episode is over, or none was started: call reset() before step()")
        agent = self._env.agent_selection
        if list(action_dict) != [agent]:
            raise ValueError(f"actions of {', '.join(map(str, action_dict)) or 'nobody'}: {agent} alone is to act")
        owed = self._owed
        try:
            self._env.step(action_dict[agent])
        except IllegalAction as error:
            if self.strict or not 0 <= error.action < self.rules.num_actions:
                raise
            self._over = True
            owed[agent] += self.illegal_reward
        else:
            self._over = self._env.terminations[agent]
            for other, reward in self._env.rewards.items():
                owed[other] += reward
        self._acted.add(agent)
        if self._over:
            rewards, self._owed = owed, dict.fromkeys(owed, 0.0)
            done = dict.fromkeys(self.agents, True)
            return self._observations(self.agents), rewards, {**done, "__all__": True}, {"__all__": False}, {}
        following = self._env.agent_selection
        rewards = {}
        if following in self._acted:
            rewards[following], owed[following] = owed[following], 0.0
        return self._observations([following]), rewards, {"__all__": False}, {"__all__": False}, {}

    def _observations(self, agents: list[AgentID]) -> dict[AgentID, Observation]:
        found = {}
        for agent in agents:
            seen = self._env.observe(agent)
            if self._over:  # after an illegal action the table itself is not
                seen["action_mask"][:] = 0
            found[agent] = _renamed(seen)
        return found

    def render(self) -> Any:
        """The table as the agent to act sees it: text, RGB (height, width, 3), or printed, by ``render_mode``."""
        return self._env.render()

    def close(self) -> None:
        """Nothing to free."""


class MaskedModule(TorchRLModule, InferenceOnlyAPI, ValueFunctionAPI):
    """Two perceptrons, policy and value, for PPO; no probability goes to actions that the mask rules out.

    ``model_config={"hidden": [128, 128]}`` sets the widths of both. The logits of illegal actions are half the
    dtype's lowest value: a finite one, so that entropy, KL and their gradients are finite too.
    """

    def setup(self) -> None:
        """Build both networks from the spaces and ``model_config``."""
        hidden = [whole("hidden", width, 1) for width in (self.model_config or {}).get("hidden", _HIDDEN)]
        inputs = self.observation_space[OBSERVATIONS].shape[0]
        self.policy = _perceptron([inputs, *hidden, int(self.action_space.n)])
        self.value = _perceptron([inputs, *hidden, 1])

    def get_non_inference_attributes(self) -> list[str]:
        """What workers that only act need no copy of."""
        return ["value"]

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        seen = batch[Columns.OBS]
        logits = self.policy(seen[OBSERVATIONS].to(torch.float32))
        lowest = torch.finfo(logits.dtype).min / 2
        return {Columns.ACTION_DIST_INPUTS: torch.where(seen[ACTION_MASK].to(torch.bool), logits, lowest)}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        """The value of each observation to its agent, float32 (n,)."""
        values: torch.Tensor = self.value(batch[Columns.OBS][OBSERVATIONS].to(torch.float32))
        return values.squeeze(-1)


def _perceptron(widths: list[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class ModulePlayer(Player):
    """Plays the likeliest action of a module's, for the arena and as an opponent.

    Args:
        rules: the rules to play under; their observations must be of the size the module was made for.
        module: a `MaskedModule`, such as ``algorithm.get_module("default_policy")``.
    """

    def __init__(self, rules: RuleSet, module: Any) -> None:
        super().__init__(rules)
        self.encoding = encoding_of(rules)
        size, own = module.observation_space[OBSERVATIONS].shape[0], self.encoding.size
        if size != own:
            raise ValueError(f"the module was made for observations of {size} entries; those of these rules have {own}")
        self.module = module
        self.name = "policy"

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """The likeliest action for each view, (n,)."""
        seen = {
            OBSERVATIONS: torch.from_numpy(self.encoding.vectors(views)),
            ACTION_MASK: torch.from_numpy(masks(views, self.rules.num_actions)),
        }
        with torch.inference_mode():
            logits = self.module.forward_inference({Columns.OBS: seen})[Columns.ACTION_DIST_INPUTS]
            chosen: npt.NDArray[np.int64] = logits.argmax(1).numpy()
        return chosen
