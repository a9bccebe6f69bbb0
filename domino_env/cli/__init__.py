"""The command line: ``python -m domino_env``, or ``domino-env``.

Each command is a module here, imported when it is asked for.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from .._checks import near

#: The commands and what they do.
COMMANDS: Final = {
    "play": "play at the terminal against computer players",
    "deal": "print a deal",
    "show": "print or paint a position",
    "replay": "go through the rounds of a record",
    "arena": "play players against each other, with verdicts",
    "table": "serve tables in the browser, for people and bots",
    "serve": "serve a player over HTTP",
    "perft": "count the lines of play from a deal",
    "bench": "measure decisions a second",
}


class Parser(argparse.ArgumentParser):
    """Refuses in one line, with exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Print the message and where to read on, and leave."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "usage: domino-env COMMAND [options]",
            "",
            "commands:",
            *lines,
            "",
            "domino-env COMMAND --help tells more.",
        ]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the process's arguments where `argv` is None. Returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0 if arguments else 2
    command, rest = arguments[0], arguments[1:]
    if command == "--version":
        from .. import __version__

        print(f"domino-env {__version__}")
        return 0
    if command not in COMMANDS:
        print(
            f"domino-env: error: unknown command {command!r}{near(command, COMMANDS)}; commands: {', '.join(COMMANDS)}",
            file=sys.stderr,
        )
        return 2
    return _run(command, rest)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


def _run(command: str, rest: list[str]) -> int:
    try:
        if command == "bench":
            return int(importlib.import_module("domino_env.bench").main(rest) or 0)
        module = importlib.import_module(f".{command}", __name__)
        parser = Parser(prog=f"domino-env {command}", description=module.__doc__, allow_abbrev=False)
        module.options(parser)
        code: int = module.run(parser.parse_args(rest))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has gone; nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"domino-env {command}: error: {_reason(error)}", file=sys.stderr)
        return 2
    return code
