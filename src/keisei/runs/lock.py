"""One trainer at a time: a file that says which process holds a run, and how to tell that it is gone.

A number of a process is used again after its end, and after a restart of the machine all of them are. So the
owner is known by its number, its start time and the machine's current boot; a lock whose owner is gone, by
kill -9 or with the power, is taken over without a question.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from keisei.errors import RunLockedError


@dataclass(frozen=True)
class Owner:
    """A process, so described that no other one is mistaken for it."""

    pid: int
    started: str
    """Its start time in ticks since boot; empty where the system does not tell."""
    host: str
    boot: str
    """The machine's boot; empty where the system does not tell."""
    namespace: str
    """The space in which the number counts: containers on one machine have different ones."""
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
        """Whether the owner has certainly ended. Of a process elsewhere nothing is certain."""
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

    The file stays when the lock is released, empty: a file that is removed while another process waits for it
    would let two processes hold "the" lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._owner = Owner.this_process()
        with _exclusive(path) as descriptor:
            holder = _read(descriptor)
            if holder is not None and not holder.is_gone():
                raise RunLockedError(
                    f"{path.parent} is being trained by {holder}. Stop it first, or train under another --name"
                    + ("" if holder.host == self._owner.host else f"; if it is gone, delete {path}")
                )
            _write(descriptor, json.dumps(asdict(self._owner)))
        self._held = True

    def release(self) -> None:
        """Give the run free. Does nothing when that has been done, or in a child process."""
        if not self._held or self._owner.pid != os.getpid():
            return
        self._held = False
        with _exclusive(self.path) as descriptor:
            if _read(descriptor) == self._owner:
                _write(descriptor, "")

    def __enter__(self) -> RunLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def lock_owner(path: Path) -> Owner | None:
    """Who holds a run now; None where nobody does, or where the holder is gone."""
    try:
        owner = _parse(path.read_bytes())
    except OSError:
        return None
    return None if owner is None or owner.is_gone() else owner


@contextmanager
def _exclusive(path: Path) -> Iterator[int]:
    """The file, for the moment in which it is read and changed. The kernel ends this with the process."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> Owner | None:
    return _parse(os.pread(descriptor, 65536, 0))


def _parse(content: bytes) -> Owner | None:
    """An owner is written in one go; whatever cannot be read was cut short with the machine's power."""
    try:
        return Owner(**json.loads(content))
    except (ValueError, TypeError):
        return None


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)
    os.fsync(descriptor)


def _start_time(pid: int) -> str | None:
    """When a process was started; None where there is none, and "" where the system does not say."""
    if not Path("/proc/self/stat").exists():
        return "" if _answers(pid) else None
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The second field is the name in brackets, and may hold blanks and brackets itself.
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
