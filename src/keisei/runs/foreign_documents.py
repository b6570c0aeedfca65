"""Settings and documents that somebody else may have written, as YAML and JSON.

Keisei itself writes only tables, lists, texts, and numbers that fit a machine word. Everything else is refused by a
``ValueError`` that says what is wrong. No document can take long or crash the process. This needs checks of its own:
libyaml overflows the stack on deep nesting, a few aliases can stand for billions of values, and Python refuses huge
numbers only when it prints them.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

__all__ = [
    "EARLIER_REGIMES",
    "LARGEST_NUMBER",
    "LARGEST_SETTINGS",
    "as_written_today",
    "check_plain",
    "json_of",
    "settings_of",
    "shown_text",
    "typed",
]

EARLIER_REGIMES = {"self-play": "ppo", "pool": "dqn"}
"""The names of regimes in earlier versions, and ours."""

LARGEST_SETTINGS = 1 << 20
"""Bytes of a file of settings."""
LARGEST_NUMBER = 1 << 64
"""Whole numbers of a run are seeds, counts and times, and smaller than this."""
_DEEPEST = 32
"""Tables within tables. Settings have four levels."""
_LONGEST_WORD = 4096
"""Letters of a value without quotes. YAML takes minutes to read some kinds of long numbers."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The same as ``yaml.safe_load``, ten times as fast where libyaml is there: a dashboard reads hundreds of files."""
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)

T = TypeVar("T")


def settings_of(text: str) -> dict[str, Any] | None:
    """Reads a table of settings; None if the text is empty. Anchors and aliases are refused."""
    if len(text) > LARGEST_SETTINGS:
        raise ValueError(f"it has {len(text):,} letters, and settings have at most {LARGEST_SETTINGS:,}")
    try:
        _check_events(text)
        found = yaml.load(text, _LOADER)
    except ValueError:
        raise
    except yaml.YAMLError as error:
        raise ValueError(f"it is not valid YAML: {error}") from error
    except Exception as error:  # values with a tag that they do not fit, in many ways
        raise ValueError(f"it has a value that is none of its kind: {error!r}") from error
    if not isinstance(found, dict | None):
        raise ValueError(f"it must hold a table of settings (key: value), got {_short(found)}")
    check_plain(found)
    return None if found is None else as_written_today(found)


def as_written_today(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Renames settings of earlier versions to today's name of the regime."""
    learner = settings.get("learner")
    if not isinstance(learner, Mapping) or str(learner.get("regime")) not in EARLIER_REGIMES:
        return dict(settings)
    return {**settings, "learner": {**learner, "regime": EARLIER_REGIMES[learner["regime"]]}}


def json_of(content: bytes | str) -> Any:
    """Reads JSON. Numbers must be finite and fit a machine word, and texts must be valid UTF-8."""
    try:
        return json.loads(
            content, parse_constant=_refused_constant, parse_float=_finite, parse_int=_whole_number
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def typed(cls: type[T], document: object) -> T:
    """Makes a dataclass of a table, and checks the type of every field by its annotation. A list becomes a tuple; a
    null for a float becomes NaN. Fields of later versions are left out."""
    if not isinstance(document, Mapping):
        raise ValueError(f"it must be a table, got {_short(document)}")
    hints, values = _hints(cls), {}  # type: ignore[arg-type]
    for field in fields(cls):  # type: ignore[arg-type]
        if field.name in document:
            values[field.name] = _as(hints[field.name], document[field.name], field.name)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"it has no {field.name}")
    return cls(**values)


def shown_text(text: str) -> str:
    """Makes a text that can be written as UTF-8. Names of files may have bytes that are not valid text."""
    return text.encode("utf-8", "backslashreplace").decode()


def _check_events(text: str) -> None:
    """Checks the structure before any value is built from it."""
    depth = 0
    for event in yaml.parse(text, _LOADER):
        depth += isinstance(event, _OPENING) - isinstance(event, _CLOSING)
        if depth > _DEEPEST:
            raise ValueError(f"it has more than {_DEEPEST} tables and lists within each other")
        if getattr(event, "anchor", None) is not None:
            raise ValueError("it has an alias (& or *); write the settings out")
        if isinstance(event, yaml.ScalarEvent) and not event.style and len(event.value) > _LONGEST_WORD:
            raise ValueError(f"it has a value of {len(event.value):,} letters without quotes")


def check_plain(value: Any) -> None:
    """Refuses values that settings do not have, such as sets, and numbers that cannot be printed."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, date):
                raise ValueError(f"it has {key} for a name, and a name is a text; write it in quotes")
            check_plain(key)
            check_plain(item)
    elif isinstance(value, list):
        for item in value:
            check_plain(item)
    elif isinstance(value, str):
        _text(value)
    elif isinstance(value, int):
        _in_range(value)
    elif not isinstance(value, float | date | None):
        raise ValueError(f"it has a value of the type {type(value).__name__}, which is none of a setting")


def _as(hint: Any, value: Any, name: str) -> Any:
    """Converts a value to the type of its annotation."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return None if value is None else _as(next(h for h in inner if h is not type(None)), value, name)
    if origin is tuple and isinstance(value, list):
        return tuple(_as(inner[0], item, name) for item in value)
    if origin is not None and origin is not tuple and isinstance(value, dict):
        return {_text(key): _as(inner[1], item, name) for key, item in value.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        return typed(hint, value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    return _scalar(hint, value, name)


def _scalar(hint: Any, value: Any, name: str) -> Any:
    if hint is float and value is None:
        return math.nan
    if hint is float and type(value) in (int, float):
        return _finite(value)
    if hint is int and type(value) is int:
        return _in_range(value)
    if hint is str and isinstance(value, str):
        return _text(value)
    if hint is bool and isinstance(value, bool):
        return value
    raise ValueError(f"{name} must be {getattr(hint, '__name__', hint)}, got {_short(value)}")


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _finite(value: str | float) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{_short(value)} is not a finite number")
    return number


def _whole_number(text: str) -> int:
    if len(text) > 20:
        raise ValueError(f"{_short(text)} is too large a number")
    return int(text)


def _in_range(value: int) -> int:
    if not -LARGEST_NUMBER < value < LARGEST_NUMBER:
        raise ValueError("it has a whole number of more than 64 bits")
    return value


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise ValueError(f"{_short(text)} must be a text")
    if not text.isascii():
        text.encode()  # raises a ValueError for half of a surrogate pair
    return text


def _refused_constant(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _short(value: object) -> str:
    """Shows the beginning of a value of any size."""
    text = value if isinstance(value, str) else repr(value) if isinstance(value, float | bool | None) else ""
    return (
        repr(text[:60]) if isinstance(value, str) else text or f"a value of the type {type(value).__name__}"
    )
