"""What a run's checkpoints hold, how its networks begin, and how both are gone on from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError

from agents import checkpoint
from agents.checkpoint import layout_of, load, newest, sees_of
from agents.critic import CRITIC_FILE, load_critic
from agents.networks import MoveNet, Perceptron, PolicyNet, shape_of
from domino_env import RuleSet
from domino_env._jit import source_hash
from domino_env.arena import describe
from domino_env.observation import Layout

from .config import ConfigError
from .runs import RunKeys, checkpoint_of

#: In a checkpoint: all that training goes on with.
TRAINING_FILE: Final = "training.safetensors"


def begin_with(start: str, rules: RuleSet, policy: PolicyNet | MoveNet, critic: Perceptron) -> None:
    """Give a new run's networks the weights of a checkpoint, or of a run's newest.

    A checkpoint without a critic leaves the run's as it is.

    Raises:
        ConfigError: there is no such checkpoint, it is damaged, or its networks are of another kind. Nothing changed.
    """
    try:
        source = checkpoint_of(start) or newest(start)
        kept, card = load(source)
        facts: list[tuple[str, object, object]] = [("sees", card.sees, sees_of(policy))]
        if card.sees == sees_of(policy):
            if card.encoding != layout_of(card.sees, rules).fingerprint:
                facts.append(("rules", describe(card.rule_set), describe(rules)))
            (hidden, activation), (own_hidden, own_activation) = shape_of(kept), shape_of(policy)
            facts += [("hidden", hidden, own_hidden), ("activation", activation, own_activation)]
        kept_critic = None
        if card.sees == sees_of(policy) and (source / CRITIC_FILE).exists():
            kept_critic = load_critic(source)
            facts.append(("critic_hidden", shape_of(kept_critic)[0], shape_of(critic)[0]))
    except ValueError as error:
        raise ConfigError(f"start={start}: {error}") from error
    if wrong := [f"{name} {theirs} there, {own} here" for name, theirs, own in facts if theirs != own]:
        raise ConfigError(f"start={start}: its networks are not this run's: {'; '.join(wrong)}")
    policy.load_state_dict(kept.state_dict())
    if kept_critic is not None:
        critic.load_state_dict(kept_critic.state_dict())


def ignore_scores(net: Perceptron, layout: Layout) -> None:
    """Begin with weights of 0 for what single rounds never show: it must not matter to a policy that plays matches."""
    for name in ("scores", "multiplier"):
        if part := layout.slices.get(name):
            first = net.layers[0].weight.data
            first[:, part.start : part.stop] = 0


def card_of(config: RunKeys, rules: RuleSet, steps: int, sees: str) -> checkpoint.Card:
    """The card of a run's checkpoint."""
    return checkpoint.make_card(
        rules, config.hidden, config.activation, steps=steps, code=source_hash(), config=config.model_dump(), sees=sees
    )


@contextmanager
def as_checkpoint_error(folder: Path) -> Iterator[None]:
    """Whatever goes wrong while a checkpoint is gone on from is a `CheckpointError` that names it."""
    try:
        yield
    except (KeyError, ValueError, OSError, RuntimeError, SafetensorError) as error:
        raise checkpoint.CheckpointError(f"{folder}: {' '.join(str(error).split())}") from error


def optimizer_state(optimizer: torch.optim.Optimizer, name: str) -> dict[str, torch.Tensor]:
    """What an optimizer keeps of each parameter, by names that `restore_optimizer` knows."""
    return {
        f"optimizer.{name}.{i}.{key}": value
        for i, parameter in enumerate(optimizer.param_groups[0]["params"])
        for key, value in optimizer.state[parameter].items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, name: str, kept: Mapping[str, torch.Tensor]) -> None:
    """The inverse of `optimizer_state`."""
    for i, parameter in enumerate(optimizer.param_groups[0]["params"]):
        start = f"optimizer.{name}.{i}."
        values = {key.removeprefix(start): kept[key] for key in kept if key.startswith(start)}
        optimizer.state[parameter] = {key: value.to(parameter.device) for key, value in values.items()}
