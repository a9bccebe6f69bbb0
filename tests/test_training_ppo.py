"""Self-play PPO: rewards reach the right side, runs go on exactly, and nothing that goes wrong costs a run."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents.checkpoint import CheckpointError, load, newest
from agents.critic import HiddenTiles, by_side, from_side, load_critic, new_critic
from agents.policy import PolicyPlayer
from domino_env import PRESETS, Batch, RuleSet, make_rules
from domino_env.arena import duel
from domino_env.observation import encoding_of
from training import ppo, runs
from training.config import load_config
from training.ppo import RunConfig, Trainer, main
from training.selfplay import advantages, credit

ROOT = Path(__file__).parents[1]
SMOKE = ROOT / "configs" / "ppo" / "smoke.yaml"
ROUNDS = ("duplas", "mano_a_mano", "blocos", "puxar")
# An update takes a few hundredths of a second.
TINY = ("tables=16", "steps=8", "batch_size=64", "hidden=[16]", "critic_hidden=[16]", "total_steps=2560",
        "evaluate_every=1280", "evaluation_deals=20", "evaluation_opponents=[doubles]")  # fmt: skip


def tiny(run: Path, *changes: str) -> list[str]:
    return [str(SMOKE), f"run={run}", *TINY, *changes]


def trainer_of(*changes: str) -> Trainer:
    config = load_config(RunConfig, SMOKE, [*TINY, *changes])
    return Trainer(config, ppo.make_rules_of(config))


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def kept_by(run: Path) -> dict[str, torch.Tensor]:
    """All tensors of a run's newest checkpoint but its time."""
    folder, found = newest(run), {}
    for file in ("policy", "critic", "training"):
        found |= {f"{file}.{name}": tensor for name, tensor in load_file(folder / f"{file}.safetensors").items()}
    del found["training.progress"]
    return found


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def without_times(run: Path) -> list[dict[str, Any]]:
    times = ("seconds", "decisions_per_second", "share_env", "share_play")
    found = lines(run / "metrics" / "progress.json")
    return [{key: value for key, value in line.items() if key not in times} for line in found]


@pytest.fixture(scope="module")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, not to be written to."""
    run = tmp_path_factory.mktemp("smoke") / "run"
    assert main([str(SMOKE), f"run={run}"]) == 0
    return run


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
    kept, config = trainer.rollout, trainer.config
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
            assert np.array_equal(again.observation[table], kept.observation[t, table].numpy())
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


def unseen(batch: Batch, t: int, rules: RuleSet) -> list[int]:
    """What the seat to act at a table does not see, bit by bit."""
    row, tiles, seat = batch.state[t], range(rules.num_tiles), int(batch.seat[t])
    others = [(seat + k) % rules.players for k in range(1, rules.players)]
    bits = [int(row["hands"][other]) >> tile & 1 for other in others for tile in tiles]
    if rules.draw != "none":
        bones = [int(tile) for tile in row["deck"][row["top"] : row["bottom"]]][:6]
        for k in range(min(6, rules.boneyard_size)):
            bits += [int(k < len(bones) and bones[k] == tile) for tile in tiles]
    return bits


@pytest.mark.parametrize(
    "rules",
    [*PRESETS.values(), make_rules("puxar", players=3), make_rules("blocos", players=5), make_rules("puxar", players=4),
     make_rules("blocos", max_pip=9, players=9)],
    ids=[*PRESETS, "puxar-3", "blocos-5", "puxar-4", "nines"],
)  # fmt: skip
def test_a_critic_sees_the_other_hands_and_the_next_tiles_to_draw(rules: RuleSet) -> None:
    batch, hidden = Batch(rules, 50, seed=3), HiddenTiles(rules)
    for step in range(30):
        if step % 5 == 0:
            seen = hidden.of(batch.state, batch.seat)
            assert (seen.dtype, seen.shape) == (np.int8, (50, hidden.size))
            for t in range(50):
                assert seen[t].tolist() == unseen(batch, t, rules)
        batch.step(batch.sample_actions())


@pytest.mark.parametrize("preset", ROUNDS)
def test_looking_ahead_is_trying_every_action(preset: str) -> None:
    trainer = trainer_of(f"preset={preset}", "gamma=0.9", "reward_scale=0.5", "reward=points")
    torch.nn.init.normal_(trainer.critic.layers[-1].weight)
    batch, rules, hidden = trainer.batch, trainer.rules, trainer.hidden_tiles
    ended = 0
    for _ in range(12):
        before = copy.deepcopy(batch.state)
        with torch.no_grad():
            found = trainer.lookahead.values(trainer.critic, trainer.device)
        assert batch.state.tobytes() == before.tobytes()
        for t in range(4):
            for action in range(rules.num_actions):
                if not batch.action_mask[t, action]:
                    assert found[t, action] == 0
                    continue
                tried = copy.deepcopy(batch)
                side = int(tried.seat[t]) % 2
                tried.step(np.full(16, action), tables=np.arange(16) == t)
                expected = 0.5 * float(tried.rewards[t, side])
                ended += bool(tried.done[t])
                if not tried.done[t]:
                    seen = np.concatenate(
                        [tried.observation[t : t + 1], hidden.of(tried.state, tried.seat)[t : t + 1]], 1
                    )
                    value = trainer.critic(torch.from_numpy(seen)).item()
                    expected += 0.9 * (value if tried.seat[t] % 2 == side else -value)
                assert found[t, action].item() == pytest.approx(expected, abs=1e-4)
        batch.step(batch.sample_actions())
    assert ended


def test_the_policy_sees_nothing_that_its_seat_may_not(smoke_run: Path) -> None:
    policy, card = load(newest(smoke_run))
    rules = card.rule_set
    assert policy.layers[0].in_features == encoding_of(rules).size
    critic = load_critic(smoke_run)
    assert critic.layers[0].in_features == encoding_of(rules).size + 3 * 28
    shapes = [tuple(weight.shape) for weight in critic.state_dict().values()]
    assert shapes == [tuple(weight.shape) for weight in new_critic(rules, [128, 128], "relu").state_dict().values()]


# The policy


@pytest.mark.parametrize("lookahead", ["true", "false"])
@pytest.mark.parametrize("legal", ["none", "one", "two", "all", "any"])
def test_no_mask_makes_a_loss_or_gradient_that_is_no_number(legal: str, lookahead: str) -> None:
    trainer = trainer_of(f"lookahead={lookahead}", "max_grad_norm=1e9")
    torch.manual_seed(1)
    with torch.no_grad():
        trainer.actor.layers[-1].weight.mul_(1e5)  # sure of everything, up to logits of thousands
    kept = {"none": 0, "one": 1, "two": 2, "all": 56}
    mask = torch.zeros((64, 56), dtype=torch.int8)
    for row in range(64):
        count = kept[legal] if legal in kept else row % 57
        mask[row, torch.randperm(56)[:count]] = 1
    observation = torch.randint(0, 2, (64, trainer.rollout.observation.shape[2]), dtype=torch.int8)
    hidden = torch.randint(0, 2, (64, trainer.hidden_tiles.size), dtype=torch.int8)
    logits = torch.where(mask.bool(), torch.randn(64, 56) * 100, torch.finfo(torch.float32).min / 2)
    action = logits.argmax(1)
    advantage = torch.randn(64, 56) if lookahead == "true" else torch.randn(64, 1)
    figures = trainer._step(
        observation, hidden, mask, action, logits.log_softmax(1), advantage, torch.randn(64, 1), entropy_weight=0.1
    )
    assert figures.isfinite().all()
    assert all(weight.isfinite().all() for weight in trainer.actor.parameters())


def test_actions_are_drawn_as_likely_as_the_policy_says(chi_square_limit: Any) -> None:
    trainer = trainer_of("tables=20000", "steps=1", "batch_size=20000", "lookahead=false")
    with torch.no_grad():  # the same first position at every table
        trainer.actor.layers[-1].bias.copy_(torch.linspace(-1, 1, 56))
        trainer.actor.layers[-1].weight.zero_()
    batch = trainer.batch
    batch.state[:], batch.legal[:] = batch.state[0].copy(), batch.legal[0].copy()
    batch.observation[:], batch.action_mask[:] = batch.observation[0].copy(), batch.action_mask[0].copy()
    trainer.play()
    counts = np.bincount(trainer.rollout.action[0].numpy(), minlength=56)
    shares = trainer.rollout.log_prob[0, 0].double().exp().numpy()
    possible = shares > 0
    assert 1 < possible.sum() < 20
    assert not counts[~possible].any()
    expected = shares[possible] * 20000
    assert ((counts[possible] - expected) ** 2 / expected).sum() < chi_square_limit(int(possible.sum()) - 1)


@pytest.mark.long
@pytest.mark.parametrize("changes", [["preset=duplas"], ["preset=mano_a_mano"], ["preset=blocos", "reward_scale=0.05"],
                                     ["preset=puxar", "reward_scale=0.05"], ["preset=puxar", "rules={players: 3}"],
                                     ["preset=duplas", "lookahead=false"]], ids="-".join)  # fmt: skip
def test_training_learns(changes: list[str], tmp_path: Path) -> None:
    """Against random the trained policy's whole interval is above that of the untrained one, and above 0."""
    sizes = ("total_steps=400_000", "tables=512", "steps=16", "batch_size=512", "evaluate_every=100_000_000")
    evaluation = ("evaluation_deals=2000", "evaluation_opponents=[random]")
    assert main([str(SMOKE), f"run={tmp_path / 'run'}", "reward=points", *sizes, *evaluation, *changes]) == 0
    untrained, trained = (line["points"] for line in lines(tmp_path / "run" / "evaluations.jsonl"))
    assert trained[1] > max(untrained[2], 0)


# A run


def test_a_run_leaves_its_files(smoke_run: Path) -> None:
    assert {file.name for file in smoke_run.iterdir()} == set(runs.RUN_FILES)
    assert load_config(RunConfig, smoke_run / "config.yaml") == load_config(RunConfig, SMOKE, [f"run={smoke_run}"])
    figures = lines(smoke_run / "metrics" / "progress.json")
    assert [line["steps"] for line in figures] == [4096, 8192, 12288, 16384]
    assert all(np.isfinite(value) for line in figures for value in line.values())
    assert all(0 < line["share_env"] < line["share_play"] < 1 for line in figures)
    events = EventAccumulator(str(smoke_run / "metrics")).Reload()
    assert [scalar.step for scalar in events.Scalars("entropy")] == [4096, 8192, 12288, 16384]
    found = lines(smoke_run / "evaluations.jsonl")
    assert [(line["steps"], line["opponent"]) for line in found] == [
        (steps, opponent) for steps in (0, 8192, 16384) for opponent in ("random", "doubles")
    ]
    assert [folder.name for folder in sorted((smoke_run / "checkpoints").iterdir())] == [
        "000000000000", "000000008192", "000000016384",
    ]  # fmt: skip
    assert (smoke_run / "learning.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_schedules_go_from_their_start_to_their_end(smoke_run: Path) -> None:
    figures = lines(smoke_run / "metrics" / "progress.json")
    quarter = (1e-3 - 1e-5) / 4
    assert [line["learning_rate"] for line in figures] == pytest.approx([1e-3 - k * quarter for k in range(4)])
    assert [line["entropy_weight"] for line in figures] == pytest.approx([0.02 - k * 0.015 / 4 for k in range(4)])
    timed = trainer_of("minutes=2", "total_steps=1000000")
    timed.seconds, timed.steps = 30.0, 1000
    assert timed.progress == 0.25
    timed.steps = 500_000
    assert timed.progress == 0.5
    timed.seconds = 1e6
    assert timed.progress == 1


def test_a_run_of_some_minutes_ends_then(tmp_path: Path) -> None:
    assert main(tiny(tmp_path / "run", "minutes=0.005", "total_steps=1_000_000_000", "evaluation_opponents=[]")) == 0
    seconds = [line["seconds"] for line in lines(tmp_path / "run" / "metrics" / "progress.json")]
    assert seconds[-1] >= 0.3
    assert seconds[-2] < 0.3


def test_a_checkpoint_plays_by_its_spec_string(smoke_run: Path) -> None:
    rules = make_rules("duplas")
    spec = f"agents.policy:PolicyPlayer?path={smoke_run}"
    result = duel(spec, PolicyPlayer(rules, policy=load(newest(smoke_run))[0]), rules, deals=50)
    assert result.points.mean == 0
    assert result.player == spec
    duel(f"{spec}&mode=sample", "counting", rules, deals=10, episode="match")


def test_evaluating_changes_nothing_in_training(tmp_path: Path) -> None:
    often, never = tmp_path / "often", tmp_path / "never"
    assert main(tiny(often, "evaluate_every=1", "evaluation_opponents=[random, doubles]", "evaluation_deals=5")) == 0
    assert main(tiny(never, "evaluate_every=1000000", "evaluation_opponents=[]")) == 0
    assert len(list((often / "checkpoints").iterdir())) == 21
    assert len(list((never / "checkpoints").iterdir())) == 2
    assert not (never / "learning.png").exists()
    assert equal(kept_by(often), kept_by(never))
    assert without_times(often) == without_times(never)


def test_the_same_seed_gives_the_same_weights_and_another_others(smoke_run: Path, tmp_path: Path) -> None:
    assert main([str(SMOKE), f"run={tmp_path / 'a'}", "evaluation_opponents=[]"]) == 0
    assert main([str(SMOKE), f"run={tmp_path / 'b'}", "evaluation_opponents=[]", "seed=1"]) == 0
    assert equal(kept_by(smoke_run), kept_by(tmp_path / "a"))
    assert not equal(kept_by(smoke_run), kept_by(tmp_path / "b"))


# Going on


@pytest.mark.parametrize(
    "changes",
    [[], ["preset=puxar", "rules={players: 3}", "episode=match", "lookahead=false", "reward=points"],
     ["preset=mano_a_mano"]],
    ids=["duplas", "puxar-3-match", "mano_a_mano"],
)  # fmt: skip
def test_twenty_updates_are_ten_and_after_a_resume_ten_more(changes: list[str], tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert main(tiny(whole, *changes)) == 0
    assert main([*tiny(parts, *changes), "--updates", "10"]) == 0
    assert newest(parts).name == "000000001280"
    assert main(["--resume", str(parts)]) == 0
    assert newest(whole).name == newest(parts).name == "000000002560"
    assert equal(kept_by(whole), kept_by(parts))
    assert without_times(whole) == without_times(parts)
    evaluations = [[{**line, "seconds": 0} for line in lines(run / "evaluations.jsonl")] for run in (whole, parts)]
    assert evaluations[0] == evaluations[1]
    assert len(evaluations[0]) == 3
    events = EventAccumulator(str(parts / "metrics")).Reload()
    assert [scalar.step for scalar in events.Scalars("entropy")] == [128 * k for k in range(1, 21)]


def test_a_run_goes_on_from_its_newest_checkpoint_whatever_was_noted_after_it(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(tiny(whole)) == 0
    shutil.copytree(whole, killed)
    shutil.rmtree(killed / "checkpoints" / "000000002560")
    shutil.copytree(newest(killed), killed / "checkpoints" / ".000000002560.77.part")
    with (killed / "metrics" / "progress.json").open("a") as file:
        file.write('{"steps": 26')  # of the line that was being written
    with (killed / "evaluations.jsonl").open("a") as file:
        file.write('{"steps": 2560, "opp')
    config = (killed / "config.yaml").read_text().replace(str(whole), str(killed))
    (killed / "config.yaml").write_text(config)
    assert main(["--resume", str(killed)]) == 0
    assert equal(kept_by(whole), kept_by(killed))
    assert without_times(whole) == without_times(killed)
    assert len(lines(killed / "evaluations.jsonl")) == 3
    assert sorted(path.name for path in (killed / "checkpoints").iterdir()) == [
        "000000000000", "000000001280", "000000002560",
    ]  # fmt: skip


def test_a_finished_run_has_nothing_to_go_on_with_unless_it_is_given_more(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert main(tiny(run)) == 0
    before = kept_by(run)
    assert main(["--resume", str(run)]) == 0
    assert equal(kept_by(run), before)
    assert len(lines(run / "evaluations.jsonl")) == 3
    assert main(["--resume", str(run), "total_steps=3840", "evaluation_opponents=[doubles, random]"]) == 0
    assert newest(run).name == "000000003840"
    assert load_config(RunConfig, run / "config.yaml").total_steps == 3840


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["seed=5"], "'seed=5': a resumed run may change only total_steps, minutes, threads, evaluate_every"),
        (["tables=32"], "'tables=32': a resumed run may change only"),
        (["preset=blocos"], "'preset=blocos': a resumed run may change only"),
        (["totl_steps=5"], "unknown key 'totl_steps'"),
        (["total_steps=0"], "total_steps=0: Input should be greater than or equal to 1"),
    ],
)
def test_what_a_resumed_run_may_not_change(
    changes: list[str], message: str, smoke_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file: file.stat().st_mtime_ns for file in smoke_run.rglob("*")}
    assert main(["--resume", str(smoke_run), *changes]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert message in told
    assert told.count("\n") == 1
    assert {file: file.stat().st_mtime_ns for file in smoke_run.rglob("*")} == before


def test_there_is_nothing_to_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--resume", str(tmp_path / "nowhere")]) == 2
    assert "No such file or directory" in capsys.readouterr().err
    run = tmp_path / "run"
    assert main([*tiny(run, "evaluation_opponents=[]"), "--updates", "1"]) == 0
    for checkpoint in (run / "checkpoints").iterdir():
        shutil.rmtree(checkpoint)
    assert main(["--resume", str(run)]) == 2
    assert "neither a checkpoint nor a run folder with checkpoints" in capsys.readouterr().err


def test_a_folder_that_holds_a_run_is_left_alone(smoke_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {file: file.stat().st_mtime_ns for file in smoke_run.rglob("*")}
    assert main([str(SMOKE), f"run={smoke_run}"]) == 2
    assert "that folder holds a run" in capsys.readouterr().err
    assert {file: file.stat().st_mtime_ns for file in smoke_run.rglob("*")} == before


@pytest.mark.parametrize("file", ["critic.safetensors", "training.safetensors"])
@pytest.mark.parametrize("damage", ["missing", "cut", "nothing"])
def test_a_damaged_checkpoint_is_refused(
    file: str, damage: str, smoke_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(smoke_run, tmp_path / "run"))
    damaged = newest(run) / file
    if damage == "missing":
        damaged.unlink()
    else:
        damaged.write_bytes(damaged.read_bytes()[: 1000 if damage == "cut" else 0])
    assert main(["--resume", str(run)]) != 0
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert told.count("\n") == 1
    assert str(newest(run)) in told
    if file.startswith("critic"):
        with pytest.raises(CheckpointError, match=r"critic\.safetensors"):
            load_critic(run)


# When something is wrong


def test_a_run_that_diverges_says_so_and_keeps_the_last_good_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(tiny(tmp_path / "run", "learning_rate=1e30", "evaluate_every=1")) == 1
    told = [line for line in capsys.readouterr().err.split("\n") if line.startswith("error: ")]
    assert len(told) == 1
    assert "decisions the network gives NaN or infinity; the checkpoints are from before" in told[0]
    assert "lower learning_rate than 1e+30" in told[0]
    PolicyPlayer(make_rules("duplas"), str(tmp_path / "run"))


def test_weights_that_an_update_spoiled_are_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn = Trainer.learn

    def spoiling(trainer: Trainer) -> dict[str, float]:
        figures = learn(trainer)
        if trainer.steps == 128 * 9:
            with torch.no_grad():
                next(trainer.critic.parameters())[3, 4] = float("nan")
        return figures

    monkeypatch.setattr(Trainer, "learn", spoiling)
    assert main(tiny(tmp_path / "run", "evaluate_every=128")) == 1
    assert newest(tmp_path / "run").name == f"{128 * 9:012d}"
    monkeypatch.undo()
    assert main(["--resume", str(tmp_path / "run")]) == 0
    assert newest(tmp_path / "run").name == "000000002560"


def test_a_full_disk_ends_the_run_in_one_line_and_what_was_saved_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from agents import checkpoint

    save_file, saves = checkpoint.save_file, []

    def full(tensors: Any, file: Path) -> None:
        saves.append(file)
        if len(saves) == 6:  # the last file of the second checkpoint
            raise OSError(28, "No space left on device")
        save_file(tensors, file)

    monkeypatch.setattr(checkpoint, "save_file", full)
    assert main(tiny(tmp_path / "run")) == 1
    told = [line for line in capsys.readouterr().err.split("\n") if "rror" in line]
    assert told == ["error: [Errno 28] No space left on device"]
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["000000000000"]
    monkeypatch.undo()
    assert main(["--resume", str(tmp_path / "run")]) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["batch_size=100"], "batch_size=100 does not divide the 128 decisions of tables x steps"),
        (["gae_lamda=1"], "unknown key 'gae_lamda' (did you mean 'gae_lambda'?)"),
        (["minutes=0"], "minutes=0: Input should be greater than 0"),
        (["preset=duplos"], "unknown preset 'duplos' (did you mean 'duplas'?)"),
        (["rules={players: 5, hand_size: 7}"], "players"),
        (["evaluation_opponents=[nobody]"], "unknown player 'nobody'"),
        (["hidden=[0]"], "hidden.0=0: Input should be greater than or equal to 1"),
    ],
)
def test_a_wrong_value_is_told_in_one_line_and_leaves_nothing(
    changes: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(tiny(tmp_path / "run", *changes)) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.startswith("error: ")
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def start(run: Path, *changes: str) -> subprocess.Popen[str]:
    endless = ("total_steps=1_000_000_000", "evaluation_opponents=[]")
    return subprocess.Popen(
        [sys.executable, "-m", "training.ppo", *tiny(run, *endless, *changes)], cwd=ROOT, text=True,
        env={name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def wait_for(file: Path, process: subprocess.Popen[str], size: int = 1) -> None:
    until = time.monotonic() + 240
    while not file.exists() or file.stat().st_size < size:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


def test_signals_save_and_end_a_run(tmp_path: Path) -> None:
    processes = {number: start(tmp_path / number.name) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, process in processes.items():
        wait_for(tmp_path / number.name / "metrics" / "progress.json", process)
        process.send_signal(number)
    for number, process in processes.items():
        said, told = process.communicate(timeout=240)
        run = tmp_path / number.name
        assert process.returncode == 0, told
        assert "Traceback" not in told
        assert f"newest checkpoint {newest(run)}" in said
        last = lines(run / "metrics" / "progress.json")[-1]["steps"]
        assert load(newest(run))[1].steps == last > 0
        assert main(["--resume", str(run), "--updates", "2"]) == 0
        assert load(newest(run))[1].steps == last + 256


def kill_and_resume(run: Path, rng: random.Random, process: subprocess.Popen[str]) -> None:
    """Kill a run that saves after every update, at a random moment; its newest checkpoint must go on."""
    wait_for(run / "metrics" / "progress.json", process, 2000)
    time.sleep(rng.uniform(0, 0.3))
    process.kill()
    process.communicate()
    before = load(newest(run))[1].steps
    assert main(["--resume", str(run), "--updates", "3"]) == 0
    assert load(newest(run))[1].steps == before + 3 * 128
    assert not list((run / "checkpoints").glob(".*"))
    steps = [line["steps"] for line in lines(run / "metrics" / "progress.json")]
    assert steps == [128 * k for k in range(1, len(steps) + 1)]


def test_a_killed_run_goes_on_from_its_newest_checkpoint(tmp_path: Path) -> None:
    kill_and_resume(tmp_path / "run", random.Random(0), start(tmp_path / "run", "evaluate_every=1"))


@pytest.mark.long
def test_a_run_killed_at_fifty_moments_always_goes_on(tmp_path: Path) -> None:
    rng = random.Random(1)
    for kill in range(50):
        kill_and_resume(tmp_path / f"{kill}", rng, start(tmp_path / f"{kill}", "evaluate_every=1"))
