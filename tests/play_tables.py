"""Browser tables on a port of this machine, and pages that speak with them, for tests."""

from __future__ import annotations

import asyncio
import functools
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, NoReturn

import aiohttp
from aiohttp.test_utils import TestServer

from domino_env import Game, notation
from domino_env.events import View
from domino_env.play import Room, Settings, TableServer
from domino_env.play.house import House
from domino_env.rules import RuleSet

#: Nothing waits, and nothing is refused for being too often, unless a test asks for it.
FAST = Settings(pause=0, tick=0.01, rehearse=False, thinkers=1, burst=10**6, rate=10**6, guesses=10**6, openings=10**6)
#: Seconds after which a test is given up: far longer than anything takes.
PATIENCE = 120


def scenario(test: Callable[..., Awaitable[None]], patience: float = PATIENCE) -> Callable[..., None]:
    """A test out of a coroutine function."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        async def within_patience() -> None:
            await asyncio.wait_for(test(*arguments, **named), patience)

        asyncio.run(within_patience())

    return run


class Clock:
    """Stands still until it is put forward."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class FirstMoves:
    """Bots in no process of their own: each plays its first legal move at once."""

    async def make(self, spec: str, rules: RuleSet, seconds: float) -> None:
        pass

    async def move(self, spec: str, view: View, seed: int, making: float, thinking: float) -> int:
        return view.legal_moves[0].action

    def close(self) -> None:
        pass


async def eventually(true: Callable[[], Any]) -> None:
    """Wait until something is true of the server."""
    while not true():
        await asyncio.sleep(0.01)


def facts(room: Room) -> Any:
    """All of a room that a wish which is refused may not change."""
    return (
        (room.version, room.turn, room.phase, room.host and room.host.number, room.seconds, room.rules),
        None if room.match is None else notation.dumps(room.match),
        [(person.number, person.name, person.token, person.here, person.away) for person in room.people.values()],
        [(seat.person and seat.person.number, seat.bot) for seat in room.seats],
        ([*room.talk], [*room.rounds], sorted(person.number for person in room.ready)),
    )


def positions(room: Room) -> list[Game]:
    """The rounds of a room's match after each move, in order: `turn` rises by one from each to the next."""
    assert room.match is not None
    found = []
    for game in room.match.games:
        for left in range(len(game.moves), -1, -1):
            position = game.copy()
            for _ in range(left):
                position.undo()
            found.append(position)
    return found


async def play_along(page: Page, rng: random.Random, until: set[str]) -> None:
    """Play random moves, and be ready for each further round, until one of these phases."""
    turn = -1
    while page.state["phase"] not in until:
        if page.state["turn"] > turn and page.state["legal"]:
            turn = page.state["turn"]
            await page.send("play", turn=turn, move=rng.choice(page.state["legal"]))
        elif page.state["turn"] > turn and page.state["phase"] == "scored" and page.state["you"]["seat"] is not None:
            turn = page.state["turn"]
            await page.send("next", turn=turn)
        await page.answer("state")


async def play_match(pages: list[Page], seed: int = 1, *, until: tuple[str, ...] = ("over",)) -> None:
    """Play the match that has begun to its end, as every page shows then."""
    rngs = [random.Random(f"{seed} {place}") for place in range(len(pages))]
    await asyncio.gather(*(play_along(page, rng, set(until)) for page, rng in zip(pages, rngs, strict=True)))


async def play_round(pages: list[Page], seed: int = 1) -> None:
    """Play until the round is over, as every page shows then."""
    await play_match(pages, seed, until=("scored", "over"))


async def play_one(pages: list[Page], actor: Page, move: str) -> None:
    """Play a move; every page shows it."""
    turn = actor.state["turn"]
    await actor.send("play", turn=turn, move=move)
    for page in pages:
        await page.when(lambda state: state["turn"] > turn)


def _no_number(text: str) -> NoReturn:
    raise AssertionError(f"{text} in a frame")


class Page:
    """One page. `texts` are all frames that it got, `messages` the same as objects, `state` the newest state."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.texts: list[str] = []
        self.messages: list[dict[str, Any]] = []
        self.state: dict[str, Any] = {}
        self.room = self.token = ""
        self.person = 0

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send_str(json.dumps({"kind": kind, **fields}))

    async def next(self) -> dict[str, Any] | None:
        """The next message; None once the connection is closed."""
        received = await self.socket.receive()
        if received.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED):
            return None
        assert received.type == aiohttp.WSMsgType.TEXT, received
        message: dict[str, Any] = json.loads(received.data, parse_constant=_no_number)
        self.texts.append(received.data)
        self.messages.append(message)
        if message["kind"] == "state":
            self.state = message
        elif message["kind"] == "entered":
            self.room, self.person, self.token = message["room"], message["person"], message["token"]
        return message

    async def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read on until a message is as wanted; that one."""
        while (message := await self.next()) is not None:
            if wanted(message):
                return message
        raise AssertionError(f"closed with {self.socket.close_code} after {self.messages[-3:]}")

    async def answer(self, kind: str) -> dict[str, Any]:
        """Read on until a message of this kind."""
        return await self.until(lambda message: message["kind"] == kind)

    async def when(self, wanted: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The newest state once it is as wanted; it may be so already."""
        if self.state and wanted(self.state):
            return self.state
        return await self.until(lambda message: message["kind"] == "state" and bool(wanted(message)))

    async def shows(self, room: Room) -> None:
        """Read on until the state is the room's newest."""
        await self.when(lambda state: state["version"] >= room.version)

    async def refusal(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Ask for something that is to be refused; the refusal."""
        await self.send(kind, **fields)
        if kind in ("bot", "start"):  # a bot is tried out first
            refused = await self.answer("refused")
        else:
            await self.send("ping")
            refused = await self.until(lambda message: message["kind"] in ("refused", "pong"))
            assert refused["kind"] == "refused", f"{kind} with {fields} is not refused"
            await self.answer("pong")
        assert refused["about"] in (kind, None)  # None: the message could not be read as one of this kind
        assert refused["why"]
        return refused

    async def hears_nothing_but_a_pong(self) -> None:
        """No refusal is on its way to this page, and its connection lives."""
        heard = len(self.messages)
        await self.send("ping")
        await self.answer("pong")
        assert {message["kind"] for message in self.messages[heard:]} <= {"state", "pong"}

    async def open(self, name: str = "Ana", preset: str = "duplas", **message: Any) -> Page:
        """Open a room and be its host."""
        await self.send("open", name=name, preset=preset, **{"changes": {}, "seconds": None, **message})
        return await self._in()

    async def enter(self, room: str, name: str, seat: int | None = None) -> Page:
        """Come into a room, and sit down if a seat is named."""
        await self.send("enter", room=room, name=name)
        await self._in()
        if seat is not None:
            await self.send("sit", seat=seat)
            await self.when(lambda state: state["you"]["seat"] == seat)
        return self

    async def come_back(self, other: Page) -> Page:
        """Return as the person of another page."""
        await self.send("return", room=other.room, token=other.token)
        return await self._in()

    async def _in(self) -> Page:
        heard = await self.until(lambda message: message["kind"] in ("entered", "refused"))
        assert heard["kind"] == "entered", heard
        await self.answer("state")
        return self

    async def last_words(self) -> list[dict[str, Any]]:
        """All that comes until the server closes the connection."""
        heard = len(self.messages)
        while await self.next() is not None:
            pass
        return self.messages[heard:]

    async def cut(self) -> None:
        """Lose the connection without a word."""
        assert self.socket._writer.transport is not None
        self.socket._writer.transport.abort()
        await self.socket.close()


class Tables:
    """A running server with its pages."""

    def __init__(self, server: TableServer, clock: Clock, web: TestServer, session: aiohttp.ClientSession) -> None:
        self.server, self.clock, self.web, self.session = server, clock, web, session
        self._sockets: list[aiohttp.ClientWebSocketResponse] = []

    async def page(self, **headers: str) -> Page:
        """A page that has just connected."""
        socket = await self.session.ws_connect(self.web.make_url("/ws"), headers=headers, max_msg_size=0)
        self._sockets.append(socket)
        return Page(socket)

    async def disconnect(self) -> None:
        """Close all connections, as a browser does that is closed."""
        await asyncio.gather(*(socket.close() for socket in self._sockets))
        await self.session.close()

    def room(self, page: Page) -> Room:
        """The room that a page is or was in."""
        return self.server.house.rooms[page.room]

    async def company(self, *names: str, watcher: bool = False, **opening: Any) -> list[Page]:
        """Pages in a new room, each on its seat; the first is the host. One more watches, if so asked."""
        pages = [await (await self.page()).open(names[0], **opening)]
        for seat, name in enumerate(names[1:], 1):
            pages.append(await (await self.page()).enter(pages[0].room, name, seat))
        if watcher:
            pages.append(await (await self.page()).enter(pages[0].room, "Watcher"))
        return pages

    async def match(self, *names: str, watcher: bool = False, **opening: Any) -> list[Page]:
        """The same, in a match that has just begun."""
        pages = await self.company(*names, watcher=watcher, **opening)
        await pages[0].send("start", level="random")
        await self.settled(pages)
        assert all(page.state["phase"] == "playing" for page in pages)
        return pages

    async def settled(self, pages: list[Page]) -> None:
        """Every page has done what it asked for and shows its room as it is."""
        for page in pages:
            await page.send("ping")
            await page.answer("pong")
        for page in pages:
            await page.shows(self.room(page))

    async def pass_time(self, seconds: float) -> None:
        """Put the clock forward; return when the server has looked at it."""
        self.clock.now += seconds
        await self.tick()

    async def tick(self) -> None:
        """Let the server look at its clock once."""
        await asyncio.sleep(5 * self.server.settings.tick)


@asynccontextmanager
async def tables(*, processes: bool = False, house: House | None = None, **changes: Any) -> AsyncIterator[Tables]:
    """A server whose clock stands still. Its bots play their first legal moves, unless they get `processes`."""
    clock = Clock()
    server = TableServer(replace(FAST, **changes), house, clock)
    as_many_as_asked_for = aiohttp.TCPConnector(limit=0)
    async with (
        TestServer(server.app, host="127.0.0.1") as web,
        aiohttp.ClientSession(connector=as_many_as_asked_for) as session,
    ):
        if not processes:
            await asyncio.to_thread(server.thinkers.close)
            server.thinkers = FirstMoves()
        running = Tables(server, clock, web, session)
        try:
            yield running
        finally:
            await running.disconnect()


def who_acts(pages: list[Page]) -> tuple[Page, list[Page]]:
    """Whose turn it is, and the others."""
    actor = next(page for page in pages if page.state["legal"])
    return actor, [page for page in pages if page is not actor]


async def acting(house: Tables, pages: list[Page]) -> Page | None:
    """Whose turn it is, after the bots have moved; None once the round is over."""
    room = house.room(pages[0])
    people = range(sum(page.state["you"]["seat"] is not None for page in pages))
    await eventually(lambda: room.phase != "playing" or room.acting in people)
    for page in pages:
        await page.shows(room)
    return next((page for page in pages if page.state["legal"]), None)


def notes(page: Page, level: str) -> list[str]:
    """What the table was told of a bot's troubles."""
    talk = {line["number"]: line for message in page.messages for line in message.get("talk", [])}
    told = [line["text"] for line in talk.values() if line["name"] is None]
    return [text for text in told if text.startswith(level) and "first legal move" in text]


async def seated(house: Tables, *levels: str, **opening: Any) -> Page:
    """A match that has begun of one person and these bots."""
    page = await (await house.page()).open(**opening)
    for seat, level in enumerate(levels, 1):
        await page.send("bot", seat=seat, level=level)
        await page.when(lambda state, seat=seat, level=level: state["seats"][seat]["bot"] == level)
    await page.send("start", level=levels[0])
    heard = await page.until(lambda message: message["kind"] == "refused" or message.get("phase") == "playing")
    assert heard["kind"] == "state", heard
    return page
