from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PLAYED_AFTERWARDS = """
import sys

from play_rooms import play_on, started

from domino_env import PRESETS, make_rules
from domino_env.play.frames import frame
from domino_env.play.server import warm_up

def compiled():
    modules = [module for name, module in sys.modules.items() if name.startswith("domino_env")]
    made = {id(value): value for module in modules for value in vars(module).values() if hasattr(value, "signatures")}
    return sum(len(value.signatures) for value in made.values())

warm_up()
before = compiled()
assert before > 0
for rules in (*PRESETS.values(), make_rules("puxar", max_pip=9), make_rules("blocos", players=9, opening="lots")):
    room, people = started("Ana", "Rui", rules=rules)
    play_on(room, "over")
    frame(room, people[0], 0.0)
    room.record()
print(compiled() - before)
"""


@pytest.mark.long
def test_nothing_compiles_at_a_table() -> None:
    """All rooms would wait for it."""
    command = [sys.executable, "-c", PLAYED_AFTERWARDS]
    told = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent, timeout=600)
    assert (told.stdout, told.stderr) == ("0\n", "")
