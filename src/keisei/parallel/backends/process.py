"""Workers in processes of their own: all cores, and a crash that harms nobody else."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from keisei.machine.start_method import chosen_start_method
from keisei.parallel.backends.contract import WorkerHandle
from keisei.parallel.backends.piped import Pipe, wait_for
from keisei.parallel.plan import WorkerMemory, WorkerPlan
from keisei.parallel.self_play_worker import Manager

PRELOAD = ["keisei.parallel.backends.process_worker"]
"""Imported once by the fork server: a new worker then starts in some 30 ms instead of two seconds."""

JOIN_SECONDS = 5.0


class ProcessHandle:
    def __init__(self, process: Any, connection: Connection) -> None:
        self._process = process
        self._pipe = Pipe(connection)
        self._killed_by_us = False

    def send(self, message: bytes) -> None:
        self._pipe.send(message)

    def receive(self) -> bytes | None:
        return self._pipe.receive()

    def is_alive(self) -> bool:
        return bool(self._process.is_alive())

    def kill(self) -> bool:
        """SIGKILL ends a stopped process too; only when it is gone may its memory go to a successor."""
        self._killed_by_us = self.is_alive()
        self._process.kill()
        ended = self.join(JOIN_SECONDS)
        self._pipe.close()
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
        return [*self._pipe.waitables, self._process.sentinel]


class ProcessBackend:
    name = "process"

    def __init__(self, start_method: Literal["auto", "forkserver", "spawn"] = "auto") -> None:
        method = chosen_start_method(start_method)
        self._context: Any = multiprocessing.get_context(method)
        self._forks = method == "forkserver"

    def start(self, plan: WorkerPlan, memory: WorkerMemory, manager: Manager) -> ProcessHandle:
        from keisei.parallel.backends.process_worker import worker_main

        memory.control[1] = 0
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=worker_main,
            args=(plan.model_dump_json(), memory, theirs),
            name=f"keisei-worker-{plan.worker}",
            daemon=True,
        )
        with (
            nullcontext() if _names_main(plan) else _main_left_out(),
            _own_fork_server() if self._forks else nullcontext(),
        ):
            process.start()
        theirs.close()
        return ProcessHandle(process, ours)

    def wait(self, handles: Sequence[WorkerHandle], timeout: float) -> None:
        wait_for(handles, timeout)


_FORK_SERVERS: dict[int, forkserver.ForkServer] = {}
"""By process id: a process that was forked itself needs a server of its own."""


@contextmanager
def _own_fork_server() -> Iterator[None]:
    """Start a process by a fork server of our own. The one that a program shares may have been started by somebody
    else before, without our imports, and every worker would then import torch for two seconds."""
    if os.getpid() not in _FORK_SERVERS:
        server = forkserver.ForkServer()
        server.set_forkserver_preload(PRELOAD)
        _FORK_SERVERS[os.getpid()] = server
    shared = forkserver.connect_to_new_process
    forkserver.connect_to_new_process = _FORK_SERVERS[os.getpid()].connect_to_new_process
    try:
        yield
    finally:
        forkserver.connect_to_new_process = shared


def _names_main(plan: WorkerPlan) -> bool:
    """Whether a game or network is defined in the program itself."""
    names = [plan.env.game, plan.model.network if plan.model is not None else ""]
    return any(name.startswith("__main__:") for name in names)


@contextmanager
def _main_left_out() -> Iterator[None]:
    """Start a process that does not import the program's main module again. Nothing of it is needed; it may import
    for seconds, at each restart; and without a guard it would run the program once more in every worker."""
    main = sys.modules["__main__"]
    kept = {name: getattr(main, name) for name in ("__spec__", "__file__") if hasattr(main, name)}
    for name in kept:
        setattr(main, name, None)
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(main, name, value)


def end_with_parent() -> None:
    """End this process when its parent ends, also in the middle of a step and after kill -9."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
