"""Random rounds by the million, each step of each one checked against the rules from scratch.

    python tests/check_rounds.py --rounds 1000000

At every decision: each tile of the set is somewhere, once; the legal actions are those that a search of
the hand finds, at least one; what the table may conclude of hidden hands is true. At the end of every
round its log is replayed from the deal: turns, draws and passes only where they are forced, the end of
the round when it is due and not later, no more events than the bounds allow; the points are booked.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import numba
import numpy as np
from strategies import TABLES

from domino_env import RuleSet
from domino_env._rng import below, seed_streams
from domino_env.kernel import nth_legal, num_legal, play, start_match, start_round
from domino_env.rules import pack
from domino_env.state import new_state
from domino_env.tiles import HIGH, LOW

FAULTS = (
    "",
    "a tile is missing or is there twice",
    "the legal actions are not those that fit",
    "the seat to act has no legal action",
    "a seat holds a tile that the table believes it cannot hold",
    "an event of a seat whose turn it is not",
    "a play of a tile not held, or at an end that it does not fit",
    "a draw or a pass that is not forced, or of a wrong tile",
    "the round went on when it was over",
    "the round ended when it was not over",
    "more plays, draws or passes than there can be",
    "the tiles on the table or in the hands are not what the log makes them",
    "points, scores or the reason of the end are wrong",
)
PLAYS, DRAWS, PASSES, LONGEST, BLOCKED, TIED, MOST_HELD = range(7)

# Compiled without a cache on disk: the package's own is kept by the package's sources, not by this file's.
checked = numba.njit(nogil=True)


@checked
def _fits(hand: Any, left: int, right: int) -> bool:
    for tile in range(55):
        if hand >> np.uint64(tile) == 0:
            return False
        if (hand >> np.uint64(tile)) & np.uint64(1):
            high, low = HIGH[tile], LOW[tile]
            if high == left or low == left or high == right or low == right:
                return True
    return False


@checked
def check_decision(row: Any, rules: Any) -> int:
    """The fault of the position to act in; 0 if there is none."""
    one, tiles = np.uint64(1), rules["tiles"]
    seen = np.zeros(55, np.int64)
    for i in range(row["top"], row["bottom"]):
        seen[row["deck"][i]] += 1
    for seat in range(rules["players"]):
        for tile in range(tiles):
            held = (row["hands"][seat] >> np.uint64(tile)) & one
            seen[tile] += np.int64(held) + np.int64((row["placed"][seat] >> np.uint64(tile)) & one)
        if (row["hands"][seat] | row["placed"][seat]) >> np.uint64(tiles):
            return 1
    for tile in range(55):
        if seen[tile] != (1 if tile < tiles else 0):
            return 1
    seat, left, right = row["seat"], row["left"], row["right"]
    any_legal = (row["legal"][0] | row["legal"][1]) >> np.uint64(tiles) != np.uint64(0)
    if any_legal:  # a tile that the set has not
        return 2
    for tile in range(tiles):
        held = (row["hands"][seat] >> np.uint64(tile)) & one != np.uint64(0)
        at_left = held and (HIGH[tile] == left or LOW[tile] == left)
        at_right = held and (HIGH[tile] == right or LOW[tile] == right)
        if left < 0:  # no tile lies yet
            at_left, at_right = held and (row["forced"] < 0 or row["forced"] == tile), False
        any_legal = any_legal or at_left or at_right
        if at_left != ((row["legal"][0] >> np.uint64(tile)) & one != np.uint64(0)):
            return 2
        if at_right != ((row["legal"][1] >> np.uint64(tile)) & one != np.uint64(0)):
            return 2
    if not any_legal:
        return 3
    for other in range(rules["players"]):
        if other == row["drawer"]:  # holds a tile that nobody else has seen, and must play it
            continue
        none, at_most_one = int(row["lacks"][0, other]), int(row["lacks"][1, other])
        for number in range(10):
            if not (none | at_most_one) >> number & 1:
                continue
            count = 0
            for tile in range(tiles):
                if (HIGH[tile] == number or LOW[tile] == number) and (row["hands"][other] >> np.uint64(tile)) & one:
                    count += 1
            if count > 1 or (count > 0 and none >> number & 1):
                return 4
    return 0


@checked
def check_log(row: Any, rules: Any, stats: Any) -> int:
    """The fault in a finished round's log, replayed from its deal; 0 if there is none. Adds to `stats`."""
    one, players = np.uint64(1), rules["players"]
    deck, size = row["deck"], rules["hand_size"]
    hands = np.zeros(9, np.uint64)
    for i in range(players * size):
        hands[i // size] |= one << np.uint64(deck[i])
    top, bottom = players * size, int(rules["tiles"])
    if rules["draw"] == 0:
        top = bottom  # never touched
    turn, left, right, last = int(row["starter"]), -1, -1, -1
    plays, draws, passes, most = 0, 0, 0, size
    over = False
    for i in range(row["num_events"]):
        if over:
            return 8
        event = np.int64(row["events"][i])
        kind, end, seat, tile = event & 3, event >> 2 & 1, event >> 3 & 15, event >> 7
        if seat != turn:
            return 5
        if kind == 0:
            plays += 1
            if not (hands[seat] >> np.uint64(tile)) & one:
                return 6
            hands[seat] &= ~(one << np.uint64(tile))
            high, low = HIGH[tile], LOW[tile]
            if left < 0:
                left, right = high, low
            elif end == 0:
                if high != left and low != left:
                    return 6
                left = low if high == left else high
            else:
                if high != right and low != right:
                    return 6
                right = low if high == right else high
            last = seat
        elif _fits(hands[seat], left, right) or (kind == 1) != (top < bottom):
            return 7
        elif kind == 1:
            draws += 1
            if tile != deck[top]:
                return 7
            hands[seat] |= one << np.uint64(tile)
            top += 1
        else:
            passes += 1
        if kind == 1:
            held = 0
            for b in range(rules["tiles"]):
                held += np.int64((hands[seat] >> np.uint64(b)) & one)
            most = max(most, held)
        if kind != 1 or rules["draw"] == 2:
            turn = (turn + 1) % players
        over = hands[seat] == 0
        if not over and top == bottom:
            over = True
            for other in range(players):
                over = over and not _fits(hands[other], left, right)
    if not over:
        return 9
    if plays > rules["tiles"] or draws > rules["boneyard_size"] or passes > (players - 1) * plays:
        return 10
    for seat in range(players):
        if hands[seat] != row["hands"][seat]:
            return 11
    if left != row["left"] or right != row["right"] or last != row["last"]:
        return 11
    stats[PLAYS] += plays
    stats[DRAWS] += draws
    stats[PASSES] += passes
    stats[LONGEST] = max(stats[LONGEST], plays + draws + passes)
    stats[MOST_HELD] = max(stats[MOST_HELD], most)
    return 0


@checked
def check_end(row: Any, rules: Any, before: Any, stats: Any) -> int:
    """The fault in how a finished round was booked; 0 if there is none. Adds to `stats`."""
    out, side = -1, row["winning_side"]
    for seat in range(rules["players"]):
        if row["hands"][seat] == 0:
            out = seat
    if (out >= 0) != (row["reason"] == 1) or (side < 0) != (row["reason"] == 3):
        return 12
    if out >= 0 and (side != out % rules["sides"] or row["winning_seat"] != out):
        return 12
    if row["points"] < 0 or row["points"] != row["base"] * row["multiplier"] or (side < 0 and row["points"] != 0):
        return 12
    for each in range(rules["sides"]):
        if row["scores"][each] - before[each] != (row["points"] if each == side else 0):
            return 12
    reached = side >= 0 and row["scores"][side] >= rules["target"]
    if (row["over"] != 0) != reached or (reached and row["winner"] != side):
        return 12
    if row["reason"] > 1:
        stats[BLOCKED if row["reason"] == 2 else TIED] += 1
    return 0


@checked
def check_rounds(state: Any, rules: Any, stream: Any, rounds: int, stats: Any) -> int:
    """Play so many rounds of matches at random; the first fault, 0 if there is none."""
    row, before = state[0], np.zeros(9, np.int64)
    start_match(row, rules[0])
    for _ in range(rounds):
        for side in range(rules[0]["sides"]):
            before[side] = row["scores"][side]
        while row["seat"] >= 0:
            fault = check_decision(row, rules[0])
            if fault:
                return fault
            play(row, rules[0], nth_legal(row, below(stream[0], num_legal(row))))
        fault = check_log(row, rules[0], stats)
        if fault == 0:
            fault = check_end(row, rules[0], before, stats)
        if fault:
            return fault
        if row["over"]:
            start_match(row, rules[0])
        else:
            start_round(row, rules[0])
    return 0


class Checked(NamedTuple):
    """What `run` saw."""

    fault: str  # "" if there was none
    stats: np.ndarray[Any, np.dtype[np.int64]]
    state: Any  # where it stopped


def run(rules: RuleSet, rounds: int, seed: int) -> Checked:
    """Check so many random rounds of matches under `rules`, which have a target."""
    state, stream, stats = new_state(rules, 1), np.zeros((1, 4), np.uint32), np.zeros(7, np.int64)
    seed_streams(seed, 0, state["rng"])
    seed_streams(seed, 0, stream, purpose=1)
    fault = check_rounds(state, pack(rules), stream, rounds, stats)
    return Checked(FAULTS[fault], stats, state)


HEADINGS = "rounds decisions draws passes longest most-held blocked tied seconds".split()


def main() -> None:
    parser = argparse.ArgumentParser(description="play and check random rounds of every published game")
    parser.add_argument("--rounds", type=int, default=1_000_000, help="rounds for each game")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--games", nargs="*", choices=list(TABLES), default=list(TABLES))
    options = parser.parse_args()
    run(TABLES["duplas"], 1, options.seed)  # compiled before the clock starts
    run(TABLES["blocos-9"], 1, options.seed)
    print(f"{'':12}" + "".join(f"{heading:>12}" for heading in HEADINGS))
    for name in options.games:
        begin = time.perf_counter()
        fault, stats, state = run(TABLES[name], options.rounds, options.seed)
        seconds = time.perf_counter() - begin
        if fault:
            raise SystemExit(f"{name}, seed {options.seed}: {fault}\n{state}")
        shares = [f"{100 * stats[kind] / options.rounds:.3f} %" for kind in (BLOCKED, TIED)]
        counts = [options.rounds, *(stats[kind] for kind in (PLAYS, DRAWS, PASSES, LONGEST, MOST_HELD))]
        cells = [*(f"{count:,}" for count in counts), *shares, f"{seconds:.1f}"]
        print(f"{name:12}" + "".join(f"{cell:>12}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
