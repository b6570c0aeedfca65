"""Leaves out damaged runs, and reports why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from rich.text import Text

from keisei.cli.views.terminal import Terminal
from keisei.errors import KeiseiError, in_one_line

T = TypeVar("T")


def whole_ones(
    names: Sequence[str], read: Callable[[str], T], mistakes: tuple[type[Exception], ...] = ()
) -> dict[str, T]:
    """Reads each of these names. One that cannot be read is reported and left out. If none can be read, the first error
    is raised. ``mistakes`` are errors of the person who wrote the names, and are always raised."""
    found: dict[str, T] = {}
    errors: dict[str, Exception] = {}
    for name in dict.fromkeys(names):
        try:
            found[name] = read(name)
        except mistakes:
            raise
        except Exception as error:
            errors[name] = error
    if errors and not found:
        raise next(iter(errors.values()))
    for name, reason in errors.items():
        _tell(name, reason)
    return found


def _tell(name: str, error: Exception) -> None:
    reason = str(error) if isinstance(error, KeiseiError) else in_one_line(error)
    Terminal(stderr=True).print(Text(f"{name} is left out: {reason}", style="yellow"), soft_wrap=True)
