"""Serves a player over HTTP, so that it can be asked for moves from elsewhere."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import numpy as np

from .._rng import seed_rows
from ..batch import check_actions
from ..observation import Views
from ..players import Player, Streams
from ..rules import RuleSet
from .protocol import PROTOCOL, answer, move_names, read_question

#: A request's most bytes: `protocol.MAX_VIEWS` views of the largest table.
MAX_REQUEST: Final = 64 << 20
_MAX_RULE_SETS: Final = 16
_IDLE_SECONDS: Final = 60.0
_PURPOSE: Final = 2


class PlayerServer(ThreadingHTTPServer):
    """Answers requests for a player's moves until `shutdown`.

    The player's random numbers follow from each view's own number, so that the same request gets
    the same answer.

    Args:
        make: makes the player for the rules of a request.
        name: what it says it serves.
        host: the address to listen on; the default can be reached from this machine alone.
        port: 0 takes any free port; `url` says which.
    """

    daemon_threads = True

    def __init__(
        self, make: Callable[[RuleSet], Player], *, name: str = "player", host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._make, self.name = make, name
        self._players: dict[RuleSet, Player] = {}
        self._lock = threading.Lock()  # players need not bear two requests at once
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind; unlike the standard library's, without asking a name server who this machine is."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    @property
    def url(self) -> str:
        """Where it can be reached."""
        return f"http://{self.server_name}:{self.server_port}"

    def moves(self, rules: RuleSet, views: Views, randoms: list[float]) -> list[str]:
        """The names of the player's moves."""
        states = np.zeros((len(views), 4), np.uint32)
        seed_rows([int(random * 2**53) for random in randoms], np.arange(len(views)), states, purpose=_PURPOSE)
        with self._lock:
            if rules not in self._players:
                if len(self._players) == _MAX_RULE_SETS:
                    self._players.pop(next(iter(self._players)))
                self._players[rules] = self._make(rules)
            if not len(views):
                return []
            actions = self._players[rules].act(views, Streams(states))
        return move_names(views, check_actions(actions, len(views)).tolist())


class _Handler(BaseHTTPRequestHandler):
    server: PlayerServer
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    wbufsize = -1  # an answer leaves in one piece; in two, the second would wait for the first's receipt
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._send(200, {"protocol": PROTOCOL, "name": self.server.name})

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            self._refuse(411, "a request needs a Content-Length")
        elif len(length) > 12 or int(length) > MAX_REQUEST:
            self._refuse(413, f"a request has at most {MAX_REQUEST} bytes, not {length[:20]}")
        else:
            self._answer(self.rfile.read(int(length)))

    def _answer(self, body: bytes) -> None:
        try:
            rules, views, randoms = read_question(json.loads(body))
            if not np.all(views["legal"].any(axis=1)):
                raise ValueError("views: each needs at least one legal move")
        except (ValueError, RecursionError) as error:
            self._send(400, {"error": f"{error}"})
            return
        try:
            moves = self.server.moves(rules, views, randoms)
        except Exception as error:  # the player's own: whoever asked is told, and the server goes on
            self._send(500, {"error": f"{type(error).__name__}: {error}"})
        else:
            self._send(200, answer(moves))

    def _refuse(self, status: int, message: str) -> None:
        self.close_connection = True  # the request's body is not read
        self._send(status, {"error": message})

    def _send(self, status: int, message: dict[str, Any]) -> None:
        content = json.dumps(message).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        """Keep quiet."""
