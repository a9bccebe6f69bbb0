"""The champion: trained networks that compiled code runs, and the files they come in."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from networks import random_layers, random_networks
from strategies import TABLES

from agents.checkpoint import CheckpointError, make_card, save
from agents.critic import CRITIC_FILE, new_critic
from agents.networks import MoveNet, Perceptron, PolicyNet, layers_of
from agents.policy import PolicyPlayer
from domino_env import PRESETS, Batch, make_rules
from domino_env.afterstates import Afterstates, Deals
from domino_env.bots import champion, make_player
from domino_env.bots.champion import ChampionPlayer, champion_networks
from domino_env.bots.networks import PolicyNetworks, WeightsError, expected_gain, networks_of, new_guide, read, write
from domino_env.bots.perceptron import evaluate, network_of
from domino_env.observation import Views, encoding_of
from domino_env.players import Streams
from domino_env.rules import pack
from training.export import export, main

MakeViews = Callable[..., Views]


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("widths", [[560, 128, 128, 1], [9, 7, 3], [21, 2], [50, 200, 65, 33, 4]])
def test_gives_what_torch_gives(widths: list[int], activation: str) -> None:
    torch.manual_seed(0)
    net = Perceptron(widths[0], widths[1:-1], widths[-1], activation)
    rows = (np.random.default_rng(0).random((200, widths[0])) < 0.15).astype(np.int8)
    rows[0], rows[1] = 0, 1
    with torch.inference_mode():
        wanted = net(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(evaluate(network_of(layers_of(net), activation), rows), wanted, atol=1e-5)


@pytest.mark.parametrize("name", TABLES)
def test_plays_as_the_policy_that_torch_runs(name: str, random_views: MakeViews) -> None:
    rules = TABLES[name]
    net = MoveNet(Afterstates(rules).size, [24, 24], 1, "relu")
    with torch.no_grad():
        net.layers[-1].weight.mul_(20)
    views = random_views(rules, 1500)
    networks = PolicyPlayer(rules, policy=net).networks
    for mode in ("greedy", "sample"):
        mine = ChampionPlayer(rules, mode, networks=networks).act(views, Streams.from_seed(1, len(views)))
        theirs = PolicyPlayer(rules, mode=mode, policy=net).act(views, Streams.from_seed(1, len(views)))
        assert (mine != theirs).sum() <= 1  # sums in another order may break a tie, or pass a draw, once in a while
    some = views[:100]
    shares = ChampionPlayer(rules, "sample", networks=networks).chances(some)
    np.testing.assert_allclose(shares, PolicyPlayer(rules, mode="sample", policy=net).chances(some), atol=1e-4)
    sure = ChampionPlayer(rules, networks=networks)
    assert (sure.chances(some).argmax(1) == sure.act(some, Streams.from_seed(1, 100))).all()


def test_equal_moves_are_played_in_their_order(random_views: MakeViews) -> None:
    rules = PRESETS["duplas"]
    flat = replace(random_networks(rules), policy=[(np.zeros((1, Afterstates(rules).size)), np.zeros(1))])
    views = random_views(rules, 300)
    first = np.where(views["legal"][:, 0] != 0, 0, 1)
    tiles = views["legal"][np.arange(300), first]
    lowest = np.log2((tiles & (~tiles + np.uint64(1))).astype(np.float64)).astype(np.int64)
    chosen = ChampionPlayer(rules, networks=flat).act(views, Streams.from_seed(1, 300))
    assert (chosen == 2 * lowest + first).all()


def test_the_package_brings_a_champion(random_views: MakeViews) -> None:
    for rules in champion.games():
        player = make_player("champion", rules)
        views = random_views(rules, 50)
        chosen = player.act(views, Streams.from_seed(1, 50))
        assert (views["legal"][np.arange(50), chosen & 1] >> (chosen >> 1).astype(np.uint64) & np.uint64(1)).all()
        assert networks_of(player) is champion_networks(rules)
        assert champion_networks(rules).critic is not None
    assert PRESETS["duplas"] in champion.games()
    assert make_player("champion?mode=sample", PRESETS["duplas"]).name == "champion?mode=sample"


def test_refuses_what_it_was_not_made_for(random_views: MakeViews) -> None:
    with pytest.raises(ValueError, match=r"no champion for duplas\(target=7\); there is one for .*duplas"):
        make_player("champion", make_rules("duplas", target=7))
    with pytest.raises(ValueError, match="mode='best' is not one of greedy, sample"):
        make_player("champion?mode=best", PRESETS["duplas"])
    with pytest.raises(ValueError, match="these networks are for blocos, not puxar"):
        ChampionPlayer(PRESETS["puxar"], networks=random_networks(PRESETS["blocos"]))
    off_turn = Batch(PRESETS["duplas"], 1, 0).views(np.array([0, 0, 0, 0]), np.arange(4))
    with pytest.raises(ValueError, match="a view is of a seat that is not to act"):
        ChampionPlayer(PRESETS["duplas"]).act(off_turn, Streams.from_seed(0, 4))


@pytest.mark.parametrize("name", ["duplas", "mano_a_mano", "blocos-3", "puxar-4"])
def test_the_critic_is_asked_for_the_right_side(name: str) -> None:
    """Against the same numbers by NumPy: those of the deciding side, and the sides after it."""
    rules, sides = TABLES[name], TABLES[name].num_sides
    networks = random_networks(rules)
    assert networks.critic_network is not None
    guide, batch = new_guide(networks), Batch(rules, 60, 3, observe=False)
    for _ in range(6):
        values = evaluate(networks.critic_network, Deals(rules).of(batch.state))
        for row, given in zip(batch.state, values, strict=True):
            found = [expected_gain(row, pack(rules)[0], side, guide) for side in range(sides)]
            deciding = rules.side_of(int(row["seat"]))
            if sides == 2:
                assert found[deciding] == given[0]
                assert found[1 - deciding] == -given[0]
            else:
                assert found == [given[(side - deciding) % sides] for side in range(sides)]
        batch.step(batch.sample_actions())


def test_the_critic_sees_one_position_from_both_sides() -> None:
    """A position with all seats moved on by one is worth the same to the sides moved on by one."""
    rules = make_rules("blocos", players=3)
    networks = random_networks(rules)
    guide, batch = new_guide(networks), Batch(rules, 40, 3, observe=False)
    turned = Batch(rules, 40, 3, observe=False).state
    for row, other in zip(batch.state, turned, strict=True):
        for field in ("hands", "placed", "scores"):
            other[field][:3] = np.roll(row[field][:3], 1)
        for field in ("seat", "starter"):
            other[field] = (row[field] + 1) % 3
        for side in range(3):
            gain = expected_gain(row, pack(rules)[0], side, guide)
            assert expected_gain(other, pack(rules)[0], (side + 1) % 3, guide) == gain


@pytest.mark.parametrize("name", ["duplas", "puxar-3"])
def test_files_hold_all_of_it(name: str, tmp_path: Path) -> None:
    networks = random_networks(TABLES[name], name="some", gamma=0.5, reward_scale=0.25, activation="tanh")
    write(tmp_path / "a.npz", networks)
    write(tmp_path / "b.npz", networks)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    found = read(tmp_path / "a.npz")
    for field in ("rules", "activation", "name", "episode", "reward", "reward_scale", "gamma"):
        assert getattr(found, field) == getattr(networks, field)
    for own, other in ((found.policy, networks.policy), (found.critic, networks.critic)):
        assert own is not None
        assert other is not None
        for (weight, bias), (other_weight, other_bias) in zip(own, other, strict=True):
            assert (weight == other_weight).all()
            assert (bias == other_bias).all()
    write(tmp_path / "c.npz", replace(networks, critic=None))
    assert read(tmp_path / "c.npz").critic is None


def changed_card(file: Path, **values: Any) -> None:
    with np.load(file) as arrays:
        kept = dict(arrays)
    kept["card"] = np.array(json.dumps({**json.loads(str(kept["card"])), **values}))
    np.savez(file, **kept)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format": 2}, "format 2; this version reads format 1"),
        ({"afterstates": "0" * 16}, "trained on afterstates 0{16}; this version's are"),
        ({"deals": "0" * 16}, "trained on deals 0{16}; this version's are"),
        ({"preset": "dupla"}, "unknown preset 'dupla'"),
        ({"activation": "gelu"}, "activation='gelu' is not one of tanh, relu"),
        ({"reward": "equity"}, "reward='equity' is not one of points, outcome"),
        ({"gamma": 2}, "gamma=2"),
        ({"reward_scale": 0}, "reward_scale=0"),
        ({"rules": None}, "must be a mapping"),
    ],
)
def test_a_file_that_cannot_be_used(values: dict[str, Any], message: str, tmp_path: Path) -> None:
    file = tmp_path / "some.npz"
    write(file, random_networks(PRESETS["duplas"]))
    changed_card(file, **values)
    with pytest.raises(WeightsError, match=rf"some\.npz: .*{message}"):
        read(file)


def test_a_damaged_file(tmp_path: Path) -> None:
    file = tmp_path / "some.npz"
    with pytest.raises(WeightsError, match=r"some\.npz"):
        read(file)
    write(file, random_networks(PRESETS["duplas"]))
    whole = file.read_bytes()
    for content in (b"", b"PK", whole[: len(whole) // 2], whole[:3000] + b"\0" * 99 + whole[3099:]):
        file.write_bytes(content)
        with pytest.raises(WeightsError, match=r"some\.npz"):
            read(file)
    pickled = io.BytesIO()
    np.savez(pickled, card=np.array([{"format": 1}], dtype=object))
    file.write_bytes(pickled.getvalue())
    with pytest.raises(WeightsError, match=r"some\.npz: .*allow_pickle"):
        read(file)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], "no layers of a perceptron"),
        ([(np.zeros((3, 4)), np.zeros(2))], "no layers of a perceptron"),
        ([(np.zeros((3, 4)), np.zeros(3)), (np.zeros((1, 4)), np.zeros(1))], "no layers of a perceptron"),
        ([(np.full((1, 4), np.nan), np.zeros(1))], "NaN or infinity"),
    ],
)
def test_weights_that_are_no_network(layers: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        network_of(layers, "relu")


def test_networks_of_another_shape() -> None:
    rules = PRESETS["duplas"]
    fit = random_networks(rules)
    with pytest.raises(ValueError, match="the policy has 5 inputs and 1 outputs; under these rules it has"):
        replace(fit, policy=random_layers([5, 3, 1], 0))
    with pytest.raises(ValueError, match=r"the critic has .* inputs and 2 outputs; under these rules it has .* and 1"):
        replace(fit, critic=random_layers([Deals(rules).size, 3, 2], 0))


def saved(folder: Path, *, critic: bool = True, **config: Any) -> Path:
    """A checkpoint of an untrained policy for `duplas`."""
    rules = PRESETS["duplas"]
    policy = MoveNet(Afterstates(rules).size, [8], 1, "tanh")
    others = {CRITIC_FILE: new_critic(rules, [8, 9], "tanh").state_dict()} if critic else {}
    said = {"episode": "round", "reward": "outcome", "reward_scale": 0.5, "gamma": 0.9, **config}
    said = {name: value for name, value in said.items() if value is not None}
    return save(
        folder, policy, make_card(rules, [8], "tanh", steps=1, code="", config=said, sees="afterstates"), others
    )


def test_a_checkpoint_becomes_a_champion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, random_views: MakeViews
) -> None:
    monkeypatch.setattr("training.export.FOLDER", tmp_path)
    source = saved(tmp_path / "run")
    assert main([str(source)]) == 0
    file = tmp_path / "duplas.npz"
    assert str(file) in capsys.readouterr().out
    found = read(file)
    assert (found.name, found.reward, found.reward_scale, found.gamma) == ("run", "outcome", 0.5, 0.9)
    rules, views = PRESETS["duplas"], random_views(PRESETS["duplas"], 200)
    original = PolicyPlayer(rules, str(source))
    streams = Streams.from_seed(1, 200)
    exported = ChampionPlayer(rules, networks=found)
    assert (exported.act(views, streams) == original.act(views, streams)).all()
    assert isinstance(networks_of(original), PolicyNetworks)
    assert export(str(source), tmp_path) == file


def test_what_cannot_be_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(tmp_path / "bare", critic=False)
    assert main([str(tmp_path / "bare")]) == 2
    assert "bare has no critic" in capsys.readouterr().err
    saved(tmp_path / "mute", reward=None)
    with pytest.raises(CheckpointError, match=r"card.json: reward: missing from its configuration"):
        export(str(tmp_path / "mute"), tmp_path)
    assert main(["zoo/duplas-v0"]) == 2
    assert "unknown policy 'zoo/duplas-v0'" in capsys.readouterr().err
    rules = PRESETS["duplas"]
    seeing = PolicyNet(encoding_of(rules).size, [8], rules.num_actions, "tanh")
    save(tmp_path / "seeing", seeing, make_card(rules, [8], "tanh", steps=1, code=""))
    with pytest.raises(CheckpointError, match="sees observations; this takes one that sees afterstates"):
        export(str(tmp_path / "seeing"), tmp_path)


# Runs as plain Python: the same choices, and the same numbers to the last bit.
PLAIN = """
import numpy as np
from networks import random_networks
from domino_env import Batch, make_rules
from domino_env.bots.champion import ChampionPlayer
from domino_env.bots.search import SearchPlayer
from domino_env.players import Streams

rules = make_rules("duplas", max_pip=3, hand_size=2)
batch = Batch(rules, 6, 3, observe=False)
for _ in range(2):
    batch.step(batch.sample_actions())
player = ChampionPlayer(rules, networks=random_networks(rules, hidden=3))
views = batch.views()
print(player.act(views, Streams.from_seed(1, 6)).tolist())
print(SearchPlayer(rules, policy=player, deals=2, solve=0).act(views, Streams.from_seed(1, 6)).tolist())
print([round(float(x), 5) for x in player._guide.logits[:2]])
"""


def test_without_compiled_code_it_plays_the_same() -> None:
    here = Path(__file__).parent
    found = [
        subprocess.run(
            [sys.executable, "-c", PLAIN],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(here.parent), str(here)]), "NUMBA_DISABLE_JIT": off},
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
        ).stdout
        for off in ("0", "1")
    ]
    assert found[0] == found[1]
