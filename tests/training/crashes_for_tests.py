"""Trainers that are killed with kill -9 several times, in a process that has torch and no thread."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

# What a trainer imports only when it needs it: here once, for all trainers that are forked.
import tensorboard.summary.writer.record_writer  # noqa: F401
import torch._dynamo  # noqa: F401
from checkpoints_for_tests import forked
from training_for_tests import tiny, train

from keisei.runs.archive import CheckpointArchive
from keisei.runs.directory import RunDirectory, RunState
from keisei.training.callbacks import Callback
from keisei.training.events import Started, Update

MOST_UPDATES = 3
"""That a trainer makes before it is killed."""
PAUSE = 0.03
"""Seconds between the end of an update, of which a checkpoint is then written, and the kill: at most so many."""


class Telling(Callback):
    """Sends a byte at the start and after each update."""

    def __init__(self, writer: int) -> None:
        self._writer = writer

    def on_start(self, started: Started) -> None:
        os.write(self._writer, b".")

    def on_update(self, update: Update) -> None:
        os.write(self._writer, b".")


class Killer:
    """Kills the trainers of runs that all have the same settings."""

    def __init__(self, root: Path, *settings: str) -> None:
        self._root, self._settings = root, settings
        self._chance = random.Random(5)
        self.kills = 0
        self.digests: set[str] = set()
        """Of all runs at their end."""
        self.seen: set[int] = set()
        """The last updates that lay on disk when trainers were killed."""

    def kill(self, count: int) -> None:
        """Kill so many trainers at random instants. A run that comes to its end meanwhile is followed by another."""
        while self.kills < count:
            name = f"run-{len(os.listdir(self._root))}"
            run = RunDirectory.create(self._root, name, tiny(*self._settings))
            safe = -1
            while self.kills < count and self._train_and_kill(name):
                self.kills += 1
                safe = self._newest(run, safe)
            self.digests.add(self._finish(name))

    def _train_and_kill(self, name: str) -> bool:
        """False where the trainer was faster."""
        reader, writer = os.pipe()
        child = forked(
            lambda: train(self._root, *self._settings, callbacks=[Telling(writer)], name=name) and None
        )
        os.close(writer)
        for _ in range(self._chance.randrange(MOST_UPDATES + 2)):
            os.read(reader, 1)
        time.sleep(self._chance.uniform(0, PAUSE))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(reader)
        code = os.waitstatus_to_exitcode(status)
        assert code in (0, -signal.SIGKILL)
        return code != 0

    def _newest(self, run: RunDirectory, safe: int) -> int:
        """The newest checkpoint is whole, and nothing that was safe has been lost."""
        assert run.status().state in (RunState.CREATED, RunState.INTERRUPTED, RunState.FINISHED)
        found = CheckpointArchive(run.checkpoints, read_only=True).latest()
        update = -1 if found is None else found.checkpoint.update
        assert found is None or found.skipped == ()
        assert update >= safe
        self.seen.add(update)
        return update

    def _finish(self, name: str) -> str:
        """Let a run come to its end, and give the digest of its weights."""
        reader, writer = os.pipe()
        child = forked(
            lambda: os.write(writer, train(self._root, *self._settings, name=name).digest.encode()) and None
        )
        os.close(writer)
        digest = os.read(reader, 64).decode()
        os.close(reader)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        return digest
