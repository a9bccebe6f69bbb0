"""The command line, as processes and with scripted input."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from domino_env import PRESETS, Game, Match, make_rules, notation
from domino_env.cli import COMMANDS, main
from domino_env.render import table


def run(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """``python -m domino_env`` with these arguments."""
    return subprocess.run(
        [sys.executable, "-m", "domino_env", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "80", **environment},
        timeout=120,
    )


class Terminal:
    """Runs `main` in this process with scripted input."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, arguments: Sequence[str], stdin: str = "") -> tuple[int, str, str]:
        self.monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        self.monkeypatch.setenv("COLUMNS", "80")
        try:
            code = main(list(arguments))
        except SystemExit as left:
            code = int(left.code or 0)
        return code, *self.capsys.readouterr()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(monkeypatch, capsys)


@pytest.fixture
def record(tmp_path: Path) -> tuple[Path, list[Match]]:
    """A file of two matches, and the matches."""
    matches = []
    for preset in ("duplas", "puxar"):
        match, rng = Match(PRESETS[preset], 5), random.Random(3)
        while not match.over:
            match.play(rng.choice(match.game.legal_moves()))
        matches.append(match)
    path = tmp_path / "matches.txt"
    with path.open("w", encoding="utf-8") as file:
        for match in matches:
            notation.dump(match, file)
    return path, matches


def test_overview_and_help_of_every_command(terminal: Terminal) -> None:
    code, out, _ = terminal(["--help"])
    assert code == 0
    assert all(f"  {name}" in out for name in COMMANDS)
    code, out, _ = terminal([])
    assert (code, "usage" in out) == (2, True)
    for name in COMMANDS:
        code, out, _ = terminal([name, "--help"])
        assert code == 0
        assert out.startswith("usage:")
    code, out, _ = terminal(["--version"])
    assert (code, out.split()[0]) == (0, "domino-env")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["shwo"], "unknown command 'shwo' (did you mean 'show'?)"),
        (["deal", "--preset", "dupla"], "unknown preset 'dupla' (did you mean 'duplas'?)"),
        (["deal", "--set", "targt=4"], "unknown field 'targt' (did you mean 'target'?)"),
        (["deal", "--set", "target"], "--set 'target': write FIELD=VALUE"),
        (["deal", "--set", "target=0"], "target=0 is not a whole number from 1"),
        (["deal", "--set", "hand_size=8"], "hand_size=8"),
        (["deal", "--seed", "-1"], "--seed"),
        (["deal", "--seed", "many"], "'many' is not a whole number"),
        (["show", "--plays", "99"], "--plays 99: the round has only"),
        (["show", "--seat", "4"], "--seat 4: 4 players sit on seats 0 to 3"),
        (["show", "--size", "10x10", "--svg", "-"], "--size '10x10'"),
        (["show", "--columns", "10"], "columns=10"),
        (["show", "nowhere.txt"], "nowhere.txt: No such file"),
        (["replay", "nowhere.txt"], "nowhere.txt: No such file"),
        (["replay"], "required: FILE"),
        (["play", "--seat", "9"], "--seat 9"),
        (["play", "--seat", "-1"], "--seat -1"),
        (["play", "--opponents", "heaviestt"], "unknown player 'heaviestt' (did you mean 'heaviest'?)"),
        (["play", "--opponents", "random,random"], "2 names for 3 other seats"),
        (["perft", "--depth", "99"], "--depth 99"),
        (["arena", "random"], "'random' alone: give two or more players"),
        (["arena", "random", "doubels"], "did you mean 'doubles'?"),
        (["arena", "random", "doubles", "--episode", "week"], "episode='week' is not one of round, match"),
        (["arena", "random", "doubles", "--deals", "1"], "deals=1 is not a whole number of at least 2"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(arguments: list[str], says: str, terminal: Terminal) -> None:
    code, out, err = terminal(arguments)
    assert code == 2
    assert says in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert out == ""


def test_deal_is_the_game_of_its_seed() -> None:
    done = run("deal", "--preset", "mano-a-mano", "--seed", "4", "--set", "hand_size=5")
    assert (done.returncode, done.stderr) == (0, "")
    game = Game(make_rules("mano_a_mano", hand_size=5), 4)
    tiles = [word.strip("[]").replace("|", "-") for word in done.stdout.split() if word.startswith("[")]
    assert tiles == [*game.hands[0], *game.hands[1], *game.boneyard]
    assert f"seat {game.starter} starts with {game.forced}" in done.stdout


def test_show_hides_what_a_seat_does_not_know(terminal: Terminal) -> None:
    _, whole, _ = terminal(["show", "--seed", "7", "--plays", "12"])
    code, seen, err = terminal(["show", "--seed", "7", "--plays", "12", "--seat", "0"])
    assert (code, err) == (0, "")
    assert "▮" not in whole
    game = Game(PRESETS["duplas"], 7)
    game.play_out(7)
    while len(game.moves) > 12:
        game.undo()
    assert whole == table(game) + "\n"
    assert seen == table(game.view(0)) + "\n"
    assert seen.count("▮") == sum(map(len, game.hands[1:]))
    assert (whole, "") == terminal(["show", "--seed", "7", "--plays", "12"])[1:]
    _, plain, _ = terminal(["show", "--seed", "7", "--plays", "12", "--seat", "0", "--ascii"])
    assert plain.isascii()
    assert all(len(line) <= 80 for line in seen.split("\n"))


def test_show_writes_pictures(tmp_path: Path, terminal: Terminal) -> None:
    pytest.importorskip("PIL")
    svg, png = tmp_path / "table.svg", tmp_path / "table.png"
    arguments = ["show", "--seed", "7", "--plays", "12", "--seat", "0", "--size", "320x240"]
    assert terminal([*arguments, "--svg", str(svg), "--png", str(png)]) == (0, "", "")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert svg.read_text(encoding="utf-8") == terminal([*arguments, "--svg", "-"])[1]


def test_png_without_pillow_names_the_extra(
    tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    code, _, err = terminal(["show", "--png", str(tmp_path / "table.png")])
    assert code == 2
    assert "pip install 'domino-env[render]'" in err


def test_replay_goes_through_every_round(record: tuple[Path, list[Match]], terminal: Terminal) -> None:
    path, matches = record
    code, out, err = terminal(["replay", str(path)])
    assert (code, err) == (0, "")
    lines = out.split("\n")
    headings = [line for line in lines if line.startswith("match ")]
    assert headings == [
        f"match {number}, round {place}"
        for number, match in enumerate(matches, 1)
        for place in range(1, match.round + 1)
    ]
    events = sum(len(game.events) for match in matches for game in match.games)
    assert sum(line.startswith("  seat") and line.split()[2] in VERBS for line in lines) == events


VERBS = ("plays", "draws", "passes", "opens")


def test_replay_of_one_round_with_tables(record: tuple[Path, list[Match]], terminal: Terminal) -> None:
    path, matches = record
    game = matches[1].games[1]
    code, out, _ = terminal(["replay", str(path), "--match", "2", "--round", "2", "--tables"])
    assert code == 0
    assert out.count("puxar, round 2, to 100") == len(game.moves)
    _, stepped, _ = terminal(["replay", str(path), "--match", "2", "--round", "2", "--step"], "\n\nq\n")
    assert stepped.count("Enter goes on") == 3
    assert stepped.count("puxar, round 2, to 100") == 3
    assert out.endswith(f"\n{table(game, last_events=0)}\n\n")
    _, shown, _ = terminal(["show", str(path), "--match", "2", "--round", "2"])
    assert shown == table(game) + "\n"
    _, shown, _ = terminal(["show", str(path), "--match", "2", "--plays", "0", "--seat", "1"])
    assert "no tile played yet" in shown
    for option, count in (("--match", 2), ("--round", matches[1].round)):
        code, _, err = terminal(["replay", str(path), "--match", "2", option, "99"])
        assert code == 2
        assert f"{option} 99: there are {count}" in err


def test_replay_reads_the_input(record: tuple[Path, list[Match]]) -> None:
    path, matches = record
    done = run("replay", "-", "--match", "1", stdin=path.read_text(encoding="utf-8"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("match 1, round") == matches[0].round


def test_replay_of_a_broken_record_names_the_place(record: tuple[Path, list[Match]], terminal: Terminal) -> None:
    path, _ = record
    text = path.read_text(encoding="utf-8")
    for broken in (text[:300], text.replace("hand 2", "hand 7", 1), "\x00"):
        path.write_text(broken, encoding="utf-8")
        code, _, err = terminal(["replay", str(path)])
        assert code == 2
        assert f"{path}: line " in err
        assert err.count("\n") == 1
    path.write_bytes(b"\xff\xfe\x00")
    code, _, err = terminal(["replay", str(path)])
    assert (code, err.count("\n")) == (2, 1)


def test_replay_of_a_round_and_a_deal_by_themselves(tmp_path: Path, terminal: Terminal) -> None:
    game = Game(PRESETS["blocos"], 1)
    game.play(game.legal_moves()[0])
    path = tmp_path / "mixed.txt"
    path.write_text(notation.dumps(game) + notation.dumps(game.deal), encoding="utf-8")
    code, out, err = terminal(["replay", str(path)])
    assert (code, err) == (0, "")
    assert out.startswith(f"match 1, round 1\n  seat {game.starter} opens with ")
    assert out.endswith("match 2: a deal by itself, nothing was played\n\n")
    code, _, err = terminal(["show", str(path), "--match", "2"])
    assert code == 2
    assert "--round 1: there are 0" in err


def test_perft_counts(terminal: Terminal) -> None:
    code, out, _ = terminal(["perft", "--depth", "4", "--preset", "blocos", "--set", "max_pip=6"])
    assert code == 0
    game = Game(PRESETS["blocos"], 0)

    def count(game: Game, depth: int) -> int:
        if depth == 0:
            return 1
        total = 0
        for move in game.legal_moves():
            after = game.copy()
            after.play(move)
            total += count(after, depth - 1)
        return total

    printed = [int(line.split()[2].replace(",", "")) for line in out.split("\n")[1:] if line]
    assert printed == [count(game, depth) for depth in range(1, 5)]


def test_bench_is_handed_its_options(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = pytest.importorskip("domino_env.bench")
    given: list[list[str]] = []
    monkeypatch.setattr(bench, "main", given.append)
    assert terminal(["bench", "--seconds", "1"])[0] == 0
    assert given == [["--seconds", "1"]]


def opening_seat() -> int:
    """Who starts the first round of ``play --preset mano_a_mano --seed 3``, with a double."""
    game = Game(PRESETS["mano_a_mano"], 3)
    assert game.forced in [f"{n}-{n}" for n in range(7)]
    return game.starter


@pytest.mark.parametrize("preset", PRESETS)
def test_a_person_finishes_a_match(preset: str, terminal: Terminal) -> None:
    code, out, err = terminal(["play", "--preset", preset, "--seed", "3", "--seat", "1"], "1\n" * 3000)
    assert (code, err) == (0, "")
    assert "left the table" not in out
    rules = PRESETS[preset]
    rounds = out.count("\nRound ")
    assert out.count("\nPips left: ") == out.count("\nScores: ") == rounds
    assert out.count("\nNext: ") == rounds - 1
    last = out.rstrip().split("\n")[-1]
    assert last.endswith(("win the match.", "wins the match."))
    scores = [line for line in out.split("\n") if line.startswith("Scores: ")][-1]
    points = [int(side.split()[-1]) for side in scores.split(" (to ")[0].split(",")]
    assert max(points) >= (rules.target or 0)
    assert all(len(line) <= 80 for line in out.split("\n"))


def test_a_match_as_a_process_by_names_of_moves() -> None:
    """A person who reads the list of moves and types names, hints and mistakes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "domino_env", "play", "--preset", "mano_a_mano", "--seed", "8", "--ascii"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    said, asked = [], 0
    for line in process.stdout:
        said.append(line)
        if line.startswith("moves: "):
            name = line.split()[2]
            asked += 1
            process.stdin.write("hint\nhelp\n0-0R9\n" if asked == 1 else "")
            process.stdin.write(f"{name.lower()}\n")
            process.stdin.flush()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == ""
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
    text = "".join(said)
    assert text.isascii()
    assert text.rstrip().endswith(("You win the match.", "Doubles 1 wins the match."))
    assert "doubles would play" in text
    assert "'0-0R9' is not a move" in text


def test_a_single_round(terminal: Terminal) -> None:
    for preset in PRESETS:
        code, out, _ = terminal(["play", "--preset", preset, "--seed", "6", "--round"], "1\n" * 100)
        assert code == 0
        assert out.count("\nRound ") == 1
        assert "Scores:" not in out
        assert "the round." in out.rstrip().split("\n")[-1]


def test_undo_goes_back_to_the_persons_last_decision(terminal: Terminal) -> None:
    seat = str(Game(PRESETS["blocos"], 3).starter)  # opens with any tile
    arguments = ["play", "--preset", "blocos", "--seed", "3", "--opponents", "heaviest", "--seat", seat]
    _, out, _ = terminal(arguments, "undo\n1\nundo\n2\nundo\nundo\nquit\n")
    assert out.count("There is nothing to take back") == 2
    assert out.count("Taken back.") == 2
    moves = [line for line in out.split("\n") if line.startswith("moves: ")]
    assert moves[0] == moves[2] == moves[4]
    assert moves[1] != moves[0]


def test_what_a_person_may_type(terminal: Terminal) -> None:
    script = "help\nhint\ntable\n\n99\n0\nfoo\nhlep\n9-9\n6-6L\nquit\n"
    other = opening_seat()
    tile = Game(PRESETS["mano_a_mano"], 3).forced
    script = script.replace("6-6L", f"{tile}L")
    code, out, err = terminal(["play", "--seed", "3", "--preset", "mano_a_mano", "--seat", str(1 - other)], script)
    assert (code, err) == (0, "")
    for words in (
        "take back your last move",
        "doubles would play",
        f"last: doubles {other} opens with {tile}",
        "There is no move 99",
        "There is no move 0",
        "'foo' is not a move",
        "did you mean 'help'?",
        "'9-9' is not in the double-6 set",
        f"You do not hold {tile}.",
        "You left the table.",
    ):
        assert words in " ".join(out.split())


def test_a_tile_that_fits_both_ends_is_asked_for_its_end(terminal: Terminal) -> None:
    # After a double has opened, every tile that fits at all fits both ends.
    arguments = ["play", "--seed", "3", "--preset", "mano_a_mano", "--seat", str(1 - opening_seat())]
    _, out, _ = terminal(arguments, "quit\n")
    tile = out.split("moves: ")[1].split()[1][:-1]
    _, out, _ = terminal(arguments, f"{tile}\n{tile.replace('-', '')}r\nquit\n")
    assert f"{tile} fits both ends: say {tile}L or {tile}R." in out
    assert f"you play {tile[2]}-{tile[0]} on the right" in out


def test_others_hands_and_draws_stay_hidden(terminal: Terminal) -> None:
    _, out, _ = terminal(["play", "--preset", "puxar", "--seed", "5", "--round"], "1\n" * 60)
    drawn = [line.strip() for line in out.split("\n") if " draws" in line or " draw " in line]
    assert drawn
    assert all((line == "doubles 1 draws") != line.startswith("you draw ") for line in drawn)
    asked = "".join(out.split("moves:")[:-1]).split("\n")
    hands = [line for line in asked if line.startswith("  doubles 1 ") and line.split()[2].isdigit()]
    assert hands
    assert all("▮" in line and "[" not in line for line in hands)


def test_the_end_of_input_and_quit_leave_cleanly() -> None:
    for text in ("", "1\n", "quit\n"):
        done = run("play", "--seed", "1", stdin=text)
        assert done.returncode == 0
        assert done.stderr == ""
        assert done.stdout.rstrip().endswith("You left the table.")


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to one process")
def test_control_c_leaves_cleanly() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "domino_env", "play", "--seed", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(b"moves: "):
            break
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert err == b""
    assert out.rstrip().endswith(b"You left the table.")


def test_no_colours_unless_at_a_terminal() -> None:
    assert "\x1b" not in run("show", "--seed", "7", "--plays", "5").stdout


def test_output_that_knows_only_ascii() -> None:
    done = run("show", "--seed", "7", "--plays", "5", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()


@pytest.mark.skipif(os.name == "nt", reason="a shell pipe")
def test_a_reader_that_goes_away() -> None:
    command = f"{sys.executable} -m domino_env show --seed 7 --plays 20 --columns 40 | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith("duplas")


def test_commands_import_what_they_need() -> None:
    code = (
        "import sys; from domino_env.cli import main; main(['deal', '--seed', '1'])\n"
        "print(sorted({'PIL', 'torch', 'pettingzoo', 'domino_env.bots'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")
