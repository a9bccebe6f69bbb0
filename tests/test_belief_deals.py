"""What a seat can believe: counted, weighed and sampled as listing all deals one by one gives it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from random_play import positions

from domino_env import Game, RuleSet, belief, make_rules
from domino_env.belief import Belief, new_work
from domino_env.tiles import TILE_NAMES, parse_tile

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
