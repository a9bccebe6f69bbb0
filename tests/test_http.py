"""Players behind an address: the protocol says all that a view holds, and whatever a bot does, the arena goes on."""

from __future__ import annotations

import http.client
import json
import pickle
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import TABLES

from domino_env import PRESETS, Batch, RuleSet
from domino_env.arena import Duel, Estimate, duel
from domino_env.bots import make_player
from domino_env.observation import Views
from domino_env.players import Forfeit, Player, Streams
from domino_env.remote import protocol
from domino_env.remote.player import HTTPPlayer
from domino_env.remote.server import MAX_REQUEST, PlayerServer

MakeViews = Callable[[RuleSet, int], Views]
DUPLAS = PRESETS["duplas"]
PAGE = Path(__file__).parents[1] / "docs" / "arena.md"


@contextmanager
def running(server: Any) -> Iterator[Any]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def served() -> Iterator[PlayerServer]:
    with running(PlayerServer(lambda rules: make_player("counting", rules), name="counting")) as server:
        yield server


Answer = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


@contextmanager
def bot(answer: Answer, version: str = "HTTP/1.1") -> Iterator[str]:
    """A bot that does with each request what `answer` does; its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = version

        def do_POST(self) -> None:
            answer(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *arguments: object) -> None:
            pass  # a client that hung up

    with running(Server(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def send(handler: BaseHTTPRequestHandler, content: bytes, status: int = 200) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def firsts(handler: BaseHTTPRequestHandler, question: dict[str, Any]) -> None:
    """The first legal move everywhere."""
    send(handler, json.dumps(protocol.answer([view["legal"][0] for view in question["views"]])).encode())


# The protocol


@pytest.mark.parametrize("name", TABLES)
def test_a_message_holds_all_of_a_view(name: str, random_views: MakeViews) -> None:
    rules = TABLES[name]
    views = random_views(rules, 400)
    numbers = np.random.default_rng(1).random(400).tolist()
    message = json.loads(json.dumps(protocol.question(rules, views, numbers)))
    read_rules, read, read_numbers = protocol.read_question(message)
    assert read_rules == rules
    assert read_numbers == numbers
    for field in views.dtype.names or ():
        assert np.array_equal(read[field], views[field]), field


def test_a_message_is_in_words() -> None:
    batch = Batch(DUPLAS, 1, seed=7, observe=False)
    for _ in range(9):
        batch.step(batch.sample_actions())
    (view,) = protocol.question(DUPLAS, batch.views(), [0.25])["views"]
    seat = int(batch.seat[0])
    assert view["seat"] == seat
    assert view["counts"][seat] == len(view["hand"])
    assert all(re.fullmatch(r"\d-\d", tile) for tile in view["hand"] + view["chain"])
    assert all(re.fullmatch(r"\d-\d[LR]", move) for move in view["legal"])
    assert [str(end) for end in view["ends"]] == [view["chain"][0][0], view["chain"][-1][2]]
    assert view["events"][0] == {"kind": "play", "seat": view["starter"], "tile": "6-6", "end": "left", "ends": None}
    assert sum(event["kind"] == "play" for event in view["events"]) == len(view["chain"])
    for event in view["events"]:
        if event["kind"] == "pass":
            assert set(event["ends"]) <= set(view["lacks"][event["seat"]])
        else:
            assert event["tile"] in view["placed"][event["seat"]]
    assert view["random"] == 0.25


def question() -> dict[str, Any]:
    return json.loads(
        json.dumps(protocol.question(DUPLAS, Batch(DUPLAS, 2, seed=1, observe=False).views(), [0.1, 0.2]))
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda q: [], "the request is no object"),
        (lambda q: q | {"protocol": "domino-env/0"}, "protocol 'domino-env/0': this server speaks 'domino-env/1'"),
        (lambda q: {"protocol": q["protocol"]}, "the request has no 'rules'"),
        (lambda q: q | {"rules": q["rules"] | {"colour": 1}}, "rules: "),
        (lambda q: q | {"rules": {}}, "rules: "),
        (lambda q: q | {"rules": q["rules"] | {"target": 0}}, "target=0"),
        (lambda q: q | {"views": 3}, "views is no list"),
        (lambda q: q | {"views": [None] * 5000}, "views: 5000 given; at most 4096 in one request"),
        (lambda q: q["views"][1].pop("hand") and q, "views[1]: it has no 'hand'"),
        (lambda q: q["views"][1].update(hand=["7-7"]) or q, "views[1]: '7-7' is not in the double-6 set"),
        (lambda q: q["views"][1].update(hand="6-6") or q, "views[1]: a set of tiles is no list"),
        (lambda q: q["views"][1].update(seat=4) or q, "views[1]: seat=4 is not a whole number from 0 to 3"),
        (lambda q: q["views"][1].update(seat=True) or q, "views[1]: seat=True is not"),
        (lambda q: q["views"][1].update(counts=[1, 2]) or q, "views[1]: counts has 2 entries, not 4"),
        (lambda q: q["views"][1].update(scores=[1, 2**40]) or q, "views[1]: scores=1099511627776 is not"),
        (lambda q: q["views"][1].update(ends=[6]) or q, "views[1]: "),
        (lambda q: q["views"][1].update(ends=6) or q, "views[1]: "),
        (lambda q: q["views"][1].update(random=1.0) or q, "views[1]: random=1.0 is not a number in [0, 1)"),
        (lambda q: q["views"][1].update(random=float("nan")) or q, "views[1]: random=nan is not"),
        (lambda q: q["views"][1].update(events=[{"kind": "nap"}]) or q, "views[1]: kind='nap' is not one of play"),
        (lambda q: q["views"][1].update(events=[{"kind": "pass", "seat": 0}] * 113) or q, "a round has at most 112"),
        (lambda q: q["views"][1].update(legal=[]) or q, "views: each needs at least one legal move"),
    ],
)
def test_a_wrong_request_is_refused_with_the_place(change: Any, message: str, served: PlayerServer) -> None:
    status, answer = post(served, json.dumps(change(question())).encode())
    assert status == 400
    assert message in answer["error"]


def post(server: PlayerServer, body: bytes, **headers: str) -> tuple[int, Any]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)) as connection:
        connection.request("POST", "/", body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


# The server


def test_a_server_says_who_it_is_and_answers_the_same_request_alike(served: PlayerServer) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", served.server_port, timeout=10)) as connection:
        connection.request("GET", "/")
        assert json.loads(connection.getresponse().read()) == {"protocol": "domino-env/1", "name": "counting"}
        connection.request("POST", "/", json.dumps(question()))  # on the same connection
        first = json.loads(connection.getresponse().read())
    assert post(served, json.dumps(question()).encode()) == (200, first)
    assert [move in view["legal"] for move, view in zip(first["moves"], question()["views"], strict=True)] == [True] * 2


def test_a_server_refuses_what_is_too_long_or_no_json(served: PlayerServer) -> None:
    assert post(served, b"", **{"Content-Length": str(MAX_REQUEST + 1)})[0] == 413
    assert post(served, b"", **{"Content-Length": "many"})[0] == 411
    for body in (b"{", b"\xff", b"[" * 100_000):
        assert post(served, body)[0] == 400


def test_a_servers_player_that_fails_does_not_end_it() -> None:
    class Sad(Player):
        name = "sad"

        def act(self, views: Any, rng: Streams) -> Any:
            if self.rules.target == 6:
                raise RuntimeError("no")
            return np.full(len(views), 55)

    with running(PlayerServer(Sad)) as server:
        assert post(server, json.dumps(question()).encode()) == (500, {"error": "RuntimeError: no"})
        other = question()
        other["rules"]["target"] = 7
        status, answer = post(server, json.dumps(other).encode())
        assert (status, answer["error"][:38]) == (500, "ValueError: the player chose action 55")


# Playing


@pytest.mark.parametrize("name", ["duplas", "mano_a_mano", "blocos-3"])
def test_a_served_player_plays_as_it_does_here(name: str, served: PlayerServer) -> None:
    rules = TABLES[name]
    far = HTTPPlayer(rules, served.url, views=7)
    result = duel(far, "doubles", rules, deals=10, seed=2)
    assert result.forfeits.count == 0
    here = duel("counting", "doubles", rules, deals=10, seed=2)
    assert (result.points, result.win_share, result.wins) == (here.points, here.win_share, here.wins)
    far.close()


def test_an_address_is_a_player_wherever_one_is_named(served: PlayerServer) -> None:
    player = make_player(f"{served.url}/any/path?timeout=3&views=10&name=far", DUPLAS)
    assert isinstance(player, HTTPPlayer)
    assert (player.name, player.timeout, player.views) == ("far", 3.0, 10)
    assert make_player(served.url, DUPLAS).name == served.url
    copy = pickle.loads(pickle.dumps(player))
    views = Batch(DUPLAS, 25, seed=1, observe=False).views()
    assert copy.act(views, Streams.from_seed(1, 25)).tolist() == player.act(views, Streams.from_seed(1, 25)).tolist()
    for one in (player, copy):
        one.close()
    two = duel(f"{served.url}?name=far", "counting", DUPLAS, deals=20, workers=2)
    assert two.points == Estimate(0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("http://", "'http://' is not an address such as http://localhost:8000/path"),
        ("http://host:port", "Port could not be cast"),
        ("http://user@host", "is not an address such as http://localhost:8000/path"),
        ("http://localhost:8000?timeout=0", "timeout=0 is not a number of seconds above 0"),
        ("http://localhost:8000?timeout=true", "timeout=True is not a number of seconds above 0"),
        ("http://localhost:8000?views=0", "views=0 is not a whole number from 1 to 4096"),
        ("http://localhost:8000?tmeout=3", "unexpected keyword argument 'tmeout'"),
        ("ftp://localhost", "unknown player 'ftp://localhost'"),
    ],
)
def test_a_wrong_address_is_refused(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match="player") as caught:
        make_player(spec, DUPLAS)
    assert message in str(caught.value)


def test_random_numbers_reach_the_bot_and_differ() -> None:
    seen: list[float] = []

    def note(handler: BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
        seen.extend(view["random"] for view in asked["views"])
        firsts(handler, asked)

    with bot(note) as address:
        one = duel(address, "random", DUPLAS, deals=5)
        first = seen.copy()
        seen.clear()
        assert duel(address, "random", DUPLAS, deals=5) == one
        assert seen == first
    assert len(set(first)) == len(first) > 100


# Bots that fail


def fights(answer: Answer, version: str = "HTTP/1.1", deals: int = 6, options: str = "timeout=60") -> Duel:
    with bot(answer, version) as address:
        return duel(f"{address}?{options}&name=bot", "random", DUPLAS, deals=deals)


def sometimes(then: Answer, run: int) -> Answer:
    """`then` for the last `run` of every 20 requests, else a good answer."""
    count = iter(range(10**9))
    return lambda handler, asked: (firsts if next(count) % 20 < 20 - run else then)(handler, asked)


def drip(handler: BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(1000):
        handler.wfile.write(b" ")
        time.sleep(0.05)


def hang_up(handler: BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def moves(*texts: Any) -> Answer:
    return lambda handler, asked: send(
        handler, json.dumps({"protocol": protocol.PROTOCOL, "moves": (texts * 500)[: len(asked["views"])]}).encode()
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda handler, asked: time.sleep(1), "no answer within 0.3 s"),
        (drip, "no answer within 0.3 s"),
        (hang_up, "cannot be reached: "),
        (lambda handler, asked: send(handler, b"broken", 500), "answered with HTTP status 500: broken"),
        (lambda handler, asked: send(handler, b"", 302), "answered with HTTP status 302"),
        (lambda handler, asked: send(handler, b"{"), "Expecting property name"),
        (lambda handler, asked: send(handler, b"[" * 100_000), "recursion"),
        (lambda handler, asked: send(handler, b" " * (1 << 21)), "the answer is longer than 1048576 bytes"),
        (lambda handler, asked: send(handler, b"[]"), "the answer is no object"),
        (lambda handler, asked: send(handler, b'{"protocol": "domino-env/1"}'), "the answer has no 'moves'"),
        (lambda handler, asked: send(handler, b'{"protocol": 2, "moves": []}'), "the answer's protocol is 2"),
        (
            lambda handler, asked: send(handler, b'{"protocol": "domino-env/1", "moves": [1, 2, 3]}'),
            "the answer has 3 moves for ",
        ),
    ],
)
def test_a_request_without_an_answer_forfeits_its_games(answer: Answer, reason: str) -> None:
    run = 2 if answer is hang_up else 1  # after the first it is asked again: it might have waited for too long
    seconds = 0.3 if "0.3 s" in reason else 60
    result = fights(sometimes(answer, run), options=f"timeout={seconds}&views=2")
    assert 0 < result.forfeits.count < result.games == 12
    assert all(reason.lower() in text.lower() for text in result.forfeits.reasons)
    assert result.wins + result.draws > 0


@pytest.mark.parametrize("move", ["7-7L", "", None, 5, ["6-6"], {"tile": "6-6"}, "x" * 5000])
def test_an_illegal_move_forfeits_its_game_alone(move: Any) -> None:
    def answer(handler: BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
        chosen = [view["legal"][0] if view["random"] < 0.95 else move for view in asked["views"]]
        send(handler, json.dumps(protocol.answer(chosen)).encode())

    result = fights(answer, deals=20)
    assert 0 < result.forfeits.count < result.games
    assert all("illegal move" in text and "; legal: " in text for text in result.forfeits.reasons)


def test_a_bot_that_does_not_answer_is_given_up_after_three_requests() -> None:
    asked: list[Any] = []

    def answer(handler: BaseHTTPRequestHandler, views: dict[str, Any]) -> None:
        asked.append(views)
        time.sleep(1)

    result = fights(answer, deals=100, options="timeout=0.2&views=5")
    assert 0 < len(asked) <= 3
    assert result.forfeits.count == result.games == 200
    assert result.win_share == Estimate(0.0, 0.0, 0.0)
    assert [text.split(": ", 1)[1] for text in result.forfeits.reasons] == [
        "no answer within 0.2 s",
        "not asked any more: 3 requests in a row failed",
    ]


def test_a_bot_that_nobody_runs_is_given_up() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        result = duel(f"http://127.0.0.1:{free.getsockname()[1]}", "random", DUPLAS, deals=3)
    assert result.forfeits.count == 6
    assert "cannot be reached: " in result.forfeits.reasons[0]


def test_outside_the_arena_a_forfeit_is_an_error() -> None:
    with bot(moves("7-7L")) as address, pytest.raises(Forfeit, match=r"illegal move '7-7L'; legal: 6-6$"):
        make_player(address, DUPLAS).act(Batch(DUPLAS, 1, seed=7, observe=False).views(), Streams.from_seed(1, 1))


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_connections_are_kept_or_opened_anew(version: str) -> None:
    ports: list[int] = []

    def answer(handler: BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
        ports.append(handler.client_address[1])
        firsts(handler, asked)
        if len(ports) == 3:
            handler.close_connection = True  # without a word of it

    result = fights(answer, version, options="timeout=5")
    assert result.forfeits.count == 0
    assert len(set(ports)) == (2 if version == "HTTP/1.1" else len(ports))


# The page


def test_the_bot_of_the_page_plays(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (source,) = re.findall(r"^```py\n(# bot\.py\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    file = tmp_path / "bot.py"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "8000" in source
    file.write_text(source.replace("8000", str(port)), encoding="utf-8")
    process = subprocess.Popen([sys.executable, str(file)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        result = duel(f"http://127.0.0.1:{port}", "doubles", DUPLAS, deals=30)
        assert result.forfeits.count == 0
        assert result.wins > 5
    finally:
        process.kill()
        process.wait()


def test_the_message_of_the_page_is_one() -> None:
    text = PAGE.read_text(encoding="utf-8")
    asked, answered = (
        json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    )
    rules, views, randoms = protocol.read_question(asked)
    assert json.loads(json.dumps(protocol.question(rules, views, randoms))) == asked
    actions, reasons = protocol.read_answer(answered, views)
    assert (len(actions), reasons) == (1, {})
