"""Environments by the million steps, compared with the engine at each; every kind there is, every game.

    python tests/check_envs.py steps --steps 10000000
    python tests/check_envs.py rewards --rounds 100000
    python tests/check_envs.py leaks --rounds 200 --redeals 50

`steps`: random legal play; no exception, no observation but of zeros and ones in its space, no mask that differs
from the engine's legal actions, which themselves are searched for from scratch. `rewards`: what an agent
receives in an episode is what the engine's result makes it. `leaks`: hidden tiles dealt again in ways that a
seat cannot notice change nothing that it is given, byte for byte.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

import numba
import numpy as np
from check_rounds import check_decision
from gymnasium.vector import AutoresetMode

from domino_env import PRESETS, RuleSet, make_rules
from domino_env._rng import below, seed_streams
from domino_env.envs.aec import env, raw_env
from domino_env.envs.follow import Episode, Run, frozen
from domino_env.envs.picture import seen_by, show
from domino_env.envs.redeal import Redeals
from domino_env.envs.single import DominoEnv
from domino_env.envs.tables import LearnerTables
from domino_env.envs.vector import DominoVectorEnv
from domino_env.observation import look_many, new_views
from domino_env.rules import pack
from domino_env.state import copy_state
from domino_env.tiles import PIPS

GAMES: dict[str, RuleSet] = {
    **PRESETS,
    "blocos-4": make_rules("blocos", players=4),
    "puxar-3": make_rules("puxar", players=3),
    "puxar-4": make_rules("puxar", players=4),
}
KINDS: Final = tuple((episode, reward) for episode in ("round", "match") for reward in ("points", "outcome"))
FAULTS: Final = ("", "an observation that is not of zeros and ones", "a mask that is not the engine's legal actions",
                 "a table without its learner to act", "an engine's fault at the position")  # fmt: skip

# Compiled without a cache on disk: the package's own is kept by the package's sources, not by this file's.
checked = numba.njit(nogil=True)


@checked
def first_fault(state: Any, rules: Any, learner: Any, observation: Any, mask: Any) -> Any:
    """(table, fault) of the first table that shows one; fault 0 if none does."""
    for t in range(state.shape[0]):
        row = state[t]
        for i in range(observation.shape[1]):
            if observation[t, i] != 0 and observation[t, i] != 1:
                return t, 1
        over = row["seat"] < 0
        for action in range(mask.shape[1]):
            legal = (row["legal"][action & 1] >> np.uint64(action >> 1)) & np.uint64(1)
            if mask[t, action] != (1 if over else np.int64(legal)):
                return t, 2
        if over:
            continue
        if row["seat"] != learner[t]:
            return t, 3
        if check_decision(row, rules[0]) != 0:
            return t, 4
    return 0, 0


@checked
def choose(mask: Any, streams: Any, actions: Any) -> None:
    """A random action that each row of the mask allows."""
    for t in range(mask.shape[0]):
        count = 0
        for action in range(mask.shape[1]):
            count += mask[t, action]
        left = below(streams[t], count)
        for action in range(mask.shape[1]):
            if mask[t, action]:
                if left == 0:
                    actions[t] = action
                    break
                left -= 1


class Found(AssertionError):
    """What a check found."""


def expected(rules: RuleSet, row: Any, learner: int, match: bool, outcome: bool) -> float:
    """What a learner should have received by its table's record at the end of its episode."""
    sides, side = rules.num_sides, learner % rules.num_sides
    winner = int(row["winning_side"])
    if outcome:
        if match or rules.target is None:
            winner = int(row["winner"])
        return 0.0 if winner < 0 else (1.0 if winner == side else -1.0 / (sides - 1))
    if match:
        return float(row["scores"][side] - row["scores"][1 - side])
    if winner < 0 or winner == side:
        return float(row["points"]) if winner == side else 0.0
    if sides == 2:
        return -float(row["points"])
    pips = [sum(int(PIPS[tile]) for tile in range(rules.num_tiles) if int(hand) >> tile & 1) for hand in row["hands"]]
    least = 0 if row["reason"] == 1 else min(pips[: rules.players])
    return -float((pips[side] - least) * row["multiplier"])


# Every kind of environment with a learner at each table, through the same few calls: start, step. Both give
# (observations, masks), and step also rewards and which episodes have ended.


class Learners:
    """Environments with a learner, their tables, and what the engine's records said at each episode's end."""

    def __init__(self, kind: str, rules: RuleSet, n: int, seed: int, episode: Any, reward: Any) -> None:
        self.kind, self.seed = kind, seed
        given: dict[str, Any] = {"opponents": "random", "episode": episode, "reward": reward}
        if kind == "DominoEnv":
            self.env: Any = DominoEnv(rules, **given)
        elif kind == "LearnerTables":
            self.env = LearnerTables(rules, n, seed=seed, **given)
        elif kind == "DominoVecEnv (SB3)":
            from domino_env.adapters.sb3 import DominoVecEnv

            self.env = DominoVecEnv(rules, num_envs=n, seed=seed, **given)
        else:
            mode = AutoresetMode(kind.split()[1])
            self.env = DominoVectorEnv(rules, num_envs=n, autoreset_mode=mode, **given)
        inner = self.env if kind == "LearnerTables" else getattr(self.env, "tables", None) or self.env._tables
        self.tables: LearnerTables = inner
        self.ends: dict[int, tuple[Any, int]] = {}
        self._reset = self.tables.reset
        self.tables.reset = self._noting_reset  # type: ignore[method-assign]

    def _noting_reset(self, seed: Any = None, *, tables: Any = None) -> None:
        rows = self.tables.done if tables is None else self.tables.done & tables
        self.note(np.flatnonzero(rows))
        self._reset(seed, tables=tables)

    def note(self, rows: Any) -> None:
        """Keep the records of tables whose episodes have ended, before they are dealt anew."""
        for t in rows.tolist():
            self.ends[t] = copy_state(self.tables.batch.state[t : t + 1])[0], int(self.tables.learner[t])

    def start(self) -> tuple[Any, Any]:
        """Begin; (observations, masks)."""
        if self.kind == "DominoEnv":
            observation, info = self.env.reset(seed=self.seed)
            return observation[None], info["action_mask"][None]
        if self.kind == "LearnerTables":
            return self.env.observation, self.env.action_mask
        if self.kind.startswith("DominoVecEnv"):
            return self.env.reset(), self.env.action_masks().view(np.int8)
        observation, info = self.env.reset(seed=self.seed)
        return observation, info["action_mask"]

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any]:
        """Step; (observations, masks, rewards, ended). Where the environment does not reset itself, the caller does."""
        if self.kind == "DominoEnv":
            observation, reward, ended, _, info = self.env.step(actions[0])
            return observation[None], info["action_mask"][None], np.array([reward]), np.array([ended])
        if self.kind == "LearnerTables":
            self.env.step(actions)
            return self.env.observation, self.env.action_mask, self.env.rewards, self.env.done.copy()
        observation, rewards, ended, *_, infos = self.env.step(actions)
        mask = self.env.action_masks().view(np.int8) if self.kind.startswith("DominoVecEnv") else infos["action_mask"]
        return observation, mask, rewards, ended

    def restart(self, ended: Any) -> tuple[Any, Any] | None:
        """Reset the tables that have ended, where that is left to the caller; (observations, masks)."""
        if not ended.any() or self.kind.startswith("DominoVecEnv"):
            return None
        if self.kind == "DominoEnv":
            observation, info = self.env.reset()
            return observation[None], info["action_mask"][None]
        if self.kind == "LearnerTables":
            self.env.reset(tables=ended)
            return self.env.observation, self.env.action_mask
        if self.kind.endswith("Disabled"):
            observation, _ = self.env.reset(options={"reset_mask": ended})
            return observation, self.env.action_masks().view(np.int8)
        return None


LEARNERS: Final = ("DominoEnv", "LearnerTables", "DominoVectorEnv NextStep", "DominoVectorEnv SameStep",
                   "DominoVectorEnv Disabled", "DominoVecEnv (SB3)")  # fmt: skip
AGENTS: Final[dict[str, Callable[..., Any]]] = {"AEC raw_env": raw_env, "AEC env": env}
TYPES: Final = (*AGENTS, *LEARNERS)


def play_learners(
    kind: str, rules: RuleSet, seed: int, *, steps: int = 0, rounds: int = 0, paid: tuple[str, str] = KINDS[0]
) -> tuple[int, int]:
    """Play so many steps, or until so many rounds have ended; how many steps and rounds were played.

    Raises:
        Found: a fault of `first_fault`, or rewards that are not what the engine's result makes them.
    """
    episode, reward = paid
    n = 1 if kind == "DominoEnv" else min(1024, max(1, (steps or 4 * rounds) // 16))
    made = Learners(kind, rules, n, seed, episode, reward)
    observation, mask = made.start()
    tables, packed = made.tables, pack(rules)
    streams, actions = np.zeros((n, 4), np.uint32), np.zeros(n, np.int64)
    seed_streams(seed, 0, streams, purpose=1)
    totals, taken, finished = np.zeros(n), 0, 0
    told = reward == "outcome" or episode == "round" or rules.num_sides == 2  # else the records hold no such sum
    while (taken < steps) if steps else (finished < rounds):
        t, fault = first_fault(tables.batch.state, packed, tables.learner, observation, mask)
        if fault:
            raise Found(f"{kind}: table {t}: {FAULTS[fault]}")
        choose(mask, streams, actions)
        made.ends.clear()  # of a reset in the step before
        observation, mask, rewards, ended = made.step(actions)
        taken += n
        totals += rewards
        if ended.any():
            rows = np.flatnonzero(ended)
            made.note(np.array([t for t in rows.tolist() if t not in made.ends], np.int64))
            for t in rows.tolist():
                row, learner = made.ends[t]
                finished += int(row["round"]) if episode == "match" else 1
                right = expected(rules, row, learner, episode == "match", reward == "outcome") if told else totals[t]
                if abs(totals[t] - right) > 1e-4 * max(1.0, abs(right)):
                    raise Found(f"{kind}: table {t}: received {totals[t]} in all; the engine's result makes it {right}")
            totals[rows] = 0.0
            if (new := made.restart(ended)) is not None:
                observation, mask = new
    return taken, finished


def step_agents(make: Any, rules: RuleSet, seed: int, steps: int) -> None:
    """Play so many steps of AEC matches; raises `Found` on a fault."""
    e, packed = make(rules, episode="match"), pack(rules)
    inner, seats = e.unwrapped, {agent: seat for seat, agent in enumerate(e.possible_agents)}
    stream, action, learner = np.zeros((1, 4), np.uint32), np.zeros(1, np.int64), np.zeros(1, np.int64)
    seed_streams(seed, 0, stream, purpose=1)
    e.reset(seed=seed)
    for number in range(steps):
        seen, _, terminated, truncated, _ = e.last()
        if terminated or truncated:
            while e.agents:
                e.step(None)
            e.reset()
            seen = e.last()[0]
        agent = e.agent_selection
        learner[0] = seats[agent]
        mask = seen["action_mask"][None]
        _, fault = first_fault(inner._state, packed, learner, seen["observation"][None], mask)
        if fault:
            raise Found(f"{agent} at step {number}: {FAULTS[fault]}")
        if number % 10 == 0 and any(e.observe(other)["action_mask"].any() for other in e.agents if other != agent):
            raise Found(f"step {number}: the mask of an agent that is not to act is not all zeros")
        if number % 1000 == 0 and not e.observation_space(agent).contains(seen):
            raise Found(f"{agent} at step {number}: not in its space")
        choose(mask, stream, action)
        e.step(int(action[0]))


def reward_agents(make: Any, rules: RuleSet, seed: int, rounds: int, episode: str, reward: str) -> int:
    """Play AEC episodes until so many rounds are over; how many. Raises `Found` where last() tells other sums."""
    run = Run(make(rules, episode=episode, reward=reward), 1, seed)
    finished = 0
    for number in range(rounds):
        if finished >= rounds:
            break
        played = Episode(run, seed + number)
        e, told = played.env, dict.fromkeys(run.agents, 0.0)
        while e.agents:
            _, cumulative, terminated, truncated, _ = e.last(observe=False)
            told[e.agent_selection] += cumulative
            if terminated or truncated:
                e.step(None)
            else:
                played.play()
        finished += len(played.engine.results) if episode == "match" else 1
        for agent, right in played.total.items():
            if abs(told[agent] - right) > 1e-4 * max(1.0, abs(right)):
                raise Found(f"{agent}, seed {seed + number}: last() told {told[agent]}; the engine's results {right}")
    return finished


# Leaks


class Eyes:
    """All the ways in which a seat is shown a table, as functions of the table's record."""

    def __init__(self, rules: RuleSet) -> None:
        self.rules, self.packed = rules, pack(rules)
        self.aec = raw_env(rules, history=True)
        self.tables = LearnerTables(rules, 1, seat=0, seed=0, history=True)
        self.aec.reset(seed=0)

    def put(self, state: Any, mover: int) -> None:
        """Put a record into the environments."""
        for own in (self.aec._state, self.tables.batch.state):
            own.view(np.uint8)[:] = state.view(np.uint8)  # field by field takes long
        self.aec.agent_selection = self.aec.possible_agents[mover]

    def bytes_for(self, state: Any, seat: int) -> Any:
        """Observation, mask, info, rewards, tokens and view of a seat."""
        agent = self.aec.possible_agents[seat]
        seen, views = self.aec.observe(agent), new_views(self.rules, 1)
        look_many(state, self.packed, np.zeros(1, np.int64), np.array([seat]), views)
        parts = [*(seen[name].tobytes() for name in sorted(seen)), views.tobytes()]
        parts += [self.aec.infos[agent], self.aec.rewards[agent]]
        if state["seat"][0] == seat:
            parts.append(frozen(self.aec.last()))
            tables = self.tables
            tables.learner[0] = seat
            tables._observe(np.ones(1, np.bool_))
            parts += [array.tobytes() for array in (tables.observation, tables.tokens, tables.action_mask)]
        return parts

    def shown(self, state: Any, seat: int, mode: str) -> Any:
        """A picture for a seat."""
        return frozen(show(mode, seen_by(state, self.rules, seat)))


def positions(rules: RuleSet, seed: int, match: bool) -> Iterator[tuple[Any, Any]]:
    """(the round's record as dealt, the record now) before each decision of a random round, or match's rounds."""
    e, rng = raw_env(rules, episode="match" if match else "round"), random.Random(seed)
    e.reset(seed=seed)
    start, rounds = copy_state(e._state), 0
    while not any(e.terminations.values()):
        if e._state["round"][0] != rounds:
            start, rounds = copy_state(e._state), int(e._state["round"][0])
        yield start, copy_state(e._state)
        e.step(int(rng.choice(np.flatnonzero(e.observe(e.agent_selection)["action_mask"]))))


def leaks(
    rules: RuleSet, seed: int, rounds: int, redeals: int, *, ansi_every: int, rgb_every: int, match: bool = False
) -> dict[str, int]:
    """Deal again at every decision of so many rounds, for every seat; counts of what was compared.

    Text is drawn for one re-deal in `ansi_every`, RGB for one in `rgb_every`. Raises `Found` on a difference.
    """
    eyes = Eyes(rules)
    counts = dict.fromkeys(("rounds", "positions", "seats", "re-deals", "other hands", "texts", "pictures"), 0)
    for number in range(rounds):
        if counts["rounds"] >= rounds:
            break
        before = -1
        for start, now in positions(rules, seed + number, match):
            counts["rounds"] += int(now["round"][0]) != before
            before = int(now["round"][0])
            counts["positions"] += 1
            mover = int(now["seat"][0])
            for seat in range(rules.players):
                counts["seats"] += 1
                eyes.put(now, mover)
                truth, pictures = eyes.bytes_for(now, seat), dict[str, Any]()
                walk = Redeals(rules, start, now, seat, counts["seats"], 4 * redeals)
                for other in islice(walk, redeals):
                    counts["re-deals"] += 1
                    counts["other hands"] += bool((other["hands"] != now["hands"]).any())
                    eyes.put(other, mover)
                    where = f"seed {seed + number}, {now['num_events'][0]} events, seat {seat}"
                    if eyes.bytes_for(other, seat) != truth:
                        raise Found(f"{where}: what it is given depends on tiles it cannot know")
                    for mode, every, name in (("ansi", ansi_every, "texts"), ("rgb_array", rgb_every, "pictures")):
                        if every and counts["re-deals"] % every == 0:
                            counts[name] += 1
                            if mode not in pictures:
                                pictures[mode] = eyes.shown(now, seat, mode)
                            if eyes.shown(other, seat, mode) != pictures[mode]:
                                raise Found(f"{where}: what {mode} shows depends on tiles it cannot know")
    return counts


def report(name: str, what: str, begin: float) -> None:
    print(f"{name:44}{what}  {time.perf_counter() - begin:.1f} s", flush=True)


def run_steps(options: argparse.Namespace) -> None:
    share = -(-options.steps // len(options.games))
    for kind in options.types:
        total = 0
        for game in options.games:
            begin = time.perf_counter()
            if kind in AGENTS:
                step_agents(AGENTS[kind], GAMES[game], options.seed, share)
                total += share
            else:
                total += play_learners(kind, GAMES[game], options.seed, steps=share, paid=KINDS[2])[0]
            report(f"{kind}, {game}", f"{share:>12,} steps", begin)
        print(f"{kind}: {total:,} steps, no fault")


def run_rewards(options: argparse.Namespace) -> None:
    for kind in options.types:
        for game in options.games:
            begin, done = time.perf_counter(), []
            for episode, reward in KINDS:
                rounds = -(-options.rounds // len(KINDS))
                if kind in AGENTS:
                    count = reward_agents(AGENTS[kind], GAMES[game], options.seed, rounds, episode, reward)
                else:
                    paid = (episode, reward)
                    _, count = play_learners(kind, GAMES[game], options.seed, rounds=rounds, paid=paid)
                    if paid == KINDS[2] and GAMES[game].num_sides > 2:
                        count = 0  # points lost are not in scores: nothing was compared (AEC types have it)
                done.append(f"{episode}-{reward} {count:,}")
            report(f"{kind}, {game}", f"rounds: {', '.join(done)}", begin)


def run_leaks(options: argparse.Namespace) -> None:
    for game in options.games:
        for match in (False, True):
            begin = time.perf_counter()
            counts = leaks(
                GAMES[game], options.seed, -(-options.rounds // 2), options.redeals,
                ansi_every=options.ansi_every, rgb_every=options.rgb_every, match=match,
            )  # fmt: skip
            found = ", ".join(f"{name} {count:,}" for name, count in counts.items())
            report(f"{game}, {'matches' if match else 'first rounds'}", found, begin)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="compare every environment with the engine")
    commands = parser.add_subparsers(dest="command", required=True)
    made = {name: commands.add_parser(name, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
            for name in ("steps", "rewards", "leaks")}  # fmt: skip
    for name, command in made.items():
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--games", nargs="*", choices=list(GAMES), default=list(GAMES))
        if name != "leaks":
            command.add_argument("--types", nargs="*", choices=TYPES, default=list(TYPES))
    made["steps"].add_argument("--steps", type=int, default=10_000_000, help="of each type, over all games")
    made["rewards"].add_argument("--rounds", type=int, default=100_000, help="of each type and game, over all kinds")
    made["leaks"].add_argument("--rounds", type=int, default=200, help="of each game, half of them within matches")
    made["leaks"].add_argument("--redeals", type=int, default=50, help="at most, for each seat at each decision")
    made["leaks"].add_argument("--ansi-every", type=int, default=100, help="re-deals for one text")
    made["leaks"].add_argument("--rgb-every", type=int, default=5000, help="re-deals for one picture")
    options = parser.parse_args(arguments)
    {"steps": run_steps, "rewards": run_rewards, "leaks": run_leaks}[options.command](options)


if __name__ == "__main__":
    main()
