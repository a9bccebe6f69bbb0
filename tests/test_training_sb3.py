"""MaskablePPO runs that go on where they stopped, and the pool of snapshots that they play against."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny_runs import equal, kill_and_resume, lines, start, without_times

from agents import checkpoint
from agents.checkpoint import load, newest
from agents.networks import MoveNet, PolicyNet
from agents.sb3 import policy_of
from domino_env import make_rules
from domino_env.arena import duel
from training.config import load_config
from training.sb3_maskable import RunConfig, Trainer, main, make_trainer

ROOT = Path(__file__).parents[1]
SMOKE = ROOT / "configs" / "sb3_maskable" / "smoke.yaml"
# An update is a few hundredths of a second.
TINY = ("num_envs=16", "steps_per_env=8", "batch_size=64", "hidden=[16]", "pool_size=3", "snapshot_every=256",
        "total_steps=2560", "evaluate_every=1280", "evaluation_deals=20", "evaluation_opponents=[doubles]")  # fmt: skip


def tiny(run: Path, *changes: str) -> list[str]:
    return [str(SMOKE), f"run={run}", *TINY, *changes]


def trainer_of(*changes: str) -> Trainer:
    return make_trainer(load_config(RunConfig, SMOKE, [*TINY, *changes]))


def kept_by(run: Path) -> dict[str, torch.Tensor]:
    """All tensors of a run's newest checkpoint but its time."""
    folder = newest(run)
    found = load_file(folder / "policy.safetensors") | load_file(folder / "training.safetensors")
    found["progress"][1] = 0
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of 20 updates, not to be written to."""
    run = tmp_path_factory.mktemp("whole") / "run"
    assert main(tiny(run)) == 0
    return run


# Going on


@pytest.mark.parametrize(
    "changes",
    [[], ["preset=puxar", "rules={players: 3}", "episode=match", "reward=points", "reward_scale=0.1"],
     ["preset=mano_a_mano", "moves=false", "opponents=[doubles, self]"]],
    ids=["duplas", "puxar-3-match", "vectors"],
)  # fmt: skip
def test_twenty_updates_are_ten_and_after_a_resume_ten_more(changes: list[str], whole: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    if changes:
        whole = tmp_path / "whole"
        assert main(tiny(whole, *changes)) == 0
    assert main([*tiny(parts, *changes), "--updates", "10"]) == 0
    assert newest(parts).name == "000000001280"
    assert main(["--resume", str(parts)]) == 0
    assert newest(whole).name == newest(parts).name == "000000002560"
    assert equal(kept_by(whole), kept_by(parts))
    assert without_times(whole) == without_times(parts)
    evaluations = [[{**line, "seconds": 0} for line in lines(run / "evaluations.jsonl")] for run in (whole, parts)]
    assert evaluations[0] == evaluations[1]
    assert len(evaluations[0]) == 3
    events = EventAccumulator(str(parts / "metrics")).Reload()
    assert [scalar.step for scalar in events.Scalars("train/loss")] == [128 * k for k in range(1, 21)]


def test_a_run_goes_on_from_its_very_start(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert main([*tiny(run), "--updates", "0"]) == 0
    assert main(["--resume", str(run)]) == 0
    assert equal(kept_by(whole), kept_by(run))


def test_a_run_goes_on_from_its_newest_checkpoint_whatever_was_noted_after_it(whole: Path, tmp_path: Path) -> None:
    killed = Path(shutil.copytree(whole, tmp_path / "killed"))
    shutil.rmtree(killed / "checkpoints" / "000000002560")
    shutil.copytree(newest(killed), killed / "checkpoints" / ".000000002560.77.part")
    for file in ("metrics/progress.json", "evaluations.jsonl"):
        with (killed / file).open("a") as lines_:
            lines_.write('{"steps": 26')  # of the line that was being written
    assert main(["--resume", str(killed)]) == 0
    assert equal(kept_by(whole), kept_by(killed))
    assert without_times(whole) == without_times(killed)
    assert len(lines(killed / "evaluations.jsonl")) == 3
    assert sorted(path.name for path in (killed / "checkpoints").iterdir()) == [
        "000000000000", "000000001280", "000000002560",
    ]  # fmt: skip


def test_a_finished_run_has_nothing_to_go_on_with_unless_it_is_given_more(whole: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    assert main(["--resume", str(run)]) == 0
    assert equal(kept_by(run), kept_by(whole))
    assert main(["--resume", str(run), "total_steps=3840", "evaluation_opponents=[doubles, random]"]) == 0
    assert newest(run).name == "000000003840"
    assert load_config(RunConfig, run / "config.yaml").total_steps == 3840


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["seed=5"], "'seed=5': a resumed run may change only total_steps, minutes, threads, evaluate_every"),
        (["pool_size=5"], "'pool_size=5': a resumed run may change only"),
        (["moves=false"], "'moves=false': a resumed run may change only"),
        (["totl_steps=5"], "unknown key 'totl_steps'"),
        (["total_steps=0"], "total_steps=0: Input should be greater than or equal to 1"),
    ],
)
def test_what_a_resumed_run_may_not_change(
    changes: list[str], message: str, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file: file.stat().st_mtime_ns for file in whole.rglob("*")}
    assert main(["--resume", str(whole), *changes]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert message in told
    assert told.count("\n") == 1
    assert {file: file.stat().st_mtime_ns for file in whole.rglob("*")} == before


@pytest.mark.parametrize("damage", ["missing", "cut", "nothing", "other tables", "other pool", "no policy"])
def test_a_damaged_checkpoint_is_refused(
    damage: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    damaged = newest(run) / "training.safetensors"
    config = run / "config.yaml"
    if damage == "missing":
        damaged.unlink()
    elif damage == "other tables":
        config.write_text(config.read_text().replace("num_envs: 16", "num_envs: 32"))
    elif damage == "other pool":
        config.write_text(config.read_text().replace("pool_size: 3", "pool_size: 4"))
    elif damage == "no policy":
        (newest(run) / "policy.safetensors").unlink()
    else:
        damaged.write_bytes(damaged.read_bytes()[: 1000 if damage == "cut" else 0])
    assert main(["--resume", str(run)]) != 0
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert told.count("\n") == 1
    assert str(newest(run)) in told


def test_there_is_nothing_to_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--resume", str(tmp_path / "nowhere")]) == 2
    assert "No such file or directory" in capsys.readouterr().err
    (tmp_path / "config.yaml").write_text("run: [")
    assert main(["--resume", str(tmp_path)]) == 2
    assert "config.yaml: line 1" in capsys.readouterr().err


def test_a_full_disk_while_a_checkpoint_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save_file, saves = checkpoint.save_file, []

    def full(tensors: Any, file: Path) -> None:
        saves.append(file)
        if len(saves) == 4:  # the last file of the second checkpoint
            raise OSError(28, "No space left on device")
        save_file(tensors, file)

    monkeypatch.setattr(checkpoint, "save_file", full)
    assert main(tiny(tmp_path / "run")) == 1
    assert [line for line in capsys.readouterr().err.split("\n") if "rror" in line] == [
        "error: [Errno 28] No space left on device"
    ]
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["000000000000"]
    monkeypatch.undo()
    assert main(["--resume", str(tmp_path / "run")]) == 0


def endless(run: Path) -> subprocess.Popen[str]:
    """A run that does not end by itself, and saves after every update."""
    changes = ("total_steps=1_000_000_000", "evaluation_opponents=[]", "evaluate_every=1")
    return start(["-m", "training.sb3_maskable", *tiny(run, *changes)])


def test_a_killed_run_goes_on_from_its_newest_checkpoint(tmp_path: Path) -> None:
    kill_and_resume(main, tmp_path / "run", endless(tmp_path / "run"), random.Random(0))


@pytest.mark.long
def test_a_run_killed_at_twenty_moments_always_goes_on(tmp_path: Path) -> None:
    rng = random.Random(1)
    for kill in range(20):
        run = tmp_path / f"{kill}"
        kill_and_resume(main, run, endless(run), rng)


# The pool and the policy


def test_a_checkpoint_is_a_player_that_scores_moves(whole: Path) -> None:
    policy, card = load(newest(whole))
    assert isinstance(policy, MoveNet)
    assert card.sees == "afterstates"
    result = duel(f"agents.policy:PolicyPlayer?path={whole}", "doubles", make_rules("duplas"), deals=20)
    assert result.deals == 20


def test_snapshots_take_the_place_of_the_oldest() -> None:
    trainer = trainer_of("snapshot_every=128")

    def places() -> list[bytes]:
        return [player.policy.layers[0].weight.detach().numpy().tobytes() for player in trainer.pool.players]  # type: ignore[operator, union-attr]

    def now() -> bytes:
        return policy_of(trainer.model).layers[0].weight.detach().numpy().tobytes()  # type: ignore[operator, union-attr, return-value]

    taken = [now()]
    assert places() == taken * 3
    for _ in range(5):
        trainer.update()
        taken.append(now())
    assert places() == [taken[3], taken[4], taken[5]]
    assert len(set(taken)) == 6


def test_who_sits_where() -> None:
    def names(*changes: str) -> list[tuple[str, ...]]:
        trainer = trainer_of("num_envs=3000", "batch_size=24000", *changes)
        players = [
            "self" if player in trainer.pool.players else player.name for player in trainer.env.tables.lineups.players
        ]
        return [tuple(players[i] for i in row[1:]) for row in trainer.env.tables.lineups.of]

    found = names("opponents=[self, doubles, counting]")
    assert {row[1] for row in found} == {"self"}
    assert all((row[0] == "self") == (row[2] == "self") for row in found)
    for name in ("self", "doubles", "counting"):
        assert abs(np.mean([row[0] == name for row in found]) - 1 / 3) < 0.04
    assert set(names("opponents=doubles", "partner=[heaviest]")) == {("doubles", "heaviest", "doubles")}
    assert set(names("preset=blocos", "opponents=self")) == {("self",)}
    assert isinstance(trainer_of("moves=false").pool.players[0].policy, PolicyNet)


def test_scores_mean_nothing_to_a_policy_that_starts() -> None:
    trainer = trainer_of()
    from domino_env.afterstates import Afterstates

    part = Afterstates(trainer.rules).slices["scores"]
    for net in (trainer.model.policy.action_net, trainer.model.policy.value_net):
        assert not net.layers[0].weight[:, part.start : part.stop].any()
        assert net.layers[0].weight[:, : part.start].any()


def test_rewards_are_scaled_and_those_that_are_shown_are_not() -> None:
    figures, given = [], []
    for scale in ("1.0", "0.25"):
        trainer = trainer_of("reward=points", f"reward_scale={scale}")
        figures.append(trainer.update()["rollout/ep_rew_mean"])
        given.append(trainer.model.rollout_buffer.rewards)
    assert figures[0] == figures[1]
    assert set(np.unique(np.abs(given[0]))) > {0.0, 1.0}
    assert (given[0] * 0.25 == given[1]).all()
