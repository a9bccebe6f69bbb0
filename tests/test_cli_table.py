from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable

import pytest

from domino_env.cli import main


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no signal to one process")
@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_the_tables_are_open_until_a_signal_ends_them(how: signal.Signals) -> None:
    command = [sys.executable, "-m", "domino_env", "table", "--port", "0", "--bot", "search?deals=8"]
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "getting ready …\n"
    told = process.stdout.readline()
    found = re.fullmatch(r"the tables are open at (http://127\.0\.0\.1:\d+) \(Ctrl-C closes them\)\n", told)
    assert found is not None, told
    with urllib.request.urlopen(found[1]) as page:
        assert page.status == 200
        assert page.headers.get_content_type() == "text/html"
        assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out.strip(), err) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--bot", "serch"], "did you mean 'search'"),
        (["--bot", "oracle"], "oracle sees all hands"),
        (["--port", "70000"], "70000: ports go from 0 to 65535"),
        (["--port", "x"], "'x' is not a whole number"),
    ],
)
def test_wrong_options_are_refused(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["table", *arguments])
    except SystemExit as left:
        code = int(left.code or 0)
    assert code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err


def test_a_bot_for_one_game_alone_may_be_seated_there() -> None:
    from domino_env.cli.table import check_bot

    check_bot("zoo/mano_a_mano-v1")


def test_without_aiohttp_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], forgotten: Callable[[str], None]
) -> None:
    forgotten("domino_env.play")
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    assert main(["table"]) == 2
    assert "the table needs aiohttp: pip install 'domino-env[play]'" in capsys.readouterr().err


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Forget that a package and its modules were imported, until the end of the test."""

    def forget(package: str) -> None:
        for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            monkeypatch.delitem(sys.modules, name)

    return forget
