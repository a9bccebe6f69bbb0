"""Pictures: the layout of a chain, and its three painters."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domino_env import PRESETS, Game, make_rules
from domino_env.render import chain_text, lay_chain, lay_in_columns, opening_index, table, table_of, table_svg
from domino_env.render.layout import MIN_WIDTH, Layout, Placement
from domino_env.render.rgb import picture, write_png
from domino_env.render.scene import scene_of
from domino_env.render.text import MIN_COLUMNS


@st.composite
def chains(draw: st.DrawFn) -> list[str]:
    """A chain without a repeated tile, of 1 to 55 tiles: a walk that draws which tile lies next."""
    top = draw(st.integers(2, 9))
    free = {(low, high) for high in range(top + 1) for low in range(high + 1)}
    ends = draw(st.sampled_from(sorted(free)))
    free.discard(ends)
    chain, end = [f"{ends[0]}-{ends[1]}"], ends[1]
    for _ in range(draw(st.integers(0, 54))):
        fits = sorted(tile for tile in free if end in tile)
        if not fits:
            break
        tile = draw(st.sampled_from(fits))
        free.discard(tile)
        other = sum(tile) - end
        chain.append(f"{end}-{other}")
        end = other
    return chain


def longest_chain(top: int) -> list[str]:
    """Every tile of an even set in one chain (an Euler walk), doubles where their number first comes."""
    free = {(a, b) for b in range(top + 1) for a in range(b)}
    stack, walk = [0], []
    while stack:
        here = stack[-1]
        step = next((tile for tile in sorted(free) if here in tile), None)
        if step is None:
            walk.append(stack.pop())
        else:
            free.discard(step)
            stack.append(sum(step) - here)
    chain, seen = [], set()
    for one, other in pairwise(walk):
        if one not in seen:
            seen.add(one)
            chain.append(f"{one}-{one}")
        chain.append(f"{one}-{other}")
    return chain


def rectangle(tile: Placement) -> tuple[float, float, float, float]:
    return tile.x, tile.y, tile.x + tile.width, tile.y + tile.height


def shared_edge(one: Placement, other: Placement) -> float:
    """The length of the border two tiles share; negative where they do not touch along one."""
    (a, b, c, d), (e, f, g, h) = rectangle(one), rectangle(other)
    if c == e or g == a:
        return min(d, h) - max(b, f)
    if d == f or h == b:
        return min(c, g) - max(a, e)
    return -1.0


def touching(one: Placement, other: Placement) -> tuple[int | None, int | None]:
    """The numbers of the halves by which two tiles lie nearest together."""
    pairs = [(abs(h.x - k.x) + abs(h.y - k.y), h.number, k.number) for h in one.halves for k in other.halves]
    _, first, second = min(pairs, key=lambda pair: pair[0])
    return first, second


def check(chain: list[str], layout: Layout) -> None:
    assert [f"{first}-{second}" for first, second in (tile.numbers or () for tile in layout.tiles)] == chain
    for tile in layout.tiles:
        left, top, right, bottom = rectangle(tile)
        assert left >= 0
        assert top >= 0
        assert right <= layout.width
        assert bottom <= layout.height
    for one, other in combinations(layout.tiles, 2):
        (a, b, c, d), (e, f, g, h) = rectangle(one), rectangle(other)
        assert c <= e or g <= a or d <= f or h <= b, f"{one} and {other} overlap"
    for one, other in pairwise(layout.tiles):
        assert shared_edge(one, other) >= 0.5, f"{one} and {other} do not lie together"
        first, second = touching(one, other)
        assert first == second
    apart = combinations(range(len(layout.tiles)), 2)
    for i, j in apart:
        if j - i > 1:
            assert shared_edge(layout.tiles[i], layout.tiles[j]) <= 0, "tiles touch that are not neighbours"
    if layout.tiles:
        ends = layout.tiles[0].halves[0].number, layout.tiles[-1].halves[1].number
        assert ends == (int(chain[0][0]), int(chain[-1][2]))


@given(chains(), st.integers(MIN_WIDTH, 60), st.data())
@settings(max_examples=300, deadline=None)
def test_rows_hold_every_chain(chain: list[str], columns: int, data: st.DataObject) -> None:
    opening = data.draw(st.none() | st.integers(0, len(chain) - 1))
    layout = lay_in_columns(chain, columns, opening=opening)
    check(chain, layout)
    assert layout.width <= columns


@given(chains(), st.floats(1, 5000), st.floats(1, 5000), st.floats(1, 200), st.data())
@settings(max_examples=100, deadline=None)
def test_every_box_holds_every_chain(
    chain: list[str], width: float, height: float, max_unit: float, data: st.DataObject
) -> None:
    opening = data.draw(st.none() | st.integers(0, len(chain) - 1))
    layout = lay_chain(chain, width, height, opening=opening, max_unit=max_unit)
    check(chain, layout)
    assert 0 < layout.unit <= max_unit
    assert layout.width * layout.unit <= width * (1 + 1e-9)
    assert layout.height * layout.unit <= height * (1 + 1e-9)


@pytest.mark.parametrize("columns", range(MIN_WIDTH, 14))
@pytest.mark.parametrize("top", [2, 4, 6, 8])
def test_whole_sets_in_narrow_rows_from_every_tile(columns: int, top: int) -> None:
    chain = longest_chain(top)
    assert len(chain) == (top + 1) * (top + 2) // 2
    for opening in range(len(chain)):
        layout = lay_in_columns(chain, columns, opening=opening)
        assert layout.width <= columns
        assert all(shared_edge(one, other) >= 0.5 for one, other in pairwise(layout.tiles))
    check(chain, layout)


def test_doubles_lie_crosswise_also_where_a_row_turns() -> None:
    chain = longest_chain(6)
    layout = lay_in_columns(chain, 9, opening=0)
    for index, tile in enumerate(layout.tiles):
        if chain[index][0] != chain[index][2]:
            continue
        assert tile.turn == 1
        for neighbour in layout.tiles[max(0, index - 1) : index + 2]:
            if neighbour.height == 1:  # it lies in the double's row, on its middle line
                assert neighbour.y + 0.5 == tile.y + 1


def test_a_row_that_ends_with_a_double_turns_below_it() -> None:
    layout = lay_in_columns(["0-1", "1-2", "2-2", "2-3", "3-4"], 6, opening=0)
    double, upright, back = layout.tiles[2:]
    assert (upright.turn, back.turn) == (1, 2)
    assert (upright.x, upright.y) == (double.x, double.y + 2)
    assert (back.x, back.y) == (upright.x - 1, upright.y + 2)


def test_a_double_that_does_not_fit_makes_the_tile_before_it_turn() -> None:
    layout = lay_in_columns(["0-1", "1-2", "2-3", "3-3", "3-4"], 6, opening=0)
    assert [tile.turn for tile in layout.tiles] == [0, 0, 1, 1, 2]
    assert layout.tiles[3].y == layout.tiles[2].y + 2
    check(["0-1", "1-2", "2-3", "3-3", "3-4"], layout)


def test_one_row_while_there_is_room_then_smaller() -> None:
    chain = longest_chain(6)
    for length in range(1, len(chain) + 1):
        layout = lay_chain(chain[:length], 600, 300, opening=0, max_unit=60)
        check(chain[:length], layout)
        in_a_row = sum(1 if tile[0] == tile[2] else 2 for tile in chain[:length])
        assert (layout.width == in_a_row) or in_a_row > 10
        assert layout.unit == 60 or in_a_row > 10
    assert layout.unit < 60


def test_opening_tile_then_first_play_on_the_left() -> None:
    game = Game.from_deal(PRESETS["blocos"], [["6-4", "5-1"], ["6-2", "0-0"]])
    game.play("6-4")
    assert opening_index(game.events) == 0
    game.play("6-2L")
    assert game.chain == ["2-6", "6-4"]
    assert opening_index(game.events) == 1
    layout = lay_chain(game.chain, 100, 100, opening=1)
    check(game.chain, layout)
    assert [half.number for tile in layout.tiles for half in tile.halves] == [2, 6, 6, 4]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("seed", range(5))
def test_layout_of_every_position_of_a_round(preset: str, seed: int) -> None:
    game = Game(make_rules(preset, max_pip=9), seed)
    game.play_out(seed)
    while True:
        layout = lay_chain(game.chain, 400, 250, opening=opening_index(game.events) if game.chain else None)
        check(game.chain, layout)
        if game.ends is not None:
            assert (layout.tiles[0].halves[0].number, layout.tiles[-1].halves[1].number) == game.ends
        if not game.moves:
            break
        game.undo()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lay_chain(["6-4"], 0, 10), "a box of 0 by 10"),
        (lambda: lay_chain(["6-4", "5-5"], 10, 10), "'6-4' and '5-5'"),
        (lambda: lay_chain(["64"], 10, 10), "'64' in the chain is not a tile"),
        (lambda: lay_chain(["6-4"], 10, 10, opening=1), "opening=1"),
        (lambda: lay_in_columns(["6-4"], 5), "columns=5"),
        (lambda: chain_text(["6-4"], 24), "columns=24"),
        (lambda: table_of("6-4"), "'6-4' cannot be drawn"),  # type: ignore[arg-type]
        (lambda: picture(Game(PRESETS["duplas"], 1), (10, 10)), r"size=\(10, 10\)"),
        (lambda: table(Game(PRESETS["duplas"], 1), names=["a"]), "1 given for 4 players"),
    ],
)
def test_wrong_input_is_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


def test_chain_in_characters() -> None:
    assert chain_text(["6-4", "4-4", "4-0"]) == (
        "        ╭───╮\n╭───────┤ 4 ├───────╮\n│ 6 ┊ 4 │┄┄┄│ 4 ┊ 0 │\n╰───────┤ 4 ├───────╯\n        ╰───╯"
    )
    assert chain_text(["6-4", "4-4"], ascii_only=True) == (
        "        +---+\n+-------+ 4 |\n| 6 : 4 |...|\n+-------+ 4 |\n        +---+"
    )
    assert chain_text([]) == ""


@given(chains(), st.integers(MIN_COLUMNS, 120))
@settings(max_examples=60, deadline=None)
def test_text_shows_every_half_within_the_columns(chain: list[str], columns: int) -> None:
    text = chain_text(chain, columns, ascii_only=True)
    assert text.isascii()
    assert max(map(len, text.split("\n"))) <= columns
    shown = sorted(letter for letter in text if letter.isdigit())
    assert shown == sorted(letter for tile in chain for letter in tile if letter != "-")


def mid_round(preset: str = "duplas", seed: int = 7, plays: int = 12, **changes: int) -> Game:
    game = Game(make_rules(preset, **changes), seed)
    game.play_out(seed)
    while len(game.moves) > plays:
        game.undo()
    return game


def re_dealt(game: Game, seat: int) -> Game:
    """The same round with the tiles that `seat` does not know exchanged, in a way it cannot notice."""
    hidden = [tile for other, hand in enumerate(game.hands) if other != seat for tile in hand] + game.boneyard
    rng = random.Random(seat)
    for _ in range(1000):
        swap = dict(zip(hidden, rng.sample(hidden, len(hidden)), strict=True))
        hands = [[swap.get(tile, tile) for tile in hand] for hand in game.deal.hands]
        boneyard = [swap.get(tile, tile) for tile in game.deal.boneyard]
        other = Game.from_deal(game.rules, hands, boneyard, game.starter, game.forced)
        try:
            for move in game.moves:
                other.play(move.action)
        except ValueError:
            continue
        if other.view(seat) == game.view(seat) and other.hands != game.hands:
            return other
    raise AssertionError("no such deal was found")


@pytest.mark.parametrize("preset", PRESETS)
def test_a_seat_is_shown_only_what_it_knows(preset: str) -> None:
    game = mid_round(preset, seed=3, plays=4)
    for seat in range(game.rules.players):
        other = re_dealt(game, seat)
        one, two = game.view(seat), other.view(seat)
        assert table(one) == table(two)
        assert table_svg(one) == table_svg(two)
        assert np.array_equal(picture(one), picture(two))
        assert not np.array_equal(picture(game), picture(other))


@pytest.mark.parametrize("preset", PRESETS)
def test_backs_and_faces_in_a_scene(preset: str) -> None:
    game = mid_round(preset, plays=6)
    for seat in range(game.rules.players):
        faces = {tuple(sorted(p.numbers)) for p in scene_of(game.view(seat), (640, 480)).pieces if p.numbers}
        known = [*game.hands[seat], *game.chain]
        assert faces == {tuple(sorted((int(tile[0]), int(tile[2])))) for tile in known}
        backs = [piece for piece in scene_of(game.view(seat), (640, 480)).pieces if piece.numbers is None]
        hidden = sum(len(hand) for other, hand in enumerate(game.hands) if other != seat)
        assert len(backs) == hidden + bool(game.rules.boneyard_size)
    assert "▮" not in table(game)
    assert "▮" in table(game.view(0))


@pytest.mark.parametrize("players", range(2, 10))
@pytest.mark.parametrize("size", [(160, 120), (960, 640), (300, 700)])
def test_pieces_lie_inside_the_picture_and_apart(players: int, size: tuple[int, int]) -> None:
    for plays in (0, 5, 99):
        scene = scene_of(mid_round("blocos", plays=plays, players=players), size)
        boxes = [piece.box for piece in scene.pieces]
        for x, y, width, height in boxes:
            assert x >= 0
            assert y >= 0
            assert x + width <= size[0]
            assert y + height <= size[1]
        for (a, b, c, d), (e, f, g, h) in combinations(boxes, 2):
            assert a + c <= e or e + g <= a or b + d <= f or f + h <= b


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("plays", [0, 9, 99])
def test_pictures_of_every_game(preset: str, plays: int) -> None:
    game = mid_round(preset, plays=plays)
    for shown in (game, game.view(1)):
        pixels = picture(shown, (320, 240))
        assert pixels.shape == (240, 320, 3)
        assert pixels.dtype == np.uint8
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50
        assert pixels.flags.writeable
        kept = pixels.copy()
        pixels[:] = 0
        assert np.array_equal(picture(shown, (320, 240)), kept)
        root = ET.fromstring(table_svg(shown, (320, 240), names=["<&>"] * game.rules.players))
        scene = scene_of(shown, (320, 240))
        assert len(root.findall("{*}g")) == len(scene.pieces)
        pips = sum(sum(piece.numbers) + 1 for piece in scene.pieces if piece.numbers)  # and a pin each
        assert len(root.findall("{*}g/{*}circle")) == pips


def test_the_text_of_a_seat() -> None:
    game = mid_round(plays=4)
    text = table(game.view(2), names=["ana", "bia", "caio", "you"])
    lines = text.split("\n")
    assert lines[0].startswith("duplas, round 1, to 6")
    assert lines[0].endswith("ana + caio: 0, bia + you: 0")
    assert len(lines[0]) == 80
    own = next(line for line in lines if line.split()[:1] == ["caio"] or line.split()[1:2] == ["caio"])
    assert [tile.strip("[]").replace("|", "-") for tile in own.split() if tile[0] == "["] == game.hands[2]
    assert f"ends: {game.ends[0]} left, {game.ends[1]} right" in lines  # type: ignore[index]
    assert f"{['ana', 'bia', 'caio', 'you'][game.seat]} to act" in lines  # type: ignore[index]
    assert "\x1b" not in text
    assert "\x1b" in table(game, colour=True)


@pytest.mark.parametrize("columns", [MIN_COLUMNS, 40, 80])
def test_text_keeps_to_its_columns(columns: int) -> None:
    for preset in PRESETS:
        for plays in (0, 8, 99):
            game = mid_round(preset, plays=plays, seed=11)
            for shown in (game, game.view(0)):
                assert all(len(line) <= columns for line in table(shown, columns).split("\n"))


def test_the_result_in_words() -> None:
    game = Game.from_deal(PRESETS["duplas"], [["6-6"], ["5-5"], ["4-4"], ["3-3"]])
    game.play("6-6")
    assert "seat 0 went out with carroça: seat 0 + seat 2 scored 2 points" in table(game)
    assert "carroca" in table(game, ascii_only=True)
    tied = Game.from_deal(PRESETS["blocos"], [["6-6", "5-0"], ["5-1", "4-3"]], starter=0)
    tied.play("6-6")
    assert "blocked: seat 0 scored 8 points" in table(tied)


def test_png_is_what_was_painted(tmp_path: object) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = picture(mid_round().view(0), (320, 240))
    write_png(f"{tmp_path}/table.png", pixels)
    with image.open(f"{tmp_path}/table.png") as read:
        assert np.array_equal(np.asarray(read), pixels)


def test_the_picture_in_the_docs_is_what_its_command_paints() -> None:
    image = pytest.importorskip("PIL.Image")
    with image.open(Path(__file__).parents[1] / "docs" / "images" / "table.png") as read:
        kept = np.asarray(read).astype(int)
    assert np.abs(kept - picture(mid_round("duplas", 7, 12).view(0))).max() <= 2


def test_png_without_pillow_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ValueError, match=r"domino-env\[render\]"):
        write_png(f"{tmp_path}/table.png", np.zeros((2, 2, 3), np.uint8))


def test_painting_needs_numpy_alone() -> None:
    code = (
        "import sys, domino_env.render.rgb, domino_env.render.svg, domino_env.render.text\n"
        "print(sorted({'PIL', 'pettingzoo', 'torch', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
