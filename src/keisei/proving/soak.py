"""A long run with disturbances: workers are killed, stopped, reset and paused, and every slab is checked.

Each slab is compared with the same slab of an undisturbed table. No slab may be lost, duplicated or different, and
nothing may be left behind.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from keisei.errors import NoWorkersError
from keisei.experience.collected import Experiences
from keisei.games.registry import DEFAULT_GAME
from keisei.machine.memory import resident_bytes
from keisei.machine.torch_threads import torch_threads
from keisei.parallel.backend_names import runs_elsewhere
from keisei.parallel.parallel_manager import ParallelManager
from keisei.proving.audit import Audit, Checker, Findings
from keisei.proving.disturbance import Disturber, Toll
from keisei.proving.same_experience import (
    HANG_SECONDS,
    HANG_SECONDS_ELSEWHERE,
    SLAB_STEPS,
    STOP_SHARE,
    PlannedWeights,
    VerifySettings,
)

Mode = Literal["sync", "async"]
Backend = Literal["process", "ray"]
"""Where workers have processes that can be struck."""

COLLECT_SECONDS = 0.2
SLABS_A_ROUND = 2
"""Slabs of each table in a synchronous round: enough that workers are busy when a signal comes."""
PUBLISH_SHARE = 0.3
"""Share of collections after which the weights change."""
RESET_SHARE = 0.05
"""Share of collections after which the games of some tables start over."""
PAUSE_SHARE = 0.05
"""Share of collections in which some worker is paused."""
SAMPLE_SECONDS = 0.2
SETTLE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class SoakSettings:
    game: str = DEFAULT_GAME
    tables: int = 6
    workers: int = 4
    games: int = 16
    """Games of each table."""
    duration: float = 60.0
    kill_every: float = 0.1
    backend: Backend = "process"
    modes: tuple[Mode, ...] = ("sync", "async")
    """The modes, one after the other, each for its share of the time."""
    seed: int = 0

    @property
    def plan(self) -> VerifySettings:
        """The settings of play, for any backend."""
        return VerifySettings(game=self.game, tables=self.tables, games=self.games, seed=self.seed)

    def manager(self, mode: Mode) -> ParallelManager:
        hang = HANG_SECONDS_ELSEWHERE if runs_elsewhere(self.backend) else HANG_SECONDS
        return self.plan.manager(self.backend, self.workers, mode=mode, hang_timeout=hang)


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident bytes at one time."""

    share: float
    """Share of the run's time that has passed, 0 … 1."""
    manager: int
    workers: int


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What this process has now and did not have before."""

    processes: int
    shared_blocks: int
    """Blocks of shared memory that are open or mapped, with or without a name."""
    descriptors: int | None
    """Open files; None if they are not counted, since Ray keeps files of its own as long as the program runs."""


@dataclass(frozen=True, slots=True)
class SoakReport:
    seconds: float
    toll: Toll
    restarts: int
    resets: int
    pauses: int
    findings: Findings
    leftovers: Leftovers
    manager_growth: int
    """Growth in bytes, from a quarter of the time to the end."""
    worker_growth: int
    """The same, for all workers together."""
    interrupted: bool

    @property
    def ok(self) -> bool:
        f, left = self.findings, self.leftovers
        found = f.lost or f.duplicated or f.corrupted
        return not (found or left.processes or left.shared_blocks or left.descriptors)

    @property
    def recovery_median(self) -> float:
        return statistics.median(self.toll.recoveries or [0.0])

    @property
    def recovery_p99(self) -> float:
        times = sorted(self.toll.recoveries) or [0.0]
        return times[min(len(times) - 1, round(0.99 * (len(times) - 1)))]


Observer = Callable[[float, Toll, Findings], None]
"""Called with the share of the time that has passed, the strikes and the findings."""


def soak(
    settings: SoakSettings,
    observe: Observer = lambda share, toll, findings: None,
    interrupted: threading.Event | None = None,
) -> SoakReport:
    """Runs, checks, and reports. If ``interrupted`` is set, it ends early with the report so far."""
    interrupted = interrupted or threading.Event()
    _warm_up(settings)
    before = _belongings()
    began = time.monotonic()
    ordeal = _Ordeal(settings, began, observe, interrupted)
    with torch_threads(1):
        for mode in settings.modes:
            ordeal.endure(mode, settings.duration / len(settings.modes))
            gc.collect()
    after = _belongings()
    growth = _growth(ordeal.memory)
    return SoakReport(
        seconds=time.monotonic() - began,
        toll=ordeal.toll,
        restarts=ordeal.restarts,
        resets=ordeal.resets,
        pauses=ordeal.pauses,
        findings=ordeal.findings,
        leftovers=_left_over(before, after, settings.backend),
        manager_growth=growth.manager,
        worker_growth=growth.workers,
        interrupted=interrupted.is_set(),
    )


class _Ordeal:
    """The runs of a soak, and their sums."""

    def __init__(
        self, settings: SoakSettings, began: float, observe: Observer, interrupted: threading.Event
    ) -> None:
        self._settings = settings
        self._began = began
        self._observe = observe
        self._interrupted = interrupted
        self._chance = random.Random(settings.seed)
        self.toll = Toll()
        self.restarts = self.resets = self.pauses = 0
        self.findings = Findings()
        self.memory: list[Memory] = []

    def endure(self, mode: Mode, seconds: float) -> None:
        """Runs one manager from its start to its end. The seconds count from the time when its workers are there."""
        manager = self._settings.manager(mode)
        assert manager.model is not None
        weights = PlannedWeights(manager.model, self._settings.seed)
        disturber = Disturber(
            manager.workers,
            manager.tables,
            every=self._settings.kill_every,
            stop_share=STOP_SHARE,
            seed=self._settings.seed,
        )
        with manager, Checker(self._settings.plan, self.findings) as checker, disturber:
            audit = Audit(manager, checker, self.findings)
            until = time.monotonic() + seconds
            while time.monotonic() < until and not self._interrupted.is_set():
                audit.take(self._collect(manager, mode))
                self._meddle(manager, weights)
                self._look(manager, disturber.toll)
            _settle(manager, disturber, audit)
            self.restarts += manager.get_status().restarts
        self.toll = self.toll + disturber.toll

    def _collect(self, manager: ParallelManager, mode: Mode) -> Experiences:
        if mode == "async":
            return manager.collect_experiences(timeout=COLLECT_SECONDS)
        return manager.collect_experiences(
            SLABS_A_ROUND * self._settings.tables * SLAB_STEPS * self._settings.games
        )

    def _meddle(self, manager: ParallelManager, weights: PlannedWeights) -> None:
        """Does what a training run does: changes weights, resets games and pauses workers."""
        manager.resume_workers()
        if self._chance.random() < PUBLISH_SHARE:
            weights.publish(manager)
        worker = self._chance.randrange(self._settings.workers)
        if self._chance.random() < RESET_SHARE:
            manager.reset_workers([self._chance.randrange(self._settings.tables)])
            self.resets += 1
        if self._chance.random() < PAUSE_SHARE and self._settings.workers > 1:
            manager.pause_workers([worker])
            self.pauses += 1

    def _look(self, manager: ParallelManager, toll: Toll) -> None:
        now = time.monotonic() - self._began
        share = min(1.0, now / self._settings.duration)
        if not self.memory or share - self.memory[-1].share > SAMPLE_SECONDS / self._settings.duration:
            workers = sum(worker.memory_bytes for worker in manager.get_status().workers)
            self.memory.append(Memory(share, resident_bytes(os.getpid()), workers))
            self._observe(share, self.toll + toll, self.findings)


def _settle(manager: ParallelManager, disturber: Disturber, audit: Audit) -> None:
    """Waits until all workers have recovered, takes the remaining slabs, and checks that all ordered slabs have
    arrived."""
    disturber.cease()
    manager.resume_workers()
    deadline = time.monotonic() + SETTLE_SECONDS
    patience = SETTLE_SECONDS if manager.config.mode == "sync" else COLLECT_SECONDS
    while not disturber.at_rest and time.monotonic() < deadline:
        audit.take(manager.collect_experiences(timeout=patience))
    manager.pause_workers()
    with suppress(NoWorkersError):  # which means that nothing more will arrive
        while time.monotonic() < deadline:
            audit.take(manager.collect_experiences(timeout=patience))
    audit.close()


def _warm_up(settings: SoakSettings) -> None:
    """Starts what stays for the next manager, such as the fork server, so it does not count as left behind."""
    with replace(settings, workers=1).manager("sync"), Checker(settings.plan, Findings()):
        gc.collect()


def _belongings() -> tuple[int, int, int]:
    """Counts processes, blocks of shared memory and open files of this process."""
    children = len(multiprocessing.active_children())
    folder, maps = Path("/proc/self/fd"), Path("/proc/self/maps")
    opened = [_target(path) for path in folder.iterdir()] if folder.is_dir() else []
    mapped = maps.read_text().splitlines() if maps.exists() else []
    blocks = sum("memfd:keisei" in name or "/dev/shm/" in name for name in [*opened, *mapped])
    return children, blocks, len(opened)


def _left_over(before: Sequence[int], after: Sequence[int], backend: Backend) -> Leftovers:
    processes, blocks, files = (max(0, now - then) for now, then in zip(after, before, strict=True))
    return Leftovers(processes, blocks, files if backend == "process" else None)


def _target(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _growth(samples: Sequence[Memory]) -> Memory:
    """Computes the growth from a quarter of the time to the end. Both are medians over a tenth of the samples,
    since workers come and go."""
    early = [sample for sample in samples if 0.2 <= sample.share <= 0.3]
    late = [sample for sample in samples if sample.share >= 0.9]
    if not early or not late:
        return Memory(1.0, 0, 0)
    return Memory(
        1.0,
        _median(sample.manager for sample in late) - _median(sample.manager for sample in early),
        _median(sample.workers for sample in late) - _median(sample.workers for sample in early),
    )


def _median(values: Iterable[int]) -> int:
    return int(statistics.median(values))
