"""What a seat can believe: counted, weighed and sampled as listing all deals one by one gives it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations, permutations
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import TABLES, build_deal, build_rules

from domino_env import PRESETS, Batch, Game, Match, RuleSet, View, belief, make_rules
from domino_env.belief import Belief, deal, new_work, prepare, replay, restart
from domino_env.observation import Views, look_many, new_views
from domino_env.players import Streams
from domino_env.rules import pack
from domino_env.state import NONE, State, new_state
from domino_env.tiles import TILE_NAMES, parse_tile, tiles_in

# A deal as it is counted: hands, tiles drawn in order, tiles not drawn.
Key = tuple[tuple[frozenset[str], ...], tuple[str, ...], frozenset[str]]

#: Small enough for all deals to be listed.
SMALL: dict[str, RuleSet] = {
    f"{players}x{hand_size}-double-{max_pip}-{draw}-{opening}": make_rules(
        "blocos", players=players, pairs=players == 4, next_starter="rotation", hand_size=hand_size, max_pip=max_pip,
        draw=draw, opening=opening,
    )
    for players, hand_size, max_pip in ((2, 2, 2), (2, 3, 3), (3, 2, 3), (4, 2, 3))
    for draw in ("none", "until_fit", "one")
    for opening in ("lots", "highest_double")
}  # fmt: skip
SMALL["redeal"] = make_rules("mano_a_mano", hand_size=2, max_pip=3, no_double="redeal")


def positions(rules: RuleSet, seed: int) -> Iterator[Game]:
    """A round before each of its decisions."""
    game, rng = Game(rules, seed=seed), Random(seed)
    while game.seat is not None:
        yield game
        game.play(rng.choice(game.legal_moves()))


def listed(game: Game, seat: int) -> dict[Key, Game]:
    """Every deal from which the round's plays lead to a position that looks the same to `seat`, and that position."""
    rules, truth = game.rules, game.view(seat).record.tobytes()
    drawn = [event.seat for event in game.events if event.kind == "draw"]
    own = game.deal.hands[seat]
    own_draws = {i: game.deal.boneyard[i] for i, drawer in enumerate(drawn) if drawer == seat}
    hidden = {*TILE_NAMES[: rules.num_tiles]} - {*own} - {*own_draws.values()}
    played = [
        {event.tile for event in game.events if event.kind == "play" and event.seat == s} for s in range(rules.players)
    ]
    found: dict[Key, Game] = {}

    def may_be(hand: tuple[str, ...], holder: int) -> bool:
        """Whether the holder plays it, and nobody else; what it played otherwise must have been drawn."""
        others_played = set[Any]().union(*(tiles for s, tiles in enumerate(played) if s != holder))
        return not others_played & {*hand} and len(played[holder] - {*hand}) <= drawn.count(holder)

    def fill(hands: list[tuple[str, ...]], left: frozenset[str]) -> None:
        if len(hands) == seat:
            fill([*hands, own], left)
        elif len(hands) < rules.players:
            for hand in combinations(sorted(left), rules.hand_size):
                if may_be(hand, len(hands)):
                    fill([*hands, hand], left - {*hand})
        else:
            for others in permutations(sorted(left), len(drawn) - len(own_draws)):
                rest, others_left = left - {*others}, iter(others)
                draws = tuple(own_draws[i] if i in own_draws else next(others_left) for i in range(len(drawn)))
                key = (tuple(frozenset(hand) for hand in hands), draws, frozenset(rest))
                other = replayed(hands, [*draws, *sorted(rest)])
                if other is not None and other.view(seat).record.tobytes() == truth:
                    found[key] = other

    def replayed(hands: list[tuple[str, ...]], boneyard: list[str]) -> Game | None:
        try:
            other = Game.from_deal(rules, hands, boneyard, starter=game.starter, first_round=True)
            for move in game.moves:
                other.play(move)
        except ValueError:
            return None
        return other

    fill([], frozenset(hidden))
    return found


def key_of(rules: RuleSet, row: Any, events: int) -> Key:
    """The deal of a sampled record, which has seen that many draws."""
    names = [TILE_NAMES[tile] for tile in row["deck"][: rules.num_tiles]]
    size, dealt = rules.hand_size, rules.players * rules.hand_size
    hands = tuple(frozenset(names[seat * size : seat * size + size]) for seat in range(rules.players))
    return hands, tuple(names[dealt : dealt + events]), frozenset(names[dealt + events :])


def expected_marginals(rules: RuleSet, games: list[Game]) -> np.ndarray[Any, Any]:
    expected = np.zeros((rules.players + 1, rules.num_tiles))
    for game in games:
        for place, names in enumerate([*game.hands, game.boneyard]):
            for name in names:
                expected[place, parse_tile(name)] += 1 / len(games)
    return expected


def views_of(rules: RuleSet, state: State, seat: int) -> Views:
    views = new_views(rules, len(state))
    look_many(state, pack(rules), np.arange(len(state)), np.full(len(state), seat), views)
    return views


def statistic_of(believed: Belief, keys: set[Key], draws: int, n: int, seed: int) -> float:
    """The chi-square statistic of `n` samples against all deals as likely as each other; none may be another."""
    found = Counter(key_of(believed.rules, row, draws) for row in believed.sample(n, seed))
    assert found.keys() <= keys
    expected = n / len(keys)
    return sum((found[key] - expected) ** 2 / expected for key in keys)


# Against all deals


def check_all_deals(rules: RuleSet, rounds: int, first: int, enough: float, limit: Callable[[int], float]) -> None:
    """Compare beliefs with the list of all deals, from move `first` of each round on, until `enough` are compared."""
    checked, statistic, degrees = 0, 0.0, 0
    for seed in range(rounds):
        if degrees > enough and checked > 20:
            break
        for number, game in enumerate(positions(rules, seed)):
            if number < first:
                continue
            for seat in range(rules.players):
                believed, deals = Belief(rules, game.view(seat)), listed(game, seat)
                assert believed.exact
                assert believed.count == len(deals)
                expected = expected_marginals(rules, list(deals.values()))
                np.testing.assert_allclose(believed.marginals(), expected, rtol=0, atol=1e-12)
                for other in range(rules.players):
                    held = {TILE_NAMES[tile] for tile in np.flatnonzero(expected[other])}
                    assert set(believed.possible(other)) == held
                draws = sum(event.kind == "draw" for event in game.events)
                n = 10 * len(deals) if len(deals) <= 200 else 100
                value = statistic_of(believed, {*deals}, draws, n, seed)
                if 1 < len(deals) <= 200:
                    statistic, degrees = statistic + value, degrees + len(deals) - 1
                checked += 1
    assert checked > 10
    assert degrees > 20
    assert statistic < limit(degrees)


@pytest.mark.parametrize("name", SMALL)
def test_counts_marginals_and_samples_are_those_of_all_deals_listed(
    name: str, chi_square_limit: Callable[[int], float]
) -> None:
    players = SMALL[name].players
    check_all_deals(SMALL[name], 6, 0 if players == 2 else players, 100, chi_square_limit)


@pytest.mark.long
@pytest.mark.parametrize("name", SMALL)
def test_the_same_from_the_first_move_on(name: str, chi_square_limit: Callable[[int], float]) -> None:
    check_all_deals(SMALL[name], 6 if SMALL[name].players < 4 else 2, 0, np.inf, chi_square_limit)


@pytest.mark.parametrize("name", [name for name in SMALL if "4x2" not in name])
def test_the_walk_samples_uniformly_too(
    name: str, chi_square_limit: Callable[[int], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(belief, "new_work", lambda rules: new_work(rules, limit=1))
    rules, walked, statistic, degrees = SMALL[name], 0, 0.0, 0
    for seed in range(6):
        for number, game in enumerate(positions(rules, seed)):
            for seat in range(rules.players):
                if number < 1 + 2 * (rules.players > 2):
                    continue
                believed = Belief(rules, game.view(seat))
                if believed.exact or len(deals := listed(game, seat)) > 100:
                    continue
                draws = sum(event.kind == "draw" for event in game.events)
                statistic += statistic_of(believed, {*deals}, draws, 10 * len(deals), seed)
                degrees += len(deals) - 1
                walked += 1
        if degrees > 100 and walked > 10:
            break
    assert walked > 5
    assert degrees > 20
    assert statistic < chi_square_limit(degrees)


def test_the_boneyard_is_in_any_order(chi_square_limit: Callable[[int], float]) -> None:
    rules = make_rules("puxar", max_pip=2, hand_size=1)
    game = Game.from_deal(rules, [["0-0"], ["1-1"]], ["0-1", "0-2", "1-2", "2-2"], starter=1)
    found = Counter(tuple(row["deck"][2:6].tolist()) for row in Belief(rules, game.view(0)).sample(6000, 1))
    assert len(found) == 120  # seat 1 holds one of five tiles, and the other four lie in any order
    assert sum((number - 50) ** 2 / 50 for number in found.values()) < chi_square_limit(119)


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
