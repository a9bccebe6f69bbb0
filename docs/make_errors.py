"""Writes docs/errors.md: what was tried, and the message it gave. `python docs/make_errors.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gymnasium.error import ResetNeeded

SET_UP = """\
import numpy as np
from domino_env import *

duplas = PRESETS["duplas"]
"""

# title -> (what the cases start from, the cases)
TRIED: dict[str, tuple[str, list[str]]] = {
    "Rule sets": (
        "",
        [
            'make_rules("dupla")',
            'make_rules("duplas", targt=10)',
            'make_rules("duplas", hand_size=8)',
            'make_rules("blocos", players=5, hand_size=7)',
            'make_rules("blocos", players=10)',
            'make_rules("duplas", players=3)',
            'make_rules("blocos", players=4, pairs=True)',
            'make_rules("duplas", target=0)',
            'make_rules("duplas", target="6")',
            'make_rules("duplas", target=6.0)',
            'make_rules("puxar", draw="two")',
            'make_rules("puxar", max_pip=12)',
            'make_rules("puxar", pairs=1)',
            'make_rules("duplas", points_carroca=-2)',
            'make_rules("duplas", tie_multiplier=0)',
            'Game("duplas", seed=7)',
            "Game(duplas, seed=-1)",
            "Game(duplas, seed=0.5)",
        ],
    ),
    "Given deals": (
        'mano = PRESETS["mano_a_mano"]',
        [
            'Game.from_deal(mano, [["6-6", "5-4"]])',
            'Game.from_deal(mano, [["6-6", "5-4"], []])',
            'Game.from_deal(mano, [["6-6", "5-4"], ["4-5", "1-1"]])',
            'Game.from_deal(mano, [["6-6"], ["1-1"]], boneyard=["6-6"])',
            'Game.from_deal(mano, [["7-1"], ["1-1"]])',
            'Game.from_deal(mano, [["66"], ["1-1"]])',
            'Game.from_deal(mano, ["6-6", "1-1"])',
            'Game.from_deal(mano, [["6-6"], ["1-1"]], starter=2)',
            'Game.from_deal(mano, [["6-6"], ["1-1"]], forced="1-1")',
            'Game.from_deal(mano, [["6-6"], ["1-1"]], starter=1, first_round=True)',
            'Game.from_deal(mano, [["6-6"], ["1-1"]], multiplier=0)',
            'Match(mano, deals=[Deal((("6-6",), ("1-1",)), lot=5)])',
        ],
    ),
    "Moves": (
        'game = Game.from_deal(PRESETS["mano_a_mano"], [["6-4", "6-6", "3-1"], ["5-4", "5-5", "2-0"]])\n'
        'game.play("6-4")',
        [
            'game.play("5-4L")',
            'game.play("5-5R")',
            'game.play("6-6L")',
            'game.play("7-7L")',
            'game.play("5-4X")',
            'game.play("pass")',
            "game.play(-1)",
            "game.play(56)",
            "game.play(2**80)",
            "game.play(3.0)",
            "game.play(None)",
            "game.play(True)",
            "game.view(2)",
        ],
    ),
    "Moves that say too little, or come too late": (
        'two = Game.from_deal(duplas, [["6-4", "1-1"], ["6-5", "2-1"], ["5-4", "0-0"], ["3-3", "2-2"]])\n'
        'two.play("6-4")\n'
        'two.play("6-5L")\n'
        'over = Game.from_deal(duplas, [["6-4"], ["6-5"], ["4-4"], ["3-3"]])\n'
        'over.play("6-4")\n'
        'match = Match(make_rules("duplas", target=None), seed=7)\n'
        "while not match.over:\n"
        "    match.play(match.game.legal_moves()[0])",
        [
            'two.play("5-4")',
            'over.play("6-5L")',
            'match.play("6-5L")',
            "Game(duplas, seed=7).undo()",
        ],
    ),
    "Batches": (
        "batch = Batch(duplas, 4, seed=7)",
        [
            "Batch(duplas, 0)",
            'Batch(duplas, 4, episode="hand")',
            'Batch(duplas, 4, reward="score")',
            "Batch(duplas, 4, threads=0)",
            "batch.step([0, 0, 0])",
            "batch.step(np.zeros((4, 1), np.int64))",
            "batch.step(np.zeros(4))",
            "batch.step([0, 0, 0, float('nan')])",
            "batch.step(np.full(4, 2**63, np.uint64))",
            "batch.step([-1, 0, 0, 0])",
            "batch.step([54, 54, 54, 10**9])",
            "batch.step([54, 54, 0, 54])",
            "batch.reset(tables=np.array([0, 1]))",
            "batch.reset(seed=1, tables=np.ones(4, bool))",
            "batch.views(tables=np.array([4]), seats=np.array([0]))",
        ],
    ),
    "Game records": (
        "from domino_env.notation import dumps, loads\n\n"
        'record = """\\\n'
        "domino game 1\n"
        "rules mano_a_mano\n"
        "hand 0: 1-1 6-4\n"
        "hand 1: 5-4 6-6\n"
        "boneyard: 3-3\n"
        "start seat=0 forced=- multiplier=1\n"
        "0:6-4 1:6-6L\n"
        "0:+3-3 0:pass\n"
        "end\n"
        '"""\n'
        "assert dumps(loads(record)) == record",
        [
            'loads("")',
            'loads("garbage \\0 garbage")',
            "loads(record[:40])",
            'loads(record.removesuffix("end\\n"))',
            "loads(record + record)",
            'loads(record.replace("game 1", "game 9"))',
            'loads(record.replace("mano_a_mano", "mano"))',
            'loads(record.replace("mano_a_mano", "mano_a_mano target=0"))',
            'loads(record.replace("1-1 6-4", "1-1 7-4"))',
            'loads(record.replace("1-1 6-4", "1-1 1-1"))',
            'loads(record.replace("0:6-4", "0:6-5"))',
            'loads(record.replace("1:6-6L", "1:6-6R"))',
            'loads(record.replace("1:6-6L", "0:6-6L"))',
            'loads(record.replace("1:6-6L", "1:pass"))',
        ],
    ),
    "Environments": (
        "from domino_env.envs.single import DominoEnv\n\n"
        'env = DominoEnv("duplas", seat=0, strict=True)\n'
        "env.reset(seed=7)",
        [
            'DominoEnv("dupla")',
            'DominoEnv("duplas", rules={"targt": 10})',
            'DominoEnv("duplas", opponents="dubles")',
            'DominoEnv("duplas", opponents=["random", "random", "random"])',
            'DominoEnv("mano_a_mano", partner="random")',
            'DominoEnv("duplas", seat=4)',
            'DominoEnv("duplas", render_mode="svg")',
            'DominoEnv("duplas").step(0)',
            "env.step(0)",
            "env.step(56)",
            "env.step(0.5)",
            "env.step(None)",
        ],
    ),
}

INTRODUCTION = f"""\
# Errors

Wrong input is refused with one message that names what was given, where, and what is allowed. Nothing has
changed then: a refused move leaves the game as it was, and a batch whose third action is illegal has played
none of them. Every error here is a `ValueError`, except Gymnasium's `ResetNeeded`.

This page is written by `python docs/make_errors.py`, which tries every line of it. All of them start from

```python
{SET_UP}```
"""


def answer(expression: str, names: dict[str, Any]) -> str:
    """The error that `expression` gives, as text; AssertionError where it gives none."""
    try:
        eval(expression, names)
    except (ValueError, ResetNeeded) as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"{expression} was accepted")


def start(lines: str) -> dict[str, Any]:
    """The names that a section's cases use."""
    names: dict[str, Any] = {}
    exec(SET_UP + lines, names)
    return names


def page() -> str:
    """The text of docs/errors.md."""
    parts = [INTRODUCTION]
    for title, (lines, expressions) in TRIED.items():
        names = start(lines)
        rows = [f"| `{tried}` | {answer(tried, names)} |" for tried in expressions]
        shown = f"```python\n{lines}\n```\n\n" if lines else ""
        parts.append(f"\n## {title}\n\n{shown}| tried | answer |\n| --- | --- |\n" + "\n".join(rows) + "\n")
    return "".join(parts)


if __name__ == "__main__":
    (Path(__file__).parent / "errors.md").write_text(page(), encoding="utf-8")
