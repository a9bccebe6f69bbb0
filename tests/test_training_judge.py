"""Judging policies: weights to begin with, responses to a frozen player, drops, ratings, partners who never met."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.image import imread
from safetensors.torch import load_file
from tiny_runs import TINY, equal, tiny, trainer_of

from agents import checkpoint
from agents.checkpoint import load, newest
from agents.critic import CRITIC_FILE
from agents.networks import PolicyNet
from agents.zoo import path_of
from domino_env import PRESETS, make_rules
from domino_env.arena import Estimate, duel
from domino_env.bots import make_player
from domino_env.observation import encoding_of
from training import crossplay, evaluate, exploit, ppo
from training.config import EVALUATION_SEEDS, ConfigError
from training.plots import learning_curve
from training.runs import checkpoint_of, player_of

#: Changes for the least that there is to judge.
LITTLE = ("critic_hidden=[8]", "total_steps=640", "evaluate_every=256", "evaluation_deals=10")
#: As little as a response to a policy that gives its own network sizes can be trained with.
SHORT = [change for change in (*TINY, *LITTLE) if not change.startswith(("hidden", "critic", "evaluation_opponents"))]


def critic_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / CRITIC_FILE)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, not to be written to."""
    folder = tmp_path_factory.mktemp("judge") / "run"
    assert ppo.main(tiny(folder, *LITTLE)) == 0
    return folder


@pytest.fixture
def own_run(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "own"))


# Weights to begin with


def test_a_run_begins_with_the_weights_of_another(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "next"
    assert ppo.main(tiny(folder, *LITTLE, f"start={run}", "seed=3")) == 0
    first = folder / "checkpoints" / f"{0:012d}"
    assert equal(load(first)[0].state_dict(), load(newest(run))[0].state_dict())
    assert equal(critic_of(first), critic_of(newest(run)))
    assert not equal(load(newest(folder))[0].state_dict(), load(first)[0].state_dict())
    oldest = run / "checkpoints" / f"{0:012d}"
    assert equal(trainer_of(*LITTLE, f"start={oldest}", "seed=3").actor.state_dict(), load(oldest)[0].state_dict())


def test_where_there_is_no_critic_it_begins_anew(own_run: Path) -> None:
    (newest(own_run) / CRITIC_FILE).unlink()
    trainer = trainer_of(*LITTLE, f"start={own_run}", "seed=3")
    assert equal(trainer.actor.state_dict(), load(newest(own_run))[0].state_dict())
    assert equal(trainer.critic.state_dict(), trainer_of(*LITTLE, "seed=3").critic.state_dict())


def test_a_run_goes_on_when_what_it_began_with_is_gone(own_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "next"
    assert ppo.main([*tiny(folder, *LITTLE, f"start={own_run}"), "--updates", "2"]) == 0
    shutil.rmtree(own_run)
    assert ppo.main(["--resume", str(folder)]) == 0
    assert load(newest(folder))[1].steps == 640
    assert load(newest(folder))[1].config["start"] == str(own_run)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["hidden=[32, 16]"], "start=RUN: its networks are not this run's: hidden [16] there, [32, 16] here"),
        (["critic_hidden=[16]"], "start=RUN: its networks are not this run's: critic_hidden [8] there, [16] here"),
        (["activation=tanh"], "start=RUN: its networks are not this run's: activation relu there, tanh here"),
        (["preset=blocos"], "start=RUN: its networks are not this run's: rules duplas there, blocos here"),
        (["rules={target: 3}"], "start=RUN: its networks are not this run's: rules duplas there, duplas(target=3) he"),
        (["start=RUN/nowhere"], "start=RUN/nowhere: RUN/nowhere is neither a checkpoint nor a run folder"),
        (["start=zoo/duplas"], "start=zoo/duplas: unknown policy 'zoo/duplas' (did you mean 'duplas-v1'?)"),
    ],
)  # fmt: skip
def test_weights_of_another_network_are_refused_before_anything_is_written(
    changes: list[str], message: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [change.replace("RUN", str(run)) for change in changes]
    assert ppo.main(tiny(tmp_path / "next", *LITTLE, f"start={run}", *told)) == 2
    assert f"error: {message.replace('RUN', str(run))}" in capsys.readouterr().err
    assert not (tmp_path / "next").exists()


def test_weights_that_see_something_else_are_refused(tmp_path: Path) -> None:
    rules = PRESETS["duplas"]
    seeing = PolicyNet(encoding_of(rules).size, [16], rules.num_actions)
    checkpoint.save(tmp_path / "seeing", seeing, checkpoint.make_card(rules, [16], "relu", steps=0, code=""))
    with pytest.raises(ConfigError, match="its networks are not this run's: sees observations there, afterstates here"):
        trainer_of(*LITTLE, f"start={tmp_path / 'seeing'}")


def test_a_damaged_critic_to_begin_with_is_refused(own_run: Path) -> None:
    (newest(own_run) / CRITIC_FILE).write_bytes(b"none")
    with pytest.raises(ConfigError, match=r"start=.*own: .*critic\.safetensors: "):
        trainer_of(*LITTLE, f"start={own_run}")


def test_checkpoints_of_specs(run: Path) -> None:
    assert checkpoint_of("counting") is None
    assert checkpoint_of("counting?pips=2") is None
    assert checkpoint_of("agents.policy:PolicyPlayer?mode=sample") is None
    assert checkpoint_of("zoo/duplas-v1?mode=sample") == path_of("duplas-v1")
    for spec in (f"{run}", f"{run}?mode=sample", f"agents.policy:PolicyPlayer?mode=sample&path={run}"):
        assert checkpoint_of(spec) == newest(run)
    assert player_of(f"{run}?mode=sample", PRESETS["duplas"]).mode == "sample"
    assert player_of(str(run), PRESETS["duplas"]).name == str(run)
    assert player_of("counting", PRESETS["duplas"]).name == "counting"


# Responses


def test_a_response_to_a_policy_starts_from_it_and_plays_its_rules(run: Path, tmp_path: Path) -> None:
    config = exploit.config_against(str(run), [f"run={tmp_path / 'x'}", "minutes=1"])
    spec = f"agents.policy:PolicyPlayer?path={run}"
    assert (config.opponents, config.evaluation_opponents, config.opponent_share) == ([spec], [spec], 1.0)
    assert (config.start, config.hidden, config.critic_hidden) == (str(newest(run)), [16], [8])
    assert (config.preset, config.minutes) == ("duplas", 1)
    old = exploit.config_against("zoo/duplas-v1?mode=sample", [])
    assert (old.preset, old.opponents, old.start, old.hidden) == (
        "duplas", ["zoo/duplas-v1?mode=sample"], str(path_of("duplas-v1")), [256, 128],
    )  # fmt: skip
    scripted = exploit.config_against("heaviest", ["preset=blocos", "reward=points"])
    assert (scripted.preset, scripted.reward, scripted.start) == ("blocos", "points", None)


def test_a_response_is_judged_against_the_player_as_it_was(run: Path, tmp_path: Path, capsys: Any) -> None:
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    folder = tmp_path / "exploit"
    assert exploit.main([str(run), *SHORT, f"run={folder}", "--deals", "200", "--seed", "4"]) == 0
    said = capsys.readouterr().out
    told = json.loads((folder / "exploit.json").read_text())
    rules, seed = PRESETS["duplas"], EVALUATION_SEEDS + 5
    again = duel(player_of(str(newest(folder)), rules), player_of(str(run), rules), rules, deals=200, seed=seed)
    for name, found in (("points", again.points), ("win_share", again.win_share)):
        assert Estimate(**told[name]) == found
    assert f"rounds won {again.win_share:.1%}" in said
    assert (told["player"], told["deals"], told["seed"], told["bound"]) == (str(run), 200, seed, "lower")
    assert (told["decisions"], told["start"]) == (640, str(newest(run)))
    assert told["exact"] == {"unknown": "players=4: exploitability is defined for two seats"}
    assert "lower bound" in said
    assert "exact exploitability unknown: players=4" in said
    assert before == {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}


def test_the_words_follow_from_the_interval(run: Path) -> None:
    known = {"player": "x", "seconds": 60.0, "decisions": 1000, "exact": {"points": 0.5, "win_share": 0.625}}
    rules = PRESETS["duplas"]
    better, worse = (duel(*pair, rules, deals=300) for pair in (("counting", "random"), ("random", "counting")))
    said = exploit.in_words(better, known)
    assert f"a best response gains at least about {better.points.low:+.3f} points a round and wins at least" in said
    assert f"about {better.win_share.low:.1%} of rounds: lower bounds of how exploitable the player is" in said
    assert "exactly +0.500 points a round if it plays for points, and wins 62.5% of rounds" in exploit.in_words(
        worse, known
    )
    assert "no weakness was found, which does not show that there is none" in exploit.in_words(worse, known)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["doubels"], "unknown player 'doubels' (did you mean 'doubles'?)"),
        (["zoo/duplas"], "unknown policy 'zoo/duplas' (did you mean 'duplas-v1'?)"),
        (["counting", "opponents=[random]"], "'opponents=[random]': opponents is given by the player, counting"),
        (["counting", "minuts=3"], "unknown key 'minuts' (did you mean 'minutes'?)"),
        (["counting", "--deals", "1"], "--deals 1: give at least 0, and at least 2"),
        (["zoo/duplas-v1", "preset=blocos"], "duplas-v1 was trained for duplas; it cannot play blocos"),
    ],
)
def test_what_cannot_be_exploited_is_told_in_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exploit.main([*arguments, f"run={tmp_path / 'x'}"]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.startswith("error: ")
    assert told.count("\n") == 1
    assert not (tmp_path / "x").exists()


# Evaluation


def note(run: Path, *lines: tuple[int, str, float], seconds: float = 1.0) -> None:
    """Make these a run's evaluations: steps, opponent, points a round, each plus or minus 0.1."""
    records = [
        {"steps": steps, "seconds": seconds * steps, "opponent": opponent, "points": [mean, mean - 0.1, mean + 0.1]}
        for steps, opponent, mean in lines
    ]
    (run / "evaluations.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def test_a_drop_is_told_and_fails_only_if_asked_to(own_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [str(own_run), "--deals", "50", "--opponents", "doubles"]
    note(own_run, (0, "doubles", 0.0), (256, "doubles", 3.0), (384, "doubles", 2.0))
    assert evaluate.main(command) == 0
    said = capsys.readouterr().out
    assert "below the best, in rounds against doubles: " in said
    assert "it was +3.000 [+2.900, +3.100] after 256 decisions" in said
    (newest(own_run) / "evaluation.json").unlink()
    assert evaluate.main([*command, "--fail-on-drop"]) == 1
    note(own_run, (0, "doubles", -3.0), (256, "random", 3.0), (640, "doubles", 3.0))
    (newest(own_run) / "evaluation.json").unlink()
    capsys.readouterr()
    assert evaluate.main([*command, "--fail-on-drop"]) == 0  # another opponent's, or of this very checkpoint
    assert "not below the best of what was noted earlier" in capsys.readouterr().out
    note(own_run, (256, "doubles", 3.0))
    assert evaluate.main([*command, "--fail-on-drop", "--episode", "match"]) == 0  # what was noted are rounds
    assert evaluate.main([*command, "--fail-on-drop", "--mode", "sample"]) == 0  # of the greedy policy


def test_a_drop_below_the_evaluation_of_an_earlier_checkpoint(own_run: Path, capsys: Any) -> None:
    note(own_run)
    command = ["--deals", "50", "--opponents", "doubles", "random"]
    first = sorted((own_run / "checkpoints").iterdir())[0]
    assert evaluate.main([str(first), *command]) == 0
    capsys.readouterr()
    file = first / "evaluation.json"
    results = json.loads(file.read_text())
    results[1]["points"] = {"mean": 3.0, "low": 2.9, "high": 3.1}
    file.write_text(json.dumps(results))
    assert evaluate.main([str(own_run), *command, "--fail-on-drop"]) == 1
    said = capsys.readouterr().out
    assert said.count("below the best") == 1
    assert (
        f"against random: {json.loads((newest(own_run) / 'evaluation.json').read_text())[1]['points']['mean']:+.3f}"
        in said
    )
    assert str(file) in said
    file.write_text("[{}]")
    assert evaluate.main([str(own_run), *command]) == 2
    assert "evaluation.json: not an evaluation" in capsys.readouterr().err


def test_a_drop_by_chance_is_reported_as_rarely_as_promised() -> None:
    """Equal results of 1 and of 20 earlier evaluations: at most 1 in 40 is called a drop."""
    rng, told = np.random.default_rng(5), {1: 0, 20: 0}
    now = duel("random", "random", PRESETS["duplas"], deals=2)
    for count in told:
        for _ in range(4000):
            earlier = [
                evaluate.Earlier("round", "random", Estimate.around(float(mean), 1.0), "then")
                for mean in rng.normal(size=count)
            ]
            result = type(now)(**{**vars(now), "points": Estimate.around(float(rng.normal()), 1.0)})
            told[count] += len(evaluate.drops([result], earlier))
    # 4 standard errors above 0.025; of one earlier result exactly that many are expected.
    assert 0.025 - 0.01 < told[1] / 4000 < 0.025 + 0.01
    assert told[20] / 4000 < 0.025 + 0.01


def test_all_players_are_rated_and_painted(own_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = f"{own_run}?mode=sample"
    command = [str(own_run), "--deals", "40", "--opponents", "random", "doubles", policy, "--episode", "both"]
    assert evaluate.main(command) == 0
    said, folder = capsys.readouterr().out, newest(own_run)
    results = json.loads((folder / "evaluation.json").read_text())
    assert [result["opponent"] for result in results] == ["random", "doubles", policy] * 2
    assert len({result["player"] for result in results}) == 1
    assert said.count("ratings (Elo, random = 0, with 95 % intervals)") == 2
    ladder = duel("random", "doubles", PRESETS["duplas"], deals=40, seed=EVALUATION_SEEDS + 2)
    assert f"{ladder.win_share.mean:.1%} ±" in said  # the scripted players played each other, on the same deals
    for name in ("evaluation.png", "evaluation-match.png"):
        assert f"picture: {folder / name}" in said
        assert imread(folder / name).ndim == 3
    assert f"learning curve: {own_run / 'learning.png'}" in said


def test_one_opponent_needs_no_rating(own_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main([str(own_run), "--deals", "20", "--opponents", "random"]) == 0
    assert "ratings" not in capsys.readouterr().out
    assert not (newest(own_run) / "evaluation.png").exists()


def test_a_curve_is_drawn_over_decisions_and_over_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note(tmp_path, (1_000_000, "random", 0.1), (2_000_000, "random", 0.4), seconds=30e-6)
    drawn: list[Any] = []
    monkeypatch.setattr("training.plots.Figure.savefig", lambda figure, *_, **__: drawn.append(figure))
    learning_curve(tmp_path / "evaluations.jsonl", tmp_path / "learning.png")
    by_decisions, by_time = drawn[0].axes
    assert by_decisions.get_xlabel() == "million decisions"
    assert by_decisions.lines[0].get_xydata().tolist() == [[1.0, 0.1], [2.0, 0.4]]
    assert by_time.get_xlabel() == "minutes of training"
    assert by_time.lines[0].get_xydata().tolist() == [[0.5, 0.1], [1.0, 0.4]]


# Partners


def test_mixed_pairs_less_pure_ones_computed_from_their_duels(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "crossplay.json"
    command = [
        "counting",
        "random",
        "heaviest",
        "--opponents",
        "doubles",
        "random",
        "--deals",
        "300",
        "--json",
        str(file),
    ]
    assert crossplay.main(command) == 0
    said = capsys.readouterr().out
    first, second = json.loads(file.read_text())
    assert (first["opponent"], second["opponent"]) == ("doubles", "random")
    rules, seed = PRESETS["duplas"], EVALUATION_SEEDS + 2
    shares = {}
    for one, other in (("counting", "random"), ("counting", "counting"), ("random", "random")):
        samples = duel((one, other) if one != other else one, "doubles", rules, deals=300, seed=seed).samples
        assert samples is not None
        shares[one, other] = samples.shares
    apart = shares["counting", "random"] - (shares["counting", "counting"] + shares["random", "random"]) / 2
    found = first["less_pure"][0]
    assert found.pop("pair") == ["counting", "random"]
    expected = Estimate.of(apart)
    assert found == pytest.approx({"mean": expected.mean, "low": expected.low, "high": expected.high})
    assert first["average"]["mean"] == pytest.approx(np.mean([pair["mean"] for pair in first["less_pure"]]))
    assert [pair["pair"] for pair in first["pairs"]][:2] == [["counting", "counting"], ["counting", "random"]]
    assert f"counting + random: {apart.mean():+.2%} [" in said
    assert "pairs against random, rounds won (300 deals, duplas" in said


def test_a_player_under_another_name_is_a_partner_as_good_as_itself() -> None:
    rules = PRESETS["duplas"]
    players = [make_player(spec, rules) for spec in ("counting", "counting?pips=0.44")]
    found = crossplay.cross_play(players, make_player("doubles", rules), rules, deals=100, seed=EVALUATION_SEEDS)
    assert found.average == Estimate(0.0, 0.0, 0.0)
    assert len({duel.win_share.mean for duel in found.pairs.values()}) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["counting"], "players counting: give at least two, of different names"),
        (["counting", "counting"], "players counting, counting: give at least two, of different names"),
        (["counting", "random", "--preset", "blocos"], "blocos has no partners; cross-play needs rules with pairs"),
        (["counting", "randm"], "unknown player 'randm' (did you mean 'random'?)"),
        (["counting", "random", "--seed", "-2"], "--seed -2: give 0 or more"),
        (["zoo/duplas-v2", "counting"], "unknown policy 'zoo/duplas-v2'"),
    ],
)
def test_pairs_that_cannot_be_made(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert crossplay.main([*arguments, "--deals", "10"]) == 2
    assert f"error: {message}" in capsys.readouterr().err


def test_the_rules_are_those_of_a_policy_among_the_players(tmp_path: Path) -> None:
    policy, card = load(path_of("duplas-v1"))
    rules = make_rules("duplas", points_carroca=5)
    other = checkpoint.make_card(rules, card.hidden, card.activation, steps=0, code="", sees=card.sees)
    folder = checkpoint.save(tmp_path / "x", policy, other)
    assert crossplay.rules_of(["counting", str(folder)], "blocos") == rules
    assert crossplay.rules_of(["counting", "zoo/duplas-v1"], "blocos") == PRESETS["duplas"]
    assert crossplay.rules_of(["counting"], "blocos") == PRESETS["blocos"]
