"""Workers in separate processes: they use all cores, and a crash does not affect the others."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Sequence
from contextlib import nullcontext
from multiprocessing.connection import Connection
from typing import Any

from keisei.machine.cores import usable_cores
from keisei.machine.new_processes import deaf_to_terminal, main_left_out, own_fork_server
from keisei.machine.processes import is_stopped
from keisei.machine.start_method import chosen_start_method
from keisei.parallel.arena import Arena
from keisei.parallel.backends.contract import WorkerHandle
from keisei.parallel.backends.piped import PipedHandle, wait_for
from keisei.parallel.config import ParallelConfig
from keisei.parallel.messages import Manager
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.weights.model_sync import WeightReader

PRELOAD = ["keisei.parallel.backends.process_worker"]
"""Modules that the fork server imports once. A new worker then starts in about 30 ms instead of two seconds."""

JOIN_SECONDS = 5.0


class ProcessHandle(PipedHandle):
    def __init__(self, process: Any, connection: Connection, arena: Arena, worker: int) -> None:
        super().__init__(connection, arena, worker)
        self._process = process
        self._killed_by_us = False

    @property
    def is_suspended(self) -> bool:
        return is_stopped(self.process_id)

    def is_alive(self) -> bool:
        return bool(self._process.is_alive())

    def kill(self) -> bool:
        """Kills the process, even if it is stopped. A successor may use its memory only after it has ended."""
        self._killed_by_us = self.is_alive()
        self._process.kill()
        ended = self.join(JOIN_SECONDS)
        self._close()
        return ended

    def join(self, timeout: float) -> bool:
        self._process.join(timeout)
        return not self.is_alive()

    @property
    def exit_reason(self) -> str:
        code = self._process.exitcode
        if code is None:
            return "it runs"
        if code < 0:
            return f"it was ended by {signal.Signals(-code).name}"
        return f"it ended with exit code {code}"

    @property
    def killed_from_outside(self) -> bool:
        return not self._killed_by_us and self._process.exitcode in (-signal.SIGKILL, -signal.SIGTERM)

    @property
    def process_id(self) -> int | None:
        pid: int | None = self._process.pid
        return pid

    @property
    def waitables(self) -> list[Any]:
        return [*super().waitables, self._process.sentinel]


class ProcessBackend:
    name = "process"
    repeated = 0

    def __init__(
        self, arena: Arena, weights: WeightReader | None = None, config: ParallelConfig | None = None
    ) -> None:
        self._arena, self._weights = arena, weights
        method = chosen_start_method("auto" if config is None else config.start_method)
        self._context: Any = multiprocessing.get_context(method)
        self._forks = method == "forkserver"

    def start(self, plan: WorkerPlan, manager: Manager) -> ProcessHandle:
        from keisei.parallel.backends.process_worker import worker_main

        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=worker_main,
            args=(plan.model_dump_json(), self._arena, self._weights, theirs),
            name=f"keisei-worker-{plan.worker}",
            daemon=True,
        )
        with (
            deaf_to_terminal(),
            nullcontext() if _names_main(plan) else main_left_out(),
            own_fork_server(PRELOAD) if self._forks else nullcontext(),
        ):
            handle = ProcessHandle(process, ours, self._arena, plan.worker)
            process.start()
        theirs.close()
        return handle

    def wait(self, handles: Sequence[WorkerHandle], timeout: float) -> None:
        wait_for(handles, timeout)

    def places(self) -> int:
        return usable_cores()

    def close(self) -> None:
        """Does nothing, since nothing is held."""


def _names_main(plan: WorkerPlan) -> bool:
    """Checks if a game or network is defined in the main module of the program."""
    names = [plan.env.game, plan.model.network if plan.model is not None else ""]
    return any(name.startswith("__main__:") for name in names)
