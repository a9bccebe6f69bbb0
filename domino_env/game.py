"""`Game`: one round as an object for people.

A game is a batch of one table: every rule is applied by the compiled kernel. Tiles go in and out as
names (``"6-4"`` and ``"4-6"`` are the same tile), moves as names, `Move` objects or action ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ._checks import integer, whole
from ._jit import jit
from ._rng import below, check_seed, seed_streams
from .batch import illegal_action
from .events import (
    MOVES,
    Deal,
    Event,
    Move,
    RoundResult,
    View,
    chain_of,
    events_of,
    moves_of,
    tile_names,
    view_of,
)
from .kernel import is_legal, nth_legal, num_legal, open_dealt, open_round, play, start_match
from .observation import look_many, new_views
from .rules import RuleSet, pack
from .scoring import pips_in
from .state import BY_OPENING, FINISH_NAMES, NONE, REASON_NAMES, State, copy_state, new_state
from .tiles import ACTION_NAMES, LEFT, TILE_NAMES, parse_move, parse_tile

_ILLEGAL: Final = -2


@jit
def _now(state: Any) -> Any:
    """(seat to act, tiles it may play at the left, at the right)."""
    return np.int64(state[0]["seat"]), state[0]["legal"][0], state[0]["legal"][1]


@jit
def _try(state: Any, rules: Any, action: int) -> Any:
    """Play an action; what `_now` then gives, with _ILLEGAL for the seat where it may not be played."""
    if not is_legal(state[0], rules[0], action):
        return _ILLEGAL, state[0]["legal"][0], state[0]["legal"][1]
    play(state[0], rules[0], action)
    return _now(state)


@jit
def _replay(state: Any, rules: Any, actions: Any) -> None:
    for action in actions:
        play(state[0], rules[0], action)


@jit
def _play_out(state: Any, rules: Any, stream: Any, actions: Any) -> int:
    played = 0
    while state[0]["seat"] != NONE:
        actions[played] = nth_legal(state[0], below(stream[0], num_legal(state[0])))
        play(state[0], rules[0], actions[played])
        played += 1
    return played


@jit
def open_given_deal(state: Any, rules: Any, lot: int) -> bool:
    """`kernel.open_dealt` for a state of one table."""
    return open_dealt(state[0], rules[0], lot)


@jit
def _open_given(state: Any, rules: Any, starter: int, forced: int, multiplier: int) -> None:
    open_round(state[0], rules[0], starter, forced, multiplier)


@jit
def _start_match(state: Any, rules: Any) -> None:
    start_match(state[0], rules[0])


def lay_out(state: State, rules: RuleSet, deal: Deal) -> None:
    """Put a deal's tiles into a state's first record: hands and boneyard.

    Raises:
        ValueError: a wrong number of hands, an empty hand, a wrong tile, or one that is given twice.
    """
    row = state[0]
    if len(deal.hands) != rules.players:
        raise ValueError(f"hands: {len(deal.hands)} given for {rules.players} players")
    where: dict[int, str] = {}
    places = [(f"the hand of seat {seat}", hand) for seat, hand in enumerate(deal.hands)]
    for place, names in [*places, ("the boneyard", deal.boneyard)]:
        if isinstance(names, str):
            raise ValueError(f"{place} is {names!r}; give a list of tiles")
        for name in names:
            tile = parse_tile(name, rules.max_pip)
            if tile in where:
                raise ValueError(f"tile {name!r} in {place} was already given in {where[tile]}")
            where[tile] = place
    for seat, hand in enumerate(deal.hands):
        if not hand:
            raise ValueError(f"the hand of seat {seat} is empty: that round is over before it starts")
        row["hands"][seat] = sum(1 << parse_tile(name) for name in hand)
    boneyard = [parse_tile(name) for name in deal.boneyard]
    row["deck"][: len(boneyard)] = boneyard
    row["top"], row["bottom"] = 0, len(boneyard)


def check_scores(rules: RuleSet, scores: Sequence[int]) -> list[int]:
    """`scores` as ints, one a side, all below the target; ValueError where they are not."""
    if len(scores) != rules.num_sides:
        raise ValueError(f"scores: {len(scores)} given for {rules.num_sides} sides")
    highest = 2**53 if rules.target is None else rules.target - 1
    return [whole(f"scores: side {side}", score, 0, highest) for side, score in enumerate(scores)]


def check_rules(rules: Any) -> RuleSet:
    """`rules` if they are a RuleSet; ValueError otherwise."""
    if not isinstance(rules, RuleSet):
        raise ValueError(f"rules={rules!r} is not a RuleSet: take PRESETS['duplas'] or make_rules('duplas', ...)")
    return rules


class Game:
    """One round.

    Args:
        rules: a `RuleSet`, such as ``PRESETS["duplas"]`` or ``make_rules("duplas", target=10)``.
        seed: what the deal follows from; None takes fresh entropy. The same seed gives the deal of
            table 0 of a `Batch` and the first round of a `Match`.
    """

    __slots__ = ("_actions", "_now", "_packed", "_seed", "_start", "_state", "rules")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, rules: RuleSet, seed: int | None = None) -> None:
        self.rules = check_rules(rules)
        self._packed = pack(rules)
        self._seed = None if seed is None else check_seed(seed)
        self._state = new_state(rules, 1)
        seed_streams(check_seed(self._seed), 0, self._state["rng"])
        _start_match(self._state, self._packed)
        self._begin()

    @classmethod
    def from_deal(
        cls,
        rules: RuleSet,
        hands: Sequence[Sequence[str]],
        boneyard: Sequence[str] = (),
        starter: int | None = 0,
        forced: str | None = None,
        multiplier: int = 1,
        *,
        first_round: bool = False,
        scores: Sequence[int] | None = None,
        seed: int | None = None,
    ) -> Game:
        """A round from given tiles. Hands may have any size of at least 1, and tiles may be missing.

        Args:
            hands: tile names, one list a seat.
            boneyard: tile names; the first is drawn next.
            starter: the seat that starts. None: as the rules say for a first round (a lot is drawn from `seed`).
            forced: the tile that must open, one of the starter's.
            multiplier: what the round's points are multiplied by.
            first_round: the opening tile is forced where the rules say so, and `starter` must agree with them.
            scores: points of each side before the round; nil all by default.

        Raises:
            ValueError: a wrong tile, one that is given twice, an empty hand, a wrong seat, a score that ends the match.
        """
        game = cls.__new__(cls)
        game.rules, game._seed = check_rules(rules), None
        game._packed = pack(rules)
        game._state = new_state(rules, 1)
        # A text is left as it is, for lay_out to refuse it.
        given: list[Any] = [tiles if isinstance(tiles, str) else tuple(tiles) for tiles in (*hands, boneyard)]
        lay_out(game._state, rules, Deal(tuple(given[:-1]), given[-1]))
        if scores is not None:
            game._state["scores"][0, : rules.num_sides] = check_scores(rules, scores)
        multiplier = whole("multiplier", multiplier, 1, 2**31)
        if starter is not None:
            starter = whole("starter", starter, 0, rules.players - 1)
        if starter is None or first_round:
            if forced is not None:
                raise ValueError(f"forced={forced!r}: the rules of a first round decide the opening tile; leave it out")
            seed_streams(check_seed(seed), 0, game._state["rng"])
            game._state["next_starter"] = BY_OPENING
            if not open_given_deal(game._state, game._packed, NONE if starter is None else starter):
                raise ValueError("no hand holds a double: with no_double='redeal' these tiles are dealt again")
            by_rules = int(game._state[0]["starter"])
            if starter is not None and by_rules != starter:
                raise ValueError(f"starter={starter}: seat {by_rules} holds the tile that opens a first round")
            starter, tile = by_rules, int(game._state[0]["forced"])
        else:
            tile = NONE if forced is None else parse_tile(forced, rules.max_pip)
            if tile != NONE and not int(game._state[0]["hands"][starter]) >> tile & 1:
                raise ValueError(f"forced={forced!r}: seat {starter}, which starts, does not hold it")
        _open_given(game._state, game._packed, starter, tile, multiplier)
        game._begin()
        return game

    @classmethod
    def _from_state(cls, rules: RuleSet, state: State) -> Game:
        game = cls.__new__(cls)
        game.rules, game._packed, game._seed, game._state = rules, pack(rules), None, state
        game._begin()
        return game

    def _begin(self) -> None:
        self._start = copy_state(self._state)
        self._actions: list[int] = []
        self._look()

    def _look(self) -> None:
        """Keep at hand what is asked for most: the seat to act and its legal tiles."""
        self._now: tuple[int, int, int] = _now(self._state)

    @property
    def seat(self) -> int | None:
        """The seat that must act; None when the round is over."""
        seat = self._now[0]
        return None if seat == NONE else int(seat)

    @property
    def ends(self) -> tuple[int, int] | None:
        """The chain's open numbers (left, right); None before the first tile."""
        left = self._state["left"].item()
        return None if left == NONE else (left, self._state["right"].item())

    @property
    def hands(self) -> list[list[str]]:
        """Each seat's tiles."""
        return [tile_names(hand) for hand in self._state["hands"][0].tolist()[: self.rules.players]]

    @property
    def boneyard(self) -> list[str]:
        """The tiles nobody holds; the first is drawn next."""
        row = self._state[0]
        return [TILE_NAMES[tile] for tile in row["deck"][row["top"] : row["bottom"]].tolist()]

    @property
    def chain(self) -> list[str]:
        """The tiles on the table, left to right, each written the way it lies."""
        return chain_of(self.events)

    @property
    def starter(self) -> int:
        """The seat that started the round."""
        return int(self._state[0]["starter"])

    @property
    def forced(self) -> str | None:
        """The tile that had to open the round, if any."""
        tile = int(self._state[0]["forced"])
        return None if tile == NONE else TILE_NAMES[tile]

    @property
    def multiplier(self) -> int:
        """What the round's points are multiplied by."""
        return int(self._state[0]["multiplier"])

    @property
    def scores(self) -> list[int]:
        """Points of each side, with the round's once it is over."""
        scores: list[int] = self._state[0]["scores"][: self.rules.num_sides].tolist()
        return scores

    @property
    def seed(self) -> int | None:
        """The seed that dealt it; None where it was dealt otherwise, or from fresh entropy."""
        return self._seed

    @property
    def deal(self) -> Deal:
        """The tiles as they were dealt."""
        row = self._start[0]
        hands = tuple(tuple(tile_names(hand)) for hand in row["hands"].tolist()[: self.rules.players])
        return Deal(hands, tuple(TILE_NAMES[tile] for tile in row["deck"][row["top"] : row["bottom"]].tolist()))

    @property
    def moves(self) -> list[Move]:
        """The moves played up to now."""
        return [MOVES[i == 0][action] for i, action in enumerate(self._actions)]

    def legal_moves(self) -> list[Move]:
        """What the seat to act may play, by action id; empty when the round is over."""
        return moves_of(self._now[1], self._now[2], not self._actions)

    def play(self, move: str | Move | int) -> None:
        """Play a move of the seat to act, with the draws and passes that are forced after it.

        Args:
            move: a name (``"6-4L"``; the end may be left out where the tile fits only one), a `Move`
                from `legal_moves`, or an action id.

        Raises:
            ValueError: not a move, or (`IllegalAction`) one that may not be played. Nothing has changed.
        """
        action = move[0] if type(move) is Move else move
        if type(action) is not int or not 0 <= action < len(ACTION_NAMES):
            action = self._action_of(action)
        now = _try(self._state, self._packed, action)
        if now[0] == _ILLEGAL:
            raise illegal_action(self._state, 0, action)
        self._now = now
        self._actions.append(action)

    def _action_of(self, move: Any) -> int:
        if not isinstance(move, str):
            action = integer(move)
            if action is None or abs(action) >= 2**63:
                raise ValueError(f"{move!r} is not a move: give a name such as '6-4L', a Move or an action id")
            return action
        tile, end = parse_move(move, self.rules.max_pip)
        if end is None:
            left, right = (word >> tile & 1 for word in self._now[1:])
            if left and right:
                raise ValueError(
                    f"{move!r} fits both ends: say {ACTION_NAMES[2 * tile]} or {ACTION_NAMES[2 * tile + 1]}"
                )
            end = 1 if right else LEFT
        return 2 * tile + end

    def play_out(self, seed: int | None = None) -> RoundResult:
        """Play uniformly random legal moves to the end of the round, in one compiled call."""
        stream = np.zeros((1, 4), np.uint32)
        seed_streams(check_seed(seed), 0, stream, purpose=1)
        actions = np.zeros(self.rules.num_tiles, np.int64)
        self._actions += actions[: _play_out(self._state, self._packed, stream, actions)].tolist()
        self._look()
        result = self.result
        assert result is not None
        return result

    def undo(self) -> Move:
        """Take back the last play with all that followed from it, and return it.

        Raises:
            ValueError: nothing has been played.
        """
        if not self._actions:
            raise ValueError("nothing to undo: no tile has been played")
        move = self.moves[-1]
        del self._actions[-1]
        self._state = copy_state(self._start)
        _replay(self._state, self._packed, np.array(self._actions, np.int64))
        self._look()
        return move

    @property
    def events(self) -> tuple[Event, ...]:
        """Every play, draw and pass up to now, in order, with the tiles that were drawn."""
        row = self._state[0]
        return events_of(row["events"][: row["num_events"]])

    @property
    def result(self) -> RoundResult | None:
        """How the round ended; None while it is played."""
        row = self._state[0]
        if row["seat"] != NONE:
            return None
        seat, side, starter = int(row["winning_seat"]), int(row["winning_side"]), int(row["next_starter"])
        return RoundResult(
            reason=str(REASON_NAMES[row["reason"]]),
            seat=None if seat == NONE else seat,
            side=None if side == NONE else side,
            finish=FINISH_NAMES[row["finish"]],
            base=int(row["base"]),
            multiplier=int(row["multiplier"]),
            points=int(row["points"]),
            pips=tuple(int(pips_in(hand)) for hand in row["hands"][: self.rules.players]),
            last_placer=int(row["last"]),
            next_starter=None if starter < 0 else starter,
        )

    def view(self, seat: int) -> View:
        """What `seat` knows; all hands too once the round is over."""
        seat = whole("seat", seat, 0, self.rules.players - 1)
        record = new_views(self.rules, 1)
        look_many(self._state, self._packed, np.zeros(1, np.int64), np.array([seat]), record)
        return view_of(self.rules, record, self.hands if self.seat is None else None)

    def copy(self) -> Game:
        """A game of its own, at the same point."""
        other = Game.__new__(Game)
        other.rules, other._packed, other._start = self.rules, self._packed, self._start  # never written to
        other._seed = self._seed
        other._state, other._actions, other._now = copy_state(self._state), self._actions.copy(), self._now
        return other

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Game:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_game, (self.rules, self._seed, self._start, self._actions)

    def __eq__(self, other: object) -> bool:
        """Same rules, tiles, starter, scores and plays."""
        if not isinstance(other, Game):
            return NotImplemented
        same_deal = self.rules == other.rules and self.deal == other.deal
        fields = ("starter", "forced", "multiplier", "scores")
        return (
            same_deal
            and self._actions == other._actions
            and all(np.array_equal(self._start[name], other._start[name]) for name in fields)
        )

    def __repr__(self) -> str:
        acting = "over" if self.seat is None else f"seat {self.seat} to act"
        return f"<Game of {self.rules.players} players, {len(self._actions)} played, ends {self.ends}, {acting}>"


def _rebuild_game(rules: RuleSet, seed: int | None, start: State, actions: list[int]) -> Game:
    game = Game._from_state(rules, start)
    game._seed = seed
    _replay(game._state, game._packed, np.array(actions, np.int64))
    game._actions = actions
    game._look()
    return game
