"""The TorchRL recipe, in an environment that has TorchRL: ``bash tests/recipes.sh torchrl``."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tensordict import TensorDictBase
from torchrl.modules import ValueOperator

from domino_env import PRESETS, Batch

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # TorchRL's own
]

PROGRAM = Path(__file__).parents[1] / "docs" / "recipes" / "torchrl_ppo.py"
ROUNDS = 200


@pytest.fixture(scope="module")
def recipe() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(PROGRAM)))


@pytest.fixture(scope="module", params=PRESETS)
def played(recipe: SimpleNamespace, request: pytest.FixtureRequest) -> tuple[str, TensorDictBase]:
    """Rounds of an untrained policy, as the collector gives them; they start and end with whole rounds."""
    preset: str = request.param
    torch.manual_seed(0)
    rules = PRESETS[preset]
    actor = recipe.make_actor(recipe.network(recipe.encoding_of(rules).size, rules.num_actions, 16))
    collector = recipe.Collector(
        recipe.make_env(preset, 5), actor, frames_per_batch=30 * ROUNDS, total_frames=-1,
        auto_register_policy_transforms=False,
    )  # fmt: skip
    data = next(iter(collector))
    collector.shutdown()
    ends = np.flatnonzero(data["next", "done"].numpy())
    assert len(ends) >= ROUNDS
    return preset, data[: ends[ROUNDS - 1] + 1]


def replayed(preset: str, data: TensorDictBase) -> tuple[list[Any], np.ndarray]:
    """The same decisions played by the engine on the deals of the same seed: masks, and each round's rewards."""
    rules = PRESETS[preset]
    batch = Batch(rules, 1, seed=5, episode="round", autoreset=False)
    first = data["players", "observation", "observation"][0].numpy()
    for _ in range(5):  # TorchRL resets more than once before it plays
        if (batch.observation[0] == first[batch.seat[0]]).all():
            break
        batch.reset(tables=np.ones(1, bool))
    ends = data["next", "done"].flatten().tolist()
    acting, actions = data["players", "mask"].numpy(), data["players", "action"].numpy()
    masks, rewards = [], []
    for step, over in enumerate(ends):
        (seat,) = np.flatnonzero(acting[step])  # exactly one
        assert seat == batch.seat[0]
        masks.append(batch.action_mask[0].astype(bool))
        batch.step([actions[step, seat]])  # raises where the action is illegal
        assert bool(batch.done[0]) == over
        if over:
            rewards.append(batch.rewards[0].copy())
            batch.reset(tables=np.ones(1, bool))
    return masks, np.array(rewards)


def test_every_decision_is_legal_and_every_seat_is_paid_what_the_engine_says(
    played: tuple[str, TensorDictBase],
) -> None:
    preset, data = played
    rules = PRESETS[preset]
    masks, rewards = replayed(preset, data)
    acting = data["players", "mask"]
    np.testing.assert_array_equal(data["players", "action_mask"][acting].numpy(), masks)
    paid = data["next", "players", "reward"].squeeze(-1).numpy()
    ends = np.flatnonzero(data["next", "done"].flatten())
    sums = np.add.reduceat(paid, [0, *(ends[:-1] + 1)])
    expected = [[of_sides[rules.side_of(seat)] for seat in range(rules.players)] for of_sides in rewards]
    np.testing.assert_array_equal(sums, expected)
    assert np.abs(sums).sum() > 0
    assert data["next", "players", "terminated"][ends].all()  # all seats end together


def test_each_decision_is_credited_with_its_own_seats_return(
    recipe: SimpleNamespace, played: tuple[str, TensorDictBase]
) -> None:
    _, data = played
    zero = recipe.network(data["players", "observation", "observation"].shape[-1], 1, 4)
    for parameter in zero.parameters():
        torch.nn.init.zeros_(parameter)
    critic = ValueOperator(zero, in_keys=[recipe.OBSERVATION], out_keys=[("players", "state_value")])
    with torch.no_grad():
        data = recipe.make_advantages(critic, gamma=1.0, lmbda=1.0)(data.clone())
    paid, ends = data["next", "players", "reward"], data["next", "done"].flatten().tolist()
    expected, after = torch.empty_like(paid), torch.zeros_like(paid[0])
    for step in reversed(range(len(ends))):
        after = paid[step] + (0 if ends[step] else after)
        expected[step] = after
    torch.testing.assert_close(data["players", "value_target"], expected)
    decisions = recipe.decisions_of(data)["players"]
    assert len(decisions) == len(ends)  # one a step, none of the seats that waited
    torch.testing.assert_close(decisions["value_target"], expected[data["players", "mask"]])
    assert (decisions["value_target"] < 0).any()  # losers, too, although the winner moved last
    assert (decisions["value_target"] > 0).any()


def test_it_learns(recipe: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "policy.pt"
    (against_random,) = recipe.main(["--decisions", "20000", "--deals", "3000", "--save", str(saved)])
    assert against_random.verdict == "better", against_random
    untrained, trained = capsys.readouterr().out.split("Trained:\n")
    assert "Untrained:\n" in untrained
    assert str(against_random) in trained
    rules = PRESETS["mano_a_mano"]
    size = recipe.encoding_of(rules).size
    torch.manual_seed(0)
    before, after = (recipe.network(size, rules.num_actions, 128) for _ in range(2))
    after.load_state_dict(torch.load(saved, weights_only=True))
    player = recipe.NetPlayer(rules, after)
    assert recipe.duel(player, "random", rules, deals=3000, seed=10**6) == against_random
    gained = recipe.duel(player, recipe.NetPlayer(rules, before), rules, deals=3000, seed=10**6)
    assert gained.verdict == "better", gained
