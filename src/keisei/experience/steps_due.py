"""How many gradient steps are due after each collection: a number, one for each game, or by a ratio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keisei.experience.replay_config import ReplaySettings

__all__ = ["MOST_OWED", "Counts", "StepsDue"]

MOST_OWED = 1_000_000
"""Steps that a checkpoint may owe. A run makes those of one collection before the next."""


@dataclass(slots=True)
class Counts:
    """What is counted from one collection to the next."""

    inserted: int = 0
    """Decisions since the replay was empty."""
    owed: float = 0.0
    """Gradient steps that are due. What is less than one step is kept for later."""


class StepsDue:
    """Counts the steps that are due. Those of one collection count as done when the next one comes."""

    def __init__(self, settings: ReplaySettings, batch_size: int) -> None:
        self._settings, self._batch_size = settings, batch_size
        self.counts = Counts()

    def steps(self) -> int:
        return int(self.counts.owed)

    def add(self, inserted: int, episodes: int) -> None:
        """Counts a collection. Nothing is due before ``learning_starts``."""
        counts = self.counts
        counts.inserted += inserted
        counts.owed -= int(counts.owed)
        if counts.inserted >= self._settings.learning_starts:
            counts.owed += self._new_steps(inserted, episodes)

    def _new_steps(self, inserted: int, episodes: int) -> float:
        steps = self._settings.learning_steps
        if steps == "ratio":
            return self._settings.sample_to_insert_ratio * inserted / self._batch_size
        return episodes if steps == "auto" else steps

    def restore(self, saved: Mapping[str, float]) -> None:
        self.counts = Counts(int(saved["inserted"]), float(saved["owed"]))
        if not 0 <= self.counts.owed < MOST_OWED or self.counts.inserted < 0:
            raise ValueError(f"{self.counts} are no counts of a replay")
