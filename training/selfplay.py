"""Self-play with a critic that knows the deal: what is kept of the decisions, and how good each of them was."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from agents.critic import by_side, from_side
from agents.networks import by_decision
from domino_env import Batch
from domino_env.afterstates import Deals, Moves
from domino_env.players import Player, Streams


def advantages(
    rewards: torch.Tensor, values: torch.Tensor, done: torch.Tensor, gamma: float, gae_lambda: float
) -> torch.Tensor:
    """How much better than expected each decision turned out for each side, (steps, n, sides).

    The trace runs over all decisions of a table in order, whoever's they are: the critic knows the
    deal, so its value of the next decision is as good a forecast for the side that made this one.

    Args:
        rewards: what each side gained from this decision to the next, (steps, n, sides).
        values: what the critic expected each side to gain from here on, (steps + 1, n, sides).
        done: whether the episode ended between this decision and the next, bool (steps, n).
    """
    found = torch.empty_like(rewards)
    following = torch.zeros_like(rewards[0])
    going_on = (~done).to(rewards.dtype)[:, :, None]
    for t in reversed(range(len(rewards))):
        error = rewards[t] + gamma * going_on[t] * values[t + 1] - values[t]
        found[t] = following = error + gamma * gae_lambda * going_on[t] * following
    return found


class Lookahead:
    """What each legal move leads to, in the critic's view: every move is tried on a copy of its table."""

    def __init__(self, batch: Batch, deals: Deals, gamma: float, reward_scale: float) -> None:
        self.source, self.deals, self.gamma, self.scale = batch, deals, gamma, reward_scale
        self.copies = Batch(
            batch.rules, batch.num_tables, 0, episode="match" if batch.match else "round",
            reward="equity" if batch.equity is not None else "outcome" if batch.outcome else "points",
            skip_single=True, autoreset=False, observe=False, threads=1,
        )  # fmt: skip
        self.seconds = 0.0  # spent in the environment

    def values(
        self,
        critic: Callable[[torch.Tensor], torch.Tensor],
        tables: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
    ) -> torch.Tensor:
        """What the deciding side gains from each action at its table on, (moves,)."""
        source, copies, sides = self.source, self.copies, self.source.rules.num_sides
        own = torch.from_numpy(source.seat[tables] % sides).long()
        found = []
        for start in range(0, len(tables), len(copies.done)):
            part = slice(start, start + len(copies.done))
            m = len(tables[part])
            began = time.perf_counter()
            for theirs, mine in (
                (source.state, copies.state), (source.legal, copies.legal), (source.chances, copies.chances)
            ):  # fmt: skip
                to = mine.view(np.uint8).reshape(len(mine), -1)  # records are copied field by field, bytes at once
                np.take(theirs.view(np.uint8).reshape(len(theirs), -1), tables[part], axis=0, out=to[:m])
            copies.done[:] = np.arange(len(copies.done)) >= m
            copies.step(np.pad(actions[part], (0, len(copies.done) - m)), tables=~copies.done)
            self.seconds += time.perf_counter() - began
            seen = torch.from_numpy(self.deals.of(copies.state[:m]))
            next_side = torch.from_numpy(copies.seat[:m] % sides).long()
            coming = by_side(critic(seen).cpu(), next_side, sides)
            coming[torch.from_numpy(copies.done[:m])] = 0
            gains = torch.from_numpy(copies.rewards[:m]) * self.scale + self.gamma * coming
            found.append(gains.gather(1, own[part][:, None])[:, 0])
        return torch.cat(found)


class Opponents:
    """Players that hold all seats but those of one side, at the first of a batch's tables.

    Each of them plays at as many tables against each side. Their decisions are not learnt from.
    """

    def __init__(self, players: Sequence[Player], batch: Batch, tables: int, seed: int) -> None:
        self.players, self.batch = players, batch
        order = np.arange(tables if players else 0)
        self.player = order % max(len(players), 1)  # which of them plays
        self.learner = order // max(len(players), 1) % batch.rules.num_sides  # against which side
        self.streams = Streams.from_seed(seed, max(len(order), 1))

    def decide(self, moves: Moves, played: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Put the opponents' moves into `played` (which of its moves each table plays); where they did, (tables,)."""
        theirs = np.zeros(self.batch.num_tables, np.bool_)
        n = len(self.player)
        theirs[:n] = self.batch.seat[:n] % self.batch.rules.num_sides != self.learner
        for i, player in enumerate(self.players):
            tables = np.flatnonzero(theirs[:n] & (self.player == i))
            if len(tables):
                actions = player.act(self.batch.views(tables), self.streams.rows(tables))
                played[tables] = [moves.find(*pair) for pair in zip(tables, actions, strict=True)]
        return theirs


class Rollout:
    """What `steps` decisions at each of n tables were like, (steps, n, ...), and all the moves that were open."""

    def __init__(self, steps: int, n: int, sides: int) -> None:
        self.side = torch.zeros((steps + 1, n), dtype=torch.int64)
        self.played = torch.zeros((steps, n), dtype=torch.int64)  # which of its moves
        self.action = torch.zeros((steps, n), dtype=torch.int64)
        self.value = torch.zeros((steps + 1, n, sides))  # of each side, also of the decisions that come next
        self.reward = torch.zeros((steps, n, sides))
        self.done = torch.zeros((steps, n), dtype=torch.bool)
        self.own = torch.ones((steps, n), dtype=torch.bool)  # decisions of the policy, not of an opponent
        self.clear()

    def clear(self) -> None:
        """Forget the moves and deals."""
        self.moves: list[torch.Tensor] = []  # afterstates
        self.counts: list[torch.Tensor] = []  # moves of each decision
        self.log_prob: list[torch.Tensor] = []
        self.outlook: list[torch.Tensor] = []  # what the deciding side gains after each move
        self.deals: list[torch.Tensor] = []


def credit(
    kept: Rollout, gamma: float, gae_lambda: float, *, all_actions: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """How good a rollout's decisions were; a row a decision, the tables of the first step first.

    Returns:
        The advantage of each decision for the side that made it (decisions,), by GAE; what the policy learns from,
        a number for each move: that of the one that was played, or of all by what they lead to, in standard
        deviations of the first; and what the critic should have said (decisions, outputs).
    """
    gains = advantages(kept.reward, kept.value, kept.done, gamma, gae_lambda)
    side = kept.side[:-1].flatten()
    targets = from_side((gains + kept.value[:-1]).flatten(0, 1), side, gains.shape[2])
    own = gains.flatten(0, 1).gather(1, side[:, None])[:, 0]
    learnt = own[kept.own.flatten()] if kept.own.sum() > 1 else own
    counts = torch.cat(kept.counts)
    if all_actions:
        outlook, chances = torch.cat(kept.outlook), torch.cat(kept.log_prob).exp()
        means = by_decision(outlook * chances, counts, 0.0).sum(1)
        better = outlook - means.repeat_interleave(counts)
    else:
        better = (own - learnt.mean()).repeat_interleave(counts)
    return own, better / (learnt.std() + 1e-8), targets


def arrays_of(batch: Batch, opponents: Opponents) -> dict[str, npt.NDArray[Any]]:
    """Their own arrays (not copies), as types that tensors can have: where tables and players' streams stand."""
    return {
        "tables": batch.state.view(np.uint8), "legal": batch.legal.view(np.int64), "done": batch.done,
        "chances": batch.chances.view(np.uint8),
        "opponents": opponents.streams.states.view(np.uint8),
    }  # fmt: skip
