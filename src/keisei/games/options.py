"""Checks of the arguments of ``make_game``, with messages that say what to do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from keisei.errors import ConfigError
from keisei.ranges import MAX_SEED

MAX_BATCH = 1 << 20
MAX_GAME = (1 << 31) - 1
NUMBERING = ("batch", "seed", "first_game")


def whole_number(name: str, value: object, low: int, high: int) -> int:
    """Checks that ``value`` is a whole number in ``low`` … ``high``, and returns it as an int."""
    allowed = f"{name} must be a whole number in {low} … {high}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ConfigError(f"{allowed}; got {value!r} ({type(value).__name__})")
    number = int(value.__index__())
    if not low <= number <= high:
        raise ConfigError(f"{allowed}; got {number}")
    return number


def check_numbering(batch: object, seed: object, first_game: object) -> tuple[int, int, int]:
    """Checks the three settings that every game takes."""
    return (
        whole_number("batch", batch, 1, MAX_BATCH),
        whole_number("seed", seed, 0, MAX_SEED),
        whole_number("first_game", first_game, 0, MAX_GAME - MAX_BATCH),
    )


def allowed_options(builder: Callable[..., Any]) -> tuple[str, ...] | None:
    """Lists the keyword options of a class or function; None if it takes any."""
    parameters = inspect.signature(builder).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return tuple(parameter.name for parameter in parameters if parameter.name not in NUMBERING)


def check_options(game: str, given: Mapping[str, object], allowed: Iterable[str]) -> None:
    """Refuses options that a game does not know, all of them in one message."""
    allowed = sorted(allowed)
    unknown = [name for name in given if name not in allowed]
    if not unknown:
        return
    lines = [f"{name!r}{did_you_mean(name, allowed)}" for name in unknown]
    known = ", ".join(allowed) if allowed else "none"
    raise ConfigError(f"{game} has no option {' and no option '.join(lines)}. Its options: {known}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Writes a hint with the nearest known names; empty if none is near."""
    near = get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(repr(word) for word in near)}?)" if near else ""
