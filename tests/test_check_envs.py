"""The commands of check_envs.py: a little of each every day, more with the long tests; and that they see faults."""

from __future__ import annotations

from typing import Any

import check_envs
import numpy as np
import pytest
from check_envs import AGENTS, GAMES, KINDS, LEARNERS, TYPES, Eyes, Found, leaks, play_learners

from domino_env.envs.aec import raw_env


@pytest.mark.parametrize("kind", TYPES)
def test_steps_and_rewards_of_every_kind(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    check_envs.main(["steps", "--steps", "2100", "--types", kind])
    check_envs.main(["rewards", "--rounds", "12", "--types", kind])
    printed = capsys.readouterr().out
    assert f"{kind}: 2,1" in printed or f"{kind}: 2,2" in printed
    assert printed.count("match-outcome") == len(GAMES)


@pytest.mark.parametrize("game", GAMES)
def test_leaks(game: str, capsys: pytest.CaptureFixture[str]) -> None:
    check_envs.main(["leaks", "--rounds", "2", "--redeals", "5", "--games", game, "--rgb-every", "500"])
    assert capsys.readouterr().out.count("texts") == 2


@pytest.mark.long
@pytest.mark.parametrize("kind", TYPES)
def test_steps_and_rewards_of_every_kind_many_times(kind: str) -> None:
    check_envs.main(["steps", "--steps", "200000", "--types", kind, "--seed", "2"])
    check_envs.main(["rewards", "--rounds", "1000", "--types", kind, "--seed", "2"])


@pytest.mark.long
@pytest.mark.parametrize("game", GAMES)
def test_leaks_in_many_rounds(game: str) -> None:
    check_envs.main(["leaks", "--rounds", "20", "--games", game, "--seed", "2"])


@pytest.mark.parametrize("kind", LEARNERS)
def test_the_commands_see_wrong_rewards_masks_and_observations(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step = check_envs.Learners.step
    rules = GAMES["mano_a_mano"]

    def spoil(what: int, value: Any) -> None:
        def spoiled(made: Any, actions: Any) -> Any:
            given = [part.copy() for part in step(made, actions)]
            given[what] = value(given[what])
            return tuple(given)

        monkeypatch.setattr(check_envs.Learners, "step", spoiled)

    spoil(2, lambda rewards: rewards * 2)
    with pytest.raises(Found, match="received"):
        play_learners(kind, rules, 1, rounds=40)
    spoil(1, lambda mask: np.ones_like(mask))
    with pytest.raises(Found, match="not the engine's legal actions"):
        play_learners(kind, rules, 1, steps=200)
    spoil(0, lambda observation: observation * 2)
    with pytest.raises(Found, match="zeros and ones"):
        play_learners(kind, rules, 1, steps=200)


@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)
def test_the_commands_see_what_agents_get_wrong(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rules, observe, step = GAMES["duplas"], raw_env.observe, raw_env.step

    def halved(e: Any, action: Any) -> None:
        step(e, action)
        e._cumulative_rewards = {agent: reward / 2 for agent, reward in e._cumulative_rewards.items()}

    with monkeypatch.context() as patch:
        patch.setattr(raw_env, "step", halved)
        with pytest.raises(Found, match=r"last\(\) told"):
            check_envs.reward_agents(make, rules, 1, 20, *KINDS[0])

    for name, value, words in (("observation", 2, "zeros and ones"), ("action_mask", 1, "engine's legal")):

        def spoiled(e: Any, agent: Any, name: str = name, value: int = value) -> Any:
            seen = observe(e, agent)
            seen[name][:] = value
            return seen

        monkeypatch.setattr(raw_env, "observe", spoiled)
        with pytest.raises(Found, match=words):
            check_envs.step_agents(make, rules, 1, 100)


def test_the_commands_see_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    few: Any = {"ansi_every": 1, "rgb_every": 0}
    for name, words, field in (("bytes_for", "what it is given", "hands"), ("shown", "what ansi shows", "deck")):
        right = getattr(Eyes, name)

        def leaking(eyes: Any, state: Any, *asked: Any, right: Any = right, field: str = field) -> Any:
            return right(eyes, state, *asked), state[field].tobytes()

        with monkeypatch.context() as patch:
            patch.setattr(Eyes, name, leaking)
            with pytest.raises(Found, match=words):
                leaks(GAMES["duplas"], 1, 1, 5, **few)
