"""Several threads at work on parts of the same rows."""

from __future__ import annotations

import threading

import pytest
import torch
from tiny_runs import trainer_of

from training.parallel import Threads


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_each_thread_does_a_part_and_results_come_in_order(count: int, rows: int) -> None:
    parts = Threads(count).each(lambda part: (part.tolist(), threading.get_ident(), torch.get_num_threads()),
                                torch.arange(rows))  # fmt: skip
    assert [row for part, _, _ in parts for row in part] == list(range(rows))
    assert len(parts) == (count if rows >= count else 1)
    assert parts[0][1] == threading.get_ident()
    assert all(torches == 1 for _, _, torches in parts[1:])


def test_an_error_in_any_part_is_raised() -> None:
    def fail(part: torch.Tensor) -> None:
        if 9 in part.tolist():
            raise RuntimeError("nine")

    threads = Threads(2)
    with pytest.raises(RuntimeError, match="nine"):
        threads.each(fail, torch.arange(10))
    assert threads.each(fail, torch.arange(4)) == [None, None]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_gradients_and_figures_are_those_of_all_rows_at_once(count: int) -> None:
    torch.manual_seed(0)
    inputs, wanted = torch.randn(50, 4, dtype=torch.float64), torch.randn(50, 2, dtype=torch.float64)
    net = torch.nn.Linear(4, 2, dtype=torch.float64)

    def loss_of(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        loss = (net(inputs[rows]) - wanted[rows]).square().sum()
        return loss, torch.stack([loss.detach(), torch.tensor(float(len(rows)), dtype=torch.float64)])

    loss, noted = loss_of(torch.arange(50))
    loss.backward()
    expected = [parameter.grad.clone() for parameter in net.parameters()]
    found = Threads(count).differentiate(loss_of, torch.arange(50), list(net.parameters()))
    torch.testing.assert_close(found, noted)
    for parameter, gradient in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


@pytest.mark.parametrize("changes", [[], ["lookahead=true"], ["preset=puxar", "rules={players: 3}"]])
def test_policies_learn_the_same_whatever_the_number_of_threads(changes: list[str]) -> None:
    one, three = (trainer_of("tables=64", "steps=8", f"threads={threads}", *changes) for threads in (1, 3))
    figures = [trainer.update() for trainer in (one, three)]
    assert torch.equal(one.rollout.action, three.rollout.action)
    for name in ("loss_policy", "loss_value", "entropy", "grad_actor", "grad_critic"):
        assert figures[0][name] == pytest.approx(figures[1][name], rel=1e-3, abs=1e-5)
    for net, other in ((one.actor, three.actor), (one.critic, three.critic)):
        for weight, same in zip(net.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(weight, same, rtol=1e-3, atol=1e-4)
