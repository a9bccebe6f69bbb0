"""Read the golden positions in golden/positions: full deals, full logs, final numbers.

A file is a list of lines, in order; `#` starts a comment line. First the deal:

    rules mano_a_mano          the preset
    starter 1                  the seat that leads
    forced 5-5                 its first tile (left out where any tile may lead)
    hand 0  3-3 6-1 ...        one line for each seat, in the order dealt
    boneyard  2-2 5-1 ...      the first is drawn next; left out where there is none

Then the log, where a play, a draw and a pass each have a line, and `expect` lines may stand
anywhere between them and say what holds at that point, once the draws and passes forced by
the last play are done:

    1: 5-5                     the opening tile has no end
    0: 5-3 left
    1: draw 2-2
    1: pass
    expect ends 3 3
    expect hands 4 17          tiles in each hand
    expect boneyard 0          tiles in it
    expect seat 0              who must act; `none` when the round is over
    expect legal 6-3 left, 6-3 right
    expect pips 7 91           pips in each hand

A finished round ends with its result: `result NAME VALUE` lines, one for each field.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "golden" / "positions"

Tile = tuple[int, int]  # the higher half first


@dataclass(frozen=True)
class LogEvent:
    """A line of the log. An opening tile's end is "left"; only plays have an end."""

    kind: str  # "play", "draw" or "pass"
    seat: int
    tile: Tile | None
    end: str | None


@dataclass
class Expectation:
    """What holds after the first `after` events of the log; None where the file is silent."""

    after: int
    ends: tuple[int, int] | None = None
    hands: tuple[int, ...] | None = None
    boneyard: int | None = None
    seat: int | str | None = None  # "none" when the round is over
    legal: list[tuple[Tile, str]] | None = None
    pips: tuple[int, ...] | None = None


@dataclass(frozen=True)
class ExpectedResult:
    """How the round ended; the fields are those of a round's result."""

    reason: str
    seat: int | None
    side: int | None
    finish: str | None
    base: int
    multiplier: int
    points: int
    pips: tuple[int, ...]
    last_placer: int
    next_starter: int | None


@dataclass
class Position:
    """One golden position."""

    name: str
    rules: str = ""
    starter: int = 0
    forced: Tile | None = None
    hands: list[list[Tile]] = field(default_factory=list)
    boneyard: list[Tile] = field(default_factory=list)
    log: list[LogEvent] = field(default_factory=list)
    expectations: list[Expectation] = field(default_factory=list)
    result: ExpectedResult | None = None  # None: the log stops before the round is over

    @property
    def plays(self) -> list[LogEvent]:
        """The log's plays alone: the seats' choices."""
        return [event for event in self.log if event.kind == "play"]


def parse_tile(text: str) -> Tile:
    """Read "6-4"."""
    high, low = text.split("-")
    if int(high) < int(low):
        raise ValueError(f"{text}: write the higher half first")
    return int(high), int(low)


def parse_move(text: str) -> tuple[Tile, str]:
    """Read "6-4 left", "6-4 right", or "6-4" for an opening tile."""
    tile, *end = text.split()
    if end not in ([], ["left"], ["right"]):
        raise ValueError(f"{text}: a move is a tile and left or right")
    return parse_tile(tile), end[0] if end else "left"


def load_positions() -> list[Position]:
    """All golden positions, by file name."""
    return [load_position(path) for path in sorted(FOLDER.glob("*.txt"))]


def load_position(path: Path) -> Position:
    """Read one file; ValueError names the file and the line."""
    position = Position(path.stem)
    result: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            _read_line(position, result, line)
        except (ValueError, IndexError) as error:
            raise ValueError(f"{path}, line {number}: {error}: {line}") from error
    if result:
        position.result = _read_result(result)
    return position


def _read_line(position: Position, result: dict[str, str], line: str) -> None:
    word, _, rest = line.partition(" ")
    if word == "rules":
        position.rules = rest.strip()
    elif word == "starter":
        position.starter = int(rest)
    elif word == "forced":
        position.forced = parse_tile(rest.strip())
    elif word == "hand":
        seat, *tiles = rest.split()
        if int(seat) != len(position.hands):
            raise ValueError(f"hand {len(position.hands)} comes next")
        position.hands.append([parse_tile(tile) for tile in tiles])
    elif word == "boneyard":
        position.boneyard = [parse_tile(tile) for tile in rest.split()]
    elif word == "expect":
        _read_expectation(position, rest)
    elif word == "result":
        name, value = rest.split(maxsplit=1)
        result[name] = value
    elif word.endswith(":"):
        position.log.append(_read_event(int(word[:-1]), rest.strip()))
    else:
        raise ValueError("unknown line")


def _read_event(seat: int, text: str) -> LogEvent:
    if text == "pass":
        return LogEvent("pass", seat, None, None)
    if text.startswith("draw "):
        return LogEvent("draw", seat, parse_tile(text.split()[1]), None)
    tile, end = parse_move(text)
    return LogEvent("play", seat, tile, end)


def _read_expectation(position: Position, text: str) -> None:
    after = len(position.log)
    if not position.expectations or position.expectations[-1].after != after:
        position.expectations.append(Expectation(after))
    expectation = position.expectations[-1]
    name, value = text.split(maxsplit=1)
    if name == "ends":
        left, right = value.split()
        expectation.ends = (int(left), int(right))
    elif name == "hands":
        expectation.hands = _numbers(value)
    elif name == "boneyard":
        expectation.boneyard = int(value)
    elif name == "seat":
        expectation.seat = "none" if value == "none" else int(value)
    elif name == "legal":
        expectation.legal = sorted(parse_move(move) for move in value.split(","))
    elif name == "pips":
        expectation.pips = _numbers(value)
    else:
        raise ValueError(f"unknown expectation {name}")


def _read_result(values: dict[str, str]) -> ExpectedResult:
    return ExpectedResult(
        reason=values["reason"],
        seat=_number_or_none(values["seat"]),
        side=_number_or_none(values["side"]),
        finish=None if values["finish"] == "none" else values["finish"],
        base=int(values["base"]),
        multiplier=int(values["multiplier"]),
        points=int(values["points"]),
        pips=_numbers(values["pips"]),
        last_placer=int(values["last_placer"]),
        next_starter=_number_or_none(values["next_starter"]),
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split())


def _number_or_none(text: str) -> int | None:
    return None if text == "none" else int(text)
