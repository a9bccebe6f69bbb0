from __future__ import annotations

from typing import Any

import pytest
from play_rooms import QUICK, do

from domino_env.play import House, Refused, Settings
from domino_env.play.house import ALPHABET, CODE_LENGTH, new_code


def test_codes_are_told_apart_and_a_used_one_is_not_given_again() -> None:
    codes = {new_code() for _ in range(1000)}
    assert len(codes) == 1000
    assert all(len(code) == CODE_LENGTH and set(code) <= set(ALPHABET) for code in codes)
    given = iter(["AAAAAAAA", *["AAAAAAAA"] * 5, "BBBBBBBB", *["AAAAAAAA"] * 100])
    house = House(QUICK, codes=lambda: next(given))
    wish = {"kind": "open", "name": "Ana", "preset": "duplas", "changes": {}, "seconds": 20}
    first, _ = house.open(wish, 0.0)
    second, _ = house.open(wish, 0.0)
    assert (first.code, second.code) == ("AAAAAAAA", "BBBBBBBB")
    with pytest.raises(Refused, match="no free code"):
        house.open(wish, 0.0)
    assert house.rooms == {"AAAAAAAA": first, "BBBBBBBB": second}
    assert house.find(" bbbb bbbb ") is second


@pytest.mark.parametrize(
    ("preset", "changes", "says"),
    [
        ("dominos", {}, "duplas"),
        ("duplas", {"players": 5}, "players"),
        ("duplas", {"target": 0}, "target=0"),
        ("duplas", {"taget": 6}, "target"),
        ("blocos", {"players": 4, "hand_size": 8}, "32"),
        ("blocos", {"players": "four"}, "players='four'"),
        ("blocos", {"preset": "puxar"}, "preset"),
    ],
)
def test_rules_that_cannot_be_are_refused(preset: str, changes: dict[str, Any], says: str) -> None:
    house = House(QUICK)
    with pytest.raises(Refused, match=says) as found:
        house.open({"name": "Ana", "preset": preset, "changes": changes, "seconds": None}, 0.0)
    assert "\n" not in found.value.why
    assert house.rooms == {}


def test_empty_rooms_are_closed_after_a_while_and_there_is_an_end_of_rooms() -> None:
    house = House(Settings(rooms=2, empty=30.0, grace=10.0))
    wish = {"name": "Ana", "preset": "duplas", "changes": {}, "seconds": 20}
    room, ana = house.open(wish, 0.0)
    other, _ = house.open(wish, 0.0)
    with pytest.raises(Refused, match="2 rooms are open"):
        house.open(wish, 0.0)
    room.lost(ana, 5.0)
    assert house.close_empty(34.9) == []
    room.back(ana.token, 34.9)
    assert house.close_empty(50.0) == []
    do(room, ana, "leave", 60.0)
    assert house.close_empty(89.9) == []
    assert house.close_empty(90.0) == [room]
    assert list(house.rooms.values()) == [other]
