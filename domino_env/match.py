"""`Match`: rounds up to the rules' target, as an object for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._checks import whole
from ._jit import jit
from .events import Deal, Move, RoundResult
from .game import Game, check_rules, lay_out, open_given_deal
from .kernel import start_round
from .rules import RuleSet, pack
from .state import BY_OPENING, NONE, copy_state, new_state
from .tiles import TILE_NAMES, parse_tile


@jit
def _start_round(state: Any, rules: Any) -> None:
    start_round(state[0], rules[0])


def _checked(rules: RuleSet, number: int, deal: Deal) -> Deal:
    """`deal` as `Game.deal` would give it; ValueError where it cannot be one of `rules`."""
    try:
        lay_out(new_state(rules, 1), rules, deal)
        lot = None if deal.lot is None else whole("lot", deal.lot, 0, rules.players - 1)
    except ValueError as error:
        raise ValueError(f"deal {number}: {error}") from None
    opens = number == 0 or rules.tie_starter == "opening"
    redealt = opens and rules.opening == "highest_double" and rules.no_double == "redeal"
    if redealt and not any(name[0] == name[2] for hand in deal.hands for name in hand):
        raise ValueError(f"deal {number}: no hand holds a double, so these tiles are dealt again (no_double='redeal')")
    hands = tuple(tuple(TILE_NAMES[tile] for tile in sorted(map(parse_tile, hand))) for hand in deal.hands)
    return Deal(hands, tuple(TILE_NAMES[parse_tile(name)] for name in deal.boneyard), lot)


class Match:
    """Rounds until a side reaches the target (or one round, where the rules have none).

    Args:
        rules: a `RuleSet`.
        seed: what the deals follow from; None takes fresh entropy. Table 0 of a `Batch` with the same
            seed is dealt the same first round.
        deals: deals to use instead, round by round; after the last one the seed's follow. A deal's
            `lot` says who starts where the rules decide by lots.

    Raises:
        ValueError: a deal `Game.from_deal` would refuse, with its number (from 0).
    """

    def __init__(self, rules: RuleSet, seed: int | None = None, *, deals: Iterable[Deal] = ()) -> None:
        self.rules = check_rules(rules)
        self._deals = [_checked(rules, number, Deal(*deal)) for number, deal in enumerate(deals)]
        self._games: list[Game] = [Game(rules, seed)]
        self._seed = self._games[0].seed
        if self._deals:
            state = copy_state(self._games[0]._state)
            state["next_starter"] = BY_OPENING
            self._games[0] = self._dealt(state, 0)

    def _dealt(self, state: Any, number: int) -> Game:
        """The game of round `number` from its given deal, in a match whose record is `state`."""
        deal = self._deals[number]
        lay_out(state, self.rules, deal)
        open_given_deal(state, pack(self.rules), NONE if deal.lot is None else deal.lot)
        return Game._from_state(self.rules, state)

    def _settle(self) -> None:
        """Deal the next round where one is over and the match is not."""
        state = self._games[-1]._state
        if state[0]["seat"] != NONE or state[0]["over"]:
            return
        state = copy_state(state)
        if len(self._games) < len(self._deals):
            self._games.append(self._dealt(state, len(self._games)))
        else:
            _start_round(state, pack(self.rules))
            self._games.append(Game._from_state(self.rules, state))

    @property
    def game(self) -> Game:
        """The round being played; the last one when the match is over."""
        self._settle()
        return self._games[-1]

    @property
    def games(self) -> tuple[Game, ...]:
        """Every round up to now, the one being played last; copies of those that are over."""
        self._settle()
        return (*(game.copy() for game in self._games[:-1]), self._games[-1])

    def play(self, move: str | Move | int) -> RoundResult | None:
        """Play a move in the current round; its result where the move ended it. The next round is then dealt.

        Raises:
            ValueError: as `Game.play`, or the match is over.
        """
        if self.over:
            raise ValueError(f"the match is over ({self._verdict()}), so {str(move)!r} cannot be played")
        game = self.game
        game.play(move)
        result = game.result
        self._settle()
        return result

    def _verdict(self) -> str:
        return "drawn" if self.winner is None else f"won by side {self.winner}"

    @property
    def results(self) -> tuple[RoundResult, ...]:
        """The results of the rounds that are over."""
        return tuple(game.result for game in self._games if game.result is not None)

    @property
    def seed(self) -> int | None:
        """The seed the deals follow from; None where they follow from fresh entropy."""
        return self._seed

    @property
    def deals(self) -> tuple[Deal, ...]:
        """The deals that were given, those of rounds to come included."""
        return tuple(self._deals)

    @property
    def scores(self) -> list[int]:
        """Points of each side."""
        scores: list[int] = self._games[-1]._state[0]["scores"][: self.rules.num_sides].tolist()
        return scores

    @property
    def round(self) -> int:
        """The number of the round being played, from 1; of the last one when the match is over."""
        self._settle()
        return len(self._games)

    @property
    def multiplier(self) -> int:
        """What the current round's points are multiplied by."""
        return self.game.multiplier

    @property
    def starter(self) -> int:
        """The seat that started the current round."""
        return self.game.starter

    @property
    def over(self) -> bool:
        """Whether the match is over."""
        return bool(self._games[-1]._state[0]["over"])

    @property
    def winner(self) -> int | None:
        """The side that won; None while the match is played, and where a single round was drawn."""
        winner = int(self._games[-1]._state[0]["winner"])
        return None if winner == NONE or not self.over else winner

    def copy(self) -> Match:
        """A match of its own, at the same point, with the same deals to come."""
        other = Match.__new__(Match)
        other.rules, other._seed, other._deals = self.rules, self._seed, self._deals.copy()
        other._games = [game.copy() for game in self._games]
        return other

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Match:
        return self.copy()

    def __eq__(self, other: object) -> bool:
        """Same rules, rounds and plays."""
        if not isinstance(other, Match):
            return NotImplemented
        return self.rules == other.rules and self.games == other.games

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        state = self._verdict() if self.over else f"round {self.round}"
        return f"<Match of {self.rules.players} players, scores {self.scores}, {state}>"
