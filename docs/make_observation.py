"""Writes docs/observation.md from the slices that layouts declare: ``python docs/make_observation.py``."""

from __future__ import annotations

from pathlib import Path

from domino_env import PRESETS, Encoding, History, make_rules
from domino_env.afterstates import Afterstates, Deals
from domino_env.rules import preset_of

PAGE = Path(__file__).with_name("observation.md")

_INTRODUCTION = """\
# Observations

Written by `python docs/make_observation.py` from `domino_env.Encoding` and `domino_env.afterstates`; do not edit.

This page has what the environments give, a vector and the round's events; and, at its end, [moves and deals with the
numbers renamed](#moves-and-deals-with-the-numbers-renamed), which learned players here are trained on.

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


_RENAMED = """\
## Moves and deals with the numbers renamed

Which numbers lie at the ends matters to a move, not what they are called: a position with every 3 and every 5
exchanged is played much alike, yet its vector is another, and a network has to learn it anew.
`domino_env.afterstates` says what a seat knows in rows that are nearly the same for both. It gives the numbers places:
those of the two ends come first, then those that the player holds most tiles of; of equals, that of which most tiles
lie hidden elsewhere, then the higher. A tile is entry `h(h+1)/2 + l` for the places h ≥ l of its halves, so whatever
fits the first end stands at the same entries in every row. What numbers are called stays in `names`, since pips count.

- `Afterstates` has one row for each legal move: what the player knows once the move has been made, and what the move
  was. A network that maps a row to one number is a policy: the softmax over a seat's moves. So it need not learn which
  actions are legal, nor the same thing for every tile. Rows follow from a view alone. The first place is that of the
  tile's new end (of a round's first tile, its higher half), the second that of the other end. Where both ends show one
  number, a tile is listed once, at the left. A view that is not of the seat to act has no moves.
- `Deals` has one row for each table with all hands open, seen from the seat to act. It is for critics, which training
  and search may ask; no player may see it. The first place is that of the end that this seat holds more tiles of (of
  equals, the left). Of the tiles elsewhere, those in the other hands count. `draws` are the next tiles of the boneyard.
  A table whose round is over is all zeros.

```python
import numpy as np
from domino_env import PRESETS, Batch
from domino_env.afterstates import Afterstates, Deals

rules = PRESETS["duplas"]
batch = Batch(rules, 8, seed=7)
afterstates, deals = Afterstates(rules), Deals(rules)
for _ in range(10):
    moves = afterstates.of_state(batch.state)  # of views: afterstates.of(batch.views())
    part = afterstates.slices["fitting"]
    fitting = moves.rows[:, part.start : part.stop].sum(1)  # tiles kept that fit an end
    best = [start + fitting[start:stop].argmax() for start, stop in zip(moves.starts, moves.starts[1:])]
    batch.step(moves.actions[best])
assert deals.of(batch.state).shape == (8, deals.size)
assert np.diff(moves.starts).min() >= 1
```

`moves.find(view, action)` says which row is that of an action. Rows are int8 with entries 0 or 1, made of slices as
above, and `slices`, `size` and `fingerprint` are those of `Encoding`. More words in the tables:

- Chances are counts of eighths, rounded. `stuck` takes each set of as many of the tiles that the seat may hold for as
  likely as any other: tiles that are not mine, not played, and of no number in `holds_none`.
- Pips are counted in steps of 4, rounded up, to at most 64; ties to at most 4.

| preset | players | entries of a move | of a deal |
| --- | --- | --- | --- |
"""


def renamed_sizes() -> str:
    """The rows of the table of sizes."""
    tables = [*PRESETS.values(), *(make_rules("blocos", players=n) for n in range(3, 10))]
    tables += [make_rules("puxar", players=n) for n in (3, 4)]
    rows = [(preset_of(rules)[0], rules.players, Afterstates(rules).size, Deals(rules).size) for rules in tables]
    return "".join(f"| `{name}` | {players} | {move} | {deal} |\n" for name, players, move, deal in rows)


def renamed_layouts() -> list[str]:
    """A section for each preset, with the layouts of its moves and of its deals."""
    parts = []
    for name, rules in PRESETS.items():
        parts.append(f"### `{name}`, {rules.players} players: moves and deals\n")
        for kind, layout in (("moves", Afterstates(rules)), ("deals", Deals(rules))):
            parts.append(f"A row of {kind}, fingerprint `{layout.fingerprint}`:\n\n{table(layout)}\n")
    return parts


def histories() -> str:
    """The rows of the table of tokens."""
    tables = [make_rules(name) for name in PRESETS] + [make_rules("puxar", players=n) for n in (3, 4)]
    rows = [(preset_of(rules)[0], rules.players, History(rules)) for rules in tables]
    return "".join(f"| `{name}` | {players} | {h.length} | {h.num_tokens} |\n" for name, players, h in rows)


def table(layout: Encoding | Afterstates | Deals) -> str:
    """A layout as a Markdown table."""
    lines = ["| slice | range | shape | meaning |", "| --- | --- | --- | --- |"]
    for part in layout.slices.values():
        shape = " × ".join(map(str, part.shape))
        lines.append(f"| `{part.name}` | {part.start}–{part.stop - 1} | {shape} | {part.meaning} |")
    return "\n".join(lines)


def page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION + histories()]
    for name, rules in PRESETS.items():
        encoding = Encoding(rules)
        heading = f"## `{name}`, {rules.players} players: {encoding.size} entries"
        parts.append(f"{heading}\n\nFingerprint `{encoding.fingerprint}`.\n\n{table(encoding)}\n")
    sizes = ["## Other numbers of players", "", "| preset | players | entries |", "| --- | --- | --- |"]
    for name, counts in (("blocos", range(3, 10)), ("puxar", range(3, 5))):
        sizes += [f"| `{name}` | {n} | {Encoding(make_rules(name, players=n)).size} |" for n in counts]
    parts.append("\n".join(sizes) + "\n")
    parts += [_RENAMED + renamed_sizes(), *renamed_layouts()]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
