"""Serve tables in the browser: rooms in which people play one another and bots."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import signal

from .common import address_from, address_options


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    address_options(parser)
    parser.add_argument(
        "--bot",
        action="append",
        default=[],
        metavar="PLAYER",
        dest="bots",
        help="a further player that people may seat, by spec string; may be given again",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    host, port = address_from(arguments)
    try:
        from ..play import Settings, serve
    except ModuleNotFoundError as error:
        if error.name != "aiohttp":
            raise
        raise ValueError("the table needs aiohttp: pip install 'domino-env[play]'") from None
    for bot in arguments.bots:
        check_bot(bot)
    settings = Settings()
    settings = dataclasses.replace(settings, levels=tuple(dict.fromkeys((*settings.levels, *arguments.bots))))
    print("getting ready …", flush=True)

    async def main() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with contextlib.suppress(NotImplementedError):  # on Windows
            loop.add_signal_handler(signal.SIGTERM, task.cancel)
        await serve(settings, host, port, _tell)

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
    print()
    return 0


def check_bot(spec: str) -> None:
    """Refuse a player that no game can be played with, now and not when somebody seats it."""
    from ..bots import make_player
    from ..rules import PRESETS

    errors = []
    for rules in PRESETS.values():
        try:
            player = make_player(spec, rules)
        except ValueError as error:
            errors.append(error)
            continue
        if player.sees_all:
            raise ValueError(f"--bot {spec}: {player.name} sees all hands, and nobody plays against that")
        return
    raise errors[0]


def _tell(address: str) -> None:
    print(f"the tables are open at {address} (Ctrl-C closes them)", flush=True)
