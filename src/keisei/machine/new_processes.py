"""Starts new processes. They start fast, do not run the program again, import nothing from the current directory, and
end with their parent."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import wait

from keisei.machine.safe_path import safe_path

__all__ = ["deaf_to_terminal", "end_with_parent", "main_left_out", "own_fork_server"]

_FORK_SERVERS: dict[tuple[int, tuple[str, ...]], forkserver.ForkServer] = {}
"""Fork servers by process id and imports. A process that was forked itself needs its own server."""


@contextmanager
def own_fork_server(preload: Sequence[str]) -> Iterator[None]:
    """Starts a process by our own fork server, which has imported these modules. Other code may have started the
    program's shared server without them. Every process would then import torch for two seconds."""
    key = (os.getpid(), tuple(preload))
    if key not in _FORK_SERVERS:
        server = forkserver.ForkServer()
        server.set_forkserver_preload(list(preload))
        _FORK_SERVERS[key] = server
    shared = forkserver.connect_to_new_process
    forkserver.connect_to_new_process = _FORK_SERVERS[key].connect_to_new_process
    try:
        yield
    finally:
        forkserver.connect_to_new_process = shared


@contextmanager
def main_left_out() -> Iterator[None]:
    """Starts a process that does not import the program's main module again. Processes need nothing from it, and
    the import may take seconds at each restart. Without a ``__main__`` guard, it would also run the program again in
    every process."""
    main = sys.modules["__main__"]
    kept = {name: getattr(main, name) for name in ("__spec__", "__file__") if hasattr(main, name)}
    for name in kept:
        setattr(main, name, None)
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(main, name, value)


@contextmanager
def deaf_to_terminal() -> Iterator[None]:
    """Starts a process that SIGHUP and Ctrl-C do not reach from its first moment on. The same holds for its fork
    server. A terminal sends both signals to all processes that were started there, but the parent alone decides how
    they end: a trainer needs its workers to finish and save. The parent handles a signal that arrives meanwhile
    afterwards. The new process imports nothing from the current directory."""
    with safe_path():
        resource_tracker.ensure_running()  # its start would unblock Ctrl-C
        before = signal.pthread_sigmask(
            signal.SIG_BLOCK, {signal.SIGHUP, signal.SIGINT}
        )  # new processes inherit it
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent(by: signal.Signals = signal.SIGKILL) -> None:
    """Ends this process when its parent ends, even in the middle of a step or after kill -9. ``by`` is the signal that
    it then gets, on systems that support this."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, by)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
