from __future__ import annotations

from typing import Any

import pytest
from play_rooms import QUICK, do, move_on, play_on, refused, room_of, started, until_turn

from domino_env import PRESETS, make_rules, notation
from domino_env.play import Refused, Settings
from domino_env.play.frames import frame

pytestmark = pytest.mark.usefixtures("same_deals")

# Coming and going


def test_whoever_comes_first_is_the_host_and_names_are_told_apart() -> None:
    room, (ana, rui) = room_of("Ana", "Rui")
    assert room.host is ana
    for name in ("Ana", "ANA", "\uff21na"):
        with pytest.raises(Refused, match="is called"):
            room.enter(name, 0.0)
    assert "is a bot's name" in refused("name", room, rui, "rename", name="Counting 3")
    refused("name", room, rui, "rename", name="ana")
    do(room, rui, "rename", name="Rui B")
    do(room, ana, "rename", name="ana")
    assert room.names == ["ana", "Rui B", "", ""]
    assert len({person.token for person in room.people.values()}) == 2
    assert all(len(person.token) >= 22 for person in room.people.values())
    assert "token" not in repr(ana)


def test_a_full_room_takes_nobody_more() -> None:
    room, _ = room_of("Ana")
    for number in range(QUICK.people - 1):
        room.enter(f"guest {number}", 0.0)
    with pytest.raises(Refused, match="the room is full: 32 people"):
        room.enter("one more", 0.0)


def test_a_seat_is_one_persons() -> None:
    room, (ana, rui) = room_of("Ana", "Rui")
    assert refused("full", room, rui, "sit", seat=0) == "Ana sits there"
    assert "seats are 0 to 3" in refused("message", room, rui, "sit", seat=4)
    do(room, rui, "sit", seat=3)
    assert room.names == ["Ana", "", "", "Rui"]
    do(room, rui, "stand")
    refused("phase", room, rui, "stand")
    do(room, ana, "bot", seat=3, level="random")
    do(room, rui, "sit", seat=3)
    assert room.seats[3].bot is None
    do(room, ana, "bot", seat=1, level="random")
    do(room, ana, "bot", seat=1, level=None)
    assert room.names == ["Ana", "", "", "Rui"]


def test_what_only_a_host_may_do() -> None:
    room, (ana, rui) = room_of("Ana", "Rui")
    for kind, fields in [
        ("start", {"level": "random"}),
        ("bot", {"seat": 2, "level": "random"}),
        ("kick", {"person": ana.number}),
    ]:
        refused("host", room, rui, kind, **fields)
    refused("message", room, ana, "kick", person=ana.number)
    refused("message", room, ana, "kick", person=99)
    refused("message", room, ana, "start", level="oracle")
    refused("message", room, ana, "bot", seat=2, level="test_play_room:Nothing")
    refused("full", room, ana, "bot", seat=1, level="random")
    do(room, ana, "kick", person=rui.number)
    assert list(room.people) == [ana.number]
    assert room.names == ["Ana", "", "", ""]
    with pytest.raises(Refused, match="nobody in this room has that key"):
        room.back(rui.token, 0.0)


def test_the_next_one_is_host_when_the_host_leaves_or_is_away_for_long() -> None:
    room, (ana, rui, eva) = room_of("Ana", "Rui", "Eva")
    do(room, ana, "leave")
    assert room.host is rui
    do(room, rui, "start", level="doubles")
    room.lost(rui, 1.0)
    room.advance(10.9)
    assert room.host is rui
    room.advance(11.0)
    assert room.host is eva
    room.back(rui.token, 12.0)
    assert room.host is eva
    room.lost(rui, 13.0)
    room.lost(eva, 13.0)
    room.advance(30.0)
    assert room.host is eva  # nobody is there to take over


def test_a_room_that_lost_everybody_gets_a_host_again() -> None:
    room, (ana, rui) = room_of("Ana", "Rui")
    room.lost(rui, 0.0)
    do(room, ana, "leave")
    assert room.host is None
    assert room.back(rui.token, 1.0) is room.host is rui


def test_who_does_not_come_back_to_a_lobby_is_forgotten() -> None:
    room, (ana, rui) = room_of("Ana", "Rui")
    room.lost(rui, 5.0)
    room.advance(14.9)
    assert room.names[1] == "Rui"
    room.advance(15.0)
    assert room.names[1] == ""
    assert list(room.people) == [ana.number]


# Playing


def test_empty_seats_get_bots_and_a_match_is_played_to_its_end() -> None:
    room, (ana,) = started("Ana")
    assert room.names == ["Ana", "doubles 2", "doubles 3", "doubles 4"]
    play_on(room, "over")
    assert room.match is not None
    assert max(room.match.scores) >= 6
    assert room.rounds[-1].scores == room.match.scores
    assert notation.loads(room.record()) == room.match
    do(room, ana, "start", level="doubles")
    assert (room.phase, room.rounds, room.match.scores) == ("playing", [], [0, 0])


def test_the_record_waits_for_the_end_of_the_match() -> None:
    room, _ = started("Ana")
    with pytest.raises(Refused, match="a round is being played"):
        room.record()
    play_on(room, "scored")
    with pytest.raises(Refused, match="the round is over"):
        room.record()


@pytest.mark.parametrize(
    ("code", "wish"),
    [
        ("illegal", {"move": "0-0L"}),
        ("illegal", {"move": "9-9R"}),
        ("illegal", {"move": ""}),
        ("illegal", {"move": "draw"}),
        ("illegal", {"move": "pass"}),
        ("stale", {"turn": 0}),
        ("stale", {"turn": 10**6}),
    ],
)
def test_a_forged_move_changes_nothing(code: str, wish: dict[str, Any]) -> None:
    room, (ana, rui) = started("Ana", "Rui", rules=make_rules("duplas", opening="lots"))
    until_turn(room, ana)
    good = {"turn": room.turn, "move": str(room.legal_moves()[0])}
    assert room.match is not None
    before = notation.dumps(room.match)
    refused("turn", room, rui, "play", **good)
    if wish.get("move") not in map(str, room.legal_moves()):
        refused(code, room, ana, "play", **{**good, **wish})
    assert notation.dumps(room.match) == before
    do(room, ana, "play", **good)
    refused("stale", room, ana, "play", **good)


def test_what_waits_for_another_phase() -> None:
    room, (ana, rui) = room_of("Ana", "Rui")
    refused("phase", room, ana, "play", turn=0, move="6-6")
    refused("phase", room, ana, "next", turn=0)
    do(room, ana, "start", level="doubles")
    for kind, fields in [
        ("sit", {"seat": 2}),
        ("stand", {}),
        ("start", {"level": "doubles"}),
        ("next", {"turn": room.turn}),
        ("bot", {"seat": 2, "level": None}),
    ]:
        refused("phase", room, ana, kind, **fields)
    play_on(room, "scored")
    refused("phase", room, ana, "play", turn=room.turn, move="6-6")
    refused("stale", room, ana, "next", turn=room.turn - 1)
    guest = room.enter("Eva", 0.0)
    refused("turn", room, guest, "next", turn=room.turn)
    do(room, guest, "sit", seat=2)
    do(room, rui, "stand")
    assert room.names == ["Ana", "counting 2", "Eva", "doubles 4"]
    do(room, ana, "next", turn=room.turn)
    assert room.phase == "scored"
    do(room, guest, "next", turn=room.turn)
    assert room.phase == "playing"


def test_the_next_round_begins_by_itself_in_the_end() -> None:
    room, (ana, rui) = started("Ana", "Rui")
    play_on(room, "scored")
    do(room, ana, "next", turn=room.turn)
    assert [person.name for person in room.awaited] == ["Rui"]
    room.lost(rui, 1.0)
    room.advance(1.0)
    assert room.phase == "playing"  # nobody waits for who is not there
    room.back(rui.token, 1.0)
    play_on(room, "scored", 100.0)
    assert room.left(102.0) == 3.0
    room.advance(104.9)
    assert room.phase == "scored"
    room.advance(105.0)
    assert room.phase == "playing"


def test_a_bot_is_asked_once_a_turn_after_the_pause() -> None:
    room, _ = room_of("Ana", rules=PRESETS["mano_a_mano"])
    room.settings = Settings(pause=2.0)
    do(room, room.people[1], "start", level="doubles")
    until = room.acting
    if until == 0:
        do(room, room.people[1], "play", turn=room.turn, move=str(room.legal_moves()[0]))
    assert room.acting == 1
    assert room.thought(1.9) is None
    thought = room.thought(2.0)
    assert thought is not None
    assert (thought.level, thought.view.seat) == ("doubles", 1)
    assert room.thought(3.0) is None
    turn, action = room.turn, room.legal_moves()[0].action
    room.bot_plays(thought, action, "", 3.0)
    assert room.turn == turn + 1
    room.bot_plays(thought, action, "", 3.0)  # too late: nothing happens
    assert room.turn == turn + 1


@pytest.mark.parametrize(("action", "trouble"), [(None, "failed (ValueError)"), (10**6, ""), (-1, "")])
def test_a_bot_in_trouble_plays_its_first_legal_move(action: int | None, trouble: str) -> None:
    room, _ = started("Ana")
    while (thought := room.thought(0.0)) is None:
        move_on(room)
    assert room.game is not None
    wanted, name = str(room.legal_moves()[0]), room.names[room.acting or 0]
    room.bot_plays(thought, action, trouble, 0.0)
    assert str(room.game.moves[-1]) == wanted
    said = room.talk[-1]
    assert said.name is None
    assert said.text.startswith(f"doubles {trouble or 'gave a move that may not be played'}: ")
    assert name in said.text


def test_the_substitute_plays_for_who_takes_too_long_or_is_away() -> None:
    room, (ana, rui) = started("Ana", "Rui")
    until_turn(room, ana)
    assert room.left(5.0) == 15.0
    assert room.thought(19.9) is None
    thought = room.thought(20.0)
    assert thought is not None
    assert thought.level == "counting"
    do(room, ana, "play", 20.1, turn=room.turn, move=str(room.legal_moves()[0]))  # still in time
    turn = room.turn
    room.bot_plays(thought, 0, "", 20.2)
    assert room.turn == turn
    room.lost(ana, 21.0)
    room.advance(30.9)
    assert room.player_of(0) is None
    room.advance(31.0)
    assert room.player_of(0) == "counting"
    assert frame(room, rui, 31.0)["seats"][0]["substitute"]
    while room.acting != 0:
        move_on(room, 31.0)
    assert room.left(31.0) is None
    thought = room.thought(31.0)
    assert thought is not None
    assert thought.level == "counting"
    assert room.back(ana.token, 32.0) is ana
    assert room.player_of(0) is None
    shown = frame(room, ana, 32.0)
    assert shown["you"]["seat"] == 0
    assert shown["legal"] == [str(move) for move in room.legal_moves()]


def test_without_a_time_limit_a_person_is_waited_for() -> None:
    room, (ana, _) = started("Ana", "Rui", seconds=None)
    until_turn(room, ana)
    assert room.left(1e6) is None
    assert room.thought(1e6) is None


def test_a_bot_plays_on_for_who_leaves_and_the_seat_is_taken_between_rounds() -> None:
    room, (ana, rui) = started("Ana", "Rui")
    do(room, rui, "leave")
    assert room.names[1] == "counting 2"
    assert room.talk[-1].text == "Rui left; counting 2 plays on"
    play_on(room, "scored")
    back = room.enter("Rui", 0.0)
    do(room, back, "sit", seat=1)
    assert room.names[1] == "Rui"
    do(room, ana, "leave")
    assert room.host is back


def test_a_single_round_and_every_game_is_played() -> None:
    for preset, changes in [
        ("duplas", {"target": None}),
        ("mano_a_mano", {}),
        ("blocos", {"players": 9, "max_pip": 9, "hand_size": 6}),
        ("puxar", {"players": 3}),
    ]:
        room, _ = started("Ana", rules=make_rules(preset, **changes))
        play_on(room, "over")
        assert room.match is not None
        assert room.match.over
