"""What one person's screen shows of a room: all of it in one message, and nothing that this person may not know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..events import Event
from ..render.facts import event_text, title_of
from ..render.facts import table_of as facts_of
from ..render.layout import lay_chain, opening_index
from .room import OVER, PLAYING, SCORED, Person, Room

#: The most rounds of a match that are told; the latest ones.
_ROUNDS: Final = 100
#: The page draws no half of a tile larger than this, in pixels.
_MOST_UNIT: Final = 128


def frame(room: Room, person: Person, now: float) -> dict[str, Any]:
    """The ``"state"`` message for a person: plain numbers, texts, lists and objects."""
    seat = room.seat_of(person)
    return {
        "kind": "state",
        "version": room.version,
        "turn": room.turn,
        "room": room.code,
        "phase": room.phase,
        **_rules(room),
        "levels": list(room.settings.levels),
        "you": {"person": person.number, "name": person.name, "seat": seat, "host": person is room.host},
        "people": [
            {
                "person": other.number,
                "name": other.name,
                "seat": room.seat_of(other),
                "here": other.here,
                "host": other is room.host,
            }
            for other in room.people.values()
        ],
        **_game(room, person, seat),
        "left": None if (left := room.left(now)) is None else round(left, 1),
        "waiting": [other.name for other in room.awaited] if room.phase == SCORED else [],
        "rounds": [scored._asdict() for scored in room.rounds[-_ROUNDS:]],
        "talk": [line._asdict() for line in room.talk],
    }


def _rules(room: Room) -> dict[str, Any]:
    rules = room.rules
    return {
        "preset": room.preset,
        "players": rules.players,
        "pairs": rules.pairs,
        "target": rules.target,
        "sides": [list(range(side, rules.players, rules.num_sides)) for side in range(rules.num_sides)],
        "seconds": room.seconds,
    }


def _game(room: Room, person: Person, seat: int | None) -> dict[str, Any]:
    """The round on the table. A hand is its holder's alone until the round is over, a drawn tile whose drew it."""
    game, rules = room.game, room.rules
    if game is None:
        return {
            "title": room.preset,
            "seats": [_seat(room, number, 0, None, None) for number in range(rules.players)],
            "hand": [],
            "legal": [],
            "ends": None,
            "chain": {"width": 0, "height": 0, "tiles": []},
            "boneyard": rules.boneyard_size or None,
            "round": 1,
            "multiplier": 1,
            "scores": [0] * rules.num_sides,
            "events": [],
            "result": None,
            "winner": None,
        }
    view = game.view(0 if seat is None else seat)
    # A watcher sees what seat 0 sees, less what only that seat does.
    events = view.events if seat is not None else tuple(_without_drawn_tile(event) for event in view.events)
    hands: Sequence[list[str] | None] = view.hands or [None] * rules.players
    did = {event.seat: _did(event) for event in events}
    result = game.result
    return {
        "title": title_of(facts_of(view)),
        "seats": [
            _seat(room, number, view.counts[number], hands[number], did.get(number)) for number in range(rules.players)
        ],
        "hand": [] if seat is None else view.hand,
        "legal": [str(move) for move in view.legal_moves] if seat is not None and room.phase == PLAYING else [],
        "ends": None if view.ends is None else list(view.ends),
        "chain": _chain(view.chain, events, person),
        "boneyard": view.boneyard if rules.boneyard_size else None,
        "round": len(room.rounds) + (room.phase == PLAYING),
        "multiplier": view.multiplier,
        "scores": view.scores,
        "events": [event_text(event._replace(seat=0), [who]) for event, who in zip(events, room.doers, strict=True)],
        "result": None
        if result is None
        else {
            "text": room.rounds[-1].text,
            "side": result.side,
            "points": result.points,
            "pips": list(result.pips),
        },
        "winner": room.match.winner if room.phase == OVER and room.match is not None else None,
    }


def _seat(room: Room, number: int, tiles: int, hand: list[str] | None, did: str | None) -> dict[str, Any]:
    holder = room.seats[number]
    return {
        "seat": number,
        "person": None if holder.person is None else holder.person.number,
        "bot": holder.bot,
        "name": room.name_of(number),
        "tiles": tiles,
        "acting": room.acting == number,
        "substitute": holder.person is not None and holder.person.away,
        "hand": hand,
        "did": did,
    }


def _without_drawn_tile(event: Event) -> Event:
    return event._replace(tile=None) if event.kind == "draw" else event


def _did(event: Event) -> str:
    if event.kind != "play":
        return event.kind
    tile, end = event.tile or "", event.end or ""
    return tile if event.ends is None else tile + end[0].upper()


def _chain(chain: list[str], events: Sequence[Event], person: Person) -> dict[str, Any]:
    """The chain laid for this person's screen, in halves."""
    if not chain:
        return {"width": 0, "height": 0, "tiles": []}
    width, height = person.shape
    last = next(0 if event.end == "left" else len(chain) - 1 for event in reversed(events) if event.kind == "play")
    layout = lay_chain(
        chain, width, height, opening=opening_index(events), max_unit=min(width / 5, height / 5, _MOST_UNIT)
    )
    tiles = [
        {"tile": list(place.numbers or ()), "x": place.x, "y": place.y, "turn": place.turn, "last": number == last}
        for number, place in enumerate(layout.tiles)
    ]
    return {"width": layout.width, "height": layout.height, "tiles": tiles}
