"""What pages may do at the tables and what not, over real connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from play_tables import (
    Page,
    Tables,
    acting,
    eventually,
    facts,
    play_match,
    play_one,
    play_round,
    scenario,
    tables,
    who_acts,
)

from domino_env import notation
from domino_env.play import Settings

Wish = tuple[str, str, str, dict[str, Any]]  # who, the refusal's code, the kind and its fields
FOUR = ("Ana", "Bea", "Caio", "Davi")
TWO = {"preset": "mano_a_mano", "changes": {"target": None}}
GRACE, SUBSTITUTE = Settings().grace, Settings().substitute
KEYS = {
    "kind", "version", "turn", "room", "title", "phase", "preset", "players", "pairs", "target", "sides", "seconds",
    "levels", "you", "people", "seats", "hand", "legal", "ends", "chain", "boneyard", "round", "multiplier", "scores",
    "left", "events", "result", "winner", "waiting", "rounds", "talk",
}  # fmt: skip


async def check_refused(house: Tables, pages: list[Page], sender: Page, code: str, kind: str, **fields: Any) -> None:
    """A wish is refused: its sender alone is told, nothing has changed, and every connection lives."""
    before = facts(house.room(sender))
    assert (await sender.refusal(kind, **fields))["code"] == code, (kind, fields)
    assert facts(house.room(sender)) == before
    for page in pages:
        await page.hears_nothing_but_a_pong()


# The table


@scenario
async def test_whoever_opens_a_room_sits_at_its_first_seat_and_others_watch() -> None:
    async with tables() as house:
        ana = await (await house.page()).open("Ana", seconds=30)
        bea = await (await house.page()).enter(ana.room.lower(), "Bea")
        await ana.when(lambda state: len(state["people"]) == 2)
        assert ana.state["you"] == {"person": 1, "name": "Ana", "seat": 0, "host": True}
        assert bea.state["you"] == {"person": 2, "name": "Bea", "seat": None, "host": False}
        assert [seat["name"] for seat in bea.state["seats"]] == ["Ana", "", "", ""]
        assert (bea.state["phase"], bea.state["preset"], bea.state["seconds"]) == ("lobby", "duplas", 30)


@scenario
async def test_a_match_is_told_to_its_end_in_states_that_only_move_forward() -> None:
    async with tables() as house:
        pages = await house.match(*FOUR, watcher=True)
        await play_match(pages)
        match = house.room(pages[0]).match
        assert match is not None
        for page in pages:
            states = [message for message in page.messages if message["kind"] == "state"]
            assert all(before["version"] < after["version"] for before, after in pairwise(states))
            assert all(before["turn"] <= after["turn"] for before, after in pairwise(states))
            assert {state["phase"] for state in states} == {"lobby", "playing", "scored", "over"}
            assert all(state.keys() == KEYS for state in states)
            assert (page.state["winner"], page.state["scores"]) == (match.winner, match.scores)
            await page.send("record")
            assert notation.loads((await page.answer("record"))["text"]) == match


@scenario
async def test_a_second_match_begins_with_nothing_of_the_first() -> None:
    async with tables() as house:
        pages = await house.match("Ana", "Bea", preset="mano_a_mano", changes={"target": 2})
        await play_match(pages)
        over = pages[0].state["turn"]
        await pages[0].send("start", level="random")
        for page in pages:
            state = await page.when(lambda state: state["turn"] > over)
            assert (state["phase"], state["scores"], state["rounds"], state["events"]) == ("playing", [0, 0], [], [])
            assert (state["winner"], state["result"], state["round"], state["chain"]["tiles"]) == (None, None, 1, [])


# What is refused


def a_tile_of_another(page: Page, house: Tables) -> str:
    game = house.room(page).game
    assert game is not None
    other = next(hand for seat, hand in enumerate(game.hands) if seat != page.state["you"]["seat"])
    return f"{other[0]}L"


def a_tile_at_the_wrong_end(page: Page, house: Tables) -> str:
    legal = page.state["legal"]
    return next(f"{tile}{end}" for tile in page.state["hand"] for end in "LR" if f"{tile}{end}" not in legal)


def a_tile_on_the_table(page: Page, house: Tables) -> str:
    first, second = sorted(page.state["chain"]["tiles"][0]["tile"])
    return f"{first}-{second}L"


FORGED: dict[str, Callable[[Page, Tables], str]] = {
    "another's tile": a_tile_of_another,
    "the wrong end": a_tile_at_the_wrong_end,
    "a tile on the table": a_tile_on_the_table,
    "a pass": lambda page, house: "pass",
    "a draw": lambda page, house: "draw",
    "no end": lambda page, house: page.state["legal"][0][:-1],
    "a small letter": lambda page, house: page.state["legal"][0].lower(),
    "a blank more": lambda page, house: page.state["legal"][0] + " ",
    "no tile": lambda page, house: "9-9L",
    "nothing": lambda page, house: "",
}


@pytest.mark.parametrize("what", FORGED)
@scenario
async def test_a_forged_move_is_refused_and_changes_nothing(what: str) -> None:
    async with tables() as house:
        pages = await house.match(*FOUR, watcher=True)
        for _ in range(2):
            await play_one(pages, who_acts(pages)[0], who_acts(pages)[0].state["legal"][0])
        actor, others = who_acts(pages)
        move, turn = FORGED[what](actor, house), actor.state["turn"]
        await check_refused(house, others, actor, "illegal", "play", turn=turn, move=move)
        await play_one(pages, actor, actor.state["legal"][0])


@scenario
async def test_nobody_plays_for_another_seat() -> None:
    async with tables() as house:
        pages = await house.match(*FOUR, watcher=True)
        actor, others = who_acts(pages)
        turn, move = actor.state["turn"], actor.state["legal"][0]
        for page in others:
            rest = [other for other in pages if other is not page]
            await check_refused(house, rest, page, "turn", "play", turn=turn, move=move)
            for name in ("seat", "person", "token", "room"):
                await check_refused(house, rest, page, "message", "play", turn=turn, move=move, **{name: 0})


@scenario
async def test_a_move_for_another_turn_is_refused_and_the_state_sent_again() -> None:
    async with tables() as house:
        pages = await house.match(*FOUR)
        actor, others = who_acts(pages)
        turn, move = actor.state["turn"], actor.state["legal"][0]
        await play_one(pages, actor, move)
        now, others = who_acts(pages)
        for wrong in (turn, turn - 1, now.state["turn"] + 1, 2**53):
            await check_refused(house, others, now, "stale", "play", turn=wrong, move=now.state["legal"][0])
            heard = [message["kind"] for message in now.messages]
            if "state" not in heard[len(heard) - heard[::-1].index("refused") :]:
                await now.answer("state")
            assert now.state["version"] == house.room(now).version


@scenario
async def test_a_move_sent_twice_is_played_once() -> None:
    async with tables() as house:
        pages = await house.match("Ana", "Bea", **TWO)
        actor, others = who_acts(pages)
        turn = actor.state["turn"]
        for _ in range(3):
            await actor.send("play", turn=turn, move=actor.state["legal"][0])
        for _ in range(2):
            assert (await actor.answer("refused"))["code"] == "stale"
        assert house.room(actor).turn == turn + 1
        assert len(house.room(actor).match.game.moves) == 1  # type: ignore[union-attr]
        await others[0].hears_nothing_but_a_pong()


@scenario
async def test_nothing_can_be_played_once_the_round_or_the_match_is_over() -> None:
    async with tables() as house:
        pages = await house.match("Ana", "Bea", preset="mano_a_mano", changes={"target": 20})
        last = pages[0].state
        await play_round(pages)
        for page in pages:
            others = [other for other in pages if other is not page]
            for move in [*(f"{tile}L" for tile in page.state["hand"]), last["hand"][0], "0-0"]:
                await check_refused(house, others, page, "phase", "play", turn=page.state["turn"], move=move)
        await play_match(pages)
        for page in pages:
            others = [other for other in pages if other is not page]
            await check_refused(house, others, page, "phase", "play", turn=page.state["turn"], move="0-0L")
            await check_refused(house, others, page, "phase", "next", turn=page.state["turn"])


#: Before the match, while a round is played, once it is over: what the host, a player and a watcher may not do.
NOT_BEFORE: list[Wish] = [
    ("host", "phase", "play", {"turn": 0, "move": "6-6"}), ("host", "phase", "next", {"turn": 0}),
    ("host", "phase", "record", {}), ("player", "phase", "record", {}),
    ("player", "host", "start", {"level": "random"}), ("watcher", "host", "start", {"level": "random"}),
    ("player", "host", "bot", {"seat": 2, "level": "random"}), ("player", "host", "bot", {"seat": 2, "level": None}),
    ("watcher", "host", "bot", {"seat": 2, "level": "random"}),
    ("player", "host", "kick", {"person": 1}), ("watcher", "host", "kick", {"person": 2}),
    ("host", "message", "kick", {"person": 1}), ("host", "message", "kick", {"person": 99}),
    ("host", "full", "sit", {"seat": 1}), ("watcher", "full", "sit", {"seat": 0}),
    ("player", "full", "sit", {"seat": 1}),
    ("watcher", "message", "sit", {"seat": 4}), ("watcher", "phase", "stand", {}),
    ("host", "full", "bot", {"seat": 1, "level": "random"}), ("host", "full", "bot", {"seat": 0, "level": None}),
    ("host", "message", "bot", {"seat": 4, "level": "random"}),
    ("host", "message", "bot", {"seat": 2, "level": "oracle"}), ("host", "message", "start", {"level": "oracle"}),
    ("host", "message", "start", {"level": "os:system"}),
    ("host", "message", "bot", {"seat": 2, "level": "http://127.0.0.1:1"}),
]  # fmt: skip
NOT_WHILE_PLAYED: list[Wish] = [
    ("host", "phase", "start", {"level": "random"}), ("host", "phase", "next", {"turn": 1}),
    ("host", "phase", "sit", {"seat": 2}), ("host", "phase", "stand", {}), ("player", "phase", "stand", {}),
    ("watcher", "phase", "sit", {"seat": 2}), ("watcher", "phase", "stand", {}),
    ("host", "phase", "bot", {"seat": 2, "level": None}), ("host", "full", "bot", {"seat": 1, "level": "random"}),
    ("host", "phase", "record", {}), ("player", "phase", "record", {}), ("watcher", "phase", "record", {}),
    ("player", "host", "start", {"level": "random"}), ("player", "host", "bot", {"seat": 2, "level": "random"}),
    ("player", "host", "kick", {"person": 1}), ("watcher", "host", "kick", {"person": 1}),
]  # fmt: skip
NOT_ONCE_SCORED: list[Wish] = [
    ("host", "phase", "start", {"level": "random"}), ("host", "phase", "record", {}),
    ("host", "stale", "next", {"turn": 1}), ("watcher", "stale", "next", {"turn": 1}),
    ("host", "full", "sit", {"seat": 1}), ("host", "phase", "bot", {"seat": 2, "level": None}),
    ("player", "host", "bot", {"seat": 2, "level": "random"}),
]  # fmt: skip


async def check_all_refused(
    house: Tables, pages: list[Page], table: list[tuple[str, str, str, dict[str, Any]]]
) -> None:
    by_role = dict(zip(("host", "player", "watcher"), pages, strict=True))
    for role, code, kind, fields in table:
        others = [page for page in pages if page is not by_role[role]]
        await check_refused(house, others, by_role[role], code, kind, **fields)


@scenario
async def test_what_may_not_be_done_before_a_match() -> None:
    async with tables() as house:
        await check_all_refused(house, await house.company("Ana", "Bea", watcher=True), NOT_BEFORE)


@scenario
async def test_what_may_not_be_done_while_a_round_is_played_or_when_it_is_over() -> None:
    async with tables() as house:
        pages = await house.company("Ana", "Bea", watcher=True, changes={"target": 50})
        await pages[0].send("start", level="random")
        await pages[0].when(lambda state: state["phase"] == "playing")
        actor = await acting(house, pages)
        await check_all_refused(house, pages, NOT_WHILE_PLAYED)
        while actor is not None:
            await play_one(pages, actor, actor.state["legal"][0])
            actor = await acting(house, pages)
        await check_all_refused(house, pages, NOT_ONCE_SCORED)
        watcher = pages[2]
        await check_refused(house, pages[:2], watcher, "turn", "next", turn=watcher.state["turn"])


@scenario
async def test_whoever_is_in_a_room_enters_no_other() -> None:
    async with tables() as house:
        ana, bea = await house.company("Ana", "Bea")
        opening = {"name": "Eva", "preset": "duplas", "changes": {}, "seconds": None}
        await check_refused(house, [bea], ana, "phase", "open", **opening)
        await check_refused(house, [bea], ana, "phase", "enter", room=ana.room, name="Eva")
        await check_refused(house, [bea], ana, "phase", "return", room=ana.room, token=bea.token)
        assert len(house.server.house.rooms) == 1


# Coming and going


@scenario
async def test_whoever_leaves_hears_so_and_may_enter_again() -> None:
    async with tables() as house:
        ana, bea = await house.company("Ana", "Bea")
        room = ana.room
        await ana.send("leave")
        assert (await ana.answer("closed"))["code"] == "left"
        assert (await ana.refusal("say", text="still here"))["code"] == "no-person"
        await bea.when(lambda state: state["you"]["host"] and len(state["people"]) == 1)
        assert bea.state["seats"][0]["person"] is None
        assert (await (await house.page()).refusal("return", room=room, token=ana.token))["code"] == "no-person"
        await ana.enter(room, "Ana", 0)


@scenario
async def test_whoever_is_sent_out_hears_so_and_the_key_opens_nothing_any_more() -> None:
    async with tables() as house:
        ana, bea, watcher = await house.match("Ana", "Bea", watcher=True, **TWO)
        await ana.send("kick", person=bea.person)
        words = await bea.last_words()
        assert [message["code"] for message in words if message["kind"] == "closed"] == ["kicked"]
        await watcher.when(lambda state: state["seats"][1]["bot"] == SUBSTITUTE)
        assert (await (await house.page()).refusal("return", room=ana.room, token=bea.token))["code"] == "no-person"
        await play_match([ana, watcher])


@scenario
async def test_a_second_page_of_a_person_replaces_the_first() -> None:
    async with tables() as house:
        ana, bea = await house.match("Ana", "Bea", **TWO)
        again = await (await house.page()).come_back(ana)
        assert [message["code"] for message in await ana.last_words() if message["kind"] == "closed"] == ["elsewhere"]
        assert (again.state["you"], again.state["hand"]) == (ana.state["you"], ana.state["hand"])
        await play_match([again, bea])


@scenario
async def test_pages_are_told_when_the_server_stops() -> None:
    async with tables() as house:
        ana, bea = await house.match("Ana", "Bea", **TWO)
        outside = await house.page()
        await outside.hears_nothing_but_a_pong()
        stopped = asyncio.create_task(house.web.close())
        for page in (ana, bea, outside):
            assert (await page.answer("closed"))["code"] == "room"
            assert await page.last_words() == []
        await stopped


AT = ["own turn", "another's turn", "scored", "over"]


async def arrived(house: Tables, at: str) -> tuple[Page, list[Page]]:
    """A match in which somebody is about to lose its connection then; this page, and the others."""
    pages = await house.match(*FOUR, watcher=True, changes={"target": None if at == "over" else 6})
    while pages[0].state["turn"] < 4 or pages[0].state["legal"]:
        await play_one(pages, who_acts(pages)[0], who_acts(pages)[0].state["legal"][0])
    if at in ("scored", "over"):
        await play_round(pages)
    gone = next(page for page in pages[1:] if bool(page.state["legal"]) == (at == "own turn"))
    await gone.send("say", text="hello")
    for page in pages:
        await page.when(lambda state: state["talk"][-1]["text"] == "hello")
    return gone, [page for page in pages if page is not gone]


async def cut(gone: Page, rest: list[Page]) -> None:
    await gone.cut()
    for page in rest:
        await page.when(
            lambda state: (gone.person, False) in [(other["person"], other["here"]) for other in state["people"]]
        )


@pytest.mark.parametrize("away", [1, GRACE - 1])
@pytest.mark.parametrize("at", AT)
@scenario
async def test_whoever_comes_back_soon_finds_all_as_it_was(at: str, away: float) -> None:
    async with tables(between=2 * GRACE) as house:
        gone, rest = await arrived(house, at)
        await cut(gone, rest)
        await house.pass_time(away)
        back = await (await house.page()).come_back(gone)
        same = KEYS - {"version", "left"}
        assert {name: back.state[name] for name in same} == {name: gone.state[name] for name in same}
        await play_match([back, *rest])


@pytest.mark.parametrize("at", AT)
@scenario
async def test_past_the_grace_the_substitute_plays_until_the_person_is_back(at: str) -> None:
    async with tables(between=2 * GRACE) as house:
        gone, rest = await arrived(house, at)
        name, seat = gone.state["you"]["name"], gone.state["you"]["seat"]
        await cut(gone, rest)
        await house.pass_time(GRACE)
        await rest[0].when(lambda state: state["talk"][-1]["text"] == f"{name} is away; {SUBSTITUTE} plays meanwhile")
        assert rest[0].state["seats"][seat]["substitute"]
        if at in ("scored", "over"):
            assert rest[0].state["rounds"] == gone.state["rounds"]
        else:
            await play_round(rest)
        back = await (await house.page()).come_back(gone)
        assert back.state["talk"][-1]["text"] == f"{name} is back"
        assert not back.state["seats"][seat]["substitute"]
        assert back.state["hand"] == back.state["seats"][seat]["hand"]
        await play_match([back, *rest])


@pytest.mark.parametrize("here", [True, False])
@scenario
async def test_the_time_for_a_move_runs_out_for_whoever_is_here_and_for_whoever_is_not(here: bool) -> None:
    async with tables() as house:
        pages = await house.match("Ana", "Bea", watcher=True, seconds=20, **TWO)
        actor, others = who_acts(pages)
        turn, first = actor.state["turn"], actor.state["legal"][0]
        if not here:
            await cut(actor, others)
        await house.pass_time(19.9)
        await others[0].hears_nothing_but_a_pong()
        assert others[0].state["turn"] == turn
        await house.pass_time(0.1)
        state = await others[0].when(lambda state: state["turn"] == turn + 1)
        assert first.startswith(state["seats"][house.room(actor).match.game.starter]["did"])  # type: ignore[union-attr]
        assert len(state["people"]) == 3
        back = actor if here else await (await house.page()).come_back(actor)
        await play_match([back, *others])


@scenario
async def test_losing_the_connection_after_the_final_move_changes_no_result() -> None:
    async with tables() as house:
        pages = await house.match("Ana", "Bea", watcher=True, **TWO)
        await play_match(pages)
        over = pages[2].state
        await cut(pages[0], pages[1:])
        await cut(pages[1], pages[2:])
        await house.pass_time(GRACE)
        state = await pages[2].when(lambda state: state["you"]["host"])
        for name in ("phase", "result", "winner", "scores", "rounds", "events"):
            assert state[name] == over[name]


@scenario
async def test_a_room_whose_host_does_not_come_back_has_a_host() -> None:
    async with tables() as house:
        ana, bea = await house.match("Ana", "Bea", **TWO)
        await ana.cut()
        await bea.cut()
        await eventually(lambda: house.server.lines[ana.room] == {})
        await house.pass_time(GRACE)
        back = await (await house.page()).come_back(bea)
        await back.when(lambda state: state["you"]["host"])
        await play_match([back])


@scenario
async def test_what_happened_in_a_round_is_told_alike_when_its_seats_have_changed() -> None:
    async with tables() as house:
        pages = await house.match("Ana", "Bea", watcher=True, **TWO)
        await play_match(pages)
        ana, bea, watcher = pages
        told = watcher.state["events"]
        await ana.send("stand")
        await bea.send("sit", seat=0)
        await watcher.when(lambda state: state["seats"][0]["name"] == "Bea")
        assert watcher.state["events"] == told
