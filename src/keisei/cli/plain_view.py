"""A training run as figures to show, and as lines of text: what a log, a pipe or a dumb terminal gets to see."""

from __future__ import annotations

import math
import textwrap
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rich.console import Console

if TYPE_CHECKING:
    from keisei.runs.rows import EvaluationRow
    from keisei.training.events import Counters, Evaluation, GameSummary, Saved, Update

KEPT = 50
"""Updates, evaluations of an opponent and notes that are remembered."""
RECENT = 10
"""Updates that speeds and shares are taken over: enough to be calm, few enough to follow a change."""
PAUSE = 5.0
"""Seconds between two lines about updates."""
LINE_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Heading:
    """What a run is, as it is known before the first update."""

    run: Path
    game: str
    network: str
    """In words, such as ``resnet 6x64``."""
    parameters: int
    workers: int
    backend: str
    threads: int
    """Of the learner."""
    steps: int | None
    """Transitions of the whole run; None where only the clock ends it."""
    minutes: float | None
    mode: str
    """``sync`` or ``async``."""
    resumed_from: int = 0
    """The update of the checkpoint; 0 for a new run."""
    seconds: float = 0.0
    """That the run had been trained for before it was resumed."""


@dataclass(frozen=True, slots=True)
class Note:
    elapsed: float
    level: str
    text: str


class RunHistory:
    """A run as it is shown: the last of everything, and the figures that follow from it.

    Fields are replaced, never changed in place: a display's timer reads them from a thread of its own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._updated = clock()
        self._ended: float | None = None
        self._saved_at = 0.0
        self.heading: Heading | None = None
        self.updates: tuple[Update, ...] = ()
        self.evaluations: dict[str, tuple[EvaluationRow, ...]] = {}
        """By opponent."""
        self.best_update: int | None = None
        self.saved_update: int | None = None
        self.notes: tuple[Note, ...] = ()
        self.outcome = ""

    def start(self, heading: Heading) -> None:
        self.heading = heading
        self._began = self._updated = self._clock()

    def add_update(self, update: Update) -> None:
        self.updates = (*self.updates, update)[-KEPT:]
        self._updated = self._clock()

    def add_evaluation(self, evaluation: Evaluation) -> None:
        # The best checkpoint changes by and by; the matches against it are one row.
        named = {"the best" if row.against_checkpoint else row.opponent: row for row in evaluation.rows}
        new = {name: (*self.evaluations.get(name, ()), row)[-KEPT:] for name, row in named.items()}
        self.evaluations = {**self.evaluations, **new}
        if evaluation.is_best:
            self.best_update = evaluation.update

    def add_checkpoint(self, saved: Saved) -> None:
        if not saved.problem:  # which is told in a note
            self.saved_update, self._saved_at = saved.update, self._clock()

    def add_note(self, message: str, level: str) -> None:
        self.notes = (*self.notes, Note(self.elapsed, level, one_line(message)))[-KEPT:]

    def finish(self, outcome: str) -> None:
        self.outcome = one_line(outcome)
        self._ended = self._clock()

    @property
    def _now(self) -> float:
        return self._clock() if self._ended is None else self._ended

    @property
    def elapsed(self) -> float:
        """Seconds of training, those before a resumption included."""
        return (self.heading.seconds if self.heading else 0.0) + self._now - self._began

    @property
    def seconds_since_saved(self) -> float:
        return self._now - self._saved_at

    @property
    def recent(self) -> tuple[Update, ...]:
        return self.updates[-RECENT:]

    def curve(self, of: Callable[[Update], float]) -> list[float]:
        return [of(update) for update in self.updates]

    @property
    def speed(self) -> float:
        """Transitions per second of collecting and learning; not a number before the first update."""
        spent = sum(update.collection.seconds + update.learn_seconds for update in self.recent)
        return _ratio(sum(update.collection.transitions for update in self.recent), spent)

    @property
    def collecting_share(self) -> float:
        """Of the time of an update; the rest is learning."""
        collecting = sum(update.collection.seconds for update in self.recent)
        return _ratio(collecting, collecting + sum(update.learn_seconds for update in self.recent))

    def game_mean(self, of: Callable[[GameSummary], float]) -> float:
        """Over the recent games; not a number where none was finished."""
        summaries = [update.games for update in self.recent if update.games.games]
        games = sum(summary.games for summary in summaries)
        return _ratio(sum(summary.games * of(summary) for summary in summaries), games)

    @property
    def endings(self) -> list[tuple[str, int]]:
        """Of the recent games, the most frequent first."""
        counts: Counter[str] = Counter()
        for update in self.recent:
            counts.update(update.games.endings)
        return counts.most_common()

    @property
    def seconds_left(self) -> float | None:
        """Until the transitions are reached or the minutes are over, whichever comes first."""
        if self.heading is None:
            return None
        since = self._now - self._updated
        last = self.updates[-1] if self.updates else None
        ends = []
        if last is not None and self.heading.steps is not None and (pace := self._pace()) > 0:
            ends.append((self.heading.steps - last.counters.transitions) / pace - since)
        if self.heading.minutes is not None:
            trained = last.counters.seconds if last is not None else self.heading.seconds
            ends.append(60 * self.heading.minutes - trained - since)
        return max(0.0, min(ends)) if ends else None

    def _pace(self) -> float:
        """Transitions per second of the run's own clock: slower than ``speed``, since evaluations take time too."""
        first, last = self.recent[0], self.recent[-1]
        transitions = last.counters.transitions - first.counters.transitions + first.collection.transitions
        first_took = first.collection.seconds + first.learn_seconds
        return _ratio(transitions, last.counters.seconds - first.counters.seconds + first_took)


def length(heading: Heading) -> str:
    """How long a run lasts, in words."""
    steps = [] if heading.steps is None else [f"{heading.steps:,} steps"]
    return " or ".join(steps + ([] if heading.minutes is None else [f"{heading.minutes:g} minutes"]))


class PlainView:
    """Writes lines, each with the elapsed time before it; where ``quiet``, warnings and nothing else."""

    def __init__(self, console: Console, quiet: bool = False, history: RunHistory | None = None) -> None:
        self._console = console
        self._quiet = quiet
        self._history = history or RunHistory()
        self._told_at: float | None = None
        self._untold: Update | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing is held open."""

    def started(self, heading: Heading) -> None:
        self._history.start(heading)
        self._write(f"run {heading.run}  game {heading.game}  {length(heading)}")
        self._write(f"network {describe(heading)}")
        if heading.resumed_from:
            self._write(f"resumed from update {heading.resumed_from}")

    def on_update(self, update: Update) -> None:
        self._history.add_update(update)
        self._untold = update
        if self._told_at is None or self._history.elapsed - self._told_at >= PAUSE:
            self._tell_update()

    def on_evaluation(self, evaluation: Evaluation) -> None:
        for row in evaluation.rows:
            self._write(
                f"evaluation of update {evaluation.update}  against {row.opponent}  score {percent(row.score)} "
                f"({percent(row.low)} to {percent(row.high)})  {row.wins} won {row.draws} drawn {row.losses} lost"
            )
        if evaluation.is_best:
            self._write(f"update {evaluation.update} is the best so far")

    def on_checkpoint(self, saved: Saved) -> None:
        """One that is written is no news, and of one that is not the trainer leaves a note."""

    def note(self, message: str, level: str = "info") -> None:
        self._write(message if level == "info" else f"{level}: {message}", level)

    def finished(self, outcome: str, counters: Counters) -> None:
        self._tell_update()
        self._history.finish(outcome)
        self._write(
            f"finished: {outcome}  update {counters.update}  {counters.transitions:,} steps  "
            f"{counters.games:,} games"
        )

    def _tell_update(self) -> None:
        if self._untold is not None:
            self._write(update_line(self._untold, self._history))
            self._told_at, self._untold = self._history.elapsed, None

    def _write(self, text: str, level: str = "info") -> None:
        """Straight to the file: there is nothing to wrap or to colour."""
        if self._quiet and level == "info":
            return
        time_shown = f"{clock(self._history.elapsed)}  "
        lines = textwrap.wrap(
            one_line(text), LINE_WIDTH, initial_indent=time_shown, subsequent_indent=f"{time_shown}  ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        encoding = self._console.encoding
        block = "".join(f"{line}\n" for line in lines).encode(encoding, "replace").decode(encoding)
        # A run outlives its log: a full disk, a reader that has left, or a Ctrl-C amid another line (RuntimeError).
        with suppress(OSError, RuntimeError):
            self._console.file.write(block)
            self._console.file.flush()


def update_line(update: Update, history: RunHistory) -> str:
    report = update.report.numbers
    parts = [
        f"update {update.counters.update}",
        f"{update.counters.transitions:,} steps ({percent(update.progress)})",
        f"{figure(history.speed, ',.0f')}/s",
        f"entropy {figure(-report['train/entropy_loss'], '.3f')}",
        f"value loss {figure(report['train/value_loss'], '.4f')}",
        f"KL {figure(report['train/approx_kl'], '.4f')}",
        f"games {update.games.games:,}",
        f"plies {figure(update.games.mean_plies, '.1f')}",
        f"lag {figure(update.collection.policy_lag, '.1f')}",
        f"left {clock(history.seconds_left)}",
    ]
    return "  ".join(parts)


def describe(heading: Heading) -> str:
    """Who learns and who plays, in one line."""
    return (
        f"{heading.network}, {heading.parameters:,} parameters, {_counted(heading.workers, 'worker')} "
        f"({heading.backend}), {_counted(heading.threads, 'thread')}, {heading.mode}"
    )


def one_line(text: str) -> str:
    """Without line breaks, and without control codes, which would move a terminal's cursor and break an SVG."""
    return " ".join(
        "".join(sign if sign.isprintable() else " " for sign in line) for line in text.splitlines()
    )


def figure(value: float, form: str) -> str:
    """A number, or a dash where there is none yet."""
    return format(value, f"z{form}") if math.isfinite(value) else "-"


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %" if math.isfinite(share) else "-"


def clock(seconds: float | None) -> str:
    """``mm:ss``, or ``h:mm:ss`` from an hour on."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
