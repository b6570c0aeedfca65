"""Several runs that are trained side by side: one live table on a terminal, lines of text elsewhere."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from keisei.cli.views.wording import counted, one_line
from keisei.runs.live import LiveStatus, read_live
from keisei.runs.summaries import RunSummary, summarise

if TYPE_CHECKING:
    from keisei.cli.side_by_side import Standing

__all__ = ["GroupView"]

PAUSE = 1.0
"""Seconds between two tables."""
MOST_ROWS = 24
_STYLES = {"running": "green", "failed": "bold red", "interrupted": "yellow", "paused": "yellow"}


class GroupView(AbstractContextManager["GroupView"]):
    """Shows the standings of runs."""

    def __init__(self, console: Console, *, plain: bool, quiet: bool) -> None:
        self._console, self._quiet = console, quiet
        live = console.is_terminal and not plain and not quiet
        self._live = Live(console=console, auto_refresh=False, transient=True) if live else None
        self._told: dict[str, str] = {}
        self._drawn_at = 0.0

    def __enter__(self) -> GroupView:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, standings: Sequence[Standing]) -> None:
        """Shows how all runs stand: at most once a second, or each change of a state as a line."""
        if self._live is None:
            self._tell_changes(standings)
        elif time.monotonic() - self._drawn_at >= PAUSE:
            self._live.update(_table(standings), refresh=True)
            self._drawn_at = time.monotonic()

    def close_with(self, standings: Sequence[Standing]) -> None:
        """Shows the last table and what failed runs said."""
        if not self._quiet:
            self._console.print(_table(standings, everything=True))
        for standing in standings:
            if standing.problem:
                text = f"{standing.job.run.name} failed: {standing.problem}"
                self._console.print(Text(text, style="bold red"), soft_wrap=True)

    def _tell_changes(self, standings: Sequence[Standing]) -> None:
        for standing in standings:
            name, state = standing.job.run.name, standing.state.value
            if self._told.get(name, "waiting") != state and not self._quiet:
                self._console.print(Text(f"{name}: {state}"), soft_wrap=True)
            self._told[name] = state


def _table(standings: Sequence[Standing], everything: bool = False) -> Table:
    """Draws all runs, or if they are many, those that run and a count of the others. Names begin where they differ."""
    shown = list(standings)
    if len(shown) > MOST_ROWS and not everything:
        shown = [standing for standing in shown if standing.state.value == "running"]
    table = Table(box=None, pad_edge=False)
    for heading in ("Run", "State", "Done", "Transitions", "per s", "Last scores"):
        right = heading in ("Done", "Transitions", "per s")
        table.add_column(
            heading, justify="right" if right else "left", no_wrap=heading != "Run", overflow="ellipsis"
        )
    folder = os.path.commonpath([standing.job.run.path.parent for standing in standings])
    for standing in shown:
        table.add_row(Text(one_line(os.path.relpath(standing.job.run.path, folder))), *_row(standing))
    if len(shown) < len(standings):
        table.caption = f"and {counted(len(standings) - len(shown), 'run')} that wait or have ended"
    return table


def _row(standing: Standing) -> list[Text | str]:
    run, state = standing.job.run, standing.state.value
    if not run.path.is_dir():
        return [Text(state, style="dim"), "", "", "", ""]
    summary, live = summarise(run, game=" "), read_live(run)
    return [Text(state, style=_STYLES.get(state, "")), *_figures(summary, live, state)]


def _figures(summary: RunSummary, live: LiveStatus | None, state: str) -> list[str]:
    done = "" if live is None else f"{live.progress:.0%}"
    if state == "finished":  # the last update may have been too short to be shown
        done = "100%"
    speed = "" if live is None or state != "running" else f"{live.speed:,.0f}"
    transitions = "–" if summary.transitions is None else f"{summary.transitions:,}"
    scores = ", ".join(f"{one_line(name)} {score:.0%}" for name, score in summary.scores.items())
    return [done, transitions, speed, scores or "–"]
