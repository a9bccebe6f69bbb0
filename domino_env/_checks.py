"""Checks of arguments, with the message that says what was given and what is allowed."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any


def integer(value: Any) -> int | None:
    """`value` as an int; None where it is no whole number.

    True is one to Python, and an array of one number has an index as well: neither is meant.
    """
    if type(value).__name__ in ("bool", "bool_", "ndarray"):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def whole(name: str, value: Any, low: int, high: int | None = None, *, also: str = "") -> int:
    """`value` as an int from `low` to `high`; ValueError naming it where it is not a whole number there."""
    number = integer(value)
    if number is None or number < low or (high is not None and number > high):
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name}={value!r} is not a whole number {bounds}{also}")
    return number


def number(name: str, value: Any, low: float) -> float:
    """`value` as a float of at least `low`; ValueError naming it where it is not a finite number there."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value < math.inf:
        raise ValueError(f"{name}={value!r} is not a number of at least {low:g}")
    return float(value)


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """`value` where it is one of the words `allowed`; ValueError where it is not."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(allowed)}{near(value, allowed)}")
    return value


def near(given: Any, names: Iterable[str]) -> str:
    """A hint at the name that was probably meant, or nothing."""
    close = difflib.get_close_matches(given, list(names), n=1) if isinstance(given, str) else []
    return f" (did you mean {close[0]!r}?)" if close else ""
