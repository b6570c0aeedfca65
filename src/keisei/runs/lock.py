"""The lock of a run: a file that its trainer keeps open and locked for as long as it lives.

The kernel holds the lock (``flock``), so it is free at once when its process has ended, however it ended, and it counts
in every container of the machine. The content of the file is for error messages. It decides only where the kernel
cannot: on a file system without locks, for a process on another machine, and for a trainer of an earlier version, which
takes no kernel lock. Process numbers are used again, most of all after a reboot. So an owner is identified by its
number, its start time and the current boot of the machine.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from keisei.errors import RunLockedError
from keisei.runs.durable_files import file_errors
from keisei.runs.foreign_files import check_regular, open_foreign

__all__ = ["Owner", "RunLock", "lock_owner"]

FLOCK = "flock"
_MOST = 1 << 16
"""Bytes of a lock file."""
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
_ATTEMPTS, _PAUSE = 100, 0.01
"""How often a taken lock is tried again, and the seconds in between. Processes that check the lock hold it for an
instant, and so may the children of a killed trainer."""
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
"""The errors of file systems that have no locks."""


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
    held: str = ""
    """``flock`` if the kernel holds the lock for it; empty if only the file says so."""

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
        """Checks if the owner has certainly ended, given that the kernel holds no lock for it. A process on another
        machine cannot be checked, nor one in another container that the kernel holds no locks for."""
        here = Owner.this_process()
        if self.held == FLOCK and self._shares_kernel(here):
            return True
        if self.host != here.host:
            return False
        if self.boot != here.boot:
            return True
        if self.namespace != here.namespace:
            return False
        started = _start_time(self.pid)
        return started is None or started != self.started

    def can_be_seen(self) -> bool:
        """Checks if this process would notice the owner's end."""
        here = Owner.this_process()
        return (self.host, self.namespace) == (here.host, here.namespace)

    def _shares_kernel(self, here: Owner) -> bool:
        return self.boot == here.boot if here.boot else self.host == here.host

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}" if self.pid else "another process"


_UNKNOWN = Owner(pid=0, started="", host="", boot="", namespace="", since="", held=FLOCK)
"""An owner that holds the lock and has not yet written who it is."""


class RunLock:
    """Holds a run for this process until ``release``; also a context manager.

    The file stays, empty, when the lock is released. If it were removed while another process waits for it, two
    processes could hold the lock.
    """

    def __init__(self, path: Path) -> None:
        with file_errors(path):
            self._descriptor = _take(path)
        _HELD.add(self)

    def release(self) -> None:
        """Releases the lock. Does nothing if it is already released, or in a child process."""
        if self._descriptor < 0:
            return
        with suppress(OSError):  # on a disk that fails, the kernel alone says that the lock is free
            os.ftruncate(self._descriptor, 0)
        self.let_go()

    def let_go(self) -> None:
        """Closes the file. In a child process, the parent keeps the lock."""
        descriptor, self._descriptor = self._descriptor, -1
        _HELD.discard(self)
        with suppress(OSError):
            os.close(descriptor)

    def __enter__(self) -> RunLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


_HELD: set[RunLock] = set()


def _leave_to_parent() -> None:
    """Closes inherited locks in a child process. It shares the open file of its parent, and would otherwise keep the
    lock of a trainer that was killed."""
    for lock in list(_HELD):
        lock.let_go()


os.register_at_fork(after_in_child=_leave_to_parent)


def lock_owner(path: Path) -> Owner | None:
    """Finds the process that holds a run; None if there is none, or if it has ended. A file that is no lock, such as a
    FIFO, has no owner."""
    try:
        with open_foreign(path.parent, path.name, _MOST) as descriptor:
            held, owner = _is_held(descriptor), _read(descriptor)
    except OSError:
        return None
    if held:
        return owner or _UNKNOWN
    return None if owner is None or owner.is_gone() else owner


def _take(path: Path) -> int:
    """Opens the file, locks it, and writes the owner. Starts again if the file was replaced meanwhile, because somebody
    has deleted it or moved the run."""
    while True:
        check_regular(path, _MOST)
        descriptor = os.open(path, _OPEN, 0o644)
        try:
            in_kernel = _lock(descriptor, path)
            if _is_at(descriptor, path):
                _sign(descriptor, path, in_kernel)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> bool:
    """Locks an open file. False if its file system has no locks."""
    refusals = 0
    while refusals < _ATTEMPTS:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            refusals += _is_held(descriptor)  # processes that only check it are always waited for
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            time.sleep(_PAUSE)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return False
    raise _locked(path, _read(descriptor) or _UNKNOWN)


def _is_held(descriptor: int) -> bool:
    """Checks if the kernel holds a lock on an open file. The check takes a shared lock for an instant, so several
    processes can check at once."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return False  # the lock ends with the descriptor, which is closed now


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _sign(descriptor: int, path: Path, in_kernel: bool) -> None:
    """Writes the owner into the file. Raises an error if the file names a living owner that the kernel does not
    know."""
    holder = _read(descriptor)
    if holder is not None and not holder.is_gone():
        raise _locked(path, holder, visible=holder.can_be_seen())
    owner = replace(Owner.this_process(), held=FLOCK if in_kernel else "")
    try:
        _write(descriptor, json.dumps(asdict(owner)))
    except OSError:
        if not in_kernel:
            raise
        # On a full disk the file names no owner, but the kernel still holds the lock.


def _locked(path: Path, holder: Owner, *, visible: bool = True) -> RunLockedError:
    way_out = f". From here nobody can see whether that process still runs; if it is gone, delete {path}"
    return RunLockedError(
        f"{path.parent} is being trained by {holder}. Stop it first, or train under another --name"
        + ("" if visible else way_out)
    )


def _read(descriptor: int) -> Owner | None:
    return _parse(os.pread(descriptor, _MOST, 0))


def _parse(content: bytes) -> Owner | None:
    """Reads an owner. A file that cannot be read was cut short by a power cut, and counts as free."""
    try:
        owner = Owner(**json.loads(content))
    except (ValueError, TypeError, RecursionError):
        return None
    texts = (owner.started, owner.host, owner.boot, owner.namespace, owner.since, owner.held)
    shown = all(isinstance(text, str) and text.isprintable() for text in texts)
    return owner if shown and isinstance(owner.pid, int) and 0 < owner.pid < 1 << 31 else None


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)
    os.fsync(descriptor)


def _start_time(pid: int) -> str | None:
    """Reads the start time of a process; None if it does not exist, and "" if the system does not provide it."""
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
