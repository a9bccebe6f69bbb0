"""The table in characters, for terminals and logs."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Final

from ..events import View
from ..game import Game
from .facts import Table, event_text, result_text, seat_names, side_name, table_of, title_of
from .layout import MIN_WIDTH, Layout, lay_in_columns

# A half is 4 characters wide and 2 high; neighbours share the line between them.
_ACROSS: Final = 4
_DOWN: Final = 2
#: The narrowest text: a row of `MIN_WIDTH` halves.
MIN_COLUMNS: Final = MIN_WIDTH * _ACROSS + 1

# The lines that meet in a character (1 up, 2 right, 4 down, 8 left) decide what it is.
_LINES: Final = " ╵╶╰╷│╭├╴╯─┴╮┤┬┼"
_ASCII_LINES: Final = " |-+||++-+-++++++"[:16]
_BOLD, _DIM, _PLAIN = "\x1b[1;33m", "\x1b[2m", "\x1b[0m"


def chain_text(
    chain: Sequence[str],
    columns: int = 80,
    *,
    opening: int | None = None,
    last: int | None = None,
    ascii_only: bool = False,
    colour: bool = False,
) -> str:
    """A chain as it lies on the table, in lines of at most `columns` characters.

    Args:
        chain: tiles as they lie, left to right.
        columns: at least `MIN_COLUMNS`.
        opening: the index of the tile the rows grow from; the middle one where it is None.
        last: the index of a tile to mark, where `colour` is on.
        ascii_only: no characters beyond ASCII.
        colour: with ANSI colours.
    """
    if columns < MIN_COLUMNS:
        raise ValueError(f"columns={columns}: the table takes at least {MIN_COLUMNS} characters a line")
    layout = lay_in_columns(chain, (columns - 1) // _ACROSS, opening=opening)
    if not layout.tiles:
        return ""
    return "\n".join(_paint(layout, last, ascii_only, colour))


def _paint(layout: Layout, last: int | None, ascii_only: bool, colour: bool) -> list[str]:
    rows, columns = round(layout.height * _DOWN) + 1, round(layout.width * _ACROSS) + 1
    lines = [[0] * columns for _ in range(rows)]
    marks: dict[tuple[int, int], str] = {}
    for index, tile in enumerate(layout.tiles):
        top, left = round(tile.y * _DOWN), round(tile.x * _ACROSS)
        bottom, right = top + tile.height * _DOWN, left + tile.width * _ACROSS
        for column in range(left, right):
            for row in (top, bottom):
                lines[row][column] |= 2
                lines[row][column + 1] |= 8
        for row in range(top, bottom):
            for column in (left, right):
                lines[row][column] |= 4
                lines[row + 1][column] |= 1
        if tile.width == 2:
            marks[top + 1, left + _ACROSS] = ":" if ascii_only else "┊"
        else:
            marks.update({(top + _DOWN, left + k): "." if ascii_only else "┄" for k in (1, 2, 3)})
        for half in tile.halves:
            text = str(half.number)
            if colour:
                text = f"{_BOLD if index == last else ''}{text}{_PLAIN if index == last else ''}"
            marks[round(half.y * _DOWN), round(half.x * _ACROSS)] = text
    table = _ASCII_LINES if ascii_only else _LINES
    return [
        "".join(marks.get((row, column), table[lines[row][column]]) for column in range(columns)).rstrip()
        for row in range(rows)
    ]


def hand_text(hand: Sequence[str]) -> str:
    """Tiles in a line: ``"[4|6] [6|6]"``."""
    return " ".join(f"[{tile.replace('-', '|')}]" for tile in hand)


def table(
    source: Game | View,
    columns: int = 80,
    *,
    names: Sequence[str] | None = None,
    ascii_only: bool = False,
    colour: bool = False,
    last_events: int = 6,
) -> str:
    """The table in lines of at most `columns` characters.

    Of a `View` it shows what its seat knows; of a `Game`, everything.

    Args:
        source: a `Game` or a `View`.
        columns: at least `MIN_COLUMNS`.
        names: what to call the seats.
        ascii_only: no characters beyond ASCII.
        colour: with ANSI colours.
        last_events: how many of the last plays, draws and passes to list.
    """
    shown = table_of(source)
    called = seat_names(shown.rules, names)
    if columns < MIN_COLUMNS:
        raise ValueError(f"columns={columns}: the table takes at least {MIN_COLUMNS} characters a line")
    lines = _wrapped(_heading(shown, called, columns), columns)
    lines.append(("-" if ascii_only else "─") * columns)
    lines += _hands(shown, called, columns, "#" if ascii_only else "▮")
    picture = chain_text(
        shown.chain,
        columns,
        opening=shown.opening,
        last=shown.last_tile,
        ascii_only=ascii_only,
        colour=colour,
    ).split("\n")
    width = max(_visible(line) for line in picture)
    margin = " " * ((columns - width) // 2)
    lines += (
        ["", *[(margin + line).rstrip() for line in picture], ""] if shown.chain else ["", "no tile played yet", ""]
    )
    if shown.ends is not None:
        lines.append(f"ends: {shown.ends[0]} left, {shown.ends[1]} right")
    if shown.events and last_events > 0:
        recent = ", ".join(event_text(event, called) for event in shown.events[-last_events:])
        lines += _wrapped(f"last: {recent}", columns)
    lines += _wrapped(_footing(shown, called), columns)
    text = "\n".join(lines)
    return to_ascii(text) if ascii_only else text


def to_ascii(text: str) -> str:
    """Text without accents and without any other character beyond ASCII."""
    return unicodedata.normalize("NFD", text).encode("ascii", "ignore").decode()


def _visible(line: str) -> int:
    """The length of a line without its colours."""
    return len(line.replace(_BOLD, "").replace(_PLAIN, ""))


def _wrapped(line: str, columns: int) -> list[str]:
    return textwrap.wrap(line, columns, subsequent_indent="  ", break_on_hyphens=False) or [""]


def _heading(table: Table, called: Sequence[str], columns: int) -> str:
    title = title_of(table)
    if table.rules.target is None:
        return title
    scores = ", ".join(f"{side_name(table.rules, side, called)}: {score}" for side, score in enumerate(table.scores))
    gap = columns - len(title) - len(scores)
    return title + " " * gap + scores if gap > 1 else f"{title} | {scores}"


def _hands(table: Table, called: Sequence[str], columns: int, back: str) -> list[str]:
    """A line or more for each hand, beginning after the seat drawn nearest, which comes last."""
    players = table.rules.players
    width = max(len(name) for name in called)
    lines: list[str] = []
    for step in range(1, players + 1):
        seat = (table.home + step) % players
        hand = table.hands[seat]
        count = table.counts[seat]
        shown = hand_text(hand) if hand is not None else back * count
        turn = ">" if table.to_act == seat else " "
        head = f"{turn} {called[seat]:<{width}} {count:>2}  "
        if len(head) + 6 > columns:
            head = f"{turn} {called[seat]} {count}  "
        lines += textwrap.wrap(head + shown, columns, subsequent_indent=" " * min(len(head), 8)) or [head.rstrip()]
    if table.rules.boneyard_size or table.boneyard:
        lines.append(f"  {'boneyard':<{width}} {table.boneyard:>2}")
    return lines


def _footing(table: Table, called: Sequence[str]) -> str:
    if table.result is not None:
        return result_text(table.result, table.rules, called)
    if table.to_act is None:
        return "the round is over"
    return f"{called[table.to_act]} to act"
