"""Callbacks: your own code that watches a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, SupportsFloat

from keisei.errors import RunError
from keisei.runs.metrics import UpdateMetrics
from keisei.training.events import Ended, Evaluation, Saved, Started, Update

if TYPE_CHECKING:  # displays are callbacks too, and wait for no torch
    from torch import nn

__all__ = ["Callback", "StopAtScore", "StopTraining", "Training"]


class StopTraining(Exception):  # noqa: N818  # not an error: a callback ends a run with it
    """A callback raises this to end a run, with a last checkpoint. Its text is the reason."""


class Training(Protocol):
    """What the trainer offers to callbacks."""

    @property
    def network(self) -> nn.Module: ...

    def log(self, name: str, value: SupportsFloat) -> None: ...


class Callback:
    """The base of callbacks: override the methods that you need. They are called between two updates, in the
    trainer's thread. An exception ends the run, after a checkpoint."""

    _training: Training | None = None

    @property
    def network(self) -> nn.Module:
        """The network that is being trained, from ``on_start`` on. Read it, but do not change it."""
        return self._attached().network

    def log(self, name: str, value: SupportsFloat) -> None:
        """Adds a number of the current update, as ``section/name``. It goes where Keisei's own numbers go: to
        ``run.db``, TensorBoard and the log. A second number of the same name replaces the first."""
        self._attached().log(name, value)

    def attach(self, training: Training) -> None:
        """Called by the trainer before ``on_start``."""
        self._training = training

    def _attached(self) -> Training:
        if self._training is None:
            raise RunError(
                f"{type(self).__name__} is not part of a run yet: it has a network and a log from on_start on"
            )
        return self._training

    def on_start(self, started: Started) -> None:
        """Called before the first update, when all workers are ready."""

    def on_update(self, update: Update) -> None:
        """Called after each update."""

    def on_evaluation(self, evaluation: Evaluation) -> None:
        """Called after the matches of an evaluation."""

    def on_metrics(self, metrics: UpdateMetrics) -> None:
        """Called after numbers were written: those of an update, of an evaluation, or of callbacks."""

    def on_checkpoint(self, saved: Saved) -> None:
        """Called after a checkpoint was written, or could not be written."""

    def on_end(self, ended: Ended) -> None:
        """Called when a run is finished, interrupted or stopped by a callback; not after an error."""

    def note(self, message: str, level: str = "info") -> None:
        """Called with a message for a person, such as about a worker that was restarted."""


class StopAtScore(Callback):
    """Ends the run when an evaluation scores high enough against an opponent."""

    def __init__(self, opponent: str, score: float) -> None:
        self._opponent = opponent
        self._score = score

    def on_evaluation(self, evaluation: Evaluation) -> None:
        for row in evaluation.rows:
            if row.opponent == self._opponent and row.score >= self._score:
                raise StopTraining(
                    f"scored {row.score:.1%} against {row.opponent}, at least {self._score:.1%} was asked for"
                )
