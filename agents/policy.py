"""Policies as players: ``agents.policy:PolicyPlayer?path=runs/duplas&mode=sample``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from domino_env import RuleSet
from domino_env.arena import describe
from domino_env.observation import Views, encoding_of, masks
from domino_env.players import Player, Streams

from .checkpoint import CheckpointError, load, newest
from .networks import PolicyNet, masked

MODES: Final = ("greedy", "sample")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread, and afterwards as many as before."""
    before = torch.get_num_threads()
    if before != 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if before != 1:
            torch.set_num_threads(before)


class PolicyPlayer(Player):
    """Plays a policy.

    Args:
        rules: the rules to play under; their observations must be those the policy was trained on.
        path: a checkpoint, or a run folder (its newest checkpoint).
        mode: ``"greedy"`` (the likeliest action) or ``"sample"`` (drawn as likely as the policy says).
        policy: a network to use instead of `path`.

    Raises:
        ValueError: an unknown mode; a checkpoint that cannot be loaded, or was trained on other observations.
    """

    def __init__(
        self,
        rules: RuleSet,
        path: str | None = None,
        mode: str = "greedy",
        *,
        policy: PolicyNet | None = None,
    ) -> None:
        super().__init__(rules)
        if mode not in MODES:
            raise ValueError(f"mode={mode!r} is not one of {', '.join(MODES)}")
        if (path is None) == (policy is None):
            raise ValueError("give either path= (a checkpoint or run folder) or policy=")
        self.mode = mode
        self.encoding = encoding_of(rules)
        if policy is None:
            assert path is not None
            source = newest(str(path))  # a spec string gives a folder 7 as a number
            policy, card = load(source)
            if card.encoding != self.encoding.fingerprint:
                played = f"{describe(card.rule_set)}; it cannot play {describe(rules)}"
                raise CheckpointError(f"{source} was trained for {played}")
            self.name = source.name
        else:
            self.name = "policy"
        self.policy = policy

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """The policy's action for each view, (n,); computed on one thread, on which small networks are fastest.

        Raises:
            ValueError: logits that are not finite, or a view of a seat that is not to act.
        """
        with torch.inference_mode(), one_thread():
            observations = torch.from_numpy(self.encoding.vectors(views))
            legal = torch.from_numpy(masks(views, self.rules.num_actions))
            if not legal.any(1).all():
                raise ValueError("a view is of a seat that is not to act")
            logits = masked(self.policy(observations), legal)
            if not logits.isfinite().all():
                raise ValueError("the policy's logits hold NaN or infinity")
            chosen: npt.NDArray[np.int64]
            if self.mode == "greedy":
                chosen = logits.argmax(1).numpy()
            else:  # the first action whose cumulated share passes the draw; never one of share 0
                shares = logits.double().softmax(1).cumsum(1).numpy()
                chosen = (shares > rng.random()[:, None] * shares[:, -1:]).argmax(1)
            return chosen
