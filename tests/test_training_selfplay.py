"""Self-play: a decision is credited with what its side gains, all that it leads to is looked at, opponents play."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from tiny_runs import trainer_of

from agents.critic import by_side, from_side
from domino_env import Batch
from domino_env.bots import make_player
from domino_env.players import Streams
from training.selfplay import advantages, credit

ROUNDS = ("duplas", "mano_a_mano", "blocos", "puxar")

# Who gets what


def test_advantages_of_a_round_computed_by_hand() -> None:
    """Side 0, side 1, side 0 decide; then side 1 wins 2 points. The next episode's first decision is not part of it."""
    said = torch.tensor([[0.5], [-0.2], [1.0], [9.0]])  # what the critic said, each for the side that decides
    sides = torch.tensor([0, 1, 0, 1])
    values = by_side(said, sides, 2)
    assert values.tolist() == pytest.approx(np.array([[0.5, -0.5], [0.2, -0.2], [1.0, -1.0], [-9.0, 9.0]]))
    rewards = torch.tensor([[0.0, 0.0], [0.0, 0.0], [-2.0, 2.0]])
    done = torch.tensor([False, False, True])
    found = advantages(rewards[:, None], values[:, None], done[:, None], gamma=1.0, gae_lambda=0.5)[:, 0]
    # From side 0: the last error is -2 - 1 = -3; before it 1 - 0.2 = 0.8, with half of what follows -0.7; first
    # 0.2 - 0.5 = -0.3, with half of -0.7: -0.65.
    assert found[:, 0].tolist() == pytest.approx([-0.65, -0.7, -3.0])
    assert found[:, 1].tolist() == pytest.approx([0.65, 0.7, 3.0])
    own = found.gather(1, sides[:3, None])[:, 0]
    assert own.tolist() == pytest.approx([-0.65, 0.7, -3.0])
    targets = from_side(found + values[:3], sides[:3], 2)
    assert targets.tolist() == pytest.approx(np.array([[-0.15], [0.5], [-2.0]]))


def test_advantages_with_discount_and_where_the_rollout_is_cut() -> None:
    values = torch.tensor([0.5, 1.0, 2.0])[:, None, None] * torch.tensor([1.0, -1.0])
    rewards = torch.tensor([0.0, 1.0])[:, None, None] * torch.tensor([1.0, -1.0])
    found = advantages(rewards, values, torch.zeros((2, 1), dtype=torch.bool), gamma=0.9, gae_lambda=0.5)
    last = 1 + 0.9 * 2 - 1.0
    assert found[:, 0, 0].tolist() == pytest.approx([0.9 * 1.0 - 0.5 + 0.45 * last, last])
    assert torch.equal(found[:, :, 1], -found[:, :, 0])


def test_advantages_of_three_sides_computed_by_hand() -> None:
    """Sides 0, 1, 2 decide in turn; then side 1 wins what the others lose, 5 and 3."""
    said = torch.tensor([[1.0, 2.0, -3.0], [0.0, 1.0, -1.0], [2.0, 0.0, -2.0], [7.0, 7.0, 7.0]])
    sides = torch.tensor([0, 1, 2, 0])  # the critic counts from the side that decides
    values = by_side(said, sides, 3)
    assert values[:3].tolist() == [[1.0, 2.0, -3.0], [-1.0, 0.0, 1.0], [0.0, -2.0, 2.0]]
    assert torch.equal(from_side(values, sides, 3), said)
    rewards = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-5.0, 8.0, -3.0]])
    done = torch.tensor([False, False, True])
    found = advantages(rewards[:, None], values[:, None], done[:, None], gamma=1.0, gae_lambda=0.5)[:, 0]
    last = [-5.0, 10.0, -5.0]
    middle = [0.0 + 1 - 2.5, -2.0 - 0 + 5, 2.0 - 1 - 2.5]
    first = [-1.0 - 1 - 0.75, 0.0 - 2 + 1.5, 1.0 + 3 - 0.75]
    assert found.tolist() == pytest.approx(np.array([first, middle, last]))


@pytest.mark.parametrize(
    ("preset", "changes"),
    [("duplas", []), ("mano_a_mano", []), ("blocos", ["rules={players: 3}"]), ("puxar", ["rules={players: 3}"]),
     ("duplas", ["episode=match", "rules={target: 2}"])],
    ids=["duplas", "mano_a_mano", "blocos-3", "puxar-3", "match"],
)  # fmt: skip
@pytest.mark.parametrize("reward", ["points", "outcome"])
def test_what_a_decision_is_credited_with_is_what_its_side_gains(preset: str, changes: list[str], reward: str) -> None:
    """With a critic that expects nothing and a whole trace: the episode's rewards, as another batch has them."""
    given = ["gae_lambda=1.0", "lookahead=false", "steps=48", "tables=8", "batch_size=384", f"reward={reward}"]
    trainer = trainer_of(f"preset={preset}", *given, *changes)
    torch.nn.init.zeros_(trainer.critic.layers[-1].weight)
    trainer.play()
    own, _, targets = credit(trainer.rollout, 1.0, 1.0, all_actions=False)
    kept, config, deals = trainer.rollout, trainer.config, trainer.deals
    again = Batch(trainer.rules, 8, config.seed, episode=config.episode, reward=config.reward, autoreset=False)
    checked = 0
    for table in range(8):
        only = np.arange(8) == table
        gained = np.zeros(trainer.rules.num_sides)
        waiting: list[tuple[int, int]] = []  # this episode's decisions and their sides
        before: list[float] = []  # what the side had gained by then
        for t in range(48):
            while again.action_mask[table].sum() == 1:
                again.step(np.full(8, again.action_mask[table].argmax()), tables=only)
                gained += again.rewards[table]
                if again.done[table]:  # an episode without a decision
                    again.reset(tables=only)
                    gained[:] = 0
            assert np.array_equal(deals.of(again.state[table : table + 1])[0], kept.deals[t][table].numpy())
            side = int(again.seat[table]) % trainer.rules.num_sides
            waiting.append((t, side))
            before.append(gained[side])
            again.step(np.full(8, int(kept.action[t, table])), tables=only)
            gained += again.rewards[table]
            while not again.done[table] and again.action_mask[table].sum() == 1:
                again.step(np.full(8, again.action_mask[table].argmax()), tables=only)
                gained += again.rewards[table]
            assert bool(kept.done[t, table]) == bool(again.done[table])
            if again.done[table]:
                for (decision, decider), had in zip(waiting, before, strict=True):
                    credited = own.reshape(48, 8)[decision, table].item()
                    assert credited == pytest.approx(gained[decider] - had, abs=1e-4)
                    assert targets.reshape(48, 8, -1)[decision, table, 0].item() == pytest.approx(credited, abs=1e-4)
                    checked += 1
                waiting, before = [], []
                gained[:] = 0
                again.reset(tables=only)
    assert checked > 100


@pytest.mark.parametrize(
    "changes",
    [*([f"preset={preset}", "reward=points"] for preset in ROUNDS), ["episode=match", "reward=equity"]],
    ids=[*ROUNDS, "equity"],
)
def test_looking_ahead_is_trying_every_action(changes: list[str]) -> None:
    trainer = trainer_of(*changes, "gamma=0.9", "reward_scale=0.5")
    torch.nn.init.normal_(trainer.critic.layers[-1].weight)
    batch, deals = trainer.batch, trainer.deals
    ended = 0
    for _ in range(12):
        before = copy.deepcopy(batch.state)
        tables, actions = np.nonzero(np.stack([batch.legal >> np.uint64(bit) & np.uint64(1) for bit in range(28)], 1)
                                     .reshape(16, 56))  # fmt: skip
        with torch.no_grad():
            found = trainer.lookahead.values(trainer.critic, tables, actions)
        assert batch.state.tobytes() == before.tobytes()
        for i in np.flatnonzero(tables < 4):
            t, action, tried = tables[i], actions[i], copy.deepcopy(batch)
            side = int(tried.seat[t]) % 2
            tried.step(np.full(16, action), tables=np.arange(16) == t)
            expected = 0.5 * float(tried.rewards[t, side])
            ended += bool(tried.rewards[t, 0])
            if not tried.done[t]:
                value = trainer.critic(torch.from_numpy(deals.of(tried.state[t : t + 1]))).item()
                expected += 0.9 * (value if tried.seat[t] % 2 == side else -value)
            assert found[i].item() == pytest.approx(expected, abs=1e-4)
        batch.step(batch.sample_actions())
    assert ended


# Opponents


def test_opponents_play_their_own_moves_and_nothing_is_learnt_from_them() -> None:
    changes = ["opponents=[doubles, heaviest]", "opponent_share=0.5", "lookahead=false", "steps=30", "batch_size=480"]
    trainer = trainer_of(*changes)
    trainer.play()
    kept = trainer.rollout
    own, side = kept.own.numpy(), kept.side[:-1].numpy()
    assert own[:, 8:].all()
    # Tables 0 to 7: each opponent against side 0, then against side 1, and again.
    learner = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    assert np.array_equal(own[:, :8], side[:, :8] == learner)
    again = Batch(trainer.rules, 16, trainer.config.seed, reward="outcome", skip_single=True)
    players = [make_player(name, trainer.rules) for name in ("doubles", "heaviest")]
    for t in range(30):
        for table in range(8):
            if not own[t, table]:
                view = again.views(np.array([table]))
                chosen = players[table % 2].act(view, Streams.from_seed(0, 1))[0]
                played = int(kept.action[t, table])
                assert played == chosen or (view["left"] == view["right"] and played >> 1 == chosen >> 1)
        again.step(kept.action[t].numpy())
    before = copy.deepcopy(trainer.actor.state_dict())
    kept.own[:] = False
    trainer.learn()
    assert all(torch.equal(before[name], weight) for name, weight in trainer.actor.state_dict().items())


def test_opponents_hold_every_side_but_one_of_three() -> None:
    trainer = trainer_of("preset=puxar", "rules={players: 3}", "opponents=[counting]", "opponent_share=1.0")
    trainer.play()
    assert np.array_equal(trainer.rollout.own, trainer.rollout.side[:-1] == torch.arange(16) % 3)
