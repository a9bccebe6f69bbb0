"""The server of the tables: the page, one WebSocket a page, and the passing of time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from importlib import resources
from typing import Any, Final

from aiohttp import WSCloseCode, WSMsgType, web

from ..rules import MAX_PLAYERS, PRESETS, make_rules
from .frames import frame
from .house import House
from .limits import Buckets
from .lines import Line
from .messages import Refused, read
from .room import Person, Room, Thought
from .settings import Settings
from .thinkers import Thinkers, Trouble

LOG: Final = logging.getLogger(__name__)
_TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
#: Seconds between pings; a page that answers none is taken for gone.
_HEARTBEAT: Final = 20.0
_MINUTE: Final = 60.0


class TableServer:
    """Rooms behind a web server. `app` is the application, to be run by aiohttp.

    Args:
        settings: times and bounds.
        house: the rooms, where they are to be others than those of the settings.
        clock: seconds of a clock that only goes forward.
    """

    def __init__(
        self, settings: Settings | None = None, house: House | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.settings = settings or Settings()
        self.house = house or House(self.settings)
        self.clock = clock
        self.lines: dict[str, dict[int, Line]] = {}  # by room and person
        self.outside: set[Line] = set()  # of pages that are in no room
        self.tasks: set[asyncio.Task[None]] = set()
        self._openings = Buckets(self.settings.openings, self.settings.openings / _MINUTE)
        self._guesses = Buckets(self.settings.guesses, self.settings.guesses / _MINUTE)
        self._published: dict[str, int] = {}
        self.app = web.Application()
        self.app.router.add_get("/ws", self._socket)
        for file in resources.files(__package__).joinpath("page").iterdir():
            self._add_file(file.name, file.read_text(encoding="utf-8"))
        self.app.on_response_prepare.append(_add_headers)
        self.app.cleanup_ctx.append(self._running)
        self.app.on_shutdown.append(self._say_goodbye)

    def _add_file(self, name: str, text: str) -> None:
        kind = _TYPES["." + name.rpartition(".")[2]]

        async def send(request: web.Request) -> web.Response:
            return web.Response(text=text, content_type=kind, charset="utf-8")

        self.app.router.add_get("/" if name == "index.html" else f"/{name}", send)

    async def _running(self, app: web.Application) -> AsyncIterator[None]:
        """All that runs beside the connections."""
        self.thinkers = Thinkers(self.settings.thinkers)
        await asyncio.to_thread(warm_up)
        self._begin(self._let_time_pass())
        if self.settings.rehearse:
            self._begin(self._rehearse())
        yield
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await asyncio.to_thread(self.thinkers.close)

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("something went wrong at the tables", exc_info=error)

    async def _rehearse(self) -> None:
        for level in self.settings.levels:
            try:
                await self.thinkers.make(level, PRESETS["duplas"], self.settings.making)
            except Trouble as trouble:
                LOG.warning("bot %s %s", level, trouble.full)

    async def _say_goodbye(self, app: web.Application) -> None:
        now = self.clock()
        lines = [line for of_room in self.lines.values() for line in of_room.values()]
        for line in [*lines, *self.outside]:
            line.part("room", "the server is being stopped", now)
            line.end(WSCloseCode.GOING_AWAY)

    # Time

    async def _let_time_pass(self) -> None:
        pruned = self.clock()
        while True:
            await asyncio.sleep(self.settings.tick)
            now = self.clock()
            for room in list(self.house.rooms.values()):
                try:
                    self._pass(room, now)
                except Exception:  # of one room; the others go on
                    LOG.exception("room %s", room.code)
            for room in self.house.close_empty(now):
                self.lines.pop(room.code, None)
                self._published.pop(room.code, None)
            for line in list(self.outside):
                if now - line.since >= self.settings.entering:
                    line.end()
            if now - pruned >= _MINUTE:
                pruned = now
                self._openings.advance(now)
                self._guesses.advance(now)

    def _pass(self, room: Room, now: float) -> None:
        room.advance(now)
        thought = room.thought(now)
        if thought is not None:
            self._begin(self._think(room, thought))
        self.publish(room)

    async def _think(self, room: Room, thought: Thought) -> None:
        making, thinking = self.settings.making, self.settings.thinking
        action, trouble = None, ""
        try:
            seed = secrets.randbits(32)
            action = await self.thinkers.move(thought.level, thought.view, seed, making, thinking)
        except Trouble as wrong:
            trouble = str(wrong)
            LOG.warning("room %s: bot %s %s", room.code, thought.level, wrong.full)
        except Exception:  # whatever it is, the game goes on
            trouble = "failed"
            LOG.exception("room %s: bot %s", room.code, thought.level)
        room.bot_plays(thought, action, trouble, self.clock())
        self.publish(room)

    def publish(self, room: Room) -> None:
        """Let everybody in a room see what has changed."""
        if self._published.get(room.code) == room.version or room.code not in self.house.rooms:
            return
        self._published[room.code] = room.version
        lines = self.lines.get(room.code, {})
        for number, line in list(lines.items()):
            if number in room.people:
                line.wake()
            else:
                del lines[number]
                line.part("kicked", "the host sent you out of the room", self.clock())
                line.end()

    # Pages

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != request.host:
            raise web.HTTPForbidden(text="pages of other sites may not speak with this server")
        if len(self.outside) + sum(map(len, self.lines.values())) >= self.settings.connections:
            raise web.HTTPServiceUnavailable(text="too many pages are connected: try again later")
        socket = web.WebSocketResponse(
            max_msg_size=self.settings.message_bytes, heartbeat=_HEARTBEAT, compress=False, timeout=5
        )
        await socket.prepare(request)
        line = Line(socket, request.remote or "", self.settings, self.clock())
        self.outside.add(line)
        writer = self._begin(line.write(self.clock))
        try:
            async for message in socket:
                if message.type != WSMsgType.TEXT:
                    await socket.close(code=WSCloseCode.UNSUPPORTED_DATA)
                    break
                if not line.ending and not self._read(line, message.data):
                    self._forget(line)
                    line.part("flood", "too many messages came from this page", self.clock())
                    line.end(WSCloseCode.POLICY_VIOLATION)
        finally:
            self._forget(line)
            writer.cancel()
        return socket

    def _forget(self, line: Line) -> None:
        """The connection is gone."""
        self.outside.discard(line)
        room, person = line.room, line.person
        if room is None or person is None:
            return
        lines = self.lines.get(room.code, {})
        if lines.get(person.number) is line:
            del lines[person.number]
            room.lost(person, self.clock())
            self.publish(room)

    def _read(self, line: Line, text: str) -> bool:
        """Do what a message asks for; False where the page sends far too many."""
        now = self.clock()
        if not line.bucket.take(now):
            line.floods += 1
            if line.floods == 1:
                line.refuse(None, "slow-down", "too many messages: wait a moment")
            return line.floods <= self.settings.floods
        line.floods = 0
        kind = None
        try:
            message = read(text)
            kind = message["kind"]
            self._do(line, message, now)
        except Refused as refused:
            line.refuse(kind, refused.code, refused.why)
            if refused.code == "stale":
                line.show_again()
        return True

    def _do(self, line: Line, message: Mapping[str, Any], now: float) -> None:
        kind = message["kind"]
        if kind == "ping":
            line.tell({"kind": "pong"})
        elif kind in ("open", "enter", "return"):
            if line.room is not None:
                raise Refused("phase", "you are in a room: leave it first")
            room, person = self._admit(line.address, message, now)
            self._put_through(line, room, person, now)
        elif line.room is None or line.person is None:
            raise Refused("no-person", "you are in no room")
        elif kind == "record":
            name = f"{line.room.preset}-{line.room.code}.txt"
            line.tell({"kind": "record", "name": name, "text": line.room.record()})
        elif kind in ("bot", "start") and message["level"] is not None:
            self._begin(self._do_with_bot(line, line.room, line.person, message))
        else:
            room, person = line.room, line.person
            room.do(person, message, now)
            if kind == "leave":
                del self.lines[room.code][person.number]
                line.part("left", "you left the room", now)
                self.outside.add(line)
            self.publish(room)

    def _admit(self, address: str, message: Mapping[str, Any], now: float) -> tuple[Room, Person]:
        if message["kind"] == "open":
            if not self._openings.take(address, now):
                raise Refused("slow-down", "too many rooms were opened from your address: wait a minute")
            return self.house.open(message, now)
        slow_down = Refused("slow-down", "too many wrong codes came from your address: wait a minute")
        may_guess = self._guesses.any(address, now)
        if message["kind"] == "enter" and not may_guess:
            raise slow_down
        try:
            room = self.house.find(message["room"])
            if message["kind"] == "enter":
                return room, room.enter(message["name"], now)
            return room, room.back(message["token"], now)  # whoever has a key did not guess it
        except Refused as refused:
            if refused.code in ("no-room", "no-person"):
                self._guesses.take(address, now)
                if not may_guess:
                    raise slow_down from None
            raise

    def _put_through(self, line: Line, room: Room, person: Person, now: float) -> None:
        lines = self.lines.setdefault(room.code, {})
        before = lines.get(person.number)
        if before is not None:
            before.part("elsewhere", "you came back from another page", now)
            before.end()
        self.outside.discard(line)
        lines[person.number] = line
        line.join(room, person)
        self.publish(room)
        line.wake()

    async def _do_with_bot(self, line: Line, room: Room, person: Person, message: Mapping[str, Any]) -> None:
        """Seat a bot, or begin with bots, after it has been seen that this one can be made for these rules."""
        try:
            room.may_seat(person, message["level"])
            await self.thinkers.make(message["level"], room.rules, self.settings.making)
            if person.number in room.people:
                room.do(person, message, self.clock())
        except Trouble as trouble:
            line.refuse(message["kind"], "message", f"{message['level']} {trouble.full}")
        except Refused as refused:
            line.refuse(message["kind"], refused.code, refused.why)
        self.publish(room)


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


def warm_up() -> None:
    """Play and show a round of every game, and of a large one, so that no table waits while something compiles."""
    large = make_rules("blocos", players=MAX_PLAYERS, target=1000)  # which one round does not reach
    for rules in (*PRESETS.values(), large):
        room = Room("", rules, None, Settings(pause=0), 0.0)
        person = room.enter("somebody", 0.0)
        room.do(person, {"kind": "start", "level": "random"}, 0.0)
        while (thought := room.thought(0.0)) is not None:
            room.bot_plays(thought, None, "", 0.0)
            frame(room, person, 0.0)


async def serve(settings: Settings, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until cancelled.

    Args:
        settings: times and bounds.
        host: the address to listen on.
        port: 0 takes any free one.
        ready: told the address once pages can connect.
    """
    runner = web.AppRunner(TableServer(settings).app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        address = runner.addresses[0]
        ready(f"http://{f'[{address[0]}]' if ':' in address[0] else address[0]}:{address[1]}")
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
    finally:
        await runner.cleanup()
