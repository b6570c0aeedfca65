"""How long commands take from the shell's start to their end. Each turn is a new process.

`python -m benchmarks.start` prints medians for each command: seconds on the clock, and of the processor, which other
programs disturb less. The commands that need no torch come first; `usi` answers the first command of a GUI and ends.
The others show what the import of torch costs. A bare Python is the limit.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.measure import machine

PROGRAM = (sys.executable, "-c", "from keisei.cli.entry import main; main()")
WITHOUT_TORCH = (
    "usi",
    "--help",
    "--version",
    "runs",
    "config",
    "config shogi-quickstart",
    "games",
    "doctor --quick",
    "train tictactoe-ppo --set learner.clipp=1",
)
WITH_TORCH = ("doctor", "evaluate no-such-run")
BARE = "python -c pass"


@dataclass(frozen=True)
class StartReport:
    machine: str
    seconds: dict[str, float]
    processor_seconds: dict[str, float]


def run(*, rounds: int, as_json: bool, console: Console) -> None:
    programs = {BARE: [sys.executable, "-c", "pass"]}
    programs |= {f"keisei {text}": [*PROGRAM, *text.split()] for text in (*WITHOUT_TORCH, *WITH_TORCH)}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    turns = [name for _ in range(rounds) for name in programs]
    with tempfile.TemporaryDirectory() as empty:
        for name in programs:
            _times(programs[name], empty)  # not counted: it fills the caches
        for name in track(turns, description="measuring", console=console, transient=True):
            times[name].append(_times(programs[name], empty))
    clock, processor = (
        {name: statistics.median(pair[which] for pair in taken) for name, taken in times.items()}
        for which in (0, 1)
    )
    report = StartReport(machine(), clock, processor)
    if as_json:
        console.print_json(json.dumps(asdict(report)))
        return
    table = Table("command", "s", "processor s", title=report.machine, title_justify="left")
    for name, seconds in report.seconds.items():
        table.add_row(name, f"{seconds:.2f}", f"{report.processor_seconds[name]:.2f}")
    console.print(table)


def _times(program: list[str], directory: str) -> tuple[float, float]:
    """Gives the seconds of the clock and of the processor."""
    began, used = time.perf_counter(), _processor_seconds()
    subprocess.run(program, cwd=directory, capture_output=True, check=False, input=b"usi\nquit\n")
    return time.perf_counter() - began, _processor_seconds() - used


def _processor_seconds() -> float:
    """Gives the time that all ended child processes have used."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main(
    rounds: Annotated[int, typer.Option(min=1, help="How often each command is started.")] = 7,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    run(rounds=rounds, as_json=as_json, console=Console(highlight=False))


if __name__ == "__main__":
    typer.run(main)
