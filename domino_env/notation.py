"""One text form for tiles, moves, deals, positions and whole matches.

A record says all there is: version, rules, seed, deal, every play, draw and pass, results and
scores. `loads` plays it again and verifies each of them, so a record that loads is one the rules
allow. Any number of records may follow one another in a file::

    with open("matches.txt", "a") as file:
        dump(match, file)
    with open("matches.txt") as file:
        for match in load(file):
            ...

The form is described in docs/notation.md.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from functools import singledispatch
from typing import Final, NoReturn, TextIO, TypeAlias

from ._notation_parse import (
    DealText,
    Lines,
    NotationError,
    RoundText,
    Token,
    expect_words,
    numbered,
    read_deal,
    read_heading,
    read_lot,
    read_round,
    read_rules,
    read_scores,
    read_seed,
)
from ._notation_write import (
    VERSION,
    deal_record,
    event_word,
    game_record,
    match_record,
    result_words,
    scores_words,
    start_words,
    tile_word,
    verdict_words,
)
from .events import Deal
from .game import Game
from .match import Match
from .tiles import TILE_NAMES

__all__ = ["VERSION", "NotationError", "Record", "dump", "dumps", "load", "loads"]

#: What a record holds.
Record: TypeAlias = Deal | Game | Match


@singledispatch
def _lines_of(record: object) -> Iterator[str]:
    raise TypeError(f"{record!r} is not a Match, a Game or a Deal")


_lines_of.register(Deal, deal_record)
_lines_of.register(Game, game_record)
_lines_of.register(Match, match_record)


def dumps(record: Record) -> str:
    """The record of a match, a round or a deal, over or in progress, as text that ends in a new line."""
    return "".join(f"{line}\n" for line in _lines_of(record))


def dump(record: Record, file: TextIO) -> None:
    """Write a record to an open text file; one after another is fine."""
    file.write(dumps(record))


def load(lines: Iterable[str]) -> Iterator[Record]:
    """The records of an open text file (or any lines of text), read and verified one at a time.

    Raises:
        NotationError: where a record is not well formed, or the rules contradict it. It names the line
            in the file, the column and what was expected; the records before it have been given.
    """
    reader = Lines(lines)
    while not reader.peek()[0].last:
        yield _READERS[read_heading(reader)](reader)


def loads(text: str) -> Record:
    """The one record that `text` holds.

    Raises:
        NotationError: as `load`; also where there is no record, or more than one.
    """
    reader = Lines(io.StringIO(text, newline=None))
    record = _READERS[read_heading(reader)](reader)
    if not reader.peek()[0].last:
        reader.peek()[0].wrong("the end of the text after one record (`load` reads several)")
    return record


def _read_deal(lines: Lines) -> Deal:
    deal = read_deal(lines)
    lot = None
    if lines.peek()[0].text == "lot":
        lot = read_lot(lines.take("lot"), len(deal.hands))
    lines.take_words(["end"])
    return deal.as_deal(lot)


def _read_game(lines: Lines) -> Game:
    rules, seed = read_rules(lines), read_seed(lines)
    at = lines.peek()[0]
    scores = read_scores(lines, rules)
    text = read_round(lines, rules)
    if seed is not None:
        if any(scores or ()):
            at.fail("a seed deals a first round, where scores are nil all: leave out this line or the seed")
        game = Game(rules, seed)
    else:
        deal = text.deal.as_deal(None)
        try:
            game = Game.from_deal(
                rules, deal.hands, deal.boneyard, text.seat, text.forced, text.multiplier, scores=scores
            )
        except ValueError as error:  # all but the forced tile is checked
            text.start[2].fail(str(error))
    _verify_round(game, text, seed)
    lines.take_words(["end"])
    return game


def _read_match(lines: Lines) -> Match:
    rules, seed = read_rules(lines), read_seed(lines)
    rounds: list[RoundText] = []
    deals: list[Deal] = []
    for heading in numbered(lines, "round", 1):
        given, lot = seed is None, None
        if heading[2].text == "given":
            given, lot = True, read_lot(heading[3:], rules.players)
        else:
            expect_words(heading[2:], [])
        if given and rounds and not rounds[-1].given:
            heading[2].fail(_SEEDED.format(len(rounds)))
        text = read_round(lines, rules)
        text.heading, text.given = heading, given
        rounds.append(text)
        if given:  # without a seed, who starts by lots is known from the start line alone
            deals.append(text.deal.as_deal(text.seat if seed is None and lot is None else lot))
    if not rounds:
        lines.peek()[0].wrong("'round'")
    for heading in numbered(lines, "deal", len(rounds) + 1):
        if not rounds[-1].given:
            heading[0].fail(_SEEDED.format(len(rounds)))
        lot = read_lot(heading[2:], rules.players)
        deals.append(read_deal(lines, rules.players, rules.max_pip).as_deal(lot))
    try:
        match = Match(rules, seed, deals=deals)
    except ValueError as error:  # tiles without a double, which the rules deal again
        rounds[0].heading[0].fail(str(error))
    _verify_rounds(match, rounds)
    if match.over:
        lines.take_words(verdict_words(match.winner), "the match is over")
    lines.take_words(["end"], "the match is over" if match.over else "the match is not over")
    return match


_SEEDED: Final = "round {} was dealt by the seed, so no later deal can be given"


def _verify_rounds(match: Match, rounds: list[RoundText]) -> None:
    """Play the written rounds in `match`, which has just begun; raise where the two differ."""
    for number, text in enumerate(rounds, 1):
        if match.over:
            text.heading[0].wrong(f"{' '.join(verdict_words(match.winner))!r} (the match is over)")
        _verify_round(_game_of(match, text.heading[0]), text, None if text.given else match.seed)
        if number < len(rounds) and match.round == number and not match.over:
            text.after.wrong(f"{_due(match.game)} (round {number} is not over)")
    _game_of(match, rounds[-1].after)


def _game_of(match: Match, at: Token) -> Game:
    try:
        return match.game
    except ValueError as error:  # as in `_read_match`
        at.fail(str(error))


def _verify_round(game: Game, text: RoundText, seed: int | None) -> None:
    """Play a written round in `game`, which has just been dealt; raise where the two differ."""
    if seed is not None:
        _verify_deal(game.deal, text.deal, text.start[0], seed)
    expect_words(text.start, start_words(game), "by the rules and what came before")
    _verify_events(game, text)
    result = game.result
    if result is None:
        if text.result is not None:
            text.result[0].wrong(f"{_due(game)} (the round is not over)")
        return
    expected = result_words(result)
    if text.result is None or text.scores is None:
        text.after.wrong(f"{' '.join(expected)!r} (the round is over)")
    expect_words(text.result, expected, "as the round was played")
    expect_words(text.scores, scores_words(game.scores), "after this round")


def _verify_deal(dealt: Deal, text: DealText, after: Token, seed: int) -> None:
    """Raise at the first line of a written deal that is not what the seed dealt."""
    written = [*map(sorted, text.hands), text.boneyard]
    for place, (names, tiles) in enumerate(zip([*dealt.hands, dealt.boneyard], written, strict=True)):
        if [TILE_NAMES[tile] for tile in tiles] == list(names):
            continue
        token = text.lines[place][0] if place < len(text.lines) else after
        where = f"hand {place}:" if place < len(text.hands) else "boneyard:"
        wanted = " ".join([where, *map(tile_word, names)]) if names else "no boneyard"
        token.fail(f"seed {seed} deals otherwise: expected {wanted!r}")


def _verify_events(game: Game, text: RoundText) -> None:
    before = game.copy()
    try:
        for event in text.events:
            if event.action is not None:
                game.play(event.action)
    except ValueError:
        _fail_at_first(before, text)
    if [event.word for event in text.events] != [event_word(event) for event in game.events]:
        _fail_at_first(before, text)


def _fail_at_first(game: Game, text: RoundText) -> NoReturn:
    """Play event by event, and raise at the first that cannot happen, or is missing."""
    for i, event in enumerate(text.events):
        for forced in game.events[i : i + 1]:
            if event_word(forced) != event.word:
                event.token.wrong(f"'{event_word(forced)}' (it is forced here)")
            break
        else:
            if event.action is None or event.seat != game.seat:
                event.token.wrong(_due(game))
            try:
                game.play(event.action)
            except ValueError:
                event.token.wrong(_due(game))
    after = text.after if text.result is None else text.result[0]
    after.wrong(f"'{event_word(game.events[len(text.events)])}' (it is forced here)")


def _due(game: Game) -> str:
    """What may come next where nothing is forced."""
    if game.seat is None:
        return "'result' (the round is over)"
    return "one of " + ", ".join(f"{game.seat}:{move}" for move in game.legal_moves())


_READERS: Final[dict[str, Callable[[Lines], Record]]] = {
    "deal": _read_deal,
    "game": _read_game,
    "match": _read_match,
}
