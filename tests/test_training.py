"""The training programs: what a run leaves, how it ends when something is wrong, and evaluations."""

from __future__ import annotations

import csv
import itertools
import json
import re
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
import torch
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny_runs import equal, lines, start, tick, wait_for

from agents.checkpoint import load, newest
from agents.policy import PolicyPlayer
from domino_env import PRESETS, make_rules
from domino_env.arena import duel
from domino_env.bots import PLAYERS
from training import evaluate, runs, sb3_maskable
from training.config import EVALUATION_SEEDS, ConfigError, load_config
from training.plots import learning_curve
from training.sb3_maskable import RunConfig, main

ROOT = Path(__file__).parents[1]
SMOKE = ROOT / "configs" / "sb3_maskable" / "smoke.yaml"
# A run of a second: four updates.
TINY = ("total_steps=2048", "num_envs=32", "steps_per_env=16", "batch_size=128", "hidden=[16]", "pool_size=2",
        "snapshot_every=512", "evaluate_every=1024", "evaluation_deals=20",
        "evaluation_opponents=[doubles]")  # fmt: skip


def tiny(run: Path, *changes: str) -> list[str]:
    return [str(SMOKE), f"run={run}", *TINY, *changes]


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load(newest(run))[0].state_dict()


@pytest.fixture(scope="module")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the smoke configuration, not to be written to."""
    run = tmp_path_factory.mktemp("smoke") / "run"
    assert main([str(SMOKE), f"run={run}"]) == 0
    return run


# A run


def test_a_run_leaves_its_configuration(smoke_run: Path) -> None:
    assert {file.name for file in smoke_run.iterdir()} == set(runs.RUN_FILES)
    given, kept = load_config(RunConfig, SMOKE, [f"run={smoke_run}"]), smoke_run / "config.yaml"
    assert load_config(RunConfig, kept) == given
    assert set(yaml.safe_load(kept.read_text())) == set(RunConfig.model_fields)
    assert kept.read_text().startswith("# domino_env's sources: ")


def test_a_run_leaves_metrics(smoke_run: Path) -> None:
    figures = lines(smoke_run / "metrics" / "progress.json")
    assert [line["steps"] for line in figures] == [4096, 8192]
    assert [line["snapshots"] for line in figures] == [2, 3]
    wanted = {"train/loss", "train/learning_rate", "rollout/ep_rew_mean", "rollout/ep_len_mean", "seconds"}
    assert all(wanted <= line.keys() for line in figures)
    assert all(np.isfinite(line["train/loss"]) and abs(line["rollout/ep_rew_mean"]) < 1 for line in figures)
    events = EventAccumulator(str(smoke_run / "metrics")).Reload()
    assert [scalar.step for scalar in events.Scalars("rollout/ep_rew_mean")] == [4096, 8192]


def test_a_run_leaves_evaluations(smoke_run: Path) -> None:
    found = lines(smoke_run / "evaluations.jsonl")
    assert [(line["steps"], line["opponent"]) for line in found] == [
        (steps, opponent) for steps in (0, 4096, 8192) for opponent in ("random", "doubles")
    ]
    for line in found:
        mean, low, high = line["points"]
        assert low <= mean <= high
        assert line["verdict"] == ("better" if low > 0 else "worse" if high < 0 else "not separated")
        assert 0 <= line["win_share"][0] <= 1
    assert [line["seconds"] for line in found] == sorted(line["seconds"] for line in found)


def test_evaluations_are_on_the_same_deals_each_time_and_training_sees_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[Any] = []

    def noted(*players: Any, **options: Any) -> Any:
        played.append((options["deals"], options["seed"], options["episode"]))
        return duel(*players, **options)

    monkeypatch.setattr(runs, "duel", noted)
    assert main(tiny(tmp_path / "run", f"seed={EVALUATION_SEEDS - 1}")) == 0
    assert played == [(20, EVALUATION_SEEDS, "round")] * 3
    with pytest.raises(ConfigError, match=f"seed={EVALUATION_SEEDS}: Input should be less than"):
        load_config(RunConfig, SMOKE, [f"seed={EVALUATION_SEEDS}"])


def test_a_run_leaves_a_picture(smoke_run: Path) -> None:
    assert (smoke_run / "learning.png").read_bytes().startswith(b"\x89PNG\r\n")
    picture = matplotlib.image.imread(smoke_run / "learning.png")
    assert picture.shape == (540, 1440, 4)
    assert picture.std() > 0.05


def test_a_run_leaves_checkpoints_that_play(smoke_run: Path) -> None:
    folders = sorted((smoke_run / "checkpoints").iterdir())
    assert [int(folder.name) for folder in folders] == [0, 4096, 8192]
    for folder in folders:
        _, card = load(folder)
        assert (card.steps, card.rule_set) == (int(folder.name), make_rules("duplas"))
        assert card.config["total_steps"] == 8192
        PolicyPlayer(card.rule_set, str(folder))
    first, last = load(folders[0])[0], load(folders[-1])[0]
    assert not equal(first.state_dict(), last.state_dict())


def test_a_folder_that_holds_a_run_is_left_alone(
    smoke_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file: file.stat().st_mtime_ns for file in smoke_run.rglob("*")}
    assert main([str(SMOKE), f"run={smoke_run}"]) == 2
    told = capsys.readouterr().err
    assert "that folder holds a run (config.yaml, metrics, evaluations.jsonl, learning.png, checkpoints)" in told
    assert {file: file.stat().st_mtime_ns for file in smoke_run.rglob("*")} == before
    (tmp_path / "evaluations.jsonl").touch()  # what is left of another
    assert main([str(SMOKE), f"run={tmp_path}"]) == 2
    assert "holds a run (evaluations.jsonl)" in capsys.readouterr().err


def test_the_same_seed_gives_the_same_weights_and_another_others(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert main(tiny(tmp_path / name, f"seed={seed}")) == 0
    assert equal(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert not equal(weights(tmp_path / "a"), weights(tmp_path / "c"))


def test_evaluating_changes_nothing_in_training(tmp_path: Path) -> None:
    often, never = tmp_path / "often", tmp_path / "never"
    assert main(tiny(often, "evaluate_every=1", "evaluation_opponents=[random, doubles]")) == 0
    assert main(tiny(never, "evaluate_every=1000000", "evaluation_opponents=[]")) == 0
    assert len(list((often / "checkpoints").iterdir())) == 5
    assert len(list((never / "checkpoints").iterdir())) == 2
    assert equal(weights(often), weights(never))
    assert not (never / "learning.png").exists()
    dropped = ("seconds", "decisions_per_second")
    one, other = (
        [
            {key: value for key, value in line.items() if key not in dropped}
            for line in lines(run / "metrics/progress.json")
        ]
        for run in (often, never)
    )
    assert one == other


@pytest.mark.parametrize("total", [512, 1100, 2048, 100])
def test_the_learning_rate_falls_from_its_start_and_stays_above_zero(total: int, tmp_path: Path) -> None:
    assert main(tiny(tmp_path / "run", f"total_steps={total}", "learning_rate=1e-3", "evaluation_opponents=[]")) == 0
    rates = [line["train/learning_rate"] for line in lines(tmp_path / "run" / "metrics" / "progress.json")]
    assert rates == pytest.approx([1e-3 * (1 - 512 * i / total) for i in range(-(-total // 512))])
    assert min(rates) > 0


def test_a_run_of_some_minutes_ends_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tick(monkeypatch, 1 / 64)
    assert main(tiny(tmp_path / "run", "minutes=0.005", "total_steps=1_000_000_000", "evaluation_opponents=[]")) == 0
    figures = lines(tmp_path / "run" / "metrics" / "progress.json")
    assert len(figures) > 1
    assert figures[-1]["seconds"] >= 0.3
    for before, line in itertools.pairwise(figures):
        assert before["seconds"] < 0.3
        assert line["train/learning_rate"] == pytest.approx(1e-3 * (1 - before["seconds"] / 0.3), abs=1e-5)


def test_a_run_of_a_match_game_with_other_rules(tmp_path: Path) -> None:
    changes = ("preset=puxar", "rules={players: 3, target: 30}", "episode=match", "reward_scale=0.5",
               "opponents=random")  # fmt: skip
    assert main(tiny(tmp_path / "run", *changes, "evaluation_deals=5")) == 0
    assert load(newest(tmp_path / "run"))[1].rule_set == make_rules("puxar", players=3, target=30)


@pytest.mark.long
@pytest.mark.parametrize("moves", ["true", "false"])
@pytest.mark.parametrize("preset", PRESETS)
def test_training_learns(preset: str, moves: str, tmp_path: Path) -> None:
    """Against random the trained policy's whole interval is above that of the untrained one, and above 0."""
    changes = ("total_steps=100_000", "num_envs=256", "steps_per_env=16", "evaluate_every=1_000_000")
    evaluation = ("evaluation_deals=2000", "evaluation_opponents=[random]", f"moves={moves}")
    assert main([str(SMOKE), f"run={tmp_path / 'run'}", f"preset={preset}", *changes, *evaluation]) == 0
    untrained, trained = (line["points"] for line in lines(tmp_path / "run" / "evaluations.jsonl"))
    assert trained[1] > max(untrained[2], 0)


def test_a_run_outside_the_main_thread(tmp_path: Path) -> None:
    ended: list[int] = []
    thread = threading.Thread(target=lambda: ended.append(main(tiny(tmp_path / "run"))))
    thread.start()
    thread.join()
    assert ended == [0]
    assert (tmp_path / "run" / "learning.png").exists()


# When something is wrong


def test_a_run_that_diverges_says_so_and_keeps_the_last_good_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(tiny(tmp_path / "run", "learning_rate=1e30")) == 1
    told = [line for line in capsys.readouterr().err.split("\n") if line.startswith("error: ")]
    assert len(told) == 1
    assert "decisions the network gives NaN or infinity; the checkpoints are from before" in told[0]
    assert "lower learning_rate than 1e+30" in told[0]
    assert newest(tmp_path / "run").name == "000000000000"
    PolicyPlayer(make_rules("duplas"), str(tmp_path / "run"))


@pytest.mark.parametrize("updates", [1, 4])
def test_weights_that_the_last_update_spoiled_are_not_saved(
    updates: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train = sb3_maskable.MaskablePPO.train

    def spoiling(model: Any) -> None:
        train(model)
        if model.num_timesteps == updates * 512:
            with torch.no_grad():
                next(iter(model.policy.parameters())).fill_(float("nan"))

    monkeypatch.setattr(sb3_maskable.MaskablePPO, "train", spoiling)
    assert main(tiny(tmp_path / "run")) == 1
    assert f"after {updates * 512:,} decisions the network gives NaN" in capsys.readouterr().err
    saved = sorted(int(folder.name) for folder in (tmp_path / "run" / "checkpoints").iterdir())
    assert saved == [steps for steps in (0, 1024, 2048) if steps < updates * 512]


def test_a_run_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for run in (tmp_path / "file", tmp_path / "file" / "run"):
        assert main([str(SMOKE), f"run={run}"]) == 1
        told = capsys.readouterr().err
        assert told.startswith("error: ")
        assert str(run) in told
        assert told.count("\n") == 1


RUN_WITH_SMALL_FILES = """
import resource, sys
from training.sb3_maskable import main
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
sys.exit(main(sys.argv[1:]))
"""


def test_a_file_that_cannot_be_written_ends_the_run_in_one_line(tmp_path: Path) -> None:
    """No file may grow beyond 20 kB, as on a full disk: the first checkpoint's weights do not fit."""
    process = start(["-c", RUN_WITH_SMALL_FILES, *tiny(tmp_path / "run", "hidden=[64, 64]")])
    _, told = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "Traceback" not in told
    assert [line for line in told.split("\n") if line][-1].startswith("error: ")
    assert "checkpoints" in told
    assert list((tmp_path / "run" / "checkpoints").iterdir()) == []


def test_a_full_disk_while_metrics_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = Path.open

    def full(path: Path, *args: Any, **options: Any) -> Any:
        return opened(Path("/dev/full") if path.name == "evaluations.jsonl" else path, *args, **options)

    monkeypatch.setattr(Path, "open", full)
    assert main(tiny(tmp_path / "run")) == 1
    told = [line for line in capsys.readouterr().err.split("\n") if "rror" in line]
    assert told == ["error: [Errno 28] No space left on device"]


def test_signals_save_and_end_a_run_without_a_display(tmp_path: Path) -> None:
    """SIGINT and SIGTERM, in two runs at once, with a backend asked for that would need a display."""
    endless = ("total_steps=100_000_000", "evaluate_every=100_000_000")
    processes = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        code = ["-m", "training.sb3_maskable", *tiny(tmp_path / number.name, *endless)]
        processes[number] = start(code, MPLBACKEND="TkAgg")
    for number, process in processes.items():
        progress = tmp_path / number.name / "metrics" / "progress.json"
        wait_for(progress, process)
        process.send_signal(number)
    for number, process in processes.items():
        said, told = process.communicate(timeout=240)
        run = tmp_path / number.name
        assert process.returncode == 0, told
        assert "Traceback" not in told
        assert f"newest checkpoint {newest(run)}" in said
        steps = [line["steps"] for line in lines(run / "evaluations.jsonl")]
        assert len(steps) == 2
        assert 512 <= steps[1] == load(newest(run))[1].steps
        assert (run / "learning.png").read_bytes().startswith(b"\x89PNG")
        assert not equal(weights(run), load(run / "checkpoints" / "000000000000")[0].state_dict())


def test_a_second_signal_does_what_it_did_before() -> None:
    asked: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda *_: asked.append("before"))
    try:
        with runs.stopping_at_signals(lambda: asked.append("stop")):
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        with runs.stopping_at_signals(lambda: asked.append("stop")):
            pass
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert asked == ["stop", "before", "before", "before"]


# Pictures


def test_a_curve_of_nothing_says_so(tmp_path: Path) -> None:
    for content in (None, ""):
        if content is not None:
            (tmp_path / "evaluations.jsonl").write_text(content)
        with pytest.raises(ValueError, match=r"evaluations\.jsonl: no evaluations to draw"):
            learning_curve(tmp_path / "evaluations.jsonl", tmp_path / "learning.png")
    assert not (tmp_path / "learning.png").exists()


@pytest.mark.parametrize("content", ['{"steps": 1', "[1]", '{"steps": 1}', "null"])
def test_a_curve_of_a_broken_line_names_it(content: str, smoke_run: Path, tmp_path: Path) -> None:
    whole = (smoke_run / "evaluations.jsonl").read_text()
    (tmp_path / "evaluations.jsonl").write_text(whole + content + "\n")
    number = len(whole.splitlines()) + 1
    with pytest.raises(ValueError, match=rf"evaluations\.jsonl, line {number}: not an evaluation"):
        learning_curve(tmp_path / "evaluations.jsonl", tmp_path / "learning.png")


# Evaluation

KNOWN = f"{', '.join(PLAYERS.names)}, or package.module:Class?option=value, or http://host:port"


@pytest.fixture
def own_run(smoke_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(smoke_run, tmp_path / "run"))


def test_an_evaluation_prints_verdicts_and_keeps_them(own_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [str(own_run), "--deals", "100", "--episode", "both", "--opponents", "random", "doubles?pips=2"]
    assert evaluate.main(command) == 0
    said = capsys.readouterr().out
    folder = newest(own_run)
    results = json.loads((folder / "evaluation.json").read_text())
    games = [("round", "random"), ("round", "doubles?pips=2"), ("match", "random"), ("match", "doubles?pips=2")]
    assert [(result["episode"], result["opponent"]) for result in results] == games
    for result in results:
        assert (result["player"], result["deals"], result["seatings"]) == (f"{folder} (greedy)", 100, 2)
        assert result["seed"] == EVALUATION_SEEDS + 2
        assert f"{result['player']} against {result['opponent']}: {result['verdict']}\n" in said
    table = list(csv.DictReader((folder / "evaluation.csv").read_text().splitlines()))
    assert [float(row["points"]) for row in table] == [result["points"]["mean"] for result in results]
    assert evaluate.main([*command, "--mode", "sample", "--seed", "5"]) == 0
    sampled = json.loads((folder / "evaluation.json").read_text())
    assert (sampled[0]["player"], sampled[0]["seed"]) == (f"{folder} (sample)", EVALUATION_SEEDS + 6)
    assert sampled[0]["points"] != results[0]["points"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ["--opponents", "random", "doubels:"],
            "unknown player 'doubels:' (did you mean 'doubles'?); players: " + KNOWN,
        ),
        (["--deals", "1"], "deals=1 is not a whole number of at least 2"),
        (["--seed", "-1"], "--seed -1: give 0 or more"),
    ],
)
def test_an_evaluation_that_cannot_be_made_is_told_in_one_line(
    change: list[str], message: str, own_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate.main([str(own_run), "--deals", "20", *change]) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert [line for line in re.split("[\r\n]", told.err) if "rror" in line] == [f"error: {message}"]
    assert told.out == ""
    assert not (newest(own_run) / "evaluation.json").exists()


def test_an_evaluation_of_nothing_or_of_damage(own_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main([str(own_run / "nowhere")]) == 2
    assert "nowhere is neither a checkpoint nor a run folder with checkpoints" in capsys.readouterr().err
    (newest(own_run) / "policy.safetensors").write_bytes(b"none")
    assert evaluate.main([str(own_run)]) == 2
    assert "policy.safetensors: " in capsys.readouterr().err
    assert evaluate.main([str(own_run / "checkpoints" / "000000004096"), "--deals", "20"]) == 0
