"""A room: people, seats and the match they play. It knows nothing of sockets and has no clock of its own."""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from .. import notation
from ..events import Move, View
from ..game import Game
from ..match import Match
from ..render.facts import result_text
from ..rules import RuleSet, preset_of
from .messages import Refused, alike
from .settings import Settings

LOBBY: Final = "lobby"  # no match yet
PLAYING: Final = "playing"  # a round is played
SCORED: Final = "scored"  # a round is over, the match is not
OVER: Final = "over"  # the match is over


@dataclass(eq=False)
class Person:
    """Somebody in a room, with a seat or watching."""

    number: int  # among the people of the room; everybody may know it
    name: str
    token: str = field(repr=False)  # the key to come back, for this person alone
    since: float  # when `here` last changed
    here: bool = True  # with a connection
    away: bool = False  # without one for longer than the grace
    shape: tuple[float, float] = (960, 400)  # of the place where the chain is shown


@dataclass(eq=False)
class Seat:
    """A seat: a person's, a bot's (the level is set) or empty."""

    person: Person | None = None
    bot: str | None = None


class Talk(NamedTuple):
    """A line of what people say; without a name, of what happens in the room."""

    number: int
    name: str | None
    text: str


class Scored(NamedTuple):
    """A round that is over."""

    round: int
    text: str
    scores: list[int]


class Thought(NamedTuple):
    """A move that a bot is to choose: at which turn, who and what it sees."""

    turn: int
    level: str
    view: View


class Room:
    """One table with its people.

    Times are given by the caller, in seconds of any clock that only goes forward. Whatever changes
    what somebody sees raises `version`; `turn` rises with each move and each round, so that a wish
    tells which position it was made for.

    Args:
        code: what people come in by.
        rules: what is played.
        seconds: time for a move; None for no limit.
        settings: the other times and bounds.
        now: the time.
    """

    def __init__(self, code: str, rules: RuleSet, seconds: float | None, settings: Settings, now: float) -> None:
        self.code, self.rules, self.seconds, self.settings = code, rules, seconds, settings
        self.people: dict[int, Person] = {}
        self.seats = [Seat() for _ in range(rules.players)]
        self.host: Person | None = None
        self.phase = LOBBY
        self.version = self.turn = 0
        self.match: Match | None = None
        self.game: Game | None = None  # the round on the table, also once it is over
        self.doers: list[str] = []  # who did each of its events, by the name at that time
        self.rounds: list[Scored] = []
        self.ready: set[Person] = set()  # for the next round
        self.talk: deque[Talk] = deque(maxlen=settings.talk)
        self.empty_since: float | None = now
        self._opened = now  # when the turn began
        self._asked = -1  # the turn that a bot was last asked about
        self._people_yet = self._lines_yet = 0

    # People

    def enter(self, name: str, now: float) -> Person:
        """Somebody new comes in, to watch."""
        if len(self.people) >= self.settings.people:
            raise Refused("full", f"the room is full: {self.settings.people} people are in it")
        self._check_name(name)
        self._people_yet += 1
        person = Person(self._people_yet, name, secrets.token_urlsafe(24), now)
        self.people[person.number] = person
        self.host = self.host or person
        self.empty_since = None
        self._note(f"{name} came in")
        return person

    def back(self, token: str, now: float) -> Person:
        """The person with this token comes back."""
        for person in self.people.values():
            if secrets.compare_digest(person.token.encode(), token.encode()):
                if not person.here:
                    person.since = now
                if person.away:
                    self._note(f"{person.name} is back")
                person.here, person.away, self.empty_since = True, False, None
                self.version += 1
                self._see_to_the_host()
                return person
        raise Refused("no-person", "nobody in this room has that key: you may come in anew")

    def lost(self, person: Person, now: float) -> None:
        """A person's connection is gone."""
        if person.number in self.people and person.here:
            person.here, person.since = False, now
            self._look_who_is_here(now)
            self.version += 1

    def do(self, person: Person, message: Mapping[str, Any], now: float) -> None:
        """Do what a person asks for by a message of `messages.KINDS`.

        Raises:
            Refused: it may not be done, or not now. Nothing has changed.
        """
        _DOINGS[message["kind"]](self, person, message, now)

    def seat_of(self, person: Person) -> int | None:
        """Where a person sits."""
        return next((number for number, seat in enumerate(self.seats) if seat.person is person), None)

    def name_of(self, seat: int) -> str:
        """What to call whoever has a seat; empty where nobody does."""
        holder = self.seats[seat]
        if holder.person is not None:
            return holder.person.name
        return "" if holder.bot is None else f"{holder.bot} {seat + 1}"

    @property
    def names(self) -> list[str]:
        """What to call each seat."""
        return [self.name_of(seat) for seat in range(len(self.seats))]

    def _check_name(self, name: str, own: Person | None = None) -> None:
        taken = {alike(person.name) for person in self.people.values() if person is not own}
        if alike(name) in taken:
            raise Refused("name", f"somebody in the room is called {name!r} already")
        if re.fullmatch(rf"(?:{'|'.join(map(re.escape, map(alike, self.settings.levels)))}) \d+", alike(name)):
            raise Refused("name", f"{name!r} is a bot's name")

    def _note(self, text: str, name: str | None = None) -> None:
        self._lines_yet += 1
        self.talk.append(Talk(self._lines_yet, name, text))
        self.version += 1

    def _remove(self, person: Person, note: str, now: float) -> None:
        del self.people[person.number]
        self.ready.discard(person)
        seat = self.seat_of(person)
        if seat is not None:
            playing = self.phase in (PLAYING, SCORED)
            self.seats[seat] = Seat(bot=self.settings.substitute if playing else None)
            note += f"; {self.name_of(seat)} plays on" if playing else ""
        self._note(f"{person.name} {note}")
        self._look_who_is_here(now)
        if self.host is person:
            self.host = None
        self._see_to_the_host()

    def _see_to_the_host(self) -> None:
        """Where the host has left or is away, whoever is here and came first is the host."""
        if self.host is not None and not self.host.away:
            return
        for person in self.people.values():
            if person.here:
                self.host = person
                self._note(f"{person.name} is the host now")
                return

    def _look_who_is_here(self, now: float) -> None:
        if self.empty_since is None and not any(person.here for person in self.people.values()):
            self.empty_since = now

    # What people ask for

    def _need_host(self, person: Person) -> None:
        if person is not self.host:
            raise Refused("host", "only the host of the room may do that")

    def _need_phase(self, *phases: str) -> None:
        if self.phase not in phases:
            raise Refused("phase", f"not now: {_PHASES[self.phase]}")

    def _seat(self, number: int) -> Seat:
        if number >= len(self.seats):
            raise Refused("message", f"seat {number}: the seats are 0 to {len(self.seats) - 1}")
        return self.seats[number]

    def _sit(self, person: Person, message: Mapping[str, Any], now: float) -> None:
        self._need_phase(LOBBY, SCORED, OVER)
        seat, before = self._seat(message["seat"]), self.seat_of(person)
        if seat.person is not None:
            raise Refused("full", f"{seat.person.name} sits there")
        if before is not None:
            self._free(before)
        seat.person, seat.bot = person, None
        self._note(f"{person.name} took seat {message['seat'] + 1}")

    def _stand(self, person: Person, message: Mapping[str, Any], now: float) -> None:
        self._need_phase(LOBBY, SCORED, OVER)
        seat = self.seat_of(person)
        if seat is None:
            raise Refused("phase", "you have no seat")
        self._free(seat)
        self.ready.discard(person)
        self._note(f"{person.name} watches")

    def _free(self, number: int) -> None:
        """Nobody has this seat any more; between the rounds of a match a bot takes it."""
        self.seats[number] = Seat(bot=self.settings.substitute if self.phase == SCORED else None)

    def _bot(self, person: Person, message: Mapping[str, Any], now: float) -> None:
        self._need_host(person)
        seat, level = self._seat(message["seat"]), message["level"]
        if seat.person is not None:
            raise Refused("full", f"{seat.person.name} sits there")
        if level is None:
            self._need_phase(LOBBY, OVER)
        else:
            self._check_level(level)
        seat.bot = level
        self.version += 1

    def may_seat(self, person: Person, level: str) -> None:
        """Refuse what would be refused of seating this bot whatever the seat."""
        self._need_host(person)
        self._check_level(level)

    def _check_level(self, level: str) -> None:
        if level not in self.settings.levels:
            raise Refused("message", f"no such bot; there are {', '.join(self.settings.levels)}")

    def _start(self, person: Person, message: Mapping[str, Any], now: float) -> None:
        self.may_seat(person, message["level"])
        self._need_phase(LOBBY, OVER)
        for seat in self.seats:
            if seat.person is None and seat.bot is None:
                seat.bot = message["level"]
        self.match, self.rounds = Match(self.rules), []
        self._note("a match begins")
        self._next_round(now)

    def _play(self, person: Person, message: Mapping[str, Any], now: float) -> None:
        self._need_phase(PLAYING)
        self._need_turn(message["turn"])
        if self.acting is None or self.seats[self.acting].person is not person:
            raise Refused("turn", "it is not your turn")
        legal = self.legal_moves()
        move = next((move for move in legal if str(move) == message["move"]), None)
        if move is None:
            raise Refused("illegal", f"that may not be played now; legal: {', '.join(map(str, legal))}")
        self._played(move, now)

    def _need_turn(self, turn: int) -> None:
        if turn != self.turn:
            raise Refused("stale", "the table has changed since: look again")

    def _next(self, person: Person, message: Mapping[str, Any], now: float) -> None:
        self._need_phase(SCORED)
        self._need_turn(message["turn"])
        if self.seat_of(person) is None:
            raise Refused("turn", "only those who play say when the next round begins")
        self.ready.add(person)
        self.version += 1
        self._go_on_if_ready(now)

    def _rename(self, person: Person, message: Mapping[str, Any], now: float) -> None:
        name = message["name"]
        self._check_name(name, person)
        before, person.name = person.name, name
        self._note(f"{before} is called {name} now")

    def _say(self, person: Person, message: Mapping[str, Any], now: float) -> None:
        self._note(message["text"], person.name)

    def _kick(self, person: Person, message: Mapping[str, Any], now: float) -> None:
        self._need_host(person)
        other = self.people.get(message["person"])
        if other is None or other is person:
            raise Refused("message", "nobody else of that number is in the room")
        self._remove(other, "was sent out", now)

    def _leave(self, person: Person, message: Mapping[str, Any], now: float) -> None:
        self._remove(person, "left", now)

    def _shape(self, person: Person, message: Mapping[str, Any], now: float) -> None:
        shape = message["width"], message["height"]
        if shape != person.shape:
            person.shape = shape
            self.version += 1

    def record(self) -> str:
        """The match in the project's notation, once it is over: before, it would tell hidden tiles.

        Raises:
            Refused: it is not over.
        """
        self._need_phase(OVER)
        assert self.match is not None
        return notation.dumps(self.match)

    # The game

    @property
    def acting(self) -> int | None:
        """The seat to move."""
        return self.game.seat if self.phase == PLAYING and self.game is not None else None

    def legal_moves(self) -> list[Move]:
        """What the seat to move may play."""
        return [] if self.acting is None or self.game is None else self.game.legal_moves()

    def player_of(self, seat: int) -> str | None:
        """The bot that moves for a seat at once; None where a person does."""
        holder = self.seats[seat]
        if holder.person is None:
            return holder.bot
        return self.settings.substitute if holder.person.away else None

    def left(self, now: float) -> float | None:
        """Seconds until somebody's move is played by a bot, or until the next round begins; None without a limit."""
        if self.phase == SCORED:
            return max(0.0, self._opened + self.settings.between - now)
        if self.acting is None or self.seconds is None or self.player_of(self.acting) is not None:
            return None
        return max(0.0, self._opened + self.seconds - now)

    @property
    def awaited(self) -> list[Person]:
        """Those who sit, are here and have not said yet that the next round may begin."""
        seated = (seat.person for seat in self.seats)
        return [person for person in seated if person is not None and person.here and person not in self.ready]

    def advance(self, now: float) -> None:
        """Let happen what time has brought; call it a few times a second."""
        for person in list(self.people.values()):
            if not person.here and not person.away and now - person.since >= self.settings.grace:
                self._away(person, now)
        if self.phase == SCORED and now - self._opened >= self.settings.between:
            self._next_round(now)
        elif self.phase == SCORED:
            self._go_on_if_ready(now)

    def _away(self, person: Person, now: float) -> None:
        seat = self.seat_of(person)
        if seat is None or self.phase == LOBBY:
            self._remove(person, "left", now)
            return
        person.away = True
        self._note(f"{person.name} is away; {self.settings.substitute} plays meanwhile")
        self._see_to_the_host()

    def thought(self, now: float) -> Thought | None:
        """What a bot is to be asked now, once a turn; the answer is given to `bot_plays`."""
        seat = self.acting
        if seat is None or self._asked == self.turn or self.game is None:
            return None
        level, waited = self.player_of(seat), now - self._opened
        if level is None:
            if self.seconds is None or waited < self.seconds:
                return None
            level = self.settings.substitute
        elif waited < self.settings.pause:
            return None
        self._asked = self.turn
        return Thought(self.turn, level, self.game.view(seat))

    def bot_plays(self, thought: Thought, action: int | None, trouble: str, now: float) -> None:
        """A bot's answer: an action, or None with what went wrong. Nothing happens if the turn has passed."""
        if thought.turn != self.turn or self.acting is None:
            return
        legal = self.legal_moves()
        move = next((move for move in legal if move.action == action), None)
        if move is None:
            trouble = trouble or "gave a move that may not be played"
            self._note(f"{thought.level} {trouble}: the first legal move is played for {self.name_of(self.acting)}")
            move = legal[0]
        self._played(move, now)

    def _next_round(self, now: float) -> None:
        assert self.match is not None
        self.game, self.phase, self.ready, self.doers = self.match.game, PLAYING, set(), []
        self._open(now)

    def _go_on_if_ready(self, now: float) -> None:
        if self.ready and not self.awaited:
            self._next_round(now)

    def _open(self, now: float) -> None:
        """The next turn begins, or the round is over."""
        assert self.game is not None
        self.doers += [self.name_of(event.seat) for event in self.game.events[len(self.doers) :]]
        self.turn += 1
        self.version += 1
        self._opened = now

    def _played(self, move: Move, now: float) -> None:
        assert self.match is not None
        result = self.match.play(move)
        if result is not None:
            self.phase = OVER if self.match.over else SCORED
            text = result_text(result, self.rules, self.names)
            self.rounds.append(Scored(len(self.rounds) + 1, text, self.match.scores))
        self._open(now)

    @property
    def preset(self) -> str:
        """The game, by the name of the nearest preset."""
        return preset_of(self.rules)[0]


_PHASES: Final = {
    LOBBY: "the match has not begun",
    PLAYING: "a round is being played",
    SCORED: "the round is over",
    OVER: "the match is over",
}
_DOINGS: Final[dict[str, Callable[[Room, Person, Mapping[str, Any], float], None]]] = {
    "sit": Room._sit, "stand": Room._stand, "bot": Room._bot, "start": Room._start, "play": Room._play,
    "next": Room._next, "rename": Room._rename, "say": Room._say, "kick": Room._kick, "leave": Room._leave,
    "shape": Room._shape,
}  # fmt: skip
