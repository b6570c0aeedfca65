"""Callbacks: your own code that watches a run."""

from __future__ import annotations

from keisei.training.events import Ended, Evaluation, Saved, Started, Update

__all__ = ["Callback", "StopAtScore", "StopTraining"]


class StopTraining(Exception):  # noqa: N818  # not an error: a callback ends a run with it
    """A callback raises this to end a run, with a last checkpoint. Its text is the reason."""


class Callback:
    """The base of callbacks: override the methods that you need. They are called between two updates, in the
    trainer's thread. An exception ends the run, after a checkpoint."""

    def on_start(self, started: Started) -> None:
        """Called before the first update, when all workers are ready."""

    def on_update(self, update: Update) -> None:
        """Called after each update."""

    def on_evaluation(self, evaluation: Evaluation) -> None:
        """Called after the matches of an evaluation."""

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
