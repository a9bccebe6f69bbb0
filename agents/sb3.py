"""Stable-Baselines3 models as policies."""

from __future__ import annotations

from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from .networks import ACTIVATIONS, PolicyNet, network_of


def policy_of(model: MaskablePPO) -> PolicyNet:
    """A copy of a model's actor as a `PolicyNet`, on the CPU, in evaluation mode.

    Raises:
        ValueError: the model's policy is not a plain perceptron from flat observations to one of n actions.
    """
    policy, seen, acts = model.policy, model.observation_space, model.action_space
    if not isinstance(seen, spaces.Box) or len(seen.shape) != 1 or not isinstance(acts, spaces.Discrete):
        raise ValueError(f"a policy from {seen} to {acts}; players have flat observations and n actions")
    if model.get_vec_normalize_env() is not None:
        raise ValueError("the model was trained on normalised observations, which players do not get")
    names = {kind: name for name, kind in ACTIVATIONS.items()}
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
    return network_of(weights, hidden, activation, inputs=seen.shape[0], actions=int(acts.n))
