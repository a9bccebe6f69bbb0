"""What a picture is made of: where each tile and each word goes, in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ..events import View
from ..game import Game
from .facts import Table, result_text, seat_names, side_name, table_of, title_of
from .layout import Placement, lay_chain
from .letters import text_width

#: The colours of every picture, as red, green, blue.
COLOURS: Final[dict[str, tuple[int, int, int]]] = {
    "felt": (36, 112, 82),
    "edge": (16, 62, 46),
    "ivory": (250, 245, 231),
    "rim": (205, 193, 160),
    "shadow": (0, 0, 0),
    "ink": (34, 36, 44),
    "pin": (190, 150, 72),
    "back": (126, 42, 40),
    "back_rim": (88, 24, 26),
    "back_line": (196, 122, 104),
    "glow": (255, 200, 64),
    "bright": (246, 244, 232),
    "dim": (172, 205, 188),
}
#: Where the pips of a number lie in its half: along the tile and across it, each −1, 0 or 1.
PIPS: Final[tuple[tuple[tuple[int, int], ...], ...]] = (
    (),
    ((0, 0),),
    ((-1, -1), (1, 1)),
    ((-1, -1), (0, 0), (1, 1)),
    ((-1, -1), (-1, 1), (1, -1), (1, 1)),
    ((-1, -1), (-1, 1), (0, 0), (1, -1), (1, 1)),
    ((-1, -1), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 1)),
    ((-1, -1), (-1, 1), (0, -1), (0, 0), (0, 1), (1, -1), (1, 1)),
    ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)),
    ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 0), (0, 1), (1, -1), (1, 0), (1, 1)),
)
# Parts of a half's side: between a tile and the next, between pips, a pip's radius, the corners' radius.
GAP: Final = 0.05
PIP_STEP: Final = 0.26
PIP_RADIUS: Final = 0.095
CORNER: Final = 0.16
#: The smallest picture.
MIN_SIZE: Final = (160, 120)


class Piece(NamedTuple):
    """A tile in a picture: a placement in pixels whose halves have the side `unit`."""

    numbers: tuple[int, int] | None
    x: float
    y: float
    turn: int
    unit: float
    glow: bool = False

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, width and height of what is painted, a little inside the tile's place."""
        gap = GAP * self.unit
        across, down = (1, 2) if self.turn & 1 else (2, 1)
        return self.x + gap / 2, self.y + gap / 2, across * self.unit - gap, down * self.unit - gap

    @property
    def pips(self) -> list[tuple[float, float]]:
        """The middles of its pips."""
        placed = Placement(self.numbers, self.x / self.unit, self.y / self.unit, self.turn)
        found = []
        for half in placed.halves:
            for along, across in PIPS[half.number] if half.number is not None else ():
                dx, dy = (across, along) if self.turn & 1 else (along, across)
                found.append(((half.x + dx * PIP_STEP) * self.unit, (half.y + dy * PIP_STEP) * self.unit))
        return found


class Label(NamedTuple):
    """A line of words, centred on the height `y`."""

    text: str
    x: float
    y: float
    size: float
    anchor: str  # "start", "middle" or "end" of it lies at x
    colour: str


class Scene(NamedTuple):
    """All that is painted, in pixels."""

    width: int
    height: int
    pieces: list[Piece]
    labels: list[Label]


class _Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float


def scene_of(source: Game | View, size: tuple[int, int], names: Sequence[str] | None = None) -> Scene:
    """The scene of a game (everything) or of a view (what its seat knows).

    Args:
        source: a `Game` or a `View`.
        size: width and height in pixels, at least `MIN_SIZE`.
        names: what to call the seats.
    """
    width, height = size
    if width < MIN_SIZE[0] or height < MIN_SIZE[1]:
        raise ValueError(f"size={size}: a picture is at least {MIN_SIZE[0]} by {MIN_SIZE[1]} pixels")
    table = table_of(source)
    called = seat_names(table.rules, names)
    letter = max(7.0, min(height * 0.028, width * 0.019))
    margin = letter * 0.9
    pieces: list[Piece] = []
    title, scores, state = title_of(table), _scores(table, called), _state(table, called)
    heading = _fitting(f"{title}   {scores}", letter, width - 2 * margin)
    line = margin + letter / 2
    labels = [
        Label(title, margin, line, heading, "start", "bright"),
        Label(scores, width - margin, line, heading, "end", "bright"),
    ]
    top, foot = margin * 1.6 + letter, height - margin
    ending = _fitting(state, letter, width - 2 * margin)
    labels.append(Label(state, width / 2, foot - letter / 2, ending, "middle", "dim"))
    foot -= letter * 1.5
    room = _Box(margin, top, width - 2 * margin, foot - top)
    for seat, box, upright in _places(table, room):
        _hand(table, called, seat, box, upright, letter, pieces, labels)
    middle = _middle(table, room)
    if table.boneyard or table.rules.boneyard_size:
        unit = letter * 0.9
        y = room.y + room.height - 2 * unit
        pieces.append(Piece(None, room.x, y, 1, unit))
        labels.append(Label(f"{table.boneyard} in the boneyard", room.x + 1.5 * unit, y + unit, letter, "start", "dim"))
    pieces += _chain(table, middle)
    return Scene(width, height, pieces, labels)


def _fitting(words: str, size: float, width: float) -> float:
    """The size, or a smaller one at which the words are no longer than `width`."""
    return min(size, size * width / max(1.0, text_width(words, size)))


def _scores(table: Table, called: Sequence[str]) -> str:
    if table.rules.target is None:
        return ""
    sides = range(table.rules.num_sides)
    return "   ".join(f"{side_name(table.rules, side, called)}: {table.scores[side]}" for side in sides)


def _state(table: Table, called: Sequence[str]) -> str:
    if table.result is not None:
        return result_text(table.result, table.rules, called)
    return "the round is over" if table.to_act is None else f"{called[table.to_act]} to act"


def _places(table: Table, room: _Box) -> list[tuple[int, _Box, bool]]:
    """Each seat's place around the room, and whether its tiles stand upright there."""
    players, home = table.rules.players, table.home
    across, down = room.width * 0.14, room.height * 0.19
    own = _Box(room.x + across, room.y + room.height - down, room.width - 2 * across, down)
    if players > 4:
        others = players - 1
        cell = room.width / others
        cells = [_Box(room.x + i * cell, room.y, cell * 0.94, down * 0.8) for i in range(others)]
        return [(home, own, True), *(((home + 1 + i) % players, box, True) for i, box in enumerate(cells))]
    left = _Box(room.x, room.y + down, across, room.height - 2.2 * down)
    right = _Box(room.x + room.width - across, left.y, across, left.height)
    facing = _Box(own.x, room.y, own.width, down * 0.8)
    around = {2: [facing], 3: [left, right], 4: [left, facing, right]}[players]
    places = [(home, own, True)]
    places += [((home + 1 + i) % players, box, box is facing) for i, box in enumerate(around)]
    return places


def _middle(table: Table, room: _Box) -> _Box:
    """What the places leave for the chain."""
    across = room.width * (0.15 if table.rules.players in (3, 4) else 0.02)
    down = room.height * 0.21
    above = down * 0.12 if table.rules.players == 3 else down * 0.85
    return _Box(room.x + across, room.y + above, room.width - 2 * across, room.height - down - above)


def _hand(
    table: Table,
    called: Sequence[str],
    seat: int,
    box: _Box,
    upright: bool,
    letter: float,
    pieces: list[Piece],
    labels: list[Label],
) -> None:
    """Put a hand and its seat's name into its place: tiles side by side, upright or lying."""
    tiles: Sequence[str | None] = table.hands[seat] or [None] * table.counts[seat]
    acting = table.to_act == seat
    words = f"{called[seat]}: {table.counts[seat]}"
    colour = "glow" if acting else "bright"
    spread = 1.12
    x, y = box.x + box.width / 2, box.y + box.height / 2
    playable = {move.tile for move in table.legal_moves} if acting else set()
    if upright:
        unit = min((box.height - letter * 1.5) / 2.1, box.width / (spread * max(7, len(tiles))))
        own = seat == table.home
        start = x - unit * spread * len(tiles) / 2
        # The nearest hand lies at the foot of its place, others at the head of theirs: names face the chain.
        high = box.y + box.height - 2 * unit if own else box.y
        labels.append(
            Label(words, x, high + (-0.9 * letter if own else 2 * unit + 0.9 * letter), letter, "middle", colour)
        )
        for i, tile in enumerate(tiles):
            place = start + (i + (spread - 1) / 2 / spread) * unit * spread
            pieces.append(Piece(_numbers(tile), place, high, 1, unit, tile in playable))
        return
    unit = min(box.width / 2.3, (box.height - letter * 1.6) / (spread * max(7, len(tiles))))
    left = x - unit
    start = y - unit * spread * len(tiles) / 2 + letter * 0.8
    labels.append(Label(words, left + unit, start - letter * 0.7, letter, "middle", colour))
    for i, tile in enumerate(tiles):
        pieces.append(Piece(_numbers(tile), left, start + i * unit * spread, 0, unit, tile in playable))


def _numbers(tile: str | None) -> tuple[int, int] | None:
    if tile is None:
        return None
    low, high = tile.split("-")
    return int(low), int(high)


def _chain(table: Table, box: _Box) -> list[Piece]:
    """The chain, in the middle of its box."""
    unit = box.height / 5
    layout = lay_chain(
        table.chain, box.width, box.height, opening=table.opening if table.chain else None, max_unit=unit
    )
    x = box.x + (box.width - layout.width * layout.unit) / 2
    y = box.y + (box.height - layout.height * layout.unit) / 2
    return [
        Piece(p.numbers, x + p.x * layout.unit, y + p.y * layout.unit, p.turn, layout.unit, i == table.last_tile)
        for i, p in enumerate(layout.tiles)
    ]
