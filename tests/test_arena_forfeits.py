"""Players that fail: they lose those games by a stated rule, the reason is shown, and the arena goes on."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from strategies import TABLES

from domino_env import PRESETS, RuleSet, make_rules
from domino_env.arena import Duel, Estimate, Forfeits, duel, duels, forfeit_points, play_games, to_csv, to_json
from domino_env.bots import ScriptedPlayer
from domino_env.observation import Views
from domino_env.players import Forfeit, Player, Streams
from domino_env.rating import ratings

DUPLAS = PRESETS["duplas"]


class Failing(ScriptedPlayer):
    """Plays as `random` does, but fails where a view's hand is divisible by `divisor`."""

    def __init__(self, rules: RuleSet, how: str, divisor: int = 23) -> None:
        super().__init__(rules, "random")
        self.name, self.how, self.divisor = f"failing ({how})", how, divisor

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        actions = super().act(views, rng)
        bad = np.flatnonzero(views["hand"] % np.uint64(self.divisor) == 0)
        if self.how == "illegal":
            for i in bad:
                left = int(views["legal"][i, 0])
                actions[i] = next(2 * tile for tile in range(28) if not left >> tile & 1)
        elif self.how == "unknown":
            actions[bad] = 10**9
        elif len(bad) and self.how == "raises":
            raise OSError(f"no\nluck in {len(views)}")
        elif len(bad) and self.how == "shape":
            return actions[:0]
        elif len(bad):
            raise Forfeit("given up", actions, dict.fromkeys(bad.tolist(), "it gave up"))
        return actions


WAYS = {
    "illegal": "illegal move '",
    "unknown": "illegal move action 1000000000; legal: ",
    "raises": "OSError: no luck in 1",
    "shape": "ValueError: actions have shape (0,); one action a table makes (1,)",
    "forfeits": "it gave up",
}


@pytest.mark.parametrize("episode", ["round", "match"])
@pytest.mark.parametrize("how", WAYS)
def test_who_fails_loses_those_games_and_the_others_go_on(how: str, episode: Any) -> None:
    options: dict[str, Any] = {"deals": 60, "seed": 3, "episode": episode, "forfeit": True}
    divisor = 23 if episode == "round" else 397
    result = duel(lambda rules: Failing(rules, how, divisor), "doubles", DUPLAS, **options)
    assert 5 < result.forfeits.count < result.losses < result.games == 120
    assert result.wins > 0
    assert result.opponent_forfeits == Forfeits()
    assert 1 <= len(result.forfeits.reasons) <= 3
    assert all(f": {WAYS[how]}" in reason for reason in result.forfeits.reasons)
    assert result.forfeits.reasons[0].startswith("deal ")
    # However it fails, the games are those of a player that gives up in the same places.
    given_up = duel(lambda rules: Failing(rules, "forfeits", divisor), "doubles", DUPLAS, **options)
    assert (result.points, result.win_share, result.forfeits.count) == (
        given_up.points, given_up.win_share, given_up.forfeits.count,
    )  # fmt: skip


@pytest.mark.parametrize("how", ["raises", "illegal"])
def test_what_is_forfeited_does_not_depend_on_the_parts(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for chunk in (4096, 7):
        monkeypatch.setattr(duels, "_CHUNK", chunk)
        found.append(duel(lambda rules: Failing(rules, how), "random", DUPLAS, deals=50, forfeit=True))
    assert found[0] == found[1]


@pytest.mark.parametrize("how", ["illegal", "raises", "shape"])
def test_without_the_flag_an_error_is_an_error(how: str) -> None:
    with pytest.raises((ValueError, OSError), match=r"luck|may not play|shape"):
        duel(lambda rules: Failing(rules, how), "random", DUPLAS, deals=50)
    assert duel(lambda rules: Failing(rules, "forfeits"), "random", DUPLAS, deals=50).forfeits.count > 0


def test_no_flag_changes_the_games_of_players_that_do_not_fail() -> None:
    class Asked(ScriptedPlayer):
        def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
            return super().act(views, rng)

    one, other = (duel(Asked, "doubles", DUPLAS, deals=50, forfeit=flag) for flag in (False, True))
    assert one == other


class Never(Player):
    """Has no move."""

    name = "never"

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        raise Forfeit("never", np.zeros(len(views), np.int64), dict.fromkeys(range(len(views)), "never"))


@pytest.mark.parametrize(
    ("rules", "episode", "points"),
    [
        (DUPLAS, "round", 4),  # a cruzada
        (make_rules("duplas", points_block=9), "round", 9),
        (DUPLAS, "match", 6),
        (make_rules("duplas", target=None), "match", 4),
        (PRESETS["blocos"], "round", 12 + 11 + 10 + 10 + 9 + 9 + 8),  # 6-6 6-5 5-5 6-4 5-4 6-3 and one of 8
        (PRESETS["puxar"], "match", 100),
        (TABLES["blocos-3"], "match", 50),
    ],
)
def test_a_forfeited_game_costs_what_is_said(rules: RuleSet, episode: Any, points: float) -> None:
    assert forfeit_points(rules, episode) == points
    sides = rules.num_sides
    result = duel(Never, "random", rules, deals=10, episode=episode)
    assert result.points == Estimate(-points, -points, -points)
    assert result.win_share == Estimate(0.0, 0.0, 0.0)
    assert (result.wins, result.draws, result.losses) == (0, 0, result.games)
    assert result.rounds == result.games  # each failed in its first round
    turned = duel("random", Never, rules, deals=10, episode=episode)
    assert turned.points.mean == pytest.approx(points / (sides - 1))
    assert turned.win_share.mean == pytest.approx(1 / (sides - 1))  # the sides that did not fail share the win
    assert turned.opponent_forfeits.count == turned.games
    assert (turned.wins, turned.draws) == ((turned.games, 0) if sides == 2 else (0, turned.games))


def test_what_a_small_set_costs() -> None:
    assert forfeit_points(make_rules("blocos", max_pip=2, hand_size=2), "round") == 7  # 2-2 and 2-1


def test_points_already_scored_in_a_forfeited_match_do_not_count() -> None:
    seats: list[Player] = [Failing(DUPLAS, "forfeits", 397), ScriptedPlayer(DUPLAS, "doubles")] * 2
    played = play_games(DUPLAS, seats, 200, 1, episode="match")
    late = [game for game in played.forfeits if played.rounds[game] > 1]
    assert late
    for game, (side, reason) in played.forfeits.items():
        assert (side, reason) == (0, "it gave up")
        assert played.points[game].tolist() == [-6, 6]
        assert played.winner[game] == 1
    assert np.all(played.points.sum(axis=1) == 0)


def some_duel() -> Duel:
    return duel(Never, lambda rules: Failing(rules, "forfeits"), DUPLAS, deals=20, seed=1)


def test_forfeits_are_reported_everywhere() -> None:
    result = some_duel()
    assert result.forfeits.count + result.opponent_forfeits.count == 40
    text = str(result)
    assert f"  never forfeited {result.forfeits.count} of 40:\n    deal " in text
    assert f"  failing (forfeits) forfeited {result.opponent_forfeits.count} of 40:\n    deal " in text
    record = json.loads(to_json([result]))[0]
    assert record["forfeits"] == {"count": result.forfeits.count, "reasons": list(result.forfeits.reasons)}
    row = next(csv.DictReader(io.StringIO(to_csv([result]))))
    assert int(row["opponent_forfeits"]) == result.opponent_forfeits.count
    assert row["opponent_forfeits_reasons"] == " | ".join(result.opponent_forfeits.reasons)
    assert ratings([result]).players == ("failing (forfeits)", "never")


def test_a_reason_is_one_line_and_not_endless() -> None:
    class Wordy(Never):
        def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
            raise RuntimeError("a lot\n\tof words " * 200)

    (reason,) = duel(Wordy, "random", DUPLAS, deals=2, forfeit=True).forfeits.reasons
    assert "\n" not in reason
    assert len(reason) < 350
    assert reason.endswith("…")
