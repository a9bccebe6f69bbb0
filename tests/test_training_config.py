"""Configurations: every file loads, changes replace values, and what is wrong is told in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from training import ppo, sb3_maskable
from training.config import Config, load_config
from training.sb3_maskable import RunConfig, main

ROOT = Path(__file__).parents[1]
SMOKE = ROOT / "configs" / "sb3_maskable" / "smoke.yaml"


def sb3_maskable_config(file: Path) -> Config:
    config = load_config(RunConfig, file, ["num_envs=2"])
    sb3_maskable.make_trainer(config)
    return config


def ppo_config(file: Path) -> Config:
    config = load_config(ppo.RunConfig, file)
    ppo.make_rules_of(config)
    return config


# Each folder of configurations, and how its program reads them.
PROGRAMS: dict[str, Callable[[Path], Any]] = {"sb3_maskable": sb3_maskable_config, "ppo": ppo_config}
FILES = sorted((ROOT / "configs").glob("*/*"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_every_configuration_loads_and_its_rules_and_players_exist(file: Path) -> None:
    assert file.suffix == ".yaml"
    assert PROGRAMS[file.parent.name](file).run.startswith("runs/")


def test_no_two_configurations_share_a_run_folder() -> None:
    folders = [PROGRAMS[file.parent.name](file).run for file in FILES]
    assert len(set(folders)) == len(folders)


def test_every_folder_of_configurations_has_a_program_and_a_smoke_file() -> None:
    folders = sorted(path for path in (ROOT / "configs").iterdir() if path.is_dir())
    assert [folder.name for folder in folders] == sorted(PROGRAMS)
    missing = [folder.name for folder in folders if not (folder / "smoke.yaml").is_file()]
    assert not missing
    assert all((ROOT / "training" / f"{name}.py").is_file() for name in PROGRAMS)


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [
        (["learning_rate=1e-3"], "learning_rate", 0.001),
        (["learning_rate=2.5E-4"], "learning_rate", 0.00025),
        (["gamma=1"], "gamma", 1.0),
        (["total_steps=2_000_000"], "total_steps", 2_000_000),
        (["total_steps=1", "total_steps=2"], "total_steps", 2),
        (["rules={target: 10, tie_multiplier: 1}"], "rules", {"target": 10, "tie_multiplier": 1}),
        (["opponents=[doubles, random]"], "opponents", ["doubles", "random"]),
        (["opponents=agents.policy:PolicyPlayer?path=a=b"], "opponents", "agents.policy:PolicyPlayer?path=a=b"),
        (["partner=null"], "partner", None),
        (["evaluation_opponents=[]"], "evaluation_opponents", []),
    ],
)
def test_changes_replace_the_files_values(changes: list[str], key: str, value: Any) -> None:
    got = getattr(load_config(RunConfig, SMOKE, changes), key)
    assert (got, type(got)) == (value, type(value))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["total_stepz=5"], "unknown key 'total_stepz' (did you mean 'total_steps'?); keys: run, preset, rules"),
        (["xyz=5"], "unknown key 'xyz'; keys: run, preset"),
        (["rules.target=5"], "unknown key 'rules.target'"),
        (["total_steps=many"], "total_steps='many': Input should be a valid integer"),
        (["total_steps=1.5"], "total_steps=1.5: Input should be a valid integer"),
        (["total_steps=true"], "total_steps=True: Input should be a valid integer"),
        (["total_steps=0"], "total_steps=0: Input should be greater than or equal to 1"),
        (["total_steps="], "total_steps=None: Input should be a valid integer"),
        (["learning_rate=0"], "learning_rate=0: Input should be greater than 0"),
        (["learning_rate=.inf"], "learning_rate=inf: Input should be a finite number"),
        (["learning_rate=.nan"], "learning_rate=nan: Input should be a finite number"),
        (["seed=-1"], "seed=-1: Input should be greater than or equal to 0"),
        (["seed=4294967296"], "seed=4294967296: Input should be less than 4294967296"),
        (["hidden=[64, 0]"], "hidden.1=0: Input should be greater than or equal to 1"),
        (["activation=gelu"], "activation='gelu': Input should be 'relu' or 'tanh'"),
        (["evaluation_opponents=doubles"], "evaluation_opponents='doubles': Input should be a valid list"),
        (["batch_size=4095"], "batch_size=4095 leaves a batch of 1 of the 4096 decisions"),
        (["num_envs=1", "steps_per_env=1"], "batch_size=1024 leaves a batch of 1 of the 1 decisions"),
        (["total_steps"], "'total_steps': write key=value"),
        (["hidden=[64"], "'hidden=[64': line 1, column 4: expected ',' or ']'"),
        (["rules={a: 1, a: 2}"], "'a' is given twice"),
        (["preset=duplos"], "unknown preset 'duplos' (did you mean 'duplas'?)"),
        (["rules={taget: 5}"], "unknown field 'taget' (did you mean 'target'?)"),
        (["rules={target: 0}"], "target=0 is not a whole number from 1"),
        (["opponents=doubels"], "unknown player 'doubels' (did you mean 'doubles'?)"),
        (["partner=nobody"], "unknown player 'nobody'"),
        (["preset=blocos", "partner=doubles"], "partner='doubles': these rules have no pairs"),
        (["opponents=[]"], "opponents=[]: give at least one player"),
        (["opponents=[self, nobody]"], "unknown player 'nobody'"),
        (["pool_size=0"], "pool_size=0: Input should be greater than or equal to 1"),
        (["evaluation_opponents=[random, nobody]"], "unknown player 'nobody'"),
    ],
)
def test_a_wrong_value_is_told_in_one_line_and_leaves_nothing(
    changes: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(SMOKE), f"run={tmp_path / 'run'}", *changes]) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.err.startswith("error: ")
    assert told.err.count("\n") == 1
    assert told.out == ""
    assert list(tmp_path.iterdir()) == []


def test_every_reason_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(SMOKE), "total_stepz=5", "seed=-1"]) == 2
    assert capsys.readouterr().err.count("\n") == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory"),
        (b"run: [1, 2", "line 1, column 11: expected ',' or ']'"),
        (b"run: a\n  b: c\n", "line 2, column 4: mapping values are not allowed here"),
        (b"run: a\nseed: 1\nrun: b\n", "line 3, column 1: 'run' is given twice"),
        (b"? [a, b]\n: c\n", "line 1, column 3: found unhashable key"),
        (b"!!python/object/apply:os.getcwd []", "could not determine a constructor"),
        (b"run: a\x00b", "special characters are not allowed"),
        (b"\xff\xfe\x00run", "not a text file"),
        (b"- 1\n", "expected 'key: value' lines, found list"),
        (b"just words", "expected 'key: value' lines, found str"),
        (b"", "run is missing"),
        (b"1: 2\nrun: a\n", "1"),
        (b"run: 5\n", "run=5: Input should be a valid string"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(
    content: bytes | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    if content is not None:
        file.write_bytes(content)
    assert main([str(file)]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.startswith(f"error: {file}: ")
    assert told.count("\n") == 1


def test_a_folder_is_no_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path}: Is a directory\n"


def test_a_configuration_cannot_be_changed_once_it_is_loaded() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_config(RunConfig, SMOKE).seed = 5
