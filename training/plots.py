"""Pictures of runs, drawn without a display."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def learning_curve(evaluations: Path, picture: Path) -> None:
    """Draw points a round against each opponent, with 95 % bands, over decisions and over time; a PNG.

    Raises:
        ValueError: there is no evaluation to draw, or a line is not one.
    """
    by_opponent: dict[str, list[Any]] = defaultdict(list)
    text = evaluations.read_text(encoding="utf-8") if evaluations.exists() else ""
    for number, line in enumerate(text.splitlines(), 1):
        try:
            point = json.loads(line)
            across = point["steps"] / 1e6, point["seconds"] / 60
            by_opponent[point["opponent"]].append((*across, *point["points"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{evaluations}, line {number}: not an evaluation ({error})") from error
    if not by_opponent:
        raise ValueError(f"{evaluations}: no evaluations to draw")
    figure = Figure(figsize=(12, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2, sharey=True)
    for axis, (axes, label) in enumerate(zip(panels, ("million decisions", "minutes of training"), strict=True)):
        for opponent, points in by_opponent.items():
            columns = list(zip(*points, strict=True))
            mean, low, high = columns[2:]
            (drawn,) = axes.plot(columns[axis], mean, marker="o", markersize=3, label=f"against {opponent}")
            axes.fill_between(columns[axis], low, high, alpha=0.2, color=drawn.get_color())
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xlabel(label)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("points a round (95 % interval)")
    panels[0].legend()
    figure.suptitle("The greedy policy on deals that training never saw")
    figure.savefig(picture, dpi=120)
