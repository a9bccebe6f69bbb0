"""Perft counts from fixed deals, and against the reference model."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from compare_with_reference import read, reference_rules
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import ReferenceRound
from strategies import TABLES, partial_deals, rule_sets

from domino_env import Game, RuleSet
from domino_env.perft import perft

# One deal for all (boneyard in this order), dealt seat by seat: the first hands of each game are these.
DECK = (
    "6-6 6-4 5-2 4-1 3-1 2-0 0-0  6-5 6-1 5-5 4-3 4-2 2-1 1-0  6-3 6-0 5-4 5-1 4-4 3-0 2-2  6-2 5-3 5-0 4-0 3-3 3-2 1-1"
).split()

# depth           1       2       3       4       5       6       7       8       9      10      11      12
COUNTS = """
duplas            7      26      86     289     815    2600    7291   21090   51402  135592  323425  778004
mano_a_mano       7      26      66     208     477    1266    2498    5540    9625   18363   30322   46094
blocos            7      26      66     206     473    1230    2429    5078    8305   14138   19672   23540
blocos-3          7      26      86     249     803    2200    5292   14175   33043   66816  141736  269969
blocos-4          7      26      86     289     815    2600    7291   21090   51402  135592  323425  778004
blocos-9          3       6      13      20      32      55      93     147     227     319     458     653
puxar             7      26      66     208     485    1288    2613    5838   10358   19884   32534   56489
puxar-3           7      26      86     249     803    2206    5330   14317   33893   69985  151687  302410
puxar-4           7      26      86     289     815    2600    7291   21090   51402  135592  323425  778004
"""


def game_of(name: str) -> Game:
    rules = TABLES[name]
    size = rules.hand_size
    hands = [DECK[seat * size : (seat + 1) * size] for seat in range(rules.players)]
    return Game.from_deal(rules, hands, DECK[rules.players * size :], starter=0)


def reference_of(game: Game) -> ReferenceRound:
    hands = [[read(tile) for tile in hand] for hand in game.hands]
    return ReferenceRound(reference_rules(game.rules), hands, [read(tile) for tile in game.boneyard], game.starter)


def count(round_: ReferenceRound, depth: int) -> int:
    """The same count by the reference model, play by play."""
    if depth == 0:
        return 1
    total = 0
    for move in round_.legal():
        child = deepcopy(round_)
        child.play(*move)
        total += count(child, depth - 1)
    return total


TABLE = {name: [int(n) for n in counts] for name, *counts in map(str.split, COUNTS.strip().splitlines())}


@pytest.mark.parametrize("name", TABLES)
def test_counts(name: str) -> None:
    game = game_of(name)
    before = game._state.tobytes()
    assert [perft(game, depth) for depth in range(1, len(TABLE[name]) + 1)] == TABLE[name]
    assert game._state.tobytes() == before
    assert [count(reference_of(game), depth) for depth in range(1, 5)] == TABLE[name][:4]
    # The count of a position is the sum of those after each of its moves.
    total = 0
    for move in game.legal_moves():
        game.play(move)
        total += perft(game, 7)
        game.undo()
    assert total == TABLE[name][7]


@settings(max_examples=40, deadline=None)
@given(st.data(), rule_sets())
def test_counts_of_any_rules(data: st.DataObject, rules: RuleSet) -> None:
    deal = data.draw(partial_deals(rules))
    game = Game.from_deal(rules, deal.hands, deal.boneyard, starter=deal.lot)
    game_reference = reference_of(game)
    for depth in range(1, 4):
        assert perft(game, depth) == count(game_reference, depth)


def test_the_ends_of_rounds() -> None:
    rules = TABLES["blocos"]
    game = Game.from_deal(rules, [["2-1", "1-1"], ["2-2"]])
    # 2-1, then seat 1 goes out with 2-2; or 1-1, then 2-1 at either end, seat 1 having passed.
    assert [perft(game, depth) for depth in range(5)] == [1, 2, 3, 0, 0]
    game.play("2-1")
    game.play("2-2L")
    assert game.result is not None
    assert [perft(game, depth) for depth in range(3)] == [1, 0, 0]


@pytest.mark.parametrize("depth", [-1, 29, 1.5, True, "3", None])
def test_a_wrong_depth(depth: Any) -> None:
    with pytest.raises(ValueError, match=r"depth=.* is not a whole number from 0 to 28"):
        perft(game_of("puxar"), depth)
