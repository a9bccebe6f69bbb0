"""Put a run's newest policy into ``agents/zoo``, with a card to read.

    python -m training.evaluate runs/ppo-duplas --opponents random doubles counting
    python -m training.release runs/ppo-duplas duplas-v1 --hardware "one core of ..." --note "It ..."

The card is README.md of the policy's folder: command, configuration, code version, time, hardware, and
the results that ``training.evaluate`` wrote beside the checkpoint. Where the checkpoint has a critic,
it is released too. Weights are rounded to half precision. What only training needs is left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from safetensors.torch import load_file

from agents import checkpoint
from agents.critic import CRITIC_FILE
from agents.zoo import FOLDER

LIMIT: Final = 2_000_000  # bytes of weights

CARD: Final = """# {name}

{notes}

| | |
| --- | --- |
| rules | `{preset}`{changes} |
| made with | `{command}` |
| training | {steps:,} decisions in {minutes:.0f} minutes |
| hardware | {hardware} |
| code | sources {code}, {version} |
| sees | {sees} `{encoding}` |
| network | {hidden} units, {activation}; {size:,} bytes |

## Results

Duplicate deals that training never saw (`training.evaluate`), 95 % intervals.

| opponent | episode | deals | won | points a round |
| --- | --- | --- | --- | --- |
{results}

## Configuration

```yaml
{config}```
"""


def results_of(evaluation: list[dict[str, Any]]) -> str:
    """The rows of the table of results."""
    rows = []
    for result in evaluation:
        won, points = result["win_share"], result["points"]
        rows.append(
            f"| `{result['opponent']}` | {result['episode']} | {result['deals']:,} x {result['seatings']} | "
            f"{won['mean']:.1%} [{won['low']:.1%}, {won['high']:.1%}] | "
            f"{points['mean']:+.3f} [{points['low']:+.3f}, {points['high']:+.3f}] |"
        )
    return "\n".join(rows)


def release(run: str, name: str, *, command: str, hardware: str, version: str, notes: Sequence[str]) -> Path:
    """Write ``agents/zoo/<name>``; its path.

    Raises:
        ValueError: no checkpoint or evaluation there, weights that are too large, or a name that is taken.
        OSError: it cannot be written.
    """
    source, target = checkpoint.newest(run), FOLDER / name
    policy, card = checkpoint.load(source)
    if not (source / "evaluation.json").is_file():
        raise ValueError(f"{source} has no evaluation.json; run python -m training.evaluate {run}")
    files = [checkpoint.WEIGHTS_FILE, *([CRITIC_FILE] if (source / CRITIC_FILE).is_file() else [])]
    if (size := sum((source / file).stat().st_size for file in files) // 2) > LIMIT:
        raise ValueError(f"{source}: {size:,} bytes of weights; a released policy has at most {LIMIT:,}")
    last = json.loads((Path(run) / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    text = CARD.format(
        name=name, notes="\n".join(f"- {note}" for note in notes), command=command, hardware=hardware, version=version,
        preset=card.preset, changes=f" with {card.rules}" if card.rules else "", steps=card.steps,
        minutes=last["seconds"] / 60, code=card.code, encoding=card.encoding, sees=card.sees, hidden=card.hidden,
        activation=card.activation, size=size, config=yaml.safe_dump(card.config, sort_keys=False),
        results=results_of(json.loads((source / "evaluation.json").read_text(encoding="utf-8"))),
    )  # fmt: skip
    others = {file: load_file(source / file) for file in files[1:]}
    checkpoint.save(
        target, policy.half(), card, {file: {name: weight.half() for name, weight in weights.items()}
                                      for file, weights in others.items()},
    )  # fmt: skip
    (target / "README.md").write_text(text, encoding="utf-8")
    return target


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 2 where there is nothing that can be released."""
    parser = argparse.ArgumentParser(prog="python -m training.release", description=__doc__.split("\n\n")[0])
    parser.add_argument("run", help="the run folder")
    parser.add_argument("name", help="the policy's name, such as duplas-v1")
    parser.add_argument("--command", required=True, help="the command that trained it")
    parser.add_argument("--hardware", required=True, help="what it was trained on")
    parser.add_argument("--version", required=True, help="the commit it was trained with")
    parser.add_argument("--note", action="append", default=[], help="a line on what it is and its weaknesses")
    given = parser.parse_args(arguments)
    try:
        folder = release(
            given.run, given.name, command=given.command, hardware=given.hardware, version=given.version,
            notes=given.note,
        )  # fmt: skip
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
