"""Rooms to play in without a server: time stands still unless it is given."""

from __future__ import annotations

from typing import Any

import pytest

from domino_env import PRESETS
from domino_env.play import Person, Refused, Room, Settings
from domino_env.play.frames import frame
from domino_env.rules import RuleSet

QUICK = Settings(pause=0.0, between=5.0, grace=10.0, empty=30.0)


def room_of(*names: str, rules: RuleSet = PRESETS["duplas"], seconds: float | None = 20.0) -> tuple[Room, list[Person]]:
    """A room at time 0 with these people on its first seats, the first one its host."""
    room = Room("ABCD2345", rules, seconds, QUICK, 0.0)
    people = [room.enter(name, 0.0) for name in names]
    for seat, person in enumerate(people):
        do(room, person, "sit", seat=seat)
    return room, people


def do(room: Room, person: Person, kind: str, now: float = 0.0, /, **fields: Any) -> None:
    room.do(person, {"kind": kind, **fields}, now)


def started(*names: str, **options: Any) -> tuple[Room, list[Person]]:
    room, people = room_of(*names, **options)
    do(room, people[0], "start", level="doubles")
    return room, people


def refused(code: str, room: Room, person: Person, kind: str, /, **fields: Any) -> str:
    """Ask for what must be refused, and see that nobody's screen changes by it."""
    before = [frame(room, one, 0.0) for one in room.people.values()]
    with pytest.raises(Refused) as found:
        do(room, person, kind, **fields)
    assert found.value.code == code
    assert [frame(room, one, 0.0) for one in room.people.values()] == before
    return found.value.why


def until_turn(room: Room, person: Person, now: float = 0.0) -> None:
    """Let the bots play until it is this person's turn; the others play their first legal move."""
    while room.acting != room.seat_of(person):
        move_on(room, now)


def move_on(room: Room, now: float = 0.0) -> None:
    """One move of whoever is to act, or the next round."""
    if room.phase == "scored":
        for person in room.awaited:
            do(room, person, "next", now, turn=room.turn)
        if room.phase == "scored":
            room.advance(now + QUICK.between)
        return
    assert room.acting is not None
    holder = room.seats[room.acting].person
    thought = room.thought(now)
    if thought is not None:
        room.bot_plays(thought, room.legal_moves()[-1].action, "", now)
    else:
        assert holder is not None
        do(room, holder, "play", now, turn=room.turn, move=str(room.legal_moves()[0]))


def play_on(room: Room, phase: str, now: float = 0.0) -> None:
    while room.phase != phase:
        move_on(room, now)
