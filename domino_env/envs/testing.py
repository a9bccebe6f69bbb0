"""A conformance test for AEC environments with action masks: `check_domino_env`.

For this package's environments, raw or wrapped, and for what users make of them: subclasses, wrappers,
forks. PettingZoo's `api_test` runs an environment and looks at types; this plays `domino_env.Match` beside
it and looks at whose reward comes when, what masks allow, what observations give away, and what a copy, a
reset or an illegal move leaves behind.

    from domino_env.envs.testing import check_domino_env

    check_domino_env(my_wrapper(domino_env.envs.aec.env("duplas")))
"""

from __future__ import annotations

import contextlib
import copy
import logging
import pickle
import random
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

from .._checks import near, whole
from .aec import raw_env
from .follow import ConformanceError, Episode, Run, arrays_in, as_engine
from .redeal import Redeals, dealt_again, given_to

__all__ = ["CHECKS", "ConformanceError", "check_domino_env"]


def _turns(run: Run) -> None:
    """The agent to act and its legal actions are the engine's; all others' masks are zeros."""
    for episode in run.each():
        while True:
            env, mover, legal = episode.env, episode.mover, episode.legal()
            if mover is not None and env.agent_selection != mover:
                episode.fail(f"agent_selection is {env.agent_selection}; by the rules {mover} is to act", mover)
            for agent in run.agents:
                mask = episode.mask(agent)
                if mask.dtype != np.int8 or mask.shape != (run.rules.num_actions,):
                    episode.fail(f"the mask is {mask.dtype} {mask.shape}, not int8 ({run.rules.num_actions},)", agent)
                allowed = np.flatnonzero(mask).tolist()
                if agent != mover and allowed:
                    episode.fail(
                        f"the mask allows {allowed} to an agent that is not to act; that shows its hand", agent
                    )
                if agent == mover and (allowed != legal or mask.max() > 1):
                    episode.fail(f"the mask allows {allowed}; legal are {legal}", agent)
            if episode.over:
                break
            episode.play()


def _spaces(run: Run) -> None:
    """Spaces are the same objects at every call, and hold all that is observed; agents' names are ours."""
    env = run.env
    before = [(env.observation_space(agent), env.action_space(agent)) for agent in run.agents]
    shapes: dict[str, Any] = {}
    for episode in run.each():
        if list(env.possible_agents) != run.agents:
            episode.fail(f"possible_agents is {env.possible_agents}, not {run.agents}")
        while True:
            for agent, pair in zip(run.agents, before, strict=True):
                if env.observation_space(agent) is not pair[0] or env.action_space(agent) is not pair[1]:
                    episode.fail("observation_space() or action_space() gives another object than before", agent)
                seen = env.observe(agent)
                if not pair[0].contains(seen):
                    episode.fail(f"what it observes is not in its observation space {pair[0]}", agent)
                shape = [(array.dtype, array.shape) for array in arrays_in(seen)]
                if shape != shapes.setdefault(agent, shape):
                    episode.fail(f"dtypes and shapes were {shapes[agent]} and are {shape}", agent)
                if not isinstance(pair[1], spaces.Discrete) or pair[1].n != run.rules.num_actions:
                    episode.fail(f"its action space is {pair[1]}, not Discrete({run.rules.num_actions})", agent)
            if env.state() not in env.unwrapped.state_space:
                episode.fail("state() is not in state_space")
            if episode.over:
                break
            episode.play()


def _rewards(run: Run) -> None:
    """Rewards are the engine's, in the very step, each once; so are sums over last(), the movers' included."""
    for episode in run.each():
        env = episode.env
        told = dict.fromkeys(run.agents, 0.0)
        owed = dict.fromkeys(run.agents, 0.0)
        if any(env.rewards.values()) or any(env._cumulative_rewards.values()):
            episode.fail(f"after reset() rewards are {env.rewards}, cumulative ones {env._cumulative_rewards}")
        while env.agents:
            agent = env.agent_selection
            _, cumulative, terminated, truncated, _ = env.last()
            told[agent] += cumulative
            if terminated or truncated:
                env.step(None)
                continue
            episode.play()
            owed[agent] = 0.0
            for other in run.agents:
                owed[other] += episode.gained[other]
                for name, given, right in (
                    ("rewards", env.rewards.get(other), episode.gained[other]),
                    ("_cumulative_rewards", env._cumulative_rewards.get(other), owed[other]),
                ):
                    if given is None or abs(given - right) > 1e-4 * max(1.0, abs(right)):
                        episode.fail(f"{name} is {given}; by the engine it is {right}", other)
        for agent in run.agents:
            if abs(told[agent] - episode.total[agent]) > 1e-4 * max(1.0, abs(episode.total[agent])):
                episode.fail(f"last() has told {told[agent]} in all; by the engine {episode.total[agent]}", agent)


def _end(run: Run) -> None:
    """All agents terminate in the step that ends the episode; each then leaves by step(None), and by no other."""
    for episode in run.each():
        env = episode.env
        while not episode.over:
            episode.play()
            if env.terminations != dict.fromkeys(run.agents, episode.over):
                state = "over" if episode.over else "not over"
                episode.fail(f"the episode is {state}, but terminations are {env.terminations}")
            if any(env.truncations.values()):
                episode.fail(f"truncations are {env.truncations} in a legal game")
            if list(env.agents) != run.agents or set(env.infos) != set(run.agents):
                episode.fail(f"agents are {env.agents}, infos of {sorted(env.infos)}; all stay until they leave")
        for left in range(len(run.agents), 0, -1):
            agent = env.agent_selection
            with contextlib.suppress(ValueError):
                env.step(0)
                episode.fail("step(0) is taken from an agent that has terminated; only None may be", agent)
            env.step(None)
            if len(env.agents) != left - 1 or agent in env.agents:
                episode.fail(f"after its step(None) agents are {env.agents}", agent)


def _infos(run: Run) -> None:
    """Infos are dictionaries of their own at each step, empty or of numbers and arrays."""
    for episode in run.each(2):
        kept: list[Any] = []
        while True:
            for agent, info in episode.env.infos.items():
                if not isinstance(info, dict) or any(
                    not isinstance(part, int | float | np.number | np.ndarray) for part in info.values()
                ):
                    episode.fail(f"its info is {info!r}; numbers and arrays alone can be batched", agent)
                if any(info is other for other in kept):
                    episode.fail("its info is an object that was given out before", agent)
                kept.append(info)
            if episode.over:
                break
            episode.play()


def _illegal(run: Run) -> None:
    """An illegal move is refused, or ends the episode with a loss for its agent; the next episode is clean."""
    for episode in run.each():
        env = episode.env
        for _ in range(episode.rng.randrange(6)):
            if not episode.over:
                episode.play()
        mover, legal = episode.mover, set(episode.legal())
        if mover is None:
            continue
        action = episode.rng.choice([action for action in range(run.rules.num_actions) if action not in legal])
        before, selected = episode.seen(), env.agent_selection
        try:
            env.step(action)
        except ValueError:
            if episode.seen() != before:
                episode.fail(f"illegal action {action} was refused, but has changed something", mover)
        else:
            if not all(env.terminations.values()) or env.rewards[mover] >= 0:
                episode.fail(f"illegal action {action}: terminations {env.terminations}, rewards {env.rewards}", mover)
            if any(env.rewards[other] for other in run.agents if other != mover) or env.agents != run.agents:
                episode.fail(f"illegal action {action} of {selected}: rewards are {env.rewards}", mover)
            while env.agents:
                env.step(None)
        again = Episode(run, run.seed + 1000)
        as_engine(again, "after an episode that an illegal move ended")


def _resets(run: Run) -> None:
    """After every kind of reset an episode is the engine's, under the rules the environment was made with."""
    env = run.env
    kinds: list[tuple[str, Callable[[int], None]]] = [
        ("reset(seed)", lambda seed: env.reset(seed=seed)),
        ("reset(seed, options={})", lambda seed: env.reset(seed=seed, options={})),
        ("reset(seed, options={'any': 1})", lambda seed: env.reset(seed=seed, options={"any": 1})),
        ("two resets", lambda seed: (env.reset(), env.reset(seed=seed))[0]),
        ("reset(options={}), then reset(seed)", lambda seed: (env.reset(options={}), env.reset(seed=seed))[0]),
    ]
    for number, (name, reset) in enumerate(kinds):
        for steps in (0, 3, None):  # in the middle of an episode, and after its end
            before = Episode(run, run.seed + number)
            while not before.over and (steps is None or before.steps < steps):
                before.play()
            reset(run.seed + 500 + number)
            episode = Episode(run, run.seed + 500 + number, reset=False)
            as_engine(episode, f"after {name} {'at the end' if steps is None else f'at step {steps}'}")
            made_with = run.rules, run.match, run.outcome, run.render_mode
            inner = env.unwrapped
            if (inner.rules, inner._match, inner._outcome, inner.render_mode) != made_with:
                episode.fail(f"after {name} the rules, episode, reward or render_mode are not those it was made with")


def _copies(run: Run) -> None:
    """Copies and pickles in the middle of an episode go on as the original would, and do not touch it."""
    for name, clone in (("copy.deepcopy", copy.deepcopy), ("pickle", lambda e: pickle.loads(pickle.dumps(e)))):
        for episode in run.each(2):
            for _ in range(4):
                if not episode.over:
                    episode.play()
            original, before = episode.env, episode.seen()
            episode.env = clone(original)
            if episode.seen() != before:
                episode.fail(f"a copy by {name} is not where the original is")
            log = []
            for _ in range(60):
                if episode.over:
                    break
                action = episode.play()
                log.append((action, episode.seen()))
            episode.env = original
            if episode.seen() != before:
                episode.fail(f"playing on in a copy by {name} has changed the original")
            for action, seen in log:
                original.step(action)
                if episode.seen() != seen:
                    episode.fail(f"a copy by {name} went on otherwise than the original")
            after: list[Any] = []
            for one in (original, clone(original)):
                one.reset()
                episode.env = one
                after.append(episode.seen())
            if after[0] != after[1]:
                episode.fail(f"a copy by {name} deals other tiles after reset() than the original")


def _arrays(run: Run) -> None:
    """Arrays given out are the caller's: they do not change, share no memory, and writing to them changes nothing."""
    for episode in run.each(2):
        env, kept = episode.env, list[tuple[str, Any, Any]]()
        while not episode.over:
            given = [(agent, env.observe(agent)) for agent in run.agents]
            given += [(env.agent_selection, env.last()[0]), ("state()", env.state())]
            arrays = [(agent, array) for agent, seen in given for array in arrays_in(seen)]
            for at, (agent, array) in enumerate(arrays):
                if any(np.shares_memory(array, other) for _, other in arrays[:at]):
                    episode.fail("an array given out shares memory with another", agent)
            new = [(agent, array, array.copy()) for agent, array in arrays]
            kept += new
            episode.play()
            for agent, array, was in kept if episode.over else new:
                if not np.array_equal(array, was):
                    episode.fail("an array given out before has changed since", agent)
        again = Episode(run, episode.run.seed)
        spoiled = copy.deepcopy(env)
        while not again.over:
            for give in (spoiled.state, *(partial(spoiled.observe, agent) for agent in run.agents), spoiled.last):
                for array in arrays_in(give()):
                    if array.flags.writeable:
                        array[...] = 1
            action = again.play()
            spoiled.step(action)
            seen = again.seen()
            again.env = spoiled
            if again.seen() != seen:
                again.fail("writing to an array that was given out has changed the environment")
            again.env = env


def _seeds(run: Run) -> None:
    """A seed gives its games whatever else draws random numbers; reset() without one goes on to new deals."""
    one, two = run.env, copy.deepcopy(run.env)
    deals: list[list[Any]] = [[], []]
    episode = Episode(run, run.seed)
    two.reset(seed=run.seed)
    for number in range(12):
        for env, found in zip((one, two), deals, strict=True):
            if number:
                env.reset()
            random.random()
            np.random.random()  # noqa: NPY002 - what others do to the global generator must not matter
            episode.env = env
            found.append(episode.seen())
        if deals[0] != deals[1]:
            episode.fail(f"two environments with seed {run.seed} differ in episode {number}")
    if len({repr(deal) for deal in deals[0]}) < len(deals[0]):
        episode.fail("reset() without a seed has dealt the same tiles again")
    episode.env = one
    one.reset(seed=run.seed)
    if episode.seen() != deals[0][0]:
        episode.fail(f"reset(seed={run.seed}) after other episodes does not give that seed's deal again")


def _observing(run: Run) -> None:
    """What is observed is the moment's: the same whether it was looked at before or not, and each agent's own."""
    for episode in run.each():
        looked, blind = episode.env, copy.deepcopy(episode.env)
        encoding = episode.env.unwrapped.encoding
        while not episode.over:
            for agent in run.agents:
                looked.observe(agent)
            looked.last()
            blind.step(episode.play())
            if episode.steps % 3:
                continue
            seen, fresh = episode.seen(), copy.deepcopy(blind)
            episode.env = fresh
            if episode.seen() != seen:
                episode.fail("what is observed now depends on what was observed before")
            episode.env = looked
            if episode.over:
                break
            for seat, agent in enumerate(run.agents):
                found = looked.observe(agent)
                vector = found.get("observation") if isinstance(found, dict) else None
                if not (
                    isinstance(vector, np.ndarray) and vector.shape == (encoding.size,) and vector.dtype == np.int8
                ):
                    continue  # of a layout of its own
                now = encoding.vectors(episode.engine.game.view(seat).record)[0]
                wrong = [
                    name
                    for name, part in encoding.slices.items()
                    if not np.array_equal(vector[part.start : part.stop], now[part.start : part.stop])
                ]
                if wrong:
                    episode.fail(f"it does not observe what it knows now; wrong are {', '.join(wrong)}", agent)


def _leaks(run: Run) -> None:
    """With the hidden tiles dealt again, in ways an agent cannot notice, all it is given stays the same."""
    for episode in run.each(3):
        actions: list[int] = []
        begun, rounds = copy.deepcopy(episode.env), episode.engine.round
        while not episode.over and episode.steps < 60:
            if episode.engine.round != rounds:  # of a match: its later rounds are dealt again where they begin
                begun, rounds, actions = copy.deepcopy(episode.env), episode.engine.round, []
            game = episode.engine.game
            if (episode.steps + episode.run.seed) % 4 == 0:
                for seat, agent in enumerate(run.agents):
                    walk = Redeals(run.rules, game._start, game._state, seat, episode.steps, tries=6)
                    picture = run.render_mode == "ansi" or episode.steps % 16 == 0  # colours take long to draw
                    given = given_to(episode.env, agent, picture=picture)
                    for _ in walk:
                        other = dealt_again(begun, walk.start, actions, episode.seed if rounds == 1 else None)
                        if given_to(other, agent, picture=picture) != given:
                            episode.fail("it is given something that depends on tiles it cannot know", agent)
            actions.append(episode.play())


def _render(run: Run) -> None:
    """Pictures are what the render mode says, from the first step to the end; close() may be called twice."""
    for episode in run.each(2):
        while True:
            if run.render_mode in ("ansi", "rgb_array") and (episode.steps < 2 or episode.over):
                shown = episode.env.render()
                if run.render_mode == "ansi" and not (isinstance(shown, str) and shown):
                    episode.fail(f"render() gives {type(shown).__name__}, not a text")
                if run.render_mode == "rgb_array" and not _is_picture(shown):
                    episode.fail(f"render() gives {type(shown).__name__}, not a picture uint8 (height, width, 3)")
            if episode.over:
                break
            episode.play()
    env = copy.deepcopy(run.env)
    env.close()
    env.close()


def _is_picture(shown: Any) -> bool:
    return (
        isinstance(shown, np.ndarray)
        and shown.dtype == np.uint8
        and shown.ndim == 3
        and shown.shape[2] == 3
        and len(np.unique(shown.reshape(-1, 3), axis=0)) > 5
    )


#: The checks by name, in the order they are made.
CHECKS: Final[dict[str, Callable[[Run], None]]] = {
    "turns and masks": _turns,
    "spaces": _spaces,
    "rewards": _rewards,
    "end": _end,
    "infos": _infos,
    "illegal moves": _illegal,
    "resets": _resets,
    "copies": _copies,
    "arrays": _arrays,
    "seeds": _seeds,
    "observing": _observing,
    "leaks": _leaks,
    "render": _render,
}


def check_domino_env(
    env: AECEnv[Any, Any, Any], *, episodes: int = 5, seed: int = 0, skip: Collection[str] = ()
) -> None:
    """Check an AEC environment that stands on `raw_env`: itself, wrapped, or a subclass of it.

    The environment is reset and played; afterwards it is to be reset again.

    Args:
        env: the environment. Observations are dictionaries with an ``"action_mask"``, or infos have it.
        episodes: how many each check plays; checks that compare many copies play fewer.
        seed: of the first episode; the others follow.
        skip: names of `CHECKS` to leave out, such as ``"rewards"`` where they are shaped on purpose.

    Raises:
        ConformanceError: what is wrong, in which check, of which agent, after how many steps.
        TypeError: it does not stand on `raw_env`, so there is nothing to compare it with.
        ValueError: `episodes`, `seed` or `skip` are not what they may be.
    """
    if not isinstance(env, AECEnv) or not isinstance(env.unwrapped, raw_env):
        raise TypeError(f"{env!r} does not stand on domino_env.envs.aec.raw_env, so its games cannot be followed")
    whole("episodes", episodes, 1)
    whole("seed", seed, 0)
    for name in skip:
        if name not in CHECKS:
            raise ValueError(f"skip: there is no check {name!r}{near(name, CHECKS)}; there are {', '.join(CHECKS)}")
    run = Run(env, episodes, seed)
    for name, check in CHECKS.items():
        if name in skip:
            continue
        run.check, run.episode = name, None
        try:
            with _quiet():
                check(run)
        except ConformanceError:
            raise
        except Exception as error:
            steps = 0 if run.episode is None else run.episode.steps
            raise ConformanceError(name, None, steps, f"raises {type(error).__name__}: {error}") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep PettingZoo's wrappers from logging each illegal move that is tried here."""
    logger = logging.getLogger("pettingzoo.utils.env_logger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
