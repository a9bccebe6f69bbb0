"""Match equity: a side's chance to win the match from each score, between equal players.

A match of two sides is a Markov chain over what stands between its rounds: both scores, the ties in a
row, and who starts next. Its steps are the outcomes of single rounds, counted in many rounds between
equal players (`domino_env.bots.outcomes` counts them; those of the presets come with the package). A
score never falls, so the chain is solved from the last scores back; a tied round, or one won for no
points, leaves the scores as they are, so that each score is a small system of linear equations.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ._checks import one_of, whole
from ._jit import jit
from .rules import MULTIPLIER_BOUND, RuleSet, make_rules, preset_of

#: The greatest target that a table is made for.
MAX_TARGET: Final = 500
#: What does not change how rounds end: outcomes measured under other values of these hold as well.
BETWEEN_ROUNDS: Final = frozenset(
    {"target", "tie_multiplier", "tie_multiplier_stacks", "next_starter", "tie_starter", "single_round_block"}
)
#: Who starts the next round, seen from a side, in the order of a table's last axis. A seat's side is 0 or 1;
#: `state.BY_OPENING` and `state.BY_LOTS` are -2 and -1, the last two.
STARTERS: Final = ("own", "other", "opening", "lots")
_OWN, _OTHER, _OPENING, _LOTS = range(4)
#: What a table keeps of the value before a round, a record a table: side 0's chance.
CHANCE: Final = np.dtype([("before", np.float64)])


@dataclass(frozen=True, eq=False)
class Outcomes:
    """How often rounds ended how, seen from the side that started them.

    `first` counts first rounds of a match, `later` those whose starter may open with any tile; both int64
    (3, points + 1, 2): who scored (the side that started, the other, neither), the points before the
    multiplier, which side placed the last tile (the side that started, the other).

    Raises:
        ValueError: not two sides, or an array of another shape.
    """

    rules: RuleSet
    player: str
    seed: int
    first: npt.NDArray[np.int64]
    later: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        check_two_sides(self.rules)
        for name in ("first", "later"):
            counts = getattr(self, name)
            if counts.ndim != 3 or (counts.shape[0], counts.shape[2]) != (3, 2) or counts.sum() <= 0:
                raise ValueError(f"{name} has shape {counts.shape}; it must be (3, points + 1, 2), with some rounds")

    def hold_for(self, rules: RuleSet) -> bool:
        """Whether rounds under `rules` end like those that were counted: they differ between rounds at most."""
        return not any(
            getattr(rules, spec.name) != getattr(self.rules, spec.name)
            for spec in dataclasses.fields(RuleSet)
            if spec.name not in BETWEEN_ROUNDS
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it; each round's outcome as ``[who scored, points, who placed the last tile, count]``."""
        preset, changes = preset_of(self.rules)
        counts = {name: _rows(getattr(self, name)) for name in ("first", "later")}
        return {"preset": preset, "changes": changes, "player": self.player, "seed": self.seed, **counts}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Outcomes:
        """What `to_dict` gave."""
        rules = make_rules(kept["preset"], **kept["changes"])
        return cls(rules, kept["player"], kept["seed"], _counts(kept["first"]), _counts(kept["later"]))


def _rows(counts: npt.NDArray[np.int64]) -> list[list[int]]:
    return [[*map(int, at), int(counts[tuple(at)])] for at in np.argwhere(counts)]


def _counts(rows: list[list[int]]) -> npt.NDArray[np.int64]:
    counts = np.zeros((3, max(row[1] for row in rows) + 1, 2), np.int64)
    for scored, points, last, count in rows:
        counts[scored, points, last] = count
    return counts


@lru_cache(maxsize=1)
def shipped_outcomes() -> tuple[Outcomes, ...]:
    """The outcomes that come with the package: the four presets'."""
    text = (resources.files(__package__) / "outcomes.json").read_text(encoding="utf-8")
    return tuple(Outcomes.from_dict(kept) for kept in json.loads(text))


def check_two_sides(rules: RuleSet) -> None:
    """ValueError where more than two sides play."""
    if rules.num_sides != 2:
        raise ValueError(f"match equity is for two sides, not {rules.num_sides} (players={rules.players}, pairs=False)")


@lru_cache(maxsize=32)
def _of(rules: RuleSet) -> Equity:
    check_two_sides(rules)
    for outcomes in shipped_outcomes():
        if outcomes.hold_for(rules):
            return Equity(rules, outcomes)
    preset, changes = preset_of(rules)
    changed = ", ".join(f"{name}={value!r}" for name, value in changes.items() if name not in BETWEEN_ROUNDS)
    raise ValueError(
        f"no outcomes of rounds were counted for {preset} with {changed}; "
        "count them: Equity(rules, domino_env.bots.outcomes.measure(rules))"
    )


class Equity:
    """Each side's chance to win a match of two equal sides, from every score.

    Args:
        rules: with two sides and a target.
        outcomes: how its rounds end.

    Attributes:
        table: float64 (target, target, levels, 4): [own score, other's score, level, who starts next], the
            chance of "own" to win. Not writable. A level is an entry of `multipliers`, the number of ties in
            a row up to now, at most the last; who starts is in the order of `STARTERS`, so that a row's
            ``next_starter`` modulo 4 is one where side 0 is "own" and a seat's side stands for the seat.
        multipliers: what the next round is worth at each level.

    Raises:
        ValueError: more than two sides, no target or one above `MAX_TARGET`, outcomes of other rules.
    """

    def __init__(self, rules: RuleSet, outcomes: Outcomes) -> None:
        check_two_sides(rules)
        if rules.target is None:
            raise ValueError("match equity needs a target; with target=None a match is a single round")
        if rules.target > MAX_TARGET:
            raise ValueError(f"match equity is for targets up to {MAX_TARGET}, not target={rules.target}")
        if not outcomes.hold_for(rules):
            raise ValueError("the outcomes were counted under other rules, by which rounds end differently")
        self.rules = rules
        self.multipliers = _multipliers(rules)
        self.table = _solve(*_steps(rules, outcomes), rules.target, self.multipliers)
        self.table.flags.writeable = False

    @classmethod
    def of(cls, rules: RuleSet) -> Equity:
        """The equity under a preset, or under rules that differ from one only between rounds (as in target).

        Computed once for each rule set.

        Raises:
            ValueError: as the class, or rules whose rounds nobody has counted.
        """
        return _of(rules)

    def chance(
        self,
        own: int,
        other: int,
        *,
        multiplier: int = 1,
        starter: Literal["own", "other", "opening", "lots"] = "opening",
    ) -> float:
        """A side's chance to win, between two rounds.

        Args:
            own, other: its score, and the other side's.
            multiplier: what the next round's points are multiplied by.
            starter: the side that starts the next round, or how it is found ("opening": as in a first round).

        Raises:
            ValueError: a score below 0, both at the target, a multiplier that these rules do not know.
        """
        target = len(self.table)
        own, other = whole("own", own, 0), whole("other", other, 0)
        if own >= target or other >= target:
            if own >= target and other >= target:
                raise ValueError(f"own={own} and other={other}: only one side can have reached {target}")
            return float(own >= target)
        if multiplier not in self.multipliers:
            known = ", ".join(map(str, self.multipliers))
            raise ValueError(f"multiplier={multiplier!r}: under these rules a round is worth one of {known} times")
        one_of("starter", starter, STARTERS)
        return float(self.table[own, other, self.multipliers.index(multiplier), STARTERS.index(starter)])


def _multipliers(rules: RuleSet) -> tuple[int, ...]:
    """What a round may be worth: after no tie, one, two, … up to where more changes nothing."""
    factor, values = rules.tie_multiplier, [1]
    while factor > 1 and values[-1] * factor < MULTIPLIER_BOUND and values[-1] < (rules.target or 1):
        values.append(values[-1] * factor)
        if not rules.tie_multiplier_stacks:
            break
    return tuple(values)


def _steps(rules: RuleSet, outcomes: Outcomes) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The chances of what follows a round, by who starts it: own side, the other, as the opening says.

    wins (3, 2, points + 1, 3): by who scores and the points, and who starts next; ties (3, 3): a tied round.
    """
    points = max(outcomes.first.shape[1], outcomes.later.shape[1])
    wins, ties = np.zeros((3, 2, points, 4)), np.zeros((3, 4))
    for counts, opens, share in ((outcomes.later, False, 1.0), (outcomes.first, True, 0.5)):
        total = counts.sum()
        for scored, worth, last in np.argwhere(counts):
            chance = share * counts[scored, worth, last] / total
            for starter in (_OWN, _OTHER):
                state = _OPENING if opens else starter
                placer = last ^ starter
                if scored == 2:
                    ties[state, _after_tie(rules, starter, placer)] += chance
                else:
                    winner = scored ^ starter
                    wins[state, winner, worth, _after_win(rules, starter, placer, winner)] += chance
    for array in (wins, ties):  # lots are either side
        array[..., :2] += array[..., 3:] / 2
    return wins[..., :3], ties[..., :3]


def _after_win(rules: RuleSet, starter: int, placer: int, winner: int) -> int:
    return {"last_to_place": placer, "loser": 1 - winner, "rotation": 1 - starter}[rules.next_starter]


def _after_tie(rules: RuleSet, starter: int, placer: int) -> int:
    return {
        "last_to_place": placer, "lots": _LOTS, "rotation": 1 - starter, "opening": _OPENING, "same": starter,
    }[rules.tie_starter]  # fmt: skip


def _solve(
    wins: npt.NDArray[np.float64], ties: npt.NDArray[np.float64], target: int, multipliers: tuple[int, ...]
) -> npt.NDArray[np.float64]:
    """The chances to win, (target, target, levels, 4), from the last scores back."""
    levels = len(multipliers)
    # What stays at the same scores: ties, and wins of no points.
    stays = np.zeros((levels, 3, levels, 3))
    for level in range(levels):
        stays[level, :, min(level + 1, levels - 1)] += ties
        stays[level, :, 0] += wins[:, :, 0].sum(axis=1)
    inverse = np.linalg.inv(np.eye(3 * levels) - stays.reshape(3 * levels, 3 * levels))
    scores = np.arange(1, wins.shape[2])
    scoring = wins[:, :, 1:].transpose(1, 0, 2, 3).reshape(2, 3, -1)
    table = np.zeros((target + 1, target + 1, levels, 4))
    table[target] = 1.0
    moves = np.zeros((levels, 3))
    for own in range(target - 1, -1, -1):
        for other in range(target - 1, -1, -1):
            for level, multiplier in enumerate(multipliers):
                ours = table[np.minimum(own + multiplier * scores, target), other, 0, :3]
                theirs = table[own, np.minimum(other + multiplier * scores, target), 0, :3]
                moves[level] = scoring[0] @ ours.ravel() + scoring[1] @ theirs.ravel()
            cell = table[own, other]
            cell[:, :3] = (inverse @ moves.ravel()).reshape(levels, 3)
            cell[:, _LOTS] = (cell[:, _OWN] + cell[:, _OTHER]) / 2
    return np.ascontiguousarray(table[:target, :target])


def reward_table(reward: Equity | str, rules: RuleSet, episode: str) -> npt.NDArray[np.float64]:
    """The table that a batch's rewards are read from: an `Equity`'s, or where `reward` is a word that of `rules`.

    Raises:
        ValueError: episodes that are no matches, an `Equity` of other rules, and what `Equity.of` refuses.
    """
    if episode != "match":
        raise ValueError(f"reward='equity' is a chance to win the match, so episode must be 'match', not {episode!r}")
    equity = reward if isinstance(reward, Equity) else Equity.of(rules)
    if equity.rules != rules:
        raise ValueError("reward: this Equity is that of other rules")
    return equity.table.copy()  # to compiled code a read-only array is another type


@jit
def chance_after(row: Any, table: Any) -> float:
    """Side 0's chance to win the match after the round that has ended in `row`."""
    if row["over"]:
        return 1.0 if row["winner"] == 0 else 0.0
    starter = int(row["next_starter"])
    starter = starter % 2 if starter >= 0 else starter + 4
    level = min(int(row["ties"]), table.shape[2] - 1)
    return float(table[row["scores"][0], row["scores"][1], level, starter])


@jit
def add_equity_rewards(row: Any, table: Any, chance: Any) -> None:
    """Add to `row`'s rewards what the round just ended changed of each side's chance to win the match.

    `chance` (a `CHANCE` record) holds side 0's chance before, and then after; the next match's, if this is over.
    """
    after = chance_after(row, table)
    row["rewards"][0] += after - chance["before"]
    row["rewards"][1] -= after - chance["before"]
    chance["before"] = 0.5 if row["over"] else after
