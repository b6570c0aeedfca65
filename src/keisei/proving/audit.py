"""Every slab under a magnifying glass: in its order, once, with its checksum, and with the content it should have.

What it should have is found out in a process of its own, where the same workers play undisturbed: beside the
manager, so that the check neither holds up the manager nor is held up by it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

import torch

from keisei.errors import ParallelError
from keisei.experience.collected import CollectedSlab, Experiences
from keisei.experience.slab import SlabRecord
from keisei.machine.start_method import chosen_start_method
from keisei.parallel.backends.process import end_with_parent
from keisei.parallel.parallel_manager import ParallelManager
from keisei.proving.same_experience import PlannedWeights, Reference, VerifySettings, slab_digest

WAITING_SLABS = 32
"""Slabs that wait for their check at most; then the run waits too, and memory stays flat."""
CHECK_SECONDS = 60.0
"""The longest that one check may take."""
WRONG_CHECKSUM = "a wrong checksum"
_SAME, _DIFFERENT, _FAILED = b"=", b"!", b"x"


@dataclass
class Findings:
    """What the checks have found so far."""

    slabs: int = 0
    transitions: int = 0
    """In slabs that were compared with the reference."""
    lost: int = 0
    """Slabs that were ordered and never came."""
    duplicated: int = 0
    """Slabs that came twice."""
    corrupted: int = 0
    """Slabs with a wrong checksum, or with other content than the reference."""
    complaints: list[str] = field(default_factory=list)
    """What was wrong, the first few in words."""

    def complain(self, text: str) -> None:
        if len(self.complaints) < 10:
            self.complaints.append(text)


class Audit:
    """Takes all that a manager hands out, and leaves what it finds in ``findings``."""

    def __init__(self, manager: ParallelManager, checker: Checker, findings: Findings) -> None:
        self._manager = manager
        self._checker = checker
        self._findings = findings
        self._next: dict[int, int] = {}

    def take(self, experiences: Experiences) -> None:
        in_order = [item for item in experiences if self._is_next(item.record)]
        tasks = [(item.record, _fingerprint(item)) for item in in_order]
        for record, digest in tasks:
            while not self._checker.offer(record, digest):
                # The check is behind. While it catches up, the manager still looks after its workers.
                self._manager.supervisor.pump(0.01)

    def _is_next(self, record: SlabRecord) -> bool:
        expected = self._next.get(record.worker, 0)
        if record.sequence < expected:
            self._findings.duplicated += 1
            self._findings.complain(f"slab {record.sequence} of worker {record.worker} came twice")
            return False
        self._miss(record.worker, expected, record.sequence)
        self._next[record.worker] = record.sequence + 1
        return True

    def _miss(self, worker: int, expected: int, got: int) -> None:
        if got > expected:
            self._findings.lost += got - expected
            self._findings.complain(f"slabs {expected} to {got - 1} of worker {worker} never came")

    def close(self) -> None:
        """The end: whatever was ordered and has not come is lost, and damage that the manager noticed counts."""
        for member in self._manager.communicator.members:
            self._miss(member.worker, self._next.get(member.worker, 0), member.next_sequence)
        self._findings.corrupted += self._manager.get_status().drops.corrupted


def _fingerprint(item: CollectedSlab) -> str:
    return slab_digest(item) if item.slab.checksum() == item.record.checksum else WRONG_CHECKSUM


class Checker:
    """The manager's end of the process that plays slabs again."""

    def __init__(self, settings: VerifySettings, findings: Findings) -> None:
        self._findings = findings
        context: Any = multiprocessing.get_context(chosen_start_method())
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=check_slabs, args=(settings, theirs), name="keisei-checker", daemon=True
        )
        self._process.start()
        theirs.close()
        self._waiting: list[SlabRecord] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._finish()
        finally:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._connection.close()

    def offer(self, record: SlabRecord, digest: str) -> bool:
        """False where too many wait already."""
        self._take_results(0.0)
        if len(self._waiting) >= WAITING_SLABS:
            return False
        self._waiting.append(record)
        self._connection.send_bytes(record.encode())
        self._connection.send_bytes(digest.encode())
        return True

    def _finish(self) -> None:
        deadline = time.monotonic() + CHECK_SECONDS
        while self._waiting:
            before = len(self._waiting)
            self._take_results(0.1)
            if len(self._waiting) < before:
                deadline = time.monotonic() + CHECK_SECONDS
            elif time.monotonic() > deadline:
                raise ParallelError(f"checking one slab took more than {CHECK_SECONDS:g} s")

    def _take_results(self, patience: float) -> None:
        try:
            while self._waiting and self._connection.poll(patience):
                self._note(self._connection.recv_bytes())
        except (EOFError, OSError) as error:
            raise ParallelError(f"the process that checks slabs is gone: {error!r}") from error

    def _note(self, result: bytes) -> None:
        outcome, text = result[:1], result[1:].decode()
        if outcome == _FAILED:
            raise ParallelError(f"a slab could not be played again:\n{text}")
        record, findings = self._waiting.pop(0), self._findings
        findings.slabs += 1
        findings.transitions += record.transitions
        if outcome == _DIFFERENT:
            findings.corrupted += 1
            findings.complain(
                f"slab {record.sequence} of worker {record.worker} (epoch {record.epoch}, weights {record.version}) "
                f"is not what it is undisturbed: {text}"
            )


def check_slabs(settings: VerifySettings, connection: Connection) -> None:
    """The main function of the checking process: a record and a digest in, the verdict out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    if hasattr(os, "nice"):
        os.nice(5)  # what is measured goes first; the check has time whenever the others wait for it
    torch.set_num_threads(1)
    try:
        with settings.manager("inline") as manager:
            assert manager.model is not None
            reference = Reference(manager, PlannedWeights(manager.model, settings.seed))
            while True:
                record = SlabRecord.decode(connection.recv_bytes())
                digest, expected = connection.recv_bytes().decode(), reference.digest(record)
                same = digest == expected
                connection.send_bytes(_SAME if same else _DIFFERENT + f"{digest}, not {expected}".encode())
    except (EOFError, ConnectionError):
        return
    except Exception:
        connection.send_bytes(_FAILED + traceback.format_exc().encode())
