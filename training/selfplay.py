"""Self-play with a critic that knows the deal: what is kept of the decisions, and how good each of them was."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from agents.critic import HiddenTiles, by_side, from_side
from agents.networks import PolicyNet
from domino_env import Batch


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
    """What each legal action leads to, in the critic's view: every action is tried on a copy of its table."""

    def __init__(self, batch: Batch, hidden_tiles: HiddenTiles, gamma: float, reward_scale: float) -> None:
        self.source, self.hidden_tiles, self.gamma, self.scale = batch, hidden_tiles, gamma, reward_scale
        self.copies = Batch(
            batch.rules, batch.num_tables, 0, episode="match" if batch.match else "round",
            reward="outcome" if batch.outcome else "points", skip_single=True, autoreset=False, threads=1,
        )  # fmt: skip
        self.seconds = 0.0  # spent in the environment

    def values(self, critic: PolicyNet, device: torch.device) -> torch.Tensor:
        """What the deciding side gains after each action, (n, actions); 0 for illegal ones."""
        source, copies, sides = self.source, self.copies, self.source.rules.num_sides
        rows, actions = np.nonzero(source.action_mask)
        own = torch.from_numpy(source.seat[rows] % sides)
        found = torch.zeros(source.action_mask.shape)
        for start in range(0, len(rows), len(copies.done)):
            part = slice(start, start + len(copies.done))
            m = len(rows[part])
            began = time.perf_counter()
            for theirs, mine in ((source.state, copies.state), (source.legal, copies.legal)):
                to = mine.view(np.uint8).reshape(len(mine), -1)  # records are copied field by field, bytes at once
                np.take(theirs.view(np.uint8).reshape(len(theirs), -1), rows[part], axis=0, out=to[:m])
            copies.done[:] = np.arange(len(copies.done)) >= m
            copies.step(np.pad(actions[part], (0, len(copies.done) - m)), tables=~copies.done)
            self.seconds += time.perf_counter() - began
            hidden = torch.from_numpy(self.hidden_tiles.of(copies.state[:m], copies.seat[:m]))
            seen = torch.cat([torch.from_numpy(copies.observation[:m]), hidden], 1)
            next_side = torch.from_numpy(copies.seat[:m] % sides).long()
            coming = by_side(critic(seen.to(device)).cpu(), next_side, sides)
            coming[torch.from_numpy(copies.done[:m])] = 0
            gains = torch.from_numpy(copies.rewards[:m]) * self.scale + self.gamma * coming
            found[rows[part], actions[part]] = gains.gather(1, own[part].long()[:, None])[:, 0]
        return found


class Rollout:
    """What `steps` decisions at each of n tables were like; (steps, n, ...)."""

    def __init__(self, steps: int, n: int, inputs: int, unseen: int, actions: int, sides: int) -> None:
        self.observation = torch.zeros((steps, n, inputs), dtype=torch.int8)
        self.hidden = torch.zeros((steps + 1, n, unseen), dtype=torch.int8)
        self.mask = torch.zeros((steps, n, actions), dtype=torch.int8)
        self.side = torch.zeros((steps + 1, n), dtype=torch.int64)
        self.action = torch.zeros((steps, n), dtype=torch.int64)
        self.log_prob = torch.zeros((steps, n, actions))
        self.outlook = torch.zeros((steps, n, actions))  # what the deciding side gains after each action
        self.value = torch.zeros((steps + 1, n, sides))  # of each side, also of the decisions that come next
        self.reward = torch.zeros((steps, n, sides))
        self.done = torch.zeros((steps, n), dtype=torch.bool)


def credit(
    kept: Rollout, gamma: float, gae_lambda: float, *, all_actions: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """How good a rollout's decisions were; a row a decision, the tables of the first step first.

    Returns:
        The advantage of each decision for the side that made it (rows,), by GAE; what the policy learns from:
        that again (rows, 1), or the advantages of all legal actions (rows, actions), in standard deviations
        of the first; and what the critic should have said (rows, outputs).
    """
    gains = advantages(kept.reward, kept.value, kept.done, gamma, gae_lambda)
    side = kept.side[:-1].flatten()
    targets = from_side((gains + kept.value[:-1]).flatten(0, 1), side, gains.shape[2])
    own = gains.flatten(0, 1).gather(1, side[:, None])[:, 0]
    if all_actions:
        outlook = kept.outlook.flatten(0, 1)
        better = outlook - (kept.log_prob.flatten(0, 1).exp() * outlook).sum(1, keepdim=True)
    else:
        better = (own - own.mean())[:, None]
    return own, better / (own.std() + 1e-8), targets


def arrays_of(batch: Batch) -> dict[str, npt.NDArray[Any]]:
    """A batch's own arrays (not copies), of types that tensors can have: where its tables stand."""
    return {
        "tables": batch.state.view(np.uint8), "legal": batch.legal.view(np.int64), "done": batch.done,
        "observation": batch.observation, "mask": batch.action_mask,
    }  # fmt: skip
