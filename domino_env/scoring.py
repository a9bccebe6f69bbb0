"""What a finished round is worth, to whom, and who starts the next one.

Like the kernel's, these functions work on `row`, one table's record, under `rules`, one
`rules.PACKED` record, and trust their arguments.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ._jit import jit, lowest_bit
from .rules import option
from .state import BY_LOTS, BY_OPENING, CARROCA, CRUZADA, LA_E_LO, NONE, SIMPLES, TIED
from .tiles import PIPS

_NEXT_LAST: Final = option("next_starter", "last_to_place")
_NEXT_LOSER: Final = option("next_starter", "loser")
_TIE_LAST: Final = option("tie_starter", "last_to_place")
_TIE_LOTS: Final = option("tie_starter", "lots")
_TIE_ROTATION: Final = option("tie_starter", "rotation")
_TIE_SAME: Final = option("tie_starter", "same")
_BATIDA: Final = option("scoring", "batida")

_ONE = np.uint64(1)


@jit
def pips_in(hand: Any) -> int:
    """The pips of a set of tiles."""
    total = 0
    while hand:
        total += PIPS[lowest_bit(hand)]
        hand &= hand - _ONE
    return total


@jit
def finish_of(rules: Any, high: int, low: int, left: int, right: int) -> int:
    """The name of a last tile, judged on the ends before it was placed."""
    if rules["scoring"] != _BATIDA:
        return 0
    if high == low:
        return CRUZADA if left == high and right == high else CARROCA
    if left == right:
        return LA_E_LO if left != NONE and rules["la_e_lo_on_equal_ends"] else SIMPLES
    return LA_E_LO if left + right == high + low and (left == high or left == low) else SIMPLES


@jit
def score_batida(row: Any, rules: Any, out: int) -> None:
    """Winner and base points of a round that seat `out` won by going out, or (NONE) that is blocked."""
    sides = rules["sides"]
    if out != NONE:
        row["winning_seat"] = out
        row["winning_side"] = out % sides
        finish = row["finish"]
        if finish == SIMPLES:
            row["base"] = rules["points_simples"]
        elif finish == CARROCA:
            row["base"] = rules["points_carroca"]
        elif finish == LA_E_LO:
            row["base"] = rules["points_la_e_lo"]
        else:
            row["base"] = rules["points_cruzada"]
        return
    best, best_pips = NONE, 1 << 30
    for side in range(sides):
        pips = 0
        for seat in range(side, rules["players"], sides):
            pips += pips_in(row["hands"][seat])
        if pips < best_pips:
            best, best_pips = side, pips
        elif pips == best_pips:
            best = NONE
    if best != NONE:
        row["winning_side"] = best
        row["base"] = rules["points_block"]
        if sides == rules["players"]:
            row["winning_seat"] = best


@jit
def score_pips(row: Any, rules: Any, out: int) -> None:
    """The same where the pips left in hand score."""
    players = rules["players"]
    best, best_pips, total = NONE, 1 << 30, 0
    for seat in range(players):
        pips = pips_in(row["hands"][seat])
        total += pips
        if pips < best_pips:
            best, best_pips = seat, pips
        elif pips == best_pips:
            best = NONE
    if out != NONE:
        best, best_pips = out, 0  # another hand may be the 0-0 alone
    if best != NONE:
        row["winning_seat"] = best
        row["winning_side"] = best % rules["sides"]
        row["base"] = total - players * best_pips


@jit
def next_starter(row: Any, rules: Any) -> int:
    """Who starts after this round: a seat, BY_LOTS or BY_OPENING."""
    players = rules["players"]
    rotated = (row["starter"] + 1) % players
    if row["reason"] == TIED:
        rule = rules["tie_starter"]
        if rule == _TIE_LAST:
            return int(row["last"])
        if rule == _TIE_ROTATION:
            return int(rotated)
        if rule == _TIE_SAME:
            return int(row["starter"])
        return BY_LOTS if rule == _TIE_LOTS else BY_OPENING
    if rules["next_starter"] == _NEXT_LAST:
        return int(row["last"])
    if rules["next_starter"] == _NEXT_LOSER:
        loser, most = NONE, -1
        for step in range(1, players + 1):
            seat = (row["winning_seat"] + step) % players
            pips = pips_in(row["hands"][seat])
            if pips > most:
                loser, most = seat, pips
        return int(loser)
    return int(rotated)


@jit
def add_round_rewards(row: Any, rules: Any) -> None:
    """Add to `row`'s rewards what each side gained and lost in the round just ended; the sum is 0.

    The scoring side gains its points. With two sides the other loses as many; with more, each loses
    its share: its own pips (or its own difference) where pips score, else an equal part.
    """
    sides, winner = int(rules["sides"]), int(row["winning_side"])
    if winner == NONE:
        return
    for side in range(sides):
        if side == winner:
            row["rewards"][side] += row["points"]
        elif sides == 2:
            row["rewards"][side] -= row["points"]
        elif rules["scoring"] == _BATIDA:
            row["rewards"][side] -= row["points"] / (sides - 1)
        else:
            lost = pips_in(row["hands"][side]) - pips_in(row["hands"][winner])
            row["rewards"][side] -= lost * row["multiplier"]


@jit
def add_outcome_rewards(row: Any, rules: Any, winner: int) -> None:
    """Add to `row`'s rewards +1 for the winning side and −1 shared by the others; nothing where `winner` is NONE."""
    sides = int(rules["sides"])
    if winner == NONE:
        return
    for side in range(sides):
        row["rewards"][side] += 1.0 if side == winner else -1.0 / (sides - 1)
