"""Checkpoints: they come back as they were saved, and what is damaged or hostile is refused."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from test_agents import DUPLAS, card_for, every_preset, saved, some_policy

from agents.checkpoint import CheckpointError, load, newest, save
from domino_env import RuleSet, make_rules
from domino_env.bots import make_player


@every_preset
def test_a_checkpoint_comes_back_as_it_was_saved(rules: RuleSet, tmp_path: Path) -> None:
    policy = some_policy(rules)
    path = save(tmp_path / "here" / "there", policy, card_for(rules))
    assert sorted(file.name for file in path.iterdir()) == ["card.json", "policy.safetensors"]
    assert [file.name for file in path.parent.iterdir()] == ["there"]
    before = torch.get_rng_state()
    again, card = load(path)
    assert torch.equal(torch.get_rng_state(), before)
    assert card == card_for(rules)
    assert card.rule_set == rules
    assert not again.training
    assert again.state_dict().keys() == policy.state_dict().keys()
    assert all(torch.equal(again.state_dict()[name], weight) for name, weight in policy.state_dict().items())
    assert all(weight.requires_grad for weight in again.parameters())


def test_changed_rules_come_back(tmp_path: Path) -> None:
    rules = make_rules("puxar", players=3, target=50)
    _, card = load(saved(tmp_path, rules))
    assert card.rule_set == rules
    assert (card.preset, card.rules) == ("puxar", {"players": 3, "target": 50})


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = saved(tmp_path)
    before = (path / "policy.safetensors").read_bytes()
    with pytest.raises(CheckpointError, match="exists already"):
        save(path, some_policy(seed=1), card_for())
    assert (path / "policy.safetensors").read_bytes() == before


@pytest.mark.parametrize("at", ["save_file", "asdict", "os.replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_an_interrupted_save_leaves_nothing(
    at: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: Any) -> None:
        raise error

    monkeypatch.setattr(f"agents.checkpoint.{at}", interrupted)
    with pytest.raises(type(error)):
        saved(tmp_path / "checkpoints")
    assert list((tmp_path / "checkpoints").iterdir()) == []
    with pytest.raises(CheckpointError, match="neither a checkpoint nor a run folder with checkpoints"):
        newest(tmp_path)
    monkeypatch.undo()
    load(saved(tmp_path / "checkpoints"))


def test_what_a_killed_process_left_half_written_is_not_found(tmp_path: Path) -> None:
    whole = saved(tmp_path / "checkpoints")
    shutil.copytree(whole, whole.with_name(".000000002000.123.part"))
    assert newest(tmp_path) == whole
    shutil.rmtree(whole)
    with pytest.raises(CheckpointError, match="neither"):
        newest(tmp_path)
    left = whole.with_name(f".{whole.name}.{os.getpid()}.part")  # of an earlier process with this one's number
    left.mkdir()
    (left / "old").touch()
    assert sorted(file.name for file in saved(tmp_path / "checkpoints").iterdir()) == [
        "card.json",
        "policy.safetensors",
    ]
    assert not left.exists()


def test_weights_that_are_no_numbers_are_neither_saved_nor_loaded(tmp_path: Path) -> None:
    policy = some_policy()
    with torch.no_grad():
        policy.layers[2].bias[3] = float("nan")  # type: ignore[index, operator]
    with pytest.raises(CheckpointError, match=r"the weights layers\.2\.bias hold NaN or infinity"):
        save(tmp_path / "bad", policy, card_for())
    assert list(tmp_path.iterdir()) == []
    path = saved(tmp_path)
    save_file(policy.state_dict(), path / "policy.safetensors")
    with pytest.raises(CheckpointError, match=r"the weights layers\.2\.bias hold NaN or infinity"):
        load(path)


def test_weights_of_half_precision_play_in_single(tmp_path: Path) -> None:
    path, policy = saved(tmp_path), some_policy()
    save_file({name: weight.half() for name, weight in policy.state_dict().items()}, path / "policy.safetensors")
    again, _ = load(path)
    assert {weight.dtype for weight in again.parameters()} == {torch.float32}


def spoil(path: Path, **changes: Any) -> None:
    card = json.loads((path / "card.json").read_text())
    (path / "card.json").write_text(json.dumps({**card, **changes}))


def cut(file: Path, keep: int) -> None:
    file.write_bytes(file.read_bytes()[:keep])


def flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 0xFF
    file.write_bytes(bytes(content))


DAMAGE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no folder": (shutil.rmtree, "is not a checkpoint: card.json is missing"),
    "no card": (lambda path: (path / "card.json").unlink(), "is not a checkpoint: card.json is missing"),
    "no weights": (lambda path: (path / "policy.safetensors").unlink(), "policy.safetensors is missing"),
    "weights that are a folder": (
        lambda path: ((path / "policy.safetensors").unlink(), (path / "policy.safetensors").mkdir()),
        "policy.safetensors is missing",
    ),
    "an empty card": (lambda path: cut(path / "card.json", 0), "card.json: Expecting value"),
    "half a card": (lambda path: cut(path / "card.json", 100), "card.json: "),
    "a card of bytes": (lambda path: (path / "card.json").write_bytes(b"\xff\xfe\x00"), "card.json: 'utf-8' codec"),
    "a card of another kind": (lambda path: (path / "card.json").write_text("[1]"), "card.json: 'list' object"),
    "a bottomless card": (lambda path: (path / "card.json").write_text("[" * 10**5), "card.json: "),
    "a later format": (lambda path: spoil(path, format=2), "card.json: format 2; this version reads format 1"),
    "no format": (lambda path: spoil(path, format=None), "format None; this version reads format 1"),
    "an unknown field": (lambda path: spoil(path, colour="red"), "unexpected keyword argument 'colour'"),
    "an unknown preset": (lambda path: spoil(path, preset="duplos"), "did you mean 'duplas'"),
    "impossible rules": (lambda path: spoil(path, rules={"players": 5}), "card.json: "),
    "other observations": (lambda path: spoil(path, encoding="0" * 16), "trained on observations 0000000000000000"),
    "other rules": (lambda path: spoil(path, preset="mano_a_mano"), "trained on observations "),
    "other widths": (lambda path: spoil(path, hidden=[32, 25]), "policy.safetensors: Error(s) in loading"),
    "too many layers": (lambda path: spoil(path, hidden=[32, 24, 8]), "Missing key(s) in state_dict"),
    "monstrous widths": (lambda path: spoil(path, hidden=[10**6, 10**6]), "policy.safetensors: Error(s) in loading"),
    "widths that are none": (lambda path: spoil(path, hidden="wide"), "policy.safetensors: "),
    "an unknown activation": (lambda path: spoil(path, activation="gelu"), "activation='gelu' is not one of"),
    "no weights at all": (lambda path: cut(path / "policy.safetensors", 0), "policy.safetensors: "),
    "half the weights": (lambda path: cut(path / "policy.safetensors", 5000), "policy.safetensors: "),
    "a damaged header": (lambda path: flip(path / "policy.safetensors", 12), "policy.safetensors: "),
    "a damaged length": (lambda path: flip(path / "policy.safetensors", 6), "policy.safetensors: "),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_checkpoint_is_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    damage, message = DAMAGE[kind]
    path = saved(tmp_path)
    damage(path)
    with pytest.raises(CheckpointError) as caught:
        load(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


class Hostile:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.marker,)


@pytest.mark.parametrize(
    "write", [lambda bad, file: file.write_bytes(pickle.dumps(bad)), torch.save], ids=["pickle", "torch"]
)
@pytest.mark.parametrize("name", ["policy.safetensors", "card.json"])
def test_a_pickle_is_refused_and_runs_nothing(write: Any, name: str, tmp_path: Path) -> None:
    path, marker = saved(tmp_path), tmp_path / "it ran"
    write(Hostile(marker), path / name)
    with pytest.raises(CheckpointError, match=name):
        load(path)
    with pytest.raises(ValueError, match=name):
        make_player(f"agents.policy:PolicyPlayer?path={path}", DUPLAS)
    assert not marker.exists()
    pickle.loads(pickle.dumps(Hostile(marker)))
    assert marker.exists()  # it would have


def test_the_newest_checkpoint_has_the_most_steps(tmp_path: Path) -> None:
    for steps in (0, 8_000_000, 90_000, 12_000_000):
        save(tmp_path / "checkpoints" / f"{steps:012d}", some_policy(), card_for(steps=steps))
    assert newest(tmp_path).name == "000012000000"
    assert load(newest(tmp_path))[1].steps == 12_000_000
    inner = tmp_path / "checkpoints" / "000000090000"
    assert newest(inner) == inner
    with pytest.raises(CheckpointError, match="neither a checkpoint nor a run folder"):
        newest(tmp_path / "nowhere")
