"""``keisei soak``: disturbs workers for a time, and checks every slab and that nothing is left behind."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from keisei.cli.numbers import MAX_GAMES, MAX_SECONDS, MAX_SEED
from keisei.cli.views.quiet import quiet_workers
from keisei.cli.views.terminal import Terminal
from keisei.games.registry import DEFAULT_GAME

if TYPE_CHECKING:
    from keisei.proving.audit import Findings
    from keisei.proving.disturbance import Toll
    from keisei.proving.soak import SoakReport


class SoakBackend(StrEnum):
    PROCESS = "process"
    RAY = "ray"


class SoakMode(StrEnum):
    SYNC = "sync"
    ASYNC = "async"
    BOTH = "both"


def soak(
    duration: Annotated[float, typer.Option(min=0.5, max=MAX_SECONDS, help="Seconds.")] = 60.0,
    kill_every: Annotated[
        float,
        typer.Option(min=0.01, max=MAX_SECONDS, help="Seconds between two strikes, on average."),
    ] = 0.1,
    tables: Annotated[int, typer.Option(min=1, max=512, help="Tables of games.")] = 6,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Workers that play them.")] = 4,
    game: Annotated[str, typer.Option(help="A name from `keisei games`.")] = DEFAULT_GAME,
    games: Annotated[int, typer.Option(min=1, max=MAX_GAMES, help="Games of each table.")] = 16,
    backend: Annotated[SoakBackend, typer.Option(help="Where workers run.")] = SoakBackend.PROCESS,
    mode: Annotated[SoakMode, typer.Option(help="How to collect; `both` halves the time.")] = SoakMode.BOTH,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Kill, stop, reset and pause workers, and check every slab. Exit code 1 if anything is wrong.

    Ctrl-C ends it early, with the report so far.
    """
    from keisei.proving import soak as room

    modes: dict[SoakMode, tuple[room.Mode, ...]] = {
        SoakMode.SYNC: ("sync",),
        SoakMode.ASYNC: ("async",),
        SoakMode.BOTH: ("sync", "async"),
    }
    settings = room.SoakSettings(
        game=game, tables=tables, workers=workers, games=games, duration=duration, kill_every=kill_every,
        backend=backend.value, modes=modes[mode], seed=seed,
    )  # fmt: skip
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with (
        quiet_workers(),
        _ctrl_c() as interrupted,
        Progress(*columns, console=Terminal(stderr=True), transient=True) as progress,
    ):
        task = progress.add_task("starting", total=1.0)

        def show(share: float, toll: Toll, findings: Findings) -> None:
            text = f"{toll.kills} kills, {toll.stops} stops, {findings.transitions:,} transitions checked"
            progress.update(task, completed=share, description=text)

        report = room.soak(settings, show, interrupted)
    if as_json:
        typer.echo(json.dumps(_as_json(report), indent=2))
    else:
        _print(report)
    if not report.ok:
        raise typer.Exit(1)


@contextmanager
def _ctrl_c() -> Iterator[threading.Event]:
    """Turns the first Ctrl-C into a request to end. A second one ends at once."""
    pressed = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def press(number: int, frame: Any) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, before)

    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    signal.signal(signal.SIGINT, press)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def _print(report: SoakReport) -> None:
    table = Table("", "", box=None, pad_edge=False, show_header=False)
    for name, value, good in _lines(report):
        style = "" if good is None else "green" if good else "bold red"
        table.add_row(name, Text(value, style=style))
    console = Terminal(highlight=False)
    console.print(table)
    for complaint in report.findings.complaints:
        console.print(Text(complaint, style="red"), soft_wrap=True)
    if report.interrupted:
        console.print("\nInterrupted; this is the report so far.")
    verdict = ("OK", "green") if report.ok else ("FAILED", "bold red")
    console.print(Text(f"\n{verdict[0]}", style=verdict[1]))


def _lines(report: SoakReport) -> Iterator[tuple[str, str, bool | None]]:
    """Yields name, value, and whether the value is right (None if any value is right)."""
    toll, found, left = report.toll, report.findings, report.leftovers
    yield "seconds", f"{report.seconds:.1f}", None
    yield "killed", f"{toll.kills}", None
    yield "stopped", f"{toll.stops}", None
    yield "taking over", f"{toll.heirs} of these had just taken over a table", None
    yield (
        "recoveries",
        f"{len(toll.recoveries)}, and {toll.interrupted} killed again before their first step",
        None,
    )
    yield "restarts", f"{report.restarts}", None
    yield "resets, pauses", f"{report.resets}, {report.pauses}", None
    yield "slabs checked", f"{found.slabs:,}", None
    yield "transitions checked", f"{found.transitions:,}", None
    yield "lost", f"{found.lost}", found.lost == 0
    yield "duplicated", f"{found.duplicated}", found.duplicated == 0
    yield "corrupted", f"{found.corrupted}", found.corrupted == 0
    yield "recovery median", f"{report.recovery_median:.3f} s", None
    yield "recovery p99", f"{report.recovery_p99:.3f} s", None
    yield "processes left", f"{left.processes}", left.processes == 0
    yield "shared memory left", f"{left.shared_blocks} blocks", left.shared_blocks == 0
    files = left.descriptors
    yield (
        "open files left",
        "not counted" if files is None else f"{files}",
        None if files is None else files == 0,
    )
    yield (
        "memory growth",
        f"{_megabytes(report.manager_growth)} manager, "
        + (f"{_megabytes(report.worker_growth)} workers (from a quarter of the time to the end)"),
        None,
    )


def _megabytes(nbytes: int) -> str:
    return f"{nbytes / 2**20:+.1f} MB"


def _as_json(report: SoakReport) -> dict[str, object]:
    toll, found, left = report.toll, report.findings, report.leftovers
    return {
        "ok": report.ok,
        "interrupted": report.interrupted,
        "seconds": round(report.seconds, 3),
        "kills": toll.kills,
        "stops": toll.stops,
        "heirs": toll.heirs,
        "recoveries": len(toll.recoveries),
        "killed_again_before_first_step": toll.interrupted,
        "restarts": report.restarts,
        "resets": report.resets,
        "pauses": report.pauses,
        "slabs_checked": found.slabs,
        "transitions_checked": found.transitions,
        "lost": found.lost,
        "duplicated": found.duplicated,
        "corrupted": found.corrupted,
        "complaints": found.complaints,
        "recovery_seconds": {"median": report.recovery_median, "p99": report.recovery_p99},
        "left": {
            "processes": left.processes,
            "shared_blocks": left.shared_blocks,
            "open_files": left.descriptors,
        },
        "memory_growth_bytes": {"manager": report.manager_growth, "workers": report.worker_growth},
    }
