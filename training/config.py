"""Configurations: a typed model, filled from a YAML file and ``key=value`` arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from domino_env._checks import near

#: Training seeds lie below this bound and evaluation seeds above, so that no deal is in both.
EVALUATION_SEEDS = 2**32


def evaluation_seed(seed: int) -> int:
    """The seed of the deals to judge on, for what was given as ``--seed``: none that training plays, or judges by.

    Raises:
        ValueError: a negative number.
    """
    if seed < 0:
        raise ValueError(f"--seed {seed}: give 0 or more")
    return EVALUATION_SEEDS + 1 + seed


class ConfigError(ValueError):
    """A configuration that cannot be used: every reason, one a line."""


class Config(BaseModel):
    """The base of every program's configuration: unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


C = TypeVar("C", bound=Config)


def load_config(kind: type[C], file: str | Path, changes: Sequence[str] = ()) -> C:
    """The configuration in a YAML file, with ``key=value`` changes (values are YAML too).

    Raises:
        ConfigError: no such file, not YAML, unknown keys (near names are suggested), wrong values.
    """
    try:
        text = Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not a text file ({error.reason} at byte {error.start})") from error
    values = _read(text, str(file)) or {}
    if not isinstance(values, dict):
        raise ConfigError(f"{file}: expected 'key: value' lines, found {type(values).__name__}")
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f"{change!r}: write key=value")
        values[key] = _read(value, repr(change))
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{file}: {_told(kind, problem)}" for problem in error.errors())) from None


class _Loader(yaml.SafeLoader):
    """Safe loading that refuses a key given twice and reads 1e-3 as a number (YAML 1.1 wants 1.0e-3)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is given twice", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+[eE][-+]?\d+$"), list("-+0123456789"))


def _read(text: str, place: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        reason = " ".join(str(getattr(error, "problem", None) or error).split())
        raise ConfigError(f"{place}: {where}{reason}") from error


def _told(kind: type[Config], problem: Any) -> str:
    """What is wrong with one value, in one line."""
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"unknown key {name!r}{near(name, kind.model_fields)}; keys: {', '.join(kind.model_fields)}"
    if problem["type"] == "missing":
        return f"{name} is missing"
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    return f"{name}={problem['input']!r}: {problem['msg']}"
