"""The settings of a replay: how much it keeps, how it credits and draws decisions, and how often they are learned."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from keisei.config import Settings
from keisei.ranges import SMALLEST, Count, CountOrNone

__all__ = ["Ratio", "ReplaySettings"]

Ratio: TypeAlias = Annotated[float, Field(ge=SMALLEST, le=1e6)]
"""Samples for each decision that is inserted."""


class ReplaySettings(Settings):
    """Settings of a replay."""

    capacity: Count | None = 500_000
    """Decisions that it keeps, those of opponents included. It is rounded up to whole slabs. Null: see megabytes."""
    megabytes: Annotated[float, Field(ge=1e-6, le=1e9)] | None = None
    """The most memory that it takes, in place of ``capacity``."""
    n_step: Annotated[int, Field(ge=1, le=1000)] = 3
    """Decisions from one to the position that its target bootstraps from."""
    chain: Literal["auto", "both-seats", "own-seat"] = "auto"
    """Which decisions follow each other. ``own-seat``: those of one seat; what others play is part of the environment.
    ``both-seats``: the learner's decisions in either seat of a zero-sum game of two, where what is good for one seat
    is bad for the other. ``auto`` takes both seats where the game allows it."""
    prioritised: bool = False
    """Draw decisions with large errors more often. Else all are drawn equally often."""
    alpha: Annotated[float, Field(ge=0, le=1)] = 0.6
    """How much priorities count: a priority is (error + smallest_error)^alpha. 0 draws all equally often."""
    beta: Annotated[float, Field(ge=0, le=1)] = 0.4
    """How much importance weights correct for the priorities, at the start of the run."""
    final_beta: Annotated[float, Field(ge=0, le=1)] = 1.0
    """The same at the end of the run; it changes in a straight line. 1 corrects fully."""
    smallest_error: Annotated[float, Field(ge=1e-12, le=1e6)] = 1e-3
    """Added to errors, so that decisions without an error are drawn too."""
    learning_starts: CountOrNone = 10_000
    """Decisions that must be inserted before learning starts."""
    learning_steps: Annotated[int, Field(ge=1, le=1_000_000)] | Literal["auto", "ratio"] = "ratio"
    """Gradient steps after each collection: a number; ``auto``, one for each game that was finished; or ``ratio``,
    see sample_to_insert_ratio."""
    sample_to_insert_ratio: Ratio = 4.0
    """How often a decision is sampled on average, with ``learning_steps: ratio``."""
    save_replay: bool = False
    """Save the replay with checkpoints, so that a resumed run continues exactly. Only what is new is written. Without
    it, a resumed run fills the replay again before it learns."""

    @model_validator(mode="after")
    def _fits_together(self) -> ReplaySettings:
        if (self.capacity is None) == (self.megabytes is None):
            raise ValueError(
                f"capacity = {self.capacity} and megabytes = {self.megabytes}: give one of them, and null for the "
                f"other"
            )
        if self.capacity is not None and self.learning_starts > self.capacity:
            raise ValueError(
                f"learning_starts = {self.learning_starts} is more than capacity = {self.capacity}; make it smaller"
            )
        return self

    def beta_at(self, progress: float) -> float:
        """The exponent of importance weights after ``progress`` (0 … 1) of the run."""
        return self.beta + (self.final_beta - self.beta) * min(1.0, max(0.0, progress))
