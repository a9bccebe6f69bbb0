"""Gymnasium's vector environment: many tables with a learner each, stepped in one compiled pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from .._checks import whole
from .._rng import Seeds, check_seed, check_seeds, is_many
from ..batch import check_actions
from ..equity import Equity
from ..rules import RuleSet
from .picture import RENDER_MODES, seen_by, show
from .seats import Holder
from .single import copied, rules_from
from .tables import LearnerTables

#: int8 (num_envs, size), or with `history` a dictionary of that and int16 (num_envs, length).
Observations: TypeAlias = Any
Actions: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Infos: TypeAlias = dict[str, Any]
Step: TypeAlias = tuple[Observations, npt.NDArray[np.float64], Bools, Bools, Infos]


def _autoreset_mode(given: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(given)
    except ValueError:
        allowed = ", ".join(repr(mode.value) for mode in AutoresetMode)
        raise ValueError(f"autoreset_mode={given!r} is not one of {allowed}, or an AutoresetMode") from None


class DominoVectorEnv(VectorEnv[Observations, Actions, npt.NDArray[Any]]):
    """`num_envs` tables, each what `DominoEnv` is; step for step equal to `SyncVectorEnv` over it.

    Observations: int8 (num_envs, size). Actions: whole numbers (num_envs,). Rewards: float64. In the infos
    ``action_mask``, int8 (num_envs, actions), marks the legal actions, and belongs to the observation it comes
    with; at an episode's end it is all ones. An illegal action ends its table's episode alone.

    With SAME_STEP, a table whose episode ends starts the next in the same step: ``final_obs`` and
    ``final_info`` hold the end, as Gymnasium says. With NEXT_STEP the step after an end ignores the table's
    action, gives the reward 0, and returns the new episode's first observation. With DISABLED, ended tables
    wait for ``reset(options={"reset_mask": mask})``.

    Args:
        preset, rules, opponents, partner, seat, episode, reward, strict, illegal_reward, moves, skip_single, history,
            render_mode: as for `DominoEnv`.
        num_envs: how many tables.
        autoreset_mode: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``, or Gymnasium's `AutoresetMode`.
        copy: return newly allocated arrays. Otherwise observations and masks are buffers that the next step
            or reset writes over.
        threads: None uses all cores where there are many tables; results do not depend on it.
    """

    def __init__(
        self,
        preset: str | RuleSet = "duplas",
        *,
        num_envs: int = 1,
        rules: Mapping[str, Any] | None = None,
        opponents: Holder | Sequence[Holder] = "random",
        partner: Holder | None = None,
        seat: int | None = None,
        episode: Literal["round", "match"] = "round",
        reward: Literal["points", "outcome", "equity"] | Equity = "points",
        strict: bool = False,
        illegal_reward: float = -1.0,
        moves: bool = False,
        skip_single: bool = False,
        history: bool = False,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        threads: int | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(f"render_mode={render_mode!r} is not one of {', '.join(RENDER_MODES)}, or None")
        self.num_envs = whole("num_envs", num_envs, 1)
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self.rules = rules_from(preset, rules)
        self.strict, self.illegal_reward, self.copy = strict, float(illegal_reward), copy
        self.render_mode = render_mode
        self.metadata = {
            "render_modes": list(RENDER_MODES), "render_fps": 2, "autoreset_mode": self.autoreset_mode,
        }  # fmt: skip
        self._tables = LearnerTables(
            self.rules, self.num_envs, opponents=opponents, partner=partner, seat=seat, episode=episode, reward=reward,
            moves=moves, skip_single=skip_single, history=history, threads=threads,
        )  # fmt: skip
        self.encoding = self._tables.encoding
        self.single_observation_space = self._tables.observation_space
        self.single_action_space = spaces.Discrete(self._tables.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._numbers = np.arange(self.num_envs)
        self._started = np.zeros(self.num_envs, np.bool_)
        self._over = np.ones(self.num_envs, np.bool_)  # an illegal action ends an episode here, not at its table

    def reset(self, *, seed: Seeds | None = None, options: dict[str, Any] | None = None) -> tuple[Observations, Infos]:
        """Start episodes, up to each learner's first decision.

        Args:
            seed: an integer (table i has seed + i), one for each table, or None: the deals go on where they
                were, as they do at tables with None in the list.
            options: ``{"reset_mask": bool (num_envs,)}`` starts these tables alone; the infos' rows of the
                others are zeros, and ``_action_mask`` is False there (`action_masks` has all).
        """
        chosen = self._reset_mask(options)
        if seed is not None and not is_many(seed):
            first = check_seed(seed)  # type: ignore[arg-type]
            super().reset(seed=first)
            seed = [first + i for i in range(self.num_envs)]
        if seed is not None:
            check_seeds(seed, chosen)  # before anything changes
        self._begin(chosen, seed)
        self._started = self._started | chosen
        mask = self._tables.action_mask
        return self._given(self._tables.observations()), self._infos(
            mask if chosen.all() else np.where(chosen[:, None], mask, np.int8(0)), chosen
        )

    def _reset_mask(self, options: dict[str, Any] | None) -> Bools:
        if options is None or "reset_mask" not in options:
            return np.ones(self.num_envs, np.bool_)
        mask = options["reset_mask"]
        shape = (self.num_envs,)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            what = mask.dtype if isinstance(mask, np.ndarray) else type(mask).__name__
            raise TypeError(f"options['reset_mask']: give a bool array of shape {shape}, not {what}")
        if mask.shape != shape:
            raise ValueError(f"options['reset_mask'] has shape {mask.shape}; one entry a table makes {shape}")
        if not mask.any():
            raise ValueError("options['reset_mask'] is False everywhere: it must choose at least one table")
        if not (self._started | mask).all():
            raise gymnasium.error.ResetNeeded("options['reset_mask']: the other tables were never started")
        return mask.copy()

    def step(self, actions: Any) -> Step:
        """Play one action a table.

        Raises:
            ValueError: wrong dtype or shape, a number that is no action, or (with `strict`) an illegal
                action. Nothing has changed.
            gymnasium.error.ResetNeeded: a table was never started, or (with DISABLED) is over.
        """
        actions = check_actions(actions, self.num_envs)
        self._check_started()
        tables, waiting = self._tables, self._over
        actions[waiting] = 0
        if ((actions < 0) | (actions >= self._tables.num_actions)).any():
            self._refuse(actions)
        legal = tables.action_mask[self._numbers, actions] != 0  # a table that is over has a mask of ones
        illegal = ~legal
        if self.strict and illegal.any():
            t = int(illegal.argmax())
            raise tables.refusal(t, int(actions[t]))
        playing = legal & ~waiting
        with self._all_or_none():
            tables.step(actions, tables=playing)
        rewards = tables.rewards.astype(np.float64)
        ended = (tables.done & playing) | illegal
        if illegal.any():
            rewards[illegal] = self.illegal_reward
            tables.action_mask[illegal] = 1
        self._print(playing)
        infos: Infos = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            infos = self._final(ended)
            self._begin(ended)
        else:
            self._begin(waiting)
            self._over = ended
        infos |= self._infos(tables.action_mask, np.ones(self.num_envs, np.bool_))
        return self._given(tables.observations()), rewards, ended.copy(), np.zeros(self.num_envs, np.bool_), infos

    def action_masks(self) -> Bools:
        """The legal actions of every table, bool (num_envs, actions); all True at the end of an episode."""
        masks: Bools = self._tables.action_mask.astype(np.bool_)
        masks[~self._started] = True
        return masks

    @property
    def learner(self) -> npt.NDArray[np.int64]:
        """The learners' seats in these episodes, int64 (num_envs,)."""
        return self._tables.learner.copy()

    def render(self) -> tuple[Any, ...]:
        """Each table as its learner sees it, as `DominoEnv.render`."""
        if not self._started.all():
            raise gymnasium.error.ResetNeeded("nothing to render: call reset() first")
        return tuple(self._shown(t) for t in range(self.num_envs))

    def _shown(self, t: int) -> Any:
        tables = self._tables
        view = seen_by(tables.batch.state[t : t + 1], self.rules, int(tables.learner[t]))
        return show(self.render_mode, view)

    def _print(self, chosen: Bools) -> None:
        if self.render_mode == "human":
            for t in np.flatnonzero(chosen).tolist():
                self._shown(t)

    def _begin(self, chosen: Bools, seed: Seeds | None = None) -> None:
        """Start episodes at the chosen tables."""
        if chosen.any():
            with self._all_or_none():
                self._tables.reset(seed, tables=chosen)
            self._over = self._over & ~chosen
            self._print(chosen)

    @contextmanager
    def _all_or_none(self) -> Iterator[None]:
        """An error of a player within leaves all tables to be reset, not some of them half a step on."""
        started, self._started = self._started, np.zeros(self.num_envs, np.bool_)
        yield
        self._started = started

    def _check_started(self) -> None:
        if not self._started.all():
            raise gymnasium.error.ResetNeeded("no episodes were started: call reset() before step()")
        if self.autoreset_mode == AutoresetMode.DISABLED and self._over.any():
            over = np.flatnonzero(self._over)
            tables = f"table {over[0]} is" if len(over) == 1 else f"{len(over)} tables are (the first is {over[0]})"
            raise gymnasium.error.ResetNeeded(
                f"{tables} over: call reset(options={{'reset_mask': terminations}}) before step()"
            )

    def _refuse(self, actions: Actions) -> None:
        last = self._tables.num_actions - 1
        t = int(((actions < 0) | (actions > last)).argmax())
        raise ValueError(f"table {t}: action {actions[t]} is not a whole number from 0 to {last}")

    def _given(self, array: Observations) -> Observations:
        return copied(array) if self.copy else array

    def _infos(self, mask: Observations, chosen: Bools) -> Infos:
        return {"action_mask": self._given(mask), "_action_mask": chosen}

    def _final(self, ended: Bools) -> Infos:
        """What SAME_STEP's infos tell of the episodes that end; always copies, for the tables go on at once."""
        rows = np.flatnonzero(ended)
        if not len(rows):
            return {}
        observations = np.full(self.num_envs, None, object)
        observations[rows] = np.fromiter(
            (copied(self._tables.observations(t)) for t in rows.tolist()), object, len(rows)
        )
        mask = np.zeros((self.num_envs, self._tables.num_actions), np.int8)
        mask[rows] = 1
        return {
            "final_obs": observations, "_final_obs": ended.copy(),
            "final_info": {"action_mask": mask, "_action_mask": ended.copy()}, "_final_info": ended.copy(),
        }  # fmt: skip
