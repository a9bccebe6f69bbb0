"""Compiled functions and their cache: never stale, never in the way, the same games without compiling.

Whatever depends on a fresh process, on an edited source or on the environment runs in processes of
its own, with a copy of the package and small functions that compile in a moment.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import domino_env
from domino_env import _jit
from domino_env._jit import jit, lowest_bit, popcount

PACKAGE = Path(domino_env.__file__).parent

# The pips of 0-0, 0-1, 1-1 and 0-2, whether they came from the cache, and the cache.
PROBE = """
import numpy as np
from domino_env import _jit
from domino_env.scoring import pips_in
print(int(pips_in(np.uint64(15))), sum(pips_in.stats.cache_hits.values()), _jit.cache_folder())
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that may be edited."""
    copied = tmp_path / "site" / "domino_env"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    return copied


def environment(path: Path, cache: Path, **more: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHON", "DOMINO_ENV_"))
    }
    return {**kept, "PYTHONPATH": str(path), "DOMINO_ENV_CACHE_DIR": str(cache), **more}


def python(code: str, path: Path, cache: Path, **more: str) -> list[str]:
    """The words that a new process prints; it imports the package from `path`, and a warning is an error."""
    ran = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment(path, cache, **more),
        cwd=path if path.is_dir() else path.parent,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return ran.stdout.split()


def edit(file: Path, old: str, new: str) -> None:
    """Replace `old`, found once, without changing when the file was modified."""
    text, times = file.read_text(encoding="utf-8"), file.stat()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


# The cache


def test_a_second_process_compiles_nothing(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first, second = (python(PROBE, package.parent, cache) for _ in range(2))
    assert first[:2] == ["5", "0"]
    assert second[:2] == ["5", "1"]
    folder = Path(first[2])
    assert folder.parent == cache
    assert second[2] == first[2]
    assert {file.suffix for file in folder.iterdir()} == {".bin"}
    assert not (cache.stat().st_mode | folder.stat().st_mode) & 0o022


MULTIPLIER = """
import numpy as np
from domino_env import make_rules
from domino_env.rules import pack
from domino_env.kernel import _multiplier
print(_multiplier(pack(make_rules("duplas", tie_multiplier_stacks=True))[0], 40))
"""
END_ROUND = """
import numpy as np
from domino_env import make_rules
from domino_env.rules import pack
from domino_env.state import new_state
from domino_env.kernel import _end_round
rules = make_rules("blocos")
state = new_state(rules, 1)
state["hands"][0, :2] = 1 << 2, 1 << 5
state["multiplier"] = 1
_end_round(state[0], pack(rules)[0], 0)
print(state["scores"][0, 0])
"""


@pytest.mark.parametrize(
    ("file", "old", "new", "code", "before", "after"),
    [
        ("tiles.py", "PIPS: Final = HIGH + LOW\n", "PIPS: Final = HIGH + LOW + 1\n", PROBE, "5", "9"),
        (
            "rules.py",
            "MULTIPLIER_BOUND: Final = 2**31",
            "MULTIPLIER_BOUND: Final = 2**5",
            MULTIPLIER,
            str(2**30),
            "16",
        ),
        (
            "scoring.py",
            "total += PIPS[lowest_bit(hand)]",
            "total += 3 * PIPS[lowest_bit(hand)]",
            END_ROUND,
            "6",
            "18",
        ),
    ],
)
def test_an_edit_reaches_compiled_callers_in_other_files(
    package: Path, tmp_path: Path, file: str, old: str, new: str, code: str, before: str, after: str
) -> None:
    cache = tmp_path / "cache"
    assert python(code, package.parent, cache)[0] == before
    edit(package / file, old, new)
    assert python(code, package.parent, cache)[0] == after
    edit(package / file, new, old)
    assert python(code, package.parent, cache)[0] == before


def test_every_source_is_part_of_the_key(tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jit.resources, "files", lambda _: package)
    hashes = [_jit._hash_sources()]
    for file in sorted(package.rglob("*.py")):
        with file.open("a", encoding="utf-8") as source:
            source.write("\n")
        hashes.append(_jit._hash_sources())
    (package / "more.py").touch()
    hashes.append(_jit._hash_sources())
    (package / "more.py").rename(package / "other.py")
    hashes.append(_jit._hash_sources())
    assert len(set(hashes)) == len(hashes)
    (package / "data.txt").touch()
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "tiles.pyc").touch()
    assert _jit._hash_sources() == hashes[-1]


def test_an_edit_after_the_import_is_not_mixed_with_what_was_imported(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    line = "PIPS: Final = HIGH + LOW"
    editing = f"""
import pathlib
import domino_env.scoring
file = pathlib.Path({str(package / "tiles.py")!r})
file.write_text(file.read_text(encoding="utf-8").replace({line!r}, {line + " + 1"!r}), encoding="utf-8")
"""
    old = python(editing + PROBE, package.parent, cache)
    assert old[:2] == ["5", "0"]  # as imported
    assert list(Path(old[2]).iterdir()) == []
    new = python(PROBE, package.parent, cache)
    assert new[:2] == ["9", "0"]
    assert new[2] != old[2]


DAMAGE = """
import hashlib, pickle
from pathlib import Path
import numpy as np
from domino_env import _jit
from domino_env.scoring import pips_in

def run():
    fresh = _jit.jit(pips_in.py_func)
    assert fresh(np.uint64(15)) == 5
    return sum(fresh.stats.cache_hits.values())

assert run() == 0
assert run() == 1
file, = [f for f in Path(_jit.cache_folder()).iterdir() if "pips_in" in f.name]
whole = file.read_bytes()
flipped = bytearray(whole)
flipped[len(whole) // 2] ^= 1
other = pickle.dumps(("another", "payload"))
damaged = [b"", whole[:31], whole[:32], whole[:500], whole[:-1], whole + b"x", bytes(flipped), b"?" * 5000]
damaged += [hashlib.sha256(text).digest() + text for text in (b"", b"no pickle", other)]
for content in damaged:
    file.write_bytes(content)
    assert run() == 0, content[:50]
    assert hashlib.sha256(file.read_bytes()[32:]).digest() == file.read_bytes()[:32]
    assert run() == 1, content[:50]
file.unlink()
file.mkdir()  # can be neither read nor replaced
assert run() == 0
assert [f.name for f in file.parent.iterdir() if f.suffix != ".bin"] == []
print("done")
"""


def test_a_damaged_file_is_compiled_again(package: Path, tmp_path: Path) -> None:
    assert python(DAMAGE, package.parent, tmp_path / "cache") == ["done"]


NOWHERE = """
import os, tempfile
def no_directory():
    raise FileNotFoundError("no usable temporary directory found")
tempfile.gettempdir = no_directory
os.path.expanduser = lambda path: path  # no HOME and no such user
"""


def test_nothing_need_be_writable(package: Path, tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.touch()
    sources = {file: file.read_bytes() for file in package.rglob("*") if file.is_file()}
    for file in [*package.rglob("*"), package]:
        file.chmod(0o555 if file.is_dir() else 0o444)
    try:
        below_a_file = {
            "XDG_CACHE_HOME": str(blocker / "cache"),
            "LOCALAPPDATA": str(blocker / "cache"),
            "HOME": "",
        }
        assert python(NOWHERE + PROBE, package.parent, blocker / "cache", **below_a_file) == [
            "5",
            "0",
            "None",
        ]
    finally:
        for file in [package, *package.rglob("*")]:
            file.chmod(0o755 if file.is_dir() else 0o644)
    assert {file: file.read_bytes() for file in package.rglob("*") if file.is_file()} == sources


def test_the_first_folder_that_can_be_written_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = _jit.cache_folder.__wrapped__
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("DOMINO_ENV_CACHE_DIR", str(tmp_path / "new" / "chosen"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert find().parent == tmp_path / "new" / "chosen"
    monkeypatch.setenv("DOMINO_ENV_CACHE_DIR", str(file / "below"))
    assert find().parent == tmp_path / "xdg" / "domino_env"
    monkeypatch.delenv("DOMINO_ENV_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert find().parent == tmp_path / "home" / ".cache" / "domino_env"
    monkeypatch.setenv("HOME", str(file))
    monkeypatch.setattr(_jit.tempfile, "tempdir", str(tmp_path))
    assert find().parent == tmp_path / f"domino_env-{os.getuid()}"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o720, 0o777])
def test_a_folder_that_others_may_write_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    monkeypatch.setenv("DOMINO_ENV_CACHE_DIR", str(shared))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert _jit.cache_folder.__wrapped__().parent == tmp_path / "xdg" / "domino_env"
    assert list(shared.iterdir()) == []
    shared.chmod(0o755)
    version = _jit.cache_folder.__wrapped__()
    assert version.parent == shared
    version.chmod(mode)
    assert _jit.cache_folder.__wrapped__().parent == tmp_path / "xdg" / "domino_env"


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _jit._usable(tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert not _jit._usable(tmp_path)


@pytest.mark.long
def test_sixteen_processes_fill_a_cold_cache_at_once(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    code = PROBE + MULTIPLIER + END_ROUND
    command = [sys.executable, "-B", "-W", "error", "-c", code]
    started = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment(package.parent, cache), cwd=tmp_path
        )
        for _ in range(16)
    ]
    said = [process.communicate(timeout=900)[0].split() for process in started]
    assert [process.returncode for process in started] == [0] * 16
    assert {(words[0], *words[2:]) for words in said} == {("5", said[0][2], str(2**30), "6")}
    files = list(Path(said[0][2]).iterdir())
    assert {file.suffix for file in files} == {".bin"}
    assert python(PROBE, package.parent, cache)[:2] == ["5", "1"]


# Importing


def test_importing_the_package_is_light(tmp_path: Path) -> None:
    code = """
import sys, domino_env
domino_env.make_rules("duplas", target=10)
heavy = ("numba", "llvmlite", "torch", "stable_baselines3", "scipy", "matplotlib", "pandas")
print("loaded", *(name for name in heavy if name in sys.modules))
"""
    assert python(code, PACKAGE.parent, tmp_path / "cache") == ["loaded"]


def test_importing_compiles_nothing(tmp_path: Path) -> None:
    code = """
import domino_env, sys
import domino_env.match, domino_env.batch
from numba.core.dispatcher import Dispatcher
modules = [module for name, module in sys.modules.items() if name.startswith("domino_env")]
functions = [value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)]
print(len(functions) > 30, sum(len(function.signatures) for function in functions), "torch" in sys.modules)
"""
    assert python(code, PACKAGE.parent, tmp_path / "cache") == ["True", "0", "False"]


def test_the_package_works_from_a_zip_file(tmp_path: Path) -> None:
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for file in PACKAGE.rglob("*.py"):
            zipped.write(file, Path("domino_env") / file.relative_to(PACKAGE))
    first, second = (python(PROBE, archive, tmp_path / "cache") for _ in range(2))
    assert (first[:2], second[:2]) == (["5", "0"], ["5", "1"])


# The same games, compiled or not

GAMES = """
import hashlib
import numpy as np
from domino_env import PRESETS, Batch, Game, Match, make_rules
digest = hashlib.sha256()
cases = [*PRESETS.values(), make_rules("puxar", players=3), make_rules("blocos", players=4)]
for seed, rules in enumerate(cases):
    for episode in ("round", "match"):
        for skip in (False, True):
            batch = Batch(rules, 2, seed=seed, episode=episode, skip_single=skip)
            for _ in range(40):
                batch.step(batch.sample_actions())
                for array in (batch.state, batch.observation, batch.action_mask, batch.rewards, batch.done):
                    digest.update(array.tobytes())
    game = Game(rules, seed=seed)
    result = game.play_out(seed=1)
    digest.update(repr((game.events, result, game.undo(), game.view(0))).encode())
print(digest.hexdigest())
"""


def test_without_compiling_the_games_are_the_same(tmp_path: Path) -> None:
    compiled = python(GAMES, PACKAGE.parent, _jit.cache_folder.__wrapped__().parent)
    plain = python(GAMES, PACKAGE.parent, tmp_path / "cache", NUMBA_DISABLE_JIT="1")
    assert plain == compiled
    assert not (tmp_path / "cache").exists()


@pytest.mark.long
def test_no_index_is_out_of_bounds(tmp_path: Path) -> None:
    overrun = """
import numpy as np
from domino_env._jit import jit
@jit
def read(array, i):
    return array[i]
try:
    read(np.zeros(3), 3)
except IndexError:
    print("checked")
"""
    wide = """
cases += [make_rules("puxar", players=9, max_pip=9, hand_size=1), make_rules("blocos", players=9)]
cases += [make_rules("mano_a_mano", players=n, max_pip=9, hand_size=54 // n) for n in (2, 5, 9)]
for seed, rules in enumerate(cases):
    for episode in ("round", "match"):
        batch = Batch(rules, 100, seed=seed, episode=episode, skip_single=rules.hand_size > 1, threads=1)
        for _ in range(400):
            batch.step(batch.sample_actions())
        batch.views()
    match = Match(rules, seed=seed)
    for _ in range(100):
        if not match.over:
            match.play(match.game.legal_moves()[-1])
            match.game.view(1)
"""
    said = python(overrun + GAMES + wide, PACKAGE.parent, tmp_path / "cache", NUMBA_BOUNDSCHECK="1")
    plain = python(GAMES, PACKAGE.parent, _jit.cache_folder.__wrapped__().parent)
    assert said == ["checked", *plain]


# Bits


@jit
def _count_bits(words: Any, out: Any) -> None:
    for i in range(words.shape[0]):
        out[i, 0] = popcount(words[i])
        out[i, 1] = lowest_bit(words[i])


def test_bits_of_words() -> None:
    rng = random.Random(1)
    words = [
        0,
        1,
        2**63,
        2**64 - 1,
        *(1 << i for i in range(64)),
        *(rng.getrandbits(64) & rng.getrandbits(64) for _ in range(500)),
    ]
    out = np.zeros((len(words), 2), np.int64)
    _count_bits(np.array(words, np.uint64), out)
    assert out[:, 0].tolist() == [word.bit_count() for word in words]
    assert out[:, 1].tolist() == [bin(word)[::-1].find("1") if word else 64 for word in words]
