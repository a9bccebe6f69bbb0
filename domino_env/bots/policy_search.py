"""What search needs of trained networks: how likely others' plays were, and what a position is worth.

`search` samples the deals and compares the moves, whatever it is guided by. A policy and its critic take the place of
the scripted player's scores and of its playouts:

- A deal counts by how likely the policy would have played at the other seats as they did. Of deals drawn with equal
  chances few count at all then. Where all tiles are in hands, a search therefore walks from one likely deal to another.
- A move is followed by those that are forced and a few that the policy likes best, and then the critic says what the
  position is worth: on average over how the policy, which sees nobody else's tiles, goes on from there in this very
  deal. A critic knows little of what a single move does, and errs in the same way in all deals; the more moves are
  played before it is asked the less it errs, but the more deals differ, and so many of them are needed.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from .._checks import one_of
from .._jit import jit
from .networks import Guide, PolicyNetworks, expected_gain, new_guide, weigh_moves

#: How positions can be valued.
VALUES: Final = ("critic", "playout")
#: How strictly the others are taken to play as the policy: as it was trained to.
TEMPERATURE: Final = 1.0
#: How much the policy's liking counts beside the values of moves, which are known from so many deals.
PRIOR: Final = 0.03
PRIOR_DEALS: Final = 64
#: So many moves of choice are played before the critic is asked.
PLIES: Final = 2
#: So many deals are drawn anew; then, if fewer than this share of them count, the others come from a walk.
STARTS: Final = 16
ENOUGH: Final = 0.3
#: Exchanges that are tried on the way from one deal to the next.
STEPS: Final = 4
#: A player is taken to choose any of its moves so often, or one odd play would rule out a deal.
FLOOR: Final = 0.02
#: A deal that is e**7 times as unlikely as another counts for nothing.
NEGLIGIBLE: Final = 7.0
#: What a critic foretells, by episode and reward, and what a searcher then wants.
AIM_OF: Final = {("round", "points"): "points", ("round", "outcome"): "round", ("match", "outcome"): "match"}


class Advice(NamedTuple):
    """What compiled search is guided by, where it is by networks."""

    guide: Guide
    settings: Any  # of one record


SETTINGS: Final = np.dtype([("plies", np.int64), ("factor", np.float64), ("base", np.float64), ("prior", np.float64)])
#: More moves than any round has.
_TO_THE_END: Final = 1_000_000


def aim_for(networks: PolicyNetworks, aim: str | None, value: str) -> str | None:
    """What to go for with these networks, where `aim` is asked for; None leaves it open.

    Raises:
        ValueError: positions are to be valued by a critic, but there is none, or it foretells something else.
    """
    own = AIM_OF.get((networks.episode, networks.reward)) if networks.critic else None
    if value != "critic":
        return aim or own
    if networks.critic is None:
        raise ValueError(f"policy {networks.name!r} has no critic, so value='playout' is all that it can do")
    foretold = f"the critic of {networks.name!r} foretells the {networks.reward} of a {networks.episode}"
    if own is None:
        raise ValueError(f"{foretold}, which is no aim; value='playout' does without it")
    if aim not in (None, own):
        raise ValueError(f"aim={aim!r}: {foretold}, so aim={own!r} is what it can be used for")
    return own


def new_advice(networks: PolicyNetworks, value: str, *, prior: float, plies: int) -> Advice:
    """Networks as compiled search asks them; the options are `SearchPlayer`'s."""
    settings = np.zeros(1, SETTINGS)
    settings["plies"] = _TO_THE_END if one_of("value", value, VALUES) == "playout" else plies
    settings["factor"] = networks.gamma / networks.reward_scale
    if networks.episode == "match":  # it foretells 1 for a match won and -1 for one lost: a chance of 1 and of 0
        settings["factor"] /= 2
        settings["base"] = 0.5
    settings["prior"] = prior * settings["factor"]
    return Advice(new_guide(networks), settings)


@jit
def foreseen(row: Any, rules: Any, side: int, advice: Any) -> float:
    """What the critic takes a position with a seat to act to be worth to a side, in the units of the aim."""
    settings = advice.settings[0]
    return settings["base"] + settings["factor"] * expected_gain(row, rules, side, advice.guide)


@jit
def like_moves(view: Any, rules: Any, prior: Any, advice: Any) -> None:
    """Write how much the policy likes each of a view's moves, but for a number that is the same for all."""
    count = weigh_moves(view, rules, advice.guide)
    for i in range(count):
        prior[i] = advice.settings[0]["prior"] * advice.guide.logits[i]
