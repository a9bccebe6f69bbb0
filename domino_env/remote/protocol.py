"""The messages between the arena and a player behind an address, as JSON values; docs/arena.md shows them.

Everything is written in words: tiles ``"4-6"`` (low half first), moves ``"6-4L"``, seats numbered as
at the table. A message says its protocol's version, which rises when the meaning of anything changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from ..events import moves_of, tile_names, view_of
from ..observation import Views, new_views
from ..rules import RuleSet, preset_of
from ..state import DRAW, EVENT_NAMES, HIDDEN, NONE, PASS, PLAY
from ..tiles import parse_move, parse_tile, tile_set

PROTOCOL: Final = "domino-env/1"
#: Most views in one request.
MAX_VIEWS: Final = 4096

T = TypeVar("T")


def question(rules: RuleSet, views: Views, randoms: Sequence[float]) -> dict[str, Any]:
    """The request for a move in each of `views`."""
    return {
        "protocol": PROTOCOL,
        "rules": {"preset": preset_of(rules)[0], **dataclasses.asdict(rules)},
        "views": [view_message(rules, views[i : i + 1], float(random)) for i, random in enumerate(randoms)],
    }


def view_message(rules: RuleSet, record: Views, random: float) -> dict[str, Any]:
    """What a seat knows, from one `Views` record; `random` is a number in [0, 1) to make choices with."""
    view, seen, players = view_of(rules, record), record[0], rules.players

    def at_table(relative: int) -> int | None:
        return None if relative == NONE else (int(relative) + view.seat) % players

    def by_seat(values: Any) -> list[Any]:
        return list(np.roll(np.asarray(values)[:players], view.seat).tolist())

    def numbers(sets: Any) -> list[list[int]]:
        return [[n for n in range(rules.max_pip + 1) if word >> n & 1] for word in by_seat(sets)]

    return {
        "seat": view.seat,
        "hand": view.hand,
        "legal": [str(move) for move in view.legal_moves],
        "ends": view.ends and list(view.ends),
        "end_owners": view.ends and [at_table(seen["left_owner"]), at_table(seen["right_owner"])],
        "chain": view.chain,
        "events": [event._asdict() for event in view.events],
        "placed": [tile_names(word) for word in by_seat(seen["placed"])],
        "counts": view.counts,
        "boneyard": view.boneyard,
        "starter": view.starter,
        "last": at_table(seen["last"]),
        "drawer": at_table(seen["drawer"]),
        "lacks": numbers(seen["lacks"][0]),
        "at_most_one": numbers(seen["lacks"][1]),
        "scores": view.scores,
        "multiplier": view.multiplier,
        "round": int(seen["round"]),
        "random": random,
    }


def read_question(message: Any) -> tuple[RuleSet, Views, list[float]]:
    """The rules, the views and their random numbers of a request; ValueError says what is wrong with it."""
    fields = _object(message, "the request")
    if (version := fields.get("protocol")) != PROTOCOL:
        raise ValueError(f"protocol {version!r}: this server speaks {PROTOCOL!r}")
    given = dict(_object(_get(fields, "rules", "the request"), "rules"))
    given.pop("preset", None)
    try:
        rules = RuleSet(**given)
    except TypeError as error:
        raise ValueError(f"rules: {error}") from None
    messages = _list(_get(fields, "views", "the request"), "views")
    if len(messages) > MAX_VIEWS:
        raise ValueError(f"views: {len(messages)} given; at most {MAX_VIEWS} in one request")
    views, randoms = new_views(rules, len(messages)), []
    for i, one in enumerate(messages):
        try:
            randoms.append(_read_view(rules, _object(one, "a view"), views[i]))
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            raise ValueError(f"views[{i}]: {error}") from None
    return rules, views, randoms


def _read_view(rules: RuleSet, view: Mapping[str, Any], record: Any) -> float:
    """Fill `record` from a view's message; its random number."""
    players, sides = rules.players, rules.num_sides
    seat = _number(_get(view, "seat"), "seat", players)

    def relative(name: str, value: Any) -> int:
        return NONE if value is None else (_number(value, name, players) - seat) % players

    def by_seat(name: str, read: Callable[[Any], T], count: int = players) -> list[T]:
        values = _list(_get(view, name), name)
        if len(values) != count:
            raise ValueError(f"{name} has {len(values)} entries, not {count}")
        return [read(values[(i + seat) % count]) for i in range(count)]

    def tiles(value: Any) -> int:
        return tile_set(parse_tile(tile, rules.max_pip) for tile in _list(value, "a set of tiles"))

    def numbers(value: Any) -> int:
        return sum({1 << _number(n, "a number", rules.max_pip + 1) for n in _list(value, "a set of numbers")})

    record["seat"] = seat
    record["hand"] = tiles(_get(view, "hand"))
    legal = [parse_move(move, rules.max_pip) for move in _list(_get(view, "legal"), "legal")]
    for end in (0, 1):
        record["legal"][end] = tile_set(tile for tile, at in legal if (at or 0) == end)
    record["to_act"] = 0 if legal else NONE
    ends, owners = _get(view, "ends"), _get(view, "end_owners")
    for i, name in enumerate(("left", "right")):
        record[name] = NONE if ends is None else _number(ends[i], "ends", rules.max_pip + 1)
        record[f"{name}_owner"] = NONE if owners is None else relative("end_owners", owners[i])
    for name in ("starter", "last", "drawer"):
        record[name] = relative(name, _get(view, name))
    record["placed"][:players] = by_seat("placed", tiles)
    record["counts"][:players] = by_seat("counts", lambda value: _number(value, "counts", rules.num_tiles + 1))
    record["lacks"][0, :players] = by_seat("lacks", numbers)
    record["lacks"][1, :players] = by_seat("at_most_one", numbers)
    record["scores"][:sides] = by_seat("scores", lambda value: _number(value, "scores"), sides)
    record["boneyard"] = _number(_get(view, "boneyard"), "boneyard", rules.num_tiles + 1)
    for name in ("multiplier", "round"):
        record[name] = _number(_get(view, name), name)
    events = [_packed(rules, _object(event, "an event"), relative) for event in _list(_get(view, "events"), "events")]
    if len(events) > len(record["events"]):
        raise ValueError(f"events: {len(events)} given; a round has at most {len(record['events'])}")
    record["events"][: len(events)] = events
    record["num_events"] = len(events)
    random = _get(view, "random")
    if isinstance(random, bool) or not isinstance(random, int | float) or not 0 <= random < 1:
        raise ValueError(f"random={random!r} is not a number in [0, 1)")
    return float(random)


def _packed(rules: RuleSet, event: Mapping[str, Any], relative: Callable[[str, Any], int]) -> int:
    """An event as the state packs it."""
    kind, end = _get(event, "kind", "an event"), event.get("end")
    tile: Any = event.get("tile")
    if kind not in EVENT_NAMES:
        raise ValueError(f"kind={kind!r} is not one of {', '.join(EVENT_NAMES)}")
    number = EVENT_NAMES.index(kind)
    index = HIDDEN if number == PASS or (number == DRAW and tile is None) else parse_tile(tile, rules.max_pip)
    if number == PLAY and end not in ("left", "right"):
        raise ValueError(f"end={end!r} is neither left nor right")
    seat = relative("an event's seat", _number(_get(event, "seat", "an event"), "an event's seat", rules.players))
    return number | (end == "right") << 2 | seat << 3 | index << 7


def answer(moves: Sequence[str]) -> dict[str, Any]:
    """The answer that chooses these moves."""
    return {"protocol": PROTOCOL, "moves": list(moves)}


def read_answer(message: Any, views: Views) -> tuple[list[int], dict[int, str]]:
    """The action chosen for each view, and for views without a legal one the reason; ValueError if it is no answer."""
    fields = _object(message, "the answer")
    if (version := fields.get("protocol")) != PROTOCOL:
        raise ValueError(f"the answer's protocol is {version!r}, not {PROTOCOL!r}")
    moves = _list(_get(fields, "moves", "the answer"), "moves")
    if len(moves) != len(views):
        raise ValueError(f"the answer has {len(moves)} moves for {len(views)} views")
    actions, reasons = [], {}
    for i, move in enumerate(moves):
        left, right = views[i]["legal"]
        names = {str(legal): legal.action for legal in moves_of(left, right, bool(views[i]["left"] == NONE))}
        action = names.get(move) if isinstance(move, str) else None
        if action is None:
            reasons[i] = f"illegal move {move!r:.100}; legal: {', '.join(names)}"
        actions.append(action or 0)
    return actions, reasons


def move_names(views: Views, actions: Sequence[int]) -> list[str]:
    """The names of these actions, one a view; ValueError for one that is not legal."""
    opening = views["left"] == NONE
    names = []
    for view, first, action in zip(views, opening, actions, strict=True):
        legal = {move.action: str(move) for move in moves_of(view["legal"][0], view["legal"][1], bool(first))}
        if action not in legal:
            raise ValueError(f"the player chose action {action}; legal: {', '.join(legal.values())}")
        names.append(legal[action])
    return names


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is no object")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{name} is no list")
    return value


def _get(fields: Mapping[str, Any], name: str, of: str = "it") -> Any:
    if name not in fields:
        raise ValueError(f"{of} has no {name!r}")
    return fields[name]


def _number(value: Any, name: str, bound: int = 2**31) -> int:
    if type(value) is not int or not 0 <= value < bound:
        raise ValueError(f"{name}={value!r:.50} is not a whole number from 0 to {bound - 1}")
    return value
