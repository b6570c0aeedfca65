"""Saves a run on schedule, also when the disk is full at times."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from keisei.errors import CheckpointWriteError
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import Checkpoint
from keisei.training.events import Counters, Saved
from keisei.training.settings import RunSettings

EARLY = (10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds of training after which a checkpoint is written in any case: a young run changes fast, and people watch
it."""
RETRY_SECONDS = 60.0
"""Seconds until the next attempt, after a checkpoint that could not be written."""


class Autosave:
    """Writes checkpoints on schedule. A full disk does not stop the training: earlier checkpoints are whole,
    callbacks are told, and it tries again later."""

    def __init__(
        self,
        store: CheckpointArchive,
        settings: RunSettings,
        capture: Callable[[Counters], Checkpoint],
        tell: Callable[[Saved], None],
    ) -> None:
        self._store, self._settings = store, settings
        self._capture, self._tell = capture, tell
        self._last: tuple[int, Path] | None = None
        self._failure: CheckpointWriteError | None = None
        self._next_at = time.monotonic() + 60 * settings.checkpoint_minutes
        self._early_until = 0.0
        """Seconds of training up to which early checkpoints are written."""

    def resumed_from(self, counters: Counters, path: Path) -> None:
        """Notes that this state is already on disk."""
        self._last, self._early_until = (counters.update, path), counters.seconds

    def is_due(self, counters: Counters) -> bool:
        by_count = self._settings.checkpoint_every
        if by_count is not None and counters.update % by_count == 0:
            return True
        is_early = any(self._early_until < seconds <= counters.seconds for seconds in EARLY)
        return is_early or time.monotonic() >= self._next_at

    def save(self, counters: Counters) -> Path | None:
        """Saves the state between two updates. Returns its path, or None if it could not be written."""
        return self._saved(counters.update) or self.write(self._capture(counters))

    def write(self, checkpoint: Checkpoint) -> Path | None:
        """Saves a state that was captured before. Returns its path, or None."""
        if (saved := self._saved(checkpoint.update)) is not None:
            return saved
        self._early_until = float(checkpoint.counters.get("seconds", 0.0))
        began = time.monotonic()
        path, self._failure = None, None
        try:
            path = self._store.save(checkpoint)
            self._last = (checkpoint.update, path)
        except CheckpointWriteError as error:
            self._failure = error
        problem = str(self._failure or "")
        now = time.monotonic()
        interval = 60 * self._settings.checkpoint_minutes
        self._next_at = now + (min(interval, RETRY_SECONDS) if problem else interval)
        self._tell(Saved(checkpoint.update, path, now - began, problem))
        return path

    def check(self, run: Path) -> None:
        """Raises ``CheckpointWriteError`` if the last checkpoint of a run that ends could not be written."""
        if self._failure is None:
            return
        cause = self._failure.__cause__
        reason = getattr(cause, "strerror", None) or self._failure
        safe = "no update is" if self._last is None else f"update {self._last[0]} is the last that is"
        raise CheckpointWriteError(
            f"the end of run {run} is lost, since its last checkpoint cannot be written ({reason}); {safe} safe. Make "
            f"room on the disk and continue: keisei train {run}"
        ) from cause

    def _saved(self, update: int) -> Path | None:
        """Finds the path of this update's checkpoint; None if it is not saved yet."""
        return self._last[1] if self._last is not None and self._last[0] == update else None
