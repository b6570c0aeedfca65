"""Trains several runs at once, each as ``keisei train`` in a process and on cores of its own.

A run on one core wastes none: nothing waits for the slowest worker. So as many runs as there are cores train at once,
and spare cores are shared out among them. Synchronous runs learn the same bits on any number of cores.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from types import FrameType
from typing import IO

from keisei.machine.cores import usable_cores
from keisei.machine.safe_path import safe_flags
from keisei.runs.directory import RunDirectory
from keisei.runs.live import read_live

__all__ = ["Job", "JobState", "SideBySide", "Standing", "own_cores", "share_done", "shares"]

LOOKS = 0.2
"""Seconds between two looks at the processes."""
_LONGEST_PROBLEM = 2000
_CHILD = """
import os, signal, sys
from keisei.machine.new_processes import end_with_parent
end_with_parent(signal.SIGTERM)
cores = [int(core) for core in sys.argv.pop(1).split(",") if core]
if cores:
    os.sched_setaffinity(0, cores)
from keisei.cli.entry import main
main()
"""
"""A process keeps to its cores, and saves and ends if the command that started it ends."""


class JobState(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    PAUSED = "paused"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True)
class Job:
    """A run to train."""

    run: RunDirectory
    arguments: tuple[str, ...]
    """The arguments of ``keisei train``."""
    until: float = 1.0
    """The share of its length after which it is saved and ended. It can be continued from there."""
    done: bool = False
    """Whether it needs no training."""


@dataclass
class Standing:
    """The state of a job."""

    job: Job
    state: JobState = JobState.WAITING
    problem: str = ""
    """What a failed run said."""


@dataclass
class _Process:
    standing: Standing
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    cores: Sequence[int]


def shares(cores: Sequence[int], runs: int, at_once: int | None = None) -> list[list[int]]:
    """Assigns neighbouring cores to each of the runs that train at once. There are at most as many runs as cores,
    unless ``at_once`` asks for more."""
    count = max(1, min(runs, len(cores) if at_once is None else at_once))
    if count > len(cores):
        return [[cores[number % len(cores)]] for number in range(count)]
    return [
        list(cores[len(cores) * number // count : len(cores) * (number + 1) // count])
        for number in range(count)
    ]


def own_cores() -> list[int]:
    """Lists the cores that this process may use."""
    known = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(usable_cores())
    return list(known)[: usable_cores()]


class SideBySide:
    """Trains jobs, some at a time, until all have ended or Ctrl-C ends them."""

    def __init__(self, jobs: Sequence[Job], at_once: int | None = None) -> None:
        self.standings = [Standing(job, JobState.FINISHED if job.done else JobState.WAITING) for job in jobs]
        waiting = sum(standing.state is JobState.WAITING for standing in self.standings)
        self.shares = shares(own_cores(), waiting, at_once)
        self.interrupted = False
        self._free = list(self.shares)
        self._processes: list[_Process] = []

    def run(self, watch: Callable[[Sequence[Standing]], None] = lambda standings: None) -> list[Standing]:
        """Trains. ``watch`` is called now and then."""
        with self._signals():
            try:
                while self._look():
                    watch(self.standings)
                    time.sleep(LOOKS)
            finally:
                self._end_all()
        watch(self.standings)
        return self.standings

    def _look(self) -> bool:
        """Checks the processes, and starts others. Returns False when nothing is left to do."""
        for running in list(self._processes):
            if running.process.poll() is not None:
                self._processes.remove(running)
                self._close(running)
            elif share_done(running.standing.job.run) >= running.standing.job.until < 1:
                self._pause(running)
        waiting = [standing for standing in self.standings if standing.state is JobState.WAITING]
        while waiting and self._free and not self.interrupted:
            self._start(waiting.pop(0))
        return bool(self._processes or (waiting and not self.interrupted))

    def _start(self, standing: Standing) -> None:
        cores, output = self._free.pop(0), tempfile.TemporaryFile()  # noqa: SIM115  # it is closed with the process
        affinity = ",".join(map(str, cores)) if hasattr(os, "sched_setaffinity") else ""
        placed = () if affinity else _placement(len(cores))
        command = [
            sys.executable,
            *safe_flags(),
            "-c",
            _CHILD,
            affinity,
            "train",
            *standing.job.arguments,
            *placed,
            "--quiet",
        ]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C reaches it once, from here
        )
        standing.state = JobState.RUNNING
        self._processes.append(_Process(standing, process, output, cores))

    def _pause(self, running: _Process) -> None:
        if running.standing.state is JobState.RUNNING:
            running.standing.state = JobState.PAUSED
            running.process.send_signal(signal.SIGINT)

    def _close(self, running: _Process) -> None:
        """Notes how a process ended, and frees its cores."""
        standing, code = running.standing, running.process.returncode
        if code == 0:
            standing.state = JobState.FINISHED
        elif code == 130 or self.interrupted:
            standing.state = JobState.PAUSED if standing.state is JobState.PAUSED else JobState.INTERRUPTED
        else:
            standing.state, standing.problem = JobState.FAILED, _said(running, code)
        running.output.close()
        self._free.append(list(running.cores))

    def _end_all(self) -> None:
        """Ends all processes that still run, also after an error."""
        for running in self._processes:
            running.process.terminate()
        for running in self._processes:
            running.process.wait()
            self._close(running)
        self._processes.clear()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Passes a signal on. The first one lets runs save and end, a second one ends them at once."""
        self.interrupted = True
        for running in self._processes:
            with suppress(ProcessLookupError):
                running.process.send_signal(signal.SIGINT)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _placement(cores: int) -> tuple[str, ...]:
    """Limits a run to a number of cores on systems where processes cannot be bound to them."""
    return ("--set", f"parallel.num_workers={cores}", "--set", f"run.learner_threads={cores}")


def share_done(run: RunDirectory) -> float:
    """Reads the share of its length that a run has done, as its trainer last reported it."""
    live = read_live(run)
    return 0.0 if live is None else live.progress


def _said(running: _Process, code: int) -> str:
    running.output.seek(0)
    text = running.output.read().decode("utf-8", "replace").strip()
    return text[-_LONGEST_PROBLEM:] or f"it ended with exit code {code} and said nothing"
