"""A player behind an address: asks a bot, written in any language, over HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from .._checks import whole
from ..observation import Views
from ..players import Forfeit, Player, Streams
from ..rules import RuleSet
from .protocol import MAX_VIEWS, question, read_answer

#: After so many failed requests in a row a bot is not asked any more.
PATIENCE: Final = 3
_MAX_ANSWER: Final = 1 << 20
_STALE: Final = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class _Failed(Exception):
    """A request that got no answer."""


class HTTPPlayer(Player):
    """Asks the bot at an address for its moves; the protocol is in docs/arena.md.

    Where the bot errs, is late or answers with an illegal move, `act` raises `Forfeit`, which
    costs it those games in the arena. After `PATIENCE` failed requests in a row it is not asked again.

    Args:
        rules: what it plays.
        address: ``http://host:port`` or ``http://host:port/path``.
        timeout: seconds that one request may take in all.
        views: most views in one request.
        name: what tables of results call it; its address unless given.
    """

    def __init__(
        self, rules: RuleSet, address: str, timeout: float = 10.0, views: int = 256, name: str | None = None
    ) -> None:
        super().__init__(rules)
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise ValueError(f"{address!r}: {error}") from None
        if parts.scheme != "http" or not host or "@" in parts.netloc:
            raise ValueError(f"{address!r} is not an address such as http://localhost:8000/path")
        if isinstance(timeout, bool | str) or not 0 < timeout < float("inf"):
            raise ValueError(f"timeout={timeout!r} is not a number of seconds above 0")
        self.name = address if name is None else str(name)
        self.timeout = float(timeout)
        self.views = whole("views", views, 1, MAX_VIEWS)
        self._host, self._port, self._path = host, port or 80, parts.path or "/"
        self._connection: http.client.HTTPConnection | None = None
        self._failures = 0

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """The bot's moves, (n,).

        Raises:
            Forfeit: some views got no legal move.
        """
        randoms = rng.random()
        actions, reasons = np.zeros(len(views), np.int64), dict[int, str]()
        for start in range(0, len(views), self.views):
            part = slice(start, start + self.views)
            try:
                chosen, refused = self._moves(views[part], randoms[part])
            except _Failed as error:
                reasons |= dict.fromkeys(range(start, min(start + self.views, len(views))), str(error))
                continue
            actions[part] = chosen
            reasons |= {start + i: reason for i, reason in refused.items()}
        if reasons:
            raise Forfeit(f"player {self.name!r}: {next(iter(reasons.values()))}", actions, reasons)
        return actions

    def _moves(self, views: Views, randoms: npt.NDArray[np.float64]) -> tuple[list[int], dict[int, str]]:
        if self._failures >= PATIENCE:
            raise _Failed(f"not asked any more: {PATIENCE} requests in a row failed")
        body = json.dumps(question(self.rules, views, randoms.tolist()), separators=(",", ":")).encode()
        try:
            found = read_answer(self._json(body), views)
        except (ValueError, RecursionError) as error:
            self._failures += 1
            raise _Failed(str(error)) from None
        except _Failed:
            self._failures += 1
            raise
        self._failures = 0
        return found

    def _json(self, body: bytes) -> Any:
        status, content = self._exchange(body)
        if status != 200:
            text = content[:200].decode("utf-8", "replace")
            raise _Failed(f"answered with HTTP status {status}: {text}")
        return json.loads(content)

    def _exchange(self, body: bytes) -> tuple[int, bytes]:
        """Send a request and read the answer, in `timeout` seconds altogether."""
        deadline = time.monotonic() + self.timeout
        while True:
            reused = self._connection is not None
            late = threading.Event()
            try:
                connection = self._connected(deadline)
                assert connection.sock is not None
                # A socket's own timeout is for each read alone: a bot that sends a byte a second would never be late.
                timer = threading.Timer(max(0.0, deadline - time.monotonic()), _hang_up, (connection.sock, late))
                timer.daemon = True
                timer.start()
                try:
                    found = self._post(connection, body)
                finally:
                    timer.cancel()
                if late.is_set():
                    raise TimeoutError  # what was read may be half an answer
                return found
            except _Failed:
                self.close()
                raise
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if late.is_set() or isinstance(error, TimeoutError) or time.monotonic() >= deadline:
                    raise _Failed(f"no answer within {self.timeout:g} s") from None
                if not (reused and isinstance(error, _STALE)):  # the bot may close a connection between two requests
                    reason = str(error) or type(error).__name__
                    raise _Failed(f"cannot be reached: {reason}") from None

    def _connected(self, deadline: float) -> http.client.HTTPConnection:
        left = max(0.001, deadline - time.monotonic())
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self._host, self._port, timeout=left)
            self._connection.connect()
        assert self._connection.sock is not None
        self._connection.sock.settimeout(left)
        return self._connection

    def _post(self, connection: http.client.HTTPConnection, body: bytes) -> tuple[int, bytes]:
        connection.request("POST", self._path, body, {"Content-Type": "application/json"})
        if hasattr(
            socket, "TCP_QUICKACK"
        ):  # simple bots send head and body apart: the body waits for the head's receipt
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        response = connection.getresponse()
        content = response.read(_MAX_ANSWER + 1)
        if len(content) > _MAX_ANSWER:
            raise _Failed(f"the answer is longer than {_MAX_ANSWER} bytes")
        if response.length:
            raise http.client.IncompleteRead(content, response.length)
        if response.will_close:
            self.close()
        return response.status, content

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None:
            self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None}


def _hang_up(sock: socket.socket, late: threading.Event) -> None:
    late.set()
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is closed already
