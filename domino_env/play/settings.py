"""How a house of tables is kept: the times and the bounds, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Times in seconds."""

    #: The players that people may seat, by name or spec string.
    levels: tuple[str, ...] = ("random", "heaviest", "doubles", "variety", "counting", "search", "champion")
    #: Who plays for a person that is away or took too long.
    substitute: str = "counting"
    #: A bot moves no sooner than this after the move before, so that people can follow.
    pause: float = 1.0
    #: A bot that is ready gets so long for a move; then its first legal one is played.
    thinking: float = 10.0
    #: A bot gets so long to be made, compiled and loaded.
    making: float = 300.0
    #: A person whose connection is lost may be away for so long before the substitute plays at once.
    grace: float = 30.0
    #: So long stands the result of a round, unless everybody is ready sooner.
    between: float = 20.0
    #: A room with nobody in it is closed after so long.
    empty: float = 120.0
    #: A connection has so long to enter a room before it is closed.
    entering: float = 300.0
    #: Time is looked at so often.
    tick: float = 0.1
    #: Processes in which bots think.
    thinkers: int = 2
    #: Make every level once for `duplas` when the server starts, so that what it compiles is there.
    rehearse: bool = True
    #: Connections in all; further ones are turned away.
    connections: int = 4000
    rooms: int = 1000
    people: int = 32  # in a room
    talk: int = 60  # lines kept of it
    message_bytes: int = 4096
    #: Messages a connection may send in one go, and then in a second; past as many refusals in a row it is closed.
    burst: int = 40
    rate: float = 20.0
    floods: int = 200
    #: Rooms opened, and wrong codes or tokens tried, by one address in one go, and then in a minute.
    openings: int = 30
    guesses: int = 10
