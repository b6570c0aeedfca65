"""Trains a run, from its directory to its last checkpoint: the loop, and everything around it.

Order matters: an update's numbers are written before its checkpoint, so a checkpoint is never ahead of ``run.db``.
A resumed run removes everything after the checkpoint and does it again.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import SupportsFloat

import torch
from torch import nn

from keisei.errors import (
    ConfigError,
    DivergenceError,
    RunDatabaseError,
    RunError,
    RunSettingsError,
    WorkerTraceback,
)
from keisei.machine.torch_threads import single_threaded
from keisei.parallel import supervision
from keisei.policies.trust import trust_settings
from keisei.runs.archive import CheckpointArchive, Found
from keisei.runs.directory import NewRun, RunDirectory, RunState
from keisei.runs.durable_files import file_errors
from keisei.runs.log import KeptWarnings, RunLog, RunLogHandler, logging_to
from keisei.runs.metrics import own_number
from keisei.runs.rows import ChangeRow
from keisei.runs.state import State
from keisei.runs.state_tensors import weights_digest
from keisei.training.branching import way_back_after_divergence
from keisei.training.callbacks import Callback, StopAtScore, StopTraining
from keisei.training.changes import Change, check_changes, shown
from keisei.training.events import Counters, Ended, Evaluation, Saved, Started, Update
from keisei.training.exam_schedule import ExamSchedule
from keisei.training.interruption import Interruption, UpdateAbandoned
from keisei.training.presets import run_config
from keisei.training.regimes.loop import AnyParts, Pace
from keisei.training.regimes.registry import regime_of
from keisei.training.remote_control import PausableClock
from keisei.training.session import Calls, Session
from keisei.training.settings import TrainConfig
from keisei.training.wiring import counters_of, pace_of

__all__ = ["TrainResult", "Trainer"]

LONG_UPDATE = 2.0
"""Seconds. Before an update that may last longer, the state is kept, in case the update is abandoned."""


@dataclass(frozen=True)
class TrainResult:
    """How a run ended."""

    run: RunDirectory
    counters: Counters
    outcome: str
    """``finished``, ``interrupted``, or the reason that a callback gave."""
    digest: str
    """The digest of the final weights: equal training, equal digest."""
    network: nn.Module
    evaluation: Evaluation | None
    """The last one."""


class Trainer:
    """Trains a run, new or from its last whole checkpoint. ``config`` is resolved.

    ``new`` is given for a run that was just created: if its start fails, the run is removed again. ``notes`` are told
    when the run starts.
    """

    def __init__(
        self,
        run: RunDirectory,
        config: TrainConfig,
        callbacks: Sequence[Callback] = (),
        interruption: Interruption | None = None,
        *,
        new: NewRun | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.run = run
        self.config = config
        trust_settings(run, config, keep=False)  # the caller trusts the code of a trainer that it makes
        self._placed = config.placed()
        self._regime = regime_of(config)
        self._callbacks = [*callbacks, *(StopAtScore(*goal) for goal in config.run.stop_at.items())]
        self._interruption = interruption or Interruption()
        self._new, self._notes = new, list(notes)
        self._counters = Counters()
        self._clock = PausableClock()
        self._seconds_before = 0.0
        self._began: float | None = None
        self._exams = ExamSchedule(config.evaluation.every)
        self._evaluation: Evaluation | None = None
        self._last_update_seconds = math.inf
        self._failures: Mapping[int, str] = {}
        self._logged: dict[str, float] = {}
        # What the trainer tells itself, and what ``WorkerWatch`` tells, is not shown twice.
        self._warnings = KeptWarnings(but=(__name__, supervision.__name__))
        self._started = self._ended = False

    def train(self) -> TrainResult:
        """Trains until the run is over or stopped. Nothing is left running, also after an error."""
        try:
            outcome = self._train()
        except BaseException:
            self._undo_a_failed_start()
            raise
        self._ended = True
        self._tell_the_end(Ended(outcome, self._counters))
        digest = weights_digest(self.parts.learner.state().tensors["model"])
        return TrainResult(self.run, self._counters, outcome, digest, self.network, self._evaluation)

    def _train(self) -> str:
        """Trains, and records the state of the run. Settings that it cannot change to are refused before anything is
        written."""
        with self.run.lock(), single_threaded(), ExitStack() as stack:
            self._seconds_before = self.run.status().seconds
            try:
                log = self._open_log(stack)
                found = CheckpointArchive(self.run.checkpoints, read_only=True).latest()
                changes = [] if found is None else check_changes(self.run, found.checkpoint, self.config)
                self._take_up(found)
                self._open(stack, log, found)
                self._keep_settings(changes)
                self.run.record_state(RunState.RUNNING, seconds=self._counters.seconds)
                self._started = True
                outcome = self._turn()
                self._session.autosave.check(self.run.path)
            except KeyboardInterrupt:
                self._record(RunState.INTERRUPTED, "Ctrl-C")
                raise
            except BaseException as error:
                if isinstance(error.__cause__, WorkerTraceback):
                    error.add_note(f"The whole traceback of the worker is in {self.run.log}")
                if isinstance(error, DivergenceError) or "diverged" in str(error.__cause__):
                    error.add_note(way_back_after_divergence(self.run, self.config))
                if self._started or not isinstance(error, ConfigError | RunSettingsError):
                    self._record(RunState.FAILED, f"{type(error).__name__}: {error}")
                raise  # a run that was refused other settings stays in its state
            self._counters = replace(self._counters, seconds=self._stop_clock())
            ended = RunState.INTERRUPTED if outcome == "interrupted" else RunState.FINISHED
            self._record(ended, outcome)
        return outcome

    def _record(self, state: RunState, detail: str) -> None:
        """Records how the run ended. If that cannot be written, the lock still says that nobody trains the run."""
        with suppress(RunError):
            self.run.record_state(state, detail, self._stop_clock())

    def _undo_a_failed_start(self) -> None:
        """Removes a new run that has not started or has saved nothing, so that its name is free again."""
        if self._new is None or (self._started and self._counters.update):
            return
        with suppress(RunError, OSError):
            if not self._started or not CheckpointArchive(self.run.checkpoints, read_only=True).paths():
                self._new.undo()

    @property
    def network(self) -> nn.Module:
        """The network that is being trained."""
        return self.parts.learner.behaviour(1.0).network

    def log(self, name: str, value: SupportsFloat) -> None:
        """Takes a number from a callback. It is written with the current update."""
        if self._ended:
            raise RunError(f"{name} comes too late: the run has ended. Log it in on_update or on_evaluation")
        self._logged[name] = own_number(name, value)

    @property
    def _seconds(self) -> float:
        """Seconds of training until now, with evaluations and without pauses."""
        running = 0.0 if self._began is None else self._clock() - self._began
        return self._seconds_before + running

    def _stop_clock(self) -> float:
        self._seconds_before, self._began = self._seconds, None
        return self._seconds_before

    def _take_up(self, found: Found | None) -> None:
        """Continues the counters of a checkpoint. The clock continues where the last trainer has stopped it, which may
        be after the checkpoint."""
        if found is not None:
            saved = counters_of(found.checkpoint)
            self._counters = replace(saved, seconds=max(saved.seconds, self._seconds_before))
        self._seconds_before = self._counters.seconds

    def _open_log(self, stack: ExitStack) -> RunLog:
        with file_errors(self.run.path):
            log = RunLog(self.run.log)
        stack.callback(log.close)
        stack.enter_context(logging_to(RunLogHandler(log), self._warnings))
        return log

    def _open(self, stack: ExitStack, log: RunLog, found: Found | None) -> None:
        """Opens the session, and shows it to the callbacks."""
        calls = Calls(self._tell, self._on_checkpoint, self._save, self._interruption, self._clock)
        self._session = Session.open(stack, self.run, self.config, found, self._counters, log, calls)
        self._exams.evaluated_at = self._session.database.evaluated_step()
        for callback in self._callbacks:
            callback.attach(self)

    @property
    def parts(self) -> AnyParts:
        """The parts of the run, from its start on."""
        return self._session.parts

    def _keep_settings(self, changes: Sequence[Change]) -> None:
        """Keeps the settings of a run whose parts are all built and started. ``changes`` are told with the start."""
        if run_config(self.run) != self.config:
            self.run.change_config(self.config)
        if self._new is not None:
            self._new.keep()
        first = self._counters.update + 1
        rows = [
            ChangeRow(first, time.time(), change.setting, shown(change.old), shown(change.new))
            for change in changes
        ]
        self._notes += map(str, rows)
        try:
            self._session.database.add_changes(rows)
        except RunDatabaseError as error:
            self._notes.append(f"the changes are not kept: {error}")

    @property
    def pace(self) -> Pace:
        return replace(pace_of(self.config), clock=self._clock)

    def _turn(self) -> str:
        """Runs the loop and returns the outcome. If it stops between two updates, that state is saved."""
        outcome = "finished"
        try:
            self._save()  # from now on the run can be resumed
            self._began = self._clock()
            started = self._announce()
            if self.pace.is_over(self._counters) and self._is_evaluated():
                self._tell(
                    f"the run has already ended: it has {self._counters.transitions:,} transitions, and its length is "
                    f"{started.length}; continue it with more --steps or --minutes, or start over with --restart"
                )
                return outcome
            if self._evaluation_is_due():  # the run was stopped in the middle of it
                self._evaluate()
            self._counters = replace(self._counters, seconds=self._seconds)
            updates = self._regime.loop(self.parts, self.pace, self._counters)
            while not self._interruption.requested:
                update = self._next(updates)
                if update is None:
                    break
                self._between_updates(update)
            if not self._interruption.requested:
                self._last_evaluation()
        except UpdateAbandoned:
            return "interrupted"
        except StopTraining as reason:
            outcome = str(reason) or "stopped by a callback"
        with suppress(StopTraining):  # raised by a callback of this checkpoint
            self._save()
        return "interrupted" if self._interruption.requested else outcome

    def _announce(self) -> Started:
        config, workers = self._placed, len(self.parts.manager.workers)
        started = Started(
            run=self.run.path,
            game=config.env.game,
            network=config.model.network,
            parameters=sum(weight.numel() for weight in self.network.parameters()),
            workers=workers,
            backend=config.parallel.backend,
            threads=int(config.run.learner_threads),
            steps=config.run.steps,
            minutes=config.run.minutes,
            mode=config.parallel.mode,
            counters=self._counters,
            episodes=config.run.episodes,
        )
        for callback in self._callbacks:
            callback.on_start(started)
        self._show_warnings()
        for note in self._notes:
            self._tell(note)
        self._write_logged()
        if idle := config.idle_hands(workers):
            self._tell(idle)
        return started

    def _tell_the_end(self, ended: Ended) -> None:
        self._show_warnings()
        for callback in self._callbacks:
            with suppress(StopTraining):  # there is nothing left to stop
                callback.on_end(ended)

    def _next(self, updates: Iterator[Update]) -> Update | None:
        """Makes one update; None if the run is over. After a signal, an update that takes too long is abandoned."""
        may_last_long = self._last_update_seconds > LONG_UPDATE
        boundary = self._session.capture(self._counters) if may_last_long else None
        try:
            with _gradients_kept(), self._interruption.may_abandon():
                return next(updates, None)
        except UpdateAbandoned:
            if boundary is None:
                self._tell("the update is abandoned; the run continues from its last checkpoint", "warning")
            else:
                self._tell("the update is abandoned; the state before it is kept", "warning")
                self.parts.learner.restore(State(boundary.tensors, boundary.documents["learner"]))
                self._session.autosave.write(boundary)
            raise

    def _between_updates(self, update: Update) -> None:
        """Does all work between two updates. An error in a callback ends the run, but loses nothing."""
        self._counters = update.counters
        self._last_update_seconds = update.collection.seconds + update.learn_seconds
        self._session.workers.look(update.counters.update)
        self._show_warnings()
        if self._session.league is not None:
            self._session.league.write(update.counters.update)
        self._tell_failures(update.report.failures)
        try:
            self._write(update.numbers)
            for callback in self._callbacks:
                callback.on_update(update)
            self._write_logged()
            if self._evaluation_is_due():
                self._evaluate()
            elif self._session.autosave.is_due(self._counters):
                self._save()
            self._session.remote.look(update)
        except Exception:
            self._save()
            raise

    def _tell_failures(self, failures: Mapping[int, str]) -> None:
        """Reports owners that could not learn, once for each reason."""
        for owner, why in failures.items():
            if self._failures.get(owner) != why:
                self._tell(f"agent {owner} could not learn: {why}", "warning")
        self._failures = failures

    def _evaluation_is_due(self) -> bool:
        return self._exams.is_due(self._counters, self.pace.progress(self._counters))

    def _last_evaluation(self) -> None:
        """Evaluates a run at its end."""
        if not self._is_evaluated():
            self._evaluate()

    def _is_evaluated(self) -> bool:
        """Checks if the current weights have been evaluated, also by an earlier trainer of this run."""
        return not self.config.evaluation.opponents or self._exams.evaluated_at == self._counters.transitions

    def _evaluate(self) -> None:
        if not self.config.evaluation.opponents:
            return
        path = self._save()
        try:
            with _gradients_kept(), self._interruption.may_abandon(at_once=True):
                evaluation = self._session.examiner.examine(self.parts.learner, self._counters, path)
        except UpdateAbandoned:
            self._tell("the evaluation is abandoned")
            return
        self._evaluation, self._exams.evaluated_at = evaluation, self._counters.transitions
        self._write(evaluation.numbers)
        for callback in self._callbacks:
            callback.on_evaluation(evaluation)
        self._write_logged()

    def _save(self) -> Path | None:
        return self._session.autosave.save(self._counters)

    def _on_checkpoint(self, saved: Saved) -> None:
        if saved.problem:
            self._tell(saved.problem, "warning")
        for callback in self._callbacks:
            callback.on_checkpoint(saved)
        self._write_logged()

    def _write(self, numbers: Mapping[str, float]) -> None:
        """Writes numbers of the last update, and shows them to the callbacks."""
        written = self._session.metrics.write(self._counters.update, self._counters.transitions, numbers)
        for callback in self._callbacks:
            callback.on_metrics(written)

    def _write_logged(self) -> None:
        """Writes what callbacks have logged."""
        logged, self._logged = self._logged, {}
        if logged:
            self._write(logged)

    def _tell(self, message: str, level: str = "info") -> None:
        logging.getLogger(__name__).log(logging.WARNING if level == "warning" else logging.INFO, message)
        self._show(message, level)

    def _show_warnings(self) -> None:
        """Shows what the parts have warned of. The run's log has it already."""
        for message in self._warnings.take():
            self._show(message, "warning")

    def _show(self, message: str, level: str) -> None:
        for callback in self._callbacks:
            callback.note(message, level)


@contextmanager
def _gradients_kept() -> Iterator[None]:
    """Restores whether torch computes gradients. The exception that abandons an update may strike inside torch, just
    after it has switched them off."""
    enabled = torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_grad_enabled(enabled)
