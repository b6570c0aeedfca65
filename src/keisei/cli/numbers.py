"""Options that are numbers: the highest values, and temperatures. Each option has a lowest and a highest value."""

from __future__ import annotations

from typing import Any

import typer

from keisei.ranges import (
    HIGHEST_TEMPERATURE,
    MAX_COUNT,
    MAX_GAMES,
    MAX_MINUTES,
    MAX_OPENING,
    MAX_SECONDS,
    MAX_SEED,
    check_temperature,
)

__all__ = [
    "MAX_COUNT",
    "MAX_FEW",
    "MAX_GAMES",
    "MAX_MINUTES",
    "MAX_OPENING",
    "MAX_SECONDS",
    "MAX_SEED",
    "MAX_SHOWN",
    "temperature",
]

MAX_FEW = 10_000
"""Rounds, epochs, clients and the like, of which each takes time or memory."""
MAX_SHOWN = 600
"""Seconds of one picture of a GIF, which counts hundredths of them in 16 bits."""


def temperature(about: str) -> Any:
    """Makes an option that takes 0, or a temperature at which a network can play."""
    return typer.Option(min=0, max=HIGHEST_TEMPERATURE, callback=_is_temperature, help=about)


def _is_temperature(given: float | None) -> float | None:
    try:
        return given and check_temperature(given)
    except ValueError as error:
        raise typer.BadParameter(f"{given}: it {error}") from None
