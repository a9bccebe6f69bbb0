"""What a seat can believe: what samples look like to it, what a person can check, deals played again, and errors."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_play import positions
from strategies import TABLES, build_deal, build_rules

from domino_env import PRESETS, Batch, Game, Match, RuleSet, View, belief, make_rules
from domino_env.belief import Belief, deal, new_work, prepare, replay, restart
from domino_env.observation import Views, look_many, new_views
from domino_env.players import Streams
from domino_env.rules import pack
from domino_env.state import NONE, State, new_state
from domino_env.tiles import parse_tile, tiles_in


def views_of(rules: RuleSet, state: State, seat: int) -> Views:
    views = new_views(rules, len(state))
    look_many(state, pack(rules), np.arange(len(state)), np.full(len(state), seat), views)
    return views


# What a sample looks like to the seat


def check_looks(rules: RuleSet, steps: int) -> None:
    """Compare what each seat (of nine, four) sees in samples with its view, in positions of matches of random play."""
    batch, rng = Batch(rules, 12, seed=5, episode="match", observe=False), Random(1)
    seen, changed = 0, 0
    for step in range(steps):
        t = step % 12
        if batch.state["seat"][t] != NONE:
            for seat in rng.sample(range(rules.players), min(4, rules.players)):
                view = views_of(rules, batch.state[t : t + 1], seat)
                states = Belief(rules, view).sample(3, seed=step)
                for other in views_of(rules, states, seat):
                    assert other.tobytes() == view[0].tobytes()
                for row in states:
                    assert sorted(row["deck"][: rules.num_tiles].tolist()) == list(range(rules.num_tiles))
                changed += (states["hands"] != batch.state["hands"][t]).any(1).sum()
                seen += 1
        batch.step(batch.sample_actions())
    assert seen > 1.5 * steps
    assert changed > seen


@pytest.mark.parametrize("table", TABLES)
def test_a_sample_looks_the_same_byte_for_byte_to_its_seat_on_and_off_turn(table: str) -> None:
    check_looks(TABLES[table], 120)


@pytest.mark.long
@pytest.mark.parametrize("table", TABLES)
def test_samples_look_the_same_in_thousands_of_positions(table: str) -> None:
    check_looks(TABLES[table], 3000)


@settings(deadline=None)  # the first of each size of table compiles
@given(st.integers(0, 2**32))
def test_any_view_from_play_under_any_rules_has_deals(seed: int) -> None:
    rng = Random(seed)
    rules = build_rules(rng.randint)
    given_deal = build_deal(rng.randint, rules)
    if rng.random() < 0.5:
        game = Game(rules, seed=seed)
    else:  # hands of any size, tiles missing, opened freely even where the rules say who opens
        game = Game.from_deal(rules, given_deal.hands, given_deal.boneyard, starter=given_deal.lot)
    while game.seat is not None:
        seat = rng.randrange(rules.players)
        view = game.view(seat)
        believed = Belief(rules, view)
        for other in views_of(rules, believed.sample(2, seed=seed), seat):
            assert other.tobytes() == view.record.tobytes()
        if believed.exact:
            held = believed.marginals().sum(1)
            np.testing.assert_allclose(held, [*map(len, game.hands), len(game.boneyard)], atol=1e-6)
        game.play(rng.choice(game.legal_moves()))


def test_a_match_and_its_rounds_are_seen_as_they_stand() -> None:
    rules, rng, later = make_rules("duplas", tie_starter="opening"), Random(3), 0
    for seed in range(12):
        match = Match(rules, seed=seed)
        while not match.over:
            game = match.game
            if game.seat is not None and len(game.moves) in (0, 5):
                for seat in range(4):
                    view = game.view(seat)
                    row = Belief(rules, view).sample(1, seed)[0]
                    assert row["scores"][:2].tolist() == game.scores
                    assert (row["multiplier"], row["starter"]) == (game.multiplier, game.starter)
                    assert int(row["hands"][seat]) == sum(1 << parse_tile(name) for name in view.hand)
                    forced = NONE if game.forced is None else parse_tile(game.forced)
                    assert row["forced"] == forced
                    later += match.round > 0
            match.play(rng.choice(match.game.legal_moves()))
    assert later > 50


# In words that a person can check


def test_what_the_opening_shows() -> None:
    rules = PRESETS["duplas"]
    game = Game(rules, seed=3)
    holder = game.starter
    for seat in range(4):
        chances = Belief(rules, game.view(seat)).marginals()
        assert chances[holder, parse_tile("6-6")] == pytest.approx(1)  # known before it is played
    game.play("6-6")
    other = (holder + 1) % 4
    assert "5-5" in game.hands[other] or "5-5" in Belief(rules, game.view(other)).possible(holder)


def test_a_pass_shows_what_a_seat_lacks_and_a_draw_may_bring_it_back() -> None:
    rules = make_rules("puxar", max_pip=3, hand_size=2)
    game = Game.from_deal(rules, [["3-3", "0-1"], ["1-2", "0-2"]], ["0-3", "1-1", "2-2", "2-3", "1-3", "0-0"])
    game.play("3-3")  # seat 1 cannot play and draws; seat 0 cannot, draws, and so on
    view = game.view(0)
    drawn = [event for event in view.events if event.kind == "draw"]
    assert [event.seat for event in drawn] == [1, 0]
    believed = Belief(rules, view)
    chances = believed.marginals()
    # Seat 1 is to act, so the tile that it drew is a 3: it held none before.
    threes = [parse_tile(name) for name in ("0-3", "1-3", "2-3")]
    assert chances[1, threes].sum() == pytest.approx(1)
    assert set(believed.possible(1)) == {"0-3", "1-3", "2-3", "0-0", "0-2", "1-2", "2-2"}
    assert believed.count == 3 * 6  # the drawn three, and two of the four tiles without a three


def test_a_tile_played_after_it_was_drawn_tells_nothing_of_the_hand_dealt() -> None:
    rules = make_rules("mano_a_mano", max_pip=2, hand_size=2)
    game = Game.from_deal(rules, [["2-2", "0-0"], ["0-1", "1-1"]], ["0-2", "1-2"], starter=None, first_round=True)
    game.play("2-2")
    game.play("0-2R")  # the tile it has just drawn
    believed = Belief(rules, game.view(0))
    assert believed.count == 1  # it held neither 0-2 nor 1-2, or it would not have drawn
    assert believed.possible(1) == ["0-1", "1-1"]


def test_own_tiles_are_certain_and_played_ones_are_gone() -> None:
    game = Game(PRESETS["blocos"], seed=9)
    for _ in range(4):
        game.play(game.legal_moves()[0])
    seat = game.seat
    assert seat is not None
    believed = Belief(game.rules, game.view(seat))
    chances = believed.marginals()
    own = [parse_tile(name) for name in game.hands[seat]]
    assert (chances[seat, own] == 1).all()
    assert chances[seat].sum() == len(own)
    assert set(believed.possible(seat)) == set(game.hands[seat])
    assert not chances[:, [move.action >> 1 for move in game.moves]].any()


# For compiled players


@pytest.mark.parametrize("table", ["duplas", "mano_a_mano", "puxar-3"])
def test_a_deal_can_be_played_again_move_by_move(table: str) -> None:
    rules = TABLES[table]
    packed, work, streams = pack(rules)[0], new_work(rules), Streams.from_seed(1, 1)
    dealt, now, other = (new_state(rules, 1) for _ in range(3))
    for seed in range(10):
        for game in positions(rules, seed):
            view = game.view(game.seat or 0).record[0]
            assert prepare(view, packed, work[0])
            assert deal(work[0], view, packed, streams.states[0], dealt[0], now[0])
            assert dealt[0]["num_events"] == 0
            size = rules.hand_size
            for seat in range(rules.players):
                hand = dealt[0]["deck"][seat * size : seat * size + size]
                assert sorted(hand.tolist()) == tiles_in(int(dealt[0]["hands"][seat]))
            assert (dealt[0]["top"], dealt[0]["bottom"]) == (rules.players * size, rules.num_tiles)
            plays = work[0]["plays"][: work[0]["num_plays"]].tolist()
            assert plays == [move.action for move in game.moves]
            restart(work[0], view, packed, other[0])
            names = [name for name in other.dtype.names or () if name != "events"]  # those of earlier rounds lie there
            assert all(np.array_equal(other[name], dealt[name]) for name in names)
            assert replay(work[0], packed, dealt[0])
            assert all(np.array_equal(dealt[name], now[name]) for name in names)


def test_samples_follow_from_the_seed_alone() -> None:
    view = Game(PRESETS["puxar"], seed=2).view(0)
    one, two = (Belief(PRESETS["puxar"], view).sample(5, seed=7) for _ in range(2))
    assert one.tobytes() == two.tobytes()
    assert one.tobytes() != Belief(PRESETS["puxar"], view).sample(5, seed=8).tobytes()
    assert len(np.unique(one["rng"], axis=0)) == 5
    believed, streams = Belief(PRESETS["puxar"], view), Streams.from_seed(7, 3).rows(np.array([1]))
    first, second = believed.sample(2, streams), believed.sample(2, streams)
    assert first.tobytes() != second.tobytes()
    both = Belief(PRESETS["puxar"], view).sample(4, Streams.from_seed(7, 1, first=1))
    assert both.tobytes() == first.tobytes() + second.tobytes()
    assert len(believed.sample(0, seed=1)) == 0


SIZES = {**TABLES, **{f"blocos-{players}": make_rules("blocos", players=players) for players in range(5, 10)}}


@pytest.mark.parametrize("table", SIZES)
def test_the_presets_are_always_counted(table: str) -> None:
    """No position has more states than its groups can make: bounded here over all ways to draw and pass."""
    rules, work = SIZES[table], new_work(SIZES[table])
    others, size = rules.players - 1, rules.hand_size
    most = 0
    for draws in range(rules.boneyard_size + 1 if rules.draw != "none" else 1):
        # Every draw a group of its own, and every hand full.
        most = max(most, (size + 1) ** others * 2**draws * (rules.boneyard_size - draws + 1))
    assert 2 * most <= work["table"].shape[1]


def test_large_sets_are_walked_where_they_cannot_be_counted() -> None:
    rules, walked = make_rules("puxar", players=8, max_pip=9, hand_size=3), 0
    for seed in range(4):
        for game in positions(rules, seed):
            for seat in (0, 3):
                view = game.view(seat)
                believed = Belief(rules, view)
                if not believed.exact:
                    states = believed.sample(3, seed=seed)
                    for other in views_of(rules, states, seat):
                        assert other.tobytes() == view.record.tobytes()
                    assert len(np.unique(states["deck"], axis=0)) == 3
                    walked += 1
    assert walked > 20


# Errors


def test_a_finished_round_is_refused() -> None:
    game = Game(PRESETS["duplas"], seed=1)
    game.play_out(seed=1)
    with pytest.raises(ValueError, match="the round is over"):
        Belief(game.rules, game.view(0))


def test_a_view_of_other_rules_is_refused() -> None:
    game = Game(PRESETS["mano_a_mano"], seed=1)
    with pytest.raises(ValueError, match="of a round under other rules"):
        Belief(PRESETS["puxar"], game.view(0))
    refused = 0
    for seed in range(20):
        for game in positions(PRESETS["mano_a_mano"], seed):
            if any(event.kind == "draw" for event in game.events):
                record = game.view(0).record
                with pytest.raises(ValueError, match="no deal leads to this view"):
                    Belief(PRESETS["blocos"], record)  # nobody draws there
                refused += 1
    assert refused > 20
    with pytest.raises(ValueError, match="no deal leads to this view"):
        Belief(PRESETS["duplas"], Game(PRESETS["blocos"], seed=1).view(0).record)
    with pytest.raises(ValueError, match="not a View or an observation"):
        Belief(TABLES["blocos-9"], Game(PRESETS["blocos"], seed=1).view(0).record)


def test_a_view_that_contradicts_itself_is_refused() -> None:
    rules, rng = PRESETS["puxar"], Random(5)
    game = Game(rules, seed=4)
    for _ in range(9):
        game.play(rng.choice(game.legal_moves()))
    assert game.seat is not None
    record = game.view(game.seat).record
    assert Belief(rules, record).count > 0
    for name, value in (
        ("boneyard", 20),
        ("left", 9),
        ("starter", 7),
        ("num_events", 3),
        ("num_events", -1),
        ("drawer", 1),
    ):
        wrong = record.copy()
        wrong[name] = value
        with pytest.raises(ValueError, match="no deal leads to this view"):
            Belief(rules, wrong)
    for event in (3, 6 << 3, 40 << 7):
        wrong = record.copy()
        wrong["events"][0, 1] = event
        with pytest.raises(ValueError, match="no deal leads to this view"):
            Belief(rules, wrong)


def test_arguments_are_checked() -> None:
    game = Game(PRESETS["duplas"], seed=1)
    view: View = game.view(0)
    believed = Belief(game.rules, view)
    with pytest.raises(ValueError, match="is not a RuleSet"):
        Belief("duplas", view)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="view is of int"):
        Belief(game.rules, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 records given"):
        Belief(game.rules, new_views(game.rules, 2))
    with pytest.raises(ValueError, match="n=-1"):
        believed.sample(-1)
    with pytest.raises(ValueError, match="seed=-4"):
        believed.sample(1, seed=-4)
    with pytest.raises(ValueError, match="3 streams given"):
        believed.sample(1, Streams.from_seed(1, 3))
    with pytest.raises(ValueError, match="seat=4"):
        believed.possible(4)
    assert repr(believed) == f"<Belief of seat 0: {believed.count} deals>"


def test_what_is_not_counted_is_not_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(belief, "new_work", lambda rules: new_work(rules, limit=1))
    game = Game(PRESETS["blocos"], seed=1)
    believed = Belief(game.rules, game.view(game.seat or 0))
    assert not believed.exact
    for ask in (lambda: believed.count, believed.marginals, lambda: believed.possible(0)):
        with pytest.raises(ValueError, match="too many to be counted"):
            ask()
    assert "too many" in repr(believed)
    assert len(believed.sample(2, seed=1)) == 2
