"""Tiles, sets and action ids as numbers, and their names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import full_set, pips_of

from domino_env import tiles


@pytest.mark.parametrize("max_pip", range(2, 10))
def test_the_table_is_the_full_set_and_smaller_sets_its_beginning(max_pip: int) -> None:
    expected = full_set(max_pip)
    assert tiles.num_tiles(max_pip) == len(expected) == (6, 10, 15, 21, 28, 36, 45, 55)[max_pip - 2]
    assert list(tiles.HALVES[: len(expected)]) == expected
    assert tiles.PIPS[: len(expected)].sum() == pips_of(expected)
    assert [tiles.tile_index(low, high) for high, low in expected] == list(range(len(expected)))
    assert [tiles.tile_index(high, low) for high, low in expected] == list(range(len(expected)))


def test_the_published_sizes_and_pips() -> None:
    assert (tiles.num_tiles(6), int(tiles.PIPS[:28].sum())) == (28, 168)
    assert (tiles.num_tiles(9), int(tiles.PIPS.sum())) == (55, 495)


def test_suits_and_doubles() -> None:
    for number, suit in enumerate(tiles.SUIT):
        members = [tiles.HALVES[tile] for tile in tiles.tiles_in(int(suit))]
        assert members == [halves for halves in tiles.HALVES if number in halves]
        assert len(members) == 10
    assert [tiles.HALVES[tile] for tile in tiles.tiles_in(int(tiles.DOUBLES))] == [(n, n) for n in range(10)]


def test_names() -> None:
    assert tiles.TILE_NAMES[27] == "6-6"
    assert tiles.TILE_NAMES[tiles.tile_index(6, 4)] == "4-6"
    assert tiles.ACTION_NAMES[2 * tiles.tile_index(6, 4)] == "6-4L"
    assert tiles.ACTION_NAMES[2 * tiles.tile_index(6, 4) + 1] == "6-4R"
    assert len(set(tiles.TILE_NAMES)) == 55
    assert len(set(tiles.ACTION_NAMES)) == 110


@pytest.mark.parametrize("tile", range(55))
def test_names_are_read_back_in_both_orders(tile: int) -> None:
    high, low = tiles.HALVES[tile]
    for name in (f"{high}-{low}", f"{low}-{high}"):
        assert tiles.parse_tile(name) == tile
        assert tiles.parse_move(name) == (tile, None)
        for end, letters in enumerate(("lL", "rR")):
            assert [tiles.parse_move(name + letter) for letter in letters] == [(tile, end)] * 2


WRONG_TILES: list[Any] = [
    "",
    "6",
    "64",
    "6-",
    "-6",
    "6-4-1",
    "6 -4",
    " 6-4",
    "6-4\n",
    "a-b",
    "10-1",
    "6-10",
    "٣-٤",
    None,
    27,
    b"6-4",
    6.4,
    ("6", "4"),
]


@pytest.mark.parametrize("text", WRONG_TILES, ids=repr)
def test_what_is_no_tile_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="is not a tile: write two halves, such as '6-4'") as error:
        tiles.parse_tile(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize(
    "text", [*(t for t in WRONG_TILES if t != "6-4"), "6-4X", "6-4LR", "6-4 L", "L6-4", "6-4S"], ids=repr
)
def test_what_is_no_move_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="is not a move: write a tile and an end, such as '6-4L' or '6-4R'") as error:
        tiles.parse_move(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize("max_pip", range(2, 9))
def test_a_tile_that_the_set_has_not_is_refused(max_pip: int) -> None:
    message = f"'{max_pip + 1}-0' is not in the double-{max_pip} set: halves go from 0 to {max_pip}"
    for parse in (tiles.parse_tile, tiles.parse_move):
        assert parse(f"{max_pip}-0", max_pip) is not None
        with pytest.raises(ValueError, match=message):
            parse(f"{max_pip + 1}-0", max_pip)


@given(st.sets(st.integers(0, 54)))
def test_sets_of_tiles(members: set[int]) -> None:
    mask = tiles.tile_set(members)
    assert tiles.tiles_in(mask) == sorted(members)
    assert tiles.tiles_in(np.uint64(mask)) == sorted(members)
