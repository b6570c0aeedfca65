"""The contract of backends. A backend starts workers; a handle is one running worker.

Every backend keeps these rules, and ``check_backend`` tests them. Messages arrive whole and in order. ``receive``
never blocks. After ``kill``, a worker writes nothing. A worker that fails says why, and is then not alive. What it
sent before its death can still be received.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

from keisei.parallel.arena import Arena
from keisei.parallel.backend_names import target_of
from keisei.parallel.config import ParallelConfig
from keisei.parallel.messages import Manager
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.weights.model_sync import WeightReader

START_SECONDS = 180.0
"""The longest time that a first start may take. Actors on a busy machine have taken more than one minute."""


class WorkerHandle(Protocol):
    """One running worker, as the manager sees it."""

    def send(self, message: bytes) -> None:
        """Sends a message. If the worker is dead, the message is lost without an error. The manager notices the
        death, and gives the orders to another worker."""
        ...

    def receive(self) -> bytes | None:
        """Gets a message that has arrived, or None."""
        ...

    def is_alive(self) -> bool: ...

    def ask_to_stop(self) -> None:
        """Asks the worker to end at its next step, in the middle of a slab."""
        ...

    def kill(self) -> bool:
        """Ends the worker at once. Returns False if this is impossible, because it is a hung thread."""
        ...

    def join(self, timeout: float) -> bool:
        """Waits for the worker to end. Returns False if it has not ended in time."""
        ...

    @property
    def steps(self) -> int:
        """Counts the steps of all workers with this number. It changes while a worker makes progress."""
        ...

    @property
    def is_suspended(self) -> bool:
        """True if the worker was stopped from outside, as far as the backend can tell."""
        ...

    @property
    def is_queued(self) -> bool:
        """True while the worker waits for a place to run, as long as that may take. It cannot hang before."""
        ...

    @property
    def exit_reason(self) -> str:
        """Why the worker is no longer alive, as far as the backend knows."""
        ...

    @property
    def killed_from_outside(self) -> bool:
        """True if the worker was killed from outside, and did not end by its own error."""
        ...

    @property
    def process_id(self) -> int | None: ...


class Backend(Protocol):
    """Starts workers and waits for them. It is made with the arena, a reader of the weights, and the settings."""

    name: str
    repeated: int
    """Slabs that were delivered a second time, and ignored."""

    def places(self) -> int:
        """Computes how many workers can run at once, as things are now."""
        ...

    def start(self, plan: WorkerPlan, manager: Manager) -> WorkerHandle:
        """Starts a worker. ``manager`` answers inline workers directly; other workers ask by message."""
        ...

    def wait(self, handles: Sequence[WorkerHandle], timeout: float) -> None:
        """Returns when a message may have arrived or a worker may have died, or after the time-out."""
        ...

    def close(self) -> None:
        """Frees what the backend holds. All its workers have ended. Calling it again does nothing."""
        ...


def make_backend(
    name: str, arena: Arena, weights: WeightReader | None = None, config: ParallelConfig | None = None
) -> Backend:
    """Makes the backend with this name. Its workers play in this arena."""
    module, attribute = target_of(name)
    backend: Backend = getattr(import_module(module), attribute)(arena, weights, config)
    return backend
