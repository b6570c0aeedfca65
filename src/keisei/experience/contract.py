"""What a buffer promises: it takes what was played, and offers what is to be learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from keisei.experience.collected import CollectedSlab, Lease

if TYPE_CHECKING:  # the state is made of tensors, and torch takes a second to import
    from keisei.runs.checkpoint import State

View_co = TypeVar("View_co", covariant=True)
"""What the learner of the same regime learns from."""


class Buffer(Protocol[View_co]):
    """Experience between workers and a learner. Each regime has its own kind."""

    def take(self, collected: Sequence[CollectedSlab]) -> Sequence[Lease]:
        """Take what was collected, and give the leases of the slabs that stay in use. The others may be given
        back to the workers at once."""
        ...

    def due(self) -> int:
        """Gradient steps that the learner owes now."""
        ...

    def view(self) -> View_co:
        """What there is to learn from. It does not change while collection goes on."""
        ...

    def state(self) -> State:
        """All that a checkpoint must hold."""
        ...

    def restore(self, state: State) -> None:
        """Go on from a state."""
        ...
