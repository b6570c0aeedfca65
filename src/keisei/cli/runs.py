"""``keisei runs``: lists all runs with state and progress, and keeps order among them. To list only reads, also while a
run is being trained."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from keisei.cli.run_orders import Orders, chosen_runs, empty_the_trash
from keisei.cli.views.run_table import print_runs
from keisei.cli.views.terminal import Terminal
from keisei.cli.views.wording import counted
from keisei.errors import ConfigError, RunError
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState
from keisei.runs.durable_files import file_errors, replace_file
from keisei.runs.metrics_csv import metrics_csv
from keisei.runs.summaries import RunSummary, find_runs, summarise


def runs(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Runs, or folders of runs; by default all are listed."),
    ] = None,
    root: Annotated[Path, typer.Option(help="The directory of runs.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the runs as JSON.")] = False,
    csv: Annotated[
        Path | None, typer.Option(help="Write all numbers of the run to this file, a line for each update.")
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(help="Tag the named runs. Without names: list those with this tag. May be repeated."),
    ] = None,
    untag: Annotated[list[str] | None, typer.Option(help="Remove a tag. May be repeated.")] = None,
    note: Annotated[str | None, typer.Option(help="Write a note on the runs; '' removes it.")] = None,
    rename: Annotated[str | None, typer.Option(metavar="NAME", help="Give the run another name.")] = None,
    archive: Annotated[
        bool | None, typer.Option("--archive/--unarchive", help="Leave the runs out of lists, or no longer.")
    ] = None,
    archived: Annotated[bool, typer.Option("--archived", help="List archived runs too.")] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Move the runs to the trash; asks before it does.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    empty_trash: Annotated[
        bool, typer.Option("--empty-trash", help="Delete what is in the trash for good; asks before it does.")
    ] = False,
) -> None:
    """List all runs with their state, progress and last scores. Damaged ones are listed with the reason. With a name,
    describe one run, with the settings that changed on the way; --csv writes its numbers. Named runs can be tagged,
    renamed, archived and deleted."""
    orders = Orders(tag if names and tag else (), untag or (), note, archive, rename, delete, yes)
    if empty_trash:
        if names or orders:
            raise ConfigError("--empty-trash stands alone; --delete moves named runs to the trash")
        empty_the_trash(root, yes)
        return
    if orders and not names:
        raise ConfigError("name the runs to change: keisei runs NAME … --tag strong, --delete and so on")
    found = find_runs(root)
    chosen = chosen_runs(names, found, root) if names else found
    if orders:
        orders.carry_out(chosen)
        return
    if csv is not None:
        _write_csv(chosen, bool(names), csv)
        return
    summaries = list(map(summarise, chosen))
    listed = summaries if names else [run for run in summaries if _is_listed(run, tag or (), archived)]
    if as_json:
        typer.echo(json.dumps([_as_json(summary) for summary in listed], indent=2))
        return
    if listed:
        print_runs(listed)
    _tell_about(summaries, listed, root, tag or (), archived)
    if len(names or ()) == len(listed) == 1:
        for line in _story(listed[0]):
            Terminal(highlight=False).print(Text(line), soft_wrap=True)


def _is_listed(summary: RunSummary, tags: Sequence[str], archived: bool) -> bool:
    """Checks if a run is listed that was not named. One that is being trained always is."""
    has_tags = {tag.removeprefix("#") for tag in tags} <= {*summary.tags}
    return has_tags and (archived or not summary.archived or summary.state is RunState.RUNNING)


def _tell_about(
    found: Sequence[RunSummary], listed: Sequence[RunSummary], root: Path, tags: Sequence[str], archived: bool
) -> None:
    """Says why runs are not listed."""
    lines = []
    if not listed and not found:
        lines.append(f"There are no runs in {root}.")
    elif not listed:
        lines.append(
            f"No run in {root} has {' '.join(tags)}." if tags else f"All runs in {root} are archived."
        )
    hidden = sum(run.archived and run not in listed and _is_listed(run, tags, True) for run in found)
    if hidden and not archived:
        lines.append(f"{counted(hidden, 'archived run')} not shown; --archived lists them too.")
    for line in lines:
        Terminal(highlight=False).print(Text(line), soft_wrap=True)


def _story(summary: RunSummary) -> Iterator[str]:
    """Yields the history of a run: where it comes from, which settings changed, and the people's notes on it."""
    if summary.origin:
        yield f"origin: {summary.origin}"
    for change in summary.changes:
        yield f"changed: {change}"
    if summary.note:
        yield f"note: {summary.note}"


def _write_csv(runs: Sequence[RunDirectory], are_named: bool, path: Path) -> None:
    if len(runs) != 1 or not are_named:
        raise RunError("--csv takes the numbers of one run; name it: keisei runs NAME --csv FILE")
    (run,) = runs
    with RunDatabase(run.database, read_only=True) as database:
        text = metrics_csv(database)
    with file_errors(path):
        replace_file(path, text.encode())
    updates = f"{text.count(chr(10)) - 1:,} updates of {run.name}"
    Terminal(highlight=False).print(Text(f"{path}: {updates}, a line each"), soft_wrap=True)


def _as_json(summary: RunSummary) -> dict[str, object]:
    seen = summary.last_seen
    return asdict(summary) | {
        "state": summary.state.value,
        "last_seen": None
        if seen is None
        else datetime.fromtimestamp(seen, UTC).isoformat(timespec="seconds"),
    }
