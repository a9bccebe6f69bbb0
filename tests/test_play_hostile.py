"""Whatever a page or a bot does, it harms nobody but itself, and no room stops."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import re
import struct
from functools import partial
from pathlib import Path
from typing import Any

import play_bots
import pytest
from play_tables import Page, Tables, eventually, facts, notes, play_match, positions, scenario, seated, tables

from domino_env.play import Room, Settings
from domino_env.play.lines import Line

TWO: dict[str, Any] = {"preset": "mano_a_mano", "changes": {"target": None}}


# What is left over


async def leaves(house: Tables) -> None:
    pages = await house.company("Ana", "Bea")
    for page in pages:
        await page.send("leave")
        await page.answer("closed")
        await page.socket.close()


async def is_cut(house: Tables) -> None:
    for page in await house.company("Ana", "Bea", watcher=True):
        await page.cut()


async def is_cut_in_a_match(house: Tables) -> None:
    for page in await house.match("Ana", "Bea", **TWO):
        await page.cut()


async def leaves_when_the_other_is_cut(house: Tables) -> None:
    ana, bea = await house.match("Ana", "Bea", **TWO)
    await bea.cut()
    await ana.send("leave")
    await ana.answer("closed")
    await ana.socket.close()


async def sends_out_and_closes(house: Tables) -> None:
    ana, bea = await house.company("Ana", "Bea")
    await ana.send("kick", person=bea.person)
    await bea.last_words()
    await ana.socket.close()


async def comes_back_elsewhere(house: Tables) -> None:
    ana = await (await house.page()).open()
    again = await (await house.page()).come_back(ana)
    await ana.last_words()
    await again.cut()


async def plays_to_the_end(house: Tables) -> None:
    pages = await house.match("Ana", "Bea", **TWO)
    await play_match(pages)
    for page in pages:
        await page.socket.close()


async def looks_and_goes(house: Tables) -> None:
    await house.page()  # connects, and stays outside
    await (await house.page()).cut()
    async with house.session.get(house.web.make_url("/")) as response:
        await response.read()


WAYS = [
    leaves, is_cut, is_cut_in_a_match, leaves_when_the_other_is_cut, sends_out_and_closes, comes_back_elsewhere,
    plays_to_the_end, looks_and_goes,
]  # fmt: skip


def kept() -> list[Room | Line]:
    """Rooms and connections that are still somewhere in memory."""
    gc.collect()
    return [thing for thing in gc.get_objects() if type(thing) in (Room, Line)]


async def check_that_nothing_is_left(times: int) -> None:
    before = len(kept())
    async with tables(rooms=2000) as house:
        server, tasks = house.server, len(asyncio.all_tasks())
        own = len(server.tasks)
        for way in WAYS * times:
            await way(house)
        assert len(server.house.rooms) == (len(WAYS) - 1) * times
        await eventually(lambda: not any(server.lines.values()))
        await house.pass_time(Settings().empty - 1)
        assert len(server.house.rooms) == (len(WAYS) - 1) * times
        await house.pass_time(1 + Settings().grace + Settings().entering)
        await eventually(lambda: len(server.tasks) == own)
        await house.disconnect()
        await eventually(lambda: len(asyncio.all_tasks()) <= tasks)
        assert (server.house.rooms, server.lines, server.outside, server._published) == ({}, {}, set(), {})
        assert (len(server._openings), len(server._guesses)) == (0, 0)
        assert len(kept()) <= before + 3  # what the loops over rooms and connections looked at last


@scenario
async def test_nothing_is_left_of_rooms_that_were_left_in_whatever_way() -> None:
    await check_that_nothing_is_left(5)


@pytest.mark.long
@partial(scenario, patience=900)
async def test_nothing_is_left_of_a_thousand_rooms() -> None:
    await check_that_nothing_is_left(150)


# What cannot be read


async def see_no_harm(*pages: Page) -> None:
    """Others get their answers."""
    for page in pages:
        await page.hears_nothing_but_a_pong()


UNREADABLE = [
    "", " ", "[]", "null", "true", "3", '"ping"', "{}", "{", "}", "\x00", "ping", '{"kind":"ping"} {"kind":"ping"}',
    '{"kind":null}', '{"kind":[]}', '{"kind":{"ping":1}}', '{"kind":"PING"}', '{"kind":"\\ud800"}',
    '{"kind":"ping","now":1}', '{"kind":"say"}', '{"kind":"say","text":null}', '{"kind":"say","text":["a"]}',
    '{"kind":"sit","seat":"1"}', '{"kind":"sit","seat":1e400}', '{"kind":"sit","seat":-1}',
    '{"kind":"sit","seat":true}', '{"kind":"sit","seat":1.5}', '{"kind":"sit","seat":NaN}',
    '{"kind":"sit","seat":' + "9" * 4000 + "}",
    '{"kind":"shape","width":1e400,"height":300}', '{"kind":"shape","width":Infinity,"height":300}',
    '{"kind":"shape","width":0,"height":300}', '{"kind":"shape","width":"300","height":300}',
    *("[" * depth + "]" * depth for depth in (100, 980, 990, 2000)),
    *('{"kind":"sit","seat":' + "[" * depth + "]" * depth + "}" for depth in (100, 960, 975, 985, 1000, 2000)),
    '{"a":' * 500 + "1" + "}" * 500, '"' * 4000, "[" * 4000, '{"kind":"say","text":"' + "\\ud800" * 600 + '"}',
]  # fmt: skip


@scenario
async def test_what_is_no_message_is_refused_and_harms_nobody() -> None:
    async with tables() as house:
        ana, bea, other = *await house.company("Ana", "Bea"), await (await house.page()).open()
        before = facts(house.room(ana))
        for text in UNREADABLE:
            await ana.socket.send_str(text)
            refused = await ana.answer("refused")
            assert refused["code"] == "message", text
            assert len(refused["why"]) < 5000
            await see_no_harm(ana, bea, other)
        assert facts(house.room(ana)) == before


def masked(first: int, content: bytes) -> bytes:
    """A WebSocket frame as a page sends it."""
    size = len(content)
    length = struct.pack("!B", 128 | size) if size < 126 else struct.pack("!BQ", 128 | 127, size)
    return bytes([first]) + length + bytes(4) + content


#: What is sent, and the codes with which the server may close.
BROKEN: dict[str, tuple[bytes, set[int]]] = {
    "bytes": (masked(0x82, b'{"kind":"ping"}'), {1003}),
    "no UTF-8": (masked(0x81, b'{"kind":"\xff\xfe"}'), {1007}),
    "half a surrogate": (masked(0x81, b'{"kind":"say","text":"\xed\xa0\x80"}'), {1007}),
    "5,000 bytes": (masked(0x81, b" " * 5000), {1009}),
    "1 MB": (masked(0x81, b"[" * 2**20), {1009}),
    "1 MB of bytes": (masked(0x82, bytes(2**20)), {1003, 1009}),
    "4 GB are said to come": (struct.pack("!BBQ", 0x81, 255, 2**32) + bytes(4), {1009}),
    "pieces without end": (masked(0x01, b" " * 2000) + masked(0x00, b" " * 2000) * 3, {1009}),
    "no such frame": (masked(0x83, b"x"), {1002}),
    "a mark that was not agreed": (masked(0xF1, b"{}"), {1002}),
    "a rest of nothing": (masked(0x80, b"x"), {1002}),
    "a long ping": (masked(0x89, bytes(200)), {1002}),
}


@pytest.mark.parametrize("what", BROKEN)
@scenario
async def test_a_broken_frame_ends_its_connection_alone(what: str) -> None:
    content, codes = BROKEN[what]
    async with tables() as house:
        ana, bea = await house.company("Ana", "Bea")
        reader, writer = await asyncio.open_connection("127.0.0.1", house.web.port)
        writer.write(
            b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        await eventually(lambda: len(house.server.outside) == 1)
        writer.write(content)
        with contextlib.suppress(ConnectionResetError):  # so it ends where much is left unread
            heard = await reader.readexactly(4)
            assert (heard[0], struct.unpack("!H", heard[2:])[0] in codes) == (0x88, True), heard
        writer.close()
        await see_no_harm(ana, bea)
        await eventually(lambda: not house.server.outside)


@scenario
async def test_a_thousand_messages_at_once_end_their_connection_alone() -> None:
    limits = {name: getattr(Settings(), name) for name in ("burst", "rate", "floods")}
    async with tables(**limits) as house:
        flooding, ana = await (await house.page()).open(), await (await house.page()).open()
        for number in range(1000):
            await flooding.send("say", text=f"hello {number}")
        await ana.hears_nothing_but_a_pong()
        words = await flooding.last_words()
        assert flooding.socket.close_code == 1008
        assert [word["code"] for word in words if word["kind"] == "refused"] == ["slow-down"]
        assert [word["code"] for word in words if word["kind"] == "closed"] == ["flood"]
        await eventually(lambda: not house.room(flooding).people[1].here)
        assert len(house.room(flooding).talk) <= Settings().burst + 5
        await ana.hears_nothing_but_a_pong()


@scenario
async def test_a_few_messages_too_many_are_refused_and_nothing_else() -> None:
    limits = {name: getattr(Settings(), name) for name in ("burst", "rate", "floods")}
    async with tables(**limits) as house:
        page = await (await house.page()).open()
        for number in range(150):
            await page.send("say", text=f"hello {number}")
        assert (await page.answer("refused"))["code"] == "slow-down"
        await house.pass_time(10)
        await page.send("ping")
        await page.answer("pong")
        assert len(house.room(page).talk) < 50


@scenario
async def test_a_page_that_does_not_read_piles_nothing_up_and_holds_nobody_up() -> None:
    async with tables() as house:
        ana, bea, slow = await house.company("Ana", "Bea", "Caio")
        line = house.server.lines[ana.room][slow.person]
        for number in range(2500):
            await ana.send("say", text=f"{number} " + "é" * 180)
            if number % 50 == 0:
                await ana.when(lambda state, number=number: state["talk"][-1]["text"].startswith(f"{number} "))
        await see_no_harm(ana, bea)
        assert line.socket._writer is not None
        assert line.socket._writer.transport.get_write_buffer_size() < 2**20
        assert len(line._answers) <= 100
        assert len(house.room(ana).talk) <= Settings().talk
        await slow.shows(house.room(ana))
        assert len(slow.messages) < 2500


# Names and talk


NAMES: dict[str, str | None] = {  # what is given, and what is shown of it
    "<img src=x onerror=alert(1)>": None, "<b onload=a()>": "<b onload=a()>", '"><svg onload=a>': '"><svg onload=a>',
    "null": "null", "undefined": "undefined", "{{7*7}}": "{{7*7}}", "%s${x}": "%s${x}", "名前": "名前", "🁣": "🁣",
    "": None, " ": None, "\t\r\n": None, "\x00": None, "\u200b\u2060\ufeff": None, "\u202e": None, "x" * 3000: None,
    "x" * 21: None, "x" * 20: "x" * 20, "  Rui \n  Sá ": "Rui Sá", "a\x00b\x1bc": "abc", "\u202eiuR\u2066": "iuR",
    "\ud800Eva": "Eva", "Eva\u2028Sá": "Eva Sá", "A\u0301na": "Ána", "random": "random",
    "counting 2": None, "Random 3": None, "random\u00a03": None, "\uff52andom 3": None,
    "\u3164": None, "\u2800": None, "\ufe0f": None, "\u115f\u1160": None,
}  # fmt: skip
TWINS = ["Ana", "ANA", " ana ", "A\u200bna", "\uff21na", "Ana\ufe0f", "A\u034fna", "Ana\u3164", "An\u180ba"]


async def name_shown(house: Tables, page: Page, how: str, **fields: Any) -> str | None:
    """Take a name in this way: what every screen shows of it, None where it is refused."""
    await page.send(how, **fields)
    await page.send("ping")
    heard = await page.until(lambda message: message["kind"] in ("refused", "pong"))
    if heard["kind"] == "refused":
        assert heard["code"] == "name"
        await page.answer("pong")
        return None
    await page.shows(house.room(page))
    shown: str = page.state["you"]["name"]
    return shown


@pytest.mark.parametrize("how", ["enter", "open", "rename"])
@scenario
async def test_a_name_is_shown_as_text_or_refused(how: str) -> None:
    wrong = {}
    async with tables() as house:
        for name, right in {**NAMES, **({} if how == "open" else dict.fromkeys(TWINS))}.items():
            ana, bea = await house.company("Ana", "Bea")
            page = bea if how == "rename" else await house.page()
            fields: dict[str, Any] = {"enter": {"room": ana.room}, "rename": {}, "open": {**TWO, "seconds": None}}[how]
            shown = await name_shown(house, page, how, name=name, **fields)
            if shown != right:
                wrong[name] = shown
            for other in (ana, bea, page):
                await other.cut()
    assert wrong == {}


TALK = {
    "<script>alert(1)</script>": "<script>alert(1)</script>", "": None, " \n ": None, "\u202e": None, "x" * 201: None,
    "x" * 200: "x" * 200, "a\nb": "a b", "\x00\x07a": "a", "null": "null", "\ud800!": "!", "a\u202eb\u2069": "ab",
}  # fmt: skip


@scenario
async def test_talk_is_shown_as_text_on_one_line_or_refused() -> None:
    async with tables() as house:
        ana, bea = await house.company("Ana", "Bea")
        for given, shown in TALK.items():
            if shown is None:
                assert (await ana.refusal("say", text=given))["code"] == "message"
            else:
                await ana.send("say", text=given)
                for page in (ana, bea):
                    state = await page.when(lambda state, shown=shown: state["talk"][-1]["text"] == shown)
                    assert state["talk"][-1]["name"] == "Ana"
        await bea.hears_nothing_but_a_pong()


# Bots


@scenario
async def test_a_bot_that_fails_plays_its_first_legal_moves_and_the_table_is_told() -> None:
    levels = [f"play_bots:{name}" for name in ("Raises", "Illegal", "NotANumber", "Nothing", "Many")]
    async with tables(processes=True, levels=levels) as house:
        page = await seated(house, *levels, preset="blocos", changes={"players": 6, "target": None})
        await play_match([page])
        games = positions(house.room(page))
        for seat, level in enumerate(levels, 1):
            moved = [(before, after) for before, after in itertools.pairwise(games) if before.seat == seat]
            assert all(after.moves[-1] == before.legal_moves()[0] for before, after in moved)
            told = notes(page, level)
            assert len(told) == len(moved)
        await page.hears_nothing_but_a_pong()


@pytest.mark.parametrize("name", ["Shouts", "Tells"])
@scenario
async def test_whatever_a_bot_raises_the_table_is_told_in_a_few_words_without_its_tiles(name: str) -> None:
    level = f"play_bots:{name}"
    async with tables(processes=True, levels=(level,)) as house:
        page = await seated(house, level, **TWO)
        await play_match([page])
        told = notes(page, level)
        assert told
        assert all(len(text) < 500 for text in told)
        assert not any(re.search(r"\d-\d", text) for text in told)


@pytest.mark.parametrize("name", ["Sleeps", "Exits", pytest.param("Quits", marks=pytest.mark.long)])
@scenario
async def test_a_bot_that_does_not_answer_is_played_for_and_the_game_goes_on(name: str) -> None:
    level = f"play_bots:{name}"
    async with tables(processes=True, levels=(level, "random"), thinking=1.0) as house:
        page = await seated(house, level, **TWO)
        while not notes(page, level):
            turn = page.state["turn"]
            if page.state["legal"]:
                await page.send("play", turn=turn, move=page.state["legal"][0])
            await page.when(lambda state, turn=turn: state["turn"] > turn)
        games = positions(house.room(page))
        before, after = next((a, b) for a, b in itertools.pairwise(games) if a.seat == 1)
        assert after.moves[-1] == before.legal_moves()[0]
        assert len(notes(page, level)) == 1
        await page.send("leave")
        await page.answer("closed")
        await seated(house, "random", **TWO)  # the process that was ended is replaced


@pytest.mark.parametrize(("name", "making"), [("CannotBe", 60.0), ("NeverReady", 0.5), ("Missing", 60.0)])
@scenario
async def test_a_bot_that_cannot_be_made_is_not_seated(name: str, making: float) -> None:
    level = f"play_bots:{name}"
    async with tables(processes=True, levels=(level,), making=making) as house:
        page = await (await house.page()).open()
        before = facts(house.room(page))
        refused = await page.refusal("start", level=level)
        assert refused["code"] == "message"
        assert len(refused["why"]) < 1000
        assert facts(house.room(page)) == before
        await page.hears_nothing_but_a_pong()


@pytest.mark.parametrize("what", ["Computes", "LoadsLong"])
@scenario
async def test_while_a_bot_computes_all_other_rooms_go_on(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(play_bots.FILE, str(tmp_path / "go"))
    level = f"play_bots:{what}"
    async with tables(processes=True, levels=(level, "random"), thinking=90.0) as house:
        pages = await house.company("Bea", "Caio", **TWO)
        await pages[0].send("start", level="random")
        for page in pages:
            await page.when(lambda state: state["phase"] == "playing")
        ana = await (await house.page()).open(**TWO)
        await ana.send("bot", seat=1, level=level)
        if what == "Computes":
            await ana.when(lambda state: state["seats"][1]["bot"] == level)
            await ana.send("start", level=level)
            await ana.when(lambda state: state["phase"] == "playing")
            while ana.state["legal"]:
                turn = ana.state["turn"]
                await ana.send("play", turn=turn, move=ana.state["legal"][0])
                await ana.when(lambda state, turn=turn: state["turn"] > turn)
        before = facts(house.room(ana))
        for _ in range(20):
            await ana.hears_nothing_but_a_pong()
            await pages[0].hears_nothing_but_a_pong()
        await play_match(pages)  # of people: no bot is asked
        assert facts(house.room(ana)) == before
        (tmp_path / "go").touch()
        await ana.until(lambda message: message["kind"] == "state" and message["version"] > before[0][0])
        assert ana.state["seats"][1]["bot"] == level


def no_process(*arguments: Any) -> Any:
    raise BlockingIOError(11, "Resource temporarily unavailable")


@scenario
async def test_where_no_process_can_be_started_the_game_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async with tables(processes=True) as house:
        page = await seated(house, "random", **TWO)
        monkeypatch.setattr("multiprocessing.context.SpawnProcess._Popen", no_process)
        for worker in house.server.thinkers._workers:
            await asyncio.to_thread(worker.end)
        await play_match([page])
        assert house.room(page).phase == "over"
        assert notes(page, "random")


@pytest.mark.long
@pytest.mark.parametrize("preset", ["duplas", "mano_a_mano", "blocos", "puxar"])
@partial(scenario, patience=1800)
async def test_frames_are_plain_json_with_every_bot(preset: str) -> None:
    async with tables(processes=True, making=600.0) as house:
        for level in Settings().levels:
            page = await seated(house, level, preset=preset)
            await play_match([page], until=("scored", "over"))
            await page.send("leave")
            await page.answer("closed")
            assert not notes(page, level)
