"""Play at the terminal against computer players, a match or a single round."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from .common import output_options, rules_from, rules_options, seat_option, seed_option, text_style

if TYPE_CHECKING:
    from ..events import View
    from ..match import Match
    from ..players import Streams
    from ..rules import RuleSet

_HELP: Final = """\
a move     its number in the list, or its name: 6-4L plays 6-4 on the left, 6-4R on the right
           (the end may be left out where the tile fits only one)
hint       what the computer player {hint} would play
undo       take back your last move of this round, with all that followed
table      show the table again
help       this text
quit       leave the table"""

_HINT_PLAYER: Final = "doubles"
# Keeps two words on one line until it is printed; of ASCII, so that it survives every output.
_GLUE: Final = "\x1f"


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    rules_options(parser)
    group = parser.add_argument_group("table")
    group.add_argument("--seat", type=int, default=0, metavar="N", help="where you sit (default 0)")
    group.add_argument(
        "--opponents",
        default="doubles",
        metavar="NAMES",
        help="computer players: one name for all, or one for each other seat in turn order after yours, with "
        "commas between them (default doubles; with pairs your partner is the second)",
    )
    group.add_argument("--round", action="store_true", help="a single round instead of a match")
    seed_option(group)
    output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Play until the match is over or the person leaves."""
    rules = rules_from(arguments)
    if arguments.seat < 0:
        raise ValueError(f"--seat {arguments.seat}: seats count from 0")
    seat_option(arguments.seat, rules)
    names = _opponents(arguments.opponents, rules.players)
    from .._rng import check_seed

    if arguments.round:
        rules = dataclasses.replace(rules, target=None)
    seed = check_seed(arguments.seed)
    session = Session(rules, seed, arguments.seat, names, text_style(arguments))
    print(f"{arguments.preset}, seed {seed}. Type help for what you can do here.")
    try:
        session.play()
    except (KeyboardInterrupt, EOFError):
        print("\nYou left the table.")
    return 0


def _opponents(text: str, players: int) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) == 1:
        names *= players - 1
    if len(names) != players - 1:
        raise ValueError(
            f"--opponents {text!r}: {len(names)} names for {players - 1} other seats; give one, or one each"
        )
    return names


class Session:
    """A person and computer players at one table."""

    def __init__(self, rules: RuleSet, seed: int, seat: int, names: Sequence[str], style: dict[str, Any]) -> None:
        from ..bots import make_player
        from ..match import Match
        from ..players import Streams

        self.rules, self.seat, self.style = rules, seat, style
        others = [(seat + step) % rules.players for step in range(1, rules.players)]
        self.players = {other: make_player(name, rules) for other, name in zip(others, names, strict=True)}
        self.adviser = make_player(_HINT_PLAYER, rules)
        self.streams: Streams = Streams.from_seed(seed, 1)
        self.advice: Streams = Streams.from_seed(seed, 1, purpose=3)
        self.called = ["you" if s == seat else f"{self.players[s].name} {s}" for s in range(rules.players)]
        self.match: Match = Match(rules, seed)
        self.told = 0

    def play(self) -> None:
        """Play the rounds, and say who won."""
        while not self.match.over:
            self._round()
        self._verdict()

    def _round(self) -> None:
        from ..render.facts import result_text

        match, game = self.match, self.match.game
        self.told = 0
        self._say(f"\nRound {match.round}: {self._verb(game.starter, 'start')}" + self._worth())
        result = None
        while result is None:
            acting = game.seat
            assert acting is not None
            self._tell(game.events)
            view = game.view(acting)
            action = self._ask(view) if acting == self.seat else self._choose(view)
            if action is not None:
                result = match.play(action)
        self._tell(game.events)
        self._show(game.view(self.seat), last_events=0)
        self._say("\n" + result_text(result, self.rules, self.called))
        pips = [f"{name} {count}" for name, count in zip(self.called, result.pips, strict=True)]
        self._say(f"Pips left: {', '.join(pips)}")
        if self.rules.target is not None:
            self._say(f"Scores: {self._scores()} (to {self.rules.target})")
        if not match.over:
            self._say(f"Next: {self._verb(match.starter, 'start')}")

    def _worth(self) -> str:
        return f", and every score is worth x{self.match.multiplier}" if self.match.multiplier > 1 else ""

    def _verb(self, seat: int, verb: str) -> str:
        return f"you {verb}" if seat == self.seat else f"{self.called[seat]} {verb}s"

    def _scores(self) -> str:
        from ..render.facts import side_name

        scores = enumerate(self.match.scores)
        return ", ".join(f"{side_name(self.rules, side, self.called)} {score}" for side, score in scores)

    def _say(self, text: str) -> None:
        from ..render.text import to_ascii

        plain = to_ascii(text) if self.style["ascii_only"] else text
        for line in plain.split("\n"):
            # A line that fits stays as it is, its indent too.
            fits = len(line) <= self.style["columns"]
            how: Any = {"subsequent_indent": "  ", "break_on_hyphens": False}
            lines = [line] if fits else textwrap.wrap(line, self.style["columns"], **how)
            print("\n".join(lines).replace(_GLUE, " "), flush=True)

    def _tell(self, events: Sequence[Any]) -> None:
        """Say what has happened since, hiding the tiles that others drew."""
        from ..render.facts import event_text

        for event in events[self.told :]:
            hidden = event.kind == "draw" and event.seat != self.seat
            self._say("  " + event_text(event._replace(tile=None) if hidden else event, self.called))
        self.told = len(events)

    def _show(self, view: View, **how: Any) -> None:
        from ..render.text import table

        print("\n" + table(view, names=self.called, **self.style, **how), flush=True)

    def _choose(self, view: View) -> int:
        return int(self.players[view.seat].act(view.record, self.streams)[0])

    def _ask(self, view: View) -> int | None:
        """The person's move; None where the game has been taken back instead."""
        moves = [str(move) for move in view.legal_moves]
        listed = "moves: " + "  ".join(f"{number}{_GLUE}{move}" for number, move in enumerate(moves, 1))
        self._show(view, last_events=0)
        self._say(listed)
        commands = ("help", "hint", "undo", "table", "quit")
        while True:
            print("your move: ", end="", flush=True)
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            if not sys.stdin.isatty():
                print(flush=True)
            word = line.strip()
            if word.isascii() and word.isdecimal():
                if 1 <= int(word) <= len(moves):
                    return view.legal_moves[int(word) - 1].action
                self._say(f"There is no move {word}: give 1 to {len(moves)}, or a name.")
            elif word.lower() in ("quit", "q", "exit"):
                raise EOFError
            elif word.lower() in ("help", "h", "?"):
                self._say(_HELP.format(hint=_HINT_PLAYER))
            elif word.lower() == "table":
                self._show(view)
                self._say(listed)
            elif word.lower() == "hint":
                action = int(self.adviser.act(view.record, self.advice)[0])
                names = {move.action: str(move) for move in view.legal_moves}
                self._say(f"{_HINT_PLAYER} would play {names[action]}.")
            elif word.lower() == "undo":
                if self._undo():
                    return None
            elif word and (named := self._named(view, word, commands)) is not None:
                return named

    def _named(self, view: View, word: str, commands: Sequence[str]) -> int | None:
        """The legal move of this name; None once it has been said what is wrong with it."""
        from ..tiles import parse_move, tile_index

        name = word.upper().replace(" ", "")
        if name.isascii() and name[:2].isdecimal():  # 64L is 6-4L
            name = f"{name[0]}-{name[1:]}"
        try:
            tile, end = parse_move(name, self.rules.max_pip)
        except ValueError as error:
            near = difflib.get_close_matches(word.lower(), commands, n=1)
            wrong = str(error).replace(repr(name), repr(word))
            self._say(wrong + (f"; or did you mean {near[0]!r}?" if near else ", or type help"))
            return None
        moves = [move for move in view.legal_moves if move.action >> 1 == tile]
        fits = [move for move in moves if move.opening or end in (None, move.action & 1)]
        if len(fits) == 1:
            return fits[0].action
        if fits:
            self._say(f"{name} fits both ends: say {fits[0]} or {fits[1]}.")
        elif tile not in [tile_index(*map(int, held.split("-"))) for held in view.hand]:
            self._say(f"You do not hold {name[:3]}.")
        else:
            self._say(f"{name} may not be played now; legal: {', '.join(map(str, view.legal_moves))}.")
        return None

    def _undo(self) -> bool:
        """Go back to the person's decision before this one; False where this is the round's first."""
        game = self.match.game
        back = game.copy()
        while back.moves:
            back.undo()
            if back.seat == self.seat:
                while len(game.moves) > len(back.moves):
                    game.undo()
                self.told = len(game.events)
                self._say("Taken back.")
                return True
        self._say("There is nothing to take back: you have not played in this round yet.")
        return False

    def _verdict(self) -> None:
        from ..render.facts import side_name

        won, what = self.match.winner, "round" if self.rules.target is None else "match"
        if won is None:
            self._say(f"\nNobody wins the {what}.")
            return
        name = side_name(self.rules, won, self.called)
        verb = "win" if name.startswith("you") or "+" in name else "wins"
        self._say(f"\n{name[0].upper()}{name[1:]} {verb} the {what}.")
