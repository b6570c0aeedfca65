"""Where workers run. A backend starts them; a handle is one running worker.

What every backend keeps, and ``check_backend`` tests: messages arrive whole and in order; ``receive``
never blocks; after ``kill`` a worker writes nothing any more; a worker that fails says why and is then
not alive; what it had sent before its death can still be received.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keisei.parallel.plan import WorkerPlan
from keisei.parallel.self_play_worker import Manager


class WorkerHandle(Protocol):
    """One running worker, as the manager sees it."""

    def send(self, message: bytes) -> None:
        """Hand a message over. One that a dead worker can't take is lost without an error: the manager
        learns of the death, and gives the orders to another."""
        ...

    def receive(self) -> bytes | None:
        """A message that has arrived, or None."""
        ...

    def is_alive(self) -> bool: ...

    def ask_to_stop(self) -> None:
        """Let the worker end at its next step, in the middle of a slab."""
        ...

    def kill(self) -> bool:
        """End the worker at once. False where that is impossible, because it is a hung thread."""
        ...

    def join(self, timeout: float) -> bool:
        """Wait for the worker's end; False where it has not come."""
        ...

    @property
    def steps(self) -> int:
        """The steps that workers in this place have made: a number that moves while one gets on."""
        ...

    @property
    def is_suspended(self) -> bool:
        """True where somebody has stopped it from outside, as far as the backend can tell."""
        ...

    @property
    def exit_reason(self) -> str:
        """Why the worker is no longer alive, as far as the backend knows."""
        ...

    @property
    def killed_from_outside(self) -> bool:
        """True where somebody killed it, rather than an error of its own."""
        ...

    @property
    def process_id(self) -> int | None: ...


class Backend(Protocol):
    """Starts workers and waits for them. It is made with the arena that they play in, a reader of the weights, and
    the start method of processes."""

    name: str

    def start(self, plan: WorkerPlan, manager: Manager) -> WorkerHandle:
        """``manager`` answers workers that run in this very thread; others ask by message."""
        ...

    def wait(self, handles: Sequence[WorkerHandle], timeout: float) -> None:
        """Return when a message may have arrived or a worker may have died, or after the time-out."""
        ...
