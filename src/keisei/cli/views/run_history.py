"""The history of a training run for displays: its last events, and figures from them."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from keisei.cli.views.wording import one_line
from keisei.runs import metric_names as tags
from keisei.runs.rows import EvaluationRow
from keisei.training.events import Ended, Evaluation, GameSummary, Saved, Started, Update

KEPT = 50
"""How many updates, evaluations of an opponent and notes are kept."""
RECENT = 10
"""Updates over which speeds and shares are averaged: enough to be stable, few enough to follow changes."""


@dataclass(frozen=True, slots=True)
class Figure:
    """How one number of an update is shown."""

    name: str
    """The name of the metric."""
    label: str
    form: str
    """The format of ``wording.figure``."""
    sign: int = 1

    def of(self, update: Update) -> float:
        """Gets the value; NaN if the update has none."""
        return self.sign * update.numbers.get(self.name, math.nan)


ENTROPY = Figure(tags.ENTROPY_LOSS, "entropy", ".3f", sign=-1)
VALUE_LOSS = Figure(tags.VALUE_LOSS, "value loss", ".4f")
KL = Figure(tags.APPROX_KL, "KL", ".4f")
PLIES = Figure(tags.GAME_LENGTH, "mean plies", ".1f")
LEARNING = (
    ENTROPY,
    VALUE_LOSS,
    Figure(tags.EXPLAINED_VARIANCE, "explained", ".3f"),
    Figure(tags.POLICY_LOSS, "policy loss", ".4f"),
    KL,
    Figure(tags.EPSILON, "epsilon", ".3f"),
    Figure(tags.TD_ERROR, "TD error", ".4f"),
    Figure(tags.Q_MEAN, "mean Q", ".3f"),
    Figure(tags.CLIP_FRACTION, "clip fraction", "%"),
    Figure(tags.LEARNING_RATE, "learning rate", ".1e"),
)
"""In the order of importance. A display shows as many as it has room for."""


@dataclass(frozen=True, slots=True)
class Note:
    elapsed: float
    level: str
    text: str


class RunHistory:
    """What a display needs to know about a run.

    Fields are replaced, never changed in place, since a display's timer reads them from another thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._updated = clock()
        self._ended_at: float | None = None
        self._elapsed_in_all = 0.0
        self._saved_at = 0.0
        self.started: Started | None = None
        self.updates: tuple[Update, ...] = ()
        self.evaluations: dict[str, tuple[EvaluationRow, ...]] = {}
        """Evaluations by opponent."""
        self.best_update: int | None = None
        self.saved_update: int | None = None
        self.notes: tuple[Note, ...] = ()
        self.ended: Ended | None = None

    def start(self, started: Started) -> None:
        self.started = started
        self._began = self._updated = self._clock()

    def add_update(self, update: Update) -> None:
        self.updates = (*self.updates, update)[-KEPT:]
        self._updated = self._clock()

    def add_evaluation(self, evaluation: Evaluation) -> None:
        # The best checkpoint changes over time; all matches against it share one row.
        named = {"the best" if row.against_checkpoint else row.opponent: row for row in evaluation.rows}
        new = {name: (*self.evaluations.get(name, ()), row)[-KEPT:] for name, row in named.items()}
        self.evaluations = {**self.evaluations, **new}
        if evaluation.is_best:
            self.best_update = evaluation.update

    def add_checkpoint(self, saved: Saved) -> None:
        if not saved.problem:  # a problem is shown as a note
            self.saved_update, self._saved_at = saved.update, self._clock()

    def add_note(self, message: str, level: str) -> None:
        self.notes = (*self.notes, Note(self.elapsed, level, one_line(message)))[-KEPT:]

    def end(self, ended: Ended) -> None:
        self._elapsed_in_all = max(self.elapsed, ended.counters.seconds)
        self.ended = ended
        self._ended_at = self._clock()

    @property
    def _now(self) -> float:
        return self._clock() if self._ended_at is None else self._ended_at

    @property
    def elapsed(self) -> float:
        """Seconds of training, including those before a resumption. They never step back: the clock stands until the
        run starts, and ends where the run's own clock ends, which is where a resumed run starts."""
        if self.started is None or self.ended is not None:
            return self._elapsed_in_all
        return self.started.counters.seconds + self._now - self._began

    @property
    def seconds_since_saved(self) -> float:
        return self._now - self._saved_at

    @property
    def recent(self) -> tuple[Update, ...]:
        return self.updates[-RECENT:]

    @property
    def learning(self) -> list[Figure]:
        """The figures of the learner: known ones first, then all others under their own names."""
        if not self.updates:
            return list(LEARNING)
        told = self.updates[-1].report.numbers
        known = [shown for shown in LEARNING if shown.name in told]
        names = {shown.name for shown in LEARNING}
        return known + [Figure(name, _label(name), ".4g") for name in told if name not in names]

    def curve(self, shown: Figure) -> list[float]:
        return [shown.of(update) for update in self.updates]

    @property
    def speed(self) -> float:
        """Transitions per second of collecting and learning; NaN before the first update."""
        spent = sum(update.collection.seconds + update.learn_seconds for update in self.recent)
        return _ratio(sum(update.collection.transitions for update in self.recent), spent)

    @property
    def collecting_share(self) -> float:
        """Share of an update's time that is collecting; the rest is learning."""
        collecting = sum(update.collection.seconds for update in self.recent)
        return _ratio(collecting, collecting + sum(update.learn_seconds for update in self.recent))

    def game_mean(self, of: Callable[[GameSummary], float]) -> float:
        """Mean over the recent games; NaN if none was finished."""
        summaries = [update.games for update in self.recent if update.games.games]
        games = sum(summary.games for summary in summaries)
        return _ratio(sum(summary.games * of(summary) for summary in summaries), games)

    @property
    def endings(self) -> list[tuple[str, int]]:
        """Endings of the recent games, the most frequent first."""
        counts: Counter[str] = Counter()
        for update in self.recent:
            counts.update(update.games.endings)
        return counts.most_common()

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the transitions are reached or the minutes are over, whichever comes first."""
        if self.started is None:
            return None
        since = self._now - self._updated
        last = self.updates[-1] if self.updates else None
        ends = []
        if last is not None and self.started.steps is not None and (pace := self._pace()) > 0:
            ends.append((self.started.steps - last.counters.transitions) / pace - since)
        if self.started.minutes is not None:
            trained = last.counters.seconds if last is not None else self.started.counters.seconds
            ends.append(60 * self.started.minutes - trained - since)
        return max(0.0, min(ends)) if ends else None

    def _pace(self) -> float:
        """Transitions per second of the run's own clock. It is slower than ``speed``, since evaluations take time
        too."""
        first, last = self.recent[0], self.recent[-1]
        transitions = last.counters.transitions - first.counters.transitions + first.collection.transitions
        first_took = first.collection.seconds + first.learn_seconds
        return _ratio(transitions, last.counters.seconds - first.counters.seconds + first_took)


def _label(name: str) -> str:
    return name.rpartition("/")[2].replace("_", " ")


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan
