"""Records: exact round trips, and what has no record."""

from __future__ import annotations

import pickle
from pathlib import Path
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_play import few, play_on
from strategies import TABLES, partial_deals, rule_sets, seeds

from domino_env import PRESETS, Deal, Game, Match, RuleSet
from domino_env.notation import Record, dumps, load, loads


def assert_same_record(record: Record) -> Record:
    text = dumps(record)
    again = loads(text)
    assert type(again) is type(record)
    assert again == record
    assert dumps(again) == text
    assert text.endswith("\nend\n")
    assert list(load(text.splitlines())) == [record]
    return again


@given(rules=rule_sets(), seed=seeds, play=seeds, moves=st.integers(0, 120))
@few
def test_a_seeded_match_comes_back_and_goes_on_as_it_would_have(
    rules: RuleSet, seed: int, play: int, moves: int
) -> None:
    match = Match(rules, seed)
    play_on(match, Random(play), moves)
    again = assert_same_record(match)
    assert isinstance(again, Match)
    assert again.seed == seed
    assert (again.scores, again.over, again.winner) == (match.scores, match.over, match.winner)
    play_on(match, Random(play), 30)
    play_on(again, Random(play), 30)
    assert again == match


@given(data=st.data(), rules=rule_sets(), seed=st.none() | seeds, moves=st.integers(0, 40))
@few
def test_a_match_of_given_deals_comes_back_with_those_to_come(
    data: st.DataObject, rules: RuleSet, seed: int | None, moves: int
) -> None:
    deals = data.draw(st.lists(partial_deals(rules), min_size=1, max_size=4))
    deals = [deal if data.draw(st.booleans()) else deal._replace(lot=None) for deal in deals]
    try:
        match = Match(rules, seed, deals=deals)
        play_on(match, Random(moves), moves)
    except ValueError as error:
        assume("no hand holds a double" not in str(error))
        raise
    again = assert_same_record(match)
    assert isinstance(again, Match)
    assert again.seed == seed
    played = len(match.games)
    assert again.deals[played:] == match.deals[played:]
    if seed is not None:
        assert again.deals == match.deals
        if rules.no_double != "redeal":
            play_on(match, Random(seed), 30)
            play_on(again, Random(seed), 30)
            assert again == match


@given(data=st.data(), rules=rule_sets(), seed=seeds, multiplier=st.integers(1, 2**31))
@few
def test_a_position_comes_back(data: st.DataObject, rules: RuleSet, seed: int, multiplier: int) -> None:
    deal = data.draw(partial_deals(rules))
    assert deal.lot is not None
    forced = data.draw(st.none() | st.sampled_from(deal.hands[deal.lot]))
    scores = data.draw(
        st.lists(st.integers(0, (rules.target or 2) - 1), min_size=rules.num_sides, max_size=rules.num_sides)
    )
    game = Game.from_deal(rules, deal.hands, deal.boneyard, deal.lot, forced, multiplier, scores=scores)
    random = Random(seed)
    while True:
        again = assert_same_record(game)
        assert isinstance(again, Game)
        assert (again.events, again.result, again.scores) == (game.events, game.result, game.scores)
        if game.seat is None:
            break
        for _ in range(3):
            if game.seat is not None:
                game.play(random.choice(game.legal_moves()))


@pytest.mark.parametrize("rules", TABLES.values(), ids=TABLES)
def test_rounds_dealt_by_a_seed_and_rounds_of_a_match_come_back(rules: RuleSet) -> None:
    game = Game(rules, seed=11)
    assert assert_same_record(game).seed == 11
    game.play_out(3)
    assert_same_record(game)
    while game.moves:
        game.undo()
        assert_same_record(game)
    match = Match(rules, seed=2**130)
    play_on(match, Random(1), 10_000)
    for game in match.games:
        assert_same_record(game)
    assert_same_record(Match(rules))


def test_an_unseeded_match_is_a_record_of_its_deals() -> None:
    match = Match(PRESETS["blocos"])
    play_on(match, Random(5), 10_000)
    text = dumps(match)
    assert "seed" not in text
    assert "given" not in text
    again = assert_same_record(match)
    assert isinstance(again, Match)
    assert [deal.lot for deal in again.deals] == [game.starter for game in match.games]


@given(data=st.data(), rules=rule_sets())
@few
def test_a_deal_alone_comes_back(data: st.DataObject, rules: RuleSet) -> None:
    assert_same_record(data.draw(partial_deals(rules)))


def test_an_undone_last_move_is_not_in_the_record() -> None:
    match = Match(PRESETS["duplas"], 4)
    play_on(match, Random(4), 10_000)
    match.game.undo()
    again = assert_same_record(match)
    assert not again.over
    match.games[0].undo()  # a copy: a round that is over stays as it was
    assert assert_same_record(match) == again


def test_other_things_have_no_record() -> None:
    with pytest.raises(TypeError, match="'6-4' is not a Match, a Game or a Deal"):
        dumps("6-4")
    with pytest.raises(ValueError, match="no tile twice"):
        dumps(Deal((("6-4",), ("4-6",))))
    with pytest.raises(ValueError, match="none of them empty"):
        dumps(Deal((("6-4",), ())))
    with pytest.raises(ValueError, match="lot=2 is not a whole number from 0 to 1"):
        dumps(Deal((("6-4",), ("5-5",)), lot=2))


def test_the_match_in_the_page_on_notation_is_one() -> None:
    page = (Path(__file__).parents[1] / "docs" / "notation.md").read_text(encoding="utf-8")
    text = page.split("```text\n")[1].split("```")[0]
    assert dumps(loads(text)) == text


def test_what_records_hold_stays_with_games_and_matches() -> None:
    game = Game(PRESETS["duplas"], 11)
    assert [game.seed, game.copy().seed, pickle.loads(pickle.dumps(game)).seed] == [11, 11, 11]
    assert Game.from_deal(PRESETS["duplas"], game.hands, seed=4).seed is None
    deals = [Deal((("6-4", "2-1"), ("5-5",)), ("4-1",), 1)]
    match = Match(PRESETS["mano_a_mano"], 12, deals=deals)
    for same in (match, match.copy(), pickle.loads(pickle.dumps(match))):
        assert same.seed == 12
        assert same.deals == (Deal((("1-2", "4-6"), ("5-5",)), ("1-4",), 1),)
        assert same.game.seed is None
    assert Match(PRESETS["duplas"]).seed is None
    for scores, message in (
        ([1], "1 given for 2 sides"),
        ([0, 6], "side 1=6 is not"),
        ([-1, 0], "side 0=-1 is not"),
    ):
        with pytest.raises(ValueError, match=message):
            Game.from_deal(PRESETS["duplas"], game.hands, scores=scores)
    with pytest.raises(ValueError, match="deal 1: tile '6-4' in the hand of seat 1 was already given"):
        Match(PRESETS["mano_a_mano"], deals=[*deals, Deal((("6-4",), ("6-4",)))])
