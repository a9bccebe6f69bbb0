"""Many tables stepped at once: the fast way to play, and what every vector environment stands on.

One compiled pass checks the actions, plays them with all that is forced after them, starts the next
round or episode, and writes the observation and mask of each table's seat to act. Tables are
independent and seeded one by one, so results depend neither on how many there are nor on threads.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ._checks import one_of, whole
from ._jit import jit, jit_inline, popcount
from ._rng import Seeds, below, check_seed, check_seeds, is_many, seed_rows, seed_streams
from .equity import CHANCE, Equity, add_equity_rewards, reward_table
from .kernel import nth_action, nth_legal, num_legal, play, start_match, start_round
from .observation import (
    VECTOR,
    Views,
    encode,
    encoding_of,
    expand,
    expand_mask,
    look,
    look_many,
    new_masks,
    new_views,
)
from .rules import RuleSet, pack
from .scoring import add_outcome_rewards, add_round_rewards
from .state import NONE, new_state
from .tiles import ACTION_NAMES, LEFT, tiles_in

EPISODES: Final = ("round", "match")
REWARDS: Final = ("points", "outcome")
#: What else a batch gives, in matches of two sides.
MATCH_REWARDS: Final = (*REWARDS, "equity")
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_ALL_ONES = np.uint64(0x0101010101010101)
# Fewer tables than this a thread are not worth handing to another thread.
_TABLES_A_THREAD: Final = 512


class IllegalAction(ValueError):
    """An action that may not be played; nothing was changed. `table` and `action` say which."""

    def __init__(self, message: str, table: int, action: int) -> None:
        super().__init__(message)
        self.table = table
        self.action = action

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.table, self.action)


def action_name(action: int, *, opening: bool = False) -> str:
    """The printable name of an action: ``"6-4L"``, or ``"6-4"`` where it opens the round."""
    name = ACTION_NAMES[action]
    return name[:-1] if opening and action & 1 == LEFT else name


def legal_names(state: Any, t: int) -> list[str]:
    """The names of the legal actions at table `t`, by action id."""
    opening = state[t]["left"] == NONE
    actions = sorted(2 * tile + end for end in (0, 1) for tile in tiles_in(state[t]["legal"][end]))
    return [action_name(action, opening=opening) for action in actions]


def illegal_action(state: Any, t: int, action: int) -> IllegalAction:
    """The error that says why `action` may not be played at table `t`, and what may be."""
    seat = int(state[t]["seat"])
    if seat == NONE:
        return IllegalAction(f"table {t}: the round is over, so action {action} cannot be played", t, action)
    opening = state[t]["left"] == NONE
    known = 0 <= action < 2 * state[t]["deck"].shape[0]
    named = f"{action_name(action, opening=opening)!r} (action {action})" if known else f"action {action}"
    legal = ", ".join(legal_names(state, t))
    return IllegalAction(f"table {t}: seat {seat} may not play {named}; legal: {legal}", t, action)


def check_actions(actions: Any, n: int) -> npt.NDArray[np.int64]:
    """`actions` as int64 (n,); ValueError where they are not n whole numbers."""
    try:
        array = np.asarray(actions)
    except ValueError:
        raise ValueError(f"actions are lists of unequal length; one action a table makes ({n},)") from None
    if array.dtype.kind not in "iu":
        raise ValueError(f"actions have dtype {array.dtype}; they must be integers")
    if array.shape != (n,):
        raise ValueError(f"actions have shape {array.shape}; one action a table makes ({n},)")
    if array.dtype == np.uint64 and n and int(array.max()) >= 2**63:
        raise ValueError(f"actions hold {int(array.max())}, which is no action")
    return np.array(array, np.int64, order="C")  # a copy: to compiled code a read-only array is another type


@jit_inline
def keep_legal(row: Any, legal: Any, t: int) -> None:
    """Copy a row's legal tiles to a batch's `legal`, which is read over and over without its state."""
    legal[t, 0] = row["legal"][0]
    legal[t, 1] = row["legal"][1]


@jit
def _start(row: Any, rules: Any, skip: bool) -> None:
    """Start an episode; with `skip`, up to its first decision (episodes without any are passed over)."""
    start_match(row, rules)
    while skip and num_legal(row) == 1:
        play(row, rules, nth_legal(row, 0))
        if row["seat"] == NONE:
            start_match(row, rules)


@jit
def settle(  # type: ignore[no-untyped-def]
    row, rules, match: bool, outcome: bool, skip: bool, equity=None, chance=None
) -> bool:
    """After a play: on to the next decision of the episode, adding rewards; whether the episode is over.

    Rewards are those of `equity` where it is given: an `Equity`'s table, and the row's `CHANCE` record.
    """
    while True:
        if row["seat"] != NONE:
            if not skip or num_legal(row) != 1:
                return False
            play(row, rules, nth_legal(row, 0))
            continue
        over = not match or row["over"] != 0
        if equity is not None:
            add_equity_rewards(row, equity, chance)
        elif not outcome:
            add_round_rewards(row, rules)
        elif over:
            whole = match or rules["target"] == 0
            add_outcome_rewards(row, rules, row["winner"] if whole else row["winning_side"])
        if over:
            return True
        start_round(row, rules)


@jit_inline
def observe_row(row: Any, rules: Any, view: Any, vector: Any, observation: Any, mask: Any) -> None:
    """Write what the seat to act sees, and its mask; all zeros and all ones where the episode is over."""
    seat = int(row["seat"])
    if seat == NONE:
        observation[:] = np.uint64(0)
        mask[:] = _ALL_ONES
    else:
        look(row, rules, seat, view)
        encode(view, rules, vector)
        expand(vector, observation)
        expand_mask(row["legal"][0], row["legal"][1], mask)


@jit
def _step_many(  # type: ignore[no-untyped-def]
    state, rules, legal, actions, chosen, lo, hi, match, outcome, skip, autoreset, done, observing, views, vectors,
    observation, mask, equity, chances,
):  # fmt: skip
    for t in range(lo, hi):
        if not chosen[t]:
            continue
        row = state[t]
        for side in range(rules[0]["sides"]):
            row["rewards"][side] = 0.0
        if row["seat"] == NONE:
            done[t] = True
            continue
        play(row, rules[0], actions[t])
        done[t] = settle(row, rules[0], match, outcome, skip, equity, chances[t])
        if done[t] and autoreset:
            _start(row, rules[0], skip)
        keep_legal(row, legal, t)
        if observing:
            observe_row(row, rules[0], views[0], vectors[0], observation[t], mask[t])


@jit
def _start_many(state: Any, rules: Any, legal: Any, chosen: Any, skip: bool) -> None:
    for t in range(chosen.shape[0]):
        if chosen[t]:
            _start(state[t], rules[0], skip)
            keep_legal(state[t], legal, t)


@jit
def _observe_many(state: Any, rules: Any, views: Any, vectors: Any, observation: Any, mask: Any) -> None:
    for t in range(observation.shape[0]):
        observe_row(state[t], rules[0], views[0], vectors[0], observation[t], mask[t])


@jit
def _first_illegal(legal: Any, actions: Any, chosen: Any) -> int:
    for t in range(actions.shape[0]):
        if not chosen[t] or legal[t, 0] | legal[t, 1] == _ZERO:
            continue
        action = actions[t]
        if action < 0 or action >= 128 or (legal[t, action & 1] >> np.uint64(action >> 1)) & _ONE == _ZERO:
            return t
    return -1


@jit
def _sample_many(legal: Any, rng: Any, actions: Any, lo: int, hi: int) -> None:
    for t in range(lo, hi):
        count = popcount(legal[t, 0]) + popcount(legal[t, 1])
        actions[t] = nth_action(legal[t, 0], legal[t, 1], below(rng[t], count)) if count else 0


def cores() -> int:
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Batch:
    """N tables of one rule set.

    The arrays below are buffers that every step writes over; copy what you keep.

    Args:
        rules: the rules of every table.
        tables: how many.
        seed: table t's deals follow from (seed, first_table + t) alone; None takes fresh entropy.
        episode: ``"round"`` (every episode a first round) or ``"match"``.
        reward: what `rewards` are, zero in sum; all are given in the step that ends a round.

            ============= ==================================================================================
            ``"points"``  each round's points for the side that scored, taken from the others
            ``"outcome"`` +1 for the side that won the episode and −1 for the other, at its end
            ``"equity"``  what each round changed of a side's chance to win the match, between equal players
                          (`domino_env.equity`): over a match +0.5 and −0.5. Only in matches of two sides, and
                          under rules that `Equity.of` knows; an `Equity` may be given instead
            ============= ==================================================================================
        skip_single: play decisions with one legal action without asking. Episodes without any
            other decision are then passed over.
        autoreset: start a table's next episode in the step that ends one. Otherwise it stays over
            (its action is ignored, `done` stays True) until `reset`.
        observe: write observations and masks. Without, `legal` still tells the legal actions.
        threads: None uses all cores for large batches.
        first_table: number of the first table, to split one seed's tables over several batches.

    Attributes:
        seat: int32 (n,), the seat to act; −1 where the episode is over.
        observation: int8 (n, `encoding.size`), what that seat sees.
        action_mask: int8 (n, actions), its legal actions; all ones where the episode is over.
        legal: uint64 (n, 2), the tiles that seat may play at the left and at the right end, a bit a tile; zeros
            where the episode is over.
        rewards: float32 (n, sides), gained since the step before.
        done: bool (n,), whether that step ended the episode.
    """

    def __init__(
        self,
        rules: RuleSet,
        tables: int,
        seed: int | None = None,
        *,
        episode: Literal["round", "match"] = "round",
        reward: Literal["points", "outcome", "equity"] | Equity = "points",
        skip_single: bool = False,
        autoreset: bool = True,
        observe: bool = True,
        threads: int | None = None,
        first_table: int = 0,
    ) -> None:
        tables = whole("tables", tables, 1)
        one_of("episode", episode, EPISODES)
        if not isinstance(reward, Equity):
            one_of("reward", reward, MATCH_REWARDS)
        if threads is not None:
            threads = whole("threads", threads, 1, also=", or None for all cores")
        first_table = whole("first_table", first_table, 0)
        if skip_single and rules.hand_size == 1:
            raise ValueError("skip_single=True: with hand_size=1 no round has a decision to stop at")
        self.rules = rules
        self.encoding = encoding_of(rules)
        self.first_table = first_table
        self.match, self.outcome = episode == "match", reward == "outcome"
        self._skip, self._autoreset, self._observing = skip_single, autoreset, observe
        self._packed = pack(rules)
        #: Where rewards are equity: its table, and what each table's next reward counts from.
        self.equity = None if reward in REWARDS else reward_table(reward, rules, episode)
        self.chances = np.zeros(tables, CHANCE)
        self.state = new_state(rules, tables)
        self.legal = np.zeros((tables, 2), np.uint64)
        self.done = np.zeros(tables, np.bool_)
        self._all = np.ones(tables, np.bool_)
        rows = tables if observe else 1
        self.observation = np.zeros((rows, self.encoding.size), np.int8)
        self._mask = new_masks(rows, rules.num_actions)
        self._share_views()
        self._random = np.zeros((tables, 4), np.uint32)
        self._sampled = np.zeros(tables, np.int64)
        wanted = threads or cores()
        self.threads = max(1, min(wanted, tables // _TABLES_A_THREAD))
        self._pool: ThreadPoolExecutor | None = None
        self._pool_process = -1
        self.reset(check_seed(seed))

    @property
    def num_tables(self) -> int:
        """How many tables there are."""
        return len(self.done)

    @property
    def bytes_per_table(self) -> int:
        """Memory a table takes: state, observation, mask, random streams and the like."""
        own = (self.legal, self.done, self._all, self._random, self._sampled, self.chances)
        seen = (self.observation, self._mask) if self._observing else ()
        return self.state.itemsize + sum(array[0].nbytes for array in (*own, *seen))

    def reset(self, seed: Seeds | None = None, *, tables: npt.NDArray[np.bool_] | None = None) -> None:
        """Start new episodes, at all tables or at those where `tables` is True.

        With `seed` all streams start again; without, they go on, so that the deals are new. With a
        sequence of seeds, each table is table 0 of its own seed (and where there is None, goes on).
        """
        chosen = self._chosen(tables)
        if is_many(seed):
            rows, seeds = check_seeds(seed, chosen)
            seed_rows(seeds, rows, self.state["rng"])
            seed_rows(seeds, rows, self._random, purpose=1)
        elif seed is not None:
            if tables is not None:
                raise ValueError("give either a seed, which starts every table's stream again, or tables")
            one = check_seed(seed)  # type: ignore[arg-type]
            seed_streams(one, self.first_table, self.state["rng"])
            seed_streams(one, self.first_table, self._random, purpose=1)
        self.rewards[chosen] = 0.0
        self.done[chosen] = False
        self.chances["before"][chosen] = 0.5
        _start_many(self.state, self._packed, self.legal, chosen, self._skip)
        if self._observing:
            views, vectors = self.scratch()
            _observe_many(
                self.state,
                self._packed,
                views,
                vectors,
                self.observation.view(np.uint64),
                self._mask.view(np.uint64),
            )

    def step(self, actions: Any, *, tables: npt.NDArray[np.bool_] | None = None) -> None:
        """Play one action a table; then `seat`, `observation`, `action_mask`, `rewards` and `done` are new.

        Args:
            actions: whole numbers, (n,), of any integer dtype. Where an episode is over they are ignored.
            tables: bool (n,); where it is False the table, its buffers and its action are left alone.

        Raises:
            ValueError: wrong dtype or shape.
            IllegalAction: the first action that may not be played. No table has changed.
        """
        actions, chosen = self.checked(actions, tables)
        observation, mask = self.observation.view(np.uint64), self._mask.view(np.uint64)

        def part(lo: int, hi: int) -> None:
            views, vectors = self.scratch()
            _step_many(
                self.state, self._packed, self.legal, actions, chosen, lo, hi, self.match, self.outcome, self._skip,
                self._autoreset, self.done, self._observing, views, vectors, observation, mask, self.equity,
                self.chances,
            )  # fmt: skip

        self.in_parts(part)

    def checked(
        self, actions: Any, tables: npt.NDArray[np.bool_] | None = None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """`actions` and `tables` as compiled code takes them; raises as `step` does."""
        actions = check_actions(actions, self.num_tables)
        chosen = self._chosen(tables)
        if (t := _first_illegal(self.legal, actions, chosen)) >= 0:
            raise illegal_action(self.state, t, int(actions[t]))
        return actions, chosen

    def sample_actions(self) -> npt.NDArray[np.int64]:
        """A uniformly random legal action for each table, int64 (n,), from the batch's own streams. A buffer."""
        self.in_parts(lambda lo, hi: _sample_many(self.legal, self._random, self._sampled, lo, hi))
        return self._sampled

    def views(self, tables: npt.NDArray[np.int64] | None = None, seats: npt.NDArray[np.int64] | None = None) -> Views:
        """What `seats` know at `tables` (by default the seat to act at every table), newly allocated."""
        tables = np.arange(self.num_tables) if tables is None else np.asarray(tables, np.int64)
        seats = self.seat[tables].astype(np.int64) if seats is None else np.asarray(seats, np.int64)
        if tables.shape != seats.shape or tables.ndim != 1:
            raise ValueError(f"tables {tables.shape} and seats {seats.shape} must be one list each, of equal length")
        for name, given, bound in (("tables", tables, self.num_tables), ("seats", seats, self.rules.players)):
            if len(given) and not 0 <= given.min() <= given.max() < bound:
                raise ValueError(f"{name} go from 0 to {bound - 1}; given {given.min()} to {given.max()}")
        views = new_views(self.rules, len(tables))
        look_many(self.state, self._packed, tables, seats, views)
        return views

    def _chosen(self, tables: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
        if tables is None:
            return self._all
        chosen = np.array(tables, order="C")  # as in `check_actions`
        if chosen.shape != (self.num_tables,) or chosen.dtype != np.bool_:
            raise ValueError(
                f"tables: give a bool array of shape ({self.num_tables},), not {chosen.dtype} {chosen.shape}"
            )
        return chosen

    def _share_views(self) -> None:
        self.seat = self.state["seat"]
        self.rewards = self.state["rewards"][:, : self.rules.num_sides]
        self.action_mask = self._mask[:, : self.rules.num_actions]

    def scratch(self) -> tuple[Views, npt.NDArray[np.void]]:
        """One view and one vector for a thread of a compiled pass to work in."""
        return new_views(self.rules, 1), np.zeros(1, VECTOR)

    def in_parts(self, work: Callable[[int, int], None]) -> None:
        """Run ``work(lo, hi)`` over all tables, on this thread and the pool's."""
        n, threads = self.num_tables, self.threads
        if threads == 1:
            work(0, n)
            return
        if self._pool is None or self._pool_process != os.getpid():  # a forked child has no threads of its parent
            self._pool, self._pool_process = ThreadPoolExecutor(threads - 1), os.getpid()
        cuts = [n * i // threads for i in range(threads + 1)]
        parts = list(itertools.pairwise(cuts))
        others = [self._pool.submit(work, lo, hi) for lo, hi in parts[1:]]
        work(*parts[0])
        for other in others:
            other.result()

    def __getstate__(self) -> dict[str, Any]:
        kept = self.__dict__.copy()
        for name in ("_pool", "seat", "rewards", "action_mask"):  # views of the arrays beside them
            kept[name] = None
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._packed = pack(self.rules)  # an unpickled copy is writable: to compiled code another type
        self._share_views()
