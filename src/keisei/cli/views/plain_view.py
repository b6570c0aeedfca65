"""A training run as lines of text, for logs, pipes and simple terminals."""

from __future__ import annotations

import textwrap
from contextlib import AbstractContextManager, suppress

from rich.console import Console

from keisei.cli.views.run_history import ENTROPY, KL, VALUE_LOSS, RunHistory
from keisei.cli.views.wording import clock, counted, duration, figure, one_line, percent, returns_and_rank
from keisei.training.callbacks import Callback
from keisei.training.events import Ended, Evaluation, Started, Update

PAUSE = 5.0
"""Seconds between two lines about updates."""
LINE_WIDTH = 160
FIGURES = 3
"""The number of learning figures in the line of an update."""


class PlainView(Callback, AbstractContextManager["PlainView"]):
    """Writes lines, each with the elapsed time before it; with ``quiet``, only warnings."""

    def __init__(self, console: Console, quiet: bool = False, history: RunHistory | None = None) -> None:
        self._console = console
        self._quiet = quiet
        self._history = history or RunHistory()
        self._told_at: float | None = None
        self._untold: Update | None = None

    def __exit__(self, *exception: object) -> None:
        """There is nothing to close."""

    def on_start(self, started: Started) -> None:
        self._history.start(started)
        self._write(f"run {started.run}  game {started.game}  {started.length}")
        self._write(f"network {describe(started)}")
        if started.counters.update:
            self._write(f"resumed from update {started.counters.update}")

    def on_update(self, update: Update) -> None:
        self._history.add_update(update)
        self._untold = update
        if self._told_at is None or self._history.elapsed - self._told_at >= PAUSE:
            self._tell_update()

    def on_evaluation(self, evaluation: Evaluation) -> None:
        for row in evaluation.rows:
            told = returns_and_rank(row) or f"{row.wins} won {row.draws} drawn {row.losses} lost"
            self._write(
                f"evaluation of update {evaluation.update}  against {row.opponent}  score {percent(row.score)} "
                f"({percent(row.low)} to {percent(row.high)})  {told}"
            )
        if evaluation.is_best:
            self._write(f"update {evaluation.update} is the best so far")

    def note(self, message: str, level: str = "info") -> None:
        self._write(message if level == "info" else f"{level}: {message}", level)

    def on_end(self, ended: Ended) -> None:
        self._tell_update()
        self._history.end(ended)
        done = ended.counters
        self._write(
            f"{ending(ended)}{'  ' if ended.reason else ': '}{counted(done.transitions, 'transition')}, "
            f"{counted(done.update, 'update')}, {counted(done.games, 'game')} in {duration(done.seconds)}"
        )

    def _tell_update(self) -> None:
        if self._untold is not None:
            self._write(update_line(self._untold, self._history))
            self._told_at, self._untold = self._history.elapsed, None

    def _write(self, text: str, level: str = "info") -> None:
        """Writes directly to the file, without wrapping or colours."""
        if self._quiet and level == "info":
            return
        time_shown = f"{clock(self._history.elapsed)}  "
        lines = textwrap.wrap(
            one_line(text), LINE_WIDTH, initial_indent=time_shown, subsequent_indent=f"{time_shown}  ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        # A run continues without its output: a full disk, a closed pipe, or a Ctrl-C within another line
        # (RuntimeError).
        with suppress(OSError, RuntimeError):
            self._console.file.write("".join(f"{line}\n" for line in lines))
            self._console.file.flush()


def update_line(update: Update, history: RunHistory) -> str:
    parts = [
        f"update {update.counters.update}",
        f"{update.counters.transitions:,} steps ({percent(update.progress)})",
        f"{figure(history.speed, ',.0f')}/s",
        *_learning(update, history),
        f"games {update.games.games:,}",
        f"plies {figure(update.games.mean_plies, '.1f')}",
        *_league(update),
        f"lag {figure(update.collection.policy_lag, '.1f')}",
        f"left {clock(history.seconds_left)}",
    ]
    return "  ".join(parts)


def _learning(update: Update, history: RunHistory) -> list[str]:
    """Lists the most important figures of learning, or whatever the learner reports."""
    told = history.learning
    chosen = [shown for shown in (ENTROPY, VALUE_LOSS, KL) if shown in told] or told[:FIGURES]
    return [f"{shown.label} {figure(shown.of(update), shown.form)}" for shown in chosen]


def _league(update: Update) -> list[str]:
    league = update.collection.league
    if league is None:
        return []
    return [f"league {league.members}, worst {percent(league.worst_score, 0)}, forgotten {league.forgotten}"]


def describe(started: Started) -> str:
    """Describes the learner and the workers in one line."""
    return (
        f"{started.network}, {counted(started.parameters, 'parameter')}, {counted(started.workers, 'worker')} "
        f"({started.backend}), {counted(started.threads, 'thread')}, {started.mode}"
    )


def ending(ended: Ended) -> str:
    """Writes the end of a run in words."""
    return f"stopped: {ended.reason}" if ended.reason else ended.outcome
