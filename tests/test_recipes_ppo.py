"""The PPO recipe in one file: advantages, what a rollout holds, and that it learns."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from domino_env import PRESETS, RuleSet
from domino_env.envs.vector import DominoVectorEnv
from domino_env.players import Streams

PROGRAM = Path(__file__).parents[1] / "docs" / "recipes" / "ppo.py"


@pytest.fixture(scope="module")
def recipe() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(PROGRAM)))


def rollout(recipe: SimpleNamespace, steps: int, n: int) -> tuple[SimpleNamespace, SimpleNamespace]:
    torch.manual_seed(0)
    tables = recipe.Tables(PRESETS["duplas"], n, "random", 3)
    return tables, tables.play(recipe.Agent(PRESETS["duplas"], 16), steps)


def test_advantages_are_those_of_each_episode_alone(recipe: SimpleNamespace) -> None:
    """Against sums of discounted errors, written out for each episode; the last one goes on after the rollout."""
    gamma, gae_lambda = 0.9, 0.8
    generator = torch.Generator().manual_seed(1)
    rewards, values = torch.randn(2, 40, 3, generator=generator)
    ended = (torch.rand(40, 3, generator=generator) < 0.2).float()
    last = torch.randn(3, generator=generator)
    empty = torch.zeros(0)
    played = recipe.Rollout(empty, empty, empty, empty, values, rewards, ended, last)
    found = recipe.advantages(played, gamma, gae_lambda)
    for table in range(3):
        for t in range(40):
            stop = next((k for k in range(t, 40) if ended[k, table]), 39)
            expected = 0.0
            for k in range(t, stop + 1):
                following = 0.0 if ended[k, table] else last[table] if k == 39 else values[k + 1, table]
                error = rewards[k, table] + gamma * following - values[k, table]
                expected += (gamma * gae_lambda) ** (k - t) * error
            assert found[t, table] == pytest.approx(float(expected), abs=1e-5)
    whole = recipe.advantages(played, 1.0, 1.0)[:, 0] + values[:, 0]
    first_end = int(ended[:, 0].argmax())
    assert whole[0] == pytest.approx(float(rewards[: first_end + 1, 0].sum()), abs=1e-5)


def test_every_row_is_a_decision_that_was_played(recipe: SimpleNamespace) -> None:
    tables, played = rollout(recipe, 60, 8)
    replayed = DominoVectorEnv("duplas", num_envs=8, autoreset_mode="SameStep", strict=True)
    observation, infos = replayed.reset(seed=np.random.SeedSequence(3).generate_state(8, np.uint64))
    to_act = replayed.encoding.slices["to_act"].start
    for t in range(60):
        assert (played.observations[t].numpy() == observation).all()
        assert (played.legal[t].numpy() == infos["action_mask"]).all()
        assert (observation[:, to_act] == 1).all()  # the learner's turn: no row is there only to be reset
        observation, rewards, ended, _, infos = replayed.step(played.actions[t].numpy())
        assert (played.rewards[t].numpy() == rewards).all()
        assert (played.ended[t].numpy() == ended).all()
    assert (tables.observation == observation).all()
    assert played.ended.sum() > 40
    chosen = played.legal.gather(-1, played.actions.unsqueeze(-1))
    assert (chosen == 1).all()


def test_an_update_uses_every_decision_and_moves_the_policy_towards_what_was_better(recipe: SimpleNamespace) -> None:
    _, played = rollout(recipe, 32, 8)
    agent = recipe.Agent(PRESETS["duplas"], 16)
    args = recipe.parse(["--epochs", "3", "--batch-size", "100"])
    used: list[int] = []
    agent.register_forward_hook(lambda module, given, result: used.append(len(given[0])))
    with torch.no_grad():
        policy, values = recipe.Agent.forward(agent, played.observations, played.legal)
    same = played._replace(log_probs=policy.log_prob(played.actions), values=values)
    better = recipe.advantages(same, args.gamma, args.gae_lambda)
    told = recipe.update(agent, torch.optim.Adam(agent.parameters(), lr=1e-3), same, args)
    assert sum(used) == 3 * 32 * 8
    assert all(np.isfinite(value) for value in told.values())
    with torch.no_grad():
        after, _ = recipe.Agent.forward(agent, played.observations, played.legal)
    change = after.log_prob(played.actions) - same.log_probs
    assert float(((better - better.mean()) * change).mean()) > 0


@pytest.mark.parametrize("preset", PRESETS)
def test_the_player_plays_the_likeliest_legal_action(
    recipe: SimpleNamespace, preset: str, random_views: object
) -> None:
    rules: RuleSet = PRESETS[preset]
    agent = recipe.Agent(rules, 16)
    torch.nn.init.normal_(agent.actor.weight)
    player = recipe.AgentPlayer(rules, agent)
    views = random_views(rules, 300)  # type: ignore[operator]
    actions = player.act(views, Streams.from_seed(0, 300))
    with torch.no_grad():
        logits = agent.actor(agent.trunk(torch.from_numpy(player.encoding.vectors(views)).float())).numpy()
    for view, action, row in zip(views, actions, logits, strict=True):
        legal = [2 * t + end for end in (0, 1) for t in range(28) if int(view["legal"][end]) >> t & 1]
        assert action == max(legal, key=lambda a: row[a])


@pytest.mark.long
@pytest.mark.parametrize(("preset", "decisions"), [("duplas", 200_000), ("puxar", 60_000)])
def test_it_beats_random_on_deals_it_never_saw(recipe: SimpleNamespace, preset: str, decisions: int) -> None:
    (result,) = recipe.main(
        ["--preset", preset, "--decisions", str(decisions), "--deals", "2000", "--against", "random"]
    )
    assert result.verdict == "better"


@pytest.mark.long
@pytest.mark.parametrize("preset", PRESETS)
def test_it_runs_small_and_saves_what_it_learned(recipe: SimpleNamespace, preset: str, tmp_path: Path) -> None:
    arguments = ["--preset", preset, "--decisions", "2000", "--tables", "16", "--steps", "16", "--batch-size", "64"]
    results = recipe.main([*arguments, "--deals", "20", "--save", str(tmp_path / "policy.pt")])
    assert [result.opponent for result in results] == ["random", "doubles"]
    agent = recipe.Agent(PRESETS[preset], 128)
    agent.load_state_dict(torch.load(tmp_path / "policy.pt"))
    again = recipe.main([*arguments, "--deals", "20"])  # the same seed learns the same
    assert again == results
