"""All rooms of a server, by their codes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..rules import make_rules
from .messages import Refused, clean
from .room import Person, Room
from .settings import Settings

#: No letters and digits that are taken for one another.
ALPHABET: Final = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
CODE_LENGTH: Final = 8
_TRIES: Final = 20


def new_code() -> str:
    """A code that nobody can guess: one of 850 thousand million."""
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))


class House:
    """The rooms.

    Args:
        settings: the times and bounds.
        codes: makes a room's code.
    """

    def __init__(self, settings: Settings, codes: Callable[[], str] = new_code) -> None:
        self.settings, self._codes = settings, codes
        self.rooms: dict[str, Room] = {}

    def open(self, message: Mapping[str, Any], now: float) -> tuple[Room, Person]:
        """Open a room, with whoever asks for it as its host on seat 0.

        Raises:
            Refused: rules that cannot be, a name that cannot be, too many rooms.
        """
        if len(self.rooms) >= self.settings.rooms:
            raise Refused("full", f"{self.settings.rooms} rooms are open, and there can be no more: try again later")
        try:
            rules = make_rules(message["preset"], **message["changes"])
        except (ValueError, TypeError) as error:
            raise Refused("message", clean(str(error))) from None
        code = self._fresh_code()
        room = Room(code, rules, message["seconds"], self.settings, now)
        person = room.enter(message["name"], now)
        room.do(person, {"kind": "sit", "seat": 0}, now)
        self.rooms[code] = room
        return room, person

    def _fresh_code(self) -> str:
        for _ in range(_TRIES):
            code = self._codes()
            if code not in self.rooms:
                return code
        raise Refused("full", "no free code was found for the room: try again")

    def find(self, code: str) -> Room:
        """The room of this code, however it is spelt.

        Raises:
            Refused: there is none.
        """
        room = self.rooms.get("".join(code.split()).upper())
        if room is None:
            raise Refused("no-room", "there is no room of that code: it may have been closed")
        return room

    def close_empty(self, now: float) -> list[Room]:
        """Close the rooms that nobody has been in for long, and give them back."""
        long = self.settings.empty
        empty = [
            room for room in self.rooms.values() if room.empty_since is not None and now - room.empty_since >= long
        ]
        for room in empty:
            del self.rooms[room.code]
        return empty
