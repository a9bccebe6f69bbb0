"""Tables with one learning seat each, the other seats played by players: what single-agent environments share.

One step is the learner's move and all that happens until it must choose again or the episode ends.
Scripted opponents play inside the compiled step; other players are asked for all tables at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from .._checks import whole
from .._jit import jit, popcount
from .._rng import Seeds, check_seed, check_seeds, is_many, next_u32, seed_rows
from ..afterstates import Afterstates
from ..batch import Batch, IllegalAction, action_name, check_actions, illegal_action, keep_legal, settle
from ..bots.scripted import choose
from ..game import check_rules
from ..history import History, write_tokens
from ..kernel import nth_action, play
from ..observation import Encoding, encode, expand, expand_mask, look, look_events, new_masks
from ..players import Streams
from ..rules import RuleSet, pack
from ..state import NONE
from .seats import ASKED, BLIND, Holder, Lineups

_NO_ACTIONS = np.zeros(0, np.int64)
_ALL_ONES = np.uint64(0x0101010101010101)
_S32 = np.uint64(32)
_FEW = 256


@jit
def _advance_scripted(  # type: ignore[no-untyped-def]
    state, rules, legal, chosen, actions, learner, lineups, weights, kinds, streams, match, outcome, skip, equity,
    chances, views, rewards, done, lo, hi,
):  # fmt: skip
    """At each chosen table play the action of the seat to act, where there are `actions`.

    Then let scripted players play until the learner or a player that is asked must choose, or the episode is over.
    """
    players, sides = int(rules[0]["players"]), int(rules[0]["sides"])
    for t in range(lo, hi):
        row, view = state[t], views[0]
        moving = actions.shape[0] > 0
        while chosen[t] and not done[t] and (moving or row["seat"] != learner[t]):
            if moving:
                action, moving = actions[t], False
            else:
                seat = int(row["seat"])
                player = lineups[t, (seat - learner[t]) % players]
                if kinds[player] == ASKED:
                    break
                bits = next_u32(streams[t])
                if kinds[player] == BLIND:  # as `choose` would, where all moves are equally good
                    left, right = row["legal"][0], row["legal"][1]
                    count = np.uint64(popcount(left) + popcount(right))
                    action = nth_action(left, right, int(np.int64(bits * count >> _S32)))
                else:
                    look(row, rules[0], seat, view)
                    action = choose(view, rules[0], weights[player], bits)
            for side in range(sides):
                row["rewards"][side] = 0.0
            play(row, rules[0], action)
            done[t] = settle(row, rules[0], match, outcome, skip, equity, chances[t])
            rewards[t] += row["rewards"][learner[t] % sides]
        keep_legal(row, legal, t)


@jit
def _observe_learners(  # type: ignore[no-untyped-def]
    state, rules, chosen, learner, views, vectors, observation, mask, tokens, lo, hi
):
    for t in range(lo, hi):
        if not chosen[t]:
            continue
        row = state[t]
        look(row, rules[0], learner[t], views[0])
        encode(views[0], rules[0], vectors[0])
        expand(vectors[0], observation[t])
        if tokens.shape[0]:
            look_events(row, rules[0], learner[t], views[0])
            write_tokens(views[0], rules[0], tokens[t])
        if row["seat"] == NONE:
            for i in range(mask.shape[1]):
                mask[t, i] = _ALL_ONES
        else:
            expand_mask(row["legal"][0], row["legal"][1], mask[t])


def arrays_of(changing: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[np.uint8]]:
    """Copies of arrays, as bytes."""
    return {name: array.view(np.uint8).copy() for name, array in changing.items()}


def put_arrays(changing: Mapping[str, npt.NDArray[Any]], kept: Mapping[str, npt.NDArray[np.uint8]]) -> None:
    """Write over arrays what `arrays_of` kept of them.

    Raises:
        ValueError: arrays of other names or shapes. Nothing has changed.
    """
    own = {name: array.view(np.uint8) for name, array in changing.items()}
    for name, array in own.items():
        if name not in kept or kept[name].shape != array.shape or kept[name].dtype != np.uint8:
            found = f"has shape {kept[name].shape}" if name in kept else "is missing"
            raise ValueError(f"{name} {found}; these tables' has {array.shape}")
    for name, array in own.items():
        array[:] = kept[name]


class MovesSeen:
    """The legal moves of the seat to act at each of n tables.

    Attributes:
        most: as many there are room for: no position has more.
        rows: int8 (n, most, size), a move's row of `Afterstates` each, then zeros.
        actions: int64 (n, most), their actions, then −1.
    """

    def __init__(self, rules: RuleSet, n: int) -> None:
        self.layout = Afterstates(rules)
        self.most = self.layout.max_moves
        self.rows = np.zeros((n, self.most, self.layout.size), np.int8)
        self.actions = np.full((n, self.most), -1)

    def look(self, batch: Batch, chosen: npt.NDArray[np.bool_], mask: npt.NDArray[np.int8]) -> None:
        """Write the moves at the chosen tables, and `mask`: ones for them, and everywhere where a round is over."""
        self.rows[chosen], self.actions[chosen], mask[chosen] = 0, -1, 1
        acting = np.flatnonzero(chosen & (batch.state["seat"] != NONE))
        found = self.layout.of(batch.views(acting))
        counts = np.diff(found.starts)
        places = np.repeat(acting * self.most - found.starts[:-1], counts) + np.arange(found.starts[-1])
        self.rows.reshape(-1, self.layout.size)[places] = found.rows
        self.actions.reshape(-1)[places] = found.actions
        mask[acting] = self.actions[acting] >= 0


class LearnerTables:
    """n tables with a learner at each.

    Args:
        rules: the rules of every table.
        n: how many tables.
        opponents: who plays the other sides: a player for all, or one for each such seat in turn order after
            the learner. `OneOf` several players draws one each episode.
        partner: who plays the learner's partner, where there are pairs; by default as the first opponent.
        seat: the learner's seat, or None to draw it anew each episode.
        episode, reward: as in `Batch`.
        history: write `tokens` too.
        moves: the learners see their legal moves, and an action is the number of one.
        skip_single: play decisions with one legal action without asking, the learners' and the others'.
        threads: as in `Batch`; with players other than scripted ones their own code takes most of the time.

    Attributes:
        observation: int8 (n, size), what the learners see, the end of an episode included; with `moves` int8
            (n, most moves, size), a row of `Afterstates` for each legal move, then zeros. Written over by each step.
        tokens: int16 (n, length), the round's events as each learner has seen them (see `History`); (0, length)
            without `history`. Written over by each step.
        action_mask: int8 (n, `num_actions`); all ones at the end of an episode.
        rewards: float32 (n,), what the learners' sides gained in the last step. What they gained in rounds
            of a match that ended before their first decision comes with the first step.
        done: bool (n,), whether the episode is over; it stays so until `reset`.
        learner: int64 (n,), the learners' seats.
        lineups: who plays the other seats.
    """

    def __init__(
        self,
        rules: RuleSet,
        n: int,
        *,
        opponents: Holder | Sequence[Holder] = "random",
        partner: Holder | None = None,
        seat: int | None = None,
        episode: Any = "round",
        reward: Any = "points",
        history: bool = False,
        moves: bool = False,
        skip_single: bool = False,
        threads: int | None = None,
        seed: int | None = None,
    ) -> None:
        if moves and history:
            raise ValueError("moves=True and history=True: a learner sees either its moves or the events")
        self.rules = check_rules(rules)
        self.history = History(rules) if history else None
        self.seat = None if seat is None else whole("seat", seat, 0, rules.players - 1)
        seed = check_seed(seed)
        self.batch = Batch(
            rules, n, seed, episode=episode, reward=reward, skip_single=skip_single, autoreset=False, observe=False,
            threads=threads,
        )  # fmt: skip
        self.lineups = Lineups(rules, n, opponents, partner)
        self.skip_single = skip_single
        self.encoding = self.batch.encoding
        self._packed = pack(rules)
        self.learner = np.zeros(n, np.int64)
        self.rewards = np.zeros(n, np.float32)
        self._unseen = np.zeros(n, np.float32)  # gained in this episode before the learner's first decision
        self.done = np.zeros(n, np.bool_)
        self.moves = MovesSeen(rules, n) if moves else None
        self.observation = np.zeros((n, self.encoding.size), np.int8) if self.moves is None else self.moves.rows
        self.tokens = np.zeros((n if history else 0, rules.max_events), np.int16)
        self.num_actions = rules.num_actions if self.moves is None else self.moves.most
        self._mask = new_masks(n, self.num_actions)
        self.action_mask = self._mask[:, : self.num_actions]
        self._player_streams = Streams.from_seed(seed, n, purpose=2)
        self._seat_streams = Streams.from_seed(seed, n, purpose=3)
        self.reset(seed)

    def _reseed(self, seed: Seeds, tables: npt.NDArray[np.bool_] | None, chosen: npt.NDArray[np.bool_]) -> None:
        """Start streams again, and new episodes at the chosen tables."""
        if is_many(seed):
            rows, seeds = check_seeds(seed, chosen)
            for purpose, streams in ((2, self._player_streams), (3, self._seat_streams)):
                seed_rows(seeds, rows, streams.states, purpose=purpose)
            self.batch.reset(seed, tables=chosen)
            return
        if tables is not None:
            raise ValueError("give either a seed, which starts every table's stream again, or tables")
        one, n = check_seed(seed), len(self.done)  # type: ignore[arg-type]
        self._player_streams = Streams.from_seed(one, n, purpose=2)
        self._seat_streams = Streams.from_seed(one, n, purpose=3)
        self.batch.reset(one)

    def reset(self, seed: Seeds | None = None, *, tables: npt.NDArray[np.bool_] | None = None) -> None:
        """Start new episodes, at all tables or where `tables` is True, up to the learner's first decision.

        Episodes that end before the learner has any are passed over. Without `seed` the deals go on
        where they were. With a sequence of seeds, each table is what one table alone would be with
        its seed (and where there is None, goes on).
        """
        chosen = self._chosen(tables)
        if seed is not None:
            self._reseed(seed, tables, chosen)
        fresh = chosen.copy()
        self.rewards[fresh] = 0.0
        restart = seed is None
        while fresh.any():
            if restart:
                self.batch.reset(tables=fresh)
            rows = np.flatnonzero(fresh)
            if self.seat is None:
                self.learner[rows] = self._seat_streams.rows(rows).below(np.full(len(rows), self.rules.players))
            else:
                self.learner[rows] = self.seat
            self.lineups.draw(rows, self._seat_streams)
            self.done[rows] = False
            self._unseen[rows] = 0.0
            self._advance(fresh, self._unseen)
            fresh &= self.done
            restart = True
        self._observe(chosen)

    def step(self, actions: Any, *, tables: npt.NDArray[np.bool_] | None = None) -> None:
        """Play one action at each table whose episode is not over, or at those where `tables` is True.

        Raises:
            ValueError: as `Batch.step`; nothing has changed.
        """
        chosen = self._chosen(tables) & ~self.done
        if self.moves is not None:
            actions = self._actions_of(actions, chosen)
        actions, active = self.batch.checked(actions, chosen)
        self.rewards[:] = np.where(active, self._unseen, 0.0)
        self._unseen[active] = 0.0
        self._advance(active, self.rewards, actions)
        self._observe(active)

    def _actions_of(self, numbers: Any, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """The actions of moves given by their numbers, (n,)."""
        assert self.moves is not None
        numbers = check_actions(numbers, len(chosen))
        known = (numbers >= 0) & (numbers < self.num_actions)
        actions: npt.NDArray[np.int64] = self.moves.actions[np.arange(len(chosen)), np.where(known, numbers, 0)]
        if (wrong := chosen & (~known | (actions < 0))).any():
            t = int(wrong.argmax())
            raise self.refusal(t, int(numbers[t]))
        return actions

    def refusal(self, t: int, action: int) -> IllegalAction:
        """The error that says why `action` may not be played at table `t`, and what may be."""
        if self.moves is None or self.done[t]:
            return illegal_action(self.batch.state, t, action)
        opening = self.batch.state[t]["left"] == NONE
        open_moves = self.moves.actions[t][self.moves.actions[t] >= 0]
        names = ", ".join(f"{i} {action_name(move, opening=opening)!r}" for i, move in enumerate(open_moves))
        seat = self.learner[t]
        return IllegalAction(f"table {t}: seat {seat} has no move {action}; its moves: {names}", t, action)

    def _chosen(self, tables: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
        if tables is None:
            return np.ones(len(self.done), np.bool_)
        chosen = np.array(tables, order="C")  # a copy: to compiled code a read-only array is another type
        if chosen.shape != self.done.shape or chosen.dtype != np.bool_:
            raise ValueError(f"tables: give a bool array of shape {self.done.shape}, not {chosen.dtype} {chosen.shape}")
        return chosen

    def _advance(
        self,
        chosen: npt.NDArray[np.bool_],
        rewards: npt.NDArray[np.float32],
        actions: npt.NDArray[np.int64] = _NO_ACTIONS,
    ) -> None:
        """Let the other seats play at the chosen tables until each learner must choose or its episode is over.

        This plays the learners' `actions` first, where there are any.
        """
        batch, lineups = self.batch, self.lineups
        while True:

            def part(lo: int, hi: int, chosen: Any = chosen, actions: Any = actions) -> None:
                views, _ = batch.scratch()
                _advance_scripted(
                    batch.state, self._packed, batch.legal, chosen, actions, self.learner, lineups.of, lineups.weights,
                    lineups.kinds, self._player_streams.states, batch.match, batch.outcome, self.skip_single,
                    batch.equity, batch.chances, views, rewards, self.done, lo, hi,
                )  # fmt: skip

            self._in_parts(part, chosen)
            if not lineups.any_asked:
                return
            chosen = chosen & ~self.done & (batch.seat != self.learner)
            if not chosen.any():
                return
            actions = self._ask(chosen)

    def _ask(self, waiting: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """What the players that are to act at these tables choose, (n,)."""
        batch, players = self.batch, self.lineups.players
        actions = np.zeros(len(waiting), np.int64)
        relative = (batch.seat - self.learner) % self.rules.players
        playing = np.take_along_axis(self.lineups.of, relative[:, None], 1)[:, 0]
        for number in np.unique(playing[waiting]).tolist():
            rows = np.flatnonzero(waiting & (playing == number))
            chosen = players[number].act(batch.views(rows), self._player_streams.rows(rows))
            try:
                actions[rows] = check_actions(chosen, len(rows))
            except ValueError as error:
                raise ValueError(f"player {players[number].name!r}: {error}") from None
        try:
            return batch.checked(actions, waiting)[0]
        except IllegalAction as error:
            name = players[playing[error.table]].name
            raise IllegalAction(f"player {name!r}: {error}", error.table, error.action) from None

    def _in_parts(self, work: Callable[[int, int], None], chosen: npt.NDArray[np.bool_]) -> None:
        """As `Batch.in_parts`; but to wake another thread for a few tables takes longer than to play them."""
        if np.count_nonzero(chosen) < _FEW:
            work(0, len(chosen))
        else:
            self.batch.in_parts(work)

    def arrays(self) -> dict[str, npt.NDArray[np.uint8]]:
        """Copies of all that goes on changing, as bytes: where every table and stream stands."""
        return arrays_of(self._changing())

    def put(
        self, arrays: Mapping[str, npt.NDArray[np.uint8]], beside: Mapping[str, npt.NDArray[Any]] | None = None
    ) -> None:
        """Go on from what `arrays` gave, of tables made with the same arguments.

        Args:
            beside: more arrays to write over, by names in `arrays`: all of them, or none.

        Raises:
            ValueError: arrays of other names or shapes. Nothing has changed.
        """
        put_arrays({**self._changing(), **(beside or {})}, arrays)
        self._observe(np.ones(len(self.done), np.bool_))

    def _changing(self) -> dict[str, npt.NDArray[Any]]:
        batch = self.batch
        return {
            "state": batch.state, "legal": batch.legal, "chances": batch.chances, "learner": self.learner,
            "rewards": self.rewards, "unseen": self._unseen, "done": self.done, "lineups": self.lineups.of,
            "players": self._player_streams.states, "seats": self._seat_streams.states,
        }  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "action_mask": None}  # a view of the array beside it

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self.action_mask = self._mask[:, : self.num_actions]
        self._packed = pack(self.rules)  # a copy is writable: to compiled code another type

    def _observe(self, chosen: npt.NDArray[np.bool_]) -> None:
        if self.moves is not None:
            self.moves.look(self.batch, chosen, self.action_mask)
            return
        observation, mask = self.observation.view(np.uint64), self._mask.view(np.uint64)

        def part(lo: int, hi: int) -> None:
            _observe_learners(
                self.batch.state, self._packed, chosen, self.learner, *self.batch.scratch(), observation, mask,
                self.tokens, lo, hi,
            )  # fmt: skip

        self._in_parts(part, chosen)

    @property
    def observation_space(self) -> spaces.Space[Any]:
        """The space of one learner's observation: a Box, or with `history` a Dict of two."""
        if self.moves is not None:
            return spaces.Box(0, 1, self.moves.rows.shape[1:], np.int8)
        return space_of(self.encoding, self.history)

    def observations(self, rows: Any = slice(None)) -> Any:
        """What the learners of these tables see, in the form of `observation_space`.

        Of the buffers themselves where `rows` is a slice, copies where it is an array, one learner's where a number.
        """
        if self.history is None:
            return self.observation[rows]
        return {"observation": self.observation[rows], "history": self.tokens[rows]}


def space_of(encoding: Encoding, history: History | None) -> spaces.Space[Any]:
    """The space of one observation: int8 (size,), or a dictionary of it and the tokens, int16 (length,)."""
    vector = spaces.Box(0, 1, (encoding.size,), np.int8)
    if history is None:
        return vector
    tokens = spaces.Box(0, history.num_tokens - 1, (history.length,), np.int16)
    return spaces.Dict({"observation": vector, "history": tokens})
