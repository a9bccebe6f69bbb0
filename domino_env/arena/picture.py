"""A cross table as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .results import Duel, games_of
from .tables import names_of, shares_of

if TYPE_CHECKING:
    from ..rating import Ratings

_INK, _QUIET = "#222222", "#666666"
_SHORT = 10  # letters of a name that fits above a column


def picture(duels: Sequence[Duel], file: str | Path, *, ratings: Ratings | None = None, dpi: int = 150) -> None:
    """Paint a cross table to a file: a square for each pair, with the share of games won and its interval.

    With `ratings` the players stand in their order, with their ratings beside the table.

    Args:
        duels: of one game, as `cross_table` gives them.
        file: PNG, SVG or PDF, by its ending.
        ratings: of the same players.
        dpi: dots an inch.

    Raises:
        ImportError: Matplotlib is not installed.
        ValueError: no duels, or an ending that Matplotlib does not know.
    """
    if not duels:
        raise ValueError("a picture needs at least one duel")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures of results need Matplotlib: pip install matplotlib") from None
    names = list(ratings.players) if ratings else names_of(duels)
    longest = max(map(len, names))
    sides = len(names) * 0.95, len(names) * 0.62  # of the table; all in inches
    left, top = 0.085 * longest + 0.25, 0.95 + (0.038 * longest if longest > _SHORT else 0.0)
    beside = 2.9 if ratings else 0.06 * longest
    width, height = max(4.6, left + sides[0] + beside + 0.3), top + sides[1] + 0.6
    figure = Figure(figsize=(width, height), dpi=dpi)
    low, high = 0.6 / height, sides[1] / height
    _squares(figure.add_axes((left / width, low, sides[0] / width, high)), duels, names)
    if ratings:
        start = (left + sides[0] + 0.35) / width
        _bars(figure.add_axes((start, low, 1 - start - 0.12 / width, high)), ratings)
    games = games_of(duels[0].episode)
    above: dict[str, Any] = {"color": _INK, "va": "top"}
    figure.text(0.15 / width, 1 - 0.15 / height, duels[0].rules, size=12, weight="bold", **above)
    figure.text(
        0.15 / width, 1 - 0.39 / height, f"share of {games} that the row wins against the column", size=9, **above
    )
    figure.text(0.15 / width, 0.15 / height, _below(duels), size=7.5, color=_QUIET, va="bottom")
    figure.savefig(file)


def _below(duels: Sequence[Duel]) -> str:
    deals, seeds = sorted({duel.deals for duel in duels}), sorted({duel.seed for duel in duels})
    many = f"{deals[0]:,}" if len(deals) == 1 else f"{deals[0]:,} to {deals[-1]:,}"
    seeds_text = ", ".join(map(str, seeds))
    ways = " or ".join(map(str, sorted({duel.seatings for duel in duels})))
    text = f"{many} deals a pair, each in {ways} seatings; seed {seeds_text}; 95 % intervals"
    lost = sum(duel.forfeits.count + duel.opponent_forfeits.count for duel in duels)
    return f"{text}\n{lost:,} games forfeited" if lost else text


def _squares(axes: Any, duels: Sequence[Duel], names: Sequence[str]) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import TwoSlopeNorm

    size, shares, fair = len(names), shares_of(duels), duels[0].fair_share
    # Never so fine that small differences look large, and without the darkest colours, on which nothing can be read.
    most = 1.7 * max(0.1, *(abs(share.mean - fair) for share in shares.values()))
    norm = TwoSlopeNorm(fair, fair - most, fair + most)
    colours = colormaps["RdBu"]
    for y, name in enumerate(names):
        for x, other in enumerate(names):
            share = shares.get((name, other))
            colour = "#f4f4f4" if share is None else colours(norm(share.mean))
            axes.add_patch(_square(x, y, colour))
            if share is None:
                continue
            axes.text(x, y - 0.08, f"{share.mean:.1%}", ha="center", va="center", size=11, color=_INK)
            half = (share.high - share.low) / 2
            axes.text(x, y + 0.25, f"±{half:.1%}", ha="center", va="center", size=7.5, color=_INK)
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), xticks=range(size), yticks=range(size))
    axes.set_yticklabels(names, size=10, color=_INK)
    slanted = {"rotation": 30, "ha": "left", "rotation_mode": "anchor"} if max(map(len, names)) > _SHORT else {}
    axes.set_xticklabels(names, size=10, color=_INK, **slanted)
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _square(x: int, y: int, colour: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, facecolor=colour, edgecolor="none")


def _bars(axes: Any, ratings: Ratings) -> None:
    elo = ratings.elo
    rows = range(len(elo))
    widths = [(one.high - one.low) / 2 for one in elo]
    axes.errorbar([one.mean for one in elo], rows, xerr=widths, fmt="o", color=_INK, ms=5, lw=1.4, capsize=3)
    span = max(one.high for one in elo) - min(one.low for one in elo) or 1.0
    for row, one in enumerate(elo):
        axes.text(one.mean, row - 0.2, f"{one.mean:+.0f}", ha="center", va="bottom", size=9, color=_INK)
    low, high = min(one.low for one in elo), max(one.high for one in elo)
    axes.set(xlim=(low - 0.13 * span, high + 0.13 * span), ylim=(len(elo) - 0.5, -0.5), yticks=[])
    zero = "mean of all" if ratings.anchor is None else ratings.anchor
    axes.set_title(f"Elo ({zero} = 0)", size=10, color=_INK)
    axes.axvline(0, color="#cccccc", lw=0.8, zorder=0)
    axes.locator_params(axis="x", nbins=6)
    axes.tick_params(labelsize=8, colors=_QUIET, length=2)
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#cccccc")
