"""The reference model: RULES.md in slow, plain Python, one paragraph of it at a time.

It shares no code with the compiled engine, and is driven from outside: whoever uses it brings
the deal, the seats' choices, and the seat drawn where a round starts by lots. Section numbers
are those of RULES.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

Tile = tuple[int, int]  # the higher half first
End = Literal["left", "right"]
Ends = tuple[int, int]  # the chain's open numbers, left and right
Move = tuple[Tile, End]


@dataclass(frozen=True)
class ReferenceRules:
    """The fields of §5 and §6. Combinations that make no sense are not refused here."""

    players: int
    hand_size: int
    draw: Literal["none", "until_fit", "one"]
    opening: Literal["highest_double", "lots"]
    next_starter: Literal["last_to_place", "loser", "rotation"]
    tie_starter: Literal["last_to_place", "lots", "rotation", "opening", "same"]
    scoring: Literal["batida", "pips"]
    target: int | None
    tie_multiplier: int
    pairs: bool = False  # four seats, 0+2 against 1+3
    max_pip: int = 6
    tie_multiplier_stacks: bool = False
    la_e_lo_on_equal_ends: bool = False
    no_double: Literal["heaviest", "redeal"] = "heaviest"
    single_round_block: Literal["fewest", "draw"] = "fewest"
    points_simples: int = 1
    points_carroca: int = 2
    points_la_e_lo: int = 3
    points_cruzada: int = 4
    points_block: int = 1

    @property
    def sides(self) -> int:
        """How many sides there are (§1: a side is a seat, or a pair of seats)."""
        return 2 if self.pairs else self.players

    def side(self, seat: int) -> int:
        """The side a seat scores for."""
        return seat % 2 if self.pairs else seat


# fmt: off
PRESETS = {  # §5
    "duplas": ReferenceRules(
        players=4, pairs=True, hand_size=7, draw="none", opening="highest_double",
        next_starter="last_to_place", tie_starter="last_to_place",
        scoring="batida", target=6, tie_multiplier=2),
    "mano_a_mano": ReferenceRules(
        players=2, hand_size=7, draw="until_fit", opening="highest_double",
        next_starter="last_to_place", tie_starter="last_to_place",
        scoring="batida", target=6, tie_multiplier=2),
    "blocos": ReferenceRules(
        players=2, hand_size=7, draw="none", opening="lots", next_starter="loser", tie_starter="lots",
        scoring="pips", target=50, tie_multiplier=1),
    "puxar": ReferenceRules(
        players=2, hand_size=7, draw="one", opening="lots", next_starter="rotation", tie_starter="rotation",
        scoring="pips", target=100, tie_multiplier=1, single_round_block="draw"),
}
# fmt: on


class Event(NamedTuple):
    """What happened (§2.5): a play, a draw or a pass, and the ends just before it."""

    kind: Literal["play", "draw", "pass"]
    seat: int
    tile: Tile | None
    end: End | None
    ends: Ends | None


@dataclass(frozen=True)
class ReferenceResult:
    """How a round ended. `next_starter` None: by lots, or by the next deal (§3)."""

    reason: Literal["out", "blocked", "tied"]
    seat: int | None
    side: int | None
    finish: str | None
    base: int
    multiplier: int
    points: int
    pips: tuple[int, ...]
    last_placer: int
    next_starter: int | None


def full_set(max_pip: int) -> list[Tile]:
    """Every tile from double-blank to double-`max_pip`."""
    return [(high, low) for high in range(max_pip + 1) for low in range(high + 1)]


def is_double(tile: Tile) -> bool:
    """A tile with equal halves."""
    return tile[0] == tile[1]


def pips_of(tiles: list[Tile]) -> int:
    """Both halves of every tile; a blank is 0 and 0-0 has no bonus (§2.7)."""
    return sum(high + low for high, low in tiles)


def opening(rules: ReferenceRules, hands: list[list[Tile]]) -> tuple[int | None, Tile | None] | None:
    """Who starts a first round, and with which forced tile (§3).

    `(None, None)`: by lots, any tile. None: no double was dealt and the rules deal again.
    """
    if rules.opening == "lots":
        return None, None
    holder = {tile: seat for seat, hand in enumerate(hands) for tile in hand}
    doubles = [tile for tile in holder if is_double(tile)]
    if doubles:
        tile = max(doubles)
    elif rules.no_double == "redeal":
        return None
    else:  # the heaviest; among equal pips the one with the higher half
        tile = max(holder, key=lambda tile: (tile[0] + tile[1], tile[0]))
    return holder[tile], tile


def finish_name(rules: ReferenceRules, tile: Tile, ends: Ends | None) -> str:
    """The name of a last tile, judged on the ends before it was placed (§4, batida)."""
    if is_double(tile):
        return "cruzada" if ends == tile else "carroca"
    if ends is None:  # a first tile that is also the last
        return "simples"
    left, right = ends
    if left == right:
        return "la-e-lo" if rules.la_e_lo_on_equal_ends else "simples"
    return "la-e-lo" if {left, right} == set(tile) else "simples"


class ReferenceRound:
    """One deal, from the first tile until somebody goes out or nobody can play.

    `boneyard[0]` is drawn next. `seat` must act and has at least one legal move; it is None when
    the round is over. `play` applies the draws and passes that follow.
    """

    def __init__(
        self,
        rules: ReferenceRules,
        hands: list[list[Tile]],
        boneyard: list[Tile],
        starter: int,
        forced: Tile | None = None,
        multiplier: int = 1,
    ) -> None:
        self.rules = rules
        self.hands = [[(max(tile), min(tile)) for tile in hand] for hand in hands]
        self.boneyard = [(max(tile), min(tile)) for tile in boneyard]
        self.starter = starter
        self.forced = forced
        self.multiplier = multiplier
        self.chain: list[tuple[int, int]] = []  # left half and right half, as it lies
        self.events: list[Event] = []
        self.seat: int | None = starter
        self.result: ReferenceResult | None = None

    @property
    def ends(self) -> Ends | None:
        """The two open numbers (left, right); None before the first tile."""
        return (self.chain[0][0], self.chain[-1][1]) if self.chain else None

    @property
    def pips(self) -> tuple[int, ...]:
        """The pips in each seat's hand."""
        return tuple(pips_of(hand) for hand in self.hands)

    def legal(self) -> list[Move]:
        """The moves of the seat to act, sorted; none when the round is over."""
        return [] if self.seat is None else self.moves_of(self.seat)

    def moves_of(self, seat: int) -> list[Move]:
        """What a seat could play if it were its turn (§2.2, §2.3)."""
        hand = sorted(self.hands[seat])
        if self.ends is None:  # nothing to match: one action for each tile
            return [(tile, "left") for tile in hand if self.forced is None or tile == self.forced]
        left, right = self.ends
        moves: list[Move] = []
        for tile in hand:
            if left in tile:
                moves.append((tile, "left"))
            if right in tile:
                moves.append((tile, "right"))
        return moves

    def play(self, tile: Tile, end: End) -> None:
        """Place a tile of the seat to act. An illegal move raises ValueError and changes nothing."""
        if self.seat is None or (tile, end) not in self.legal():
            raise ValueError(f"seat {self.seat} cannot play {tile} at the {end}")
        seat = self.seat
        self.events.append(Event("play", seat, tile, end, self.ends))
        self.hands[seat].remove(tile)
        self._place(tile, end)
        if not self.hands[seat]:  # §2.6: went out, even if nobody could play now
            self._end_by_going_out(seat)
        elif self._is_blocked():
            self._end_by_block()
        else:
            self._give_turn_to(self._after(seat))

    def _place(self, tile: Tile, end: End) -> None:
        high, low = tile
        if self.ends is None:
            self.chain.append(tile)
        elif end == "left":  # the half that matches lies inwards
            self.chain.insert(0, (low, high) if high == self.ends[0] else (high, low))
        else:
            self.chain.append((high, low) if high == self.ends[1] else (low, high))

    def _after(self, seat: int) -> int:
        return (seat + 1) % self.rules.players

    def _can_draw(self) -> bool:
        return self.rules.draw != "none" and bool(self.boneyard)

    def _is_blocked(self) -> bool:
        """No seat has a legal tile and no seat can draw (§2.6)."""
        return not self._can_draw() and not any(self.moves_of(seat) for seat in range(self.rules.players))

    def _give_turn_to(self, seat: int) -> None:
        """Apply draws and passes until a seat can play or the round is blocked (§2.4 to §2.6)."""
        while not self.moves_of(seat):
            if self._can_draw():
                tile = self.boneyard.pop(0)
                self.hands[seat].append(tile)
                self.events.append(Event("draw", seat, tile, None, self.ends))
                if self._is_blocked():
                    self._end_by_block()
                    return
                if self.rules.draw == "one":  # the turn goes on even if that tile fits
                    seat = self._after(seat)
            else:
                self.events.append(Event("pass", seat, None, None, self.ends))
                seat = self._after(seat)
        self.seat = seat

    def _end_by_going_out(self, seat: int) -> None:
        """§4: batida scores by the last tile, pips by what is left in all other hands."""
        if self.rules.scoring == "pips":
            self._end("out", seat, self.rules.side(seat), None, sum(self.pips))
            return
        last = self.events[-1]
        assert last.tile is not None
        finish = finish_name(self.rules, last.tile, last.ends)
        points = {
            "simples": self.rules.points_simples,
            "carroca": self.rules.points_carroca,
            "la-e-lo": self.rules.points_la_e_lo,
            "cruzada": self.rules.points_cruzada,
        }
        self._end("out", seat, self.rules.side(seat), finish, points[finish])

    def _end_by_block(self) -> None:
        """§4: batida counts by sides and pips by seats; who shares the fewest with another is tied."""
        counts = list(self.pips)
        if self.rules.scoring == "batida":
            counts = [0] * self.rules.sides
            for seat, pips in enumerate(self.pips):
                counts[self.rules.side(seat)] += pips
        fewest = min(counts)
        if counts.count(fewest) > 1:
            self._end("tied", None, None, None, 0)
            return
        winner = counts.index(fewest)
        if self.rules.scoring == "batida":
            seat_or_none = None if self.rules.pairs else winner
            self._end("blocked", seat_or_none, winner, None, self.rules.points_block)
        else:
            differences = sum(pips - fewest for pips in counts)
            self._end("blocked", winner, self.rules.side(winner), None, differences)

    def _end(
        self,
        reason: Literal["out", "blocked", "tied"],
        seat: int | None,
        side: int | None,
        finish: str | None,
        base: int,
    ) -> None:
        last_placer = [event.seat for event in self.events if event.kind == "play"][-1]
        self.seat = None
        self.result = ReferenceResult(
            reason=reason,
            seat=seat,
            side=side,
            finish=finish,
            base=base,
            multiplier=self.multiplier,
            points=base * self.multiplier,
            pips=self.pips,
            last_placer=last_placer,
            next_starter=self._next_starter(reason == "tied", seat, last_placer),
        )

    def _next_starter(self, tied: bool, winner: int | None, last_placer: int) -> int | None:
        """Who starts the round after this one (§3); None by lots or as in a first round."""
        rule = self.rules.tie_starter if tied else self.rules.next_starter
        if rule == "last_to_place":
            return last_placer
        if rule == "rotation":
            return self._after(self.starter)
        if rule == "same":
            return self.starter
        if rule == "loser":  # the most pips; of several, the first after the winner in turn order
            assert winner is not None
            seat = self._after(winner)
            while self.pips[seat] < max(self.pips):
                seat = self._after(seat)
            return seat
        return None

    def rewards(self) -> tuple[Fraction, ...]:
        """What each side gains and loses by the finished round; the sum is zero.

        Two sides: one's gain is the other's loss. More, with pips: each other side loses its own
        pips, or in a block its own difference. More, with batida: equal shares.
        """
        if self.result is None:
            raise ValueError("the round is not over")
        winner = self.result.side
        if winner is None:
            return (Fraction(0),) * self.rules.sides
        losses = [Fraction(self.result.points, self.rules.sides - 1)] * self.rules.sides
        if self.rules.scoring == "pips" and self.rules.sides > 2:
            fewest = self.result.pips[winner]  # 0 if it went out
            losses = [Fraction((pips - fewest) * self.multiplier) for pips in self.result.pips]
        return tuple(
            Fraction(self.result.points) if side == winner else -losses[side] for side in range(self.rules.sides)
        )


class ReferenceMatch:
    """Rounds until a side reaches the target; a single round where the target is None.

    Feed it deals: `start_round`, then play the round that it returns, then `finish_round`.
    """

    def __init__(self, rules: ReferenceRules) -> None:
        self.rules = rules
        self.scores = [0] * rules.sides
        self.multiplier = 1  # of the round in play, or of the next
        self.round = 0  # how many rounds were started
        self.starter: int | None = None  # of the round in play, or of the last
        self.current: ReferenceRound | None = None  # the round in play
        self.last: ReferenceResult | None = None  # of the last round that was finished
        self.winner: int | None = None
        self.over = False

    def opens(self) -> bool:
        """Whether the next round starts as a first one does (§3; §6, `tie_starter` "opening")."""
        if self.last is None:
            return True
        return self.last.reason == "tied" and self.rules.tie_starter == "opening"

    def by_lots(self) -> bool:
        """Whether the next round's starter is drawn by lots."""
        if self.last is None or self.opens():
            return self.rules.opening == "lots"
        return self.last.next_starter is None

    def must_redeal(self, hands: list[list[Tile]]) -> bool:
        """Whether the next round needs a double in a hand, and these hold none (§6, `no_double`)."""
        return self.opens() and opening(self.rules, hands) is None

    def starter_for_next(self, hands: list[list[Tile]], lots: int | None = None) -> tuple[int, Tile | None]:
        """The next round's starter and forced tile; `lots` is the seat drawn, read only if `by_lots()`."""
        starter: int | None
        if self.by_lots():
            starter, forced = lots, None
        elif self.last is None or self.opens():
            opened = opening(self.rules, hands)
            if opened is None:
                raise ValueError("no hand holds a double: deal again")
            starter, forced = opened
        else:
            starter, forced = self.last.next_starter, None
        if starter is None:
            raise ValueError("this round starts by lots: say which seat was drawn")
        return starter, forced

    def start_round(self, hands: list[list[Tile]], boneyard: list[Tile], lots: int | None = None) -> ReferenceRound:
        """Begin the next round with this deal."""
        if self.over or self.current is not None:
            raise ValueError("the match is over, or its last round is not finished")
        self.starter, forced = self.starter_for_next(hands, lots)
        self.round += 1
        self.current = ReferenceRound(self.rules, hands, boneyard, self.starter, forced, self.multiplier)
        return self.current

    def finish_round(self) -> ReferenceResult:
        """Book the result of the round that has just ended."""
        if self.current is None or self.current.result is None:
            raise ValueError("no round has ended")
        result = self.last = self.current.result
        self.current = None
        if result.side is not None:
            self.scores[result.side] += result.points
        if result.reason != "tied":  # §4: back to one after a round that was not tied
            self.multiplier = 1
        elif self.rules.tie_multiplier_stacks:
            self.multiplier *= self.rules.tie_multiplier
        else:
            self.multiplier = self.rules.tie_multiplier
        self._find_winner(result)
        return result

    def _find_winner(self, result: ReferenceResult) -> None:
        """§2.8: at least the target. §5: without one, whoever scores in the single round."""
        if self.rules.target is None:
            self.over = True
            if result.reason == "out" or self.rules.single_round_block == "fewest":
                self.winner = result.side
        elif result.side is not None and self.scores[result.side] >= self.rules.target:
            self.over = True
            self.winner = result.side
