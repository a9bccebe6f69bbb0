"""Stable-Baselines3: a native `VecEnv` of many tables stepped in one compiled pass.

Each environment is one table with a learner, as `domino_env.envs.single.DominoEnv`. As SB3 wants, a
table whose episode ends is reset in the same step: the returned observation is the new episode's,
the last one is ``infos[i]["terminal_observation"]``, and ``infos[i]["episode"]`` has the episode's
return ``r``, length ``l`` and time ``t`` as SB3's Monitor would give them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from ..envs.seats import Holder
from ..envs.single import copied, rules_from
from ..envs.tables import LearnerTables, arrays_of
from ..rules import RuleSet


class DominoVecEnv(VecEnv):
    """`num_envs` tables as one SB3 vector environment.

    Args:
        preset, rules, opponents, partner, seat, episode, reward, moves, skip_single, history: as for `DominoEnv`.
        num_envs: how many tables.
        seed: table i's deals follow from (seed, i).
        threads: None uses all cores where there are many tables; results do not depend on it.
    """

    def __init__(
        self,
        preset: str | RuleSet = "duplas",
        *,
        num_envs: int,
        rules: Mapping[str, Any] | None = None,
        opponents: Holder | Sequence[Holder] = "random",
        partner: Holder | None = None,
        seat: int | None = None,
        episode: str = "round",
        reward: Any = "points",
        moves: bool = False,
        skip_single: bool = False,
        history: bool = False,
        seed: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.rules = rules_from(preset, rules)
        self.tables = LearnerTables(
            self.rules,
            num_envs,
            opponents=opponents,
            partner=partner,
            seat=seat,
            episode=episode,
            reward=reward,
            moves=moves,
            skip_single=skip_single,
            history=history,
            seed=seed,
            threads=threads,
        )
        self._steps = np.zeros(num_envs, np.int64)
        self._returns = np.zeros(num_envs, np.float64)
        self._started = time.perf_counter()
        self._actions: npt.NDArray[np.int64] = np.zeros(num_envs, np.int64)
        self.render_mode = None
        super().__init__(
            num_envs,
            self.tables.observation_space,
            spaces.Discrete(self.tables.num_actions),
        )
        self._seeds[0] = seed  # so that the first reset() starts the first episodes again, and skips none

    def reset(self) -> Any:
        """Start new episodes at all tables: the first time with the seed given, later where `seed()` gave one."""
        self.tables.reset(self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        self._steps[:] = 0
        self._returns[:] = 0.0
        self.reset_infos = [{} for _ in range(self.num_envs)]
        return copied(self.tables.observations())

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Take the learners' actions, (num_envs,); `step_wait` plays them."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Observations, rewards, dones and infos after the actions given to `step_async`; all newly allocated."""
        tables = self.tables
        tables.step(self._actions)
        rewards, done = tables.rewards.copy(), tables.done.copy()
        self._steps += 1
        self._returns += rewards
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        ended = np.flatnonzero(done)
        if len(ended):
            elapsed = round(time.perf_counter() - self._started, 6)
            for i in ended.tolist():
                infos[i] = {
                    "terminal_observation": copied(tables.observations(i)),
                    "TimeLimit.truncated": False,
                    "episode": {"r": float(self._returns[i]), "l": int(self._steps[i]), "t": elapsed},
                }
            self._steps[ended] = 0
            self._returns[ended] = 0.0
            tables.reset(tables=done)
        return copied(tables.observations()), rewards, done, infos

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """The legal actions of every table, bool (num_envs, actions)."""
        masks: npt.NDArray[np.bool_] = self.tables.action_mask.astype(np.bool_)
        return masks

    def arrays(self) -> dict[str, npt.NDArray[np.uint8]]:
        """Copies of all that goes on changing, as bytes, to go on from with `put`."""
        return {**self.tables.arrays(), **arrays_of(self._counts())}

    def _counts(self) -> dict[str, npt.NDArray[Any]]:
        return {"steps": self._steps, "returns": self._returns}

    def put(self, arrays: Mapping[str, npt.NDArray[np.uint8]]) -> Any:
        """Go on from what `arrays` gave, of an environment made with the same arguments; the observations.

        Raises:
            ValueError: arrays of other names or shapes. Nothing has changed.
        """
        self.tables.put(arrays, self._counts())
        return copied(self.tables.observations())

    def close(self) -> None:
        """Nothing to free."""

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The attribute once for each table; AttributeError where there is none."""
        if attr_name == "action_masks":  # sb3-contrib looks for it to tell whether there are masks
            return [self.action_masks] * len(list(self._get_indices(indices)))
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Refused: tables are not objects of their own."""
        raise AttributeError(f"{attr_name!r} cannot be set on single tables; make a new DominoVecEnv")

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        """Call a method for the tables at `indices`; ``"action_masks"`` gives one array with a row for each."""
        if method_name != "action_masks":
            raise AttributeError(
                f"{type(self).__name__} tables have no method {method_name!r}; they have 'action_masks'"
            )
        rows: Any = self.action_masks()[list(self._get_indices(indices))]
        return rows  # type: ignore[no-any-return]

    def env_is_wrapped(self, wrapper_class: type, indices: VecEnvIndices = None) -> list[bool]:
        """True for SB3's Monitor, whose episode figures these tables give themselves; False otherwise."""
        from stable_baselines3.common.monitor import Monitor

        return [wrapper_class is Monitor] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[npt.NDArray[np.uint8] | None]:
        """No pictures."""
        return [None] * self.num_envs
