"""``keisei runs``: lists all runs with state and progress. It only reads, also while a run is being trained."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keisei.cli.views.wording import duration, one_line
from keisei.errors import RunError
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState
from keisei.runs.durable_files import file_errors, replace_file
from keisei.runs.metrics_csv import metrics_csv
from keisei.runs.summaries import RunSummary, find_runs, summarise

_STYLES = {
    RunState.RUNNING: "green",
    RunState.INTERRUPTED: "yellow",
    RunState.FAILED: "bold red",
    RunState.UNREADABLE: "bold red",
}
ROOM_FOR_SCORES = 120
"""Terminal width. In a narrower terminal the scores are below the table."""
LONGEST_DETAIL = 300
"""Letters of the line that tells why a run failed. ``--json`` gives all of it."""


def runs(
    name: Annotated[str | None, typer.Argument(help="A run to describe; by default all are listed.")] = None,
    root: Annotated[Path, typer.Option(help="The directory of runs.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the runs as JSON.")] = False,
    csv: Annotated[
        Path | None, typer.Option(help="Write all numbers of the run to this file, a line for each update.")
    ] = None,
) -> None:
    """List all runs with their state, progress and last scores. Damaged ones are listed with the reason. With a name,
    describe one run, with the settings that changed on the way; --csv writes its numbers."""
    if csv is not None and name is None:
        raise RunError("--csv takes the numbers of one run; name it: keisei runs NAME --csv FILE")
    found = find_runs(root)
    chosen = [run for run in found if name in (None, run.name, str(run.path))]
    if name is not None and not chosen:
        known = ", ".join(run.name for run in found) or "none"
        raise RunError(f"no run is named {name!r}. Runs in {root}: {known}")
    if csv is not None:
        _write_csv(chosen[0], csv)
        return
    summaries = list(map(summarise, chosen))
    if as_json:
        typer.echo(json.dumps([_as_json(summary) for summary in summaries], indent=2))
    elif summaries:
        _print(summaries)
        for change in summaries[0].changes if name is not None else ():
            Console(highlight=False).print(Text(f"changed: {change}"), soft_wrap=True)
    else:
        Console(highlight=False).print(Text(f"There are no runs in {root}."), soft_wrap=True)


def _write_csv(run: RunDirectory, path: Path) -> None:
    with RunDatabase(run.database, read_only=True) as database:
        text = metrics_csv(database)
    with file_errors(path):
        replace_file(path, text.encode())
    updates = f"{text.count(chr(10)) - 1:,} updates of {run.name}"
    Console(highlight=False).print(Text(f"{path}: {updates}, a line each"), soft_wrap=True)


def _print(summaries: Sequence[RunSummary]) -> None:
    console = Console(highlight=False)
    wide = console.width >= ROOM_FOR_SCORES
    table = Table(box=None, pad_edge=False)
    for heading in ("Run", "Game", "State", "Transitions", "Trained", "Seen"):
        justify: Literal["left", "right"] = "right" if heading in ("Transitions", "Trained") else "left"
        table.add_column(heading, justify=justify, no_wrap=True)
    if wide:
        table.add_column("Last scores")
    for summary in summaries:
        seen = "–" if summary.last_seen is None else f"{duration(time.time() - summary.last_seen)} ago"
        table.add_row(
            Text(summary.name),
            Text(summary.game or "–"),
            Text(summary.state.value, style=_STYLES.get(summary.state, "")),
            "–" if summary.transitions is None else f"{summary.transitions:,}",
            "–" if summary.training_seconds is None else duration(summary.training_seconds),
            seen,
            *([Text(_scores(summary) or "–")] if wide else []),
        )
    console.print(table)
    below = [line for summary in summaries for line in _below(summary, with_scores=not wide)]
    for line in [Text(), *below] if below else []:
        console.print(line, soft_wrap=True)


def _below(summary: RunSummary, *, with_scores: bool) -> Iterator[Text]:
    """Prints what has no room in the table."""
    if with_scores and summary.scores:
        yield Text(f"{summary.name}: {_scores(summary)}")
    if summary.detail not in ("", summary.state.value):
        detail = textwrap.shorten(one_line(summary.detail), LONGEST_DETAIL, placeholder=" …")
        yield Text(f"{summary.name}: {detail}", style=_STYLES.get(summary.state, ""))


def _scores(summary: RunSummary) -> str:
    return ", ".join(f"{name} {score:.0%}" for name, score in summary.scores.items())


def _as_json(summary: RunSummary) -> dict[str, object]:
    seen = summary.last_seen
    return asdict(summary) | {
        "state": summary.state.value,
        "last_seen": None
        if seen is None
        else datetime.fromtimestamp(seen, UTC).isoformat(timespec="seconds"),
    }
