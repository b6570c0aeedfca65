"""Records restarts and failures of workers in ``run.db``, and tells the callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable

from keisei.errors import RunDatabaseError
from keisei.parallel.parallel_manager import ParallelManager
from keisei.runs.database import RunDatabase
from keisei.runs.rows import WorkerEventRow


class WorkerWatch:
    """Compares the state of the workers with that after the last update."""

    def __init__(
        self, manager: ParallelManager, database: RunDatabase, tell: Callable[[str, str], None]
    ) -> None:
        self._manager, self._database, self._tell = manager, database, tell
        self._restarts: dict[int, int] = {}
        self._states: dict[int, str] = {}

    def look(self, update: int) -> None:
        for worker in self._manager.get_status().workers:
            before = self._restarts.get(worker.worker, 0)
            if worker.restarts > before:
                self._record(update, worker.worker, "restarted", worker.last_error)
            if worker.state == "quarantined" != self._states.get(worker.worker):
                self._record(update, worker.worker, "quarantined", worker.last_error)
            self._restarts[worker.worker] = worker.restarts
            self._states[worker.worker] = worker.state

    def _record(self, update: int, worker: int, event: str, detail: str) -> None:
        reason = detail.strip().splitlines()[-1] if detail.strip() else "no reason known"
        self._tell(f"worker {worker} was {event}: {reason}", "warning")
        try:
            self._database.add_worker_event(WorkerEventRow(update, time.time(), worker, event, detail))
        except RunDatabaseError as error:
            self._tell(f"the event is not kept: {error}", "warning")
