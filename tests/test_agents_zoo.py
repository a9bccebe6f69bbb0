"""Released policies: they load, play what they were trained for and nothing else, and their cards hold."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import agents.zoo
from agents import zoo
from agents.checkpoint import CARD_FILE, load
from agents.critic import CRITIC_FILE, load_critic
from agents.zoo import Zoo
from domino_env import Batch, make_rules
from domino_env.afterstates import Deals
from domino_env.arena import duel
from domino_env.bots import make_player
from domino_env.players import Streams
from training import evaluate, release
from training.ppo import RunConfig
from training.ppo import main as train

SMOKE = Path(__file__).parents[1] / "configs" / "ppo" / "smoke.yaml"
every_policy = pytest.mark.parametrize("name", zoo.names())


def test_there_are_policies() -> None:
    assert "duplas-v1" in zoo.names()


@every_policy
def test_a_released_policy_plays_by_its_name(name: str) -> None:
    folder = zoo.path_of(name)
    rules = load(folder)[1].rule_set
    player = make_player(f"agents.zoo:Zoo?name={name}", rules)
    batch = Batch(rules, 50, seed=1, observe=False)
    actions = player.act(batch.views(), Streams.from_seed(0, 50))
    assert np.array_equal(actions, Zoo(rules, f"zoo/{name}").act(batch.views(), Streams.from_seed(0, 50)))
    assert Zoo(rules, name).name == f"zoo/{name}"
    batch.step(actions)
    assert duel(player, Zoo(rules, name), rules, deals=20).points.mean == 0


@every_policy
def test_weights_are_small_and_the_critic_is_there(name: str) -> None:
    folder = zoo.path_of(name)
    assert sum(file.stat().st_size for file in folder.glob("*.safetensors")) <= release.LIMIT
    assert {file.name for file in folder.iterdir()} == {CARD_FILE, "policy.safetensors", CRITIC_FILE, "README.md"}
    load_critic(folder)


@every_policy
def test_a_card_says_what_the_weights_say(name: str) -> None:
    text = (zoo.path_of(name) / "README.md").read_text(encoding="utf-8")
    _, card = load(zoo.path_of(name))
    assert f"{card.steps:,} decisions" in text
    assert card.encoding in text
    assert card.code in text
    RunConfig.model_validate(card.config)
    for word in ("made with", "hardware", "Results", "Configuration", "seed:"):
        assert word in text
    assert re.search(r"\| `counting` \| round \| [\d,]+ x \d \| \d\d\.\d% \[", text)


@pytest.mark.long
@every_policy
def test_a_policy_is_better_than_counting(name: str) -> None:
    rules = load(zoo.path_of(name))[1].rule_set
    result = duel(Zoo(rules, name), "counting", rules, deals=2000, seed=2**32 + 12345)
    assert result.verdict == "better", result
    assert result.win_share.low > result.fair_share, result


def test_an_unknown_name_is_told_with_near_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown policy 'duplas-v0' \(did you mean 'duplas-v1'\?\); policies: "):
        Zoo(make_rules("duplas"), "duplas-v0")


def test_other_rules_are_refused() -> None:
    for rules in (make_rules("blocos"), make_rules("duplas", target=10), make_rules("duplas", points_cruzada=5)):
        with pytest.raises(ValueError, match=r"duplas-v1 was trained for duplas; it cannot play (blocos|duplas\()"):
            Zoo(rules, "duplas-v1")


def test_other_observations_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(shutil.copytree(zoo.path_of("duplas-v1"), tmp_path / "old"))
    card = json.loads((folder / CARD_FILE).read_text())
    (folder / CARD_FILE).write_text(json.dumps({**card, "encoding": "0123456789abcdef"}))
    monkeypatch.setattr(agents.zoo, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="old: trained on afterstates 0123456789abcdef; this version's are"):
        Zoo(make_rules("duplas"), "old")


def test_a_run_is_released_with_its_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, shelf = tmp_path / "run", tmp_path / "zoo"
    monkeypatch.setattr(release, "FOLDER", shelf)
    monkeypatch.setattr(agents.zoo, "FOLDER", shelf)
    said = [
        "--command",
        "python -m training.ppo x.yaml",
        "--hardware",
        "a lathe",
        "--version",
        "abc",
        "--note",
        "Weak.",
    ]
    assert train([str(SMOKE), f"run={run}", "evaluation_opponents=[doubles]"]) == 0
    assert release.main([str(run), "duplas-v9", *said]) == 2
    assert "has no evaluation.json; run python -m training.evaluate" in capsys.readouterr().err
    assert not shelf.exists()
    assert evaluate.main([str(run), "--deals", "20", "--opponents", "random", "counting", "--episode", "both"]) == 0
    assert release.main([str(run), "duplas-v9", *said]) == 0
    text = (shelf / "duplas-v9" / "README.md").read_text()
    for part in ("# duplas-v9\n", "- Weak.\n", "`python -m training.ppo x.yaml`", "a lathe", "16,384 decisions",
                 "| `random` | round | 20 x 2 | ", "| `counting` | match | 20 x 2 | ", "tables: 256\n"):  # fmt: skip
        assert part in text
    assert Zoo(make_rules("duplas"), "duplas-v9").name == "zoo/duplas-v9"
    assert load_critic(shelf / "duplas-v9").layers[0].in_features == Deals(make_rules("duplas")).size
    assert release.main([str(run), "duplas-v9", *said]) == 2
    assert "exists already" in capsys.readouterr().err


def test_large_weights_are_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    monkeypatch.setattr(release, "FOLDER", tmp_path / "zoo")
    monkeypatch.setattr(release, "LIMIT", 50_000)
    assert train([str(SMOKE), f"run={run}", "evaluation_opponents=[]"]) == 0
    (max((run / "checkpoints").iterdir()) / "evaluation.json").write_text("[]")
    assert release.main([str(run), "x", "--command", "c", "--hardware", "h", "--version", "v"]) == 2
    assert "a released policy has at most 50,000" in capsys.readouterr().err
    assert not (tmp_path / "zoo").exists()


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(zoo.path_of("duplas-v1"), tmp_path / "x"))
    weights = load_file(folder / CRITIC_FILE)
    weights["layers.0.weight"] = weights["layers.0.weight"][:, :-1].contiguous()
    save_file(weights, folder / CRITIC_FILE)
    with pytest.raises(ValueError, match=r"critic\.safetensors: .*size mismatch"):
        load_critic(folder)
