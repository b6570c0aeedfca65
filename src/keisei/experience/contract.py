"""The contract of buffers: a buffer takes experience and offers a view to learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from keisei.experience.collected import CollectedSlab, Lease

if TYPE_CHECKING:  # the state is made of tensors, and torch takes a second to import
    from keisei.runs.checkpoint import State

View_co = TypeVar("View_co", covariant=True)
"""The view that the learner of the same regime learns from."""


class Buffer(Protocol[View_co]):
    """Holds experience between workers and a learner. Each regime has its own kind."""

    def take(self, collected: Sequence[CollectedSlab]) -> Sequence[Lease]:
        """Takes what was collected, and returns leases for the slabs that it keeps. The others may go back to the
        workers at once."""
        ...

    def due(self) -> int:
        """Gives the number of gradient steps that are due now."""
        ...

    def view(self) -> View_co:
        """Gives the experience to learn from. It does not change while collection continues."""
        ...

    def numbers(self) -> Mapping[str, float]:
        """Gives its numbers for the metrics of an update, under the names of ``runs.metric_names``."""
        ...

    def state(self) -> State:
        """Gives the state for a checkpoint."""
        ...

    def restore(self, state: State) -> None:
        """Restores a state."""
        ...
