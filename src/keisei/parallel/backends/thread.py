"""Workers in threads of this process: cheap to start, and parallel where games and networks release the GIL."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Sequence
from typing import Any

import torch

from keisei.parallel.backends.channel import serve
from keisei.parallel.backends.contract import WorkerHandle
from keisei.parallel.backends.piped import Pipe, wait_for
from keisei.parallel.plan import WorkerMemory, WorkerPlan
from keisei.parallel.self_play_worker import Manager


class ThreadHandle:
    process_id = None
    killed_from_outside = False

    def __init__(self, plan: WorkerPlan, memory: WorkerMemory) -> None:
        ours, theirs = multiprocessing.Pipe()
        self._pipe = Pipe(ours)
        self._control = memory.control
        self._control[1] = 0
        # A daemon, so that a hung game can't keep the whole program from ending.
        self._thread = threading.Thread(
            target=self._run, args=(plan, memory, theirs), name=f"keisei-worker-{plan.worker}", daemon=True
        )
        self._thread.start()

    @staticmethod
    def _run(plan: WorkerPlan, memory: WorkerMemory, connection: Any) -> None:
        torch.set_num_threads(1)
        try:
            serve(plan, memory, connection)
        finally:
            connection.close()

    def send(self, message: bytes) -> None:
        self._pipe.send(message)

    def receive(self) -> bytes | None:
        return self._pipe.receive()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def kill(self) -> bool:
        """Threads can't be killed: this one is asked to stop at its next step, and given a second."""
        self._control[1] = 1
        self._pipe.close()
        return self.join(1.0)

    def join(self, timeout: float) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def exit_reason(self) -> str:
        return "it runs" if self.is_alive() else "its thread has ended"

    @property
    def waitables(self) -> list[Any]:
        return self._pipe.waitables


class ThreadBackend:
    name = "thread"

    def start(self, plan: WorkerPlan, memory: WorkerMemory, manager: Manager) -> ThreadHandle:
        return ThreadHandle(plan, memory)

    def wait(self, handles: Sequence[WorkerHandle], timeout: float) -> None:
        wait_for(handles, timeout)
