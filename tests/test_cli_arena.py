"""The commands `arena` and `serve`, from the outside."""

from __future__ import annotations

import csv
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from domino_env import PRESETS
from domino_env.arena import cross_table, share_table, to_csv, to_json
from domino_env.bots import ScriptedPlayer
from domino_env.cli import main
from domino_env.observation import Views
from domino_env.players import Streams
from domino_env.rating import ratings

DUPLAS = PRESETS["duplas"]
HERE = str(Path(__file__).parent)


class Slow(ScriptedPlayer):
    """Takes its time."""

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        time.sleep(0.0005 * len(views))
        return super().act(views, rng)


class Bad(ScriptedPlayer):
    """Always chooses what it may not."""

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        return np.full(len(views), 109)


@contextmanager
def started(*arguments: str, stderr: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """A running ``python -m domino_env`` with these arguments, in a group of its own."""
    path = os.pathsep.join([HERE, str(Path(HERE).parent)])
    process = subprocess.Popen(
        [sys.executable, "-m", "domino_env", *arguments],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["arena", *arguments])
    return code, *capsys.readouterr()


def test_ratings_follow_the_table_of_three(capsys: pytest.CaptureFixture[str]) -> None:
    players = ["doubles", "random", "counting"]
    results = cross_table(players, DUPLAS, deals=100, seed=4)
    told = "".join(f"{result}\n" for result in results)
    for extra, anchor in (([], "random"), (["--anchor", "doubles"], "doubles")):
        code, out, err = run(capsys, *players, "--deals", "100", "--seed", "4", *extra)
        assert (code, err) == (0, "")
        assert out == f"{told}\n{share_table(results)}\n\n{ratings(results, anchor=anchor)}\n"
    code, out, _ = run(capsys, "doubles", "heaviest", "counting", "--deals", "100")
    assert "ratings (Elo, mean = 0" in out
    code, out, _ = run(capsys, "doubles", "counting", "--deals", "100")
    assert "ratings" not in out


def test_verdicts_table_and_files_are_those_of_python(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    players, files = ["random", "doubles", "counting"], [tmp_path / "a.json", tmp_path / "a.csv"]
    assert run(capsys, *players, "--deals", "300", "--json", str(files[0]), "--csv", str(files[1]))[0] == 0
    results = cross_table(players, DUPLAS, deals=300)
    assert [file.read_text(encoding="utf-8") for file in files] == [to_json(results), to_csv(results)]
    rows = [line.split() for line in share_table(results).splitlines()]
    assert rows[0] == players
    assert [row[0] for row in rows[1:]] == players
    assert rows[1][1] == f"{results[0].win_share.mean:.1%}"
    assert rows[2][1] == f"{1 - results[0].win_share.mean:.1%}"


def test_matches_in_several_processes_come_out_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("1.json", "2.json")]
    for workers, file in zip("12", files, strict=True):
        arguments = ["random", "doubles", "--preset", "puxar", "--episode", "match", "--deals", "40"]
        assert run(capsys, *arguments, "--workers", workers, "--json", str(file))[0] == 0
    one, two = (file.read_text(encoding="utf-8") for file in files)
    assert one == two
    (record,) = json.loads(one)
    assert (record["episode"], record["seats"], record["deals"], record["seed"]) == ("match", [[0], [1]], 40, 0)


def test_a_picture_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "table.png"
    assert run(capsys, "random", "doubles", "heaviest", "--deals", "50", "--picture", str(file))[0] == 0
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--picture", "table.jpeg"], "--picture table.jpeg: its name must end with .png, .svg or .pdf"),
        (["--anchor", "doubels"], "--anchor 'doubels' is not one of the players: random, doubles"),
        (["--workers", "0"], "workers=0 is not a whole number of at least 1"),
        (["http://localhost:1?timeout=0"], "timeout=0 is not a number of seconds above 0"),
        (["random"], "two of the players have the name 'random'"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_played(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "random", "doubles", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_who_fails_forfeits_only_where_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, spec = tmp_path / "a.csv", "test_cli_arena:Bad"
    code, out, err = run(capsys, f"{spec}?kind=doubles", "random", "--deals", "20", "--forfeit", "--csv", str(file))
    assert (code, err) == (0, "")
    assert "  random forfeited" not in out
    assert " forfeited 40 of 40:\n    deal 0, seating 0: illegal move action 109; legal: " in out
    (row,) = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    assert (row["forfeits"], row["win_share"]) == ("40", "0.0")
    code, out, err = run(capsys, spec, "random", "--deals", "20")
    assert (code, out) == (2, "")
    assert "may not play action 109" in err


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_keeps_what_is_finished(workers: str, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    # The first pair is soon finished, the second never.
    players = ["doubles", "random", "test_cli_arena:Slow?kind=doubles"]
    options = ["--deals", "20000", "--workers", workers, "--json", str(file), "--csv", str(tmp_path / "r.csv")]
    with started("arena", *players, *options) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        time.sleep(1.5)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "stopped; these are the results up to then\n"
    records = json.loads(file.read_text(encoding="utf-8"))
    (whole,) = cross_table(["doubles", "random"], DUPLAS, deals=20000)
    assert "".join(lines) == f"{whole}\n"
    assert json.dumps(records[:1]) == json.dumps(json.loads(to_json([whole])))
    assert len((tmp_path / "r.csv").read_text(encoding="utf-8").splitlines()) == 1 + len(records)
    assert to_csv([whole]).splitlines()[1] in (tmp_path / "r.csv").read_text(encoding="utf-8")
    for record in records[1:]:  # of the second pair there may be a part
        assert 2 <= record["deals"] < 20000
        assert f"{record['deals']} deals" in out


def test_progress_is_shown_at_a_terminal_alone() -> None:
    arguments = ["arena", "doubles", "test_cli_arena:Slow?kind=random", "--deals", "100"]
    with started(*arguments) as process:
        assert process.communicate(timeout=60)[1] == ""
    terminal, there = pty.openpty()
    with started(*arguments, stderr=there) as process:
        out, _ = process.communicate(timeout=60)
        os.close(there)
        shown = os.read(terminal, 100_000).decode()
        os.close(terminal)
    assert process.returncode == 0
    assert "1/1 doubles against test_cli_arena:Slow?kind=random: " in shown
    assert " of 100 deals, about " in shown
    assert shown.endswith("\r")
    assert out.startswith("doubles against test_cli_arena:Slow?kind=random: ")


def test_a_served_player_can_be_played_against(capsys: pytest.CaptureFixture[str]) -> None:
    with started("serve", "doubles", "--port", "0") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("doubles plays at http://127.0.0.1:")
        address = line.split()[3]
        code, out, _ = run(capsys, f"{address}?name=far", "doubles", "--deals", "20", "--preset", "mano_a_mano")
        assert code == 0
        assert "far against doubles: not separated\n  points a round +0.000 [+0.000, +0.000]" in out
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["doubels"], "did you mean 'doubles'?"),
        (["doubles", "--port", "65536"], "--port 65536: ports go from 0 to 65535"),
        (["doubles", "--host", "no.such.host.invalid"], ""),
    ],
)
def test_what_cannot_be_served_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["serve", *arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
