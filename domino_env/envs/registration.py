"""Names of the environments in Gymnasium's and, where it has one, PettingZoo's registry."""

from __future__ import annotations

from typing import Final

import gymnasium

from ..rules import PRESETS

#: Gymnasium ids by preset.
IDS: Final = {name: f"domino_env/{''.join(word.capitalize() for word in name.split('_'))}-v0" for name in PRESETS}


def register_all() -> None:
    """Register every preset with Gymnasium; doing so again changes nothing."""
    for preset, name in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                "domino_env.envs.single:DominoEnv",
                vector_entry_point="domino_env.envs.vector:DominoVectorEnv",
                kwargs={"preset": preset},
            )


def register_aec() -> None:
    """Register every preset with PettingZoo as ``domino/<preset>-v0``; releases without a registry have none.

    Importing `domino_env.envs.aec` does so. (Importing the package does not: that would import PettingZoo.)
    """
    import pettingzoo

    if not hasattr(pettingzoo, "register"):
        return
    for preset in PRESETS:
        name = f"domino/{preset}-v0"
        if name not in pettingzoo.aec_registry:
            pettingzoo.register("aec", name, "domino_env.envs.aec:env", kwargs={"preset": preset})
