"""What a page may ask for. A message is checked whole before anything happens."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from .._checks import near, whole

MAX_NAME: Final = 20
MAX_TALK: Final = 200
#: The shortest and the longest time for a move, in seconds.
SECONDS: Final = (5, 600)
#: The least and the most width and height of a place for the chain, in pixels.
SHAPE: Final = (100, 10_000)
# Letters and marks by their category, but nothing is to be seen of them.
_BLANK: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)


class Refused(ValueError):
    """Something that a person may not do, or not now. Nothing has changed.

    Args:
        code: one word for programs: ``"message"``, ``"turn"``, ``"stale"``, …
        why: one sentence for people.
    """

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code, self.why = code, why


def clean(text: str) -> str:
    """`text` on one line, without what cannot be seen: control characters, marks of direction, blank letters."""
    kept = (c for c in unicodedata.normalize("NFC", text) if c.isspace() or _seen(c))
    return " ".join("".join(kept).split())


def _seen(character: str) -> bool:
    return unicodedata.category(character)[0] != "C" and character not in _BLANK


def alike(name: str) -> str:
    """The same for all names that look alike but for case and width."""
    return unicodedata.normalize("NFKC", name).casefold()


def _text(most: int, code: str) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise Refused(code, f"{name} is not a text")
        text = clean(value)
        if not 1 <= len(text) <= most:
            raise Refused(code, f"{name}: 1 to {most} letters, not {len(text)}")
        return text

    return check


def _word(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > 100 or not value.isprintable():
        raise Refused("message", f"{name} is not a short text")
    return value


def _level(name: str, value: Any) -> str | None:
    return None if value is None else _word(name, value)


def _number(low: int, high: int) -> Callable[[str, Any], int]:
    def check(name: str, value: Any) -> int:
        try:
            return whole(name, value, low, high)
        except ValueError as error:
            raise Refused("message", str(error)) from None

    return check


def _length(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not SHAPE[0] <= value <= SHAPE[1]:
        raise Refused("message", f"{name} is not a number from {SHAPE[0]} to {SHAPE[1]}")
    return float(value)


def _seconds(name: str, value: Any) -> int | None:
    return None if value is None else _number(*SECONDS)(name, value)


def _changes(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or any(isinstance(item, dict | list) for item in value.values()):
        raise Refused("message", f"{name}: fields of the rules, each with a number, a word, true, false or null")
    return value


_NAME: Final = _text(MAX_NAME, "name")
_SEAT: Final = _number(0, 99)
_COUNT: Final = _number(0, 2**53)

#: What each kind of message holds besides its kind, and what checks it.
KINDS: Final[Mapping[str, Mapping[str, Callable[[str, Any], Any]]]] = {
    "open": {"name": _NAME, "preset": _word, "changes": _changes, "seconds": _seconds},
    "enter": {"room": _word, "name": _NAME},
    "return": {"room": _word, "token": _word},
    "sit": {"seat": _SEAT},
    "stand": {},
    "bot": {"seat": _SEAT, "level": _level},
    "start": {"level": _word},
    "play": {"turn": _COUNT, "move": _word},
    "next": {"turn": _COUNT},
    "rename": {"name": _NAME},
    "say": {"text": _text(MAX_TALK, "message")},
    "kick": {"person": _COUNT},
    "leave": {},
    "record": {},
    "shape": {"width": _length, "height": _length},
    "ping": {},
}


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def read(text: str) -> dict[str, Any]:
    """The message in `text`, with all its fields and no others, each of its type.

    Raises:
        Refused: no JSON, no object, an unknown kind, a field that is missing, unknown or wrong.
    """
    try:
        message = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused("message", f"not a message: {error}") from None
    if not isinstance(message, dict):
        raise Refused("message", "not a message: it is no object")
    kind = message.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise Refused(
            "message", f"unknown kind {clean(str(kind))[:30]!r}{near(kind, KINDS)}; kinds: {', '.join(KINDS)}"
        )
    fields = KINDS[kind]
    if message.keys() != fields.keys():
        raise Refused("message", f"{kind!r} has the fields {', '.join(fields) or 'kind alone'}")
    return {"kind": kind, **{name: fields[name](name, value) for name, value in message.items()}}
