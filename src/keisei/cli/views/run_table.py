"""All runs as a table. No cell is cut. Columns that do not fit are left out by rank, or printed below the table.

In a pipe there is room for everything.
"""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from keisei.cli.views.terminal import Terminal
from keisei.cli.views.wording import duration, one_line
from keisei.runs.directory import RunState
from keisei.runs.summaries import RunSummary

__all__ = ["print_runs"]

_STYLES = {
    RunState.RUNNING: "green",
    RunState.INTERRUPTED: "yellow",
    RunState.FAILED: "bold red",
    RunState.UNREADABLE: "bold red",
}
LONGEST_DETAIL = 300
"""Letters of the line that tells why a run failed. A pipe and ``--json`` get all of it."""
_GAP = 2
_ENDLESS = 1 << 20
"""The width of a pipe."""


@dataclass(frozen=True)
class _Column:
    heading: str
    rank: int
    """If there is no room for all columns, those with the smallest ranks are shown. The run's name is always shown."""
    text: Callable[[RunSummary], str]
    right: bool = False
    kept: bool = False
    """Whether its texts are printed below the table if it has no room. A column without any text is left out."""


def _seen(summary: RunSummary) -> str:
    return "–" if summary.last_seen is None else f"{duration(time.time() - summary.last_seen)} ago"


def _scores(summary: RunSummary) -> str:
    return ", ".join(f"{name} {score:.0%}" for name, score in summary.scores.items())


def _tags(summary: RunSummary) -> str:
    return " ".join([*(f"#{tag}" for tag in summary.tags), *(["(archived)"] if summary.archived else [])])


def _transitions(summary: RunSummary) -> str:
    return "–" if summary.transitions is None else f"{summary.transitions:,}"


def _trained(summary: RunSummary) -> str:
    return "–" if summary.training_seconds is None else duration(summary.training_seconds)


_COLUMNS = (
    _Column("Game", 3, lambda summary: summary.game or "–"),
    _Column("State", 1, lambda summary: summary.state.value),
    _Column("Transitions", 2, _transitions, right=True),
    _Column("Trained", 5, _trained, right=True),
    _Column("Seen", 4, _seen),
    _Column("Tags", 6, _tags, kept=True),
    _Column("Last scores", 7, lambda summary: _scores(summary) or "–", kept=True),
)


def print_runs(summaries: Sequence[RunSummary]) -> None:
    """Prints a table of runs, and below it what does not fit."""
    is_piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    console = Terminal(highlight=False, width=_ENDLESS if is_piped else None)
    rows = list(_rows(summaries))
    shown, hidden = _chosen(rows, summaries, console.width)
    console.print(_table(rows, shown))
    longest = _ENDLESS if is_piped else LONGEST_DETAIL
    below = [line for summary in summaries for line in _below(summary, hidden, longest)]
    for line in [Text(), *below] if below else []:
        console.print(line, soft_wrap=True)


def _rows(summaries: Sequence[RunSummary]) -> Iterator[tuple[Text, RunSummary | None]]:
    """Yields names and runs. A folder of runs has a row of its own."""
    shown: list[str] = []
    for summary in summaries:
        *folders, own = summary.name.split("/")
        for depth, folder in enumerate(folders):
            if shown[: depth + 1] != folders[: depth + 1]:
                yield Text(f"{'  ' * depth}{folder}/", style="dim"), None
                shown = folders[: depth + 1]
        shown = folders
        yield Text("  " * len(folders) + own), summary


def _chosen(
    rows: Sequence[tuple[Text, RunSummary | None]], summaries: Sequence[RunSummary], width: int
) -> tuple[list[_Column], list[_Column]]:
    """Splits the columns into those that fit beside the names and those that do not."""
    left = width - max(cell_len(name.plain) for name, _ in rows)
    shown: list[_Column] = []
    hidden: list[_Column] = []
    for column in sorted(_COLUMNS, key=lambda column: column.rank):
        texts = [column.text(summary) for summary in summaries]
        if column.kept and not any(text.strip("–") for text in texts):
            continue
        left -= _GAP + max(cell_len(text) for text in (column.heading, *texts))
        (shown if left >= 0 or column.rank == 1 else hidden).append(column)
    return [column for column in _COLUMNS if column in shown], hidden


def _table(rows: Sequence[tuple[Text, RunSummary | None]], columns: Sequence[_Column]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("Run", overflow="fold")
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.right else "left"
        table.add_column(column.heading, justify=justify, no_wrap=True, overflow="fold")
    for name, summary in rows:
        table.add_row(name, *([] if summary is None else [_cell(column, summary) for column in columns]))
    return table


def _cell(column: _Column, summary: RunSummary) -> Text:
    return Text(column.text(summary), style=_STYLES.get(summary.state, "") if column.rank == 1 else "")


def _below(summary: RunSummary, hidden: Sequence[_Column], longest: int) -> Iterator[Text]:
    """Yields what does not fit into the table."""
    for column in hidden:
        if column.kept and (text := column.text(summary)).strip("–"):
            yield Text(f"{summary.name}: {text}")
    if summary.detail not in ("", summary.state.value):
        detail = textwrap.shorten(one_line(summary.detail), longest, placeholder=" …")
        yield Text(f"{summary.name}: {detail}", style=_STYLES.get(summary.state, ""))
