"""Policies on disk: a folder of ``policy.safetensors`` (weights) and ``card.json`` (all else).

No file is unpickled. A folder is written under another name and renamed when it is whole, so what
can be found can be loaded.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from domino_env import RuleSet, make_rules
from domino_env.afterstates import Afterstates
from domino_env.observation import Encoding, encoding_of
from domino_env.rules import preset_of

from .networks import POLICIES, MoveNet, PolicyNet, network_of

FORMAT: Final = 1
WEIGHTS_FILE: Final = "policy.safetensors"
CARD_FILE: Final = "card.json"


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, with what is wrong with it."""


@dataclass(frozen=True)
class Card:
    """What a checkpoint says of itself."""

    preset: str
    rules: dict[str, Any]  # fields that differ from the preset's
    encoding: str  # fingerprint of what it was trained on: observations or afterstates
    hidden: list[int]
    activation: str
    steps: int  # decisions it was trained on
    code: str  # hash of the package's sources at the time
    config: dict[str, Any] = field(default_factory=dict)
    sees: str = "observations"  # what the network is given: observations, or the afterstates of moves
    format: int = FORMAT

    @property
    def rule_set(self) -> RuleSet:
        """The rules it was trained under."""
        return make_rules(self.preset, **self.rules)


def layout_of(sees: str, rules: RuleSet) -> Encoding | Afterstates:
    """How what a kind of network is given is laid out."""
    return Afterstates(rules) if sees == "afterstates" else encoding_of(rules)


def sees_of(policy: PolicyNet | MoveNet) -> str:
    """What a network is given."""
    return next(sees for sees, kind in POLICIES.items() if isinstance(policy, kind))


def make_card(
    rules: RuleSet,
    hidden: list[int],
    activation: str,
    *,
    steps: int,
    code: str,
    config: dict[str, Any] | None = None,
    sees: str = "observations",
) -> Card:
    """The card of a policy for `rules`; `sees` is a key of `POLICIES`."""
    preset, changes = preset_of(rules)
    return Card(
        preset, changes, layout_of(sees, rules).fingerprint, hidden, activation, steps, code, config or {}, sees
    )  # fmt: skip


def save(
    folder: str | os.PathLike[str],
    policy: PolicyNet | MoveNet,
    card: Card,
    others: Mapping[str, Mapping[str, torch.Tensor]] | None = None,
) -> Path:
    """Write a checkpoint at `folder`; its path.

    Args:
        others: more tensors to keep with it, by the name of their file.

    Raises:
        CheckpointError: `folder` exists, or weights are NaN or infinite. Nothing was written.
        OSError: it cannot be written. Nothing is left of it.
    """
    target = Path(folder)
    if target.exists():
        raise CheckpointError(f"{target} exists already")
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in policy.state_dict().items()}
    _check_finite(target, weights)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        save_file(weights, part / WEIGHTS_FILE)
        for name, tensors in (others or {}).items():
            save_file({key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}, part / name)
        (part / CARD_FILE).write_text(json.dumps(asdict(card), indent=2) + "\n", encoding="utf-8")
        os.replace(part, target)
    except SafetensorError as error:
        raise OSError(f"{target}: {error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def load(folder: str | os.PathLike[str]) -> tuple[PolicyNet | MoveNet, Card]:
    """The policy (on the CPU, in evaluation mode) and card of a checkpoint.

    Raises:
        CheckpointError: missing or damaged files, another format, observations or weights of another shape.
    """
    source = Path(folder)
    for name in (CARD_FILE, WEIGHTS_FILE):
        if not (source / name).is_file():
            raise CheckpointError(f"{source} is not a checkpoint: {name} is missing")
    card = _read_card(source / CARD_FILE)
    layout = layout_of(card.sees, card.rule_set)
    if card.encoding != layout.fingerprint:
        raise CheckpointError(
            f"{source}: trained on {card.sees} {card.encoding}; this version's are {layout.fingerprint}"
        )
    try:
        weights = load_file(source / WEIGHTS_FILE)
        policy = network_of(
            POLICIES[card.sees], weights, card.hidden, card.activation, inputs=layout.size,
            outputs=1 if card.sees == "afterstates" else card.rule_set.num_actions,
        )  # fmt: skip
    except (TypeError, ValueError, OSError, RuntimeError, SafetensorError) as error:
        raise CheckpointError(f"{source / WEIGHTS_FILE}: {' '.join(str(error).split())}") from error
    _check_finite(source, weights)
    return policy, card


def _read_card(file: Path) -> Card:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        if values.get("format") != FORMAT:
            raise ValueError(f"format {values.get('format')!r}; this version reads format {FORMAT}")
        card = Card(**values)
        _ = card.rule_set
        if card.sees not in POLICIES:
            raise ValueError(f"sees {card.sees!r}; this version knows {', '.join(POLICIES)}")
    except (TypeError, ValueError, AttributeError, OSError, RecursionError) as error:
        raise CheckpointError(f"{file}: {error}") from error
    return card


def _check_finite(place: Path, weights: Mapping[str, torch.Tensor]) -> None:
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise CheckpointError(f"{place}: the weights {name} hold NaN or infinity")


def newest(run: str | os.PathLike[str]) -> Path:
    """The checkpoint of a run with the most steps, or `run` itself where it is a checkpoint."""
    folder = Path(run)
    if (folder / CARD_FILE).exists():
        return folder
    # Those whose name begins with a dot are half written.
    found = sorted(path.parent for path in folder.glob(f"checkpoints/[!.]*/{CARD_FILE}"))
    if not found:
        raise CheckpointError(f"{folder} is neither a checkpoint nor a run folder with checkpoints")
    return found[-1]


def remove_parts(run: str | os.PathLike[str]) -> None:
    """Remove checkpoints of a run that were not finished, because their process was killed."""
    for part in Path(run).glob("checkpoints/.*.part"):
        shutil.rmtree(part, ignore_errors=True)
