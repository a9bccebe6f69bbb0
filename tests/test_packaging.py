"""The wheel and the sdist as users get them."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import domino_env

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.long

# What somebody who has only the wheel does first: prints where the package came from, and how it went.
FIRST_USE = """
import gymnasium, domino_env
from domino_env.envs import aec
assert domino_env.Game(domino_env.PRESETS["mano_a_mano"], seed=7).play_out(seed=1).reason == "out"
env = gymnasium.make("domino_env:domino_env/Duplas-v0")
observation, info = env.reset(seed=7)
env.step(int(info["action_mask"].argmax()))
print(domino_env.__file__, domino_env.__version__)
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """The command's standard output; its whole output in the failure if it fails."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an sdist of the checkout and the wheel that is built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, cwd=ROOT)
    return folder


def test_the_wheel_brings_one_name_only(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    assert wheel.name == f"domino_env-{domino_env.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {
        "domino_env",
        f"domino_env-{domino_env.__version__}.dist-info",
    }
    files = [path for kind in ("*.py", "*.npz") for path in (ROOT / "domino_env").rglob(kind)]
    assert {path.relative_to(ROOT).as_posix() for path in files} <= set(names)
    assert "domino_env/py.typed" in names


def test_the_sdist_holds_the_programs_of_the_checkout(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "constraints.txt", ".ci/run"]
    for folder in ("domino_env", "agents", "training", "configs", "tests", "docs"):
        files = [path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.*") if path.is_file()]
        wanted += [name for name in files if "__pycache__" not in name]
    assert not set(wanted) - names


def test_the_wheel_works_in_an_empty_environment(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(sys.executable, "-m", "venv", tmp_path / "env", cwd=tmp_path)
    run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel, cwd=tmp_path)

    where = run(python, "-W", "error", "-c", FIRST_USE, cwd=tmp_path, DOMINO_ENV_CACHE_DIR=str(tmp_path))
    file, version = where.split()
    assert Path(file).is_relative_to(tmp_path / "env")
    assert version == domino_env.__version__
    for name in ("agents", "training", "configs", "torch"):
        found = run(python, "-c", f"import importlib.util as u; print(u.find_spec({name!r}))", cwd=tmp_path)
        assert found.strip() == "None", f"the environment has a module {name}: {found}"
    for program in ([python.with_name("domino-env")], [python, "-m", "domino_env"]):
        assert "play" in run(*program, "--help", cwd=tmp_path)
    run(python, "-m", "pip", "check", cwd=tmp_path)
