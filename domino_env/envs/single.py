"""The Gymnasium environment: one seat learns, players hold the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from .._checks import integer
from .._rng import check_seed
from ..equity import Equity
from ..rules import RuleSet, make_rules
from .picture import RENDER_MODES, seen_by, show
from .seats import Holder
from .tables import LearnerTables

#: int8 (size,), or with `history` {"observation": that, "history": int16 (length,)}.
Observation: TypeAlias = Any


def rules_from(preset: str | RuleSet, changes: Mapping[str, Any] | None) -> RuleSet:
    """A rule set from an environment's arguments: a preset's name and changed fields, or a `RuleSet`."""
    if isinstance(preset, RuleSet):
        if changes:
            raise ValueError(f"rules={dict(changes)!r}: changed fields go with a preset's name, not with a RuleSet")
        return preset
    return make_rules(preset, **(changes or {}))


def copied(observation: Observation) -> Observation:
    """Newly allocated arrays of the same content."""
    if isinstance(observation, dict):
        return {name: part.copy() for name, part in observation.items()}
    return observation.copy()


class DominoEnv(gymnasium.Env[Observation, np.int64]):
    """One seat of a table, the others played by players.

    A step is the learner's move and all that happens until it must choose again or the episode
    ends; the reward is what its side gained meanwhile, the other side's points counted against it.
    (With the first step comes what was gained in rounds of a match that ended before it.)

    Observations: int8 (size,), zeros and ones, laid out as `domino_env.Encoding` says. Actions:
    ``2*tile + end``. ``info["action_mask"]`` (int8) marks the legal ones after `reset` and each step,
    `action_masks()` gives them as bool; at an episode's end they are all ones.

    Args:
        preset: a preset's name, or a `RuleSet`.
        rules: changed fields, such as ``{"target": 10}``.
        opponents: who plays the other sides: a player's name or spec string, or a list of them, one for
            each such seat in turn order after the learner. `domino_env.envs.seats.OneOf` draws one each episode.
        partner: who plays the learner's partner, in pairs; by default as the first opponent.
        seat: the learner's seat; None draws it each episode.
        episode: ``"round"`` (each episode a first round) or ``"match"``.
        reward: ``"points"`` of each round, ``"outcome"``: +1 and −1 at the episode's end, or in matches
            ``"equity"``: what each round changed of the chance to win the match; see `Batch`.
        strict: raise `IllegalAction` for an illegal action, instead of ending the episode as
            terminated with the reward `illegal_reward`.
        moves: observe the legal moves instead: int8 (most moves, size), a row of `domino_env.afterstates.Afterstates`
            for each, then zeros. Actions are then the numbers of moves, from 0, and masks are of these.
        skip_single: play decisions with one legal action without asking, the learner's and the others'.
        history: observe the round's events too: ``{"observation": the above, "history": int16 (length,)}``, tokens
            as `domino_env.History` says.
        render_mode: None, ``"ansi"``, ``"rgb_array"`` or ``"human"`` (printed text). Shows the learner's view.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 2}  # noqa: RUF012 - as the base

    def __init__(
        self,
        preset: str | RuleSet = "duplas",
        *,
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
    ) -> None:
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(f"render_mode={render_mode!r} is not one of {', '.join(RENDER_MODES)}, or None")
        self.rules = rules_from(preset, rules)
        self.strict = strict
        self.illegal_reward = float(illegal_reward)
        self.render_mode = render_mode
        self._tables = LearnerTables(
            self.rules, 1, opponents=opponents, partner=partner, seat=seat, episode=episode, reward=reward,
            moves=moves, skip_single=skip_single, history=history,
        )  # fmt: skip
        self.encoding = self._tables.encoding
        self.observation_space = self._tables.observation_space
        self.action_space = spaces.Discrete(self._tables.num_actions)
        self._started = False
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode, up to the learner's first decision. Without a seed the deals go on where they were."""
        if seed is not None:
            seed = check_seed(seed)
        super().reset(seed=seed)
        self._over = True  # an error in a player leaves no half-started episode, nor (in `step`) half a step
        self._tables.reset(seed)
        self._started, self._over = True, False
        if self.render_mode == "human":
            self.render()
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play one action.

        Raises:
            ValueError: the action is not in the action space, or (with `strict`) is illegal.
            gymnasium.error.ResetNeeded: the episode is over, or none was started.
        """
        if self._over:
            reason = "the episode is over" if self._started else "no episode was started"
            raise gymnasium.error.ResetNeeded(f"{reason}: call reset() before step()")
        number = self._checked(action)
        if not self._tables.action_mask[0, number]:
            if self.strict:
                raise self._tables.refusal(0, number)
            self._over = True
            return self._observation(), self.illegal_reward, True, False, self._info()
        self._over = True
        self._tables.step(np.array([number]))
        self._over = bool(self._tables.done[0])
        if self.render_mode == "human":
            self.render()
        return self._observation(), float(self._tables.rewards[0]), self._over, False, self._info()

    def _checked(self, action: Any) -> int:
        value = action.item() if isinstance(action, np.ndarray) and action.size == 1 else action
        number = integer(value)
        if number is None or not 0 <= number < self._tables.num_actions:
            raise ValueError(f"action {action!r} is not a whole number from 0 to {self._tables.num_actions - 1}")
        return number

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """The legal actions, bool (actions,); all True at the end of an episode. sb3-contrib asks for this."""
        if self._over:
            return np.ones(self._tables.num_actions, np.bool_)
        mask: npt.NDArray[np.bool_] = self._tables.action_mask[0].astype(np.bool_)
        return mask

    def _observation(self) -> Observation:
        return copied(self._tables.observations(0))

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.action_masks().astype(np.int8)}

    @property
    def learner(self) -> int:
        """The learner's seat in this episode."""
        return int(self._tables.learner[0])

    def render(self) -> Any:
        """The table as the learner sees it: text, an RGB array (height, width, 3), or printed, by `render_mode`."""
        if not self._started:
            raise gymnasium.error.ResetNeeded("nothing to render: call reset() first")
        return show(self.render_mode, seen_by(self._tables.batch.state, self.rules, self.learner))
