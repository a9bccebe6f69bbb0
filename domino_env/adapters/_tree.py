"""A round as a game tree: what the tiles decide is a chance node, what a seat decides a decision.

The kernel plays a round from tiles in a known order. Here that order is made up as it is needed: a
`Node` deals tile by tile, and where a play makes seats draw, the tiles drawn come one by one from
chance nodes. No rule is applied outside the kernel: a play is tried with the drawn tiles known up to
now, and where the kernel took more of them, the next one is asked for and the play tried again.

Every deal is one path: a hand is dealt in the tiles' order, with the probabilities that make all
deals equally likely. Chance nodes with a single outcome are passed over.
"""

from __future__ import annotations

from math import comb
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .._jit import jit
from ..batch import illegal_action, settle
from ..game import open_given_deal
from ..kernel import is_legal, play
from ..observation import Views, encoding_of, look_many, new_views
from ..rules import RuleSet, pack
from ..state import BY_OPENING, DRAW, NONE, State, copy_state, new_state
from ..tiles import DOUBLES, tiles_in

DEAL: Final = "deal"
LOT: Final = "lot"
DECISION: Final = "decision"
DRAWING: Final = "draw"
OVER: Final = "over"

_NOWHERE: Final = (
    "seat", "left", "right", "left_owner", "right_owner", "starter", "last", "forced", "drawer", "winning_seat",
    "winning_side",
)  # fmt: skip


@jit
def _play(state: Any, rules: Any, action: int) -> None:
    play(state[0], rules[0], action)


@jit
def _is_legal(state: Any, rules: Any, action: int) -> bool:
    return is_legal(state[0], rules[0], action)


@jit
def _reward(state: Any, rules: Any, outcome: bool) -> None:
    settle(state[0], rules[0], False, outcome, False)


def deal_outcomes(rules: RuleSet, dealt: list[int]) -> list[tuple[int, float]]:
    """(tile, probability) of the next tile dealt, after hands `dealt` (bit masks): higher than those of its hand.

    Where hands without a double are dealt again, those deals have probability 0, as after dealing again.
    """
    seat = next(seat for seat, hand in enumerate(dealt) if hand.bit_count() < rules.hand_size)
    missing = rules.hand_size - dealt[seat].bit_count()
    later = rules.hand_size * (rules.players - seat - 1)
    taken = sum(dealt)
    rest = [tile for tile in range(rules.num_tiles) if not taken >> tile & 1]
    candidates = [tile for tile in rest if tile >= dealt[seat].bit_length()]
    doubles = int(DOUBLES)
    redealt = rules.opening == "highest_double" and rules.no_double == "redeal" and not taken & doubles
    # The share of deals without any double, among those in which this hand has none.
    plain, others = sum(not doubles >> tile & 1 for tile in rest) - missing, len(rest) - missing
    share = comb(max(plain, 0), later) / comb(others, later) if redealt else 0.0
    weights = []
    for i, tile in enumerate(candidates):
        after = candidates[i + 1 :]
        weight: float = comb(len(after), missing - 1)
        if redealt and not doubles >> tile & 1:
            weight -= share * comb(sum(not doubles >> other & 1 for other in after), missing - 1)
        weights.append(weight)
    total = sum(weights)
    return [(tile, weight / total) for tile, weight in zip(candidates, weights, strict=True) if weight > 0]


class Node:
    """A point of a round: the tiles known up to now, and what happens next.

    Args:
        rules: a rule set; the round is the first of a match.
        outcome: rewards +1 and −1 for winning, instead of the round's points.
    """

    __slots__ = ("_action", "_before", "_drawn", "_packed", "_tried", "dealt", "kind", "outcome", "rules", "state")

    def __init__(self, rules: RuleSet, outcome: bool = False) -> None:
        self.rules, self.outcome = rules, outcome
        self._packed = pack(rules)
        #: One table's record: complete at decisions and at the end; at a draw, as it was before the play.
        self.state: State = new_state(rules, 1)
        for name in _NOWHERE:
            self.state[name] = NONE
        self.state["multiplier"], self.state["next_starter"] = 1, BY_OPENING
        self.state["bottom"] = rules.boneyard_size
        #: Each seat's tiles as dealt up to now, a bit a tile.
        self.dealt = [0] * rules.players
        #: What is next: DEAL, LOT, DRAWING (chance), DECISION, or OVER.
        self.kind = DEAL
        self._action, self._drawn = NONE, list[int]()
        self._before: State | None = None
        self._tried: State | None = None
        self._deal_what_is_certain()

    @property
    def seat(self) -> int:
        """Who decides; NONE at chance nodes and at the end."""
        return int(self.state[0]["seat"]) if self.kind == DECISION else NONE

    @property
    def next_seat(self) -> int:
        """Whom the next tile goes to, at a chance node."""
        if self.kind == DRAWING:
            assert self._tried is not None
            return int(self._tried[0]["events"][self.num_events]) >> 3 & 15
        return next((seat for seat, hand in enumerate(self.dealt) if hand.bit_count() < self.rules.hand_size), NONE)

    @property
    def num_events(self) -> int:
        """Plays, draws and passes up to now."""
        if self.kind != DRAWING:
            return int(self.state[0]["num_events"])
        assert self._tried is not None
        assert self._before is not None
        first = int(self._before[0]["num_events"])
        kinds = self._tried[0]["events"][first : self._tried[0]["num_events"]] & 3
        return first + int(np.flatnonzero(kinds == DRAW)[len(self._drawn)])

    def events(self) -> npt.NDArray[np.uint16]:
        """They, packed as in `state.py`, with every drawn tile."""
        row = (self.state if self._tried is None else self._tried)[0]
        events: npt.NDArray[np.uint16] = row["events"][: self.num_events]
        return events

    def legal_actions(self) -> list[int]:
        """What the seat to act may play, ascending."""
        left, right = self.state["legal"][0].tolist()
        return sorted([2 * tile for tile in tiles_in(left)] + [2 * tile + 1 for tile in tiles_in(right)])

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """(outcome, probability) at a chance node: a tile, or the seat that starts."""
        if self.kind == DEAL:
            return deal_outcomes(self.rules, self.dealt)
        options = list(range(self.rules.players)) if self.kind == LOT else self._boneyard()
        return [(option, 1 / len(options)) for option in options]

    def _boneyard(self) -> list[int]:
        """The tiles that may be drawn next."""
        row = (self.state if self._before is None else self._before)[0]
        return sorted(set(row["deck"][row["top"] : row["bottom"]].tolist()) - set(self._drawn))

    def apply(self, action: int) -> None:
        """Go on with a legal action, or with an outcome of chance.

        Raises:
            ValueError: the action may not be played, the outcome cannot happen, or the round is over.
        """
        if self.kind == OVER:
            raise ValueError(f"the round is over, so {action} cannot be applied")
        if self.kind == DECISION:
            if not _is_legal(self.state, self._packed, action):
                raise illegal_action(self.state, 0, action)
            self._action, self._before = action, self.state
            self._try()
            return
        possible = [outcome for outcome, _ in self.chance_outcomes()]
        if action not in possible:
            raise ValueError(f"{self.kind}: {action} is not one of {', '.join(map(str, possible))}")
        if self.kind == DEAL:
            self._deal(action)
            self._deal_what_is_certain()
        elif self.kind == LOT:
            self._open(action)
        else:
            self._drawn.append(action)
            self._try()

    def _deal(self, tile: int) -> None:
        seat = self.next_seat
        self.dealt[seat] |= 1 << tile
        self.state["hands"][0, seat] = self.dealt[seat]

    def _deal_what_is_certain(self) -> None:
        """Deal on while only one tile can come next, and open the round when all are dealt."""
        while self.next_seat != NONE:
            outcomes = self.chance_outcomes()
            if len(outcomes) > 1:
                return
            self._deal(outcomes[0][0])
        rest = (1 << self.rules.num_tiles) - 1 - sum(self.dealt)
        self.state["deck"][0, : self.rules.boneyard_size] = tiles_in(rest)
        if self.rules.opening == "lots":
            self.kind = LOT
        else:
            self._open(NONE)

    def _open(self, lot: int) -> None:
        if not open_given_deal(self.state, self._packed, lot):
            raise AssertionError("a deal without a double was possible")
        self.kind = DECISION

    def _try(self) -> None:
        """Play the action with the tiles drawn up to now; where more were drawn, ask for the next."""
        assert self._before is not None
        state, rest = copy_state(self._before), self._boneyard()
        top, bottom = int(state[0]["top"]), int(state[0]["bottom"])
        state["deck"][0, top:bottom] = self._drawn + rest
        _play(state, self._packed, self._action)
        if int(state[0]["top"]) - top > len(self._drawn) and len(rest) > 1:
            self.kind, self._tried = DRAWING, state
            return
        self.state, self.kind = state, DECISION
        self._before, self._tried, self._drawn, self._action = None, None, [], NONE
        if state[0]["seat"] == NONE:
            self.kind = OVER
            state["rewards"] = 0
            _reward(state, self._packed, self.outcome)

    def returns(self) -> list[float]:
        """What each seat has gained: zeros until the round is over."""
        if self.kind != OVER:
            return [0.0] * self.rules.players
        rewards = self.state["rewards"][0].tolist()[: self.rules.num_sides]
        gained, lost = max(rewards), -sum(reward for reward in rewards if reward < 0)
        if lost:  # a share such as a third is rounded in the record; here the sum over sides is 0
            rewards = [reward * gained / lost if reward < 0 else reward for reward in rewards]
        return [rewards[self.rules.side_of(seat)] for seat in range(self.rules.players)]

    def view(self, seat: int) -> Views:
        """What `seat` knows, one record: at a draw as before the play, but with the events up to now."""
        record = new_views(self.rules, 1)
        look_many(self.state, self._packed, np.zeros(1, np.int64), np.array([seat]), record)
        if self.kind == DRAWING:
            later = new_views(self.rules, 1)
            look_many(self._tried, self._packed, np.zeros(1, np.int64), np.array([seat]), later)
            record["events"], record["num_events"] = later["events"], self.num_events
        return record

    def vector(self, seat: int) -> npt.NDArray[np.int8]:
        """What `seat` knows as `domino_env.Encoding` lays it out; at a draw as before the play."""
        vector: npt.NDArray[np.int8] = encoding_of(self.rules).vectors(self.view(seat))[0]
        return vector

    def copy(self) -> Node:
        """A node of its own at the same point."""
        other = Node.__new__(Node)
        for name in Node.__slots__:
            setattr(other, name, getattr(self, name))
        other.state, other.dealt, other._drawn = copy_state(self.state), self.dealt.copy(), self._drawn.copy()
        return other  # what a play is tried from is never written to

    def __deepcopy__(self, memo: Any) -> Node:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Node.__slots__ if name != "_packed"}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        for name, value in kept.items():
            setattr(self, name, value)
        self._packed = pack(self.rules)
