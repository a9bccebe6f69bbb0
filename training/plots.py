"""Pictures of runs, drawn without a display."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def learning_curve(evaluations: Path, picture: Path) -> None:
    """Draw points a round against each opponent, with 95 % bands, over decisions; a PNG.

    Raises:
        ValueError: there is no evaluation to draw, or a line is not one.
    """
    by_opponent: dict[str, list[Any]] = defaultdict(list)
    text = evaluations.read_text(encoding="utf-8") if evaluations.exists() else ""
    for number, line in enumerate(text.splitlines(), 1):
        try:
            point = json.loads(line)
            by_opponent[point["opponent"]].append(point)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{evaluations}, line {number}: not an evaluation ({error})") from error
    if not by_opponent:
        raise ValueError(f"{evaluations}: no evaluations to draw")
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for opponent, points in by_opponent.items():
        steps = [point["steps"] / 1e6 for point in points]
        mean, low, high = zip(*(point["points"] for point in points), strict=True)
        (drawn,) = axes.plot(steps, mean, marker="o", markersize=3, label=f"against {opponent}")
        axes.fill_between(steps, low, high, alpha=0.2, color=drawn.get_color())
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xlabel("million decisions")
    axes.set_ylabel("points a round (95 % interval)")
    axes.set_title("The greedy policy on deals that training never saw")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(picture, dpi=120)
