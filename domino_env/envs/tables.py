"""Tables with one learning seat each, the other seats played by players: what single-agent environments share.

One step is the learner's move and all that happens until it must choose again or the episode ends.
Scripted opponents play inside the compiled step; other players are asked for all tables at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from .._checks import whole
from .._jit import jit, popcount
from .._rng import Seeds, check_seed, check_seeds, is_many, next_u32, seed_rows
from ..batch import Batch, IllegalAction, check_actions, keep_legal, settle
from ..bots import ScriptedPlayer, make_player
from ..bots.scripted import choose
from ..game import check_rules
from ..history import History, write_tokens
from ..kernel import nth_action, play
from ..observation import Encoding, encode, expand, expand_mask, look, look_events, new_masks
from ..players import Player, PlayerSpec, Streams
from ..rules import RuleSet, pack
from ..state import NONE

_NO_ACTIONS = np.zeros(0, np.int64)
_ALL_ONES = np.uint64(0x0101010101010101)
_S32 = np.uint64(32)
_FEW = 256


@jit
def _advance_scripted(  # type: ignore[no-untyped-def]
    state, rules, legal, chosen, actions, learner, weights, blind, streams, match, outcome, equity, chances, views,
    rewards, done, lo, hi,
):  # fmt: skip
    """At each chosen table play the learner's action, if it is its turn (and there are `actions`).

    Then let scripted players play until the learner must choose or the episode is over.
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
                relative = (seat - learner[t]) % players
                bits = next_u32(streams[t])
                if blind[relative]:  # as `choose` would, where all moves are equally good
                    left, right = row["legal"][0], row["legal"][1]
                    count = np.uint64(popcount(left) + popcount(right))
                    action = nth_action(left, right, int(np.int64(bits * count >> _S32)))
                else:
                    look(row, rules[0], seat, view)
                    action = choose(view, rules[0], weights[relative], bits)
            for side in range(sides):
                row["rewards"][side] = 0.0
            play(row, rules[0], action)
            done[t] = settle(row, rules[0], match, outcome, False, equity, chances[t])
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


class LearnerTables:
    """n tables with a learner at each.

    Args:
        rules: the rules of every table.
        n: how many tables.
        opponents: who plays the other sides: a player for all, or one for each such seat in turn order after
            the learner.
        partner: who plays the learner's partner, where there are pairs; by default as the first opponent.
        seat: the learner's seat, or None to draw it anew each episode.
        episode, reward: as in `Batch`.
        history: write `tokens` too.
        threads: as in `Batch`; with players other than scripted ones their own code takes most of the time.

    Attributes:
        observation: int8 (n, size), what the learners see, the end of an episode included. Written over by each step.
        tokens: int16 (n, length), the round's events as each learner has seen them (see `History`); (0, length)
            without `history`. Written over by each step.
        action_mask: int8 (n, actions); all ones at the end of an episode.
        rewards: float32 (n,), what the learners' sides gained in the last step. What they gained in rounds
            of a match that ended before their first decision comes with the first step.
        done: bool (n,), whether the episode is over; it stays so until `reset`.
        learner: int64 (n,), the learners' seats.
    """

    def __init__(
        self,
        rules: RuleSet,
        n: int,
        *,
        opponents: PlayerSpec | Sequence[PlayerSpec] = "random",
        partner: PlayerSpec | None = None,
        seat: int | None = None,
        episode: Any = "round",
        reward: Any = "points",
        history: bool = False,
        threads: int | None = None,
        seed: int | None = None,
    ) -> None:
        self.rules = check_rules(rules)
        self.history = History(rules) if history else None
        self.seat = None if seat is None else whole("seat", seat, 0, rules.players - 1)
        self.players = seat_players(rules, opponents, partner)
        seed = check_seed(seed)
        self.batch = Batch(
            rules, n, seed, episode=episode, reward=reward, autoreset=False, observe=False, threads=threads
        )
        self.encoding = self.batch.encoding
        self._packed = pack(rules)
        self.learner = np.zeros(n, np.int64)
        self.rewards = np.zeros(n, np.float32)
        self._unseen = np.zeros(n, np.float32)  # gained in this episode before the learner's first decision
        self.done = np.zeros(n, np.bool_)
        self.observation = np.zeros((n, self.encoding.size), np.int8)
        self.tokens = np.zeros((n if history else 0, rules.max_events), np.int16)
        self._mask = new_masks(n, rules.num_actions)
        self.action_mask = self._mask[:, : rules.num_actions]
        # A class that overrides `act` is asked as any other player.
        scripted = [
            player
            for player in self.players
            if isinstance(player, ScriptedPlayer) and type(player).act is ScriptedPlayer.act
        ]
        self._weights = (
            np.concatenate([scripted[0].weights, *(player.weights for player in scripted)])
            if len(scripted) == rules.players - 1
            else None
        )
        self._blind = np.zeros(rules.players, np.bool_)  # seats, from the learner's, that draw among all moves
        if self._weights is not None:
            self._blind[:] = (self._weights["draws"] != 0) & ~self._weights["values"].any(axis=1)
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
        actions, active = self.batch.checked(actions, self._chosen(tables) & ~self.done)
        self.rewards[:] = np.where(active, self._unseen, 0.0)
        self._unseen[active] = 0.0
        if self._weights is None:
            self.batch.step(actions, tables=active)
            self._collect(active, self.rewards)
        self._advance(active, self.rewards, actions)
        self._observe(active)

    def _chosen(self, tables: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
        if tables is None:
            return np.ones(len(self.done), np.bool_)
        chosen = np.array(tables, order="C")  # a copy: to compiled code a read-only array is another type
        if chosen.shape != self.done.shape or chosen.dtype != np.bool_:
            raise ValueError(f"tables: give a bool array of shape {self.done.shape}, not {chosen.dtype} {chosen.shape}")
        return chosen

    def _collect(self, stepped: npt.NDArray[np.bool_], rewards: npt.NDArray[np.float32]) -> None:
        rows = np.flatnonzero(stepped)
        rewards[rows] += self.batch.rewards[rows, self.learner[rows] % self.rules.num_sides]
        self.done[rows] = self.batch.done[rows]

    def _advance(
        self,
        chosen: npt.NDArray[np.bool_],
        rewards: npt.NDArray[np.float32],
        actions: npt.NDArray[np.int64] = _NO_ACTIONS,
    ) -> None:
        """Let the other seats play at the chosen tables until each learner must choose or its episode is over.

        Where all of them are scripted this also plays the learners' `actions` first.
        """
        batch = self.batch
        if self._weights is not None:

            def part(lo: int, hi: int) -> None:
                views, _ = batch.scratch()
                _advance_scripted(
                    batch.state, self._packed, batch.legal, chosen, actions, self.learner, self._weights, self._blind,
                    self._player_streams.states, batch.match, batch.outcome, batch.equity, batch.chances, views,
                    rewards, self.done, lo, hi,
                )  # fmt: skip

            self._in_parts(part, chosen)
            return
        while True:
            waiting = chosen & ~self.done & (batch.seat != self.learner)
            if not waiting.any():
                return
            answers = np.zeros(len(waiting), np.int64)
            relative = (batch.seat - self.learner) % self.rules.players
            for player in dict.fromkeys(self.players):
                seats = [1 + i for i, other in enumerate(self.players) if other is player]
                rows = np.flatnonzero(waiting & np.isin(relative, seats))
                if len(rows):
                    chosen_by = player.act(batch.views(rows), self._player_streams.rows(rows))
                    try:
                        answers[rows] = check_actions(chosen_by, len(rows))
                    except ValueError as error:
                        raise ValueError(f"player {player.name!r}: {error}") from None
            try:
                batch.step(answers, tables=waiting)
            except IllegalAction as error:
                name = self.players[relative[error.table] - 1].name
                raise IllegalAction(f"player {name!r}: {error}", error.table, error.action) from None
            self._collect(waiting, rewards)

    def _in_parts(self, work: Callable[[int, int], None], chosen: npt.NDArray[np.bool_]) -> None:
        """As `Batch.in_parts`; but to wake another thread for a few tables takes longer than to play them."""
        if np.count_nonzero(chosen) < _FEW:
            work(0, len(chosen))
        else:
            self.batch.in_parts(work)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "action_mask": None}  # a view of the array beside it

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self.action_mask = self._mask[:, : self.rules.num_actions]
        self._packed = pack(self.rules)  # a copy is writable: to compiled code another type

    def _observe(self, chosen: npt.NDArray[np.bool_]) -> None:
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


def seat_players(
    rules: RuleSet, opponents: PlayerSpec | Sequence[PlayerSpec], partner: PlayerSpec | None
) -> list[Player]:
    """The players of the seats after the learner's, in turn order.

    Raises:
        ValueError: an unknown player, a partner where there are no pairs, a wrong number of opponents.
    """
    others = range(1, rules.players)
    opposing = [seat for seat in others if rules.side_of(seat) != 0]
    if isinstance(opponents, Sequence) and not isinstance(opponents, str):
        specs = list(opponents)
    else:
        specs = [opponents] * len(opposing)
    if len(specs) != len(opposing):
        raise ValueError(f"opponents: {len(specs)} given; a learner here has {len(opposing)}, or give one for all")
    if partner is not None and not rules.pairs:
        raise ValueError(f"partner={partner!r}: these rules have no pairs, so a learner has no partner")
    by_seat = dict(zip(opposing, specs, strict=True))
    made: dict[Any, Player] = {}  # one player for all seats with the same name
    players = []
    for seat in others:
        spec = by_seat[seat] if seat in by_seat else (partner if partner is not None else specs[0])
        key = spec if isinstance(spec, str) else id(spec)
        if key not in made:
            made[key] = make_player(spec, rules)
        players.append(made[key])
    return players
