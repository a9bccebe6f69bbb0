"""The reading half of `notation`: from lines to what they say, with the place of every word.

Here only form is checked, and tiles against their set; `notation` then plays the record and
verifies what it says.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, NoReturn

from ._notation_write import NOTHING, VERSION, tile_word
from .events import Deal
from .rules import CHOICES, MAX_PLAYERS, MIN_PLAYERS, PRESETS, RuleSet, make_rules
from .tiles import MAX_PIP, TILE_NAMES, parse_tile

KINDS: Final = ("deal", "game", "match")
# What may follow the events of a round; what else belongs there is then seen to.
_AFTER_EVENTS: Final = ("result", "round", "deal", "winner", "drawn", "end")
_NUMBER = re.compile(r"0|[1-9][0-9]*")
_EVENT = re.compile(r"([0-9]):(?:(pass)|(\+?)([0-9]-[0-9])([LR]?))")
# Python refuses to read longer numbers.
_MAX_DIGITS: Final = 4300


class NotationError(ValueError):
    """Text that is not a record, or a record that the rules contradict. `line` and `column` count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.message = message
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.line, self.column)


class Token(NamedTuple):
    """A word and where it stands; an empty one where the line, or the whole text, ends."""

    text: str
    line: int
    column: int
    last: bool = False  # the text ends here

    def fail(self, message: str) -> NoReturn:
        """Raise a `NotationError` at this word."""
        raise NotationError(message, self.line, self.column) from None

    def wrong(self, wanted: str) -> NoReturn:
        """Raise a `NotationError` that says what should stand here."""
        ends = "but the text ends" if self.last else "but the line ends"
        self.fail(f"expected {wanted}, {f'found {self.text!r}' if self.text else ends}")


class Lines:
    """Lines of text, those that say nothing left out, each as its words and an empty one at its end."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._number = 0
        self._next: list[Token] = []

    def _read(self) -> list[Token]:
        while True:
            try:
                line = next(self._lines, None)
            except UnicodeDecodeError as error:
                Token("", self._number + 1, 1).fail(f"the bytes that follow are not {error.encoding} text")
            self._number += 1
            if line is None:
                return [Token("", self._number, 1, last=True)]
            if not isinstance(line, str):
                raise TypeError(f"a record is text, not {type(line).__name__}: open the file in text mode")
            words = [Token(word[0], self._number, word.start() + 1) for word in re.finditer(r"\S+", line)]
            if words and not words[0].text.startswith("#"):
                return [*words, Token("", self._number, len(line.rstrip()) + 1)]

    def peek(self) -> list[Token]:
        """The next line; at the end of the text, one empty word."""
        if not self._next:
            self._next = self._read()
        return self._next

    def take(self, keyword: str) -> list[Token]:
        """The next line, which must begin with `keyword`."""
        line = self.peek()
        if line[0].text != keyword:
            line[0].wrong(repr(keyword))
        self._next = []
        return line

    def take_words(self, words: Iterable[str], why: str = "") -> None:
        """The next line, which must be these words."""
        expect_words(self.peek(), words, why)
        self._next = []


def expect_words(line: list[Token], words: Iterable[str], why: str = "") -> None:
    """Raise at the first word of a line that differs from `words`, saying why it should not."""
    for token, word in zip(line, [*words, ""], strict=False):
        if token.text != word:
            token.wrong((repr(word) if word else "the end of the line") + (f" ({why})" if why else ""))


def _number(token: Token, name: str, low: int = 0, high: int | None = None, text: str | None = None) -> int:
    text = token.text if text is None else text
    value = int(text) if _NUMBER.fullmatch(text) and len(text) <= _MAX_DIGITS else -1
    if value < low or (high is not None and value > high):
        token.wrong(f"{name}, a whole number from {low}" + ("" if high is None else f" to {high}"))
    return value


def _option(token: Token, name: str) -> str:
    """The value of a word ``name=value``."""
    if not token.text.startswith(f"{name}="):
        token.wrong(f"'{name}=…'")
    return token.text[len(name) + 1 :]


def _tile(token: Token, max_pip: int, text: str | None = None) -> int:
    text = token.text if text is None else text
    if not text or not text.isascii():
        token.wrong("a tile, such as 6-4")
    try:
        return parse_tile(text, max_pip)
    except ValueError as error:
        token.fail(str(error))


def read_heading(lines: Lines) -> str:
    """The first line of a record: its kind."""
    line = lines.take("domino")
    if line[1].text not in KINDS:
        line[1].wrong("one of " + ", ".join(KINDS))
    version = _number(line[2], "the version of the format", 1)
    if version != VERSION:
        line[2].fail(f"version {version} of the format is not supported; this reads version {VERSION}")
    expect_words(line[3:], [])
    return line[1].text


def _field_value(token: Token, name: str, text: str) -> Any:
    """What a rule set's field is given as."""
    spec = RuleSet.__dataclass_fields__[name]
    if name in CHOICES:
        return text  # `RuleSet` knows the words
    if name == "target" and text == NOTHING:
        return None
    if "bounds" in spec.metadata:
        low, high = spec.metadata["bounds"]
        return _number(token, f"{name}=…", low, high, text=text)
    if text not in ("true", "false"):
        token.wrong(f"'{name}=true' or '{name}=false'")
    return text == "true"


def read_rules(lines: Lines) -> RuleSet:
    """The line that names the preset and every changed field."""
    line = lines.take("rules")
    changes: dict[str, Any] = {}
    at: dict[str, Token] = {}
    if line[1].text not in PRESETS:
        line[1].wrong("a preset, one of " + ", ".join(PRESETS))
    names = [spec.name for spec in dataclasses.fields(RuleSet)]
    for token in line[2:-1]:
        name, equals, text = token.text.partition("=")
        if not equals:
            token.wrong("an option, such as target=10")
        if name in changes:
            token.fail(f"{name} is given twice")
        at[name] = token
        changes[name] = _field_value(token, name, text) if name in names else text
    try:
        return make_rules(line[1].text, **changes)
    except ValueError as error:  # it names the field; one that is not on the line is the preset's
        message = str(error)
        named = [at[name] for name in at if message.startswith((f"{name}=", f"unknown field {name!r}"))]
        (named or line)[0].fail(message)


def read_seed(lines: Lines) -> int | None:
    """The line that gives the seed, if there is one."""
    if lines.peek()[0].text != "seed":
        return None
    line = lines.take("seed")
    expect_words(line[2:], [])
    return _number(line[1], "a seed")


def read_scores(lines: Lines, rules: RuleSet) -> list[int] | None:
    """The scores before a round, if they are not nil all."""
    if lines.peek()[0].text != "scores":
        return None
    line = lines.take("scores")
    highest = 2**53 if rules.target is None else rules.target - 1
    sides = rules.num_sides
    if len(line) != sides + 2:
        line[min(len(line) - 1, sides + 1)].wrong(f"{sides} scores, one a side")
    return [_number(token, "a score", 0, highest) for token in line[1:-1]]


@dataclass
class DealText:
    """A deal, its tiles as numbers, and the lines that hold it."""

    hands: list[list[int]] = field(default_factory=list)
    boneyard: list[int] = field(default_factory=list)
    lines: list[list[Token]] = field(default_factory=list)
    lot: int | None = None

    def as_deal(self, lot: int | None) -> Deal:
        """The deal, with this lot, tiles named as `Game.deal` names them."""
        hands = tuple(tuple(TILE_NAMES[tile] for tile in hand) for hand in self.hands)
        return Deal(hands, tuple(TILE_NAMES[tile] for tile in self.boneyard), lot)


def read_deal(lines: Lines, players: int | None = None, max_pip: int = MAX_PIP) -> DealText:
    """The hands, as many as there are `players` (None: as many as there are), and the boneyard."""
    deal = DealText()
    seen: dict[int, str] = {}

    def read(tokens: list[Token], place: str) -> list[int]:
        if len(tokens) == 1:
            tokens[0].wrong(f"a tile in {place}")
        tiles = []
        for token in tokens[:-1]:
            tile = _tile(token, max_pip)
            if tile in seen:
                token.fail(f"tile {tile_word(TILE_NAMES[tile])} in {place} was already given in {seen[tile]}")
            seen[tile] = place
            tiles.append(tile)
        return tiles

    fewest, most = (players, players) if players else (MIN_PLAYERS, MAX_PLAYERS)
    while len(deal.hands) < fewest or (len(deal.hands) < most and lines.peek()[0].text == "hand"):
        line = lines.take("hand")
        place = f"hand {len(deal.hands)}"
        if line[1].text != f"{len(deal.hands)}:":
            line[1].wrong(f"'{len(deal.hands)}:'")
        deal.hands.append(read(line[2:], place))
        deal.lines.append(line)
    if lines.peek()[0].text == "boneyard:":
        line = lines.take("boneyard:")
        deal.boneyard = read(line[1:], "the boneyard")
        deal.lines.append(line)
    return deal


def read_lot(tokens: list[Token], players: int) -> int | None:
    """The rest of a line: nothing, or ``lot SEAT``."""
    if not tokens[0].text:
        return None
    if tokens[0].text != "lot":
        tokens[0].wrong("'lot' or the end of the line")
    expect_words(tokens[2:], [])
    return _number(tokens[1], "the lot's seat", 0, players - 1)


class EventText(NamedTuple):
    """An event as it is written."""

    token: Token
    word: str  # as records write it, whichever way round the tile is given
    seat: int
    action: int | None  # of a play


@dataclass
class RoundText:
    """A round as it is written; `after` is the line that follows it."""

    heading: list[Token]
    deal: DealText
    start: list[Token]
    seat: int  # what the start line says
    forced: str | None
    multiplier: int
    events: list[EventText]
    result: list[Token] | None
    scores: list[Token] | None
    after: Token
    given: bool = False


def _read_event(token: Token, rules: RuleSet, first: bool) -> EventText:
    found = _EVENT.fullmatch(token.text)
    if found is None:
        token.wrong("an event, such as 0:6-4L (6-4 without an end to open), 1:+6-4 for a draw or 2:pass")
    seat, drawn, end = int(found[1]), found[3] == "+", found[5] or ""
    if seat >= rules.players:
        token.wrong(f"a seat from 0 to {rules.players - 1}")
    if found[2]:
        return EventText(token, token.text, seat, None)
    tile = _tile(token, rules.max_pip, found[4])
    if drawn or first:
        if end:
            token.wrong(f"'{token.text[:-1]}': a tile that is drawn or opens a round has no end")
    elif not end:
        token.wrong(f"'{token.text}L' or '{token.text}R'")
    word = f"{seat}:{found[3]}{tile_word(TILE_NAMES[tile])}{end}"
    return EventText(token, word, seat, None if drawn else 2 * tile + (end == "R"))


def read_round(lines: Lines, rules: RuleSet) -> RoundText:
    """A round, or the beginning of one, from its deal on."""
    heading = lines.peek()
    deal = read_deal(lines, rules.players, rules.max_pip)
    start = lines.take("start")
    padded = [*start, *start[-1:] * 4]
    seat = _number(padded[1], "a seat, seat=…", 0, rules.players - 1, text=_option(padded[1], "seat"))
    forced: str | None = _option(padded[2], "forced")
    if forced == NOTHING:
        forced = None
    else:
        forced = TILE_NAMES[_tile(padded[2], rules.max_pip, forced)]
        start[2] = start[2]._replace(text=f"forced={tile_word(forced)}")
    multiplier = _number(padded[3], "multiplier=…", 1, 2**31, text=_option(padded[3], "multiplier"))
    expect_words(padded[4:5], [])
    events: list[EventText] = []
    while lines.peek()[0].text[:1].isdigit():
        for token in lines.take(lines.peek()[0].text)[:-1]:
            events.append(_read_event(token, rules, not events))
    if lines.peek()[0].text not in _AFTER_EVENTS:
        lines.peek()[0].wrong("an event, 'result' or 'end'")
    result = lines.take("result") if lines.peek()[0].text == "result" else None
    scores = lines.take("scores") if result else None
    after = lines.peek()[0]
    return RoundText(heading, deal, start, seat, forced, multiplier, events, result, scores, after)


def numbered(lines: Lines, keyword: str, first: int) -> Iterator[list[Token]]:
    """The headings ``keyword NUMBER …`` that follow, numbered on from `first`, each before what it heads."""
    number = first
    while lines.peek()[0].text == keyword:
        line = lines.take(keyword)
        if line[1].text != str(number):
            line[1].wrong(repr(str(number)))
        yield line
        number += 1
