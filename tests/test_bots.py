"""The scripted players choose what their preferences say, and never what may not be played."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from strategies import TABLES

from domino_env import PRESETS, RuleSet
from domino_env.arena import duel, play_games, seatings
from domino_env.bots import ScriptedPlayer, make_player
from domino_env.bots.scripted import PREFERENCES, SCRIPTED, preferences_of
from domino_env.observation import Views
from domino_env.players import Player, Streams
from domino_env.tiles import HALVES, tiles_in
from training import tune_scripted

MakeViews = Callable[..., Views]
every_table = pytest.mark.parametrize("rules", TABLES.values(), ids=TABLES)
PAIRS = list(itertools.combinations_with_replacement(SCRIPTED, 2))


def legal(view: Any) -> list[tuple[int, int]]:
    """(tile, end) of every legal action: those at the left end first."""
    return [(tile, end) for end in (0, 1) for tile in tiles_in(view["legal"][end])]


def pips(tile: int) -> int:
    return sum(HALVES[tile])


def is_double(tile: int) -> bool:
    return HALVES[tile][0] == HALVES[tile][1]


# What each player looks for first, second, …; of equals the first legal action.
READINGS: dict[str, Callable[[int], Any]] = {
    "heaviest": pips,
    "doubles": lambda tile: (is_double(tile), pips(tile)),
    "heaviest?pips=-1": lambda tile: -pips(tile),
    "doubles?double=-100": lambda tile: (not is_double(tile), pips(tile)),
    "random?double=1": is_double,
}


def streams_for(views: Views, seed: int = 1) -> Streams:
    return Streams.from_seed(seed, len(views))


@every_table
@pytest.mark.parametrize("spec", READINGS)
def test_the_choice_is_that_of_the_preferences(spec: str, rules: RuleSet, random_views: MakeViews) -> None:
    views = random_views(rules, 2000)
    actions = make_player(spec, rules).act(views, streams_for(views))
    reading = READINGS[spec]
    several = 0
    for view, action in zip(views, actions.tolist(), strict=True):
        moves = legal(view)
        best = max(reading(tile) for tile, _ in moves)
        equals = [2 * tile + end for tile, end in moves if reading(tile) == best]
        several += len(equals) > 1
        assert action in equals
        if not spec.startswith("random"):
            assert action == equals[0]
    assert several > 10


@every_table
@pytest.mark.parametrize("name", SCRIPTED)
def test_the_choice_follows_from_view_and_stream_alone(name: str, rules: RuleSet, random_views: MakeViews) -> None:
    views = random_views(rules, 1000)
    before = views.tobytes()
    player = make_player(name, rules)
    actions = player.act(views, streams_for(views))
    assert actions.dtype == np.int64
    assert np.array_equal(actions, make_player(name, rules).act(views, streams_for(views)))
    order = np.random.default_rng(0).permutation(1000)
    streams = streams_for(views)
    for part in (order[:1], order[1:400], order[400:]):
        assert np.array_equal(player.act(views[part], streams.rows(part)), actions[part])
    assert views.tobytes() == before
    assert player.act(views[:0], streams.rows(order[:0])).shape == (0,)
    other = player.act(views, streams_for(views, seed=2))
    assert np.array_equal(actions, other) == (name != "random")


@every_table
def test_random_is_uniform_over_the_legal_actions(
    rules: RuleSet, random_views: MakeViews, chi_square_limit: Callable[[int], float]
) -> None:
    views = random_views(rules, 3000)
    numbers = np.array([len(legal(view)) for view in views])
    player = make_player("random", rules)
    for number in {2, 3, int(numbers.max())}:
        view = views[np.flatnonzero(numbers == number)[:1]]
        streams = Streams.from_seed(number, 4000)
        chosen = np.concatenate([player.act(np.repeat(view, 4000), streams) for _ in range(5)])
        counts = [int((chosen == 2 * tile + end).sum()) for tile, end in legal(view[0])]
        assert sum(counts) == 20_000
        wanted = 20_000 / number
        assert sum((count - wanted) ** 2 / wanted for count in counts) < chi_square_limit(number - 1)


class Checked(Player):
    """Another player, whose every choice is checked."""

    def __init__(self, rules: RuleSet, spec: str) -> None:
        super().__init__(rules)
        self.name, self.inner, self.decisions = spec, make_player(spec, rules), 0

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        actions = self.inner.act(views, rng)
        tiles, ends = actions >> 1, actions & 1
        words = views["legal"][np.arange(len(views)), ends]
        assert np.all(words >> tiles.astype(np.uint64) & np.uint64(1) == 1)
        assert np.all(actions < self.rules.num_actions)
        self.decisions += len(views)
        return actions


@every_table
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_no_player_ever_chooses_what_may_not_be_played(one: str, other: str, rules: RuleSet) -> None:
    plan = seatings(rules)
    first, second = Checked(rules, one), Checked(rules, other)
    for mine in plan:
        seats = [first if own else second for own in mine]
        played = play_games(rules, seats, -(-2000 // len(plan)), seed=12)
        assert np.all(played.rounds == 1)
    assert min(first.decisions, second.decisions) > 2000


def test_weights_replace_those_of_the_kind() -> None:
    player = ScriptedPlayer(PRESETS["duplas"], "doubles", pips=-1)
    assert player.weights["values"][0].tolist() == [-1.0, 100.0, *[0.0] * (len(PREFERENCES) - 2)]
    assert player.name == "doubles"


def test_chances_are_left_out_only_where_they_count_for_nothing(random_views: MakeViews) -> None:
    for rules in PRESETS.values():
        views = random_views(rules, 2000)
        plain, full = ScriptedPlayer(rules, "variety"), ScriptedPlayer(rules, "variety", next_stuck=1e-300)
        assert (plain.weights["counts"][0], full.weights["counts"][0]) == (1, 2)
        assert np.array_equal(plain.act(views, streams_for(views)), full.act(views, streams_for(views)))


@pytest.mark.parametrize(("episode", "deals"), [("round", 6000), ("match", 3000)])
@pytest.mark.parametrize("preset", PRESETS)
def test_each_from_doubles_on_is_better_than_the_one_before(preset: str, episode: Any, deals: int) -> None:
    rules = PRESETS[preset]
    for weaker, stronger in list(itertools.pairwise(SCRIPTED))[1:]:  # the first step is small: see the long test
        result = duel(stronger, weaker, rules, deals=deals, episode=episode, seed=2**33)
        assert result.verdict == "better", result
        assert result.win_share.low > 0.5, result


# In rounds of `mano_a_mano`, where few are blocked, heavy tiles are no worse to keep than others.
NO_BETTER = {("mano_a_mano", "round", "heaviest")}


@pytest.mark.long
@pytest.mark.parametrize(("episode", "deals"), [("round", 50_000), ("match", 10_000)])
@pytest.mark.parametrize("preset", PRESETS)
def test_the_ladder_is_in_order_with_intervals_apart(preset: str, episode: Any, deals: int) -> None:
    rules = PRESETS[preset]
    shares = {
        name: duel(name, "random", rules, deals=deals, episode=episode, seed=2**33).win_share
        for name in SCRIPTED
        if name != "random" and (preset, episode, name) not in NO_BETTER
    }
    for weaker, stronger in itertools.pairwise(shares):
        assert shares[weaker].high < shares[stronger].low, (weaker, stronger)
        result = duel(stronger, weaker, rules, deals=deals, episode=episode, seed=2**33)
        assert result.win_share.low > 0.5, result


def test_counting_wins_two_rounds_of_three_against_random() -> None:
    assert duel("counting", "random", PRESETS["duplas"], deals=12_000, seed=2**33).win_share.low > 0.66


@pytest.mark.parametrize("kind", tune_scripted.KINDS)
def test_a_kind_has_weights_only_for_what_it_looks_at(kind: str) -> None:
    for rules in PRESETS.values():
        weights = preferences_of(kind, rules)
        assert set(weights) <= set(tune_scripted.KINDS[kind].preferences)
        assert any(weights.values())


def test_tuning_prints_weights_that_a_player_takes(capsys: pytest.CaptureFixture[str]) -> None:
    for kind, preset in (("variety", "duplas"), ("counting", "blocos")):
        arguments = [kind, preset, "--generations", "1", "--deals", "40", "--test-deals", "100"]
        assert tune_scripted.main(arguments) == 0
        weights, verdict = capsys.readouterr().out.splitlines()
        found = ast.literal_eval("{" + weights + "}")
        assert set(found) == {preset}
        assert found[preset]["double"] == preferences_of(kind, PRESETS[preset])["double"]
        assert ("partner_end" in found[preset]) == (preset == "duplas")
        assert ("bonus" in found[preset]) is False
        assert ScriptedPlayer(PRESETS[preset], kind, **found[preset]).name == kind
        assert verdict.startswith("against the weights in use: ")
