"""The compiled engine beside the reference model, move for move.

Each driver lets the engine deal and random play choose, and follows in the reference model: who is
to act, what may be played, the forced draws and passes, results, starters, multipliers, scores,
rewards, winner. `Mismatch` names the rule set, the seed and what differs. As a program it compares
until told to stop::

    python tests/compare_with_reference.py --minutes 30 --seed 1
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from random import Random
from typing import Any

import numpy as np
from reference import Move, ReferenceMatch, ReferenceRound, ReferenceRules, Tile, full_set
from strategies import TABLES, build_deal, build_rules

from domino_env import Batch, Deal, Game, Match, RuleSet

# The engine's numbers for the reference model's tiles and moves: the order of `full_set` is the tile table's.
TILES: list[Tile] = full_set(9)
NUMBER: dict[Tile, int] = {tile: number for number, tile in enumerate(TILES)}
KINDS = {"play": 0, "draw": 1, "pass": 2}
NO_TILE = 63
RESULT_FIELDS = tuple("reason seat side finish base multiplier points pips last_placer next_starter".split())
REASONS = {"out": 1, "blocked": 2, "tied": 3}
FINISHES = {None: 0, "simples": 1, "carroca": 2, "la-e-lo": 3, "cruzada": 4}


class Mismatch(AssertionError):
    """The engine and the reference model differ."""


def reference_rules(rules: RuleSet) -> ReferenceRules:
    """The same rules for the reference model."""
    return ReferenceRules(**dataclasses.asdict(rules))


def read(name: str) -> Tile:
    """The reference model's tile for "4-6" or "6-4"."""
    one, other = name.split("-")
    return max(int(one), int(other)), min(int(one), int(other))


def same(what: str, engine: Any, reference: Any, *where: Any) -> None:
    """Mismatch where the two differ."""
    if engine != reference:
        context = "; ".join(map(str, where))
        raise Mismatch(f"{what}: engine {engine!r}, reference {reference!r} ({context})")


def legal_words(moves: list[Move]) -> tuple[int, int]:
    """Moves as the engine keeps them: the tiles playable at the left end and at the right, a bit a tile."""
    left = right = 0
    for tile, end in moves:
        if end == "left":
            left |= 1 << NUMBER[tile]
        else:
            right |= 1 << NUMBER[tile]
    return left, right


def packed_events(round_: ReferenceRound, start: int) -> list[int]:
    """The reference round's events from number `start` as the engine packs them."""
    return [
        KINDS[kind] | (end == "right") << 2 | seat << 3 | (NO_TILE if tile is None else NUMBER[tile]) << 7
        for kind, seat, tile, end, _ in round_.events[start:]
    ]


# Game and Match, through their public names


def compare_position(game: Game, round_: ReferenceRound, *where: Any) -> None:
    """All that a `Game` shows of a position."""
    same("seat", game.seat, round_.seat, *where)
    same("ends", game.ends, round_.ends, *where)
    same("legal", sorted((read(m.tile), m.end) for m in game.legal_moves()), sorted(round_.legal()), *where)
    same("chain", game.chain, [f"{a}-{b}" for a, b in round_.chain], *where)
    same("hands", [sorted(map(read, hand)) for hand in game.hands], [sorted(h) for h in round_.hands], *where)
    if round_.rules.draw != "none":
        same("boneyard", [read(name) for name in game.boneyard], round_.boneyard, *where)
    events = [(e.kind, e.seat, None if e.tile is None else read(e.tile), e.end, e.ends) for e in game.events]
    same("events", events, [tuple(event) for event in round_.events], *where)
    if round_.result is None:
        same("result", game.result, None, *where)
    else:
        result = game.result
        for field in RESULT_FIELDS:
            same(field, getattr(result, field), getattr(round_.result, field), *where)


def play_round(game: Game, round_: ReferenceRound, rng: Random, play: Any, *where: Any) -> None:
    """Random play to the end of a round; `play` makes a move in the engine. Every position is compared."""
    compare_position(game, round_, *where)
    while game.seat is not None:
        move = rng.choice(game.legal_moves())
        round_.play(read(move.tile), "left" if move.end == "left" else "right")
        play(rng.choice([move, str(move), move.action]))
        compare_position(game, round_, *where, [str(move) for move in game.moves])


def compare_game(rules: RuleSet, deal: Deal, rng: Random) -> None:
    """A round from a given deal."""
    starter, multiplier = rng.randrange(rules.players), rng.choice([1, 1, 2, 8])
    forced = rng.choice([None, None, rng.choice(deal.hands[starter])])
    where = (rules, deal, starter, forced, multiplier)
    game = Game.from_deal(rules, deal.hands, deal.boneyard, starter, forced, multiplier)
    hands = [[read(name) for name in hand] for hand in deal.hands]
    boneyard = [read(name) for name in deal.boneyard]
    tile = None if forced is None else read(forced)
    round_ = ReferenceRound(reference_rules(rules), hands, boneyard, starter, tile, multiplier)
    play_round(game, round_, rng, game.play, *where)


def compare_match(rules: RuleSet, seed: int, rng: Random, deals: tuple[Deal, ...] = (), rounds: int = 40) -> int:
    """A match dealt by `seed`, or first by `deals`, up to its end or so many rounds; how many were played."""
    where = (rules, seed, deals)
    match, reference = Match(rules, seed, deals=deals), ReferenceMatch(reference_rules(rules))
    for number in range(1, rounds + 1):
        game = match.game
        same("round", match.round, number, *where)
        hands = [[read(name) for name in hand] for hand in game.deal.hands]
        if reference.must_redeal(hands):
            raise Mismatch(f"the engine did not deal again: {game.deal} {where}")
        lot = game.starter if reference.by_lots() else None
        if number <= len(deals) and lot is not None:
            same("lot", lot, deals[number - 1].lot, *where)
        round_ = reference.start_round(hands, [read(name) for name in game.deal.boneyard], lots=lot)
        same("starter", (match.starter, game.starter), (round_.starter,) * 2, *where)
        same("forced", None if game.forced is None else read(game.forced), round_.forced, *where)
        same("multiplier", (match.multiplier, game.multiplier), (round_.multiplier,) * 2, *where)
        play_round(game, round_, rng, match.play, *where)
        reference.finish_round()
        same("scores", match.scores, reference.scores, *where)
        same("over", match.over, reference.over, *where)
        same("winner", match.winner, reference.winner, *where)
        if match.over:
            return number
    return rounds


# Batch


class Table:
    """Follows one table of a batch in the reference model."""

    def __init__(self, rules: RuleSet, episode: str, reward: str, skip: bool, where: tuple[Any, ...]) -> None:
        self.rules, self.by_match, self.by_points, self.skip = (
            rules,
            episode == "match",
            reward == "points",
            skip,
        )
        self.reference_rules = reference_rules(rules)
        self.where = where
        self.match = ReferenceMatch(self.reference_rules)
        self.lost = False  # a whole round was skipped: nobody saw its deal
        self.gained: list[Any] = []

    def start(self, row: Any) -> None:
        """Begin the round that lies in the engine's row, up to its first decision."""
        rules = self.rules
        deck = [TILES[number] for number in row["deck"].tolist()]
        hands = [deck[s * rules.hand_size : (s + 1) * rules.hand_size] for s in range(rules.players)]
        boneyard = deck[rules.players * rules.hand_size : rules.num_tiles]
        if self.match.must_redeal(hands):
            raise Mismatch(f"the engine did not deal again: {hands} {self.where}")
        starter = int(row["starter"])
        self.round = self.match.start_round(hands, boneyard, lots=starter if self.match.by_lots() else None)
        forced = NO_TILE if self.round.forced is None else NUMBER[self.round.forced]
        same("starter", starter, self.round.starter, *self.where)
        same("forced", int(row["forced"]) % 64, forced, *self.where)
        same("multiplier", int(row["multiplier"]), self.round.multiplier, *self.where)
        self._skip_single()

    def _skip_single(self) -> None:
        while self.skip and len(self.round.legal()) == 1:
            self.round.play(*self.round.legal()[0])

    def check(self, seat: int, legal: list[int], ends: tuple[int, int], row: Any) -> None:
        """Compare the position to act in."""
        round_ = self.round
        same("seat", seat, round_.seat, *self.where)
        same("ends", ends, round_.ends or (-1, -1), *self.where)
        same("legal", tuple(legal), legal_words(round_.legal()), *self.where)
        same("events", row["events"][: row["num_events"]].tolist(), packed_events(round_, 0), *self.where)

    def play(self, action: int) -> bool:
        """Play the engine's action; whether the round is over."""
        self.gained = [0] * self.rules.num_sides
        self.round.play(TILES[action >> 1], "right" if action & 1 else "left")
        self._skip_single()
        return self.round.seat is None

    def finish(self, rewards: list[float], scores: list[int], done: bool, last: Any) -> None:
        """Compare what the round's end brought. `last`: the engine's row where it still shows that round."""
        match, result = self.match, self.match.finish_round()
        over = match.over or not self.by_match
        same("done", done, over, *self.where)
        expected = [float(reward) for reward in self._rewards(over)]
        if not np.allclose(rewards, expected, rtol=1e-6, atol=0):
            same("rewards", rewards, expected, *self.where)
        if not over or last is not None:
            same("scores", scores, match.scores, *self.where)
        if last is not None:
            none = -1
            engine = [int(last[f]) for f in ("reason", "finish", "base", "points", "multiplier", "last")]
            wanted = [
                REASONS[result.reason], FINISHES[result.finish], result.base, result.points,
                result.multiplier, result.last_placer,
            ]  # fmt: skip
            same("result", engine, wanted, *self.where)
            same("seat", int(last["winning_seat"]), none if result.seat is None else result.seat, *self.where)
            same("side", int(last["winning_side"]), none if result.side is None else result.side, *self.where)
            same(
                "next_starter",
                max(int(last["next_starter"]), none),
                none if result.next_starter is None else result.next_starter,
            )
            same(
                "events",
                last["events"][: last["num_events"]].tolist(),
                packed_events(self.round, 0),
                *self.where,
            )
            same("over", bool(last["over"]), match.over, *self.where)
            same("winner", int(last["winner"]), none if match.winner is None else match.winner, *self.where)
        if over:
            self.match = ReferenceMatch(self.reference_rules)

    def _rewards(self, over: bool) -> list[Any]:
        if self.by_points:
            return list(self.round.rewards())
        match, sides = self.match, self.rules.num_sides
        assert match.last is not None
        whole = self.by_match or self.rules.target is None
        winner = match.winner if whole else match.last.side
        if not over or winner is None:
            return [0] * sides
        return [1 if side == winner else -1 / (sides - 1) for side in range(sides)]


def compare_batch(
    rules: RuleSet,
    seed: int,
    tables: int = 16,
    steps: int = 1000,
    *,
    episode: str = "match",
    reward: str = "points",
    autoreset: bool = False,
    skip: bool = False,
    most: int = 0,
) -> tuple[int, int]:
    """A batch of matches (or rounds) under random play: (episodes compared to their end, decisions).

    It goes on until every table is done, for `steps` steps, or until `most` episodes are over.
    """
    options: dict[str, Any] = {
        "episode": episode,
        "reward": reward,
        "autoreset": autoreset,
        "skip_single": skip,
    }
    batch = Batch(rules, tables, seed, observe=False, threads=1, **options)
    followed = [Table(rules, episode, reward, skip, (rules, seed, t, options)) for t in range(tables)]
    state = batch.state
    for t, table in enumerate(followed):
        table.start(state[t])
    going = list(range(tables))
    episodes = decisions = 0
    for _ in range(steps):
        seats, legal, ends = (
            batch.seat.tolist(),
            state["legal"].tolist(),
            list(zip(state["left"].tolist(), state["right"].tolist(), strict=True)),
        )
        for t in going:
            followed[t].check(seats[t], legal[t], ends[t], state[t])
        actions = batch.sample_actions().tolist()
        rounds = state["round"].tolist()
        batch.step(np.array(actions))
        rewards, scores, done = (
            batch.rewards.tolist(),
            state["scores"][:, : rules.num_sides].tolist(),
            batch.done.tolist(),
        )
        after = state["round"].tolist()
        for t in list(going):
            table = followed[t]
            decisions += 1
            if table.play(actions[t]):
                if skip and not done[t] and after[t] - rounds[t] > 1:
                    going.remove(t)  # a whole round without a decision went by
                    continue
                table.finish(rewards[t], scores[t], done[t], state[t] if done[t] and not autoreset else None)
                episodes += done[t]
                if most and episodes >= most:
                    return episodes, decisions
                if done[t] and not autoreset:
                    going.remove(t)
                else:
                    table.start(state[t])
            elif done[t] or any(rewards[t]):
                raise Mismatch(f"done {done[t]}, rewards {rewards[t]} within a round ({table.where})")
        if not going:
            break
    return episodes, decisions


def compare_some(rng: Random) -> tuple[int, int]:
    """One draw of everything: rules, driver and options; (matches, decisions)."""
    rules = rng.choice(list(TABLES.values())) if rng.random() < 0.3 else build_rules(rng.randint)
    seed, kind = rng.randrange(2**32), rng.random()
    if kind < 0.05:
        return int(compare_match(rules, seed, rng, rounds=12) > 0), 0
    if kind < 0.1:
        compare_game(rules, build_deal(rng.randint, rules), rng)
        return 0, 0
    skip = rules.hand_size >= 3 and rng.random() < 0.2
    episode = "match" if rng.random() < 0.9 else "round"
    episodes, decisions = compare_batch(
        rules, seed, tables=20, steps=600, episode=episode, reward=rng.choice(["points", "outcome"]),
        autoreset=rng.random() < 0.3, skip=skip, most=40,
    )  # fmt: skip
    return episodes if episode == "match" else 0, decisions


def main() -> None:
    parser = argparse.ArgumentParser(description="compare the compiled engine with the reference model")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng, begin = Random(options.seed), time.monotonic()
    draws = matches = decisions = 0
    told = begin
    while (now := time.monotonic()) - begin < 60 * options.minutes:
        played = compare_some(rng)
        draws, matches, decisions = draws + 1, matches + played[0], decisions + played[1]
        if now - told > 10:
            told = now
            print(
                f"{now - begin:6.0f} s  {draws} rule sets  {matches} matches  {decisions} decisions  equal",
                flush=True,
            )
    print(
        f"seed {options.seed}: {draws} rule sets, {matches} matches, {decisions} decisions: "
        "the engine equals the reference model"
    )


if __name__ == "__main__":
    main()
