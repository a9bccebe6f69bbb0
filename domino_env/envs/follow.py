"""An AEC environment followed by the engine: what `testing` checks with."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from ..events import RoundResult
from ..match import Match
from ..rules import RuleSet


class ConformanceError(AssertionError):
    """What an environment does wrong: which check, of which agent (or None), after how many steps of an episode."""

    def __init__(self, check: str, agent: str | None, step: int, what: str) -> None:
        super().__init__(check, agent, step, what)
        self.check, self.agent, self.step, self.what = check, agent, step, what

    def __str__(self) -> str:
        where = f"after {self.step} steps" if self.agent is None else f"{self.agent} after {self.step} steps"
        return f"{self.check}: {where}: {self.what}"


def round_rewards(rules: RuleSet, result: RoundResult) -> list[float]:
    """What a round's result gives each side where rewards are points; their sum is 0."""
    sides = rules.num_sides
    if result.side is None:
        return [0.0] * sides
    losses = [float(result.points)] * sides
    if sides > 2:  # each pays its own pips, or after a block its own difference
        least = 0 if result.reason == "out" else min(result.pips)
        losses = [float((pips - least) * result.multiplier) for pips in result.pips]
    return [float(result.points) if side == result.side else -losses[side] for side in range(sides)]


def frozen(value: Any) -> Any:
    """A value with all arrays in it as (dtype, shape, bytes), to keep and to compare."""
    if isinstance(value, dict):
        return {key: frozen(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [frozen(part) for part in value]
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    return value


def arrays_in(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """All arrays in a value."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from arrays_in(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from arrays_in(part)


class Episode:
    """An episode of an environment from a seeded reset, with the engine's own match beside it."""

    def __init__(self, run: Run, seed: int, *, reset: bool = True) -> None:
        self.run, self.env, self.seed = run, run.env, seed
        self.steps, self.over = 0, False
        self.rng = random.Random(seed)
        self.gained: dict[str, float] = {}
        run.episode = self
        if reset:
            self.env.reset(seed=seed)
        self.engine = Match(run.rules, seed)
        self.total = dict.fromkeys(run.agents, 0.0)

    def fail(self, what: str, agent: str | None = None) -> NoReturn:
        """Raise, saying where this is."""
        raise ConformanceError(self.run.check, agent, self.steps, what)

    @property
    def mover(self) -> str | None:
        """The agent whose turn it is by the rules."""
        seat = self.engine.game.seat
        return None if self.over or seat is None else self.run.agents[seat]

    def legal(self) -> list[int]:
        """The legal actions by the rules."""
        return [] if self.over else [int(move.action) for move in self.engine.game.legal_moves()]

    def play(self, action: int | None = None) -> int:
        """Play an action, by default a random legal one, in both; the action."""
        if action is None:
            action = self.rng.choice(self.legal())
        self.env.step(action)
        result = self.engine.play(action)
        self.steps += 1
        run, sides = self.run, self.run.rules.num_sides
        won = [0.0] * sides
        self.over = result is not None and (not run.match or self.engine.over)
        if result is not None and not run.outcome:
            won = round_rewards(run.rules, result)
        elif result is not None and self.over:
            whole_match = run.match or run.rules.target is None
            winner = self.engine.winner if whole_match else result.side
            if winner is not None:
                won = [1.0 if side == winner else -1.0 / (sides - 1) for side in range(sides)]
        self.gained = {agent: won[seat % sides] for seat, agent in enumerate(run.agents)}
        for agent, reward in self.gained.items():
            self.total[agent] += reward
        return action

    def seen(self) -> Any:
        """All that can be read of the environment now, to compare."""
        e = self.env
        return frozen(
            [
                e.agent_selection, list(e.agents), dict(e.rewards), dict(e._cumulative_rewards), dict(e.terminations),
                dict(e.truncations), dict(e.infos), [e.observe(agent) for agent in self.run.agents],
            ]
        )  # fmt: skip

    def mask(self, agent: str) -> Any:
        """The action mask that an agent is given."""
        seen = self.env.observe(agent)
        found = seen.get("action_mask") if isinstance(seen, dict) else None
        if found is None:
            found = self.env.infos.get(agent, {}).get("action_mask")
        if not isinstance(found, np.ndarray):
            self.fail(f"no action mask: observe() gives {type(seen).__name__} without 'action_mask'", agent)
        return found


class Run:
    """What is checked: an environment, and what it was made with."""

    def __init__(self, env: Any, episodes: int, seed: int) -> None:
        inner = env.unwrapped
        self.env, self.episodes, self.seed = env, episodes, seed
        self.rules: RuleSet = inner.rules
        self.match, self.outcome, self.render_mode = inner._match, inner._outcome, inner.render_mode
        self.agents = [f"player_{seat}" for seat in range(self.rules.players)]
        self.check = ""
        self.episode: Episode | None = None

    def each(self, count: int | None = None) -> Iterator[Episode]:
        """Episodes from one seed after the other, just reset."""
        for number in range(self.episodes if count is None else count):
            yield Episode(self, self.seed + number)


def as_engine(episode: Episode, when: str) -> None:
    """Fail unless an episode just begun goes as the engine's, to its end."""
    env = episode.env
    if any(env.terminations.values()) or any(env.truncations.values()) or any(env._cumulative_rewards.values()):
        episode.fail(
            f"{when}, reset() leaves terminations {env.terminations}, truncations {env.truncations}, "
            f"cumulative rewards {env._cumulative_rewards}"
        )
    while not episode.over:
        if env.agent_selection != episode.mover:
            episode.fail(f"{when}, agent_selection is {env.agent_selection}, not {episode.mover}", episode.mover)
        allowed = np.flatnonzero(episode.mask(env.agent_selection)).tolist()
        if allowed != episode.legal():
            episode.fail(f"{when}, the mask allows {allowed}; legal are {episode.legal()}", episode.mover)
        episode.play()
        wrong: list[str | None] = [a for a in episode.run.agents if abs(env.rewards[a] - episode.gained[a]) > 1e-3]
        if wrong or all(env.terminations.values()) != episode.over:
            episode.fail(f"{when}, rewards are {env.rewards}, terminations {env.terminations}", (wrong or [None])[0])
