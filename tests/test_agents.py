"""Learned players: networks, checkpoints that are safe to keep and to load, and policies at the table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecNormalize

from agents.checkpoint import Card, CheckpointError, make_card, save
from agents.networks import PolicyNet, masked
from agents.policy import PolicyPlayer
from agents.sb3 import policy_of
from domino_env import PRESETS, RuleSet, make_rules
from domino_env.adapters.sb3 import DominoVecEnv
from domino_env.arena import duel
from domino_env.bots import make_player
from domino_env.observation import Views, encoding_of, masks
from domino_env.players import Streams

DUPLAS = PRESETS["duplas"]
MakeViews = Callable[..., Views]
every_preset = pytest.mark.parametrize("rules", PRESETS.values(), ids=PRESETS)


def some_policy(rules: RuleSet = DUPLAS, seed: int = 0, activation: str = "relu") -> PolicyNet:
    """A random network that is sure of most of its choices."""
    torch.manual_seed(seed)
    net = PolicyNet(encoding_of(rules).size, [32, 24], rules.num_actions, activation).eval()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter *= 4
    return net


def card_for(rules: RuleSet = DUPLAS, **changes: Any) -> Card:
    card = make_card(rules, [32, 24], "relu", steps=1000, code="abc", config={"seed": 1})
    return dataclasses.replace(card, **changes)


def saved(folder: Path, rules: RuleSet = DUPLAS, **changes: Any) -> Path:
    return save(folder / "000000001000", some_policy(rules), card_for(rules, **changes))


def logits_of(policy: PolicyNet, views: Views, rules: RuleSet) -> npt.NDArray[np.float64]:
    """Logits of legal actions, −inf elsewhere, by plain NumPy in double precision."""
    values = encoding_of(rules).vectors(views).astype(np.float64)
    layers = [layer for layer in policy.layers if isinstance(layer, torch.nn.Linear)]
    for number, layer in enumerate(layers):
        values = values @ layer.weight.detach().numpy().T.astype(np.float64) + layer.bias.detach().numpy()
        if number + 1 < len(layers):
            values = np.maximum(values, 0)
    return np.where(masks(views, rules.num_actions) > 0, values, -np.inf)


# Masked logits


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_masked_logits_give_finite_entropies_and_gradients(dtype: torch.dtype, scale: float) -> None:
    values = torch.tensor([[1.0, 2.0, -1.0, 3.0], [0.5, 0.5, 9.0, -9.0], [1.0, 2.0, 3.0, 4.0]])
    logits = (values * scale).to(dtype).requires_grad_()
    legal = torch.tensor([[0, 0, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]], dtype=torch.int8)
    inner = masked(logits, legal)
    assert inner.dtype == dtype
    shares, logs = inner.softmax(-1), inner.log_softmax(-1)
    entropy = -(shares * logs).sum(-1)
    assert entropy[0].item() == 0
    assert logs[0, 2].item() == 0
    assert shares[0].tolist() == [0, 0, 1, 0]
    assert entropy[1].item() == pytest.approx(0.6931, abs=1e-4 if dtype.itemsize > 2 else 4e-3)
    assert shares[1, 2:].tolist() == [0, 0]
    (entropy.sum() + logs[0, 2] + logs[1, 0]).backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    assert not logits.grad[legal == 0].any()


def test_a_row_that_allows_nothing_gives_equal_finite_logits() -> None:
    inner = masked(torch.tensor([[1.0, 2.0]], requires_grad=True), torch.tensor([[False, False]]))
    assert inner.isfinite().all()
    assert inner.softmax(-1).tolist() == [[0.5, 0.5]]
    inner.softmax(-1)[0, 0].backward()


def test_a_network_gives_float32_logits_for_observations_of_any_dtype() -> None:
    net = PolicyNet(5, [7], 3, "tanh")
    ones = torch.ones(2, 5)
    for dtype in (torch.int8, torch.bool, torch.float64, torch.float16):
        logits = net(ones.to(dtype))
        assert (logits.dtype, logits.shape) == (torch.float32, (2, 3))
        assert torch.equal(logits, net(ones))
    assert PolicyNet(5, [], 3)(ones).shape == (2, 3)
    with pytest.raises(ValueError, match="activation='gelu' is not one of tanh, relu"):
        PolicyNet(5, [7], 3, "gelu")


# At the table


@every_preset
def test_greedy_is_the_likeliest_legal_action(rules: RuleSet, random_views: MakeViews) -> None:
    policy, views = some_policy(rules), random_views(rules, 10_000)
    actions = PolicyPlayer(rules, policy=policy).act(views, Streams.from_seed(1, len(views)))
    assert actions.dtype == np.int64
    legal = masks(views, rules.num_actions) > 0
    assert legal[np.arange(len(views)), actions].all()
    logits = logits_of(policy, views, rules)
    assert np.allclose(logits[np.arange(len(views)), actions], logits.max(axis=1), atol=1e-3)
    assert (actions == logits.argmax(axis=1)).mean() > 0.999
    assert len(np.unique(actions)) > 30


@every_preset
def test_sampling_plays_legal_actions_as_often_as_the_policy_says(
    rules: RuleSet, random_views: MakeViews, chi_square_limit: Callable[[int], float]
) -> None:
    policy, views = some_policy(rules), random_views(rules, 10_000)
    with torch.no_grad():
        for parameter in policy.layers[-1].parameters():
            parameter /= 8  # less sure, so that there is something to count
    player = PolicyPlayer(rules, mode="sample", policy=policy)
    actions = player.act(views, Streams.from_seed(1, len(views)))
    legal = masks(views, rules.num_actions) > 0
    assert legal[np.arange(len(views)), actions].all()
    for row in np.flatnonzero(legal.sum(axis=1) >= 3)[:3]:
        logits = logits_of(policy, views[row : row + 1], rules)[0]
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        chosen = player.act(np.repeat(views[row : row + 1], 20_000), Streams.from_seed(int(row), 20_000))
        counts = np.bincount(chosen, minlength=len(shares))
        often = shares * 20_000 >= 5
        assert often.sum() >= 2
        deviation = ((counts[often] - 20_000 * shares[often]) ** 2 / (20_000 * shares[often])).sum()
        assert deviation < chi_square_limit(int(often.sum()))
        assert counts[~often].sum() < 20 * len(shares)
        assert not counts[shares == 0].any()


@pytest.mark.parametrize("mode", ["greedy", "sample"])
def test_the_choice_does_not_depend_on_the_other_views(mode: str, random_views: MakeViews) -> None:
    views = random_views(DUPLAS, 1000)
    player = PolicyPlayer(DUPLAS, mode=mode, policy=some_policy())
    before = views.tobytes()
    together = player.act(views, Streams.from_seed(1, 1000))
    streams = Streams.from_seed(1, 1000)
    order = np.random.default_rng(0).permutation(1000)
    for part in (order[:1], order[1:8], order[8:500], order[500:]):
        assert np.array_equal(player.act(views[part], streams.rows(part)), together[part])
    assert views.tobytes() == before
    assert player.act(views[:0], streams.rows(order[:0])).shape == (0,)


def test_playing_leaves_torch_as_it_is(random_views: MakeViews) -> None:
    views, threads = random_views(DUPLAS, 100), torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        torch.manual_seed(3)
        before = torch.get_rng_state()
        for mode in ("greedy", "sample"):
            PolicyPlayer(DUPLAS, mode=mode, policy=some_policy_without_seeding()).act(views, Streams.from_seed(1, 100))
        assert torch.equal(torch.get_rng_state(), before)
        assert torch.get_num_threads() == 2
        assert torch.is_grad_enabled()
    finally:
        torch.set_num_threads(threads)


def some_policy_without_seeding() -> PolicyNet:
    state = torch.get_rng_state()
    policy = some_policy()
    torch.set_rng_state(state)
    return policy


def test_a_policy_plays_in_the_arena_by_its_spec(tmp_path: Path) -> None:
    path = saved(tmp_path / "run" / "checkpoints")
    run = tmp_path / "run"
    specs = [f"agents.policy:PolicyPlayer?path={folder}&mode=sample" for folder in (path, run)]
    assert make_player(specs[0], DUPLAS).name == specs[0]
    assert make_player(f"agents.policy:PolicyPlayer?path={run}", DUPLAS).mode == "greedy"  # type: ignore[attr-defined]
    one, other = (duel(spec, "doubles", DUPLAS, deals=50, seed=3, episode="match") for spec in specs)
    assert one.points == other.points
    greedy = lambda rules: PolicyPlayer(rules, str(path))  # noqa: E731
    assert greedy(DUPLAS).name == "000000001000"
    assert duel(greedy, greedy, DUPLAS, deals=50, seed=3).points.mean == 0


def test_a_folder_whose_name_reads_as_a_number_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "7", some_policy(), card_for())
    saved(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("7", "000000001000"):
        make_player(f"agents.policy:PolicyPlayer?path={name}", DUPLAS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "give either path= (a checkpoint or run folder) or policy="),
        ("?path=nowhere", "nowhere is neither a checkpoint nor a run folder"),
        ("?mode=best&path=x", "mode='best' is not one of greedy, sample"),
        ("?file=x", "unexpected keyword argument 'file'"),
    ],
)
def test_a_policy_that_cannot_be_had_is_refused(options: str, message: str) -> None:
    with pytest.raises(ValueError, match="player") as caught:
        make_player(f"agents.policy:PolicyPlayer{options}", DUPLAS)
    assert message in str(caught.value)


def test_a_policy_for_other_observations_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, make_rules("duplas", target=10))
    message = r"was trained for duplas\(target=10\); it cannot play duplas"
    with pytest.raises(CheckpointError, match=message):
        PolicyPlayer(DUPLAS, str(path))
    PolicyPlayer(make_rules("duplas", target=10, points_carroca=5), str(path))  # it sees the same


def test_a_policy_says_when_it_cannot_choose(random_views: MakeViews) -> None:
    views, streams = random_views(DUPLAS, 10), Streams.from_seed(1, 10)
    policy = some_policy()
    off_turn = views.copy()
    off_turn["legal"][4] = 0
    with pytest.raises(ValueError, match="a view is of a seat that is not to act"):
        PolicyPlayer(DUPLAS, policy=policy).act(off_turn, streams)
    with torch.no_grad():
        policy.layers[-1].bias[:] = float("inf")  # type: ignore[index, operator]
    for mode in ("greedy", "sample"):
        with pytest.raises(ValueError, match="the policy's logits hold NaN or infinity"):
            PolicyPlayer(DUPLAS, mode=mode, policy=policy).act(views, streams)


# Models of Stable-Baselines3


def model_with(env: Any, policy: str = "MlpPolicy", **policy_options: Any) -> MaskablePPO:
    return MaskablePPO(
        policy, env, n_steps=8, batch_size=256, n_epochs=2, seed=1, policy_kwargs=policy_options, device="cpu"
    )


@pytest.mark.parametrize("activation", [torch.nn.Tanh, torch.nn.ReLU])
@pytest.mark.parametrize("widths", [[32, 16], []])
def test_a_copied_actor_chooses_as_its_model(activation: Any, widths: list[int], random_views: MakeViews) -> None:
    rules = PRESETS["mano_a_mano"]
    model = model_with(
        DominoVecEnv(rules, num_envs=64, seed=1), net_arch=widths, activation_fn=activation
    ).learn(1024)  # fmt: skip
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    policy = policy_of(model)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    views = random_views(rules, 2000)
    chosen = PolicyPlayer(rules, policy=policy).act(views, Streams.from_seed(1, 2000))
    observations, legal = encoding_of(rules).vectors(views), masks(views, rules.num_actions)
    wanted, _ = model.predict(observations, deterministic=True, action_masks=legal)
    assert np.array_equal(chosen, wanted)
    assert len(np.unique(chosen)) > 20
    copied = policy_of(model).state_dict()
    model.learn(512)
    assert all(torch.equal(copied[name], weight) for name, weight in policy.state_dict().items())
    assert not torch.equal(policy_of(model).layers[0].weight, policy.layers[0].weight)  # type: ignore[arg-type]


class Toy(gymnasium.Env[Any, Any]):
    def __init__(self, seen: spaces.Space[Any], acts: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = seen, acts

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        return self.observation_space.sample(), {}


class Squaring(BaseFeaturesExtractor):
    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, observation_space.shape[0])

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return observations**2


FLAT = spaces.Box(0, 1, (6,), np.float32)


@pytest.mark.parametrize(
    ("seen", "acts", "policy", "options", "message"),
    [
        (
            FLAT,
            spaces.Discrete(3),
            "MlpPolicy",
            {"activation_fn": torch.nn.ELU},
            "is not a perceptron with tanh or relu",
        ),
        (FLAT, spaces.Discrete(3), "MlpPolicy", {"features_extractor_class": Squaring}, "is not a perceptron"),
        (FLAT, spaces.MultiDiscrete([2, 3]), "MlpPolicy", {}, "players have flat observations and n actions"),
        (spaces.Box(0, 1, (2, 3)), spaces.Discrete(3), "MlpPolicy", {}, "players have flat observations"),
        (spaces.Dict({"a": FLAT}), spaces.Discrete(3), "MultiInputPolicy", {}, "players have flat observations"),
    ],
)
def test_a_model_that_is_no_plain_perceptron_is_refused(
    seen: Any, acts: Any, policy: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        policy_of(model_with(Toy(seen, acts), policy, **options))


def test_a_model_of_normalised_observations_is_refused() -> None:
    tables = DominoVecEnv(DUPLAS, num_envs=4, seed=1)
    with pytest.raises(ValueError, match="trained on normalised observations"):
        policy_of(model_with(VecNormalize(tables, norm_obs=True)))


def test_a_policy_is_computed_on_one_thread_and_torch_then_has_as_many_as_before(random_views: MakeViews) -> None:
    policy, seen = some_policy(), []
    policy.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    player, views = PolicyPlayer(DUPLAS, policy=policy), random_views(DUPLAS, 10)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            player.act(views, Streams.from_seed(0, 10))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert seen == [1, 1]
