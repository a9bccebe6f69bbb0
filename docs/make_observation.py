"""Writes docs/observation.md from what `Encoding` declares: ``python docs/make_observation.py``."""

from __future__ import annotations

from pathlib import Path

from domino_env import PRESETS, Encoding, History, make_rules
from domino_env.rules import RuleSet, preset_of

PAGE = Path(__file__).with_name("observation.md")

_INTRODUCTION = """\
# Observations

Written by `python docs/make_observation.py` from `domino_env.Encoding`; do not edit.

An observation is one flat vector of int8, made of named slices. Every entry is 0 or 1. It holds what
one seat, the observer, may know: its own hand and what everybody at the table has seen. Seats and sides
count from the observer: mine first, then the next in turn order; with four seats the third is opposite
(the partner, in pairs).

- A set of tiles is one entry a tile. Tile `h(h+1)/2 + l` has the halves h ≥ l: 0-0, 0-1, 1-1, 0-2, 1-2, …
- A number or a seat is one-hot; all zeros where there is none.
- A count n out of a shape of m entries is n ones, then m − n zeros; more than m is m ones.

`Encoding(rules).slices` is this page as data. Read a slice back with

```python
import numpy as np
from domino_env import PRESETS, Encoding, Game

encoding = Encoding(PRESETS["duplas"])
vector = encoding.vectors(Game(PRESETS["duplas"], seed=7).view(0).record)[0]
part = encoding.slices["placed"]
placed = vector[part.start : part.stop].reshape(part.shape)
assert placed.shape == (4, 28) and not np.any(placed)
```

What passes and draws show (`holds_none`, `holds_at_most_one`):

- A seat that passes or draws holds neither end's number at that moment.
- Where one draws until a tile fits, the tiles drawn before the last did not fit, and the last one did. It
  is played at once; until then it is the one tile that may carry any number.
- Where one tile is drawn, a seat may afterwards hold what it lacked before: at most one tile of it.
- A seat that holds at most one tile of a number, and plays one of it, holds none.

## History: the round's events as tokens

The vector forgets the order of plays. With `history=True` every environment observes it as well, for recurrent and
attention models: an observation of `DominoEnv`, `DominoVectorEnv` and `DominoVecEnv` is then
`{"observation": the vector, "history": tokens}`, and that of the AEC environment has the key `"history"` beside its
two. Tokens are int16, shape `(length,)`, oldest first, 0 after the last: plays by seat and action, draws by seat and
tile (one number for all tiles that another seat drew), passes by seat; seats count from the observer. With the vector
they give perfect recall of the round: two histories that differ for a seat never give it the same observation. A
round of a match begins with no tokens; what stands from the rounds before is in the scores.

```python
from domino_env import History
from domino_env.envs.single import DominoEnv

env = DominoEnv("puxar", history=True)
seen, info = env.reset(seed=7)
history = History(env.rules)
assert seen["history"].shape == (history.length,) and seen["history"].max() < history.num_tokens
print([history.event(token) for token in seen["history"].tolist() if token])
```

| preset | players | `length` | `num_tokens` |
| --- | --- | --- | --- |
"""


def histories() -> str:
    """The rows of the table of tokens."""
    tables = [make_rules(name) for name in PRESETS] + [make_rules("puxar", players=n) for n in (3, 4)]
    rows = [(preset_of(rules)[0], rules.players, History(rules)) for rules in tables]
    return "".join(f"| `{name}` | {players} | {h.length} | {h.num_tokens} |\n" for name, players, h in rows)


def table(rules: RuleSet) -> str:
    """The layout under `rules` as a Markdown table."""
    lines = ["| slice | range | shape | meaning |", "| --- | --- | --- | --- |"]
    for part in Encoding(rules).slices.values():
        shape = " × ".join(map(str, part.shape))
        lines.append(f"| `{part.name}` | {part.start}–{part.stop - 1} | {shape} | {part.meaning} |")
    return "\n".join(lines)


def page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION + histories()]
    for name, rules in PRESETS.items():
        encoding = Encoding(rules)
        heading = f"## `{name}`, {rules.players} players: {encoding.size} entries"
        parts.append(f"{heading}\n\nFingerprint `{encoding.fingerprint}`.\n\n{table(rules)}\n")
    sizes = ["## Other numbers of players", "", "| preset | players | entries |", "| --- | --- | --- |"]
    for name, counts in (("blocos", range(3, 10)), ("puxar", range(3, 5))):
        sizes += [f"| `{name}` | {n} | {Encoding(make_rules(name, players=n)).size} |" for n in counts]
    parts.append("\n".join(sizes) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
