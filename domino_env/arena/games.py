"""Games played to their end, with players that may fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..batch import Batch, IllegalAction, action_name, check_actions
from ..bots.rollout import play_out
from ..events import moves_of
from ..observation import Views
from ..players import Forfeit, Player, Streams
from ..rules import RuleSet
from ..state import NONE
from ..tiles import PIPS

_LONGEST_REASON = 300


@dataclass(frozen=True)
class Played:
    """The outcome of n games of one seating."""

    points: npt.NDArray[np.float64]  # (n, sides), summed over the rounds of a match
    rounds: npt.NDArray[np.int64]  # (n,)
    winner: npt.NDArray[np.int64]  # (n,), the side that won the game; NONE where none did it alone
    #: Games that a side lost by forfeit: (side, reason) by game. The other sides share the win.
    forfeits: dict[int, tuple[int, str]] = field(default_factory=dict)

    def shares(self, side: int) -> npt.NDArray[np.float64]:
        """How much of each game `side` won, (n,): a drawn game is shared equally among all sides."""
        sides = self.points.shape[1]
        share: npt.NDArray[np.float64] = (self.winner == side) + (self.winner == NONE) / sides
        for game, (loser, _) in self.forfeits.items():
            share[game] = 0.0 if loser == side else 1 / (sides - 1)
        return share


def play_games(
    rules: RuleSet,
    seats: Sequence[Player],
    n: int,
    seed: int,
    *,
    episode: Literal["round", "match"] = "round",
    first_table: int = 0,
    purpose: int = 16,
    forfeit: bool = False,
    threads: int | None = None,
) -> Played:
    """Play n games to their end with ``seats[i]`` at seat i. Deal t follows from (seed, first_table + t).

    A player that raises `Forfeit` loses the games it names, `forfeit_points` each; so does, with
    `forfeit`, one that raises anything else or chooses what may not be played.
    """
    batch = Batch(
        rules, n, seed, episode=episode, autoreset=False, observe=False, first_table=first_table, threads=threads
    )
    streams = Streams.from_seed(seed, n, purpose=purpose, first=first_table)
    points, forfeits = play_out(batch, seats, streams), dict[int, tuple[int, str]]()
    if points is None:
        points, forfeits = _asked(batch, seats, streams, forfeit)
    match = episode == "match" or rules.target is None
    winner = batch.state["winner" if match else "winning_side"].astype(np.int64)
    rounds = batch.state["round"].astype(np.int64)
    lost = forfeit_points(rules, episode)
    for game, (side, _) in forfeits.items():
        points[game] = lost / (rules.num_sides - 1)
        points[game, side] = -lost
        winner[game] = 1 - side if rules.num_sides == 2 else NONE
        rounds[game] += 1  # the one in play
    return Played(points, rounds, winner, forfeits)


def forfeit_points(rules: RuleSet, episode: str) -> float:
    """What a side that forfeits a game loses.

    In a match the target: it is lost 0 to the target. In a round what the dearest win without
    draws is worth: the most points for a last tile, or the pips of the heaviest tiles that can
    lie in the other hands.
    """
    if episode == "match" and rules.target is not None:
        return float(rules.target)
    if rules.scoring == "batida":
        return float(rules.most_points)
    others = (rules.players - 1) * rules.hand_size
    return float(np.sort(PIPS[: rules.num_tiles])[-others:].sum())


def _asked(
    batch: Batch, seats: Sequence[Player], streams: Streams, forfeit: bool
) -> tuple[npt.NDArray[np.float64], dict[int, tuple[int, str]]]:
    """Play a batch's episodes to their end, asking decision by decision; each side's points, and the forfeits."""
    points = np.zeros((batch.num_tables, batch.rules.num_sides))
    actions = np.zeros(batch.num_tables, np.int64)
    playing = np.ones(batch.num_tables, np.bool_)
    forfeits: dict[int, tuple[int, str]] = {}
    while True:
        playing &= ~batch.done
        for player in dict.fromkeys(seats):
            own = [seat for seat, other in enumerate(seats) if other is player]
            rows = np.flatnonzero(playing & np.isin(batch.seat, own))
            if len(rows) and player.sees_all:
                actions[rows] = player.act_on(batch.state[rows], streams.rows(rows))
            elif len(rows):
                actions[rows], reasons = _choices(player, batch.views(rows), streams.rows(rows), forfeit)
                for i, reason in reasons.items():
                    table = int(rows[i])
                    forfeits[table] = batch.rules.side_of(int(batch.seat[table])), _in_short(reason)
                    playing[table] = False
        if not playing.any():
            return points, forfeits
        try:
            batch.step(actions, tables=playing)
        except IllegalAction as error:
            name = seats[batch.seat[error.table]].name
            raise IllegalAction(f"player {name!r}: {error}", error.table, error.action) from None
        points[playing] += batch.rewards[playing]


def _choices(
    player: Player, views: Views, streams: Streams, forfeit: bool
) -> tuple[npt.NDArray[np.int64], dict[int, str]]:
    """What a player chooses, and why it chose nothing, by view."""
    if forfeit:
        return _tried(player, views, streams)
    try:
        return check_actions(player.act(views, streams), len(views)), {}
    except Forfeit as error:
        return error.actions, error.reasons
    except ValueError as error:
        raise ValueError(f"player {player.name!r}: {error}") from error


def _tried(player: Player, views: Views, streams: Streams) -> tuple[npt.NDArray[np.int64], dict[int, str]]:
    """`_choices` of a player whose errors are forfeits.

    Where it fails on many views it is asked again, with the same random numbers, view by view: so
    it forfeits those games in which it fails, however many are played at once.
    """
    before = streams.states[streams.index]
    try:
        actions, reasons = check_actions(player.act(views, streams), len(views)), dict[int, str]()
    except Forfeit as error:
        actions, reasons = error.actions, dict(error.reasons)
    except Exception as error:
        if len(views) == 1:
            return np.zeros(1, np.int64), {0: f"{type(error).__name__}: {error}"}
        streams.states[streams.index] = before
        actions, reasons = np.zeros(len(views), np.int64), {}
        for i in range(len(views)):
            row = np.array([i])
            actions[row], own = _tried(player, views[row], streams.rows(row))
            if own:
                reasons[i] = own[0]
        return actions, reasons
    known = (actions >= 0) & (actions < player.rules.num_actions)
    tiles = np.where(known, actions >> 1, 0).astype(np.uint64)
    words = views["legal"][np.arange(len(views)), np.where(known, actions & 1, 0)]
    legal = known & (words >> tiles & np.uint64(1)).astype(np.bool_)
    for i in np.flatnonzero(~legal).tolist():
        reasons.setdefault(i, _illegal(views[i], int(actions[i]), known=bool(known[i])))
    return actions, reasons


def _illegal(view: np.void, action: int, *, known: bool) -> str:
    opening = bool(view["left"] == NONE)
    named = f"{action_name(action, opening=opening)!r}" if known else f"action {action}"
    legal = ", ".join(map(str, moves_of(view["legal"][0], view["legal"][1], opening)))
    return f"illegal move {named}; legal: {legal}"


def _in_short(reason: str) -> str:
    text = " ".join(reason.split())
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1] + "…"
