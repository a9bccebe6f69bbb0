"""Policies as players: ``agents.policy:PolicyPlayer?path=runs/duplas&mode=sample``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from domino_env import RuleSet
from domino_env._checks import one_of
from domino_env.arena import describe
from domino_env.bots.champion import MODES
from domino_env.bots.networks import PolicyNetworks
from domino_env.observation import Encoding, Views, masks
from domino_env.players import Player, Streams

from .checkpoint import CARD_FILE, CheckpointError, layout_of, load, newest, sees_of
from .critic import CRITIC_FILE, load_critic
from .networks import NEVER, MoveNet, PolicyNet, by_decision, layers_of, masked

#: What a run's configuration says of what its critic foretells.
_FORETOLD: Final = ("episode", "reward", "reward_scale", "gamma")


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
        policy: a network to use instead of `path`: a `PolicyNet`, or a `MoveNet`.

    Raises:
        ValueError: an unknown mode; a checkpoint that cannot be loaded, or was trained on other observations.
    """

    def __init__(
        self,
        rules: RuleSet,
        path: str | None = None,
        mode: str = "greedy",
        *,
        policy: PolicyNet | MoveNet | None = None,
    ) -> None:
        super().__init__(rules)
        self.mode = one_of("mode", mode, MODES)
        if (path is None) == (policy is None):
            raise ValueError("give either path= (a checkpoint or run folder) or policy=")
        self.source: Path | None = None
        self._config: dict[str, Any] = {}  # of the run that the checkpoint is of
        if policy is None:
            assert path is not None
            source = newest(str(path))  # a spec string gives a folder 7 as a number
            policy, card = load(source)
            if card.encoding != layout_of(card.sees, rules).fingerprint:
                played = f"{describe(card.rule_set)}; it cannot play {describe(rules)}"
                raise CheckpointError(f"{source} was trained for {played}")
            self.name, self.source, self._config = source.name, source, card.config
        else:
            self.name = "policy"
        self.policy = policy
        self.layout = layout_of(sees_of(policy), rules)

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """The policy's action for each view, (n,); computed on one thread, on which small networks are fastest.

        Raises:
            ValueError: logits that are not finite, or a view of a seat that is not to act.
        """
        with torch.inference_mode(), one_thread():
            logits, actions = self.logits(views)
            if not logits.isfinite().all():
                raise ValueError("the policy's logits hold NaN or infinity")
            if self.mode == "greedy":
                chosen = logits.argmax(1).numpy()
            else:  # the first action whose cumulated share passes the draw; never one of share 0
                shares = logits.double().softmax(1).cumsum(1).numpy()
                chosen = (shares > rng.random()[:, None] * shares[:, -1:]).argmax(1)
            found: npt.NDArray[np.int64] = np.take_along_axis(actions, chosen[:, None], 1)[:, 0]
            return found

    @cached_property
    def networks(self) -> PolicyNetworks:
        """The policy as compiled players run it, with the critic of its checkpoint where it has one.

        Raises:
            CheckpointError: a policy that sees observations; a critic that is damaged or of which it is not known
                what it foretells.
        """
        if not isinstance(self.policy, MoveNet):
            raise CheckpointError(f"{self.source or self.name} sees observations; this takes one that sees afterstates")
        layers, activation = layers_of(self.policy), self.policy.activation
        if self.source is None or not (self.source / CRITIC_FILE).is_file():
            return PolicyNetworks(self.rules, layers, None, activation, self.name)
        if missing := [name for name in _FORETOLD if name not in self._config]:
            raise CheckpointError(f"{self.source / CARD_FILE}: {', '.join(missing)}: missing from its configuration")
        critic = layers_of(load_critic(self.source))
        return PolicyNetworks(
            self.rules, layers, critic, activation, self.name, **{name: self._config[name] for name in _FORETOLD}
        )

    def chances(self, views: Views) -> npt.NDArray[np.float64]:
        """How likely the policy is to choose each action in each view, (n, actions).

        Raises:
            ValueError: as `act`.
        """
        if self.mode == "greedy":
            return super().chances(views)
        with torch.inference_mode(), one_thread():
            logits, actions = self.logits(views)
            found = np.zeros((len(views), self.rules.num_actions))
            # Rows are filled up with action 0, of share 0: what is put there is added.
            np.add.at(found, (np.arange(len(views))[:, None], actions), logits.double().softmax(1).numpy())
            return found

    def logits(self, views: Views) -> tuple[torch.Tensor, npt.NDArray[np.int64]]:
        """The policy's logits for each view, (n, m), and the actions they are of; lowest where there is no move.

        Raises:
            ValueError: a view of a seat that is not to act.
        """
        legal = torch.from_numpy(masks(views, self.rules.num_actions))
        if not legal.any(1).all():
            raise ValueError("a view is of a seat that is not to act")
        if isinstance(self.layout, Encoding):
            logits = masked(self.policy(torch.from_numpy(self.layout.vectors(views))), legal)
            return logits, np.broadcast_to(np.arange(logits.shape[1]), logits.shape)
        moves = self.layout.of(views)
        counts = torch.from_numpy(np.diff(moves.starts))
        logits = by_decision(self.policy(torch.from_numpy(moves.rows))[:, 0], counts, NEVER)
        actions = by_decision(torch.from_numpy(moves.actions), counts, 0)
        return logits, actions.numpy()
