"""Stable-Baselines3: a policy that scores moves, and models as policies."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.distributions import MaskableDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from .networks import ACTIVATIONS, NEVER, MoveNet, Perceptron, PolicyNet, network_of, spread


class MovePolicy(MaskableActorCriticPolicy):
    """For observations that are moves, a row each (``DominoVecEnv(moves=True)``), and actions that number them.

    One perceptron gives each row a logit, another a value; a position's value is the mean of its moves' values,
    each as likely as the policy plays it. Only rows that the mask allows are computed; without a mask those that
    are not all zeros, which are no moves.

    Args:
        net_arch: widths of the hidden layers, or of each perceptron's: ``{"pi": [256, 128], "vf": [128, 128]}``.
        activation_fn: ``torch.nn.ReLU`` or ``torch.nn.Tanh``.
        precision: ``"float32"``, or ``"bfloat16"`` for the networks' products alone: twice as fast on processors
            that have it.
        others: as for SB3's own policies.

    Raises:
        ValueError: spaces of other observations or actions, another activation or precision.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Any,
        net_arch: list[int] | dict[str, list[int]] | None = None,
        activation_fn: type[nn.Module] = nn.ReLU,
        precision: str = "float32",
        **others: Any,
    ) -> None:
        shape = observation_space.shape if isinstance(observation_space, spaces.Box) else None
        rooms = int(action_space.n) if isinstance(action_space, spaces.Discrete) else None
        if shape is None or len(shape) != 2 or shape[0] != rooms:
            raise ValueError(f"{observation_space} and {action_space}: MovePolicy wants a row for each of n actions")
        if activation_fn not in ACTIVATIONS.values():
            raise ValueError(f"activation_fn={activation_fn.__name__} is not one of ReLU, Tanh")
        if precision not in ("float32", "bfloat16"):
            raise ValueError(f"precision={precision!r} is not one of float32, bfloat16")
        self.precision = precision
        self.inputs = shape[1]
        super().__init__(observation_space, action_space, lr_schedule, net_arch, activation_fn, **others)

    def _build(self, lr_schedule: Any) -> None:
        """Make the networks and the optimizer."""
        widths = self.net_arch if isinstance(self.net_arch, dict) else {"pi": self.net_arch, "vf": self.net_arch}
        activation = next(name for name, kind in ACTIVATIONS.items() if kind is self.activation_fn)
        actor = MoveNet(self.inputs, widths["pi"], 1, activation)
        critic = Perceptron(self.inputs, widths["vf"], 1, activation)
        if self.ortho_init:
            for net, gain in ((actor, 0.01), (critic, 1.0)):  # gains as SB3's own policies have
                *inner, last = net.layers
                for layer in inner:
                    self.init_weights(layer, gain=np.sqrt(2))
                self.init_weights(last, gain=gain)
        self.action_net, self.value_net = actor, critic  # type: ignore[assignment]
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "precision": self.precision}

    def _judge(self, rows: torch.Tensor, masks: Any = None) -> tuple[MaskableDistribution, torch.Tensor]:
        """The distribution over the actions, and the values (n, 1)."""
        if masks is None:
            there = rows.any(2)
        else:
            there = torch.as_tensor(masks, dtype=torch.bool, device=rows.device).reshape(rows.shape[:2])
        moves = rows[there]
        with torch.autocast(rows.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            found, worth = self.action_net(moves)[:, 0], self.value_net(moves)[:, 0]
        logits = spread(found, there, NEVER)
        values = (spread(worth, there, 0.0) * logits.detach().softmax(1)).sum(1, keepdim=True)
        distribution = self.action_dist.proba_distribution(action_logits=logits)
        if masks is not None:
            distribution.apply_masking(masks)
        return distribution, values

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions (n,), values (n, 1) and the logarithms of the actions' chances (n,)."""
        distribution, values = self._judge(obs, action_masks)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, values, distribution.log_prob(actions)

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Values (n, 1), the logarithms of the actions' chances (n,), and the entropies (n,)."""
        distribution, values = self._judge(obs, action_masks)
        return values, distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Any, action_masks: Any = None) -> MaskableDistribution:
        """The distribution over the actions."""
        return self._judge(obs, action_masks)[0]

    def predict_values(self, obs: Any) -> torch.Tensor:
        """The values, (n, 1)."""
        return self._judge(obs)[1]


def policy_of(model: MaskablePPO) -> PolicyNet | MoveNet:
    """A copy of a model's actor as a `PolicyNet`, or a `MovePolicy`'s as a `MoveNet`; on the CPU, in evaluation mode.

    Raises:
        ValueError: the model's policy is neither a `MovePolicy` nor a plain perceptron from flat observations to
            one of n actions.
    """
    policy, seen, acts = model.policy, model.observation_space, model.action_space
    if model.get_vec_normalize_env() is not None:
        raise ValueError("the model was trained on normalised observations, which players do not get")
    names = {kind: name for name, kind in ACTIVATIONS.items()}
    if isinstance(policy, MovePolicy):
        weights = {name: tensor.clone() for name, tensor in policy.action_net.state_dict().items()}
        hidden = [len(weight) for name, weight in weights.items() if name.endswith("bias")][:-1]
        return network_of(MoveNet, weights, hidden, names[policy.activation_fn], inputs=policy.inputs, outputs=1)
    if not isinstance(seen, spaces.Box) or len(seen.shape) != 1 or not isinstance(acts, spaces.Discrete):
        raise ValueError(f"a policy from {seen} to {acts}; players have flat observations and n actions")
    activation = names.get(policy.activation_fn)
    if activation is None or type(policy.pi_features_extractor) is not FlattenExtractor:
        kinds = " or ".join(ACTIVATIONS)
        raise ValueError(f"{type(policy).__name__} is not a perceptron with {kinds} activations")
    modules = (*policy.mlp_extractor.policy_net, policy.action_net)
    layers = [layer for layer in modules if isinstance(layer, nn.Linear)]
    weights = {
        f"layers.{2 * i}.{name}": tensor.clone()
        for i, layer in enumerate(layers)
        for name, tensor in layer.state_dict().items()
    }
    hidden = [layer.out_features for layer in layers[:-1]]
    return network_of(PolicyNet, weights, hidden, activation, inputs=seen.shape[0], outputs=int(acts.n))
