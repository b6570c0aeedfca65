"""Checks every slab: its order, that it comes once, its checksum, and its content.

A second process plays the same tables undisturbed and computes the right content. It runs beside the manager, so
neither delays the other.
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
from keisei.machine.new_processes import deaf_to_terminal, end_with_parent
from keisei.machine.start_method import chosen_start_method
from keisei.parallel.parallel_manager import ParallelManager
from keisei.proving.same_experience import PlannedWeights, Reference, VerifySettings, slab_digest

WAITING_SLABS = 32
"""The most slabs that wait for their check. Then the run waits too, so memory does not grow."""
CHECK_SECONDS = 60.0
"""The most seconds of one check."""
WRONG_CHECKSUM = "a wrong checksum"
_SAME, _DIFFERENT, _FAILED = b"=", b"!", b"x"


@dataclass
class Findings:
    """What the checks have found so far."""

    slabs: int = 0
    transitions: int = 0
    """Transitions in slabs that were compared with the reference."""
    lost: int = 0
    """Slabs that were ordered and never arrived."""
    duplicated: int = 0
    """Slabs that arrived twice."""
    corrupted: int = 0
    """Slabs with a wrong checksum, or that differ from the reference."""
    complaints: list[str] = field(default_factory=list)
    """The first few problems, in words."""

    def complain(self, text: str) -> None:
        if len(self.complaints) < 10:
            self.complaints.append(text)


class Audit:
    """Checks all slabs of a manager, and reports in ``findings``."""

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
                # The check is behind. While it catches up, the manager still serves its workers.
                self._manager.supervisor.pump(0.01)

    def _is_next(self, record: SlabRecord) -> bool:
        expected = self._next.get(record.table, 0)
        if record.sequence < expected:
            self._findings.duplicated += 1
            self._findings.complain(f"slab {record.sequence} of table {record.table} came twice")
            return False
        self._miss(record.table, expected, record.sequence)
        self._next[record.table] = record.sequence + 1
        return True

    def _miss(self, table: int, expected: int, got: int) -> None:
        if got > expected:
            self._findings.lost += got - expected
            self._findings.complain(f"slabs {expected} to {got - 1} of table {table} never came")

    def close(self) -> None:
        """Ends the audit. Ordered slabs that did not arrive are lost, and damage that the manager noticed counts."""
        for table in self._manager.tables:
            # Orders that wait while all workers are paused are not lost: they are played when one is resumed.
            played = table.next_sequence - len(table.orders)
            self._miss(table.number, self._next.get(table.number, 0), played)
        self._findings.corrupted += self._manager.get_status().drops.corrupted


def _fingerprint(item: CollectedSlab) -> str:
    return slab_digest(item) if item.slab.checksum() == item.record.checksum else WRONG_CHECKSUM


class Checker:
    """The manager's side of the process that plays slabs again."""

    def __init__(self, settings: VerifySettings, findings: Findings) -> None:
        self._findings = findings
        context: Any = multiprocessing.get_context(chosen_start_method())
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=check_slabs, args=(settings, theirs), name="keisei-checker", daemon=True
        )
        with deaf_to_terminal():
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
        """Offers a slab to the process. Returns False if too many wait already."""
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
                f"slab {record.sequence} of table {record.table}, played by worker {record.worker} (epoch "
                f"{record.epoch}, weights {record.version}), is not what it is undisturbed: {text}"
            )


def check_slabs(settings: VerifySettings, connection: Connection) -> None:
    """The main function of the checking process: it gets a record and a digest, and sends the result."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    if hasattr(os, "nice"):
        os.nice(5)  # the measured run has priority; the check runs when others wait
    torch.set_num_threads(1)
    try:
        with settings.manager("inline", 1) as manager:
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
