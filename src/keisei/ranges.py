"""Ranges of numbers that settings and commands share. Within them a run can do what it is told: nothing overflows,
vanishes or ends it at its first evaluation."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

__all__ = [
    "HIGHEST_TEMPERATURE",
    "LOWEST_TEMPERATURE",
    "MAX_COUNT",
    "MAX_GAMES",
    "MAX_MINUTES",
    "MAX_OPENING",
    "MAX_SECONDS",
    "MAX_SEED",
    "SMALLEST",
    "Count",
    "CountOrNone",
    "LearningRate",
    "Limit",
    "MinibatchSize",
    "Parts",
    "PositiveShare",
    "PositiveTemperature",
    "Seconds",
    "Temperature",
    "Weight",
    "check_temperature",
]

MAX_SEED = (1 << 63) - 1
MAX_COUNT = 10**18
"""Counts are kept in 64 bits, also in databases and event files."""
MAX_GAMES = 1_000_000
"""Games of one match. All its results are in memory."""
MAX_OPENING = 1000
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 1e-6, 1e6
MAX_SECONDS = 1e6
"""Eleven days: the system counts waits in milliseconds, in 32 bits."""
MAX_MINUTES = 1e9
SMALLEST = 1e-9
"""The smallest number above 0 that still counts in 32 bits, beside numbers around 1."""


def check_temperature(temperature: float) -> float:
    if not (temperature == 0 or LOWEST_TEMPERATURE <= temperature <= HIGHEST_TEMPERATURE):
        raise ValueError(
            f"must be 0 (the best action), or from {LOWEST_TEMPERATURE} to {HIGHEST_TEMPERATURE:.0f}"
        )
    return temperature


Count: TypeAlias = Annotated[int, Field(ge=1, le=MAX_COUNT)]
"""A number of transitions, updates, games or the like."""
CountOrNone: TypeAlias = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Temperature: TypeAlias = Annotated[
    float, Field(ge=0, le=HIGHEST_TEMPERATURE), AfterValidator(check_temperature)
]
PositiveTemperature: TypeAlias = Annotated[float, Field(ge=LOWEST_TEMPERATURE, le=HIGHEST_TEMPERATURE)]
PositiveShare: TypeAlias = Annotated[float, Field(ge=SMALLEST, le=1)]
Limit: TypeAlias = Annotated[float, Field(ge=SMALLEST, le=1e12)]
"""A bound of ratios, errors or norms. The highest one never holds, and its square is still a number of 32 bits."""
Weight: TypeAlias = Annotated[float, Field(ge=0, le=1e6)]
"""How much a part of a loss counts."""
LearningRate: TypeAlias = Annotated[float, Field(ge=1e-30, le=10)]
MinibatchSize: TypeAlias = Annotated[int, Field(ge=1, le=1 << 24)]
Parts: TypeAlias = Annotated[int, Field(ge=1, le=4096)]
Seconds: TypeAlias = Annotated[float, Field(ge=0.001, le=MAX_SECONDS)]
"""How long something may take at most."""
