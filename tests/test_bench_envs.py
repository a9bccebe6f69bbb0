"""The measured vector environments: what is counted, and that all of them run."""

from __future__ import annotations

import pytest

from domino_env.bench_envs import FEW, MANY, RATIOS, bench_envs, gymnasium_steps
from domino_env.envs.vector import DominoVectorEnv


def test_rows_that_only_reset_are_not_counted() -> None:
    env = DominoVectorEnv("duplas", num_envs=20)
    step, resets, counted = gymnasium_steps(env), 0, 0
    for _ in range(50):
        resets += int(env._over.sum())
        counted += step()
    assert resets > 100
    assert counted == 50 * 20 - resets
    same = gymnasium_steps(DominoVectorEnv("duplas", num_envs=20, autoreset_mode="SameStep"))
    assert sum(same() for _ in range(50)) == 1000


@pytest.mark.long
def test_all_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    rows = bench_envs("duplas", 0.05, 1, many=16, few=2)
    assert MANY > FEW
    assert {name.format(few=2) for pair in RATIOS for name in pair} <= {row.name for row in rows}
    assert all(row.rate > 0 for row in rows)
    assert "ratios" in capsys.readouterr().out
