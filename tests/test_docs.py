"""README.md and docs/*.md are true: their examples run, their tables and links hold.

What happens to a fenced block follows from its language:

- ``python``: run; all blocks of a page, in order, share one namespace;
- ``pycon``: the same, as a session at Python's prompt whose output must be what the page shows;
- ``console``: the lines that start with ``$ `` are commands, run in order from the checkout's folder;
  each must exit with 0;
- ``bash``: set-up commands, which take long: `.ci/run` runs them; here the files they name must exist;
- any other: text.
"""

from __future__ import annotations

import dataclasses
import doctest
import importlib.util
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from domino_env import PRESETS, Batch, Game, Match, RuleSet

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "docs" / "recipes").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")), *RECIPES]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_SCRIPT = re.compile(r"\bbash (\S+)|\bpython3? (\S+\.py)")
_MODULE = re.compile(r"\bpython3? -m (\S+)")


class Block(NamedTuple):
    language: str
    text: str
    line: int


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(found[1], found[2], text.count("\n", 0, found.start(2)) + 1) for found in _FENCE.finditer(text)]


def run_command(command: str) -> None:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    done = subprocess.run(
        command,
        shell=True,
        cwd=ROOT,
        env=os.environ | {"PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"`{command}` exited with {done.returncode}:\n{done.stdout}{done.stderr}"


def run_session(block: Block, page: str, namespace: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, namespace, page, page, block.line - 1)
    test.globs = namespace  # a copy until here, which later blocks would not see
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where examples that write files may do so
    namespace: dict[str, Any] = {"__name__": "example"}
    for block in blocks(page):
        if block.language == "python":
            source = "\n" * (block.line - 1) + block.text  # so that a traceback has the page's line numbers
            exec(compile(source, str(page), "exec"), namespace)
        elif block.language == "pycon":
            run_session(block, name_of(page), namespace)
        elif block.language == "console":
            for line in block.text.splitlines():
                if line.startswith("$ "):
                    run_command(line.removeprefix("$ "))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_set_up_commands_name_files_that_exist(page: Path) -> None:
    for block in blocks(page):
        if block.language == "bash":
            for shell, python in _SCRIPT.findall(block.text):
                assert (ROOT / (shell or python)).is_file(), f"there is no {shell or python}"
            for module in _MODULE.findall(block.text):
                assert importlib.util.find_spec(module) is not None, f"there is no module {module}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if target.startswith(("https://", "mailto:")):
            continue
        name, _, heading = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), f"{target}: there is no such file"
        if heading:
            titles = re.findall(r"^#+ (.+)$", _FENCE.sub("", file.read_text(encoding="utf-8")), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
            assert heading in anchors, f"{target}: there is no such heading"


def test_the_table_of_presets_holds() -> None:
    text = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    header = "| field | " + " | ".join(f"`{preset}`" for preset in PRESETS) + " |\n"
    rows = text.split(header)[1].split("\n\n")[0].splitlines()[1:]
    table = {cells[1].strip("` "): [cell.strip() for cell in cells[2:-1]] for cells in (r.split("|") for r in rows)}
    for field, values in table.items():
        assert values == [str(getattr(rules, field)) for rules in PRESETS.values()], field
    different = {
        spec.name
        for spec in dataclasses.fields(RuleSet)
        if len({getattr(rules, spec.name) for rules in PRESETS.values()}) > 1
    }
    assert different <= table.keys()  # nothing that tells the presets apart is left out


def test_every_option_is_in_the_rules() -> None:
    text = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    missing = [spec.name for spec in dataclasses.fields(RuleSet) if f"`{spec.name}`" not in text]
    assert not missing


def load_script(name: str) -> dict[str, Any]:
    """The names that a script in docs defines."""
    return runpy.run_path(str(ROOT / "docs" / name))


def test_the_page_of_errors_is_current() -> None:
    page = load_script("make_errors.py")["page"]()
    assert (ROOT / "docs" / "errors.md").read_text(encoding="utf-8") == page, "run python docs/make_errors.py"


def tables_in(names: dict[str, Any]) -> dict[str, bytes]:
    """The records of all tables among these names."""
    found = {}
    for name, value in names.items():
        if isinstance(value, Match):
            found[name] = b"".join(game._state.tobytes() for game in value.games)
        elif isinstance(value, Game):
            found[name] = value._state.tobytes()
        elif isinstance(value, Batch):
            found[name] = value.state.tobytes() + value.observation.tobytes() + value.done.tobytes()
    return found


def test_refused_input_changes_nothing() -> None:
    script = load_script("make_errors.py")
    for lines, expressions in script["TRIED"].values():
        names = script["start"](lines)
        before = tables_in(names)
        for expression in expressions:
            script["answer"](expression, names)
            assert tables_in(names) == before, expression
