"""Serve a player over HTTP, so that it can be asked for moves from elsewhere."""

from __future__ import annotations

import argparse
from functools import partial

from .common import address_from, address_options


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("player", metavar="PLAYER", help="a name or a spec string")
    address_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    host, port = address_from(arguments)
    from ..bots import make_player
    from ..remote.server import PlayerServer
    from ..rules import PRESETS

    make_player(arguments.player, PRESETS["duplas"])  # an unknown player is refused now, not at the first request
    make = partial(make_player, arguments.player)
    with PlayerServer(make, name=arguments.player, host=host, port=port) as server:
        print(f"{arguments.player} plays at {server.url} (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0
