"""Rows of moves and of deals: a slow reading of what their slices mean equals them, entry by entry.

What a slice should say is told from the deal and the events that a seat has seen, in sets and words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import comb
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from test_observation import CASES as TABLES
from test_observation import bounds_shown, count_of, halves, index_of, set_of, ties_before, tiles_of

from domino_env import PRESETS, Batch, Game, Match, Move, RuleSet, afterstates, make_rules
from domino_env.afterstates import Afterstates, Deals
from domino_env.observation import new_views
from domino_env.state import FINISH_NAMES, new_state

SHORT: dict[str, Any] = {"draw": "none", "max_pip": 3, "hand_size": 3}
CASES = {
    **TABLES,
    "short hands": make_rules("mano_a_mano", **SHORT, tie_multiplier=3, tie_multiplier_stacks=True),
    "short hands, equal ends": make_rules("mano_a_mano", **SHORT, la_e_lo_on_equal_ends=True),
    "one tile each": make_rules("duplas", hand_size=1),
}
COUNTS = ("stuck", "hand_count", "boneyard", "fitting", "kept", "pips", "scores", "multiplier", "declined", "opened")
every_case = pytest.mark.parametrize("rules", CASES.values(), ids=CASES)


class Position(NamedTuple):
    """A decision, and what the match has brought up to then."""

    game: Game
    scores: list[int]
    ties: int


def positions(rules: RuleSet, rounds: int, seed: int = 1) -> Iterator[Position]:
    """The decisions of randomly played matches, the rounds of all of them together."""
    rng, played = Random(seed), 0
    while played < rounds:
        match = Match(rules, seed=rng.getrandbits(32))
        before = [0] * rules.num_sides
        while not match.over and played < rounds:
            yield Position(match.game, before, ties_before(match))
            if match.play(rng.choice(match.game.legal_moves())) is not None:
                before, played = match.scores, played + 1


# What the slices should say


class Places:
    """The numbers' places: those of the ends, then by tiles of `own`, then of `elsewhere`, then the higher first."""

    def __init__(self, max_pip: int, ends: list[int], own: set[str], elsewhere: set[str]) -> None:
        def rank(number: int) -> list[int]:
            at_end = [int(number != end) for end in ends]
            return [*at_end, -len(carrying(own, {number})), -len(carrying(elsewhere, {number})), -number]

        self.names = sorted(range(max_pip + 1), key=rank)

    def number(self, number: int) -> int:
        return self.names.index(number)

    def numbers(self, numbers: set[int]) -> set[int]:
        return {self.number(number) for number in numbers}

    def tiles(self, tiles: set[str]) -> set[str]:
        """The tiles, each half called by its place."""
        pairs = [sorted(self.number(int(half)) for half in (tile[0], tile[2])) for tile in tiles]
        return {f"{low}-{high}" for low, high in pairs}


def carrying(tiles: set[str], numbers: set[int]) -> set[str]:
    return {tile for tile in tiles if halves(tile) & numbers}


def pips_of(tiles: set[str]) -> int:
    return sum(int(tile[0]) + int(tile[2]) for tile in tiles)


def in_steps_of_4(pips: int) -> int:
    return min(16, -(-pips // 4))


class Table:
    """What all know at a decision. Seats count from the one to act."""

    def __init__(self, position: Position) -> None:
        game, me = position.game, position.game.seat
        assert me is not None
        self.rules = rules = game.rules
        self.seats = [(me + i) % rules.players for i in range(rules.players)]
        self.placed: list[set[str]] = [set() for _ in self.seats]
        self.counts = [len(game.deal.hands[seat]) for seat in self.seats]
        self.boneyard = len(game.deal.boneyard)
        self.ends: list[int] = []
        self.owners: list[int | None] = [None, None]
        self.last: int | None = None
        self.first: list[str | None] = [None] * rules.players
        self.did = [{what: Counter[int]() for what in ("declined", "opened", "covered")} for _ in self.seats]
        events = game.view(me).events
        for event in events:
            seat = self.seats.index(event.seat)
            if event.kind == "draw":
                self.counts[seat] += 1
                self.boneyard -= 1
            elif event.kind == "play":
                assert event.tile is not None
                self.counts[seat] -= 1
                self.placed[seat].add(event.tile)
                self.last = seat
                low, high = int(event.tile[0]), int(event.tile[2])
                self.first[seat] = self.first[seat] or event.tile
                if not self.ends:
                    self.ends, self.owners = [high, low], [seat, seat]
                else:
                    end = ("left", "right").index(str(event.end))
                    self.did[seat]["covered"][self.ends[end]] += 1
                    self.did[seat]["opened"][low + high - self.ends[end]] += 1
                    self.did[seat]["declined"].update(set(self.ends) - {self.ends[end]})
                    self.ends[end], self.owners[end] = low + high - self.ends[end], seat
        self.most = [bounds_shown(rules, events, me)[seat] for seat in self.seats]
        self.starter = self.seats.index(events[0].seat) if events else 0
        self.position = position

    def lacks(self, seat: int, most: int) -> set[int]:
        """Numbers of which a seat, as all can tell, holds at most so many tiles."""
        return {number for number, bound in self.most[seat].items() if bound <= most}

    def match(self) -> dict[str, Any]:
        rules, (_, scores, ties) = self.rules, self.position
        if rules.target is None:
            return {}
        sides, steps = rules.num_sides, min(20, rules.target)
        mine = [scores[(self.seats[0] + i) % sides] for i in range(sides)]
        return {
            "scores": [score * steps // rules.target for score in mine],
            "multiplier": min(4, ties) if rules.tie_multiplier > 1 else 0,
        }


def finish_of(rules: RuleSet, tile: str, ends: list[int]) -> str:
    """The name of a last tile, by the ends that it found."""
    if tile[0] == tile[2]:
        return "cruzada" if ends and set(ends) == halves(tile) else "carroca"
    if len(set(ends)) == 1:
        return "la-e-lo" if rules.la_e_lo_on_equal_ends else "simples"
    return "la-e-lo" if set(ends) == halves(tile) else "simples"


def move_says(table: Table, hand: set[str], move: Move) -> dict[str, Any]:
    """What the row of a move should say, where I hold `hand`."""
    rules, tile, ends = table.rules, move.tile, table.ends
    low, high = int(tile[0]), int(tile[2])
    kept, everything = hand - {tile}, set(tiles_of(rules.max_pip))
    end = ("left", "right").index(move.end)
    covered = ends[end] if ends else None
    after = [high, low] if covered is None else [low + high - covered, ends[1 - end]]
    placed = [table.placed[0] | {tile}, *table.placed[1:]]
    hidden = everything - kept - set.union(*placed)
    places = Places(rules.max_pip, after, kept, hidden)
    said: dict[str, Any] = {"hand": places.tiles(kept), "placed": [places.tiles(tiles) for tiles in placed]}
    for seat in range(1, rules.players):
        possible, count = hidden - carrying(hidden, table.lacks(seat, 0)), table.counts[seat]
        none = Fraction(comb(len(possible - carrying(possible, set(after))), count), comb(len(possible), count))
        said[f"possible_{seat}"] = places.tiles(possible)
        said[f"stuck_{seat}"] = int(8 * none + Fraction(1, 2))
        said[f"holds_none_{seat}"] = places.numbers(table.lacks(seat, 0))
        said[f"hand_count_{seat}"] = count
        if rules.draw != "none":
            said[f"holds_at_most_one_{seat}"] = places.numbers(table.lacks(seat, 1))
    for seat in range(rules.players):
        said[f"first_{seat}"] = places.tiles({first} if (first := table.first[seat]) else set())
        for what, counts in table.did[seat].items():
            said[f"{what}_{seat}"] = [min(2, counts[number]) for number in places.names]
    if rules.draw != "none" and rules.boneyard_size:
        said["boneyard"] = table.boneyard
    goes_out = rules.scoring == "batida" and not kept
    return {
        **said,
        "fitting": len(carrying(kept, set(after))),
        "kept": len(kept),
        "pips": in_steps_of_4(pips_of(kept)),
        "names": places.names,
        "covered": None if covered is None else places.number(covered),
        "double": low == high,
        "equal_ends": after[0] == after[1],
        "covered_owner": table.owners[end],
        "other_owner": table.owners[1 - end] if ends else 0,
        "last": table.last,
        "starter": table.starter,
        "finish": FINISH_NAMES.index(finish_of(rules, tile, ends)) - 1 if goes_out else None,
        **table.match(),
    }


def deal_says(table: Table) -> dict[str, Any]:
    """What the row of a deal should say."""
    rules, game = table.rules, table.position.game
    hands = [set(game.hands[seat]) for seat in table.seats]
    ends, owners = list(table.ends), list(table.owners)
    if ends and len(carrying(hands[0], {ends[1]})) > len(carrying(hands[0], {ends[0]})):
        ends, owners = ends[::-1], owners[::-1]
    places = Places(rules.max_pip, ends, hands[0], set().union(*hands[1:]))
    said: dict[str, Any] = {}
    for seat, hand in enumerate(hands):
        said[f"hand_{seat}"] = places.tiles(hand)
        said[f"placed_{seat}"] = places.tiles(table.placed[seat])
        said[f"holds_none_{seat}"] = places.numbers(table.lacks(seat, 0))
        said[f"fitting_{seat}"] = [len(carrying(hand, {end})) for end in ends] or [0, 0]
        said[f"hand_count_{seat}"] = len(hand)
        said[f"pips_{seat}"] = in_steps_of_4(pips_of(hand))
    if rules.draw != "none":
        drawn = [places.tiles({tile}) for tile in game.boneyard[:6]]
        said["draws"] = [*drawn, *[set()] * (6 - len(drawn))]
        if rules.boneyard_size:
            said["boneyard"] = table.boneyard
    return {
        **said,
        "names": places.names,
        "equal_ends": len(set(ends)) < 2,
        "first_owner": owners[0],
        "second_owner": owners[1],
        "last": table.last,
        "starter": table.starter,
        **table.match(),
    }


def read(layout: Afterstates | Deals, row: npt.NDArray[np.int8]) -> dict[str, Any]:
    """What a row says, in sets, numbers and counts."""
    numbers, tiles = list(range(layout.rules.max_pip + 1)), tiles_of(layout.rules.max_pip)
    found: dict[str, Any] = {}
    for name, part in layout.slices.items():
        bits, kind = row[part.start : part.stop].reshape(part.shape), name.rstrip("_0123456789")
        if kind in ("hand", "placed", "possible", "draws", "first"):
            found[name] = set_of(bits, tiles) if bits.ndim == 1 else [set_of(line, tiles) for line in bits]
        elif kind in ("holds_none", "holds_at_most_one"):
            found[name] = set_of(bits, numbers)
        elif kind in COUNTS or (kind == "covered" and bits.ndim == 2):
            found[name] = count_of(bits) if bits.ndim == 1 else [count_of(line) for line in bits]
        elif kind in ("double", "equal_ends"):
            found[name] = bool(bits[0])
        elif kind == "names":
            found[name] = [index_of(line) for line in bits]
        else:
            found[name] = index_of(bits)
    return found


@every_case
def test_rows_say_what_the_events_and_the_hands_say(rules: RuleSet) -> None:
    moves_layout, deals_layout = Afterstates(rules), Deals(rules)
    seen: dict[str, set[str]] = {}
    for position in positions(rules, 150 if rules.max_pip == 3 else 12):
        game, table = position.game, Table(position)
        view = game.view(table.seats[0])
        found = moves_layout.of(view.record)
        folded = bool(table.ends) and table.ends[0] == table.ends[1]
        open_moves = [move for move in view.legal_moves if not (folded and move.end == "right")]
        assert found.rows.shape == (len(open_moves), moves_layout.size)
        assert found.rows.dtype == np.int8
        assert found.starts.tolist() == [0, len(open_moves)]
        assert sorted(found.actions.tolist()) == sorted(move.action for move in open_moves)
        for move in view.legal_moves:
            i = found.find(0, move.action)
            assert found.actions[i] == (2 * (move.action // 2) if folded else move.action)
            said = read(moves_layout, found.rows[i])
            if not folded:
                assert said == move_says(table, set(view.hand), move)
            else:  # at either end the same, but for the tile that is covered
                assert said == move_says(table, set(view.hand), move._replace(action=2 * (move.action // 2)))
                owners = {"covered_owner": table.owners[1], "other_owner": table.owners[0]}
                assert {**said, **owners} == move_says(table, set(view.hand), move._replace(action=move.action | 1))
            for name, value in said.items():
                seen.setdefault(f"move {name}", set()).add(repr(value))
        rows = deals_layout.of(game._state)
        assert rows.shape == (1, deals_layout.size)
        assert rows.dtype == np.int8
        said = read(deals_layout, rows[0])
        assert said == deal_says(table)
        for name, value in said.items():
            seen.setdefault(f"deal {name}", set()).add(repr(value))
    if rules.hand_size > 1:
        may_be_constant = {"move multiplier", "deal multiplier", "move finish"}
        if rules.boneyard_size == 0:
            may_be_constant.add("deal draws")
        assert [name for name in seen if len(seen[name]) < 2 and name not in may_be_constant] == []
    if rules.max_pip == 3:
        assert seen["move finish"] == {"None", "0", "1", "2", "3"}
        assert seen["move multiplier"] >= {"0", "1"}


# Which moves there are


def test_a_forced_opening_is_one_move_and_a_free_one_has_a_move_for_each_tile() -> None:
    forced = Game(PRESETS["duplas"], seed=3)
    found = Afterstates(forced.rules).of_state(forced._state)
    assert [str(Move(action, opening=True)) for action in found.actions.tolist()] == ["6-6"]
    free = Game.from_deal(PRESETS["blocos"], [["6-6", "6-5", "2-1"], ["1-1", "2-2", "3-3"]], starter=0)
    found = Afterstates(free.rules).of(free.view(0).record)
    assert {str(Move(action, opening=True)) for action in found.actions.tolist()} == {"6-6", "6-5", "2-1"}
    assert not found.equal_ends[0]
    with pytest.raises(ValueError, match="is none of view 0's moves"):
        found.find(0, int(found.actions[0]) + 1)


def test_a_tile_that_fits_two_equal_ends_is_one_move() -> None:
    game = Game.from_deal(PRESETS["blocos"], [["6-6", "6-5", "6-1"], ["1-1", "6-2", "6-3"]], starter=0)
    game.play("6-6")
    found = Afterstates(game.rules).of(game.view(1).record)
    names = [str(Move(action)) for action in found.actions.tolist()]
    assert names == ["6-2L", "6-3L"]
    for move in game.legal_moves():
        assert names[found.find(0, move.action)][:3] == str(move)[:3]


def test_moves_of_many_views_stand_one_view_after_the_other_and_none_off_turn() -> None:
    game = Game(PRESETS["puxar"], seed=3)
    while len(game.legal_moves()) < 2:
        game.play(game.legal_moves()[0])
    assert game.seat is not None
    layout, views = Afterstates(game.rules), new_views(game.rules, 4)
    for i, seat in enumerate((game.seat, 1 - game.seat, game.seat)):
        views[i] = game.view(seat).record[0]
    game.play_out(seed=1)
    views[3] = game.view(0).record[0]
    found, single = layout.of(views), layout.of(views[:1])
    n = len(single.actions)
    assert found.starts.tolist() == [0, n, n, 2 * n, 2 * n]
    assert found.rows.tolist() == single.rows.tolist() * 2
    assert found.actions.tolist() == single.actions.tolist() * 2
    for view in (1, 3):
        with pytest.raises(ValueError, match=f"action 2 is none of view {view}'s moves, "):
            found.find(view, 2)
    assert layout.of(views[:0]).rows.shape == (0, layout.size)


def test_a_finished_table_has_no_moves_and_an_empty_row() -> None:
    game = Game(PRESETS["mano_a_mano"], seed=3)
    states = np.repeat(game._state, 3)
    game.play_out(seed=2)
    states[1] = game._state[0]
    found = Afterstates(game.rules).of_state(states)
    n = len(found.rows) // 2
    assert n > 0
    assert found.starts.tolist() == [0, n, n, 2 * n]
    rows = Deals(game.rules).of(states)
    assert rows[1].sum() == 0
    assert rows[0].sum() > 0
    assert rows[0].tolist() == rows[2].tolist()


@every_case
def test_tables_have_the_moves_of_their_views(rules: RuleSet) -> None:
    layout, batch = Afterstates(rules), Batch(rules, 20, seed=4, episode="match")
    for _ in range(10):
        one, two = layout.of_state(batch.state), layout.of(batch.views())
        for name in ("rows", "actions", "starts", "equal_ends"):
            assert np.array_equal(getattr(one, name), getattr(two, name))
        batch.step(batch.sample_actions())


def test_records_of_other_tables_are_refused() -> None:
    small, large = PRESETS["duplas"], TABLES["double-nine, 9 players, drawing"]
    for given in (new_views(large, 1), new_state(small, 1), new_views(small, 2).reshape(1, 2), "views", None):
        with pytest.raises(ValueError, match="no list of records for tables of these rules"):
            Afterstates(small).of(given)  # type: ignore[arg-type]
    for given in (new_state(large, 1), new_views(small, 1)):
        with pytest.raises(ValueError, match="no list of records for tables of these rules"):
            Deals(small).of(given)
        with pytest.raises(ValueError, match="no list of records for tables of these rules"):
            Afterstates(small).of_state(given)


# Layout


@every_case
@pytest.mark.parametrize("kind", [Afterstates, Deals])
def test_slices_tile_the_row(kind: type[Afterstates | Deals], rules: RuleSet) -> None:
    layout, stop = kind(rules), 0
    for name, part in layout.slices.items():
        assert (part.name, part.start) == (name, stop)
        assert part.meaning
        stop = part.stop
    assert layout.size == stop


@pytest.mark.parametrize("kind", [Afterstates, Deals])
def test_the_fingerprint_differs_where_layout_or_meaning_does(
    kind: type[Afterstates | Deals], monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: list[dict[str, Any]] = [
        {"target": 7},
        {"target": None},
        {"hand_size": 6},
        {"pairs": False},
        {"max_pip": 7},
    ]
    variants = [*TABLES.values(), *(make_rules("duplas", **change) for change in changes)]
    assert len({kind(rules).fingerprint for rules in variants}) == len(variants)
    before = kind(PRESETS["duplas"]).fingerprint
    assert kind(make_rules("duplas", points_cruzada=5)).fingerprint == before
    assert Afterstates(PRESETS["duplas"]).fingerprint != Deals(PRESETS["duplas"]).fingerprint
    monkeypatch.setattr(afterstates, "VERSION", afterstates.VERSION + 1)
    assert kind(PRESETS["duplas"]).fingerprint != before
