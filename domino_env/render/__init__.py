"""Pictures of a table. One layout (`lay_chain`), painted as text, as SVG or as an array of pixels.

Every painter takes a `Game`, and shows everything, or a `View`, and shows what its seat knows.
"""

from __future__ import annotations

from .facts import Table, table_of
from .layout import Layout, Placement, lay_chain, lay_in_columns, opening_index
from .rgb import picture, write_png
from .svg import table as table_svg
from .text import chain_text, table

__all__ = [
    "Layout",
    "Placement",
    "Table",
    "chain_text",
    "lay_chain",
    "lay_in_columns",
    "opening_index",
    "picture",
    "table",
    "table_of",
    "table_svg",
    "write_png",
]
