"""Released policies, each a checkpoint with a card to read: ``agents.zoo:Zoo?name=duplas-v1``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from domino_env import RuleSet
from domino_env._checks import near
from domino_env.arena import describe

from ..checkpoint import CARD_FILE, CheckpointError, load
from ..policy import PolicyPlayer

FOLDER: Final = Path(__file__).parent


def names() -> list[str]:
    """The names of the released policies."""
    return sorted(card.parent.name for card in FOLDER.glob(f"*/{CARD_FILE}"))


def path_of(name: str) -> Path:
    """The checkpoint of a released policy, given as ``"duplas-v1"`` or ``"zoo/duplas-v1"``.

    Raises:
        ValueError: there is none of that name.
    """
    short = name.removeprefix("zoo/")
    if short not in (known := names()):
        raise ValueError(f"unknown policy {name!r}{near(short, known)}; policies: {', '.join(known)}")
    return FOLDER / short


class Zoo(PolicyPlayer):
    """Plays a released policy.

    Args:
        rules: the rules it was trained under; others are refused.
        name: which policy.
        mode: as `PolicyPlayer` has it.

    Raises:
        ValueError: an unknown policy or mode; other rules, or other observations, than the policy's.
    """

    def __init__(self, rules: RuleSet, name: str, mode: str = "greedy") -> None:
        folder = path_of(name)
        _, card = load(folder)
        if card.rule_set != rules:
            raise CheckpointError(
                f"{folder.name} was trained for {describe(card.rule_set)}; it cannot play {describe(rules)}"
            )
        super().__init__(rules, str(folder), mode)
        self.name = f"zoo/{folder.name}"
