"""The table as an array of pixels, with NumPy alone; and as a PNG file, with Pillow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..events import View
from ..game import Game
from .letters import CAPITAL, coverage, text_width
from .scene import COLOURS, CORNER, PIP_RADIUS, Label, Piece, scene_of

# While it is painted a picture is float32 (3, height, width): one plane a colour mixes several times faster.
_Pixels = npt.NDArray[np.float32]


def picture(
    source: Game | View, size: tuple[int, int] = (960, 640), *, names: Sequence[str] | None = None
) -> npt.NDArray[np.uint8]:
    """The table as uint8 (height, width, 3), newly allocated.

    Of a `View` it shows what its seat knows; of a `Game`, everything.

    Args:
        source: a `Game` or a `View`.
        size: width and height in pixels.
        names: what to call the seats.
    """
    scene = scene_of(source, size, names)
    pixels = _felt(scene.width, scene.height).copy()
    for piece in scene.pieces:
        _paint_piece(pixels, piece)
    for label in scene.labels:
        _paint_label(pixels, label)
    return np.ascontiguousarray((pixels + np.float32(0.5)).astype(np.uint8).transpose(1, 2, 0))


def write_png(path: str | os.PathLike[str], pixels: npt.NDArray[np.uint8]) -> None:
    """Write an array of pixels as a PNG file.

    Raises:
        ValueError: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError:
        raise ValueError("writing PNG files needs Pillow: pip install 'domino-env[render]'") from None
    Image.fromarray(pixels).save(path, format="PNG", optimize=True)


@lru_cache(maxsize=4)
def _felt(width: int, height: int) -> _Pixels:
    """An empty table, lighter in the middle."""
    ys, xs = np.mgrid[0:height, 0:width].astype(np.float32)
    away = np.hypot((xs - width / 2) / width, (ys - height * 0.45) / height) / 0.75
    weight = np.clip(away, 0, 1)
    felt, edge = _plane("felt"), _plane("edge")
    table: _Pixels = (felt * (1 - weight) + edge * weight).astype(np.float32)
    return table


def _plane(colour: str) -> _Pixels:
    return np.array(COLOURS[colour], np.float32)[:, None, None]


class _Patch:
    """The pixels around a piece, and how far each lies from things."""

    def __init__(self, pixels: _Pixels, box: tuple[float, float, float, float], border: float) -> None:
        x, y, width, height = box
        left, top = max(0, int(x - border)), max(0, int(y - border))
        self.pixels = pixels[:, top : int(y + height + border) + 2, left : int(x + width + border) + 2]
        rows, columns = self.pixels.shape[1:]
        self.xs = np.arange(left, left + columns, dtype=np.float32)[None, :] + np.float32(0.5)
        self.ys = np.arange(top, top + rows, dtype=np.float32)[:, None] + np.float32(0.5)

    def rounded(self, x: float, y: float, width: float, height: float, radius: float) -> _Pixels:
        """Distances from a rectangle with round corners, negative inside."""
        across = np.abs(self.xs - x - width / 2) - (width / 2 - radius)
        down = np.abs(self.ys - y - height / 2) - (height / 2 - radius)
        outside = np.hypot(np.maximum(across, 0), np.maximum(down, 0))
        distance: _Pixels = outside + np.minimum(np.maximum(across, down), 0) - np.float32(radius)
        return distance

    def fill(self, distance: _Pixels, colour: str, strength: float = 1.0, soft: float = 1.0) -> None:
        """Colour what lies at a negative distance; the border is `soft` pixels wide."""
        weight = np.clip(np.float32(0.5) - distance / np.float32(soft), 0, np.float32(1))
        self.pixels += weight * np.float32(strength) * (_plane(colour) - self.pixels)

    def dot(self, x: float, y: float, radius: float, colour: str) -> None:
        """Paint a disc."""
        rows = slice(*np.searchsorted(self.ys[:, 0], (y - radius - 1, y + radius + 1)))
        columns = slice(*np.searchsorted(self.xs[0], (x - radius - 1, x + radius + 1)))
        distance = np.hypot(self.xs[:, columns] - x, self.ys[rows] - y) - radius
        part = self.pixels[:, rows, columns]
        part += np.clip(0.5 - distance, 0, 1) * (_plane(colour) - part)


def _paint_piece(pixels: _Pixels, piece: Piece) -> None:
    x, y, width, height = piece.box
    unit, radius = piece.unit, piece.unit * CORNER
    line = max(0.8, unit * 0.03)
    patch = _Patch(pixels, piece.box, unit * 0.25 + 2)
    shadow = patch.rounded(x + unit * 0.03, y + unit * 0.07, width, height, radius)
    patch.fill(shadow, "shadow", 0.45, unit * 0.16)
    tile = patch.rounded(x, y, width, height, radius)
    if piece.glow:
        patch.fill(tile - unit * 0.07, "glow")
    hidden = piece.numbers is None
    patch.fill(tile, "back_rim" if hidden else "rim")
    patch.fill(tile + line, "back" if hidden else "ivory")
    if hidden:
        inner = tile + unit * 0.16
        patch.fill(np.abs(inner) - line / 2, "back_line")
        return
    middle_x, middle_y, reach = x + width / 2, y + height / 2, unit * 0.36
    across, down = (reach, line * 0.65) if piece.turn & 1 else (line * 0.65, reach)
    patch.fill(patch.rounded(middle_x - across, middle_y - down, 2 * across, 2 * down, 0), "rim")
    patch.dot(middle_x, middle_y, unit * 0.06, "pin")
    for pip_x, pip_y in piece.pips:
        patch.dot(pip_x, pip_y, unit * PIP_RADIUS, "ink")


def _paint_label(pixels: _Pixels, label: Label) -> None:
    size = round(label.size, 1)
    weight = coverage(label.text, size)
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[label.anchor]
    left = round(label.x - shift * text_width(label.text, size)) - 2
    top = round(label.y - size * CAPITAL / 2) - 2
    rows, columns = weight.shape
    cut_left, cut_top = max(0, -left), max(0, -top)
    part = pixels[:, top + cut_top : top + rows, left + cut_left : left + columns]
    weight = weight[cut_top : cut_top + part.shape[1], cut_left : cut_left + part.shape[2]]
    part += weight * (_plane(label.colour) - part)
