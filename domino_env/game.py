"""`Game`: one round as an object for people.

A game is a batch of one table: every rule is applied by the compiled kernel. Tiles go in and out as
names (``"6-4"`` and ``"4-6"`` are the same tile), moves as names, `Move` objects or action ids.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._jit import jit
from ._rng import below, check_seed, seed_streams
from .batch import illegal_action
from .events import MOVES, Deal, Event, Move, RoundResult, View, chain_of, events_of
from .kernel import is_legal, nth_legal, num_legal, open_dealt, open_round, play, start_match
from .observation import look_many, new_views
from .rules import RuleSet, pack
from .scoring import pips_in
from .state import BY_OPENING, FINISH_NAMES, NONE, REASON_NAMES, State, new_state
from .tiles import ACTION_NAMES, LEFT, TILE_NAMES, parse_move, parse_tile, tiles_in


@jit
def _try(state: Any, rules: Any, action: int) -> bool:
    if not is_legal(state[0], rules[0], action):
        return False
    play(state[0], rules[0], action)
    return True


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


def whole(name: str, value: Any, low: int, high: int) -> int:
    """`value` as an int from `low` to `high`; ValueError naming it where it is not."""
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if isinstance(value, bool) or not low <= number <= high:
        raise ValueError(f"{name}={value!r} is not a whole number from {low} to {high}")
    return number


def check_rules(rules: Any) -> RuleSet:
    """`rules` if they are a RuleSet; ValueError otherwise."""
    if not isinstance(rules, RuleSet):
        raise ValueError(f"rules={rules!r} is not a RuleSet: take PRESETS['duplas'] or make_rules('duplas', ...)")
    return rules


def tile_names(tiles: int) -> list[str]:
    """The names of a set of tiles."""
    return [TILE_NAMES[tile] for tile in tiles_in(tiles)]


class Game:
    """One round.

    Args:
        rules: a `RuleSet`, such as ``PRESETS["duplas"]`` or ``make_rules("duplas", target=10)``.
        seed: what the deal follows from; None takes fresh entropy. The same seed gives the deal of
            table 0 of a `Batch` and the first round of a `Match`.
    """

    __slots__ = ("_actions", "_packed", "_start", "_state", "rules")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, rules: RuleSet, seed: int | None = None) -> None:
        self.rules = check_rules(rules)
        self._packed = pack(rules)
        self._state = new_state(rules, 1)
        seed_streams(check_seed(seed), 0, self._state["rng"])
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

        Raises:
            ValueError: a wrong tile, one that is given twice, an empty hand, a wrong seat.
        """
        game = cls.__new__(cls)
        game.rules = check_rules(rules)
        game._packed = pack(rules)
        game._state = new_state(rules, 1)
        lay_out(game._state, rules, Deal(tuple(tuple(hand) for hand in hands), tuple(boneyard)))
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
        game.rules, game._packed, game._state = rules, pack(rules), state
        game._begin()
        return game

    def _begin(self) -> None:
        self._start = self._state.copy()
        self._actions: list[int] = []

    @property
    def seat(self) -> int | None:
        """The seat that must act; None when the round is over."""
        seat = self._state["seat"].item()
        return None if seat == NONE else seat

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
        left, right = self._state["legal"][0].tolist()
        opening = MOVES[not self._actions]
        found = []
        both = left | right
        while both:
            bit = both & -both
            tile = bit.bit_length() - 1
            if left & bit:
                found.append(opening[2 * tile])
            if right & bit:
                found.append(opening[2 * tile + 1])
            both ^= bit
        return found

    def play(self, move: str | Move | int) -> None:
        """Play a move of the seat to act, with the draws and passes that are forced after it.

        Args:
            move: a name (``"6-4L"``; the end may be left out where the tile fits only one), a `Move`
                from `legal_moves`, or an action id.

        Raises:
            ValueError: not a move, or (`IllegalAction`) one that may not be played. Nothing has changed.
        """
        action = move[0] if type(move) is Move else self._action_of(move)
        if not _try(self._state, self._packed, action):
            raise illegal_action(self._state, 0, action)
        self._actions.append(action)

    def _action_of(self, move: Any) -> int:
        if not isinstance(move, str):
            try:
                action = operator.index(move)
            except TypeError:
                raise ValueError(f"{move!r} is not a move: give a name such as '6-4L', a Move or an action id") from None
            if isinstance(move, bool) or abs(action) >= 2**63:
                raise ValueError(f"{move!r} is not a move: give a name such as '6-4L', a Move or an action id")
            return action
        tile, end = parse_move(move, self.rules.max_pip)
        if end is None:
            left, right = (int(word) >> tile & 1 for word in self._state[0]["legal"])
            if left and right:
                raise ValueError(f"{move!r} fits both ends: say {ACTION_NAMES[2 * tile]} or {ACTION_NAMES[2 * tile + 1]}")
            end = 1 if right else LEFT
        return 2 * tile + end

    def play_out(self, seed: int | None = None) -> RoundResult:
        """Play uniformly random legal moves to the end of the round, in one compiled call."""
        stream = np.zeros((1, 4), np.uint32)
        seed_streams(check_seed(seed), 0, stream, purpose=1)
        actions = np.zeros(self.rules.num_tiles, np.int64)
        self._actions += actions[: _play_out(self._state, self._packed, stream, actions)].tolist()
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
        self._state = self._start.copy()
        _replay(self._state, self._packed, np.array(self._actions, np.int64))
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
        seen, row, players = record[0], self._state[0], self.rules.players
        events = events_of(seen["events"][: seen["num_events"]], players, seat)
        return View(
            rules=self.rules,
            seat=seat,
            hand=tile_names(int(seen["hand"])),
            ends=self.ends,
            chain=chain_of(events),
            events=events,
            counts=np.roll(seen["counts"][:players], seat).tolist(),
            boneyard=int(seen["boneyard"]),
            to_act=self.seat,
            legal_moves=self.legal_moves() if self.seat == seat else [],
            starter=int(row["starter"]),
            scores=row["scores"][: self.rules.num_sides].tolist(),
            multiplier=int(seen["multiplier"]),
            hands=self.hands if self.seat is None else None,
            record=record,
        )

    def copy(self) -> Game:
        """A game of its own, at the same point."""
        other = Game.__new__(Game)
        other.rules, other._packed, other._start = self.rules, self._packed, self._start  # never written to
        other._state, other._actions = self._state.copy(), self._actions.copy()
        return other

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Game:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_game, (self.rules, self._start, self._actions)

    def __eq__(self, other: object) -> bool:
        """Same rules, tiles, starter, scores and plays."""
        if not isinstance(other, Game):
            return NotImplemented
        same_deal = self.rules == other.rules and self.deal == other.deal
        fields = ("starter", "forced", "multiplier", "scores")
        return same_deal and self._actions == other._actions and all(
            np.array_equal(self._start[name], other._start[name]) for name in fields
        )

    def __repr__(self) -> str:
        acting = "over" if self.seat is None else f"seat {self.seat} to act"
        return f"<Game of {self.rules.players} players, {len(self._actions)} played, ends {self.ends}, {acting}>"


def _rebuild_game(rules: RuleSet, start: State, actions: list[int]) -> Game:
    game = Game._from_state(rules, start)
    _replay(game._state, game._packed, np.array(actions, np.int64))
    game._actions = actions
    return game
