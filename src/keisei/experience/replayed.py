"""What a learner gets from a replay: samples of earlier decisions, each with its outcome so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from keisei.games.contract import ByteArray, FloatArray, IntArray

__all__ = ["ReplaySample", "ReplayView"]


@dataclass(frozen=True, slots=True)
class ReplaySample:
    """Decisions of one owner, [n] each, all from the view of the seat that decided."""

    packed: ByteArray
    """[n, packed_bytes]: the position of the decision; ``Game.unpack`` gives observation and mask."""
    actions: IntArray
    rewards: FloatArray
    """The discounted rewards from the decision to the next position."""
    next_packed: ByteArray
    """[n, packed_bytes]: the position that the target bootstraps from; zeros where ``discounts`` is 0."""
    discounts: FloatArray
    """The factor of the value at the next position: discount^plies. It is negative if the other seat of a zero-sum
    game acts there, and 0 if the game ended before."""
    weights: FloatArray
    """Importance weights, at most 1; all 1 in a uniform replay."""
    places: IntArray
    """Where each decision is stored. With its generation, a place names one decision."""
    generations: IntArray

    def __len__(self) -> int:
        return len(self.actions)


class ReplayView(Protocol):
    """A replay as a learner sees it."""

    def steps(self) -> int:
        """The gradient steps that are due now."""
        ...

    def sample(self, size: int, seed: int, key: int, progress: float = 1.0) -> ReplaySample:
        """Draws decisions with randomness keyed by (seed, key). The same replay and key give the same sample.
        ``progress``, 0 … 1, is the share of the run that is done, for the schedule of importance weights."""
        ...

    def update_priorities(self, sample: ReplaySample, errors: FloatArray) -> None:
        """Sets the priorities of a sample by the size of its errors. Decisions that were overwritten meanwhile are
        left out and counted. A uniform replay does nothing."""
        ...
