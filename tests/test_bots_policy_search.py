"""Search that is guided by a policy and its critic: what it knows, how deals weigh, and what positions are worth."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hidden import check_that_hidden_tiles_change_nothing
from networks import heaviest_first, random_networks
from strategies import TABLES

from domino_env import PRESETS, Batch, Game, RuleSet, make_rules
from domino_env.afterstates import Afterstates, Deals
from domino_env.arena import duel
from domino_env.belief import Belief, deal, put_back
from domino_env.bots import ScriptedPlayer, make_player
from domino_env.bots._search_deals import add_deals, all_others, begin_walk, judge, walk
from domino_env.bots._search_values import value_of
from domino_env.bots.champion import ChampionPlayer
from domino_env.bots.networks import PolicyNetworks
from domino_env.bots.perceptron import evaluate
from domino_env.bots.policy_search import FLOOR
from domino_env.bots.search import SearchPlayer, _prepare
from domino_env.kernel import num_legal, play
from domino_env.observation import Views
from domino_env.players import Streams
from domino_env.rules import pack
from domino_env.scoring import add_outcome_rewards, add_round_rewards
from domino_env.state import NONE, State, copy_state
from domino_env.tiles import PIPS, TILE_NAMES, parse_tile

MakeViews = Callable[..., Views]
NAMES = ("duplas", "mano_a_mano", "blocos-3", "puxar-4")


def searcher(rules: RuleSet, networks: PolicyNetworks | None = None, **options: Any) -> SearchPlayer:
    policy = ChampionPlayer(rules, networks=networks or random_networks(rules))
    return SearchPlayer(rules, policy=policy, **{"deals": 3, **options})


@pytest.mark.parametrize("name", TABLES)
def test_plays_legal_moves_at_every_table(name: str, random_views: MakeViews) -> None:
    rules = TABLES[name]
    views = random_views(rules, 200)
    for value in ("critic", "playout"):
        chosen = searcher(rules, value=value).act(views, Streams.from_seed(1, 200))
        legal = views["legal"][np.arange(200), chosen & 1] >> (chosen >> 1).astype(np.uint64)
        assert (legal & np.uint64(1)).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_choice_follows_from_view_and_stream_alone(name: str, random_views: MakeViews) -> None:
    rules = TABLES[name]
    views = random_views(rules, 40)
    chosen = searcher(rules).act(views, Streams.from_seed(1, 40))
    other, streams = searcher(rules), Streams.from_seed(1, 40)
    for v in reversed(range(40)):
        assert other.act(views[v : v + 1], streams.rows(np.array([v])))[0] == chosen[v]


@pytest.mark.parametrize("name", NAMES)
def test_tiles_that_it_cannot_see_change_nothing(name: str) -> None:
    check_that_hidden_tiles_change_nothing(searcher(TABLES[name]), name)


def expected_log(networks: PolicyNetworks, batch: Batch, action: int, temperature: float) -> float:
    """The logarithm of the chance of an action at a batch's one table, by NumPy."""
    moves = Afterstates(batch.rules).of_state(batch.state)
    logits = evaluate(networks.policy_network, moves.rows)[:, 0].astype(np.float64) / temperature
    shares = np.exp(logits - logits.max())
    if batch.state["left"][0] == batch.state["right"][0]:
        action &= ~1
    share = (shares / shares.sum())[moves.actions.tolist().index(action)]
    return float(np.log((1 - FLOOR) * share + FLOOR / len(shares)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_a_deal_weighs_as_the_policy_would_have_played(name: str, temperature: float) -> None:
    rules, rng, compared = TABLES[name], random.Random(name), 0
    networks = random_networks(rules)
    player = searcher(rules, networks, temperature=temperature)
    for seed in range(6):
        game = Game(rules, seed)
        for _ in range(rng.randrange(4, 9)):
            if game.seat is not None:
                game.play(rng.choice(game.legal_moves()))
        if game.seat is None or len(game.legal_moves()) < 2:
            continue
        seat, view = game.seat, game.view(game.seat).record
        room, packed, stream = player._room, pack(rules), Streams.from_seed(seed, 1).states[0]
        _prepare(view[0], packed, room, player._advice, stream)
        for _ in range(4):
            deal(room.work[0], view[0], packed[0], stream, room.rows[0], room.rows[1])
            batch = Batch(rules, 1, 0, autoreset=False, observe=False)
            batch.state[0] = room.rows[0]
            wanted = 0.0
            for action in room.work[0]["plays"][: room.work[0]["num_plays"]].tolist():
                row = batch.state[0]
                if row["seat"] != seat and num_legal(row) > 1:
                    wanted += expected_log(networks, batch, action, temperature)
                    compared += 1
                play(row, packed[0], action)
            found = judge(view[0], packed[0], room, player._advice, all_others(packed[0]), 0.0, -np.inf)
            assert found == pytest.approx(wanted, abs=1e-4)
    assert compared > 20


def test_a_deal_in_which_the_other_would_have_played_another_tile_hardly_counts() -> None:
    """The other plays its heaviest tile, as all know. It opened with the 5-4: so it holds nothing heavier."""
    rules = make_rules("blocos", hand_size=3)
    hands = (("5-3", "4-2", "1-0"), ("5-4", "3-0", "2-1"))
    held = {parse_tile(name, 6) for hand in hands for name in hand}
    rest = [name for tile, name in enumerate(TILE_NAMES[:28]) if tile not in held]
    game = Game.from_deal(rules, hands, rest, starter=1)
    game.play(next(move for move in game.legal_moves() if move.action >> 1 == parse_tile("5-4", 6)))
    view, packed, stream = game.view(0).record, pack(rules), Streams.from_seed(1, 1).states[0]
    player = searcher(rules, heaviest_first(rules, 20.0))
    room, logs = player._room, dict[bool, list[float]]({True: [], False: []})
    _prepare(view[0], packed, room, player._advice, stream)
    for _ in range(200):
        deal(room.work[0], view[0], packed[0], stream, room.rows[0], room.rows[1])
        pips = [int(PIPS[tile]) for tile in range(28) if int(room.rows[1]["hands"][1]) >> tile & 1]
        kept = [-(-(9 + sum(pips) - other) // 4) for other in pips]  # its steps, had it opened with the other
        heavier = min(kept) < -(-sum(pips) // 4)
        asked = view[0], packed[0], room, player._advice, all_others(packed[0])
        logs[heavier].append(judge(*asked, 0.0, -np.inf))
    assert len(logs[True]) > 20
    assert len(logs[False]) > 20
    assert max(logs[True]) == pytest.approx(np.log(FLOOR / 3))
    assert min(logs[False]) > np.log(0.3)


def walker(rules: RuleSet, seed: int, moves: int) -> tuple[SearchPlayer, Any, Any] | None:
    """A searcher that begins a walk after some random moves, the record of its view, and a stream."""
    game, rng = Game(rules, seed), random.Random(seed)
    for _ in range(moves):
        if game.seat is not None:
            game.play(rng.choice(game.legal_moves()))
    if game.seat is None or len(game.legal_moves()) < 2:
        return None
    player, stream = searcher(rules, random_networks(rules)), Streams.from_seed(seed, 1).states[0]
    view = game.view(game.seat).record
    asked = view[0], pack(rules), player._room, player._advice
    _prepare(*asked, stream)
    add_deals(*asked, stream, 4)
    begin_walk(*asked)
    return player, view, stream


def test_after_an_exchange_only_the_two_hands_are_judged_again() -> None:
    rules, packed, compared = PRESETS["duplas"], pack(PRESETS["duplas"]), 0
    for seed in range(30):
        if (made := walker(rules, seed, 6 + seed % 12)) is None:
            continue
        player, view, stream = made
        room, sums = player._room, player._room.sums[0]
        for _ in range(30):
            walk(view[0], packed, room, player._advice, stream, 1)
            put_back(room.work[0], view[0], packed[0], sums["hands"][0])
            total = judge(view[0], packed[0], room, player._advice, all_others(packed[0]), 0.0, -np.inf)
            assert sums["logs"][0] == pytest.approx(sums["logs"][1], abs=1e-6)
            assert sums["logs"][0].sum() == pytest.approx(total, abs=1e-6)
            compared += 1
    assert compared > 300


def test_a_walk_is_at_each_deal_as_often_as_the_policy_makes_it_likely() -> None:
    rules = make_rules("blocos", players=3, max_pip=2, hand_size=2)
    packed, walked = pack(rules), 0
    for seed in range(40):
        if (made := walker(rules, seed, 1 + seed % 2)) is None:
            continue
        player, view, stream = made
        room, sums = player._room, player._room.sums[0]
        seen: dict[bytes, int] = {}
        likelihood: dict[bytes, float] = {}
        for _ in range(4000):
            walk(view[0], packed, room, player._advice, stream, 1)
            key = sums["hands"][0].tobytes()
            seen[key] = seen.get(key, 0) + 1
            likelihood[key] = np.exp(sums["logs"][0].sum())
        if len(seen) < 3:
            continue
        assert len(seen) == Belief(rules, view).count
        total = sum(likelihood.values())
        assert all(abs(seen[key] / 4000 - likelihood[key] / total) < 0.06 for key in seen), (seed, seen, likelihood)
        walked += 1
    assert walked > 3


def settled(rules: RuleSet, row: Any, side: int, points: bool) -> float:
    """What a finished round gave a side."""
    row["rewards"] = 0
    if points:
        add_round_rewards(row, pack(rules)[0])
    else:
        add_outcome_rewards(row, pack(rules)[0], int(row["winning_side"]))
    return float(row["rewards"][side])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("reward", "plies"), [("outcome", 0), ("points", 0), ("outcome", 3)])
def test_a_position_is_worth_what_the_critic_says_some_moves_later(name: str, reward: str, plies: int) -> None:
    """Forced moves are made, and so many that the policy likes best."""
    rules, sides = TABLES[name], TABLES[name].num_sides
    networks = random_networks(rules, reward=reward, reward_scale=0.25, gamma=0.9)
    player, packed, ended = searcher(rules, networks, solve=0, plies=plies), pack(rules), 0
    policy, alone = ChampionPlayer(rules, networks=networks), Batch(rules, 1, 0, autoreset=False, observe=False)
    assert networks.critic_network is not None
    batch = Batch(rules, 40, 3, autoreset=False, observe=False)
    while not batch.done.all():
        batch.step(batch.sample_actions(), tables=~batch.done)
        batch.state["multiplier"] = 1
        for t in np.flatnonzero(~batch.done):
            state: State = alone.state
            state[:], left = batch.state[t : t + 1], plies
            while state[0]["seat"] != NONE and (left or num_legal(state[0]) == 1):
                left -= num_legal(state[0]) > 1
                play(state[0], packed[0], int(policy.act(alone.views(), Streams.from_seed(0, 1))[0]))
            over = state[0]["seat"] == NONE
            ended += over
            given = evaluate(networks.critic_network, Deals(rules).of(state))[0].astype(np.float64) * 0.9 / 0.25
            for side in range(sides):
                row = copy_state(batch.state[t : t + 1])[0]
                if over:
                    wanted = settled(rules, state[0], side, reward == "points")
                else:
                    away = (side - int(state[0]["seat"])) % sides
                    wanted = given[0] * (1, -1)[away] if sides == 2 else given[away]
                assert value_of(row, packed, side, player._room, player._advice) == pytest.approx(wanted, rel=1e-5)
    assert ended > 20


@pytest.mark.parametrize("name", ["duplas", "blocos"])
def test_a_playout_goes_on_as_the_policy_likes_best(name: str) -> None:
    rules, packed = TABLES[name], pack(TABLES[name])
    networks = random_networks(rules)
    player, policy = searcher(rules, networks, value="playout", solve=0), ChampionPlayer(rules, networks=networks)
    batch = Batch(rules, 30, 4, autoreset=False, observe=False)
    before = copy_state(batch.state)
    while not batch.done.all():
        playing = np.flatnonzero(~batch.done)
        actions = np.zeros(30, np.int64)
        actions[playing] = policy.act(batch.views(playing), Streams.from_seed(0, len(playing)))
        batch.step(actions, tables=~batch.done)
    for row, end in zip(before, batch.state, strict=True):
        assert value_of(row, packed, 0, player._room, player._advice) == settled(rules, end, 0, False)


@pytest.mark.parametrize("name", ["duplas", "puxar-4"])
def test_what_the_policy_likes_counts_as_much_as_it_is_told_to(name: str, random_views: MakeViews) -> None:
    rules = TABLES[name]
    networks, views = random_networks(rules), random_views(rules, 400)
    liked = ChampionPlayer(rules, networks=networks).act(views, Streams.from_seed(0, 400))
    chosen = {
        prior: searcher(rules, networks, deals=4, prior=prior).act(views, Streams.from_seed(0, 400))
        for prior in (0.0, 1e9)
    }
    assert np.array_equal(chosen[1e9], liked)
    assert not np.array_equal(chosen[0.0], liked)


def test_a_match_critic_is_read_as_chances() -> None:
    """A critic that expects nothing takes every position of a match for even."""
    rules = PRESETS["duplas"]
    nothing = heaviest_first(rules)
    match = PolicyNetworks(rules, nothing.policy, nothing.critic, "relu", episode="match", reward="outcome")
    player, batch = searcher(rules, match, solve=0), Batch(rules, 1, 3, skip_single=True, observe=False)
    assert player._room.settings[0]["aim"] == 2
    assert value_of(batch.state[0], pack(rules), 1, player._room, player._advice) == 0.5


def test_scripted_policies_may_have_weights_of_their_own(random_views: MakeViews) -> None:
    rules = PRESETS["blocos"]
    views = random_views(rules, 30)
    named = SearchPlayer(rules, policy="counting?pips=9", deals=4)
    made = SearchPlayer(rules, policy=ScriptedPlayer(rules, "counting", pips=9), deals=4)
    plain = SearchPlayer(rules, deals=4)
    assert (named._room.weights == made._room.weights).all()
    assert (named._room.weights != plain._room.weights).all()
    streams = [Streams.from_seed(1, 30) for _ in range(2)]
    assert (named.act(views, streams[0]) == made.act(views, streams[1])).all()


def test_what_it_goes_for_follows_from_the_critic() -> None:
    rules = PRESETS["duplas"]
    assert searcher(rules)._room.settings[0]["aim"] == 1
    assert searcher(rules, random_networks(rules, reward="points"))._room.settings[0]["aim"] == 0
    assert searcher(rules, random_networks(rules, critic=False), value="playout")._room.settings[0]["aim"] == 2
    assert searcher(rules, value="playout", aim="points")._room.settings[0]["aim"] == 0
    assert make_player("search?policy=champion", rules).name == "search?policy=champion"


@pytest.mark.parametrize(
    ("networks", "options", "message"),
    [
        (
            {},
            {"aim": "points"},
            "aim='points': the critic of 'policy' foretells the outcome of a round, so aim='round'",
        ),
        ({"reward": "points"}, {"aim": "match"}, "aim='match': .* foretells the points of a round, so aim='points'"),
        ({"episode": "match", "reward": "points"}, {}, "foretells the points of a match, which is no aim"),
        ({"critic": False}, {}, "policy 'policy' has no critic, so value='playout' is all"),
        ({}, {"value": "guess"}, "value='guess' is not one of critic, playout"),
        ({}, {"temperature": -1}, "temperature=-1 is not a number of at least 0"),
    ],
)
def test_contradictions(networks: dict[str, Any], options: dict[str, Any], message: str) -> None:
    rules = PRESETS["duplas"]
    with pytest.raises(ValueError, match=message):
        searcher(rules, random_networks(rules, **networks), **options)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("search?policy=oracle", "policy='oracle' is neither scripted .* nor a player with networks"),
        ("search?policy=champion", r"no champion for blocos\(players=9\)"),
        ("search?policy=zoo/nobody", "unknown policy 'nobody'"),
        ("search?policy=nobody:Nobody?path=x", "No module named 'nobody'"),
        ("search?value=critic", "value='critic' is not one of playout"),
    ],
)
def test_policies_that_cannot_guide(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_player(spec, TABLES["blocos-9"])


@pytest.mark.long
def test_is_better_than_the_policy_alone() -> None:
    result = duel("search?policy=champion", "champion", PRESETS["duplas"], deals=1500, seed=79)
    assert result.win_share.low > 0.5, result
