"""The table as an SVG picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..events import View
from ..game import Game
from .scene import COLOURS, CORNER, PIP_RADIUS, Label, Piece, scene_of


def table(source: Game | View, size: tuple[int, int] = (960, 640), *, names: Sequence[str] | None = None) -> str:
    """The table as the text of an SVG file.

    Of a `View` it shows what its seat knows; of a `Game`, everything.

    Args:
        source: a `Game` or a `View`.
        size: width and height in pixels.
        names: what to call the seats.
    """
    scene = scene_of(source, size, names)
    width, height = scene.width, scene.height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" '
        "font-family=\"Georgia, 'Times New Roman', serif\">",
        "<title>a table of dominoes</title>",
        '<defs><radialGradient id="felt" cx="50%" cy="45%" r="75%">'
        f'<stop offset="0" stop-color="{_colour("felt")}"/><stop offset="1" stop-color="{_colour("edge")}"/>'
        "</radialGradient></defs>",
        f'<rect width="{width}" height="{height}" fill="url(#felt)"/>',
        *map(_piece, scene.pieces),
        *map(_label, scene.labels),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _colour(name: str) -> str:
    return "#{:02x}{:02x}{:02x}".format(*COLOURS[name])


def _rect(x: float, y: float, width: float, height: float, radius: float, style: str) -> str:
    return f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" rx="{radius:.2f}" {style}/>'


def _piece(piece: Piece) -> str:
    x, y, width, height = piece.box
    unit, radius = piece.unit, piece.unit * CORNER
    line = max(0.6, unit * 0.03)
    hidden = piece.numbers is None
    fill, rim = ("back", "back_rim") if hidden else ("ivory", "rim")
    shadow = f'fill="{_colour("shadow")}" fill-opacity="0.35"'
    parts = [_rect(x + unit * 0.03, y + unit * 0.07, width, height, radius, shadow)]
    if piece.glow:
        style = f'fill="none" stroke="{_colour("glow")}" stroke-width="{unit * 0.12:.2f}"'
        parts.append(_rect(x, y, width, height, radius, style))
    parts.append(
        _rect(
            x,
            y,
            width,
            height,
            radius,
            f'fill="{_colour(fill)}" stroke="{_colour(rim)}" stroke-width="{line:.2f}"',
        )
    )
    if hidden:
        inset = unit * 0.15
        style = f'fill="none" stroke="{_colour("back_line")}" stroke-width="{line:.2f}"'
        parts.append(_rect(x + inset, y + inset, width - 2 * inset, height - 2 * inset, radius * 0.5, style))
        return f"<g>{''.join(parts)}</g>"
    middle_x, middle_y, reach = x + width / 2, y + height / 2, unit * 0.36
    dx, dy = (reach, 0) if piece.turn & 1 else (0, reach)
    parts.append(
        f'<path d="M{middle_x - dx:.2f} {middle_y - dy:.2f}L{middle_x + dx:.2f} {middle_y + dy:.2f}" '
        f'stroke="{_colour("rim")}" stroke-width="{line * 1.3:.2f}"/>'
        f'<circle cx="{middle_x:.2f}" cy="{middle_y:.2f}" r="{unit * 0.06:.2f}" fill="{_colour("pin")}"/>'
    )
    ink = _colour("ink")
    parts += [
        f'<circle cx="{px:.2f}" cy="{py:.2f}" r="{unit * PIP_RADIUS:.2f}" fill="{ink}"/>' for px, py in piece.pips
    ]
    return f"<g>{''.join(parts)}</g>"


def _label(label: Label) -> str:
    return (
        f'<text x="{label.x:.2f}" y="{label.y + label.size * 0.35:.2f}" font-size="{label.size:.2f}" '
        f'text-anchor="{label.anchor}" fill="{_colour(label.colour)}">{escape(label.text)}</text>'
    )
