from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from play_rooms import do, move_on, play_on, room_of, started

from domino_env import PRESETS, Game, Match, make_rules
from domino_env.bots import make_player
from domino_env.play import Room
from domino_env.play.frames import frame
from domino_env.players import Streams
from domino_env.rules import RuleSet
from domino_env.tiles import parse_move, parse_tile

pytestmark = pytest.mark.usefixtures("same_deals")


def frames(room: Room) -> list[dict[str, Any]]:
    return [frame(room, person, 0.0) for person in room.people.values()]


@pytest.mark.parametrize(
    "rules",
    [PRESETS["duplas"], PRESETS["mano_a_mano"], make_rules("puxar", players=3), make_rules("blocos", players=3)],
    ids=["duplas", "mano_a_mano", "puxar", "blocos"],
)
def test_a_screen_holds_nothing_that_another_deal_of_the_hidden_tiles_would_change(rules: RuleSet) -> None:
    """The hidden tiles are dealt anew in ways that nobody could notice; nobody's screen may change by it."""
    rng, compared = random.Random(7), 0
    people = [f"person {seat}" for seat in range(rules.players)]
    for _ in range(4):
        room, _ = started(*people, rules=rules)
        watcher = room.enter("Eva", 0.0)
        while room.phase == "playing":
            assert room.game is not None
            for person in [*room.people.values()]:
                seat = room.seat_of(person)
                shown = frame(room, person, 0.0)
                swapped = exchanged(room.game, seat, rng)
                if swapped is not None:
                    kept, room.game = room.game, swapped
                    assert json.dumps(frame(room, person, 0.0)) == json.dumps(shown)
                    compared += 1
                    room.game = kept
            move_on(room)
        hands = [seat["hand"] for seat in frame(room, watcher, 0.0)["seats"]]
        assert room.game is not None
        assert hands == room.game.hands
    assert compared > 50


def exchanged(game: Game, seat: int | None, rng: random.Random) -> Game | None:
    """The same round with hidden tiles exchanged that no event and no rule tells apart; None where none was found."""
    others = [other for other in range(game.rules.players) if other != seat]
    ends = set(game.ends or ())
    for _ in range(20):
        one, other = rng.sample(others, 2) if len(others) > 1 else (others[0], None)
        state = copy.deepcopy(game)
        mine = rng.choice(state.hands[one])
        if other is None:
            if not state.boneyard:
                return None
            theirs = rng.choice(state.boneyard)
        else:
            theirs = rng.choice(state.hands[other])
        if ends & {int(half) for name in (mine, theirs) for half in name.split("-")}:
            continue  # it might be told by what may be played
        return with_exchange(state, one, mine, other, theirs)
    return None


def with_exchange(game: Game, one: int, mine: str, other: int | None, theirs: str) -> Game:
    row, first, second = game._state[0], parse_tile(mine), parse_tile(theirs)
    swap = (1 << first) | (1 << second)
    row["hands"][one] = int(row["hands"][one]) ^ swap
    if other is None:
        deck = row["deck"]
        deck[next(int(i) for i in range(row["top"], row["bottom"]) if deck[i] == second)] = first
    else:
        row["hands"][other] = int(row["hands"][other]) ^ swap
    return game


def test_the_chain_on_a_screen_is_the_games() -> None:
    """Touching halves are equal, the outer ones are the ends, and doubles lie across."""
    player = make_player("random", PRESETS["mano_a_mano"])
    for seed in range(30):
        room, (ana, rui) = room_of("Ana", "Rui", rules=PRESETS["mano_a_mano"])
        do(room, ana, "shape", width=300 + 40 * seed, height=200 + 10 * seed)
        do(room, ana, "start", level="random")
        room.match = Match(room.rules, seed=seed)
        room.game = room.match.game
        while room.phase == "playing":
            assert room.acting is not None
            view = room.game.view(room.acting)
            move = next(
                m for m in view.legal_moves if m.action == player.act(view.record, Streams.from_seed(seed, 1))[0]
            )
            do(room, (ana, rui)[room.acting], "play", turn=room.turn, move=str(move))
            check_chain(frame(room, ana, 0.0))


def check_chain(shown: dict[str, Any]) -> None:
    tiles = shown["chain"]["tiles"]
    halves = [half for tile in tiles for half in tile["tile"]]
    assert [halves[0], halves[-1]] == shown["ends"]
    assert halves[1:-1:2] == halves[2::2]
    assert sum(tile["last"] for tile in tiles) == 1
    for tile in tiles:
        width, height = (1, 2) if tile["turn"] % 2 else (2, 1)
        assert 0 <= tile["x"] <= shown["chain"]["width"] - width + 1e-9
        assert 0 <= tile["y"] <= shown["chain"]["height"] - height + 1e-9


def test_an_opening_move_names_no_end() -> None:
    room, people = started("Ana", "Rui", rules=make_rules("mano_a_mano", opening="lots"))
    shown = frame(room, people[room.acting or 0], 0.0)
    assert [parse_move(move)[1] for move in shown["legal"]] == [None] * 7


def test_a_screen_is_plain_json_and_says_whose_turn_it_is() -> None:
    room, (ana, _) = room_of("Ana", "Rui")
    watcher = room.enter("Eva", 0.0)
    for phase in ("lobby", "playing", "scored", "over"):
        if phase != "lobby":
            if room.phase == "lobby":
                do(room, ana, "start", level="doubles")
            play_on(room, phase)
        for shown in frames(room):
            assert json.loads(json.dumps(shown, allow_nan=False)) == shown
            assert shown["phase"] == phase
        assert frame(room, watcher, 0.0)["legal"] == []
        assert frame(room, watcher, 0.0)["hand"] == []
    assert frame(room, ana, 0.0)["winner"] in (0, 1)


def test_versions_only_rise_and_rise_with_every_change() -> None:
    room, _ = started("Ana", "Rui")
    seen: dict[int, tuple[int, dict[str, Any]]] = {}
    while room.phase != "over":
        for person in room.people.values():
            shown = frame(room, person, 0.0)
            version = shown.pop("version")
            before = seen.get(person.number)
            assert before is None or version > before[0] or (version == before[0] and shown == before[1])
            seen[person.number] = version, shown
        move_on(room)
