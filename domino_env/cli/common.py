"""What several commands share: options for the rules, the seed and the output."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from typing import Any

from ..rules import PRESETS, RuleSet, make_rules

_WORDS = {"none": None, "true": True, "false": False}


def rules_options(parser: argparse.ArgumentParser) -> None:
    """Options that say which rules are played."""
    group = parser.add_argument_group("rules")
    group.add_argument("--preset", default="duplas", metavar="NAME", help=f"{', '.join(PRESETS)} (default duplas)")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        dest="changes",
        help="change a field of the preset, such as target=10 or players=3; may be given again",
    )


def seed_option(parser: argparse._ActionsContainer, default: int | None = None) -> None:
    """The option for the seed."""
    text = "a new deal each time" if default is None else str(default)
    parser.add_argument("--seed", type=whole_number, default=default, metavar="N", help=f"deals (default {text})")


def address_options(parser: argparse.ArgumentParser) -> None:
    """Options for where a server listens."""
    parser.add_argument("--port", type=whole_number, default=8000, metavar="N", help="0: any free one (default 8000)")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="NAME",
        help="address to listen on (default 127.0.0.1: this machine alone)",
    )


def output_options(parser: argparse.ArgumentParser) -> None:
    """Options for text output."""
    group = parser.add_argument_group("output")
    group.add_argument("--ascii", action="store_true", help="no characters beyond ASCII")
    group.add_argument("--no-colour", action="store_true", help="no colours (nor where NO_COLOR is set)")
    group.add_argument("--columns", type=whole_number, metavar="N", help="line length (default the terminal's)")


def whole_number(text: str) -> int:
    """A whole number of at least 0."""
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def address_from(arguments: argparse.Namespace) -> tuple[str, int]:
    """The host and port that the options of `address_options` say."""
    if arguments.port > 65535:
        raise ValueError(f"--port {arguments.port}: ports go from 0 to 65535")
    return arguments.host, arguments.port


def rules_from(arguments: argparse.Namespace) -> RuleSet:
    """The rules that the options of `rules_options` say."""
    changes: dict[str, Any] = {}
    for change in arguments.changes:
        name, equals, value = change.partition("=")
        if not equals:
            raise ValueError(f"--set {change!r}: write FIELD=VALUE, such as target=10")
        changes[name.strip()] = _value(value.strip())
    if changes.get("draw", "") is None:
        changes["draw"] = "none"
    return make_rules(arguments.preset.replace("-", "_"), **changes)


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return int(text)
    except ValueError:
        return text


def text_style(arguments: argparse.Namespace) -> dict[str, Any]:
    """What `render.text.table` is to be called with: columns, ascii_only, colour."""
    from ..render.text import MIN_COLUMNS

    columns = arguments.columns
    if columns is None:
        columns = max(MIN_COLUMNS, min(100, shutil.get_terminal_size((80, 24)).columns))
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        "─┊▮ç".encode(encoding)
        plain = arguments.ascii
    except (UnicodeEncodeError, LookupError):
        plain = True
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and not arguments.no_colour
    return {"columns": columns, "ascii_only": plain, "colour": colour and os.environ.get("TERM") != "dumb"}


def seat_option(value: int | None, rules: RuleSet) -> int | None:
    """A seat given by an option, or None; ValueError where the table has no such seat."""
    if value is not None and value >= rules.players:
        raise ValueError(f"--seat {value}: {rules.players} players sit on seats 0 to {rules.players - 1}")
    return value
