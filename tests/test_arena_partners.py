"""Partners of different kinds in the arena: who sits where, and that nothing else changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from domino_env import PRESETS, make_rules
from domino_env.arena import Partners, cross_table, duel, from_json, picture, play_games, seatings, share_table, to_json
from domino_env.arena.partners import seatings_of
from domino_env.bots import make_player
from domino_env.rating import ratings

DUPLAS = PRESETS["duplas"]


def test_partners_take_both_sides_in_both_orders_by_hand() -> None:
    a, b, c = (make_player(name, DUPLAS) for name in ("counting", "random", "doubles"))
    found = [(way.players, way.side, way.seats) for way in seatings_of(DUPLAS, Partners((a, b)), c)]
    assert found == [
        ((a, c, b, c), 0, (0, 2)),
        ((b, c, a, c), 0, (2, 0)),
        ((c, a, c, b), 1, (1, 3)),
        ((c, b, c, a), 1, (3, 1)),
    ]
    assert [way.players for way in seatings_of(DUPLAS, c, Partners((a, b)))] == [
        (c, a, c, b), (c, b, c, a), (a, c, b, c), (b, c, a, c),
    ]  # fmt: skip
    assert len(seatings_of(DUPLAS, Partners((a, b)), Partners((b, c)))) == 8


@pytest.mark.parametrize("rules", [DUPLAS, PRESETS["blocos"], make_rules("puxar", players=3)])
def test_a_player_alone_sits_as_ever(rules: Any) -> None:
    a, b = make_player("counting", rules), make_player("random", rules)
    found = [[player is a for player in way.players] for way in seatings_of(rules, a, b)]
    assert found == seatings(rules)


@pytest.mark.parametrize("episode", ["round", "match"])
def test_a_duel_of_partners_is_the_games_of_its_seatings(episode: Any) -> None:
    a, b, c = (make_player(name, DUPLAS) for name in ("counting", "heaviest", "doubles"))
    result = duel((a, b), c, DUPLAS, deals=40, seed=5, episode=episode)
    points, shares = 0.0, 0.0
    for side, seats in ((0, (a, c, b, c)), (0, (b, c, a, c)), (1, (c, a, c, b)), (1, (c, b, c, a))):
        played = play_games(DUPLAS, seats, 40, 5, episode=episode)
        points += played.points[:, side].sum()
        shares += played.shares(side).sum()
    assert result.points.mean == pytest.approx(points / result.rounds)
    assert result.win_share.mean == pytest.approx(shares / 160)
    assert (result.player, result.opponent, result.seatings) == ("counting + heaviest", "doubles", 4)
    assert result.seats == ((0, 2), (2, 0), (1, 3), (3, 1))
    assert "40 deals x 4 seatings (seats 0+2, then 2+0, then 1+3, then 3+1)" in str(result)


def test_partners_of_one_kind_are_that_player() -> None:
    pair, alone = (duel(side, "doubles", DUPLAS, deals=60, seed=2) for side in (("counting", "counting"), "counting"))
    assert pair.win_share == alone.win_share
    assert pair.points.mean == pytest.approx(alone.points.mean)
    same = make_player("counting", DUPLAS)
    assert duel((same, same), "doubles", DUPLAS, deals=60, seed=2).win_share == alone.win_share


def test_partners_in_a_table_with_ratings_picture_and_files(tmp_path: Any) -> None:
    results = cross_table([("counting", "random"), "counting", "random"], DUPLAS, deals=200, seed=1)
    rated = ratings(results)
    assert rated.players == ("counting", "counting + random", "random")
    assert rated["counting + random"].low > rated["random"].high
    shares = share_table(results)
    assert "counting + random" in shares
    assert "-" not in shares.replace("counting + random", "")
    assert from_json(to_json(results))[0].seats == results[0].seats
    assert json.loads(to_json(results))[0]["games"] == 800
    picture(results, tmp_path / "table.png", ratings=rated)
    assert (tmp_path / "table.png").stat().st_size > 1000


def test_workers_play_partners_alike() -> None:
    here, there = (
        duel(("counting", "random"), "doubles", DUPLAS, deals=40, seed=3, workers=workers) for workers in (1, 2)
    )
    assert here == there


@pytest.mark.parametrize(
    ("side", "rules", "message"),
    [
        (("counting", "random"), PRESETS["blocos"], "2 players for a side; seats of a side under these rules: 1"),
        (("counting",), PRESETS["blocos"], "1 players for a side; seats of a side under these rules: 1"),
        (("counting", "random", "random"), DUPLAS, "3 players for a side; seats of a side under these rules: 2"),
        (("counting", "randm"), DUPLAS, "unknown player 'randm'"),
    ],
)
def test_sides_that_cannot_be_made(side: Any, rules: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        duel(side, "random", rules, deals=2)
