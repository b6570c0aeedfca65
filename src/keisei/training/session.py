"""What is open while a run is trained: its files, its parts, and what watches them between two updates."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from keisei.runs.archive import CheckpointArchive, Found
from keisei.runs.checkpoint import Checkpoint
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.durable_files import file_errors
from keisei.runs.log import RunLog
from keisei.runs.metrics import MetricsWriter
from keisei.runs.snapshots import SnapshotStore
from keisei.training.autosave import Autosave
from keisei.training.events import Counters, Saved
from keisei.training.examiner import Examiner
from keisei.training.interruption import Interruption
from keisei.training.league.records import LeagueRecords
from keisei.training.regimes.loop import AnyParts
from keisei.training.remote_control import PausableClock, Reach, RemoteControl
from keisei.training.settings import TrainConfig
from keisei.training.wiring import capture, connect, player_document
from keisei.training.worker_events import WorkerWatch

__all__ = ["Calls", "Session"]


@dataclass(frozen=True)
class Calls:
    """What a session calls in its trainer."""

    tell: Callable[..., None]
    """Takes a message for a person, and its level."""
    on_checkpoint: Callable[[Saved], None]
    save: Callable[[], Path | None]
    """Saves the current state."""
    interruption: Interruption
    clock: PausableClock


@dataclass(frozen=True)
class Session:
    """The open parts of a run, from its start to its end."""

    config: TrainConfig
    parts: AnyParts
    database: RunDatabase
    metrics: MetricsWriter
    league: LeagueRecords | None
    workers: WorkerWatch
    examiner: Examiner
    autosave: Autosave
    remote: RemoteControl

    @classmethod
    def open(
        cls,
        stack: ExitStack,
        run: RunDirectory,
        config: TrainConfig,
        found: Found | None,
        counters: Counters,
        log: RunLog,
        calls: Calls,
    ) -> Self:
        """Opens the files of a run, rewinds them to the counters, and builds and starts all parts. ``stack`` closes
        everything."""
        with file_errors(run.path):
            store = CheckpointArchive(run.checkpoints, config.run.keep, config.run.milestone_every)
            store.rewind(counters.update)
        database = stack.enter_context(RunDatabase(run.database))
        database.rewind(counters.update)
        metrics = MetricsWriter(run, database, log, None if found is None else counters.transitions)
        stack.callback(metrics.close)
        parts = connect(config.placed(), None if found is None else found.checkpoint, run)
        stack.callback(parts.manager.stop_workers)
        league = None
        if parts.league is not None:
            game, player = parts.spec.name, player_document(config)
            members = SnapshotStore(run.league)
            league = LeagueRecords(parts.league, members, store, database, game, player, calls.tell)
            league.write(counters.update)
        autosave = Autosave(
            store, config.run, lambda counters: capture(parts, counters, config), calls.on_checkpoint
        )
        if found is not None:
            autosave.resumed_from(counters, found.path)
        return cls(
            config,
            parts,
            database,
            metrics,
            league,
            WorkerWatch(parts.manager, database, calls.tell),
            Examiner(run, config, parts.spec, store, database, calls.tell),
            autosave,
            RemoteControl(run, Reach(parts.manager, calls.interruption, calls.clock, calls.save, calls.tell)),
        )

    def capture(self, counters: Counters) -> Checkpoint:
        """Captures the state between two updates."""
        return capture(self.parts, counters, self.config)
