"""Trained networks as compiled players use them: a policy that values moves, and a critic that values deals.

A player whose `networks` attribute is a `PolicyNetworks` offers both to whatever can use them, such as the search.
`read` and `write` keep them in files without pickles, which need NumPy alone.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from .._afterstates_write import PLACES, describe_deal, describe_move, recall
from .._checks import number, one_of
from .._jit import jit
from ..afterstates import Afterstates, Deals
from ..batch import EPISODES
from ..observation import list_moves, new_views
from ..players import Player
from ..rules import RuleSet, make_rules, preset_of
from .perceptron import ACTIVATIONS, Layers, Network, Scratch, forward, network_of, new_scratch

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable  # since Python 3.11

FORMAT: Final = 1
REWARDS: Final = ("points", "outcome")
_NET_NAMES: Final = ("policy", "critic")
#: What reading a damaged file may raise.
_WRONG: Final = (
    ValueError, TypeError, LookupError, AttributeError, OSError, EOFError, RecursionError, NotImplementedError,
    BadZipFile, zlib.error,
)  # fmt: skip


def critic_outputs(rules: RuleSet) -> int:
    """How many numbers a critic gives."""
    return 1 if rules.num_sides == 2 else rules.num_sides


@dataclass(frozen=True, eq=False)
class PolicyNetworks:
    """A policy and what goes with it.

    `policy` gives a number to each row of `Afterstates(rules)`, the logit of that move. `critic`, if there is one,
    tells from a row of `Deals(rules)` what the deciding side gains from there to the end of the `episode` in
    `reward` times `reward_scale`, discounted by `gamma` a decision, where decisions among one action are none: one
    number with two sides, whose other gains the opposite; else one for each side, counted from the deciding one.

    Raises:
        ValueError: a network of another shape; an unknown reward, episode or activation; a scale or discount out of
            range.
    """

    rules: RuleSet
    policy: Layers
    critic: Layers | None
    activation: str
    name: str = "policy"
    episode: str = "round"
    reward: str = "points"
    reward_scale: float = 1.0
    gamma: float = 1.0
    policy_network: Network = field(init=False, repr=False, compare=False)
    critic_network: Network | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        one_of("episode", self.episode, EPISODES)
        one_of("reward", self.reward, REWARDS)
        one_of("activation", self.activation, ACTIVATIONS)
        if not number("gamma", self.gamma, 0.0) <= 1 or not number("reward_scale", self.reward_scale, 0.0):
            raise ValueError(f"gamma={self.gamma}, reward_scale={self.reward_scale}: these are from 0 to 1, above 0")
        policy = _checked("policy", self.policy, self.activation, Afterstates(self.rules).size, 1)
        critic = self.critic and _checked(
            "critic", self.critic, self.activation, Deals(self.rules).size, critic_outputs(self.rules)
        )
        object.__setattr__(self, "policy_network", policy)
        object.__setattr__(self, "critic_network", critic)


def _checked(name: str, layers: Layers, activation: str, inputs: int, outputs: int) -> Network:
    network = network_of(layers, activation)
    if (int(network.widths[0]), int(network.widths[-1])) != (inputs, outputs):
        found = f"{network.widths[0]} inputs and {network.widths[-1]} outputs"
        raise ValueError(f"the {name} has {found}; under these rules it has {inputs} and {outputs}")
    return network


def networks_of(player: Player) -> PolicyNetworks | None:
    """The networks that a player offers; None where it has none."""
    found = getattr(player, "networks", None)
    return found if isinstance(found, PolicyNetworks) else None


class Guide(NamedTuple):
    """Networks, and room to ask them. `new_guide` makes one for each thread."""

    policy: Network
    critic: Network
    scratch: Scratch
    places: Any
    seen: Any  # a view
    actions: Any  # int64: the moves that were weighed last
    logits: Any  # float32: what the policy gives them
    shares: Any  # float64: what `share_out` gave them last
    values: Any  # float32: what the critic gave last


def new_guide(networks: PolicyNetworks) -> Guide:
    """A guide to these networks; where there is no critic, another network takes its place and is never asked."""
    rules, policy = networks.rules, networks.policy_network
    critic = networks.critic_network or policy
    return Guide(
        policy, critic, new_scratch(policy, critic), np.zeros(1, PLACES), new_views(rules, 1),
        np.zeros(rules.num_actions, np.int64), np.zeros(rules.num_actions, np.float32),
        np.zeros(rules.num_actions), np.zeros(rules.num_sides, np.float32),
    )  # fmt: skip


@jit
def weigh_moves(view: Any, rules: Any, guide: Any) -> int:
    """List the moves of a view's seat, as `list_moves` does, and the policy's logits in `guide`; how many there are."""
    count = list_moves(view, guide.actions)
    recall(view, rules, guide.places[0])
    for i in range(count):
        tile, end = guide.actions[i] >> 1, guide.actions[i] & 1
        describe_move(view, rules, tile, end, guide.places[0], guide.scratch.row)
        forward(guide.policy, guide.scratch, guide.logits[i:])
    return count


@jit
def best_move(view: Any, rules: Any, guide: Any) -> int:
    """The policy's likeliest move; of equals the first."""
    count = weigh_moves(view, rules, guide)
    return guide.actions[guide.logits[:count].argmax()]


@jit
def share_out(guide: Any, count: int, temperature: float) -> float:
    """Write each weighed move's share, which is its chance (a softmax of the logits) but for a factor; their sum."""
    highest, total = np.float64(guide.logits[:count].max()), 0.0
    for i in range(count):
        guide.shares[i] = np.exp((guide.logits[i] - highest) / temperature)
        total += guide.shares[i]
    return total


@jit
def drawn_move(view: Any, rules: Any, guide: Any, draw: float) -> int:
    """A move drawn as likely as the policy says, by a uniform number from [0, 1): the first whose share passes it."""
    count = weigh_moves(view, rules, guide)
    total, passed = share_out(guide, count, 1.0), 0.0
    for i in range(count - 1):
        passed += guide.shares[i]
        if passed > draw * total:
            return guide.actions[i]
    return guide.actions[count - 1]


@jit
def log_chance(view: Any, rules: Any, guide: Any, action: int, temperature: float, floor: float) -> float:
    """The logarithm of the chance that the policy chooses `action`.

    By a softmax of its logits over `temperature`; but with a chance of `floor` any move, each as likely, is chosen.
    """
    count = weigh_moves(view, rules, guide)
    if view["left"] == view["right"]:
        action &= ~1
    total, own = share_out(guide, count, temperature), 0.0
    for i in range(count):
        if guide.actions[i] == action:
            own = guide.shares[i]
    return np.log((1.0 - floor) * own / total + floor / count)


@jit
def expected_gain(row: Any, rules: Any, side: int, guide: Any) -> float:
    """What the critic expects a side to gain from a position on, in its units; a seat must be to act there."""
    sides, deciding = int(rules["sides"]), int(row["seat"] % rules["sides"])
    describe_deal(row, rules, guide.seen[0], guide.places[0], guide.scratch.row)
    forward(guide.critic, guide.scratch, guide.values)
    if sides == 2:
        return guide.values[0] if side == deciding else -guide.values[0]
    return guide.values[(side - deciding) % sides]


class WeightsError(ValueError):
    """A file of networks that cannot be used, with what is wrong with it."""


def write(file: Path, networks: PolicyNetworks) -> None:
    """Write networks to a ``.npz`` file; the same networks give the same bytes."""
    preset, changes = preset_of(networks.rules)
    card = {
        "format": FORMAT, "preset": preset, "rules": changes, "activation": networks.activation,
        "name": networks.name, "episode": networks.episode, "reward": networks.reward,
        "reward_scale": networks.reward_scale, "gamma": networks.gamma, **_fingerprints(networks.rules),
    }  # fmt: skip
    arrays: dict[str, Any] = {"card": np.array(json.dumps(card))}
    for name, layers in zip(_NET_NAMES, (networks.policy, networks.critic), strict=True):
        for i, (weight, bias) in enumerate(layers or ()):
            arrays |= {f"{name}.{i}.weight": _smallest(weight), f"{name}.{i}.bias": _smallest(bias)}
    part = file.with_name(f".{file.name}.part")
    with part.open("wb") as opened:
        np.savez_compressed(opened, **arrays)
    part.replace(file)


def _smallest(weights: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """The same numbers in half precision, where that holds them all."""
    with np.errstate(over="ignore"):
        half = weights.astype(np.float16)
    return half if np.array_equal(half, weights) else weights


def read_card(file: Path | Traversable) -> dict[str, Any]:
    """What a file of `write`'s says of its networks, with their ``rules``; the networks themselves are not looked at.

    Raises:
        WeightsError: no such file, or one of another format.
    """
    with _opened(file) as arrays:
        return _card_in(arrays)


def read(file: Path | Traversable) -> PolicyNetworks:
    """The networks in a file of `write`'s.

    Raises:
        WeightsError: no such file, a damaged one, or one whose networks see other positions than this version's.
    """
    with _opened(file) as arrays:
        card = _card_in(arrays)
        for layout, own in _fingerprints(card["rules"]).items():
            if card[layout] != own:
                raise WeightsError(f"it was trained on {layout} {card[layout]}; this version's are {own}")
        policy, critic = ([*_layers_in(arrays, name)] for name in _NET_NAMES)
        kept = {name: card[name] for name in ("activation", "name", "episode", "reward", "reward_scale", "gamma")}
        return PolicyNetworks(card["rules"], policy, critic or None, **kept)


def _fingerprints(rules: RuleSet) -> dict[str, str]:
    return {"afterstates": Afterstates(rules).fingerprint, "deals": Deals(rules).fingerprint}


@contextmanager
def _opened(file: Path | Traversable) -> Iterator[Mapping[str, Any]]:
    """A file's arrays; whatever is wrong with them is a WeightsError that names the file."""
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
            yield arrays
    except _WRONG as wrong:
        raise WeightsError(f"{file}: {' '.join(str(wrong).split())}") from wrong


def _card_in(arrays: Mapping[str, Any]) -> dict[str, Any]:
    card: dict[str, Any] = json.loads(str(arrays["card"]))
    if card.get("format") != FORMAT:
        raise ValueError(f"format {card.get('format')!r}; this version reads format {FORMAT}")
    card["rules"] = make_rules(card.pop("preset"), **card["rules"])
    return card


def _layers_in(arrays: Mapping[str, Any], name: str) -> Iterator[tuple[Any, Any]]:
    i = 0
    while f"{name}.{i}.weight" in arrays:
        yield arrays[f"{name}.{i}.weight"].astype(np.float32), arrays[f"{name}.{i}.bias"].astype(np.float32)
        i += 1
