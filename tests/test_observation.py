"""Observations: read back slice by slice, sound against the true hands, the same from every seat."""

from __future__ import annotations

import importlib.util
from itertools import combinations, pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from domino_env import (
    PRESETS,
    Batch,
    Deal,
    Encoding,
    Event,
    Game,
    Match,
    RuleSet,
    View,
    make_rules,
    observation,
)
from domino_env.observation import VECTOR

CASES = {
    "duplas": PRESETS["duplas"],
    "mano_a_mano": PRESETS["mano_a_mano"],
    "blocos": PRESETS["blocos"],
    "blocos of 4": make_rules("blocos", players=4),
    "blocos of 9": make_rules("blocos", players=9),
    "puxar": PRESETS["puxar"],
    "puxar of 3": make_rules("puxar", players=3),
    "puxar of 4": make_rules("puxar", players=4),
    "single rounds of until_fit with 3": make_rules("mano_a_mano", players=3, target=None),
    "double-nine, 9 players, drawing": make_rules("puxar", players=9, max_pip=9, hand_size=3, target=900),
}
every_case = pytest.mark.parametrize("rules", CASES.values(), ids=CASES)


def halves(tile: str) -> set[int]:
    return {int(tile[0]), int(tile[2])}


def tiles_of(max_pip: int) -> list[str]:
    return [f"{low}-{high}" for high in range(max_pip + 1) for low in range(high + 1)]


def vector_of(view: View) -> npt.NDArray[np.int8]:
    vector: npt.NDArray[np.int8] = Encoding(view.rules).vectors(view.record)[0]
    return vector


def random_deal(rules: RuleSet, rng: Random) -> Deal:
    tiles = rng.sample(tiles_of(rules.max_pip), rules.num_tiles)
    cuts = [seat * rules.hand_size for seat in range(rules.players + 1)]
    hands = tuple(tuple(tiles[a:b]) for a, b in pairwise(cuts))
    return Deal(hands, tuple(tiles[cuts[-1] :]), rng.randrange(rules.players))


# Reading a vector back


def count_of(bits: npt.NDArray[np.int8]) -> int:
    count = int(bits.sum())
    assert bits.tolist() == [1] * count + [0] * (len(bits) - count)
    return count


def index_of(bits: npt.NDArray[np.int8]) -> int | None:
    assert bits.sum() <= 1
    return int(bits.argmax()) if bits.any() else None


def set_of(bits: npt.NDArray[np.int8], names: list[Any]) -> set[Any]:
    return {name for name, bit in zip(names, bits, strict=True) if bit}


def decode(rules: RuleSet, vector: npt.NDArray[np.int8]) -> dict[str, Any]:
    """What a vector says, in sets, numbers and counts."""
    tiles, numbers = tiles_of(rules.max_pip), list(range(rules.max_pip + 1))
    found: dict[str, Any] = {}
    for name, part in Encoding(rules).slices.items():
        bits = vector[part.start : part.stop].reshape(part.shape)
        if name == "hand":
            found[name] = set_of(bits, tiles)
        elif name == "placed":
            found[name] = [set_of(row, tiles) for row in bits]
        elif name in ("holds_none", "holds_at_most_one"):
            found[name] = [set_of(row, numbers) for row in bits]
        elif name in ("hand_count", "scores"):
            found[name] = [count_of(row) for row in bits]
        elif name in ("boneyard", "multiplier"):
            found[name] = count_of(bits)
        elif name == "padding":
            assert not bits.any()
        else:
            found[name] = index_of(bits)
    return found


def bounds_shown(rules: RuleSet, events: tuple[Event, ...], to_act: int | None) -> list[dict[int, int]]:
    """For each seat: numbers of which it holds at most 0, or at most 1, tiles, from what all have seen."""
    most: list[dict[int, int]] = [{} for _ in range(rules.players)]
    until_fit = rules.draw == "until_fit"
    for i, event in enumerate(events):
        seat, following = event.seat, events[i + 1] if i + 1 < len(events) else None
        if event.kind == "play":
            if until_fit and i and events[i - 1].kind == "draw":
                assert events[i - 1].seat == seat
                continue  # it plays what it has just drawn; the rest of its hand is what it was
            assert event.tile is not None
            for number in halves(event.tile) & most[seat].keys():
                most[seat][number] -= 1
                assert most[seat][number] >= 0
            continue
        assert event.ends is not None
        most[seat] |= dict.fromkeys(event.ends, 0)
        if event.kind == "draw":
            fitted = until_fit and (to_act == seat if following is None else following.kind == "play")
            if fitted and following is not None:
                continue
            most[seat] = {number: 1 for number, bound in most[seat].items() if bound == 0}
            if until_fit and not fitted:
                most[seat] |= dict.fromkeys(event.ends, 0)
    return most


def expected(game: Game, seat: int, scores: list[int], ties: int) -> dict[str, Any]:
    """What the vector should say, from the deal and the events that `seat` has seen."""
    rules, players = game.rules, game.rules.players
    seats = [(seat + i) % players for i in range(players)]
    hand, placed, owners = set(game.deal.hands[seat]), [set() for _ in seats], [None, None]  # type: ignore[var-annotated]
    counts, left_to_draw = [len(hand) for hand in game.deal.hands], len(game.deal.boneyard)
    last, ends = None, None
    events = game.view(seat).events
    for event in events:
        relative = seats.index(event.seat)
        if event.kind == "draw":
            counts[event.seat] += 1
            left_to_draw -= 1
            assert (event.tile is not None) == (event.seat == seat)
            if event.tile is not None:
                hand.add(event.tile)
        elif event.kind == "play":
            assert event.tile is not None
            counts[event.seat] -= 1
            hand.discard(event.tile)
            placed[relative].add(event.tile)
            last = relative
            low, high = int(event.tile[0]), int(event.tile[2])
            if ends is None:
                ends, owners = [high, low], [relative, relative]
            else:
                end = ("left", "right").index(str(event.end))
                ends[end], owners[end] = low + high - ends[end], relative
    most = bounds_shown(rules, events, game.seat)
    others = seats[1:]
    starter = events[0].seat if events else game.seat
    assert starter is not None
    said: dict[str, Any] = {
        "hand": hand,
        "left_end": ends and ends[0],
        "right_end": ends and ends[1],
        "placed": placed,
        "holds_none": [{n for n, bound in most[other].items() if bound == 0} for other in others],
        "hand_count": [counts[other] for other in others],
        "to_act": None if game.seat is None else seats.index(game.seat),
        "starter": seats.index(starter),
        "last": last,
        "left_owner": owners[0],
        "right_owner": owners[1],
    }
    if rules.draw != "none":
        said["holds_at_most_one"] = [set(most[other]) for other in others]
        if rules.boneyard_size:
            said["boneyard"] = left_to_draw
    if rules.target is not None:
        sides, steps = rules.num_sides, min(rules.target, 20)
        mine = [scores[(seat + i) % sides] for i in range(sides)]
        said["scores"] = [min(steps, score * steps // rules.target) for score in mine]
        said["multiplier"] = min(4, ties) if rules.tie_multiplier > 1 else 0
    return said


def ties_before(match: Match) -> int:
    """Tied rounds in a row before the one in play, as far as they multiply."""
    ties = 0
    for result in match.results[: match.round - 1]:
        ties = ties + 1 if result.reason == "tied" else 0
    return ties if match.rules.tie_multiplier_stacks else min(ties, 1)


@every_case
@pytest.mark.parametrize("stacks", [False, True])
def test_a_vector_says_what_the_events_say(rules: RuleSet, stacks: bool) -> None:
    if stacks:
        if rules.target is None:
            return
        changes = {"tie_multiplier": 3, "tie_multiplier_stacks": True}
        rules = RuleSet(**{**vars(rules), **changes})
    rng = Random(5)
    seen: dict[str, set[Any]] = {}
    for seed in range(3 if rules.players < 9 else 1):
        match, before = Match(rules, seed=seed), [0] * rules.num_sides
        while True:
            game, seats = match.game, range(rules.players)
            for seat in seats if rng.random() < 0.4 else rng.sample(seats, 1):
                said = decode(rules, vector_of(game.view(seat)))
                assert said == expected(game, seat, before, ties_before(match))
                for name, value in said.items():
                    seen.setdefault(name, set()).add(repr(value))
            if match.over or match.round > 12:
                break
            result = match.play(rng.choice(game.legal_moves()))
            if result is not None:
                if match.over:
                    before = match.scores
                    said = decode(rules, vector_of(match.game.view(0)))
                    assert said == expected(match.game, 0, before, ties_before(match))
                before = match.scores
    varying = seen.keys() - {"multiplier"}
    assert [name for name in varying if len(seen[name]) < 2] == []


@pytest.mark.parametrize("name", PRESETS)
def test_a_vector_says_how_often_ties_have_multiplied(name: str) -> None:
    for stacks, tied in ((False, [1, 1, 1, 1, 1]), (True, [1, 2, 3, 4, 4])):
        rules = make_rules(name, tie_multiplier=2, tie_multiplier_stacks=stacks)
        for ties, said in enumerate([0, *tied]):
            factor = 2 ** (ties if stacks else min(ties, 1))
            game = Game.from_deal(rules, Game(rules, seed=1).deal.hands, multiplier=factor)
            assert decode(rules, vector_of(game.view(0)))["multiplier"] == said


def test_what_draws_until_one_fits_show() -> None:
    rules = PRESETS["mano_a_mano"]
    game = Game.from_deal(
        rules, [["6-6", "6-5", "5-5"], ["1-1", "2-2", "3-3"]], ["4-1", "4-2", "6-0", "0-0"], starter=0
    )
    game.play("6-6")
    assert [event.kind for event in game.events] == ["play", "draw", "draw", "draw"]
    said = decode(rules, vector_of(game.view(0)))
    assert said["holds_none"] == [set()]  # the third tile, that fits, may carry anything beside the 6
    assert said["holds_at_most_one"] == [{6}]
    game.play("6-0L")
    said = decode(rules, vector_of(game.view(0)))
    assert said["holds_none"] == [{6}]
    assert said["holds_at_most_one"] == [{6}]
    assert game.view(0).counts == [2, 5]


def test_what_single_draws_show() -> None:
    rules = PRESETS["puxar"]
    game = Game.from_deal(
        rules, [["6-6", "6-5", "6-3", "5-5"], ["1-1", "2-2", "3-3"]], ["4-1", "6-4", "0-0"], starter=0
    )
    game.play("6-6")
    assert [event.kind for event in game.events] == ["play", "draw"]
    said = decode(rules, vector_of(game.view(0)))
    assert (said["holds_none"], said["holds_at_most_one"]) == ([set()], [{6}])
    game.play("6-5R")  # ends 6 and 5; seat 1 draws the 6-4, which fits, and its turn is over
    assert [event.kind for event in game.events] == ["play", "draw", "play", "draw"]
    said = decode(rules, vector_of(game.view(0)))
    assert (said["holds_none"], said["holds_at_most_one"]) == ([set()], [{5, 6}])
    game.play("6-3L")  # ends 3 and 5
    game.play("3-3L")
    game.play("5-5R")  # seat 0 went out
    assert game.seat is None


def test_what_a_pass_shows_stays_shown_where_nothing_is_drawn() -> None:
    game = Game.from_deal(PRESETS["duplas"], [["6-6", "6-5"], ["1-1", "2-1"], ["6-4", "0-0"], ["5-3", "3-3"]])
    for move in ("6-6", "6-4R"):  # seat 1 passes, then seat 3
        game.play(move)
    said = decode(game.rules, vector_of(game.view(2)))
    assert said["holds_none"] == [{4, 6}, set(), {6}]  # seats 3, 0, 1
    assert "holds_at_most_one" not in said


# Soundness against the true hands, on many rounds at once


def lacking(batch: Batch, name: str, views: Any) -> npt.NDArray[np.bool_]:
    part = batch.encoding.slices[name]
    vectors = batch.encoding.vectors(views)
    return vectors[:, part.start : part.stop].reshape(len(views), *part.shape).astype(bool)


@every_case
def test_no_seat_holds_what_is_shown_that_it_lacks(rules: RuleSet) -> None:
    tables, players = 300, rules.players
    batch = Batch(rules, tables, seed=3)
    suits = [
        sum(1 << i for i, t in enumerate(tiles_of(rules.max_pip)) if n in halves(t)) for n in range(rules.max_pip + 1)
    ]
    all_tables = np.arange(tables)
    shown = {"holds_none": 0, "holds_at_most_one": 0}
    for _ in range(90):
        batch.step(batch.sample_actions())
        observer = int(batch.state["num_events"][0]) % players
        views = batch.views(all_tables, np.full(tables, observer))
        others = [(observer + i) % players for i in range(1, players)]
        hands = batch.state["hands"][:, others]
        held = np.bitwise_count(hands[:, :, None] & np.array(suits, np.uint64))
        for name, most in (("holds_none", 0), ("holds_at_most_one", 1)):
            if name in batch.encoding.slices:
                lacks = lacking(batch, name, views)
                assert not np.any(lacks & (held > most))
                shown[name] += int(lacks.sum())
        assert np.array_equal(views["counts"][:, 1:players], np.bitwise_count(hands))
    assert shown["holds_none"] > 1000
    assert shown["holds_at_most_one"] > 1000 or rules.draw == "none"


# Seats are relative


@every_case
@pytest.mark.parametrize("shift", [1, 3])
def test_a_rotated_table_looks_the_same_to_the_rotated_seat(rules: RuleSet, shift: int) -> None:
    players, rng = rules.players, Random(shift)
    shift %= players
    deals = [random_deal(rules, rng) for _ in range(6)]

    def rotated(deal: Deal) -> Deal:
        hands = tuple(deal.hands[(seat - shift) % players] for seat in range(players))
        return Deal(hands, deal.boneyard, ((deal.lot or 0) + shift) % players)

    match, other = Match(rules, deals=deals), Match(rules, deals=[rotated(deal) for deal in deals])
    while not match.over and match.round <= len(deals):
        game, turned = match.game, other.game
        for seat in range(players):
            one, two = game.view(seat), turned.view((seat + shift) % players)
            assert vector_of(one).tobytes() == vector_of(two).tobytes()
            assert one.record["seat"] == seat
            assert two.record["seat"] == (seat + shift) % players
            for record in (one.record, two.record):
                record["seat"] = 0
            assert one.record.tobytes() == two.record.tobytes()
        move = rng.choice(game.legal_moves())
        match.play(move)
        other.play(move)
    assert match.round == other.round


# Layout


def test_slices_tile_the_vector() -> None:
    for rules in CASES.values():
        encoding = Encoding(rules)
        stop = 0
        for part in encoding.slices.values():
            assert part.start == stop
            stop = part.stop
        assert encoding.size == stop
        assert encoding.size % 8 == 0
        assert len(encoding.slices) == len({part.name for part in encoding.slices.values()})


@every_case
def test_entries_are_bits(rules: RuleSet) -> None:
    batch = Batch(rules, 64, seed=9, episode="match")
    for _ in range(60):
        batch.step(batch.sample_actions())
        for array, width in (
            (batch.observation, batch.encoding.size),
            (batch.action_mask, rules.num_actions),
        ):
            assert array.shape == (64, width)
            assert array.dtype == np.int8
            assert set(np.unique(array)) <= {0, 1}
    padding = batch.encoding.slices.get("padding")
    assert padding is None or not batch.observation[:, padding.start :].any()


def test_the_widest_vector_has_room() -> None:
    widest = max(
        (
            make_rules("puxar", players=players, hand_size=size, draw=draw, max_pip=9)
            for players in range(2, 10)
            for size in range(1, 55 // players + 1)
            for draw in ("none", "until_fit", "one")
        ),
        key=lambda rules: Encoding(rules).size,
    )
    assert Encoding(widest).size <= 64 * VECTOR["words"].shape[0]
    match, rng = Match(widest, seed=2), Random(3)
    while not match.over:
        view = match.game.view(rng.randrange(widest.players))
        said = decode(widest, vector_of(view))
        assert said["scores"] == [min(20, score // 5) for score in np.roll(match.scores, -view.seat)]
        match.play(match.game.legal_moves()[0])


def test_known_sizes() -> None:
    sizes = {name: Encoding(rules).size for name, rules in CASES.items()}
    assert sizes["duplas"] == 232
    assert all(size % 8 == 0 for size in sizes.values())
    assert max(sizes, key=lambda name: sizes[name]) == "double-nine, 9 players, drawing"


def test_the_fingerprint_differs_where_layout_or_meaning_does(monkeypatch: pytest.MonkeyPatch) -> None:
    duplas = PRESETS["duplas"]
    variants = [
        *CASES.values(),
        make_rules("duplas", target=7),
        make_rules("duplas", target=None),
        make_rules("duplas", hand_size=6),
        make_rules("duplas", pairs=False),
        make_rules("duplas", max_pip=7),
        make_rules("mano_a_mano", hand_size=6),
        make_rules("puxar", target=101),
    ]
    fingerprints = {Encoding(rules).fingerprint for rules in variants}
    assert len(fingerprints) == len(variants)
    for one, two in combinations([duplas, make_rules("duplas", points_cruzada=5), make_rules("duplas", target=6)], 2):
        assert Encoding(one).fingerprint == Encoding(two).fingerprint
    before = Encoding(duplas).fingerprint
    monkeypatch.setattr(observation, "ENCODING_VERSION", observation.ENCODING_VERSION + 1)
    assert Encoding(duplas).fingerprint != before


def test_the_page_in_docs_is_up_to_date() -> None:
    path = Path(__file__).parents[1] / "docs" / "make_observation.py"
    spec = importlib.util.spec_from_file_location("make_observation", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run python docs/make_observation.py"
