"""Serve a player over HTTP, so that it can be asked for moves from elsewhere."""

from __future__ import annotations

import argparse
from functools import partial

from .common import whole_number


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("player", metavar="PLAYER", help="a name or a spec string")
    parser.add_argument("--port", type=whole_number, default=8000, metavar="N", help="0: any free one (default 8000)")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="NAME",
        help="address to listen on (default 127.0.0.1: this machine alone)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    if arguments.port > 65535:
        raise ValueError(f"--port {arguments.port}: ports go from 0 to 65535")
    from ..bots import make_player
    from ..remote.server import PlayerServer
    from ..rules import PRESETS

    make_player(arguments.player, PRESETS["duplas"])  # an unknown player is refused now, not at the first request
    make = partial(make_player, arguments.player)
    with PlayerServer(make, name=arguments.player, host=arguments.host, port=arguments.port) as server:
        print(f"{arguments.player} plays at {server.url} (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0
