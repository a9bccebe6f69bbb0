"""The arena: luck cancels, every game counts, and what is reported is what the engine's results add up to."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from strategies import TABLES

from domino_env import PRESETS, Game, Match, RuleSet, make_rules
from domino_env.arena import (
    Duel,
    Estimate,
    Played,
    cross_table,
    describe,
    duel,
    duels,
    from_json,
    play_games,
    seatings,
    share_table,
    to_csv,
    to_json,
)
from domino_env.batch import IllegalAction
from domino_env.bots import ScriptedPlayer, make_player
from domino_env.events import RoundResult
from domino_env.observation import Views
from domino_env.players import Player, Streams

DUPLAS = PRESETS["duplas"]
SOME = {name: TABLES[name] for name in ("duplas", "mano_a_mano", "blocos", "puxar", "blocos-3", "puxar-4")}
every_table = pytest.mark.parametrize("rules", TABLES.values(), ids=TABLES)
some_tables = pytest.mark.parametrize("rules", SOME.values(), ids=SOME)
episodes = pytest.mark.parametrize("episode", ["round", "match"])


class First(Player):
    """The first legal action; keeps the opening hand of every round, with its seat."""

    def __init__(self, rules: RuleSet, name: str = "first") -> None:
        super().__init__(rules)
        self.name = name
        self.opened: list[tuple[int, int]] = []

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        for view in views[views["left"] == -1]:
            self.opened.append((int(view["seat"]), int(view["hand"])))
        left = views["legal"][:, 0]
        end = (left == 0).astype(np.int64)
        words = np.where(end, views["legal"][:, 1], left)
        return 2 * np.array([(int(word) & -int(word)).bit_length() - 1 for word in words]) + end


# Fairness


@every_table
@episodes
def test_identical_deterministic_players_come_out_exactly_equal(rules: RuleSet, episode: Any) -> None:
    deals = 60 if episode == "match" else 400
    for one, other in (("doubles", "doubles"), (lambda rules: First(rules, "a"), lambda rules: First(rules, "b"))):
        result = duel(one, other, rules, deals=deals, seed=3, episode=episode)
        assert result.points == Estimate(0.0, 0.0, 0.0)
        assert result.win_share.mean == pytest.approx(1 / rules.num_sides, abs=1e-12)
        assert result.fair_share == 1 / rules.num_sides
        assert result.verdict == "not separated"
        if rules.num_sides == 2:
            assert result.win_share == Estimate(0.5, 0.5, 0.5)
            assert result.wins == result.losses


@every_table
def test_identical_random_players_are_not_separated(rules: RuleSet) -> None:
    result = duel("random", "random", rules, deals=2000, seed=4)
    for estimate, fair in ((result.points, 0.0), (result.win_share, result.fair_share)):
        assert estimate.low < estimate.mean < estimate.high
        half = estimate.high - estimate.mean
        assert abs(estimate.mean - fair) < 1.7 * half  # once in a thousand by chance


@pytest.mark.parametrize("rules", [rules for rules in SOME.values() if rules.num_sides == 2])
@episodes
def test_a_duel_seen_from_the_other_side_is_its_negative(rules: RuleSet, episode: Any) -> None:
    options: dict[str, Any] = {"deals": 150, "seed": 6, "episode": episode}
    one, other = duel("doubles", "heaviest", rules, **options), duel("heaviest", "doubles", rules, **options)
    assert one.points != Estimate(0.0, 0.0, 0.0)
    assert (other.points.mean, other.points.low, other.points.high) == pytest.approx(
        (-one.points.mean, -one.points.high, -one.points.low), abs=1e-12
    )
    assert other.win_share.mean == pytest.approx(1 - one.win_share.mean, abs=1e-12)
    assert (other.wins, other.draws, other.losses) == (one.losses, one.draws, one.wins)


@every_table
def test_every_deal_is_played_in_every_seating(rules: RuleSet) -> None:
    plan = seatings(rules)
    assert len(plan) == rules.num_sides
    taken = [seat for mine in plan for seat, own in enumerate(mine) if own]
    assert sorted(taken) == list(range(rules.players))
    for mine in plan:
        assert len({rules.side_of(seat) for seat, own in enumerate(mine) if own}) == 1
    one, other = First(rules), First(rules)
    result = duel(one, other, rules, deals=100, seed=8)
    assert result.games == 100 * len(plan) == len(one.opened) + len(other.opened)
    assert sorted(other.opened) == sorted(one.opened * (len(plan) - 1))
    assert len(set(one.opened)) == 100  # and they are different deals


def test_a_better_player_is_found_better_and_a_worse_one_worse() -> None:
    better = duel("doubles", "random", DUPLAS, deals=1000, seed=1)
    assert (better.verdict, better.points.low > 0, better.win_share.low > 0.5) == ("better", True, True)
    assert duel("random", "doubles", DUPLAS, deals=1000, seed=1).verdict == "worse"
    assert duel("doubles", "random", DUPLAS, deals=4, seed=1).verdict == "not separated"


@pytest.mark.parametrize("name", ["blocos-3", "blocos-9", "puxar-4"])
def test_with_more_sides_a_seat_is_compared_with_its_fair_share(name: str) -> None:
    rules = TABLES[name]
    result = duel("doubles", "doubles?pips=-1&double=-1", rules, deals=1500, seed=2)
    assert result.seatings == rules.players
    assert result.points.low > 0
    assert result.win_share.low > result.fair_share
    assert result.wins + result.draws + result.losses == result.games == 1500 * rules.players


# Every game counts, whatever the parts


@some_tables
@episodes
def test_parts_change_nothing(rules: RuleSet, episode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    deals = 100 if episode == "round" else 30
    found = []
    for chunk in (4096, 29, 7):
        monkeypatch.setattr(duels, "_CHUNK", chunk)
        monkeypatch.setattr(duels, "_FIRST_CHUNK", chunk)
        monkeypatch.setattr(duels, "next_size", lambda size, count, seconds: size)
        seen: list[int] = []
        found.append(duel("random", "doubles", rules, deals=deals, seed=5, episode=episode, progress=seen.append))
        assert seen == sorted({*range(chunk, deals, chunk), deals})
    assert found[0] == found[1] == found[2]
    monkeypatch.undo()
    assert duel("random", "doubles", rules, deals=deals, seed=5, episode=episode) == found[0]
    other_seed = duel("random", "doubles", rules, deals=deals, seed=6, episode=episode)
    assert other_seed.points != found[0].points


def gains(rules: RuleSet, result: RoundResult) -> list[float]:
    """What each side gains by a round: the scoring side its points, each other its share of them as a loss."""
    if result.side is None:
        return [0.0] * rules.num_sides
    if rules.num_sides == 2:
        return [float(result.points if side == result.side else -result.points) for side in (0, 1)]
    least = 0 if result.reason == "out" else result.pips[result.side]
    lost = [float(least - pips) for pips in result.pips]
    lost[result.side] = float(result.points)
    return lost


def move(game: Game, players: list[Player], streams: Streams) -> int:
    assert game.seat is not None
    return int(players[game.seat].act(game.view(game.seat).record, streams)[0])


@every_table
def test_rounds_are_those_of_game(rules: RuleSet) -> None:
    for seed in range(6):
        for number, mine in enumerate(seatings(rules)):
            players = [make_player("doubles" if own else "random", rules) for own in mine]
            streams = Streams.from_seed(seed, 1, purpose=16 + number)
            game = Game(rules, seed=seed)
            while game.seat is not None:
                game.play(move(game, players, streams))
            result = game.result
            assert result is not None
            both = dict(zip(mine, players, strict=True))
            played = play_games(rules, [both[own] for own in mine], 1, seed, purpose=16 + number)
            assert played.points[0].tolist() == gains(rules, result)
            assert played.winner[0] == (-1 if result.side is None else result.side)
            assert played.rounds[0] == 1


@some_tables
def test_matches_are_those_of_match(rules: RuleSet) -> None:
    for seed in range(3):
        number, mine = 1, seatings(rules)[1]
        players = [make_player("doubles" if own else "random", rules) for own in mine]
        streams = Streams.from_seed(seed, 1, purpose=16 + number)
        match, total = Match(rules, seed=seed), np.zeros(rules.num_sides)
        while not match.over:
            if result := match.play(move(match.game, players, streams)):
                total += gains(rules, result)
        played = play_games(rules, players, 1, seed, episode="match", purpose=16 + number)
        assert played.points[0].tolist() == total.tolist()
        assert (played.winner[0], played.rounds[0]) == (match.winner, match.round)


@every_table
@episodes
def test_all_games_are_finished(rules: RuleSet, episode: Any) -> None:
    players = [make_player("random", rules) for _ in range(rules.players)]
    played = play_games(rules, players, 300, 1, episode=episode)
    assert np.all(played.points.sum(axis=1) == 0)
    if episode == "match":
        assert np.all((played.winner >= 0) & (played.winner < rules.num_sides))
        assert played.rounds.max() > 2 * played.rounds.min()
    else:
        assert np.all(played.rounds == 1)
        decided = played.winner >= 0
        assert np.all(played.points[decided, played.winner[decided]] >= 0)
        assert not played.points[~decided].any()


def test_short_matches_count_no_more_than_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the matches won 6-0 in one round, the other half lost 0-6 in five: 0 points a round, half of them won."""

    def stub(rules: RuleSet, seats: Any, n: int, *args: Any, first_table: int, purpose: int, **options: Any) -> Played:
        short = (np.arange(first_table, first_table + n) % 2 == 0)[:, None]
        points = np.where(short, [[6.0, -6.0]], [[-6.0, 6.0]]) * (1 if purpose == 16 else -1)
        return Played(points, np.where(short[:, 0], 1, 5), np.where(points[:, 0] > 0, 0, 1))

    monkeypatch.setattr(duels, "play_games", stub)
    monkeypatch.setattr(duels, "_CHUNK", 10)
    result = duel("random", "random", DUPLAS, deals=100, episode="match")
    assert result.points.mean == 0  # the mean of the matches' own points a round would be 2.4
    assert result.points.low < -0.3 < 0.3 < result.points.high
    assert result.win_share.mean == 0.5
    assert (result.wins, result.draws, result.losses) == (100, 0, 100)


def test_a_single_round_blocked_at_puxar_is_drawn() -> None:
    rules = make_rules("puxar", target=None)
    result = duel("random", "random", rules, deals=500, seed=1)
    assert result.draws > 50
    assert result.wins + result.draws + result.losses == 1000
    assert duel("doubles", "doubles", rules, deals=500, seed=1).win_share == Estimate(0.5, 0.5, 0.5)


# Intervals


def covered(estimate: Callable[[np.random.Generator], Estimate], truth: float, runs: int = 3000) -> float:
    rng = np.random.default_rng(0)
    found = [estimate(rng) for _ in range(runs)]
    return float(np.mean([one.low <= truth <= one.high for one in found]))


@pytest.mark.parametrize("kind", ["normal", "skewed", "win or loss"])
def test_intervals_of_means_cover_the_truth_in_95_of_100(kind: str) -> None:
    draw: dict[str, Callable[[np.random.Generator], npt.NDArray[np.float64]]] = {
        "normal": lambda rng: rng.normal(1.0, 3.0, 400),
        "skewed": lambda rng: rng.exponential(1.0, 400),
        "win or loss": lambda rng: (rng.random(400) < 0.4) * 2.5,
    }
    assert covered(lambda rng: Estimate.of(draw[kind](rng)), 1.0) == pytest.approx(0.95, abs=0.015)


def test_intervals_of_ratios_cover_the_truth_in_95_of_100() -> None:
    def one(rng: np.random.Generator) -> Estimate:
        rounds = rng.geometric(0.25, 400).astype(float)  # 4 on average; the long ones are lost: 3.2 - 1.2 * 4 = -1.6
        return Estimate.ratio(3.2 - 1.2 * rounds + rng.normal(0, 2, 400), rounds)

    assert covered(one, -0.4) == pytest.approx(0.95, abs=0.015)


def test_a_ratio_over_equal_counts_is_a_mean() -> None:
    samples = np.random.default_rng(1).normal(0, 1, 50)
    mean, ratio = Estimate.of(samples), Estimate.ratio(samples * 3, np.full(50, 3.0))
    assert (ratio.mean, ratio.low, ratio.high) == pytest.approx((mean.mean, mean.low, mean.high), abs=1e-12)
    assert mean.mean == pytest.approx(samples.mean())
    assert mean.high - mean.mean == pytest.approx(1.96 * samples.std(ddof=1) / 50**0.5, rel=1e-4)
    assert f"{Estimate(0.5, -0.25, 1.0):+.2f}" == "+0.50 [-0.25, +1.00]"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.01, 0.2, "better"), (-0.2, -0.01, "worse"), (-0.01, 0.2, "not separated"), (0.0, 0.2, "not separated")],
)
def test_the_verdict_follows_from_the_interval(low: float, high: float, verdict: str) -> None:
    share = Estimate(0.6, 0.55, 0.65)
    points = Estimate((low + high) / 2, low, high)
    result = Duel("a", "b", "duplas", "round", 10, 2, 1, points, share, 0.5, 12, 0, 8)
    assert result.verdict == verdict
    assert str(result).startswith(f"a against b: {verdict}\n")


# Reports


def some_duels() -> list[Duel]:
    rules = make_rules("puxar", players=3, target=50)
    return [
        duel("random?pips=1", "doubles", rules, deals=20, seed=7, episode="match"),
        duel("heaviest", "doubles", DUPLAS, deals=20, seed=2**40),
    ]


def test_json_holds_everything() -> None:
    some = some_duels()
    read = json.loads(to_json(some))
    assert len(read) == 2
    for one, record in zip(some, read, strict=True):
        assert Estimate(**record.pop("points")) == one.points
        assert Estimate(**record.pop("win_share")) == one.win_share
        names = ("player", "opponent", "rules", "episode", "deals", "seatings", "games", "seed", "fair_share")
        counts = ("wins", "draws", "losses", "verdict", "rounds")
        assert record.pop("seats") == [list(taken) for taken in one.seats]
        assert [record.pop(name) for name in ("forfeits", "opponent_forfeits")] == [{"count": 0, "reasons": []}] * 2
        assert record == {name: getattr(one, name) for name in names + counts}
    assert from_json(to_json(some)) == some
    assert read[0]["rules"] == "puxar(players=3, target=50)"
    assert (read[0]["player"], read[0]["episode"], read[0]["games"]) == ("random?pips=1", "match", 60)
    assert json.loads(to_json([])) == []


def test_csv_holds_everything() -> None:
    some = some_duels()
    read = list(csv.DictReader(io.StringIO(to_csv(some))))
    assert [(row["player"], row["opponent"]) for row in read] == [("random?pips=1", "doubles"), ("heaviest", "doubles")]
    for one, row in zip(some, read, strict=True):
        for name in ("points", "win_share"):
            estimate = getattr(one, name)
            got = (float(row[name]), float(row[f"{name}_low"]), float(row[f"{name}_high"]))
            assert got == (estimate.mean, estimate.low, estimate.high)
        for name in ("deals", "seatings", "games", "seed", "wins", "draws", "losses", "rounds"):
            assert int(row[name]) == getattr(one, name)
        assert (row["rules"], row["episode"], row["verdict"]) == (one.rules, one.episode, one.verdict)
        assert row["seats"] == " ".join("+".join(map(str, taken)) for taken in one.seats)
        assert (row["forfeits"], row["forfeits_reasons"]) == ("0", "")
    assert list(csv.DictReader(io.StringIO(to_csv([])))) == []


def test_a_duel_in_words_names_games_deals_seatings_rules_and_seed() -> None:
    text = str(duel("random", "doubles", DUPLAS, deals=20, seed=7))
    assert text.endswith("20 deals x 2 seatings (seats 0+2, then 1+3), duplas, seed 7")
    assert "40 rounds (" in text
    assert "points a round" in text


def test_rules_in_words() -> None:
    assert [describe(rules) for rules in PRESETS.values()] == list(PRESETS)
    assert describe(make_rules("duplas", target=10, tie_multiplier=1)) == "duplas(target=10, tie_multiplier=1)"


def test_a_cross_table_has_each_pair_once() -> None:
    table = cross_table(["random", "heaviest", "doubles"], DUPLAS, deals=10, seed=1)
    pairs = [(one.player, one.opponent) for one in table]
    assert pairs == [("random", "heaviest"), ("random", "doubles"), ("heaviest", "doubles")]


def test_two_players_of_one_name_are_told_apart_only_alone() -> None:
    assert cross_table(["doubles", "doubles"], DUPLAS, deals=10)[0].points == Estimate(0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="two of the players have the name 'doubles'"):
        cross_table(["doubles", "random", "doubles"], DUPLAS, deals=10)


def test_the_table_of_shares_tells_pairs_both_ways_only_between_two_sides() -> None:
    two = share_table(cross_table(["random", "heaviest"], DUPLAS, deals=10))
    assert two.splitlines()[2].split()[1].endswith("%")
    three = share_table(cross_table(["random", "heaviest"], TABLES["blocos-3"], deals=10))
    assert three.splitlines()[2].split() == ["heaviest", "-"]


# Bad input


class Wrong(First):
    """Chooses what it may not."""

    def __init__(self, rules: RuleSet, answer: Any) -> None:
        super().__init__(rules, "wrong")
        self.answer = answer

    def act(self, views: Views, rng: Streams) -> Any:
        return self.answer(super().act(views, rng))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"deals": 1}, "deals=1 is not a whole number of at least 2"),
        ({"deals": 2.5}, "deals=2.5 is not a whole"),
        ({"deals": "20"}, "deals='20' is not a whole"),
        ({"deals": None}, "deals=None is not a whole"),
        ({"deals": True}, "deals=True is not a whole"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 1.5}, "seed=1.5"),
        ({"episode": "game"}, "episode='game' is not one of round, match"),
        ({"player": "nobody"}, "unknown player 'nobody'"),
        ({"opponent": "doubels"}, "did you mean 'doubles'"),
        ({"rules": "duplas"}, "rules='duplas' is not a RuleSet"),
    ],
)
def test_what_cannot_be_played_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"=|player") as caught:
        duel(**{"player": "random", "opponent": "random", "rules": DUPLAS, "deals": 2, **change})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda actions: actions.astype(float), "player 'wrong': actions have dtype float64; they must be integers"),
        (lambda actions: actions[:-1], "player 'wrong': actions have shape"),
        (lambda actions: actions[0], "player 'wrong': actions have shape ()"),
        (lambda actions: None, "player 'wrong': actions have dtype object"),
    ],
)
def test_a_player_that_does_not_answer_with_actions_is_named(answer: Any, message: str) -> None:
    with pytest.raises(ValueError, match="player 'wrong'") as caught:
        duel(Wrong(DUPLAS, answer), "random", DUPLAS, deals=5)
    assert message in str(caught.value)


def test_an_illegal_action_is_refused() -> None:
    with pytest.raises(IllegalAction, match=r"player 'wrong': table 0: seat \d may not play action 56; legal: "):
        duel(Wrong(DUPLAS, lambda actions: np.full_like(actions, 56)), "random", DUPLAS, deals=5)


class Asked(ScriptedPlayer):
    """A scripted player that compiled games do not know, so that it is asked for each decision."""

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        return super().act(views, rng)


@pytest.mark.parametrize("episode", ["round", "match"])
@pytest.mark.parametrize("name", TABLES)
def test_compiled_games_are_those_of_players_that_are_asked(name: str, episode: Any) -> None:
    rules = TABLES[name]
    kinds = [["counting", "random", "doubles", "variety", "heaviest"][seat % 5] for seat in range(rules.players)]
    compiled, asked = (
        play_games(rules, [make(rules, kind) for kind in kinds], 40, 3, episode=episode, first_table=2)
        for make in (ScriptedPlayer, Asked)
    )
    for one, other in zip(vars(compiled).values(), vars(asked).values(), strict=True):
        assert np.array_equal(one, other)
