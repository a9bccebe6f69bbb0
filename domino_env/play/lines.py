"""One connection to a page: what it is sent, and how much it may send."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from aiohttp import WSCloseCode, web

from .frames import frame
from .limits import Bucket
from .room import Person, Room
from .settings import Settings

#: Answers that wait for a page which does not read; then it is given up.
_WAITING: Final = 100


def strict_json(message: dict[str, Any]) -> str:
    """`message` as JSON that every reader takes: ASCII, no NaN, no infinity."""
    return json.dumps(message, allow_nan=False, separators=(",", ":"))


class Line:
    """A connection. Answers are sent in order; of states only the newest, so that a slow page piles nothing up."""

    def __init__(self, socket: web.WebSocketResponse, address: str, settings: Settings, now: float) -> None:
        self.socket, self.address = socket, address
        self.room: Room | None = None
        self.person: Person | None = None
        self.since = now  # when it was last without a room
        self.bucket = Bucket(settings.burst, settings.rate, now)
        self.floods = 0  # messages in a row that were too many
        self._answers: deque[dict[str, Any]] = deque()
        self._shown = -1
        self._wake = asyncio.Event()
        self._closing: int | None = None

    def tell(self, message: dict[str, Any]) -> None:
        """Send an answer, before the next state."""
        if len(self._answers) >= _WAITING:
            self.end(WSCloseCode.POLICY_VIOLATION)
        else:
            self._answers.append(message)
            self.wake()

    def refuse(self, about: str | None, code: str, why: str) -> None:
        """Tell that something was not done."""
        self.tell({"kind": "refused", "about": about, "code": code, "why": why})

    def join(self, room: Room, person: Person) -> None:
        """The page belongs to this person from now on."""
        self.room, self.person, self._shown = room, person, -1
        self.tell({"kind": "entered", "room": room.code, "person": person.number, "token": person.token})

    def part(self, code: str, why: str, now: float) -> None:
        """The page belongs to nobody any more."""
        self.room = self.person = None
        self.since = now
        self.tell({"kind": "closed", "code": code, "why": why})

    def end(self, code: int = WSCloseCode.OK) -> None:
        """Close the connection, once what waits has been sent."""
        self._closing = code
        self.wake()

    @property
    def ending(self) -> bool:
        """Whether the connection is being closed."""
        return self._closing is not None

    def wake(self) -> None:
        """Send the room's state if it has changed."""
        self._wake.set()

    def show_again(self) -> None:
        """Send the room's state although it has not changed."""
        self._shown = -1
        self.wake()

    async def write(self, clock: Callable[[], float]) -> None:
        """Send what there is to send, until the connection ends or is to be closed."""
        code: int = WSCloseCode.INTERNAL_ERROR
        try:
            code = await self._write(clock)
        except ConnectionError:
            pass  # the page is gone
        finally:
            await self.socket.close(code=code)

    async def _write(self, clock: Callable[[], float]) -> int:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._answers:
                await self.socket.send_str(strict_json(self._answers.popleft()))
            if self._closing is not None:
                return self._closing
            if self.room is not None and self.person is not None and self._shown != self.room.version:
                self._shown = self.room.version
                await self.socket.send_str(strict_json(frame(self.room, self.person, clock())))
