"""The page of the table, in a browser: needs Debian's package `chromium`, and is run by `-m browser` alone."""

from __future__ import annotations

import asyncio

import pytest
from play_pages import Served, page_of
from playwright.sync_api import Browser, Page, expect

from domino_env import notation

pytestmark = pytest.mark.browser
SCRIPT = '"><img src=x onerror=window.hurt=1>'


def open_table(page: Page, name: str, preset: str, target: int) -> str:
    """Open a table, and give the link to it."""
    page.fill("#name", name)
    page.check(f"#games input[value={preset}]")
    page.fill("#target", str(target))
    page.click("#open-form button.primary")
    expect(page.locator("#lobby")).to_be_visible()
    return page.url


def come_in(page: Page, name: str) -> None:
    page.fill("#name", name)
    page.click("#accept")
    expect(page.locator("#lobby, #felt").locator("visible=true")).to_have_count(1)


def move_if_asked(page: Page) -> bool:
    """Play the first tile, go on to the next round, or nothing; whether there was something to do."""
    if page.locator("#question").is_visible():
        page.click("#to-left")
        return True
    for button in ("#hand button.playable", "#next:not([disabled])"):
        found = page.locator(f"{button} >> visible=true")
        if found.count():
            found.first.click()
            return True
    return False


def play_on(*pages: Page) -> None:
    """Play until the match is over; the host's page first."""
    while pages[0].locator("#again").is_hidden():
        moved = [move_if_asked(page) for page in pages]
        if not any(moved):
            pages[0].wait_for_timeout(20)


def test_two_people_play_two_matches(browser: Browser, served: Served) -> None:
    with page_of(browser, served.address) as ana:
        link = open_table(ana, "Ana", "mano_a_mano", 3)
        room = served.tables.house.find(link.partition("#")[2])
        with page_of(browser, link, viewport={"width": 360, "height": 640}) as rui:
            come_in(rui, "Rui")
            rui.get_by_role("button", name="Sit here").click()
            for match in range(2):
                ana.click("#begin" if match == 0 else "#again")
                expect(ana.locator("#room")).to_have_attribute("data-phase", "playing")
                play_on(ana, rui)
                assert room.match is not None
                assert room.match.winner is not None
                winner = ("Ana", "Rui")[room.match.winner]
                for page in (ana, rui):
                    expect(page.locator("#final-title")).to_have_text(f"{winner} won the match")
                    rows = page.locator("#final-rows tr:not(.told)")
                    expect(rows).to_have_count(len(room.rounds))
                    cells = rows.last.locator("td").all_inner_texts()
                    assert cells == [str(len(room.rounds)), *map(str, room.match.scores)]
                    page.click("#final-close")
                    expect(page.locator("#chain > *").first).to_be_visible()
                shown = ana.locator("#events li").all_inner_texts()
                assert shown[-1].endswith(("passes", "on the left", "on the right"))
                assert len(shown) == len(room.match.games[-1].events)
            with ana.expect_download() as download:
                ana.click("#save")
            assert notation.loads(download.value.path().read_text()) == room.match


def test_a_reload_keeps_the_seat_and_another_tab_sees_no_hand(browser: Browser, served: Served) -> None:
    with page_of(browser, served.address) as ana:
        link = open_table(ana, "Ana", "duplas", 6)
        ana.click("#begin")
        hand = ana.locator("#hand button")
        expect(ana.locator("#hand button.playable").first).to_be_visible()
        held = [button.get_attribute("aria-label") for button in hand.all()]
        ana.reload()
        expect(ana.locator("#hand button.playable").first).to_be_visible()
        assert [button.get_attribute("aria-label") for button in hand.all()] == held
        other = ana.context.new_page()
        other.goto(link)
        come_in(other, "Eva")
        expect(other.locator("#felt")).to_be_visible()
        expect(other.locator("#hand button")).to_have_count(0)
        expect(ana.locator("#hand button.playable").first).to_be_visible()
        expect(ana.locator("#banner")).to_be_hidden()


def test_what_people_write_is_shown_as_they_wrote_it(browser: Browser, served: Served) -> None:
    name = SCRIPT[:20]
    with page_of(browser, served.address) as ana:
        open_table(ana, name, "blocos", 10)
        ana.fill("#say", SCRIPT)
        ana.press("#say", "Enter")
        expect(ana.locator("#talk")).to_contain_text(SCRIPT)
        ana.fill("#rename", '<svg onload="hurt">')
        ana.press("#rename", "Enter")
        expect(ana.locator("#people-list")).to_contain_text('<svg onload="hurt">')
        ana.click("#begin")
        play_on(ana)
        assert ana.evaluate("window.hurt") is None
        assert ana.locator("#room img, #room bdi svg").count() == 0


def test_a_lost_connection_is_found_again(browser: Browser, served: Served) -> None:
    with page_of(browser, served.address) as ana:
        link = open_table(ana, "Ana", "duplas", 6)
        code = link.partition("#")[2]
        ana.click("#begin")
        expect(ana.locator("#hand button.playable").first).to_be_visible()
        (line,) = served.tables.lines[code].values()
        asyncio.run_coroutine_threadsafe(line.socket.close(), served.loop).result()
        while list(served.tables.lines[code].values()) in ([], [line]):
            ana.wait_for_timeout(20)
        expect(ana.locator("#hand button.playable").first).to_be_visible()
        ana.locator("#hand button.playable").first.click()
        expect(ana.locator("#banner")).to_be_hidden()
