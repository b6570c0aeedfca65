"""The table of a sweep: settings, the mean over seeds with its interval, and the time."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from keisei.cli.views.wording import duration, one_line

if TYPE_CHECKING:
    from keisei.training.experiments.scores import Objective, Result
    from keisei.training.experiments.sweep_plan import Trial

__all__ = ["print_best", "print_trials"]

Row = tuple["Trial", "Result", bool]
"""A trial, what it reached, and whether it was stopped early."""


def print_trials(console: Console, rows: Sequence[Row], objective: Objective) -> None:
    """Prints all trials, best first; those that were stopped early are last."""
    table = Table(box=None, pad_edge=False)
    for heading in ("Settings", "Seeds", str(objective).capitalize(), "95 %", "Time"):
        right = heading not in ("Settings", "95 %")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for trial, result, stopped in rows:
        mean = result.mean
        value = "–" if mean is None else _number(mean.value, objective)
        known = mean is not None and math.isfinite(mean.low)
        bounds = (
            f"{_number(mean.low, objective)} … {_number(mean.high, objective)}" if mean and known else "–"
        )
        early = " (stopped early)" if stopped else ""
        table.add_row(
            Text(one_line(_settings(trial.settings)) + early, style="dim" if stopped else ""),
            f"{len(result.values)}/{result.runs}",
            value,
            bounds,
            duration(result.seconds),
        )
    console.print(table)


def print_best(console: Console, rows: Sequence[Row], objective: Objective, command: Sequence[str]) -> None:
    """Prints the command that trains with the best settings, and whether they are surely the best."""
    best = [row for row in rows if not row[2] and row[1].mean is not None]
    if not best:
        console.print(f"No run has a number for {objective} yet", markup=False, soft_wrap=True)
        return
    trial, result, _ = best[0]
    words = [word for assignment in trial.assignments for word in ("--set", assignment)]
    console.print(f"Best: {shlex.join([*command, *words])}", markup=False, soft_wrap=True)
    if len(best) > 1 and not _surely_better(result, best[1][1]):
        console.print(
            "Its interval and the next one's overlap, or a single seed has none; more --seeds tell more",
            markup=False,
            soft_wrap=True,
        )


def _surely_better(first: Result, second: Result) -> bool:
    one, other = first.mean, second.mean
    if one is None or other is None or not math.isfinite(one.low) or not math.isfinite(other.low):
        return False
    return one.low > other.high or one.high < other.low


def _settings(settings: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _number(value: float, objective: Objective) -> str:
    return f"{value:.4g}" if objective.metric else f"{min(max(value, 0.0), 1.0):.1%}"
