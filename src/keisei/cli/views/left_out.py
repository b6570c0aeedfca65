"""Damaged runs beside others: they are left out, and the reason is told."""

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
    """Reads what is named. One that cannot be read does not cost the others: it is told and left out. If none is left,
    the first reason is the error. ``mistakes`` are errors of who has named them, and are raised."""
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
