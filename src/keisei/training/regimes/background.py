"""Independent agents learn in turn with collection, or in a thread beside it.

The thread waits for trainings to do and is woken by them; it polls nothing, and no training is skipped. What a training
learns from was drawn before it began, so collection writes memories without a lock. New weights are published when a
training ends, and workers play with them from their next step on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from keisei.errors import LearningError
from keisei.experience.agent_memory import DrawnSamples, MemoryView
from keisei.experience.agents_buffer import AgentView
from keisei.experience.rollout import RolloutView
from keisei.learners.contract import NOTHING_LEARNED, Report
from keisei.learners.independent import IndependentLearners
from keisei.machine.torch_threads import stay_on_one_thread
from keisei.runs.metric_names import GRADIENT_STEPS
from keisei.training.regimes.publishing import Publisher

__all__ = ["InBackground", "InTurn", "Learning"]

MOST_WAITING = 2
"""Trainings that may wait. Then collection waits too, so memory is bounded and no experience is lost."""


class Learning(Protocol):
    """How trainings are done."""

    def train(self, views: Sequence[AgentView], progress: float, after: float) -> Report:
        """Does a training, or lets it be done. Returns what has ended since the last call. ``after`` is the progress
        that its weights are played at."""
        ...

    def skip(self, after: float) -> Report:
        """Does no training now. Returns what has ended since the last call."""
        ...

    def finish(self) -> Report:
        """Waits for all trainings. Returns what has ended since the last call."""
        ...

    def close(self) -> None:
        """Leaves nothing running."""
        ...


class InTurn:
    """Learns while workers wait."""

    def __init__(self, learner: IndependentLearners, publisher: Publisher) -> None:
        self._learner, self._publisher = learner, publisher

    def train(self, views: Sequence[AgentView], progress: float, after: float) -> Report:
        report = self._learner.learn(views, progress)
        self._publisher.publish(self._learner.behaviour(after), report)
        return report

    def skip(self, after: float) -> Report:
        """Publishes how freely agents play from now on."""
        self._publisher.publish(self._learner.behaviour(after), NOTHING_LEARNED)
        return NOTHING_LEARNED

    def finish(self) -> Report:
        return NOTHING_LEARNED

    def close(self) -> None:
        self._learner.close()


class InBackground:
    """Learns in a thread, while the caller collects."""

    def __init__(self, learner: IndependentLearners, publisher: Publisher) -> None:
        self._learner, self._publisher = learner, publisher
        self._waiting: deque[tuple[Sequence[DrawnSamples | RolloutView], float, float]] = deque()
        self._ended: list[Report] = []
        self._trained: list[Sequence[DrawnSamples | RolloutView]] = []
        self._changed = threading.Condition()
        self._busy = self._stopping = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="learning", daemon=True)
        self._thread.start()

    def train(self, views: Sequence[AgentView], progress: float, after: float) -> Report:
        drawn = [view.drawn(progress) if isinstance(view, MemoryView) else view for view in views]
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < MOST_WAITING or self._error)
            self._demand_health()
            self._waiting.append((drawn, progress, after))
            self._changed.notify_all()
        return self._news()

    def skip(self, after: float) -> Report:
        return self._news()

    def finish(self) -> Report:
        with self._changed:
            self._changed.wait_for(lambda: not (self._waiting or self._busy) or self._error)
            self._demand_health()
        return self._news()

    def close(self) -> None:
        """Ends the thread after the training that is going on. Trainings that wait are given up: they are only there
        if the run was stopped."""
        with self._changed:
            self._stopping = True
            self._waiting.clear()
            self._changed.notify_all()
        self._thread.join()
        self._learner.close()

    def _news(self) -> Report:
        """Reports what has ended, and sets the priorities that it found. The caller's thread writes the memories."""
        with self._changed:
            reports, self._ended = self._ended, []
            trained, self._trained = self._trained, []
        for views in trained:
            for view in views:
                if isinstance(view, DrawnSamples):
                    view.settle()
        return joined(reports)

    def _demand_health(self) -> None:
        if self._error is not None:
            raise LearningError(f"learning in the background has failed: {self._error!r}") from self._error

    def _run(self) -> None:
        stay_on_one_thread()
        try:
            while (training := self._next()) is not None:
                views, progress, after = training
                report = self._learner.learn(views, progress)
                with self._learner.whole:
                    self._publisher.publish(self._learner.behaviour(after), report)
                self._end(views, report)
        except BaseException as error:  # it is raised in the caller's thread
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _next(self) -> tuple[Sequence[Any], float, float] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            if self._stopping:
                return None
            self._busy = True
            training = self._waiting.popleft()
            self._changed.notify_all()
            return training

    def _end(self, views: Sequence[DrawnSamples | RolloutView], report: Report) -> None:
        with self._changed:
            self._busy = False
            self._ended.append(report)
            self._trained.append(views)
            self._changed.notify_all()


def joined(reports: Sequence[Report]) -> Report:
    """Joins the reports of several trainings: the last numbers of each agent, and all its gradient steps."""
    if not reports:
        return NOTHING_LEARNED
    owners: dict[int, dict[str, float]] = {}
    for report in reports:
        for owner, numbers in report.owners.items():
            steps = owners.get(owner, {}).get(GRADIENT_STEPS, 0.0) + numbers.get(GRADIENT_STEPS, 0.0)
            owners[owner] = {**numbers, GRADIENT_STEPS: steps}
    return Report(owners, {owner: why for report in reports for owner, why in report.failures.items()})
