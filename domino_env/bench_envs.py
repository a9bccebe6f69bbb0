"""Speed of vector environments over the same tables: ``python -m domino_env bench --envs``.

All of them run one preset against one kind of opponents and give observations, rewards and masks. A step is one
decision of one learner, with all that the other seats do until its next; rows that only reset a table are not
counted. The learners take the first action their mask allows. What differs is who goes from table to table,
and in which process: compiled code, Python, or other processes that each hold one `DominoEnv`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

from .bench import Row, measure, report, until
from .envs.single import DominoEnv
from .envs.vector import DominoVectorEnv

#: Tables where one pass steps them all, and where Python or other processes go from one to the next.
MANY, FEW = 1024, 4


class Maker:
    """Makes a single environment, also in another process."""

    def __init__(self, preset: str, opponents: str, *, monitored: bool = False) -> None:
        self.preset, self.opponents, self.monitored = preset, opponents, monitored

    def __call__(self) -> Any:
        """The environment; in SB3's Monitor, which its training puts around each, where that is asked for."""
        env = DominoEnv(self.preset, opponents=self.opponents)
        if not self.monitored:
            return env
        from stable_baselines3.common.monitor import Monitor

        return Monitor(env)


def gymnasium_steps(env: Any) -> Callable[[], int]:
    """Steps a Gymnasium vector environment once; how many decisions that was."""
    from gymnasium.vector import AutoresetMode

    _, infos = env.reset(seed=0)
    mask, resetting = infos["action_mask"], 0
    waits = env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP

    def step() -> int:
        nonlocal mask, resetting
        _, _, ended, _, infos = env.step(mask.argmax(axis=1))
        count = int(env.num_envs) - resetting
        mask, resetting = infos["action_mask"], int(ended.sum()) if waits else 0
        return count

    return step


def sb3_steps(env: Any) -> Callable[[], int]:
    """The same for an SB3 vector environment, with masks as MaskablePPO asks for them."""
    from sb3_contrib.common.maskable.utils import get_action_masks

    env.seed(0)
    env.reset()

    def step() -> int:
        env.step(get_action_masks(env).argmax(axis=1))
        return int(env.num_envs)

    return step


def vector_envs(preset: str, opponents: str, many: int, few: int) -> Iterator[tuple[str, Any, Callable[[], int]]]:
    """(name, environment, what steps it) of all that are installed; close the environments after use."""
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

    def ours(**options: Any) -> tuple[Any, Callable[[], int]]:
        env = DominoVectorEnv(preset, opponents=opponents, num_envs=many, **options)
        return env, gymnasium_steps(env)

    yield "DominoVectorEnv, next step", *ours()
    yield "DominoVectorEnv, same step", *ours(autoreset_mode="SameStep")
    yield "DominoVectorEnv, same step, buffers", *ours(autoreset_mode="SameStep", copy=False)
    makers: list[Any] = [Maker(preset, opponents)] * few
    env: Any = SyncVectorEnv(makers)
    yield f"SyncVectorEnv, {few} tables", env, gymnasium_steps(env)
    env = AsyncVectorEnv(makers, context="spawn")
    yield f"AsyncVectorEnv, {few} tables", env, gymnasium_steps(env)
    if not importlib.util.find_spec("sb3_contrib"):
        return
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    from .adapters.sb3 import DominoVecEnv

    env = DominoVecEnv(preset, opponents=opponents, num_envs=many)
    yield "SB3 DominoVecEnv", env, sb3_steps(env)
    makers = [Maker(preset, opponents, monitored=True)] * few
    env = DummyVecEnv(makers)
    yield f"SB3 DummyVecEnv, {few} tables", env, sb3_steps(env)
    env = SubprocVecEnv(makers, start_method="spawn")
    yield f"SB3 SubprocVecEnv, {few} tables", env, sb3_steps(env)


#: Of the names above, what is compared with what.
RATIOS = (
    ("DominoVectorEnv, next step", "SyncVectorEnv, {few} tables"),
    ("DominoVectorEnv, next step", "AsyncVectorEnv, {few} tables"),
    ("DominoVectorEnv, same step", "SB3 DummyVecEnv, {few} tables"),
    ("DominoVectorEnv, same step, buffers", "SB3 DummyVecEnv, {few} tables"),
    ("SB3 DominoVecEnv", "SB3 DummyVecEnv, {few} tables"),
    ("SB3 DominoVecEnv", "SB3 SubprocVecEnv, {few} tables"),
)


def bench_envs(preset: str, seconds: float, repeats: int, *, many: int = MANY, few: int = FEW) -> list[Row]:
    """Measure and print; the rates."""
    rows, envs = [], []
    try:
        for name, env, step in vector_envs(preset, "random", many, few):
            envs.append(env)
            rows.append(Row(name, lambda seconds, step=step: until(seconds, step)))  # type: ignore[misc]
        measure(rows, seconds, repeats)
    finally:
        for env in envs:
            env.close()
    ratios = [(one, other.format(few=few)) for one, other in RATIOS]
    report(f"{preset} against random, {many} tables", "steps/s", rows, ratios)
    return rows
