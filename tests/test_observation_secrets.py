"""Hidden tiles dealt again, in every way that a seat could not notice, make no difference to what it sees."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from random import Random

import pytest
from test_observation import decode, every_case, vector_of

from domino_env import PRESETS, Game, RuleSet, make_rules
from domino_env.observation import masks


class History:
    """A round up to now: as it was dealt, its starter, and the actions played."""

    def __init__(self, game: Game, hands: list[list[str]], boneyard: list[str]) -> None:
        self.rules, self.hands, self.boneyard = game.rules, hands, boneyard
        self.starter = game.starter
        self.actions = [move.action for move in game.moves]

    def replay(self) -> Game | None:
        """The same actions with these tiles; None where the rules would not have it so."""
        by_rule = self.rules.opening == "highest_double"
        game = Game.from_deal(self.rules, self.hands, self.boneyard, None if by_rule else self.starter)
        try:
            for action in self.actions:
                game.play(action)
        except ValueError:
            return None
        return game

    def unnoticed_by(self, seat: int, truth: Game) -> Game | None:
        """The replay, if `seat` sees in it all that it saw at `truth` itself."""
        game = self.replay()
        if game is None or (game.seat, game.starter) != (truth.seat, truth.starter):
            return None
        seen = [(e if e.kind == "play" or e.seat == seat else e._replace(tile=None)) for e in game.events]
        was = [(e if e.kind == "play" or e.seat == seat else e._replace(tile=None)) for e in truth.events]
        return game if seen == was else None


def history_of(game: Game) -> History:
    return History(game, [list(hand) for hand in game.deal.hands], list(game.deal.boneyard))


def hidden_places(game: Game, seat: int) -> list[tuple[int, int]]:
    """(seat or −1 for the boneyard, position) of every dealt tile that `seat` has not had in its own hand."""
    drawn = [event.seat for event in game.events if event.kind == "draw"]
    places = [(other, i) for other in range(game.rules.players) if other != seat for i in range(game.rules.hand_size)]
    return places + [(-1, i) for i in range(game.rules.boneyard_size) if i >= len(drawn) or drawn[i] != seat]


def redeals(game: Game, seat: int, rng: Random, tries: int) -> Iterator[Game]:
    """Games with other tiles in the hidden places that `seat` cannot tell from this one.

    A walk of swaps of two hidden tiles; one that the seat would notice is undone.
    """
    history = history_of(game)
    places, where = hidden_places(game, seat), [*history.hands, history.boneyard]
    for _ in range(tries):
        for _ in range(rng.randint(1, 2)):
            (a, i), (b, j) = rng.sample(places, 2)
            where[a][i], where[b][j] = where[b][j], where[a][i]
            other = history.unnoticed_by(seat, game)
            if other is not None:
                yield other
            else:
                where[a][i], where[b][j] = where[b][j], where[a][i]


def assert_same_to(seat: int, game: Game, other: Game) -> None:
    one, two = game.view(seat), other.view(seat)
    assert one == two
    assert one.record.tobytes() == two.record.tobytes()
    assert vector_of(one).tobytes() == vector_of(two).tobytes()
    actions = game.rules.num_actions
    assert masks(one.record, actions).tobytes() == masks(two.record, actions).tobytes()
    assert one.legal_moves == two.legal_moves


def positions(rules: RuleSet, seed: int, rng: Random) -> Iterator[Game]:
    """A round before each of its decisions."""
    game = Game(rules, seed=seed)
    while game.seat is not None:
        yield game
        game.play(rng.choice(game.legal_moves()))


@every_case
def test_what_a_seat_cannot_know_makes_no_difference(rules: RuleSet) -> None:
    rng = Random(11)
    different, passed_or_drawn = 0, 0
    for seed in range(16 if rules.players < 4 else 6):
        for number, game in enumerate(positions(rules, seed, rng)):
            if (number + seed) % 3:
                continue
            for seat in range(rules.players) if rules.players < 9 else rng.sample(range(9), 2):
                truth = [hand for other, hand in enumerate(game.hands) if other != seat]
                for other in redeals(game, seat, rng, tries=8):
                    assert_same_to(seat, game, other)
                    changed = [hand for i, hand in enumerate(other.hands) if i != seat] != truth
                    different += changed
                    passed_or_drawn += changed and any(event.kind != "play" for event in game.events)
    assert different > 200
    assert passed_or_drawn > 40


@pytest.mark.long
@every_case
def test_what_a_seat_cannot_know_makes_no_difference_in_many_rounds(rules: RuleSet) -> None:
    rng = Random(12)
    for seed in range(100, 110):
        for game in positions(rules, seed, rng):
            for seat in range(rules.players):
                for other in redeals(game, seat, rng, tries=20):
                    assert_same_to(seat, game, other)


@pytest.mark.parametrize("draw", ["none", "until_fit", "one"])
@pytest.mark.parametrize("opening", ["lots", "highest_double"])
def test_every_unnoticeable_deal_of_a_small_set_looks_the_same(draw: str, opening: str) -> None:
    rules = make_rules("blocos", max_pip=2, hand_size=2, draw=draw, opening=opening)
    alike = 0
    for seed in range(12):
        for game in positions(rules, seed, Random(seed)):
            for seat in (0, 1):
                history, places = history_of(game), hidden_places(game, seat)
                where = [*history.hands, history.boneyard]
                tiles = [where[place][i] for place, i in places]
                for order in permutations(tiles):
                    for (place, i), tile in zip(places, order, strict=True):
                        where[place][i] = tile
                    other = history.unnoticed_by(seat, game)
                    if other is not None:
                        assert_same_to(seat, game, other)
                        alike += 1
    assert alike > 400


def test_a_finished_round_shows_all_hands_but_the_vector_shows_mine() -> None:
    game = Game(PRESETS["duplas"], seed=4)
    game.play_out(seed=1)
    for seat in range(4):
        view = game.view(seat)
        assert view.hands == game.hands
        assert decode(game.rules, vector_of(view))["hand"] == set(game.hands[seat])
        assert view.legal_moves == []
        assert not masks(view.record, 56).any()
