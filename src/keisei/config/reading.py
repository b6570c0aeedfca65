"""Reads settings: from a mapping (a YAML file, or keywords) and from assignments such as those of ``--set``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from keisei.config.problems import problem_report, problems_in
from keisei.config.settings import AnySettings, shown
from keisei.errors import ConfigError

__all__ = ["apply_overrides", "parse_settings"]


def parse_settings(
    cls: type[AnySettings], mapping: Mapping[str, Any] | None, where: str = "settings"
) -> AnySettings:
    """Builds ``cls`` from a mapping, or raises one ``ConfigError`` that lists all problems.

    ``where`` names the source in the message, such as the path of a file. None stands for an empty file.
    """
    if mapping is None:
        mapping = {}
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{where} must hold a table of settings (key: value), got {shown(mapping)}")
    try:
        return cls.model_validate(dict(mapping))
    except ValidationError as error:
        problems = problems_in(cls, mapping, error.errors(include_url=False))
    raise ConfigError(problem_report(where, problems)) from None


def apply_overrides(mapping: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Applies assignments such as ``learner.clip=0.1`` to a copy of a mapping and returns the copy.

    Values are read as YAML, so ``a=3`` is a number, ``a=[1, 2]`` a list and ``a=null`` None.
    """
    result = deepcopy(dict(mapping))
    problems = []
    for override in overrides:
        try:
            _assign(result, override)
        except ValueError as error:
            problems.append(f"{override}: {error}")
    if problems:
        raise ConfigError(problem_report("--set", problems))
    return result


def _assign(mapping: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    parts = key.strip().split(".")
    if not equals:
        raise ValueError("write it as key=value")
    if not all(parts):
        raise ValueError(f"{key!r} is not a key; write it as part.setting=value")
    import yaml  # `keisei games` needs settings and no YAML

    try:
        value = _number_or_itself(yaml.safe_load(text))
    except yaml.YAMLError:
        raise ValueError(f"{text!r} is not valid YAML; put quotes around a text with special signs") from None
    table = mapping
    for depth, part in enumerate(parts[:-1], start=1):
        child = table.get(part)
        if child is None:
            child = table[part] = {}
        if not isinstance(child, dict):
            raise ValueError(f"{'.'.join(parts[:depth])} is {shown(child)} and has no settings below it")
        table = child
    table[parts[-1]] = value


def _number_or_itself(value: object) -> object:
    """Reads ``1e-3`` as a number, which YAML 1.1 reads as text."""
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value):
        return float(value)
    return value
