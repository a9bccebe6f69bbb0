"""What the page does with what it is told, whatever a server may say; in a browser, as `test_play_browser.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from play_pages import (
    Served,
    Spoken,
    View,
    choosing,
    in_phase,
    move_at,
    moves_of,
    opening,
    page_of,
    tiles_of,
    waiting,
)
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.browser

ROOM = "ABCD2345"
KEY = "the-key-of-this-seat"
MARKUP = '<b onclick="x">&amp;</b><img src=x>'
NO_STORAGE = """
for (const kind of ["localStorage", "sessionStorage"])
  Object.defineProperty(window, kind, { get() { throw new DOMException("refused", "SecurityError"); } });
window.BroadcastChannel = class { constructor() { throw new Error("refused"); } };
"""
HIDE = """
Object.defineProperty(document, "hidden", { value: true, configurable: true });
document.dispatchEvent(new Event("visibilitychange"));
"""


@pytest.fixture
def server(browser: Browser, served: Served) -> Iterator[Spoken]:
    """The server of a page that is invited to a table."""
    servers: list[Spoken] = []
    with page_of(browser, f"{served.address}/#{ROOM}", lambda context: servers.append(Spoken(context))) as page:
        servers[0].page = page
        yield servers[0]


@pytest.fixture
def page(server: Spoken) -> Page:
    return server.page


def let_in(server: Spoken) -> None:
    server.say("entered", room=ROOM, person=1, token=KEY)
    server.version = 0


def come_in(server: Spoken, view: View, **changes: Any) -> None:
    """Ana comes in, and is shown this."""
    server.page.fill("#name", "Ana")
    server.page.click("#accept")
    assert server.hear("enter") == {"kind": "enter", "room": ROOM, "name": "Ana"}
    let_in(server)
    server.show(view, **changes)


def tile(page: Page, name: str) -> Any:
    return page.locator(f"#hand button[aria-label^='{name}']")


def playable(page: Page) -> set[str]:
    return {str(button.get_attribute("aria-label")).split(",")[0] for button in page.locator("#hand :enabled").all()}


def asks(page: Page) -> bool:
    """Whether the page asks which end; it does so beside the hand and on the chain."""
    beside, on_chain = page.is_visible("#question"), page.locator("#chain .target").count()
    assert on_chain == (2 if beside else 0)
    return beside


# Your turn


def test_only_tiles_that_fit_can_be_played(server: Spoken, page: Page) -> None:
    come_in(server, choosing())
    assert page.locator("#hand button").count() == len(choosing()["hand"])
    assert playable(page) == {*tiles_of(choosing(), 1), *tiles_of(choosing(), 2)}
    server.show(waiting())
    assert playable(page) == set()


@pytest.mark.parametrize("view", [choosing, opening])
def test_a_tile_with_one_place_to_go_is_played_at_once_and_once(
    server: Spoken, page: Page, view: Callable[[], View]
) -> None:
    come_in(server, view())
    name = tiles_of(view(), 1)[0]
    tile(page, name).dblclick(force=True)
    (move,) = moves_of(view())[name]
    assert server.hear("play") == {"kind": "play", "turn": view()["turn"], "move": move}
    assert server.hears_no("play")
    assert playable(page) == set()
    assert page.inner_text("#prompt-words") == "Playing…"


@pytest.mark.parametrize(
    ("answer", "end"),
    [("#to-left", "L"), (".target[data-end=R]", "R")],
)
def test_a_tile_that_fits_both_ends_is_played_where_one_says(server: Spoken, page: Page, answer: str, end: str) -> None:
    come_in(server, choosing())
    name = tiles_of(choosing(), 2)[0]
    tile(page, name).click()
    assert asks(page)
    assert server.hears_no("play")
    page.click(answer)
    assert server.hear("play")["move"] == move_at(end, choosing(), name)
    assert not asks(page)


@pytest.mark.parametrize("how", ["Escape", "cancel", "the tile again", "another turn"])
def test_the_question_which_end_can_be_withdrawn(server: Spoken, page: Page, how: str) -> None:
    come_in(server, choosing())
    name = tiles_of(choosing(), 2)[0]
    tile(page, name).click()
    server.show(choosing())
    assert asks(page)  # another state of the same turn is no reason
    if how == "Escape":
        page.keyboard.press("Escape")
    elif how == "cancel":
        page.click("#to-none")
    elif how == "the tile again":
        tile(page, name).click()
    else:
        server.show(choosing(), turn=choosing()["turn"] + 1)
    assert not asks(page)
    assert server.hears_no("play")


def test_the_keyboard_is_enough_to_play(server: Spoken, page: Page) -> None:
    come_in(server, choosing())
    name = tiles_of(choosing(), 2)[0]
    page.keyboard.press("Tab")
    tile(page, name).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#to-left")).to_be_focused()
    page.keyboard.press("Escape")
    expect(tile(page, name)).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert server.hear("play")["move"] == move_at("L", choosing(), name)
    server.show(waiting())
    server.show(choosing(), turn=choosing()["turn"] + 4)
    expect(page.locator("#hand :enabled").first).to_be_focused()


@pytest.mark.parametrize("about", ["play", None])
def test_a_refused_play_may_be_tried_again(server: Spoken, page: Page, about: str | None) -> None:
    come_in(server, choosing())
    tile(page, tiles_of(choosing(), 1)[0]).click()
    server.say("refused", about=about, code="slow-down", why=MARKUP)
    assert page.inner_text("#toasts li") == MARKUP
    tile(page, tiles_of(choosing(), 1)[0]).click()
    assert server.hear("play") == server.hear("play")


def test_a_state_that_is_not_newer_is_not_shown(server: Spoken, page: Page) -> None:
    come_in(server, choosing(), version=10)
    for version in (9, 10):
        server.show(waiting(), version=version)
        assert playable(page)
    server.show(waiting(), version=11)
    assert not playable(page)


def test_what_happens_is_said_aloud(server: Spoken, page: Page) -> None:
    come_in(server, waiting())
    server.show(choosing(), events=[*waiting()["events"], "Rui passes"], round=waiting()["round"])
    assert page.inner_text("#voice") == "Rui passes. Your turn"


def test_the_title_calls_a_hidden_page(server: Spoken, page: Page) -> None:
    come_in(server, choosing())
    assert page.title() == choosing()["title"]
    page.evaluate(HIDE)
    assert page.title() == f"● your turn – {choosing()['title']}"
    server.show(waiting())
    assert page.title() == waiting()["title"]


def test_who_watches_has_no_hand(server: Spoken, page: Page) -> None:
    come_in(server, choosing())
    server.show(in_phase("playing", "Eva"))
    expect(page.locator("#hand button")).to_have_count(0)
    expect(page.locator("#hand")).to_be_hidden()
    expect(page.locator("#chain")).to_be_visible()


# The end of a round and of a match


def test_one_is_ready_for_the_next_round_once(server: Spoken, page: Page) -> None:
    view = in_phase("scored")
    come_in(server, view)
    assert page.inner_text("#outcome-text") == view["result"]["text"]
    assert page.locator(".seat .tile-picture").count() == sum(len(seat["hand"]) for seat in view["seats"])
    page.dblclick("#next", force=True)
    assert server.hear("next") == {"kind": "next", "turn": view["turn"]}
    assert server.hears_no("next")
    server.say("refused", about="next", code="stale", why="not now")
    page.click("#next")
    assert server.hear("next")["turn"] == view["turn"]


def test_the_end_of_a_match_is_told_until_it_is_closed_and_leaves_nothing(server: Spoken, page: Page) -> None:
    come_in(server, choosing())
    over = in_phase("over")
    server.show(over)
    expect(page.locator("#final")).to_be_visible()
    page.keyboard.press("Escape")
    server.show(over)
    expect(page.locator("#final")).to_be_hidden()
    page.click("#again")
    assert server.hear("start") == {"kind": "start", "level": "counting"}
    expect(page.locator("#again")).to_be_disabled()
    server.show(opening(), turn=over["turn"] + 1, events=[], rounds=[])
    for part in ("#final", "#outcome"):
        expect(page.locator(part)).to_be_hidden()
    for part in ("#chain", "#events"):
        expect(page.locator(f"{part} > *")).to_have_count(0)


# Coming in, and back


def test_nobody_is_connected_before_asking(server: Spoken, page: Page) -> None:
    page.fill("#name", "Ana")
    page.wait_for_timeout(300)
    assert server.sockets == []


@pytest.mark.parametrize(
    ("game", "fields", "wish"),
    [
        ("duplas", {}, {"changes": {}, "seconds": 60}),
        ("duplas", {"#single": True}, {"changes": {"target": None}, "seconds": 60}),
        ("blocos", {"#players": "5", "#seconds": ""}, {"changes": {"players": 5}, "seconds": None}),
        ("puxar", {"#target": "150", "#seconds": "15"}, {"changes": {"target": 150}, "seconds": 15}),
    ],
)
def test_a_table_is_opened_as_chosen(
    server: Spoken, page: Page, game: str, fields: dict[str, Any], wish: dict[str, Any]
) -> None:
    page.fill("#name", " Ana ")
    page.check(f"#games [value={game}]")
    for field, value in fields.items():
        if value is True:
            page.check(field)
        elif field == "#target":
            page.fill(field, value)
        else:
            page.select_option(field, value)
    page.click("#open-form button")
    assert server.hear("open") == {"kind": "open", "preset": game, "name": "Ana", **wish}


@pytest.mark.parametrize("typed", [" wxyz-6789 ", "http://elsewhere:8000/#WXYZ6789"])
def test_a_table_is_found_by_code_or_link(server: Spoken, page: Page, typed: str) -> None:
    page.fill("#name", "Ana")
    page.fill("#code", typed)
    page.press("#code", "Enter")
    assert server.hear("enter")["room"] == "WXYZ6789"
    server.say("refused", about="enter", code="no-room", why="no such room")
    assert page.inner_text("#toasts li") == "no such room"
    expect(page.locator("#join-form button")).to_be_enabled()


def test_the_key_of_a_seat_is_in_no_address_and_on_no_screen(server: Spoken, page: Page) -> None:
    come_in(server, choosing())
    assert KEY not in page.url
    assert KEY not in page.content()
    page.click("#leave")
    page.click("#leave")
    server.say("closed", code="left", why="you left the room")
    assert KEY not in page.evaluate("JSON.stringify({ ...localStorage, ...sessionStorage })")


def test_the_page_works_where_the_browser_keeps_nothing(server: Spoken, page: Page) -> None:
    page.add_init_script(NO_STORAGE)
    page.reload()
    come_in(server, choosing())
    assert playable(page)


def test_a_reload_comes_back_by_itself(server: Spoken, page: Page) -> None:
    come_in(server, choosing())
    page.reload()
    assert server.hear("return") == {"kind": "return", "room": ROOM, "token": KEY}
    let_in(server)
    server.show(choosing())
    assert playable(page)


def test_a_key_that_nobody_knows_is_forgotten(server: Spoken, page: Page) -> None:
    come_in(server, choosing())
    page.reload()
    server.hear("return")
    server.say("refused", about="return", code="no-person", why="nobody has this key")
    expect(page.locator("#start")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0
    page.reload()
    assert server.hears_no("return")


def test_a_second_tab_takes_no_seat_from_the_first(server: Spoken, page: Page) -> None:
    come_in(server, choosing())
    other = page.context.new_page()
    other.add_init_script(f"sessionStorage.setItem('domino-seat-{ROOM}', '{KEY}')")  # as a duplicated tab has it
    other.goto(page.url)
    expect(other.locator("#returns button")).to_have_text(f"Return to your seat at {ROOM} as Ana")
    assert server.hears_no("return")
    assert len(server.sockets) == 1


def test_a_lost_connection_is_tried_again_until_it_is_found(server: Spoken, page: Page) -> None:
    come_in(server, choosing(), version=10)
    for _ in range(2):
        server.sockets[-1].close()
        expect(page.locator("#banner")).to_be_visible()
        assert server.hear("return") == {"kind": "return", "room": ROOM, "token": KEY}
    let_in(server)
    expect(page.locator("#banner")).to_be_hidden()
    server.show(waiting())  # its version is lower than that of the last one
    assert not playable(page)
    assert server.hear("shape")["width"] >= 100


def test_a_server_that_is_silent_is_given_up(server: Spoken, page: Page) -> None:
    page.clock.install()
    page.reload()
    come_in(server, waiting())
    page.clock.run_for(20_000)
    server.hear("ping")
    server.say("pong")
    page.clock.run_for(15_000)
    expect(page.locator("#banner")).to_be_hidden()
    page.clock.run_for(20_000)
    expect(page.locator("#banner")).to_be_visible()


@pytest.mark.parametrize(
    ("code", "title", "back"),
    [
        ("kicked", "You were asked to leave", False),
        ("elsewhere", "You are at this table somewhere else", True),
    ],
)
def test_who_is_out_stays_out_and_sees_nothing_more(
    server: Spoken, page: Page, code: str, title: str, back: bool
) -> None:
    come_in(server, choosing())
    server.say("closed", code=code, why=MARKUP)
    server.sockets[-1].close()
    assert page.inner_text("#notice-title") == title
    assert page.inner_text("#notice-text") == MARKUP
    expect(page.locator(":is(#hand, #chain, #talk, #events, #others) *")).to_have_count(0)
    page.wait_for_timeout(700)  # longer than the first wait of one that is lost
    assert len(server.sockets) == 1
    assert page.is_visible("#notice-return") == back
    if back:
        page.click("#notice-return")
        assert server.hear("return")["token"] == KEY


# Seats, people and chat


@pytest.mark.parametrize(
    ("seat", "button", "wish"),
    [
        (0, ".sit", {"kind": "stand"}),
        (2, ".sit", {"kind": "sit", "seat": 2}),
        (3, ".bot", {"kind": "bot", "seat": 3, "level": "doubles"}),
        (1, ".kick", {"kind": "kick", "person": 2}),
    ],
)
def test_the_host_has_a_wish_for_each_seat(
    server: Spoken, page: Page, seat: int, button: str, wish: dict[str, Any]
) -> None:
    come_in(server, in_phase("lobby"))
    control = page.locator(".place").nth(seat).locator(button)
    if button == ".bot":
        control.select_option("doubles")
    else:
        control.click()
    if button == ".kick":
        assert server.hears_no("kick")
        assert control.inner_text() == "Sure?"
        control.click()
    assert server.hear(wish["kind"]) == wish


def test_who_is_no_host_decides_for_nobody_else(server: Spoken, page: Page) -> None:
    come_in(server, in_phase("lobby", "Eva"))
    for control in (".bot", ".kick", "#begin"):
        expect(page.locator(f"{control} >> visible=true")).to_have_count(0)
    expect(page.locator(".sit >> visible=true")).to_have_count(2)


def test_a_word_half_written_outlives_what_happens_meanwhile(server: Spoken, page: Page) -> None:
    come_in(server, waiting())
    page.locator("#say").press_sequentially("half a w")
    server.show(choosing())
    page.keyboard.type("ord")
    page.keyboard.press("Enter")
    assert server.hear("say") == {"kind": "say", "text": "half a word"}
    assert page.input_value("#say") == ""


def test_a_closed_chat_counts_what_was_not_read(server: Spoken, page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 640})
    come_in(server, waiting())
    said = [{"number": 100 + i, "name": name, "text": "hello"} for i, name in enumerate(["Rui", None, "Eva"])]
    server.show(waiting(), talk=said)
    assert page.inner_text("#unread") == "2"  # a note of the table's is none
    page.click("#side-button")
    page.click("#side-close")
    expect(page.locator("#unread")).to_be_hidden()


@pytest.mark.parametrize("phase", ["lobby", "playing", "over"])
def test_all_that_is_told_is_text(server: Spoken, page: Page, phase: str) -> None:
    def marked(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: MARKUP if key in ("name", "text", "title") else marked(part) for key, part in value.items()}
        return [marked(part) for part in value] if isinstance(value, list) else value

    view = in_phase(phase)
    come_in(server, {**marked(view), "events": [MARKUP], "waiting": [MARKUP]})
    assert page.title() == MARKUP
    assert page.locator("#talk").inner_text().startswith(MARKUP)
    expect(page.locator("[onclick], img")).to_have_count(0)
