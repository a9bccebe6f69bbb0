"""Records that are read: from streams, and what is said of text that is wrong."""

from __future__ import annotations

import contextlib
import io
import pickle
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_play import few, play_on
from strategies import TABLES

from domino_env import PRESETS, Deal, Game, Match, make_rules
from domino_env.notation import NotationError, Record, dump, dumps, load, loads


def test_a_file_of_many_records_is_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "matches.txt"
    records: list[Record] = []
    for seed in range(40):
        match = Match(TABLES["puxar-3"], seed)
        play_on(match, Random(seed), 10 * seed)
        for record in (match, match.games[0], match.games[0].deal):
            records.append(record)
            with path.open("a", encoding="utf-8") as file:
                dump(record, file)
    with path.open(encoding="utf-8") as file:
        assert list(load(file)) == records

    lines = iter(path.read_text(encoding="utf-8").splitlines())
    stream = load(lines)
    assert next(stream) == records[0]
    assert next(lines) == "domino game 1"  # nothing beyond the first record was read
    assert list(load([])) == []


def test_an_error_in_a_stream_comes_after_the_records_before_it() -> None:
    good = dumps(Game(PRESETS["duplas"], 3))
    stream = load((good + good.replace("hand 2: ", "hand 2: 7-7 ")).splitlines())
    assert next(stream) == Game(PRESETS["duplas"], 3)
    with pytest.raises(NotationError) as caught:
        next(stream)
    assert (caught.value.line, caught.value.column) == (good.count("\n") + 6, 9)
    assert list(stream) == []


def test_a_file_must_be_text(tmp_path: Path) -> None:
    path = tmp_path / "match.txt"
    path.write_bytes(dumps(Game(PRESETS["duplas"], 3)).encode() + b"\xff\xfe")
    with path.open("rb") as file, pytest.raises(TypeError, match="open the file in text mode"):
        next(load(file))  # type: ignore[arg-type]
    with (
        path.open(encoding="utf-8") as file,
        pytest.raises(NotationError, match="line 1, column 1: the bytes that follow"),
    ):
        list(load(file))


def test_a_record_may_be_commented_wrapped_and_written_either_way_round() -> None:
    text = """\
# found on a napkin
domino   game 1\t
\trules mano_a_mano target=10

hand 0: 4-6 4-4
  # the holder of 5-5
hand 1: 5-5 1-2\r
boneyard: 1-4 5-4
start seat=1 forced=5-5 multiplier=1
1:5-5 0:+1-4
0:+4-5

0:4-5R
1:pass
end"""
    game = loads(text)
    assert (
        dumps(game)
        == """\
domino game 1
rules mano_a_mano target=10
hand 0: 4-4 6-4
hand 1: 2-1 5-5
boneyard: 4-1 5-4
start seat=1 forced=5-5 multiplier=1
1:5-5 0:+4-1 0:+5-4 0:5-4R
1:pass
end
"""
    )


MATCH = """\
domino match 1
rules mano_a_mano target=2 no_double=redeal
seed 3

round 1 given
hand 0: 4-4 6-4
hand 1: 2-1 5-5
boneyard: 4-1 5-4
start seat=1 forced=5-5 multiplier=1
1:5-5 0:+4-1 0:+5-4 0:5-4R
1:pass 0:4-4R
1:pass 0:6-4R
result blocked seat=1 side=1 finish=- base=1 multiplier=1 points=1 pips=5,3 last_placer=0 next_starter=0
scores 0 1

round 2 given lot 1
hand 0: 6-0 6-1
hand 1: 5-0 5-3
start seat=0 forced=- multiplier=1
0:6-0 1:5-0R
0:6-1L
result out seat=0 side=0 finish=simples base=1 multiplier=1 points=1 pips=0,8 last_placer=0 next_starter=0
scores 1 1

round 3 given
hand 0: 4-3 6-6
hand 1: 5-0 5-3
boneyard: 6-0
start seat=0 forced=- multiplier=1
0:4-3

deal 4
hand 0: 4-3
hand 1: 5-3
end
"""


def wrong(text: str, old: str, new: str) -> NotationError:
    """The error for `text` with one piece of it changed."""
    assert text.count(old) >= 1, old
    with pytest.raises(NotationError) as caught:
        loads(text.replace(old, new, 1))
    return caught.value


def test_the_record_that_the_errors_start_from_is_canonical() -> None:
    assert dumps(loads(MATCH)) == MATCH


EVENT = "an event, such as 0:6-4L (6-4 without an end to open), 1:+6-4 for a draw or 2:pass"
RULED = "(by the rules and what came before)"
PLAYED = "(as the round was played)"


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "message"),
    [
        ("domino", "dominoes", 1, 1, "expected 'domino', found 'dominoes'"),
        ("match 1", "mach 1", 1, 8, "expected one of deal, game, match, found 'mach'"),
        ("match 1", "match 2", 1, 14, "version 2 of the format is not supported; this reads version 1"),
        ("match 1", "match one", 1, 14, "expected the version of the format, a whole number from 1, found"),
        ("match 1", "match 1 2", 1, 16, "expected the end of the line, found '2'"),
        ("mano_a_mano", "mano", 2, 7, "expected a preset, one of duplas, mano_a_mano, blocos, puxar, found"),
        ("target", "targt", 2, 19, "unknown field 'targt' (did you mean 'target'?)"),
        ("target=2", "target=0", 2, 19, "expected target=…, a whole number from 1 to 1000000000, found"),
        ("target=2", "target", 2, 19, "expected an option, such as target=10, found 'target'"),
        ("target=2", "target=2 target=3", 2, 28, "target is given twice"),
        ("target=2", "pairs=yes", 2, 19, "expected 'pairs=true' or 'pairs=false', found 'pairs=yes'"),
        ("target=2", "pairs=true", 2, 19, "pairs=True needs players=4"),
        ("target=2", "draw=two", 2, 19, "draw='two' is not one of none, until_fit, one"),
        ("target=2", "players=5", 2, 1, "hand_size=7: 5 players x 7 = 35 tiles"),
        ("seed 3", "seed -3", 3, 6, "expected a seed, a whole number from 0, found '-3'"),
        ("seed 3", "seed", 3, 5, "expected a seed, a whole number from 0, but the line ends"),
        ("seed 3", "sed 3", 3, 1, "expected 'round', found 'sed'"),
        ("round 1", "round 2", 5, 7, "expected '1', found '2'"),
        ("round 1 given", "round 1 gven", 5, 9, "expected the end of the line, found 'gven'"),
        ("round 1 given", "round 1", 16, 9, "round 1 was dealt by the seed, so no later deal can be given"),
        ("given lot 1", "given lot 2", 16, 19, "expected the lot's seat, a whole number from 0 to 1, found"),
        ("given lot 1", "given lots 1", 16, 15, "expected 'lot' or the end of the line, found 'lots'"),
        ("hand 0: 4-4 6-4\n", "", 6, 6, "expected '0:', found '1:'"),
        ("hand 1: 2-1 5-5\n", "", 7, 1, "expected 'hand', found 'boneyard:'"),
        ("hand 1: 2-1 5-5", "hand 1:", 7, 8, "expected a tile in hand 1, but the line ends"),
        ("hand 0: 4-4 6-4", "hand 0: 4-4 64", 6, 13, "'64' is not a tile: write two halves, such as '6-4'"),
        ("0: 4-4 6-4", "0: 4-4 7-4", 6, 13, "'7-4' is not in the double-6 set: halves go from 0 to 6"),
        ("hand 0: 4-4 6-4", "hand 0: 4-4 ٦-4", 6, 13, "expected a tile, such as 6-4, found '٦-4'"),
        ("hand 1: 2-1", "hand 1: 4-6", 7, 9, "tile 6-4 in hand 1 was already given in hand 0"),
        ("boneyard: 4-1", "boneyard: 1-2", 8, 11, "tile 2-1 in the boneyard was already given in hand 1"),
        ("start seat=1", "start seat=0", 9, 7, f"expected 'seat=1' {RULED}, found 'seat=0'"),
        ("start seat=1", "start", 9, 7, "expected 'seat=…', found 'forced=5-5'"),
        ("start seat=1", "start seat=2", 9, 7, "expected a seat, seat=…, a whole number from 0 to 1, found"),
        ("forced=5-5", "forced=-", 9, 14, f"expected 'forced=5-5' {RULED}, found 'forced=-'"),
        ("forced=5-5", "forced=5", 9, 14, "'5' is not a tile"),
        ("multiplier=1", "multiplier=2", 9, 25, f"expected 'multiplier=1' {RULED}, found"),
        ("1:5-5", "1:2-1", 10, 1, "expected one of 1:5-5, found '1:2-1'"),
        ("1:5-5", "1:5-5L", 10, 1, "expected '1:5-5': a tile that is drawn or opens a round has no end"),
        ("1:5-5", "0:5-5", 10, 1, "expected one of 1:5-5, found '0:5-5'"),
        ("1:5-5 ", "1:pass ", 10, 1, "expected one of 1:5-5, found '1:pass'"),
        ("1:5-5 ", "", 10, 1, "expected one of 1:5-5, found '0:+4-1'"),
        ("0:+4-1 ", "", 10, 7, "expected '0:+4-1' (it is forced here), found '0:+5-4'"),
        ("0:+4-1 0:+5-4", "0:+5-4 0:+4-1", 10, 7, "expected '0:+4-1' (it is forced here), found '0:+5-4'"),
        ("0:+4-1", "1:+4-1", 10, 7, "expected '0:+4-1' (it is forced here), found '1:+4-1'"),
        ("0:+4-1", "0:4-1", 10, 7, "expected '0:4-1L' or '0:4-1R', found '0:4-1'"),
        ("0:+4-1", "0:+4-1L", 10, 7, "expected '0:+4-1': a tile that is drawn or opens"),
        ("0:+4-1", "0:pass", 10, 7, "expected '0:+4-1' (it is forced here), found '0:pass'"),
        ("0:+4-1", "2:+4-1", 10, 7, "expected a seat from 0 to 1, found '2:+4-1'"),
        ("0:+4-1", "0:4+1", 10, 7, f"expected {EVENT}, found '0:4+1'"),
        ("0:5-4R", "0:6-4R", 10, 21, "expected one of 0:5-4L, 0:5-4R, found '0:6-4R'"),
        ("0:5-4R", "0:7-4R", 10, 21, "'7-4' is not in the double-6 set"),
        ("0:5-4R", "0:5-4R 0:+4-3", 10, 28, "expected '1:pass' (it is forced here), found '0:+4-3'"),
        ("0:5-4R\n1:pass", "0:5-4R\n1:2-1R", 11, 1, "expected '1:pass' (it is forced here), found '1:2-1R'"),
        ("1:pass 0:6-4R", "1:pass 0:4-4R", 12, 8, "expected one of 0:4-1R, 0:6-4R, found '0:4-4R'"),
        ("1:pass 0:6-4R\n", "", 12, 1, "expected '1:pass' (it is forced here), found 'result'"),
        (" 0:6-4R", "", 13, 1, "expected one of 0:4-1R, 0:6-4R (the round is not over), found 'result'"),
        ("0:6-4R", "0:6-4R 1:pass", 12, 15, "expected 'result' (the round is over), found '1:pass'"),
        ("\nresult blocked", "\nx", 13, 1, "expected an event, 'result' or 'end', found 'x'"),
        ("result blocked", "result tied", 13, 8, f"expected 'blocked' {PLAYED}, found 'tied'"),
        ("seat=1 side=1", "seat=0 side=1", 13, 16, f"expected 'seat=1' {PLAYED}, found 'seat=0'"),
        ("finish=-", "finish=simples", 13, 30, f"expected 'finish=-' {PLAYED}, found 'finish=simples'"),
        ("points=1", "points=2", 13, 59, f"expected 'points=1' {PLAYED}, found 'points=2'"),
        ("pips=5,3", "pips=5", 13, 68, f"expected 'pips=5,3' {PLAYED}, found 'pips=5'"),
        ("next_starter=0", "next_starter=1", 13, 91, f"expected 'next_starter=0' {PLAYED}, found 'next_s"),
        ("next_starter=0", "", 13, 90, f"expected 'next_starter=0' {PLAYED}, but the line ends"),
        ("scores 0 1", "scores 1 1", 14, 8, "expected '0' (after this round), found '1'"),
        ("scores 0 1", "scores 0", 14, 9, "expected '1' (after this round), but the line ends"),
        ("scores 0 1\n", "", 15, 1, "expected 'scores', found 'round'"),
        ("round 2", "winner 1\nround 2", 16, 1, "expected 'end' (the match is not over), found 'winner'"),
        ("deal 4", "deal 5", 32, 6, "expected '4', found '5'"),
        (" given lot 1", "", 25, 9, "round 2 was dealt by the seed, so no later deal can be given"),
        ("\nend\n", "\n", 35, 1, "expected 'end' (the match is not over), but the text ends"),
        ("\nend\n", "\nend\nend\n", 36, 1, "expected the end of the text after one record"),
    ],
)  # fmt: skip
def test_an_error_says_where_it_is_and_what_was_expected(
    old: str, new: str, line: int, column: int, message: str
) -> None:
    error = wrong(MATCH, old, new)
    assert str(error).startswith(f"line {line}, column {column}: {message}")
    assert (error.line, error.column) == (line, column)
    same = pickle.loads(pickle.dumps(error))
    assert (type(same), str(same), same.line) == (NotationError, str(error), line)


def test_errors_of_whole_records() -> None:
    match = play_to_end(Match(PRESETS["duplas"], 1))
    over, winner = dumps(match), match.winner
    assert "(the match is over), found 'end'" in str(wrong(over, f"winner {winner}\n", ""))
    assert f"expected '{winner}' (the match is over), found '2'" in str(wrong(over, f"winner {winner}", "winner 2"))
    number = over.count("round ")
    last = over[over.rindex("\nround ") : over.index("\nwinner")]
    more = over.replace("\nwinner", last.replace(f"round {number}", f"round {number + 1}") + "\nwinner")
    assert "(the match is over), found 'round'" in str(wrong(more, "", ""))

    game = dumps(Game(PRESETS["blocos"], 1))
    error = wrong(game, "seed 1\n", "seed 1\nscores 3 4\n")
    assert str(error).startswith("line 4, column 1: a seed deals a first round, where scores are nil all")
    assert loads(game.replace("seed 1\n", "seed 1\nscores 0 0\n")) == loads(game)
    assert "expected 2 scores, one a side" in str(wrong(game, "seed 1\n", "scores 3\n"))
    assert "a whole number from 0 to 49, found '50'" in str(wrong(game, "seed 1\n", "scores 3 50\n"))
    forced = "start seat=0 forced=5-5 multiplier=1"
    error = wrong("domino game 1\nrules blocos\nhand 0: 6-6\nhand 1: 5-5\n", "1: 5-5\n", f"1: 5-5\n{forced}\nend\n")
    assert str(error).startswith("line 5, column 14: forced='5-5': seat 0, which starts, does not hold it")
    assert "expected 'domino', but the text ends" in str(wrong("# nothing here\n\n", "#", "#"))

    assert "round 1 was dealt by the seed, so" in str(wrong(over, "round 2", "round 2 given"))
    hand, tiles = game.split("\n")[3], game.split("boneyard: ")[1].split("\n")[0]
    assert str(wrong(game, hand, hand.replace("0:", "0:  ")[:-3])).startswith(
        f"line 4, column 1: seed 1 deals otherwise: expected {hand!r}"
    )
    turned = " ".join(tiles.split()[::-1])
    for other in (f"boneyard: {turned}\n", ""):
        error = wrong(game, f"boneyard: {tiles}\n", other)
        assert str(error).startswith(f"line 6, column 1: seed 1 deals otherwise: expected 'boneyard: {tiles}'")
    assert "round 3 was dealt by the seed" in str(wrong(dumps(rounds_of(3)), "\nend", "\ndeal 4\nend"))

    redealt = Match(make_rules("mano_a_mano"), deals=[Deal((("6-4",), ("5-4",)))])
    error = wrong(dumps(redealt), "rules mano_a_mano", "rules mano_a_mano no_double=redeal")
    assert str(error).startswith("line 4, column 1: deal 0: no hand holds a double")


def play_to_end(match: Match) -> Match:
    play_on(match, Random(1), 10_000)
    return match


def rounds_of(number: int) -> Match:
    """A match in the middle of this round."""
    match = Match(make_rules("duplas", target=100), 1)
    random = Random(2)
    while match.round < number:
        play_on(match, random, 1)
    return match


def corrupt_texts() -> list[str]:
    texts = [MATCH, dumps(play_to_end(Match(PRESETS["mano_a_mano"], 6)))]
    unseeded = Match(make_rules("puxar", players=9, hand_size=3, max_pip=9, target=60))
    texts.append(dumps(play_to_end(unseeded)))
    game = Game.from_deal(
        PRESETS["duplas"], [["6-4"], ["5-5", "4-4"], ["1-1"], ["0-0"]], ["6-6"], 1, "4-4", scores=[1, 2]
    )
    game.play("4-4")
    texts += [dumps(game), dumps(game.deal._replace(lot=2))]
    return texts


def assert_refused_or_exact(text: str) -> bool:
    """No text makes another exception than NotationError, within the text; what loads comes back."""
    record = None
    with contextlib.suppress(NotationError):
        record = loads(text)
    if record is None:
        with pytest.raises(NotationError) as caught:
            loads(text)
        assert 1 <= caught.value.line <= len(io.StringIO(text, newline=None).readlines()) + 1
        assert caught.value.column >= 1
        return False
    assert loads(dumps(record)) == record
    return True


@pytest.mark.parametrize("text", corrupt_texts())
def test_a_record_that_is_cut_off_is_refused(text: str) -> None:
    assert assert_refused_or_exact(text[:-1])  # the last new line may be missing
    lines = text.splitlines(keepends=True)
    for count in range(len(lines)):
        assert not assert_refused_or_exact("".join(lines[:count]))
    for end in range(0, len(text) - 1, 1 + len(text) // 300):
        assert not assert_refused_or_exact(text[:end])


@pytest.mark.parametrize("text", corrupt_texts())
def test_no_garbled_record_does_anything_but_say_so(text: str) -> None:
    random = Random(text)
    for _ in range(150):
        at = random.randrange(len(text))
        new = random.choice(
            ["", random.choice(text), chr(random.randrange(32, 127)), random.choice("\0\n\r\t#²٣\ud800é=+-:")]
        )
        assert_refused_or_exact(text[:at] + new + text[at + random.randrange(2) :])
    lines = text.splitlines(keepends=True)
    refused = 0
    for at in range(len(lines)):
        other = random.randrange(len(lines))
        shorter = lines[:at] + lines[at + 1 :]
        doubled = lines[: at + 1] + lines[at:]
        swapped = lines.copy()
        swapped[at], swapped[other] = swapped[other], swapped[at]
        refused += sum(not assert_refused_or_exact("".join(changed)) for changed in (shorter, doubled, swapped))
    assert refused > len(lines)
    assert_refused_or_exact("\ufeff" + text)


@given(text=st.text())
@few
def test_no_text_at_all_makes_another_error(text: str) -> None:
    assert not assert_refused_or_exact(text)
    assert not assert_refused_or_exact("domino match 1\nrules duplas\n" + text)


def test_a_file_object_and_lines_say_the_same() -> None:
    assert list(load(io.StringIO(MATCH))) == list(load(MATCH.splitlines())) == [loads(MATCH)]
