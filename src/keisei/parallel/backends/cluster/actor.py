"""The class of the actors. It is imported on every node, and imports nothing large, so that an actor can say where it
runs before it loads torch."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from keisei.parallel.backends.cluster.greeting import Greeting

if TYPE_CHECKING:
    from keisei.parallel.backends.cluster.parcels import Briefing, Played, Task
    from keisei.parallel.backends.cluster.remote_worker import RemoteWorker
    from keisei.parallel.weights.model_sync import WeightsOfVersion
    from keisei.parallel.weights.shelf import StoredMember

PULSE = "pulse"
"""The concurrency group of heartbeats. They are answered while a slab is played."""


class PlayingActor:
    """One worker. Calls come one after the other, except heartbeats."""

    def __init__(self) -> None:
        self._worker: RemoteWorker | None = None

    def greet(self) -> Greeting:
        ray: Any = import_module("ray")
        return Greeting.of_this_process(ray.util.get_node_ip_address())

    def begin(self, briefing: Briefing) -> Played | None:
        """Makes the worker. Returns what went wrong, or None."""
        from keisei.parallel.backends.cluster.parcels import Played
        from keisei.parallel.backends.cluster.remote_worker import RemoteWorker

        _import_from(briefing.paths)
        try:
            self._worker = RemoteWorker(briefing)
        except Exception as error:
            return Played.failed(error, 0)
        return None

    def play(self, task: Task, weights: WeightsOfVersion | None, *members: StoredMember) -> Played:
        """Plays one slab. An error is a result too: the manager decides what follows from it."""
        from keisei.parallel.backends.cluster.parcels import Played

        assert self._worker is not None
        try:
            return self._worker.play(task, weights, members)
        except Exception as error:
            return Played.failed(error, self._worker.steps)

    def pulse(self, seconds: float) -> int:
        """Returns the number of steps after a pause. This is the heartbeat."""
        time.sleep(seconds)
        return 0 if self._worker is None else self._worker.steps


def _import_from(paths: Sequence[str]) -> None:
    """Adds the manager's import folders that exist on this machine. So games next to the program are found on the
    manager's machine, and on others that share its disk."""
    sys.path += [path for path in paths if path not in sys.path and os.path.isdir(path)]


def actor_class(ray: Any) -> Any:
    """Makes the class as Ray starts it. Ray neither restarts a dead actor nor repeats a call: the manager has lost
    slabs played again, from the states that it keeps."""
    return ray.remote(
        max_restarts=0, max_task_retries=0, concurrency_groups={PULSE: 1}, scheduling_strategy="SPREAD"
    )(PlayingActor)
