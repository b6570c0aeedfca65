"""Runs of benchmarks: where they are kept, and their progress in one line."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.status import Status

from keisei.runs.metric_names import LOSS
from keisei.training.callbacks import Callback
from keisei.training.events import Evaluation, Update


class Progress(Callback):
    """Shows how far a run is."""

    def __init__(self, status: Status, name: str) -> None:
        self._status, self._name = status, name

    def on_update(self, update: Update) -> None:
        self._status.update(
            f"{self._name}: {update.progress:.0%}, {update.counters.transitions:,} transitions, "
            f"loss {update.numbers.get(LOSS, math.nan):.3g}"
        )

    def on_evaluation(self, evaluation: Evaluation) -> None:
        self._status.update(f"{self._name}: matches")


@contextmanager
def run_folder(keep: Path | None) -> Iterator[Path]:
    """Gives the folder for runs: the one that is named, or one that is removed at the end."""
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="keisei-bench-") as folder:
        yield Path(folder)
