"""The contract of buffers: a buffer takes experience and offers a view to learn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar

from keisei.experience.collected import CollectedSlab, Leases, LentSlab
from keisei.runs.state import State

View_co = TypeVar("View_co", covariant=True)
"""The view that the learner of the same regime learns from."""
Lend: TypeAlias = Callable[[int], Sequence[LentSlab]]
"""Makes this many empty slabs for a buffer that restores its own."""


class Buffer(Protocol[View_co]):
    """Holds experience between workers and a learner. Each regime has its own kind."""

    @property
    def most_leases(self) -> int:
        """The most slabs that it keeps at a time. 0 if it copies all that it needs."""
        ...

    def take(self, collected: Sequence[CollectedSlab]) -> Leases:
        """Takes what was collected. Returns the slabs that it keeps, and those that it no longer needs."""
        ...

    def view(self) -> View_co:
        """Gets the experience to learn from. It does not change while collection continues."""
        ...

    def numbers(self) -> Mapping[str, float]:
        """Gets its numbers for the metrics of an update, under the names of ``runs.metric_names``."""
        ...

    def state(self) -> State:
        """Gets the state for a checkpoint."""
        ...

    def restore(self, state: State, lend: Lend) -> None:
        """Restores a state. Slabs of the state go into slabs that ``lend`` gives."""
        ...
