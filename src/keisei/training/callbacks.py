"""Watching a run from one's own code."""

from __future__ import annotations

from keisei.training.events import Ended, Evaluation, Saved, Started, Update

__all__ = ["Callback", "StopAtScore", "StopTraining"]


class StopTraining(Exception):  # noqa: N818  # no error: it is how a callback says that it is enough
    """Raised by a callback to end a run in good order, with a last checkpoint. Its text is the reason."""


class Callback:
    """Override what is of interest. Calls come between two updates, in the trainer's own thread; an exception
    ends the run, after a checkpoint."""

    def on_start(self, started: Started) -> None:
        """Before the first update, when all workers are ready."""

    def on_update(self, update: Update) -> None:
        """After each update."""

    def on_evaluation(self, evaluation: Evaluation) -> None:
        """After the matches of an evaluation."""

    def on_checkpoint(self, saved: Saved) -> None:
        """After a checkpoint was written, or could not be."""

    def on_end(self, ended: Ended) -> None:
        """After a run that was finished, interrupted or stopped by a callback; not after an error."""

    def note(self, message: str, level: str = "info") -> None:
        """Something that a person should know, such as a worker that was restarted."""


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
