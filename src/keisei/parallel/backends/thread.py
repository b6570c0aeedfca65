"""Workers in threads of this process. They start fast, and run in parallel if games and networks release the GIL."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Sequence
from typing import Any

from keisei.machine.cores import usable_cores
from keisei.machine.torch_threads import stay_on_one_thread
from keisei.parallel.arena import Arena
from keisei.parallel.backends.channel import serve
from keisei.parallel.backends.contract import WorkerHandle
from keisei.parallel.backends.piped import PipedHandle, wait_for
from keisei.parallel.config import ParallelConfig
from keisei.parallel.messages import Manager
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.weights.model_sync import WeightReader


class ThreadHandle(PipedHandle):
    process_id = None
    killed_from_outside = False
    is_suspended = False

    def __init__(self, plan: WorkerPlan, arena: Arena, weights: WeightReader | None) -> None:
        ours, theirs = multiprocessing.Pipe()
        super().__init__(ours, arena, plan.worker)
        # A daemon thread, so that a hung game does not keep the program from ending.
        self._thread = threading.Thread(
            target=self._run,
            args=(plan, arena, weights, theirs),
            name=f"keisei-worker-{plan.worker}",
            daemon=True,
        )
        self._thread.start()

    @staticmethod
    def _run(plan: WorkerPlan, arena: Arena, weights: WeightReader | None, connection: Any) -> None:
        stay_on_one_thread()
        try:
            serve(plan, arena, weights, connection)
        finally:
            connection.close()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def kill(self) -> bool:
        """Asks the thread to stop at its next step and waits for one second, since threads cannot be killed."""
        self.ask_to_stop()
        self._close()
        return self.join(1.0)

    def join(self, timeout: float) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def exit_reason(self) -> str:
        return "it runs" if self.is_alive() else "its thread has ended"


class ThreadBackend:
    name = "thread"
    repeated = 0

    def __init__(
        self, arena: Arena, weights: WeightReader | None = None, config: ParallelConfig | None = None
    ) -> None:
        self._arena, self._weights = arena, weights

    def start(self, plan: WorkerPlan, manager: Manager) -> ThreadHandle:
        return ThreadHandle(plan, self._arena, self._weights)

    def wait(self, handles: Sequence[WorkerHandle], timeout: float) -> None:
        wait_for(handles, timeout)

    def places(self) -> int:
        return usable_cores()

    def close(self) -> None:
        """Does nothing, since nothing is held."""
