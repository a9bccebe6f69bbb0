"""The order of the layers: what each file may import, of the project and of others."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("domino_env", "agents", "training")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

# From the bottom up: a file imports from its own line and those above it in this list.
LAYERS = (
    "_checks _jit _rng tiles", "rules", "state", "scoring", "kernel",
    "observation history _afterstates_write afterstates", "equity", "batch", "events", "game", "match",
    "_notation_parse _notation_write notation perft players render",
    "remote", "_belief_walk _belief_places _belief_count belief", "bots", "arena rating",
    "envs adapters", "play cli bench bench_envs __main__",
)  # fmt: skip
LEVEL = {f"domino_env.{name}": level for level, names in enumerate(LAYERS) for name in names.split()}
# The package itself hands out names of any layer.
LEVEL |= {"domino_env": len(LAYERS) - 1, "agents": len(LAYERS), "training": len(LAYERS) + 1}

# What may be imported of others: by the longest matching start of the file's module name.
COMPILED = {"numpy", "numba"}
LEARNING = {"numpy", "gymnasium", "torch", "safetensors", "stable_baselines3", "sb3_contrib"}
FRAMEWORKS = {"stable_baselines3", "sb3_contrib", "ray", "torchrl", "tensordict", "pyspiel", "open_spiel"}
OTHERS = {
    "domino_env": COMPILED,
    "domino_env.arena.picture": COMPILED | {"matplotlib"},
    "domino_env.cli.arena": COMPILED | {"matplotlib"},
    "domino_env.render": COMPILED | {"PIL"},
    "domino_env.play": COMPILED | {"aiohttp"},
    "domino_env.envs": COMPILED | {"gymnasium", "pettingzoo"},
    "domino_env.adapters": COMPILED | {"gymnasium", "pettingzoo"} | FRAMEWORKS,
    "domino_env.adapters.rllib": COMPILED | {"gymnasium", "ray", "torch"},
    "domino_env.bench": COMPILED | {"gymnasium", "pettingzoo", "pyspiel", "open_spiel", "dominoes"},
    "domino_env.bench_envs": COMPILED | {"gymnasium", "stable_baselines3", "sb3_contrib"},
    "agents": LEARNING,
    "training": LEARNING | {"pydantic", "yaml", "tqdm", "matplotlib", "tensorboard", "cma"},
}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, also those inside functions and for type checkers alone."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*start, *(node.module or "").split("."))).strip(".")
            for alias in node.names:  # `from .. import kernel` names a module, `from ..kernel import play` does not
                inner = ROOT.joinpath(*base.split("."), alias.name)
                is_module = inner.with_suffix(".py").exists() or (inner / "__init__.py").exists()
                yield node.lineno, f"{base}.{alias.name}" if is_module else base


def longest_match(module: str, table: dict[str, object]) -> str:
    parts = module.split(".")
    return next(name for n in range(len(parts), 0, -1) if (name := ".".join(parts[:n])) in table)


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_file_imports_only_from_its_own_layer_and_those_below(path: Path) -> None:
    own = module_name(path)
    level, others = LEVEL[longest_match(own, dict(LEVEL))], OTHERS[longest_match(own, dict(OTHERS))]
    wrong = []
    for line, module in imported(path):
        top = module.partition(".")[0]
        if top in FOLDERS:
            above = LEVEL[longest_match(module, dict(LEVEL))] > level
        else:
            above = top not in others and top not in sys.stdlib_module_names
        if above:
            wrong.append(f"{path.relative_to(ROOT)}:{line}: {own} may not import {module}")
    assert not wrong, "\n".join(wrong)


def test_every_module_has_a_layer() -> None:
    names = [module_name(path).split(".") for path in FILES]
    assert {".".join(name[:2]) for name in names if name[0] == "domino_env"} <= LEVEL.keys()


def test_no_module_has_the_name_of_one_of_the_standard_library() -> None:
    names = {module_name(path).rpartition(".")[2] for path in FILES} - {"__main__"}
    assert not names & set(sys.stdlib_module_names)


def test_the_checks_see_imports_of_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "domino_env" / "bots"
    package.mkdir(parents=True)
    (tmp_path / "domino_env" / "kernel.py").touch()
    file = package / "lazy.py"
    file.write_text(
        "import torch.nn as nn\nfrom .. import kernel\nfrom ..arena import Arena\n"
        "def late():\n    from .scripted import Bot\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert sorted(imported(file)) == [
        (1, "torch.nn"),
        (2, "domino_env.kernel"),
        (3, "domino_env.arena"),
        (5, "domino_env.bots.scripted"),
    ]
