"""What stays hidden: tiles, whoever looks; others' keys; rooms from strangers; the server from other sites."""

from __future__ import annotations

import base64
import itertools
import json
import logging
import random
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from play_tables import (
    FAST,
    Page,
    eventually,
    facts,
    play_match,
    play_one,
    play_round,
    positions,
    scenario,
    tables,
)
from yarl import URL

from domino_env import Game
from domino_env.belief import Belief
from domino_env.play import House, Room, Settings
from domino_env.play.house import new_code
from domino_env.play.messages import KINDS

#: Who sits, the game, and a target that takes at least three rounds.
MATCHES = {
    "duplas": (("Ana", "Bea", "Caio", "Davi"), {"target": 17}),
    "mano_a_mano": (("Ana", "Bea"), {"target": 17}),
    "puxar": (("Ana", "Bea", "Caio"), {"players": 3, "target": 200}),
    "blocos": (("Ana", "Bea"), {"target": 200}),
}
TWO: dict[str, Any] = {"preset": "mano_a_mano", "changes": {"target": None}}
#: Fields whose two numbers are no tile.
_NO_TILES = {"ends", "scores", "sides", "pips"}


def tiles_told(message: Any, field: str = "") -> Iterator[str]:
    """Every tile that a message names, in whatever way."""
    if isinstance(message, str):
        for a, b in re.findall(r"(?<!\d)(\d)\s*[-|:/,]\s*(\d)(?!\d)", message):
            yield "-".join(sorted((a, b)))
    elif isinstance(message, dict):
        for name, value in message.items():
            yield from tiles_told(value, name)
    elif isinstance(message, list):
        if len(message) == 2 and all(isinstance(number, int) for number in message) and field not in _NO_TILES:
            yield "-".join(map(str, sorted(message)))
        for value in message:
            yield from tiles_told(value, field)


def hidden_from(seat: int | None, game: Game) -> set[str]:
    """The tiles that somebody may not know: others' hands until the round is over, and the boneyard."""
    others = [hand for other, hand in enumerate(game.hands) if other != seat]
    hands = set().union(*others) if game.result is None else set()
    return hands | set(game.boneyard)


def check_frames(page: Page, seat: int | None, first: int, games: list[Game]) -> None:
    """No frame of a page names what is hidden from its seat then. Position `first` is the one of games[0]."""
    turn, shown = first, 0
    for message in page.messages:
        if message["kind"] == "entered":  # its token may look like a tile
            continue
        if message["kind"] == "state" and message["phase"] == "lobby":
            assert set(tiles_told(message)) == set()
            continue
        turn = message.get("turn", turn)
        game = games[turn - first]
        told = set(tiles_told(message))
        assert not told & hidden_from(seat, game), message
        if message["kind"] == "state" and message["phase"] == "playing":
            assert message["hand"] == ([] if seat is None else game.hands[seat])
            assert all(other["hand"] is None for other in message["seats"])
            assert [other["tiles"] for other in message["seats"]] == [len(hand) for hand in game.hands]
            assert message["boneyard"] == (len(game.boneyard) if game.rules.boneyard_size else None)
            shown += 1
    assert shown > 20


async def check_match(preset: str, seed: int) -> None:
    names, changes = MATCHES[preset]
    async with tables() as house:
        pages = await house.match(*names, preset=preset, changes=changes, watcher=True)
        pages.append(await (await house.page()).enter(pages[0].room, "Ana too"))  # a player's second tab
        first = pages[0].state["turn"]
        await play_match(pages, seed)
        room = house.room(pages[0])
        assert len(room.rounds) >= 3
        games = positions(room)
        for seat, page in zip([*range(len(names)), None, None], pages, strict=True):
            check_frames(page, seat, first, games)


@pytest.mark.parametrize("preset", MATCHES)
@scenario
async def test_no_frame_of_a_match_names_a_hidden_tile(preset: str) -> None:
    await check_match(preset, 1)


@pytest.mark.long
@pytest.mark.parametrize("preset", MATCHES)
@partial(scenario, patience=900)
async def test_no_frame_of_many_matches_names_a_hidden_tile(preset: str) -> None:
    for seed in range(2, 14):
        await check_match(preset, seed)


async def next_round(pages: list[Page]) -> None:
    """Everybody with a seat is ready for the next round; every page shows it."""
    for page in pages:
        if page.state["you"]["seat"] is not None:
            await page.send("next", turn=page.state["turn"])
    for page in pages:
        await page.when(lambda state: state["phase"] == "playing")


async def what_is_shown(page: Page) -> str:
    """The state that the server sends when it is asked for it again, as a text."""
    turn = page.state["turn"]
    await page.send("play", turn=turn + 1000, move="0-0")
    assert (await page.answer("refused"))["code"] == "stale"
    await page.answer("state")
    return page.texts[-1]


def with_other_hidden_tiles(game: Game, seat: int, seed: int) -> Iterator[Game]:
    """The round as it might stand as well, for all that this seat knows."""
    for row in Belief(game.rules, game.view(seat)).sample(6, seed):
        other = game.copy()
        other._state[0] = row
        other._look()
        yield other


async def check_that_hidden_tiles_change_nothing(page: Page, room: Room, seat: int) -> int:
    """Whatever the tiles hidden from this seat are, the page shows the same; how many were others."""
    game, shown, others = room.game, await what_is_shown(page), 0
    assert game is not None
    for other in with_other_hidden_tiles(game, seat, room.turn):
        room.game = other
        assert await what_is_shown(page) == shown
        others += other.hands != game.hands
    room.game = game
    return others


@pytest.mark.parametrize("preset", MATCHES)
@scenario
async def test_what_is_shown_does_not_depend_on_hidden_tiles(preset: str) -> None:
    names, changes = MATCHES[preset]
    others, rng = 0, random.Random(preset)
    async with tables() as house:
        *pages, watcher = await house.match(*names, preset=preset, changes=changes, watcher=True)
        room = house.room(watcher)
        while room.phase == "playing":
            for seat, page in enumerate(pages):
                others += await check_that_hidden_tiles_change_nothing(page, room, seat)
            seat = rng.randrange(len(names))
            others += await check_that_hidden_tiles_change_nothing(watcher, room, seat)
            actor = next(page for page in pages if page.state["legal"])
            await play_one([*pages, watcher], actor, rng.choice(actor.state["legal"]))
    assert others > 50


@scenario
async def test_hands_are_shown_once_the_round_is_over() -> None:
    async with tables() as house:
        pages = await house.match("Ana", "Bea", preset="puxar", watcher=True)
        await play_round(pages)
        game = house.room(pages[0]).game
        assert game is not None
        for page in pages:
            assert [seat["hand"] for seat in page.state["seats"]] == game.hands


@scenario
async def test_a_drawn_tile_is_told_to_whoever_drew_it_alone() -> None:
    async with tables() as house:
        pages = await house.match("Ana", "Bea", preset="puxar", watcher=True)
        room = house.room(pages[0])
        while room.game is not None and not any(event.kind == "draw" for event in room.game.events):
            if room.phase == "playing":
                actor = next(page for page in pages if page.state["legal"])
                await play_one(pages, actor, actor.state["legal"][0])
            else:
                await next_round(pages)
        assert room.game is not None
        drawn = next(event for event in room.game.events if event.kind == "draw")
        told = f"{pages[drawn.seat].state['you']['name']} draws"
        for page in pages:
            mine = page is pages[drawn.seat]
            assert (f"{told} {drawn.tile}" in page.state["events"]) is mine
            assert (told in page.state["events"]) is not mine


# Keys


@scenario
async def test_a_key_is_told_to_its_owner_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with tables() as house:
        pages = await house.match("Ana", "Bea", preset="mano_a_mano", changes={"target": None}, watcher=True)
        await pages[0].send("say", text="hello")
        await pages[1].send("rename", name="Beatriz")
        await play_match(pages)
        await pages[0].send("record")
        await pages[0].answer("record")
        again = await (await house.page()).come_back(pages[1])
        await house.settled([pages[0], again, pages[2]])
        people = house.room(again).people.values()
        assert len({person.token for person in people}) == 3
        for page in (*pages, again):
            for text in page.texts:
                told = {person.number for person in people if person.token in text}
                assert told == ({page.person} if json.loads(text)["kind"] == "entered" else set())
        assert not any(person.token in caplog.text for person in people)
        assert not any(person.token in repr(person) for person in people)


@scenario
async def test_a_key_has_at_least_128_random_bits() -> None:
    async with tables(people=300) as house:
        host = await (await house.page()).open()
        keys = [host.token]
        for number in range(200):
            page = await (await house.page()).enter(host.room, f"Guest {number}")
            keys.append(page.token)
            await page.cut()
        raw = [base64.urlsafe_b64decode(key + "=" * (-len(key) % 4)) for key in keys]
        assert min(map(len, raw)) >= 16
        assert len(set(raw)) == len(raw)
        bits = [sum(key[place // 8] >> place % 8 & 1 for key in raw) for place in range(128)]
        assert all(50 < ones < 151 for ones in bits)  # of 201; seven standard deviations


@scenario
async def test_a_key_opens_its_own_room_alone() -> None:
    async with tables() as house:
        ana, other = await (await house.page()).open("Ana"), await (await house.page()).open("Ana")
        stranger = await house.page()
        for token in (ana.token[:-1], ana.token + "A", ana.token.swapcase(), "", "0", str(ana.person), other.token):
            assert (await stranger.refusal("return", room=ana.room, token=token))["code"] == "no-person"
        assert (await (await house.page()).come_back(ana)).person == ana.person


@pytest.mark.parametrize("field", ["room", "token"])
@scenario
async def test_halves_of_surrogates_are_no_keys_and_no_codes(field: str) -> None:
    async with tables() as house:
        ana, page = await (await house.page()).open(), await house.page()
        refused = await page.refusal("return", **{"room": ana.room, "token": ana.token, field: "\ud800"})
        assert refused["code"] in ("no-room", "no-person", "message")
        await page.hears_nothing_but_a_pong()


# Strangers


def every_kind(room: str) -> dict[str, dict[str, Any]]:
    """A message of each kind that would be done for the right person."""
    return {
        "sit": {"seat": 1}, "stand": {}, "bot": {"seat": 1, "level": "random"}, "start": {"level": "random"},
        "play": {"turn": 1, "move": "6-6"}, "next": {"turn": 1}, "rename": {"name": "Eva"}, "say": {"text": "hi"},
        "kick": {"person": 1}, "leave": {}, "record": {}, "shape": {"width": 300, "height": 300},
        "return": {"room": room, "token": "0"},
    }  # fmt: skip


@scenario
async def test_knowing_a_room_and_its_seats_is_not_enough_to_do_anything_in_it() -> None:
    async with tables() as house:
        pages = await house.match("Ana", "Bea", **TWO)
        room, stranger = house.room(pages[0]), await house.page()
        wishes = every_kind(room.code)
        assert {*wishes, "open", "enter", "ping"} == set(KINDS)
        before = facts(room)
        for kind, fields in wishes.items():
            assert (await stranger.refusal(kind, **fields))["code"] == "no-person"
            for name, value in {"room": room.code, "person": 1, "seat": 0, "token": "0"}.items():
                if name not in fields:
                    assert (await stranger.refusal(kind, **fields, **{name: value}))["code"] == "message"
        assert facts(room) == before
        assert room.code not in "".join(stranger.texts)
        for page in pages:
            await page.hears_nothing_but_a_pong()


# Codes


def code_after(*used: str) -> House:
    codes = itertools.chain(used, iter(new_code, None))
    return House(FAST, lambda: next(codes))


@scenario
async def test_a_code_in_use_is_not_given_again() -> None:
    async with tables(house=code_after(*["SAMECODE"] * 10)) as house:
        ana = await (await house.page()).open("Ana")
        before = facts(house.room(ana))
        bea = await (await house.page()).open("Bea")
        assert (ana.room, bea.room != ana.room) == ("SAMECODE", True)
        assert facts(house.room(ana)) == before


@scenario
async def test_where_no_free_code_is_found_no_room_is_opened() -> None:
    async with tables(house=House(FAST, lambda: "SAMECODE")) as house:
        ana, bea = await (await house.page()).open("Ana"), await house.page()
        room, before = house.room(ana), facts(house.room(ana))
        opening = {"name": "Bea", "preset": "puxar", "changes": {}, "seconds": None}
        assert (await bea.refusal("open", **opening))["code"] == "full"
        assert house.server.house.rooms == {"SAMECODE": room}
        assert facts(room) == before
        await ana.hears_nothing_but_a_pong()


@scenario
async def test_whoever_guesses_codes_or_keys_has_to_wait() -> None:
    async with tables(guesses=Settings().guesses) as house:
        ana, guesser = await (await house.page()).open("Ana"), await house.page()
        heard = [await guess(guesser, number) for number in range(1000)]
        assert heard == ["no-room"] * Settings().guesses + ["slow-down"] * (1000 - Settings().guesses)
        assert (await guesser.refusal("return", room=ana.room, token="0"))["code"] == "slow-down"
        await house.pass_time(60)
        wrong = [(await guesser.refusal("return", room=ana.room, token="0"))["code"] for _ in range(12)]
        assert wrong == ["no-person"] * 10 + ["slow-down"] * 2
        await (await house.page()).come_back(ana)  # with the right key, which nobody guesses
        await house.pass_time(60)
        await guesser.enter(ana.room, "Bea")


async def guess(page: Page, number: int) -> str:
    code: str = (await page.refusal("enter", room=f"WRONG{number:03}", name="Eva"))["code"]
    return code


# The web server


@pytest.mark.parametrize("origin", ["http://elsewhere.example", "null", "", "http://127.0.0.1", "file://", "http://[x"])
@scenario
async def test_pages_of_other_sites_do_not_get_a_connection(origin: str) -> None:
    async with tables() as house:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await house.page(Origin=origin)
        assert refused.value.status == 403


@scenario
async def test_the_own_page_gets_a_connection() -> None:
    async with tables() as house:
        await (await house.page(Origin=str(house.web.make_url("")).rstrip("/"))).open()


@scenario
async def test_every_answer_has_the_headers_that_keep_strangers_out() -> None:
    async with tables() as house:
        async with house.session.get(house.web.make_url("/")) as response:
            files = re.findall(r"""(?:src|href)="/?([\w.-]+\.\w+)["?]""", await response.text())
        assert {Path(file).suffix for file in files} == {".js", ".css"}
        for path, status in {"": 200, **dict.fromkeys(files, 200), "nothing": 404, "ws": 400}.items():
            async with house.session.get(house.web.make_url(f"/{path}")) as response:
                assert response.status == status
                check_headers(response.headers)


def check_headers(headers: Mapping[str, str]) -> None:
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    for name in ("default-src", "base-uri", "form-action", "frame-ancestors"):
        assert policy[name] == "'none'"
    for name in ("script-src", "style-src", "connect-src"):
        assert policy[name] == "'self'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("path", ["/server.py", "/..%2fserver.py", "/%2e%2e/server.py", "/page/", "/rooms"])
@scenario
async def test_nothing_but_the_page_is_served(path: str) -> None:
    async with tables() as house:
        address = URL(f"http://127.0.0.1:{house.web.port}{path}", encoded=True)
        async with house.session.get(address) as response:
            assert response.status == 404
        async with house.session.post(house.web.make_url("/"), data=b"x") as response:
            assert response.status == 405


@scenario
async def test_the_page_has_no_script_or_style_of_its_own_that_the_policy_would_stop() -> None:
    async with tables() as house, house.session.get(house.web.make_url("/")) as response:
        html = await response.text()
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", html, re.IGNORECASE)
        assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", html, re.IGNORECASE)


@scenario
async def test_no_more_pages_than_agreed_are_connected() -> None:
    async with tables(connections=3) as house:
        pages = [await (await house.page()).open() for _ in range(2)]
        pages.append(await house.page())
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await house.page()
        assert refused.value.status == 503
        await pages[0].cut()
        await eventually(lambda: sum(map(len, house.server.lines.values())) == 1)
        await (await house.page()).open()
