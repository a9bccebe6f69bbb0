"""A cheat that sees all hands: the ceiling that honest players are measured against."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._checks import one_of
from .._jit import jit
from ..observation import Views
from ..players import Player, Streams
from ..rules import RuleSet, pack
from ..state import State
from .solver import NO_LIMIT, action_values, new_work, points_payoff, set_payoff, win_payoff

#: What it goes for, and how the solver is told.
AIMS = {"points": points_payoff, "round": win_payoff}


@jit
def _act_many(state: Any, rules: Any, work: Any, values: Any, out: Any) -> None:
    for t in range(state.shape[0]):
        values[:] = -np.inf
        action_values(state[t], rules, work, int(state[t]["seat"] % rules[0]["sides"]), NO_LIMIT, values)
        out[t] = values.argmax()


class OraclePlayer(Player):
    """Plays the move that is best if everybody saw all hands and the boneyard, by the solver.

    It cheats, and only the arena lets it. Its opponents do not see all, so that it wins more than the solver
    promises; still it is no upper bound in the strict sense: who knew how the others choose could win more.

    Args:
        rules: what it plays.
        aim: ``"points"`` in the round, or the ``"round"`` however many points.

    Raises:
        ValueError: an unknown aim.
    """

    sees_all = True

    def __init__(self, rules: RuleSet, *, aim: str = "points") -> None:
        super().__init__(rules)
        self.name = "oracle"
        self._work = new_work(rules)
        set_payoff(self._work, AIMS[one_of("aim", aim, tuple(AIMS))](rules))

    def act(self, views: Views, rng: Streams) -> npt.NDArray[np.int64]:
        """Refused: a view does not show what this player needs.

        Raises:
            ValueError: always.
        """
        raise ValueError("it sees all hands, and a view does not show them: only the arena can seat it")

    def act_on(self, state: State, rng: Streams) -> npt.NDArray[np.int64]:
        """The first of the best moves at each table, (n,)."""
        out = np.zeros(len(state), np.int64)
        _act_many(state, pack(self.rules), self._work, np.zeros(self.rules.num_actions), out)
        return out
