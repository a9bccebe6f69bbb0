"""Players by name and spec string, and the streams of random numbers they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from domino_env import PRESETS, RuleSet
from domino_env.bots import PLAYERS, ScriptedPlayer, make_player
from domino_env.observation import Views
from domino_env.players import Player, Registry, Streams

DUPLAS = PRESETS["duplas"]


class Noted(Player):
    """Keeps the options it was made with."""

    def __init__(self, rules: RuleSet, **options: Any) -> None:
        super().__init__(rules)
        self.options = options

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        raise NotImplementedError


class Named(Noted):
    def __init__(self, rules: RuleSet, mode: str = "greedy") -> None:
        super().__init__(rules)
        if mode not in ("greedy", "sample"):
            raise ValueError(f"mode={mode!r} is not one of greedy, sample")
        self.name = f"named in {mode} mode"


not_a_class = 3


def not_a_player(rules: RuleSet) -> str:
    return "a string"


# Specs


@pytest.mark.parametrize("name", PLAYERS.names)
def test_a_name_gives_its_player(name: str) -> None:
    player = make_player(name, DUPLAS)
    assert (player.name, player.rules) == (name, DUPLAS)
    assert repr(player) == f"<{type(player).__name__} {name}>"


def test_a_name_takes_options_and_is_called_by_all_of_the_spec() -> None:
    player = make_player("doubles?pips=0&double=-2.5", DUPLAS)
    assert player.name == "doubles?pips=0&double=-2.5"
    assert isinstance(player, ScriptedPlayer)
    assert player.weights["values"][0, :2].tolist() == [0.0, -2.5]


def test_a_class_is_found_by_module_and_name() -> None:
    player = make_player("test_players:Noted?sims=50&cut=1e-3&deep=true&wide=False&path=runs/a+b%20c=d?e", DUPLAS)
    assert isinstance(player, Noted)
    assert player.options == {"sims": 50, "cut": 1e-3, "deep": True, "wide": False, "path": "runs/a+b%20c=d?e"}
    assert player.name.startswith("test_players:Noted?")
    assert make_player("test_players:Named", DUPLAS).name == "named in greedy mode"
    assert make_player("test_players:Noted", DUPLAS).name == "test_players:Noted"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7), ("-7", -7), ("0", 0), ("0.5", 0.5), ("2e3", 2000.0), ("TRUE", True), ("", ""), ("None", "None"),
        ("000005000000", "000005000000"), ("1_000", "1_000"), ("nan", "nan"), ("inf", "inf"), (" 7", " 7"),
    ],
)  # fmt: skip
def test_an_option_is_a_number_only_where_nothing_of_it_would_be_lost(text: str, value: Any) -> None:
    player = make_player(f"test_players:Noted?x={text}", DUPLAS)
    assert isinstance(player, Noted)
    assert player.options == {"x": value}
    assert type(player.options["x"]) is type(value)


def test_callables_and_players_are_taken_as_they_are() -> None:
    assert isinstance(make_player(Noted, DUPLAS), Noted)
    player = Noted(DUPLAS)
    assert make_player(lambda rules: player, DUPLAS) is player
    assert make_player(player, DUPLAS) is player


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "",
            "unknown player ''; players: random, heaviest, doubles, variety, counting, search, champion, oracle",
        ),
        ("heavyest", "unknown player 'heavyest' (did you mean 'heaviest'?); players: random, heaviest, doubles"),
        ("doubles:", "unknown player 'doubles:' (did you mean 'doubles'?)"),
        (":Noted", "unknown player ':Noted'"),
        ("..bots:ScriptedPlayer", "unknown player '..bots:ScriptedPlayer'"),
        ("no_such_module:Bot", "player 'no_such_module:Bot': No module named 'no_such_module'"),
        ("test_players:Nobody", "player 'test_players:Nobody': module 'test_players' has no attribute 'Nobody'"),
        ("test_players:not_a_class", "'int' object is not callable"),
        ("test_players:not_a_player", "makes str, which is not a Player"),
        ("test_players:Named?mode=best", "mode='best' is not one of greedy, sample"),
        ("test_players:Named?moed=greedy", "unexpected keyword argument 'moed'"),
        ("doubles?pip=1", "'pip' is not a preference (did you mean 'pips'?); preferences: pips, double"),
        ("doubles?pips=much", "pips='much' is not a finite number"),
        ("doubles?pips=true", "pips=True is not a finite number"),
        ("doubles?pips=1e999", "pips=inf is not a finite number"),
        ("doubles?kind=random", "multiple values for argument 'kind'"),
        ("doubles?rules=1", "multiple values for argument 'rules'"),
        ("doubles?pips", "option 'pips': write name=value, each name once, with & between options"),
        ("doubles?pips=1&pips=2", "option 'pips=2': write name=value"),
        ("doubles?pips=1&", "option '': write name=value"),
        ("doubles?=1", "option '=1': write name=value"),
        (None, "None is no player: give a name, a callable that takes the rules, or a Player"),
        (7, "7 is no player"),
        (not_a_player, "makes str, which is not a Player"),
    ],
)
def test_a_spec_that_names_no_player_is_refused(spec: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"player|preference") as caught:
        make_player(spec, DUPLAS)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_scripted_player_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="kind='clever' is not one of random, heaviest, doubles"):
        ScriptedPlayer(DUPLAS, "clever")


def test_a_registry_has_names_of_its_own() -> None:
    registry = Registry({"noted": Noted})
    assert isinstance(registry.make("noted?a=1", DUPLAS), Noted)
    with pytest.raises(ValueError, match="unknown player 'random'; players: noted"):
        registry.make("random", DUPLAS)


# Streams


def test_a_stream_does_not_depend_on_those_drawn_with_it() -> None:
    together = Streams.from_seed(5, 100)
    wanted = np.stack([together.random() for _ in range(3)])
    apart = Streams.from_seed(5, 100)
    odd = np.arange(100) % 2 == 1
    got = np.empty((3, 100))
    for rows in (np.flatnonzero(odd), np.flatnonzero(~odd)[::-1]):
        for i in range(3):
            got[i, rows] = apart.rows(rows).random()
    assert np.array_equal(got, wanted)
    alone = Streams.from_seed(5, 1, first=42)
    assert [alone.random()[0] for _ in range(3)] == wanted[:, 42].tolist()
    assert len(np.unique(wanted)) == 300


def test_rows_share_the_state_of_all() -> None:
    streams = Streams.from_seed(5, 10)
    rows = streams.rows(np.array([7, 2]))
    assert len(rows) == 2
    first = rows.random()
    inner = rows.rows(np.array([1]))
    again = Streams.from_seed(5, 10)
    values = np.stack([again.random() for _ in range(3)])
    assert first.tolist() == [values[0, 7], values[0, 2]]
    assert inner.random().tolist() == [values[1, 2]]
    rest = streams.random()
    assert (rest[7], rest[2], rest[0]) == (values[1, 7], values[2, 2], values[0, 0])


def test_streams_follow_from_seed_and_purpose() -> None:
    draws = [Streams.from_seed(seed, 50, purpose=purpose).random() for seed in (1, 2) for purpose in (2, 3)]
    assert len(np.unique(draws)) == 200
    assert np.array_equal(draws[0], Streams.from_seed(1, 50).random())
    assert not np.array_equal(Streams.from_seed(None, 5).random(), Streams.from_seed(None, 5).random())
    with pytest.raises(ValueError, match="seed=-1"):
        Streams.from_seed(-1, 5)


@pytest.mark.parametrize("axis", ["across streams", "along one"])
def test_random_is_uniform(axis: str, chi_square_limit: Callable[[int], float]) -> None:
    shape = (40, 2000) if axis == "across streams" else (2000, 40)
    streams = Streams.from_seed(9, shape[1])
    values = np.stack([streams.random() for _ in range(shape[0])])
    assert 0 <= values.min() < values.max() < 1
    for scale in (1, 64, 2**20):  # the leading bits and those further down
        counts = np.bincount((values * scale % 1 * 64).astype(int).ravel(), minlength=64)
        assert ((counts - values.size / 64) ** 2 / (values.size / 64)).sum() < chi_square_limit(63)
    pairs = np.bincount((values[1:] * 8).astype(int).ravel() * 8 + (values[:-1] * 8).astype(int).ravel(), minlength=64)
    assert ((pairs - pairs.sum() / 64) ** 2 / (pairs.sum() / 64)).sum() < chi_square_limit(63)


def test_below_is_uniform_and_takes_a_bound_for_each_or_one_for_all(chi_square_limit: Callable[[int], float]) -> None:
    streams = Streams.from_seed(3, 70_000)
    for bound in (1, 2, 7, 28):
        counts = np.bincount(streams.below(bound), minlength=bound)
        assert len(counts) == bound
        assert ((counts - 70_000 / bound) ** 2 / (70_000 / bound)).sum() < chi_square_limit(max(bound - 1, 1))
    bounds = np.arange(1, 70_001)
    values = streams.below(bounds)
    assert np.all((values >= 0) & (values < bounds))
    high = streams.below(3 * 2**30)  # without rejection two thirds of the values would be less likely
    counts = np.bincount(high >> 30, minlength=3)
    assert ((counts - 70_000 / 3) ** 2 / (70_000 / 3)).sum() < chi_square_limit(2)
    with pytest.raises(ValueError, match="broadcast"):
        streams.below(np.array([1, 2]))
