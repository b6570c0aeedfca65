"""The lock of a run: a file with the process that trains it, and a check whether that process has ended.

Process numbers are used again, and after a reboot all of them are. So the owner is identified by its number, its
start time and the current boot of the machine. A lock whose owner has ended, by kill -9 or a power cut, is taken
over.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from keisei.errors import RunLockedError
from keisei.runs.durable_files import file_errors


@dataclass(frozen=True)
class Owner:
    """A process, described so that it cannot be confused with another."""

    pid: int
    started: str
    """Its start time in ticks since boot; empty if the system does not provide it."""
    host: str
    boot: str
    """The ID of the machine's boot; empty if the system does not provide it."""
    namespace: str
    """The PID namespace; containers on one machine have different ones."""
    since: str
    """When it took the lock, for the message."""

    @classmethod
    def this_process(cls) -> Owner:
        pid = os.getpid()
        return cls(
            pid=pid,
            started=_start_time(pid) or "",
            host=socket.gethostname(),
            boot=_boot(),
            namespace=_namespace(),
            since=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def is_gone(self) -> bool:
        """Whether the owner has certainly ended. A process on another machine cannot be checked."""
        here = Owner.this_process()
        if self.host != here.host:
            return False
        if self.boot != here.boot:
            return True
        if self.namespace != here.namespace:
            return False
        started = _start_time(self.pid)
        return started is None or started != self.started

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


class RunLock:
    """Holds a run for this process until ``release``; also a context manager.

    The file stays, empty, when the lock is released. If it were removed while another process waits for it, two
    processes could hold the lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._owner = Owner.this_process()
        with file_errors(path), _exclusive(path) as descriptor:
            holder = _read(descriptor)
            if holder is not None and not holder.is_gone():
                raise RunLockedError(
                    f"{path.parent} is being trained by {holder}. Stop it first, or train under another --name"
                    + ("" if holder.host == self._owner.host else f"; if it is gone, delete {path}")
                )
            _write(descriptor, json.dumps(asdict(self._owner)))
        self._held = True

    def release(self) -> None:
        """Releases the lock. Does nothing if it is already released, or in a child process."""
        if not self._held or self._owner.pid != os.getpid():
            return
        self._held = False
        # On a disk that fails, the lock is free when this process has ended.
        with suppress(OSError), _exclusive(self.path) as descriptor:
            if _read(descriptor) == self._owner:
                _write(descriptor, "")

    def __enter__(self) -> RunLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def lock_owner(path: Path) -> Owner | None:
    """Gives the process that holds a run; None if there is none, or if it has ended."""
    try:
        owner = _parse(path.read_bytes())
    except OSError:
        return None
    return None if owner is None or owner.is_gone() else owner


@contextmanager
def _exclusive(path: Path) -> Iterator[int]:
    """Opens the file and locks it while it is read and changed. The kernel releases this lock if the process ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> Owner | None:
    return _parse(os.pread(descriptor, 65536, 0))


def _parse(content: bytes) -> Owner | None:
    """Reads an owner. A file that cannot be read was cut short by a power cut, and counts as free."""
    try:
        return Owner(**json.loads(content))
    except (ValueError, TypeError):
        return None


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)
    os.fsync(descriptor)


def _start_time(pid: int) -> str | None:
    """Gives the start time of a process; None if it does not exist, and "" if the system does not provide it."""
    if not Path("/proc/self/stat").exists():
        return "" if _answers(pid) else None
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The second field is the name in brackets, and may itself contain spaces and brackets.
    fields = stat.rpartition(")")[2].split()
    state, started = fields[0], fields[19]
    return None if state in "ZX" else started


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
