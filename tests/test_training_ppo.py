"""Self-play PPO: rewards reach the right side, runs go on exactly, and nothing that goes wrong costs a run."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny_runs import SMOKE, equal, kill_and_resume, lines, start, tick, tiny, trainer_of, wait_for, without_times

from agents.checkpoint import CheckpointError, load, newest
from agents.critic import load_critic, new_critic
from agents.networks import MoveNet, by_decision
from agents.policy import PolicyPlayer
from domino_env import make_rules
from domino_env.afterstates import Afterstates, Deals
from domino_env.arena import duel
from training import runs
from training.config import load_config
from training.ppo import RunConfig, Trainer, main

ROOT = Path(__file__).parents[1]


def kept_by(run: Path) -> dict[str, torch.Tensor]:
    """All tensors of a run's newest checkpoint but its time."""
    folder, found = newest(run), {}
    for file in ("policy", "critic", "training"):
        found |= {f"{file}.{name}": tensor for name, tensor in load_file(folder / f"{file}.safetensors").items()}
    del found["training.progress"]
    return found


@pytest.fixture(scope="module")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, not to be written to."""
    run = tmp_path_factory.mktemp("smoke") / "run"
    assert main([str(SMOKE), f"run={run}"]) == 0
    return run


# The policy


def test_the_policy_sees_nothing_that_its_seat_may_not(smoke_run: Path) -> None:
    policy, card = load(newest(smoke_run))
    rules = card.rule_set
    assert isinstance(policy, MoveNet)
    assert policy.layers[0].in_features == Afterstates(rules).size
    critic = load_critic(smoke_run)
    assert critic.layers[0].in_features == Deals(rules).size
    shapes = [tuple(weight.shape) for weight in critic.state_dict().values()]
    assert shapes == [tuple(weight.shape) for weight in new_critic(rules, [128, 128], "relu").state_dict().values()]


@pytest.mark.parametrize("weights", ["played", "all", "none"])
@pytest.mark.parametrize("legal", ["one", "two", "many", "any"])
def test_no_moves_make_a_loss_or_gradient_that_is_no_number(legal: str, weights: str) -> None:
    trainer = trainer_of("max_grad_norm=1e9")
    torch.manual_seed(1)
    with torch.no_grad():
        trainer.actor.layers[-1].weight.mul_(1e5)  # sure of everything, up to logits of thousands
    counts = torch.full((64,), {"one": 1, "two": 2, "many": 40}.get(legal, 0))
    if legal == "any":
        counts = torch.arange(64) % 57 + 1
    rows = int(counts.sum())
    moves = torch.randint(0, 2, (rows, trainer.afterstates.size), dtype=torch.int8)
    deals = torch.randint(0, 2, (64, trainer.deals.size), dtype=torch.int8)
    old = torch.cat([part.log_softmax(0) for part in (torch.randn(rows) * 100).split(counts.tolist())])
    weight = {"all": old.exp(), "played": (old > -1e-6).float(), "none": torch.zeros(rows)}[weights]
    copies = torch.where(torch.rand(64) < 0.5, 10.0, 1.0)
    of_each = (counts, copies / copies.sum(), moves, old, weight, torch.randn(rows))
    losses = {
        "actor": lambda _: trainer._policy_loss(*of_each, entropy_weight=0.1),
        "critic": lambda _: trainer._value_loss(deals, torch.randn(64, 1), 64),
    }
    for network, loss_of in losses.items():
        assert trainer._descend(network, loss_of, torch.arange(64)).isfinite().all()
    for net in (trainer.actor, trainer.critic):
        assert all(parameter.isfinite().all() for parameter in net.parameters())


def test_moves_are_drawn_as_likely_as_the_policy_says(chi_square_limit: Any) -> None:
    trainer = trainer_of("tables=20000", "steps=1", "batch_size=20000", "lookahead=false")
    torch.nn.init.normal_(trainer.actor.layers[-1].weight, std=3)
    batch = trainer.batch
    batch.state[:], batch.legal[:] = batch.state[0].copy(), batch.legal[0].copy()  # the same position at every table
    trainer.play()
    kept = trainer.rollout
    shares = kept.log_prob[0][: kept.counts[0][0]].double().exp().numpy()
    assert 1 < len(shares) < 20
    assert shares.std() > 0.01
    drawn = np.bincount(kept.played[0].numpy(), minlength=len(shares))
    expected = shares * 20000
    assert ((drawn - expected) ** 2 / expected).sum() < chi_square_limit(len(shares) - 1)
    moves = trainer.afterstates.of_state(batch.state[:0])
    assert by_decision(torch.from_numpy(moves.actions), torch.zeros(0, dtype=torch.int64), 0).shape == (0, 0)


def test_of_decisions_that_were_sure_a_share_stands_for_all() -> None:
    trainer = trainer_of("tables=2000", "steps=8", "sure=0.6", "sure_share=0.25", "opponents=[random]")
    torch.nn.init.normal_(trainer.actor.layers[-1].weight, std=1)
    trainer.play()
    kept = trainer.rollout
    counts, log_prob = torch.cat(kept.counts), torch.cat(kept.log_prob)
    starts = counts.cumsum(0) - counts
    sure = log_prob[starts + kept.played.flatten()].exp() > 0.6
    decisions, copies = trainer._worth_learning(starts, log_prob)
    own = kept.own.flatten()
    assert 1000 < int((sure & own).sum()) < int(own.sum()) - 1000
    assert torch.equal(decisions[~sure[decisions]], (own & ~sure).nonzero()[:, 0])  # every other one, and no opponent's
    assert own[decisions].all()
    assert copies[sure].eq(4).all()
    assert copies[~sure].eq(1).all()
    drawn, of = int(sure[decisions].sum()), int((sure & own).sum())
    assert abs(drawn - of / 4) < 5 * (of * 3 / 16) ** 0.5


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
    assert [line["entropy_weight"] for line in figures] == pytest.approx([0.04 - k * 0.035 / 4 for k in range(4)])
    timed = trainer_of("minutes=2", "total_steps=1000000")
    timed.seconds, timed.steps = 30.0, 1000
    assert timed.progress == 0.25
    timed.steps = 500_000
    assert timed.progress == 0.5
    timed.seconds = 1e6
    assert timed.progress == 1


def test_a_run_of_some_minutes_ends_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tick(monkeypatch, 1 / 256)
    assert main(tiny(tmp_path / "run", "minutes=0.005", "total_steps=1_000_000_000", "evaluation_opponents=[]")) == 0
    seconds = [line["seconds"] for line in lines(tmp_path / "run" / "metrics" / "progress.json")]
    assert len(seconds) > 1
    assert seconds[-2] < 0.3 <= seconds[-1]


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
     ["preset=mano_a_mano", "episode=match", "reward=equity", "lookahead=true", "opponents=[random]"],
     ["threads=2", "sure=0.2"]],
    ids=["duplas", "puxar-3-match", "mano_a_mano-equity", "threads"],
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
        (["sure_share=0"], "sure_share=0: Input should be greater than 0"),
        (["gae_lamda=1"], "unknown key 'gae_lamda' (did you mean 'gae_lambda'?)"),
        (["minutes=0"], "minutes=0: Input should be greater than 0"),
        (["preset=duplos"], "unknown preset 'duplos' (did you mean 'duplas'?)"),
        (["rules={players: 5, hand_size: 7}"], "players"),
        (["evaluation_opponents=[nobody]"], "unknown player 'nobody'"),
        (["opponents=[nobody]"], "unknown player 'nobody'"),
        (["reward=equity"], "episode must be 'match', not 'round'"),
        (
            ["reward=equity", "episode=match", "preset=puxar", "rules={players: 3}"],
            "match equity is for two sides, not 3",
        ),
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


def endless(run: Path, *changes: str) -> subprocess.Popen[str]:
    """A run that does not end by itself."""
    return start(["-m", "training.ppo", *tiny(run, "total_steps=1_000_000_000", "evaluation_opponents=[]", *changes)])


def test_signals_save_and_end_a_run(tmp_path: Path) -> None:
    processes = {number: endless(tmp_path / number.name) for number in (signal.SIGINT, signal.SIGTERM)}
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


def test_a_killed_run_goes_on_from_its_newest_checkpoint(tmp_path: Path) -> None:
    kill_and_resume(main, tmp_path / "run", endless(tmp_path / "run", "evaluate_every=1"), random.Random(0))


@pytest.mark.long
def test_a_run_killed_at_fifty_moments_always_goes_on(tmp_path: Path) -> None:
    rng = random.Random(1)
    for kill in range(50):
        run = tmp_path / f"{kill}"
        kill_and_resume(main, run, endless(run, "evaluate_every=1"), rng)
