"""Capitals, digits and signs drawn with strokes, so that pixels need no font file."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from .text import to_ascii

# Each glyph's strokes on a grid 4 wide and 6 high: points as two digits (across, down), strokes apart by |.
_GLYPHS: Final = {
    "A": "06 02 20 42 46|04 44", "B": "03 33 42 41 30 00 06 36 45 44 33", "C": "41 30 10 01 05 16 36 45",
    "D": "00 06 26 44 42 20 00", "E": "40 00 06 46|03 33", "F": "40 00 06|03 33",
    "G": "41 30 10 01 05 16 36 45 43 23", "H": "00 06|40 46|03 43", "I": "00 06", "J": "30 35 26 16 05",
    "K": "00 06|40 03 46", "L": "00 06 46", "M": "06 00 23 40 46", "N": "06 00 46 40",
    "O": "10 30 41 45 36 16 05 01 10", "P": "06 00 30 41 42 33 03", "Q": "10 30 41 45 36 16 05 01 10|24 46",
    "R": "06 00 30 41 42 33 03|23 46", "S": "41 30 10 01 02 13 33 44 45 36 16 05", "T": "00 40|20 26",
    "U": "00 05 16 36 45 40", "V": "00 26 40", "W": "00 16 22 36 40", "X": "00 46|40 06",
    "Y": "00 23 40|23 26", "Z": "00 40 06 46",
    "0": "10 30 41 45 36 16 05 01 10", "1": "01 10 16", "2": "01 10 30 41 42 06 46",
    "3": "00 40 23 33 44 45 36 16 05", "4": "36 30 04 44", "5": "40 00 03 33 44 45 36 16 05",
    "6": "30 10 01 05 16 36 45 44 33 13 04", "7": "00 40 16",
    "8": "13 02 01 10 30 41 42 33 13 04 05 16 36 45 44 33", "9": "16 36 45 41 30 10 01 02 13 33 42",
    "+": "02 42|20 24", "-": "03 33", ".": "06 06", ",": "06 07", ":": "02 02|05 05",
    "/": "06 40", "_": "06 46",
    "(": "20 02 04 26", ")": "00 22 24 06", "'": "00 01", "!": "00 04|06 06", "=": "02 42|04 44",
    "?": "01 10 30 41 42 23 24|26 26", "#": "10 16|30 36|02 42|04 44",
    "&": "46 02 01 10 21 22 04 05 16 26 43",
}  # fmt: skip
_SPACE: Final = 2.6
_BETWEEN: Final = 1.9
_STROKE: Final = 0.42  # half a stroke's width
#: The height of a capital, in parts of a size.
CAPITAL: Final = 0.7


def text_width(text: str, size: float) -> float:
    """The length of a text in pixels."""
    if not text:
        return 0.0
    steps = [_advance(letter) for letter in _upper(text)]
    return (sum(steps) - _BETWEEN) * size * CAPITAL / 6


def _upper(text: str) -> str:
    return to_ascii(text).upper()


def _strokes(letter: str) -> list[list[tuple[int, int]]]:
    drawn = _GLYPHS.get(letter, _GLYPHS["?"])
    return [[(int(point[0]), int(point[1])) for point in stroke.split()] for stroke in drawn.split("|")]


def _advance(letter: str) -> float:
    if letter == " ":
        return _SPACE + _BETWEEN / 2
    return max(x for stroke in _strokes(letter) for x, _ in stroke) + _BETWEEN


@lru_cache(maxsize=512)
def coverage(text: str, size: float) -> npt.NDArray[np.float32]:
    """How much of each pixel a text covers: float32 (height, width) from 0 to 1, 2 pixels of it border."""
    scale = size * CAPITAL / 6
    width, height = int(text_width(text, size)) + 6, int(size * CAPITAL * 7.2 / 6) + 6
    nearest = np.full((height, width), np.inf, np.float32)
    at = 0.0
    for letter in _upper(text):
        step = _advance(letter)
        if letter != " ":
            low, high = int(at * scale), min(width, int((at + step) * scale) + 6)
            ys, xs = np.mgrid[0:height, low:high].astype(np.float32) + np.float32(0.5)
            for stroke in _strokes(letter):
                for (x0, y0), (x1, y1) in pairwise(stroke):
                    ends = (at + x0) * scale + 2, y0 * scale + 2, (at + x1) * scale + 2, y1 * scale + 2
                    part = nearest[:, low:high]
                    np.minimum(part, _distance(xs, ys, *ends), out=part)
        at += step
    covered: npt.NDArray[np.float32] = np.clip(max(_STROKE * scale, 0.5) - nearest + 0.5, 0, 1)
    return covered.astype(np.float32)


def _distance(
    xs: npt.NDArray[np.float32], ys: npt.NDArray[np.float32], x0: float, y0: float, x1: float, y1: float
) -> npt.NDArray[np.float32]:
    """The distance of each pixel from a line between two points."""
    dx, dy = x1 - x0, y1 - y0
    square = dx * dx + dy * dy
    along = np.clip(((xs - x0) * dx + (ys - y0) * dy) / square, 0, 1) if square else np.zeros_like(xs)
    return np.hypot(xs - x0 - along * dx, ys - y0 - along * dy).astype(np.float32)
