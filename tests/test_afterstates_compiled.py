"""Rows of moves and of deals: the same without compiled code, and nothing is written outside of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_jit import PACKAGE, python

from domino_env import _jit

ROWS = """
import hashlib
from domino_env import PRESETS, Batch, make_rules
from domino_env.afterstates import Afterstates, Deals
digest = hashlib.sha256()
wide = [make_rules(name, players=9, max_pip=9, hand_size=n) for name in ("puxar", "mano_a_mano") for n in (1, 6)]
for seed, rules in enumerate([*PRESETS.values(), *wide, make_rules("duplas", hand_size=1)]):
    batch = Batch(rules, 2, seed=seed, episode="match", observe=False)
    for step in range(STEPS):
        if step % 9 < 2:
            moves = Afterstates(rules).of_state(batch.state)
            for array in (moves.rows, moves.actions, moves.starts, Deals(rules).of(batch.state)):
                digest.update(array.tobytes())
        batch.step(batch.sample_actions())
print(digest.hexdigest())
"""


def test_without_compiling_the_rows_are_the_same(tmp_path: Path) -> None:
    """As plain Python, a write beyond the end of a row is an error, too."""
    code = f"STEPS = 30\n{ROWS}"
    compiled = python(code, PACKAGE.parent, _jit.cache_folder.__wrapped__().parent)
    assert python(code, PACKAGE.parent, tmp_path / "cache", NUMBA_DISABLE_JIT="1") == compiled


@pytest.mark.long
def test_no_entry_is_written_outside_a_row(tmp_path: Path) -> None:
    code = f"STEPS = 3000\n{ROWS}"
    checked = python(code, PACKAGE.parent, tmp_path / "cache", NUMBA_BOUNDSCHECK="1")
    assert checked == python(code, PACKAGE.parent, _jit.cache_folder.__wrapped__().parent)
