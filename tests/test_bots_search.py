"""The search player: what it knows, that it plays by the rules, and that it gains by searching."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hidden import check_that_hidden_tiles_change_nothing
from strategies import TABLES

from domino_env import PRESETS, Batch, Game, make_rules
from domino_env.arena import duel
from domino_env.belief import Belief
from domino_env.bots import ScriptedPlayer, make_player, solver
from domino_env.bots._search_values import AIMS, play_out, set_payoff, worth
from domino_env.bots._solver_search import outcome_of
from domino_env.bots.scripted import SCRIPTED
from domino_env.bots.search import SearchPlayer
from domino_env.equity import Equity
from domino_env.observation import Views, new_views
from domino_env.players import Streams
from domino_env.rules import pack
from domino_env.state import NONE, copy_state
from domino_env.tiles import ACTION_NAMES

MakeViews = Callable[..., Views]
FAST: dict[str, Any] = {"deals": 3, "solve": 12}


def legal(views: Views, actions: Any) -> bool:
    return all(int(view["legal"][a & 1]) >> (a >> 1) & 1 for view, a in zip(views, actions.tolist(), strict=True))


@pytest.mark.parametrize("name", TABLES)
def test_plays_legal_moves_at_every_table(name: str, random_views: MakeViews) -> None:
    rules = TABLES[name]
    views = random_views(rules, 300)
    for aim in AIMS if rules.num_sides == 2 else AIMS[:2]:
        player = SearchPlayer(rules, aim=aim, **FAST)
        assert legal(views, player.act(views, Streams.from_seed(1, len(views))))


@pytest.mark.parametrize("name", ["duplas", "mano_a_mano", "puxar-3"])
def test_a_choice_follows_from_view_and_stream_alone(name: str, random_views: MakeViews) -> None:
    rules = TABLES[name]
    views = random_views(rules, 60)
    chosen = SearchPlayer(rules, **FAST).act(views, Streams.from_seed(1, 60))
    other = SearchPlayer(rules, **FAST)
    streams = Streams.from_seed(1, 60)
    for v in reversed(range(60)):
        assert other.act(views[v : v + 1], streams.rows(np.array([v])))[0] == chosen[v]


@pytest.mark.parametrize("name", ["duplas", "mano_a_mano", "blocos-3", "puxar"])
def test_tiles_that_it_cannot_see_change_nothing(name: str) -> None:
    check_that_hidden_tiles_change_nothing(SearchPlayer(TABLES[name], **FAST), name)


@pytest.mark.parametrize("preset", ["duplas", "mano_a_mano"])
def test_where_one_deal_alone_is_possible_it_plays_as_the_solver(preset: str) -> None:
    rules, rng, decided = PRESETS[preset], random.Random(preset), 0
    player = SearchPlayer(rules, deals=2, aim="points", solve=20)
    for seed in range(400):
        game = Game(rules, seed)
        while game.seat is not None:
            moves = game.legal_moves()
            values = None
            if len(moves) > 1 and sum(map(len, game.hands)) + len(game.boneyard) <= 12:
                belief = Belief(rules, game.view(game.seat))
                values = solver.move_values(game) if belief.count == 1 and not game.boneyard else None
            if values and len(set(values.values())) > 1:
                chosen = player.act(game.view(game.seat).record, Streams.from_seed(seed, 1))[0]
                by_name = {move.action: value for move, value in values.items()}
                assert by_name[int(chosen)] == max(values.values()), (seed, ACTION_NAMES[chosen], values)
                decided += 1
            game.play(rng.choice(moves))
    assert decided >= 4


@pytest.mark.parametrize("name", ["duplas", "blocos-3"])
def test_a_round_worth_twice_as_much_is_played_the_same_for_points(name: str, random_views: MakeViews) -> None:
    rules = TABLES[name]
    views = random_views(rules, 400)
    player, chosen = SearchPlayer(rules, deals=6, aim="points", solve=12), []
    for multiplier in (1, 2):
        views["multiplier"] = multiplier
        chosen.append(player.act(views, Streams.from_seed(1, len(views))).tolist())
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("preset", PRESETS)
def test_what_the_solver_goes_for_is_what_the_round_was_worth(preset: str) -> None:
    """Its payoff holds the chance to win the match after each way in which a round can end."""
    rules = PRESETS[preset]
    equity = Equity.of(rules).table.copy()
    packed = pack(rules)
    batch = Batch(rules, 300, 5, episode="match", autoreset=False, observe=False)
    before, seen = copy_state(batch.state), 0
    for _ in range(120):
        playing = ~batch.done
        rounds, kept = batch.state["round"].copy(), copy_state(batch.state)
        batch.step(batch.sample_actions(), tables=playing)
        for t in np.flatnonzero(playing & (batch.state["round"] == rounds))[:5].tolist():
            side = int(batch.state["seat"][t]) % 2
            payoff, scratch = solver.points_payoff(rules), copy_state(batch.state[t : t + 1])
            set_payoff(scratch[0], packed[0], side, AIMS.index("match"), equity, payoff)
            game = Batch(rules, 1, 0, autoreset=False, observe=False)
            game.state[0] = batch.state[t]
            game.legal[0] = game.state["legal"][0]
            game.seat = game.state["seat"]
            while game.state["seat"][0] != NONE:
                game.step(game.sample_actions())
            ended = copy_state(game.state)
            settled = worth(ended[0], packed[0], side, AIMS.index("match"), equity)
            at = outcome_of(ended[0], packed[0], side, payoff.shape[1])
            assert payoff.ravel()[at] == pytest.approx(settled, abs=1e-12)
            seen += 1
    assert seen > 300
    assert (kept["round"] > before["round"]).any()


@pytest.mark.parametrize("name", TABLES)
def test_playouts_go_to_the_end_or_to_where_the_solver_takes_over(name: str) -> None:
    rules = TABLES[name]
    batch = Batch(rules, 60, 5, autoreset=False, observe=False)
    packed, weights, seen = pack(rules), ScriptedPlayer(rules, "counting").weights, new_views(rules, 1)
    for solve in (0, 4 * rules.players):
        state, early = copy_state(batch.state), 0
        for row in state:
            play_out(row, packed[0], weights[0], seen[0], solve)
            left = sum(int(hand).bit_count() for hand in row["hands"])
            assert row["seat"] == NONE or (solve and left <= solve)
            early += row["seat"] != NONE
        assert (early > 0) == (solve > 0)


def test_a_budget_of_time(random_views: MakeViews) -> None:
    rules = PRESETS["duplas"]
    views = random_views(rules, 30)
    player = make_player("search?ms=1", rules)
    assert player.name == "search?ms=1"
    assert legal(views, player.act(views, Streams.from_seed(1, 30)))


@pytest.mark.parametrize(
    ("rules", "options", "message"),
    [
        ("duplas", {"deals": 0}, "deals=0 is not a whole number of at least 1"),
        ("duplas", {"aim": "win"}, "aim='win' is not one of points, round, match"),
        ("duplas", {"temperature": -1}, "temperature=-1 is not a number of at least 0"),
        ("duplas", {"ms": "long"}, "ms='long' is not a number of at least 0"),
        ("duplas", {"solve": 2.5}, "solve=2.5 is not a whole number of at least 0"),
        ("duplas", {"policy": "conting"}, "kind='conting' is not one of .*did you mean 'counting'"),
        ("puxar-3", {"aim": "match"}, "aim='match': match equity is for two sides, not 3"),
    ],
)
def test_bad_options(rules: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchPlayer(TABLES[rules], **options)


def test_without_a_table_of_chances_it_goes_for_points() -> None:
    assert SearchPlayer(make_rules("duplas", target=None))._room.settings[0]["aim"] == AIMS.index("points")
    assert SearchPlayer(PRESETS["duplas"])._room.settings[0]["aim"] == AIMS.index("match")


@pytest.mark.long
@pytest.mark.parametrize("name", TABLES)
def test_never_chooses_an_illegal_move(name: str) -> None:
    """2,000 rounds at every table, against every other player; the arena refuses illegal moves."""
    for other in SCRIPTED:
        seatings = 2 if TABLES[name].num_sides == 2 else TABLES[name].num_sides
        result = duel("search?deals=1&solve=8", other, TABLES[name], deals=-(-2000 // seatings), seed=6)
        assert result.games >= 2000


@pytest.mark.long
@pytest.mark.parametrize("preset", PRESETS)
def test_is_better_than_counting(preset: str) -> None:
    result = duel("search", "counting", PRESETS[preset], deals=800 if preset != "duplas" else 400, seed=77)
    assert result.points.low > 0, result


@pytest.mark.long
def test_more_deals_play_better() -> None:
    result = duel("search?deals=64&aim=round", "search?deals=4&aim=round", PRESETS["duplas"], deals=400, seed=78)
    assert result.win_share.low > 0.5, result
