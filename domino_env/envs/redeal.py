"""Rounds dealt again, in ways that a seat cannot notice: the measure of what its observation may depend on.

A walk over deals: each step swaps one or two pairs of hidden tiles and plays the round's own plays
again. It is undone where the rules would not have had it so, or where the seat would have seen another
play, draw or pass. (A drawn tile is seen by its drawer alone.) Nothing here looks at views or observations: that
is why it does not sample with `belief`, which starts from a view and would take what a view gives away as known.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .._jit import jit
from .._rng import below, check_seed, seed_streams
from ..kernel import find_opening, is_legal, open_round, play
from ..rules import RuleSet, pack
from ..state import DRAW, NONE, PLAY, State, copy_state
from .follow import frozen


@jit
def _hidden(now: Any, rules: Any, seat: int, places: Any) -> int:
    """Write to `places` the positions in the deck of tiles that `seat` has never held; how many there are."""
    dealt, size = rules["players"] * rules["hand_size"], rules["hand_size"]
    count = 0
    for place in range(dealt):
        if place // size != seat:
            places[count] = place
            count += 1
    drawn = dealt
    for i in range(now["num_events"]):
        event: Any = np.int64(now["events"][i])
        if event & 3 == DRAW:
            if event >> 3 & 15 != seat:
                places[count] = drawn
                count += 1
            drawn += 1
    for place in range(drawn, rules["tiles"]):
        places[count] = place
        count += 1
    return count


@jit
def _swap(row: Any, rules: Any, a: int, b: int) -> None:
    """Swap two positions of the deck in a round that has just been dealt."""
    dealt, size = rules["players"] * rules["hand_size"], rules["hand_size"]
    first, second = row["deck"][a], row["deck"][b]
    row["deck"][a], row["deck"][b] = second, first
    bits = np.uint64(1) << np.uint64(first) | np.uint64(1) << np.uint64(second)
    if a < dealt:
        row["hands"][a // size] ^= bits
    if b < dealt:
        row["hands"][b // size] ^= bits


@jit
def _replay(row: Any, rules: Any, now: Any, seat: int) -> bool:
    """Play in `row` what was played in `now`; whether `seat` then has seen the same."""
    starter, forced = int(row["starter"]), int(row["forced"])
    if forced != NONE:
        by_rule, tile = find_opening(row, rules)
        if by_rule != starter or tile != forced:
            return False
    open_round(row, rules, starter, forced, row["multiplier"])
    for i in range(now["num_events"]):
        event: Any = np.int64(now["events"][i])
        kind, tile, actor = event & 3, event >> 7, event >> 3 & 15
        if kind == PLAY:
            action = 2 * tile + (event >> 2 & 1)
            if i != row["num_events"] or row["seat"] != actor or not is_legal(row, rules, action):
                return False
            play(row, rules, action)
        if i >= row["num_events"]:
            return False
        other: Any = np.int64(row["events"][i])
        unseen = kind == DRAW and actor != seat
        if (event ^ other) & 127 or (tile != other >> 7 and not unseen):
            return False
    return row["num_events"] == now["num_events"] and row["seat"] == now["seat"]


@jit
def _walk(dealt: Any, tried: Any, now: Any, rules: Any, seat: int, places: Any, stream: Any) -> bool:
    """Try one step from the deal in `dealt`; whether it goes unnoticed. `tried` then is where the round stands."""
    count = _hidden(now[0], rules[0], seat, places)
    swaps = np.zeros((2, 2), np.int64)
    steps = 1 + below(stream[0], 2)
    for i in range(steps):
        swaps[i, 0], swaps[i, 1] = places[below(stream[0], count)], places[below(stream[0], count)]
        _swap(dealt[0], rules[0], swaps[i, 0], swaps[i, 1])
    tried[0] = dealt[0]
    if _replay(tried[0], rules[0], now[0], seat):
        return True
    for i in range(steps - 1, -1, -1):
        _swap(dealt[0], rules[0], swaps[i, 0], swaps[i, 1])
    return False


class Redeals:
    """Deals of one round that `seat` cannot tell from the true one; iterate for one after the other.

    Args:
        rules: the rules.
        start: the round's record as it was dealt by the kernel, before any play.
        now: its record now; it must not be over, for then all hands are shown.
        seat: whose knowledge counts.
        seed: what the walk follows from.
        tries: steps of the walk; a step that would be noticed gives nothing.

    Attributes:
        start, now: the re-dealt records at each turn of the iteration. Buffers, written over by the next.
    """

    def __init__(self, rules: RuleSet, start: State, now: State, seat: int, seed: int, tries: int) -> None:
        if now["seat"][0] == NONE:
            raise ValueError("the round is over: its hands are shown to all, so nothing can be dealt again")
        self.rules, self.seat, self.tries = rules, seat, tries
        self.start, self.now, self._truth = copy_state(start), copy_state(now), copy_state(now)
        self._stream: npt.NDArray[np.uint32] = np.zeros((1, 4), np.uint32)
        seed_streams(check_seed(seed), 0, self._stream, purpose=1)

    def __iter__(self) -> Iterator[State]:
        """Yield `now` for each re-deal."""
        packed, places = pack(self.rules), np.zeros(self.rules.num_tiles, np.int64)
        for _ in range(self.tries):
            if _walk(self.start, self.now, self._truth, packed, self.seat, places, self._stream):
                yield self.now


def given_to(env: Any, agent: str, *, picture: bool = True) -> Any:
    """All that an agent is given now; with `picture`, also what `render` draws for it where it is to act."""
    parts = [env.observe(agent), env.infos[agent], env.rewards[agent], env._cumulative_rewards[agent]]
    parts += [env.terminations[agent], env.truncations[agent], env.agent_selection]
    if env.agent_selection == agent:
        parts.append(env.last())
        if picture and env.render_mode in ("ansi", "rgb_array"):
            parts.append(env.render())
    return frozen(parts)


def dealt_again(begun: Any, start: State, actions: list[int], seed: int | None) -> Any:
    """A copy of an environment where a round began, dealt otherwise, with the round's actions played.

    With a seed it is reset first, and the deal put in the place of its own inside that: for an episode's first round.
    """
    env = copy.deepcopy(begun)
    inner = env.unwrapped
    deal = copy_state(start)

    def deal_it() -> int:
        inner._state[:] = deal
        return int(deal["seat"][0])

    if seed is None:
        deal_it()
    else:
        inner._deal = deal_it
        env.reset(seed=seed)
    for action in actions:
        env.step(action)
    return env
