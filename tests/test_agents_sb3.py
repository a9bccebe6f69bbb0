"""`MovePolicy`: what it computes, and that the player made of a model plays as the model does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO

from agents.networks import MoveNet
from agents.policy import PolicyPlayer
from agents.sb3 import MovePolicy, policy_of
from domino_env import PRESETS
from domino_env.adapters.sb3 import DominoVecEnv
from domino_env.players import Streams


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def model_on(preset: str = "duplas", n: int = 64, **options: Any) -> MaskablePPO:
    env = DominoVecEnv(preset, num_envs=n, moves=True, seed=1)
    return MaskablePPO(
        MovePolicy, env, n_steps=8, batch_size=256, n_epochs=2, seed=1, policy_kwargs=options, device="cpu"
    )


def sharpened(model: MaskablePPO) -> MovePolicy:
    """Its policy, no longer nearly uniform."""
    with torch.no_grad():
        model.policy.action_net.layers[-1].weight.mul_(300)
    policy: MovePolicy = model.policy
    return policy


@pytest.mark.parametrize("activation", [torch.nn.Tanh, torch.nn.ReLU])
@pytest.mark.parametrize("widths", [[32, 16], [], {"pi": [24], "vf": [8, 8]}])
def test_a_copied_actor_chooses_as_its_model(activation: Any, widths: Any) -> None:
    model = model_on("mano_a_mano", 200, net_arch=widths, activation_fn=activation).learn(1600)
    sharpened(model)
    before = torch.get_rng_state()
    policy = policy_of(model)
    assert isinstance(policy, MoveNet)
    assert torch.equal(torch.get_rng_state(), before)
    env = DominoVecEnv("mano_a_mano", num_envs=200, moves=True, seed=2)
    observations, seen = env.reset(), 0
    for _ in range(5):
        tables = env.tables
        wanted, _ = model.predict(observations, deterministic=True, action_masks=env.action_masks())
        views = tables.batch.views(np.arange(200), tables.learner)
        chosen = PolicyPlayer(env.rules, policy=policy).act(views, Streams.from_seed(1, 200))
        assert tables.moves is not None
        assert np.array_equal(chosen, tables.moves.actions[np.arange(200), wanted])
        seen = max(seen, len(np.unique(wanted)))
        observations = env.step(wanted)[0]
    assert seen > 3
    copied = {name: weight.clone() for name, weight in policy.state_dict().items()}
    model.learn(1600)
    assert all(torch.equal(copied[name], weight) for name, weight in policy.state_dict().items())
    assert not torch.equal(policy_of(model).layers[-1].weight, policy.layers[-1].weight)  # type: ignore[arg-type]


def test_logits_and_values_are_those_of_the_rows_and_rows_of_zeros_are_no_moves() -> None:
    policy, env = sharpened(model_on()), DominoVecEnv("duplas", num_envs=300, moves=True, seed=3)
    rows, masks = torch.from_numpy(env.reset()), env.action_masks()
    for given in (masks, torch.from_numpy(masks).float(), None):
        distribution, values = policy._judge(rows, given)
        probabilities = distribution.distribution.probs.detach()
        assert (probabilities[~torch.from_numpy(masks)] == 0).all()
        for t in range(300):
            own = rows[t][torch.from_numpy(masks[t])]
            chances = policy.action_net(own)[:, 0].softmax(0)
            assert torch.allclose(probabilities[t, : len(own)], chances, atol=1e-5)
            assert torch.allclose(values[t, 0], (chances * policy.value_net(own)[:, 0]).sum(), atol=1e-4)
    actions = torch.from_numpy(masks.sum(1) - 1)  # the last move of each
    value, log_prob, entropy = policy.evaluate_actions(rows, actions, torch.from_numpy(masks).float())
    assert torch.allclose(log_prob.exp(), probabilities.gather(1, actions[:, None])[:, 0], atol=1e-5)
    logs = torch.where(torch.from_numpy(masks), probabilities.clamp(min=1e-30).log(), 0.0)
    assert torch.allclose(entropy, -(probabilities * logs).sum(1), atol=1e-4)
    assert torch.allclose(value, policy.predict_values(rows), atol=1e-5)
    played, _, _ = policy(rows, action_masks=masks)
    assert masks[np.arange(300), played.numpy()].all()
    assert torch.equal(policy(rows, deterministic=True)[0], probabilities.argmax(1))
    nothing = policy.predict_values(torch.zeros_like(rows))
    assert (nothing == 0).all()


def test_values_teach_the_policy_nothing() -> None:
    policy, env = sharpened(model_on()), DominoVecEnv("duplas", num_envs=8, moves=True, seed=3)
    policy.predict_values(torch.from_numpy(env.reset())).sum().backward()
    assert all(weight.grad is None for weight in policy.action_net.parameters())
    assert all(weight.grad is not None for weight in policy.value_net.parameters())


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_saved_model_is_the_same_when_it_is_loaded(precision: str, tmp_path: Path) -> None:
    model = model_on(precision=precision, net_arch=[16]).learn(512)
    model.save(tmp_path / "model")
    loaded = MaskablePPO.load(tmp_path / "model", device="cpu")
    assert loaded.policy.precision == precision
    env = DominoVecEnv("duplas", num_envs=100, moves=True, seed=3)
    rows = torch.from_numpy(env.reset())
    for one, other in zip(model.policy._judge(rows), loaded.policy._judge(rows), strict=True):
        if isinstance(one, torch.Tensor):
            assert torch.equal(one, other)
            assert one.dtype == torch.float32
    model.policy.save(tmp_path / "policy")
    assert MovePolicy.load(tmp_path / "policy").precision == precision


class Toy(gymnasium.Env[Any, Any]):
    def __init__(self, seen: spaces.Space[Any], acts: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = seen, acts

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        return self.observation_space.sample(), {}


ROWS = spaces.Box(0, 1, (3, 6), np.int8)


@pytest.mark.parametrize(
    ("seen", "acts", "options", "message"),
    [
        (ROWS, spaces.Discrete(4), {}, "MovePolicy wants a row for each of n actions"),
        (spaces.Box(0, 1, (3,), np.int8), spaces.Discrete(3), {}, "wants a row for each"),
        (ROWS, spaces.MultiDiscrete([3, 3]), {}, "wants a row for each"),
        (spaces.Dict({"a": ROWS}), spaces.Discrete(3), {}, "wants a row for each"),
        (ROWS, spaces.Discrete(3), {"activation_fn": torch.nn.ELU}, "activation_fn=ELU is not one of ReLU, Tanh"),
        (ROWS, spaces.Discrete(3), {"precision": "float16"}, "precision='float16' is not one of float32, bfloat16"),
    ],
)
def test_other_spaces_and_options_are_refused(seen: Any, acts: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MaskablePPO(MovePolicy, Toy(seen, acts), policy_kwargs=options, device="cpu")


class Pick(gymnasium.Env[Any, Any]):
    """One decision: the move whose row has its first bit set wins."""

    observation_space, action_space = ROWS, spaces.Discrete(3)

    def __init__(self) -> None:
        self.rows = np.zeros((3, 6), np.int8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = int(self.np_random.integers(2, 4))
        self.rows = np.zeros((3, 6), np.int8)
        self.rows[: self.count, 1:] = self.np_random.integers(0, 2, (self.count, 5))
        self.rows[self.np_random.integers(self.count), 0] = 1
        self.rows[: self.count, 5] = 1
        return self.rows.copy(), {}

    def step(self, action: Any) -> Any:
        return self.rows.copy(), float(self.rows[action, 0]), True, False, {}

    def action_masks(self) -> Any:
        return np.arange(3) < self.count


def test_it_learns_which_move_is_good() -> None:
    model = MaskablePPO(MovePolicy, Pick(), n_steps=256, batch_size=64, learning_rate=1e-2, seed=1, device="cpu")
    model.learn(2048)
    env = Pick()
    right = 0
    for seed in range(200):
        rows, _ = env.reset(seed=seed)
        action, _ = model.predict(rows, deterministic=True, action_masks=env.action_masks())
        right += int(rows[action, 0])
    assert right > 195


def test_every_preset_has_room_for_its_moves_in_the_spaces() -> None:
    for preset in PRESETS:
        env = DominoVecEnv(preset, num_envs=2, moves=True, seed=1)
        assert env.observation_space.shape == (env.action_space.n, env.tables.moves.layout.size)  # type: ignore[attr-defined, union-attr]
        assert env.observation_space.dtype == np.int8
