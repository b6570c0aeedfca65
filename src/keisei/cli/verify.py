"""``keisei verify``: the same experience, bit for bit, on every backend and whatever befalls the workers."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from keisei.parallel.verification import Run, VerifyReport


def verify(
    game: Annotated[str, typer.Option(help="A name from `keisei games`.")] = "shogi",
    workers: Annotated[int, typer.Option(min=1, max=64)] = 4,
    games: Annotated[int, typer.Option(min=1, help="Games in each worker.")] = 16,
    rounds: Annotated[int, typer.Option(min=1, help="Collections; the weights change after each.")] = 20,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    network: Annotated[bool, typer.Option("--network/--random", help="Who decides.")] = True,
    kills: Annotated[int, typer.Option(min=0, help="Also kill (SIGKILL) so many workers in one run.")] = 0,
    stops: Annotated[bool, typer.Option("--stops", help="Stop (SIGSTOP) some of them instead.")] = False,
    central: Annotated[bool, typer.Option("--central", help="One inference for all workers.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Compare what inline, thread and process workers collect. Exit code 1 where it differs."""
    from keisei.parallel import verification

    # Workers that die are the point of it here; those that are given up still are worth a line.
    logging.getLogger("keisei.parallel").setLevel(logging.ERROR)
    settings = verification.VerifySettings(
        game=game, workers=workers, games=games, rounds=rounds, seed=seed, network=network, central=central,
        kills=kills, stops=stops,
    )  # fmt: skip
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def show(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=total)
            progress.update(tasks[name], completed=done)

        report = verification.verify(settings, show)
    if as_json:
        typer.echo(json.dumps(_as_json(report), indent=2))
    else:
        _print(report)
    if not report.same:
        raise typer.Exit(1)


def _print(report: VerifyReport) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("Backend", no_wrap=True)
    for heading in ("Rounds", "Transitions", "Seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("Digest", no_wrap=True)
    for run in report.runs:
        numbers = (str(len(run.digests)), f"{run.transitions:,}", f"{run.seconds:.1f}")
        differs = run.name in report.differences
        table.add_row(run.name, *numbers, Text(run.digest, style="bold red" if differs else "green"))
    console = Console(highlight=False)
    console.print(table)
    for run in report.runs:
        if run.toll is not None:
            console.print(
                f"\n{run.name}: in processes, of which {run.toll.kills} were killed and {run.toll.stops} stopped; "
                f"{run.restarts} restarts"
            )
    console.print(_verdict(report))


def _verdict(report: VerifyReport) -> Text:
    if report.same:
        return Text("\nOK: all digests are equal.", style="green")
    lines = [
        f"{name} differs from {report.runs[0].name} from round {number} on"
        for name, number in report.differences.items()
    ]
    return Text("\nDIFFERENT: " + "; ".join(lines) + ".", style="bold red")


def _as_json(report: VerifyReport) -> dict[str, object]:
    return {
        "same": report.same,
        "first_difference": report.differences,
        "runs": [_run_as_json(run) for run in report.runs],
    }


def _run_as_json(run: Run) -> dict[str, object]:
    figures: dict[str, object] = {
        "backend": run.name,
        "rounds": len(run.digests),
        "transitions": run.transitions,
        "seconds": round(run.seconds, 3),
        "digest": run.digest,
    }
    if run.toll is not None:
        figures |= {"kills": run.toll.kills, "stops": run.toll.stops, "restarts": run.restarts}
    return figures
