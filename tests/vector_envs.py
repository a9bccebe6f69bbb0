"""What vector environments hold and return, compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from domino_env.envs.vector import DominoVectorEnv
from domino_env.state import copy_state

MODES = [mode.value for mode in AutoresetMode]
every_mode = pytest.mark.parametrize("mode", MODES)


def same(mine: Any, its: Any) -> None:
    """Equal in structure, types, dtypes, shapes and values."""
    if isinstance(its, tuple):
        assert len(mine) == len(its)
        for one, other in zip(mine, its, strict=True):
            same(one, other)
    elif isinstance(its, dict):
        assert mine.keys() == its.keys()
        for key in its:
            same(mine[key], its[key])
    elif isinstance(its, np.ndarray):
        assert isinstance(mine, np.ndarray)
        assert (mine.dtype, mine.shape) == (its.dtype, its.shape)
        if its.dtype == object:
            for one, other in zip(mine, its, strict=True):
                same(one, other)
        else:
            assert (mine == its).all()
    else:
        assert (type(mine), mine) == (type(its), its)


def content(env: DominoVectorEnv, rows: Any = slice(None)) -> list[bytes]:
    """All there is at these tables."""
    tables = env._tables
    state = copy_state(tables.batch.state)
    for row in state:
        row["events"][row["num_events"] :] = 0  # what rounds before this one have left
    state = state.view(np.uint8).reshape(env.num_envs, -1)  # NumPy copies no padding otherwise
    arrays = (
        state, tables.observation, tables.action_mask, tables.rewards, tables.done, tables.learner,
        tables._player_streams.states, tables._seat_streams.states, env._over, env._started,
    )  # fmt: skip
    return [array[rows].tobytes() for array in arrays]
