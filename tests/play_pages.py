"""The page of the table in Chromium, for tests: before a real server, or before one that a test speaks for."""

from __future__ import annotations

import asyncio
import functools
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from aiohttp import web
from play_rooms import move_on, room_of
from playwright.sync_api import Browser, BrowserContext, Page, WebSocketRoute, expect, sync_playwright

from domino_env import Match
from domino_env.play import Settings, TableServer
from domino_env.play.frames import frame

View = dict[str, Any]

PATIENCE = 60_000  # milliseconds, on a machine with other work
expect.set_options(timeout=PATIENCE)
SETTINGS = Settings(pause=0.05, tick=0.02, thinkers=1, rehearse=False, levels=("random", "doubles", "counting"))


class Served:
    """A server in a thread of its own."""

    def __init__(self) -> None:
        self.tables = TableServer(SETTINGS)
        self.loop = asyncio.new_event_loop()
        self.address = ""
        self._open = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._open.wait(120)

    def _run(self) -> None:
        runner = web.AppRunner(self.tables.app)
        self.loop.run_until_complete(runner.setup())
        self.loop.run_until_complete(web.TCPSite(runner, "127.0.0.1", 0).start())
        self.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._open.set()
        self.loop.run_forever()
        self.loop.run_until_complete(runner.cleanup())
        self.loop.close()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


@contextmanager
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium")
    assert program is not None, "these tests need Chromium: apt-get install chromium"
    calm = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=program, args=[*calm, "--disable-sync", "--no-first-run"])


@contextmanager
def page_of(
    browser: Browser, address: str, prepare: Callable[[BrowserContext], Any] | None = None, **options: Any
) -> Iterator[Page]:
    """A page in a browser profile of its own, where nothing glides; it must have nothing to complain of."""
    with browser.new_context(reduced_motion="reduce", **options) as context:
        if prepare is not None:
            prepare(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        wrong: list[str] = []
        page.on("console", lambda line: wrong.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(address)
        yield page
        assert wrong == []


class Spoken:
    """A server of which a test says every word; what the pages of a profile send is kept."""

    page: Page

    def __init__(self, context: BrowserContext) -> None:
        self.sockets: list[WebSocketRoute] = []
        self.heard: list[dict[str, Any]] = []
        self.version = 0
        context.route_web_socket("**/ws", self._open)

    def _open(self, socket: WebSocketRoute) -> None:
        self.sockets.append(socket)
        socket.on_message(lambda text: self.heard.append(json.loads(text)))

    def say(self, kind: str, **fields: Any) -> None:
        self.sockets[-1].send(json.dumps({"kind": kind, **fields}))
        self.page.evaluate("0")  # by now it has been read

    def show(self, view: dict[str, Any], **changes: Any) -> None:
        """Say a state, which is the next one unless it brings a version of its own."""
        self.version += 1
        self.say(**{**view, "version": self.version, **changes})

    def hear(self, kind: str) -> dict[str, Any]:
        """The next wish of a kind; what the page sent before it is forgotten."""
        while True:
            while self.heard:
                message = self.heard.pop(0)
                if message["kind"] == kind:
                    return message
            self.page.wait_for_timeout(5)

    def hears_no(self, kind: str) -> bool:
        """Whether no wish of a kind is left, nor comes within a moment."""
        self.page.wait_for_timeout(100)
        return all(message["kind"] != kind for message in self.heard)


@functools.cache
def shown() -> dict[str, list[View]]:
    """What Ana, the host, and Eva, who watches, are shown of a table of duplas, from the lobby to the match's end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("domino_env.play.room.Match", partial(Match, seed=7))
        room, (ana, _) = room_of("Ana", "Rui")
        eva = room.enter("Eva", 0.0)
        views = {person.name: [frame(room, person, 0.0)] for person in (ana, eva)}
        room.do(ana, {"kind": "start", "level": "doubles"}, 0.0)
        while True:
            for person in (ana, eva):
                views[person.name].append(frame(room, person, 0.0))
            if room.phase == "over":
                return views
            move_on(room)


def first(fits: Callable[[View], Any], name: str = "Ana") -> View:
    return next(view for view in shown()[name] if fits(view))


def in_phase(phase: str, name: str = "Ana") -> View:
    return first(lambda view: view["phase"] == phase, name)


def moves_of(view: View) -> dict[str, list[str]]:
    """The moves that each tile of the hand may make; a move names its tile as it will lie."""
    moves: dict[str, list[str]] = {}
    for move in view["legal"]:
        moves.setdefault("-".join(sorted(move.rstrip("LR").split("-"))), []).append(move)
    return moves


def tiles_of(view: View, ways: int) -> list[str]:
    """The tiles that may be played in so many ways."""
    return [tile for tile, moves in moves_of(view).items() if len(moves) == ways]


def move_at(end: str, view: View, tile: str) -> str:
    return next(move for move in moves_of(view)[tile] if move.endswith(end))


def choosing() -> View:
    """Ana is to play; a tile fits both ends, another one of them, and another none."""
    return first(lambda view: tiles_of(view, 1) and tiles_of(view, 2) and len(view["hand"]) > 2)


def opening() -> View:
    return first(lambda view: view["legal"] and not view["chain"]["tiles"])


def waiting() -> View:
    return first(lambda view: view["phase"] == "playing" and not view["legal"] and view["chain"]["tiles"])
