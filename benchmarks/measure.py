"""Measurement: contenders side by side in one run, several rounds in turn, medians and ratios.

Machines drift, so a single figure says little. The ratio of two contenders that took turns says more.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import track
from rich.table import Table

from keisei.errors import KeiseiError

Report = TypeVar("Report", bound=Any)
"""A dataclass with the figures of a benchmark."""
Contender = Callable[[float], float]
"""Works for about this many seconds and returns its rate per second."""


WIDTH = 130
"""Width of tables in a file; a terminal may be narrower."""


def widen(console: Console) -> None:
    """Widens tables if the output is not a terminal."""
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)


def plain_table(title: str, headings: Sequence[str], words: Collection[str]) -> Table:
    """Makes a table without lines. Numbers stand to the right, and the columns of words to the left."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in words else "right")
    return table


def race(
    contenders: Mapping[str, Contender], seconds: float, rounds: int, console: Console
) -> dict[str, float]:
    """Measures the median rate of each contender. They take turns, so a slow moment affects all of them."""
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    turns = [name for _ in range(rounds) for name in contenders]
    for name in track(turns, description="measuring", console=console, transient=True):
        rates[name].append(contenders[name](seconds))
    return {name: statistics.median(values) for name, values in rates.items()}


def rate_of(work: Callable[[], int], seconds: float) -> float:
    """Repeats a piece of work until the time is up. The work returns its amount."""
    done = 0
    started = time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        done += work()
    return done / elapsed


def tell(report: Report, show: Callable[[Report, Console], None], *, as_json: bool, console: Console) -> None:
    """Shows a report as tables, or prints it as JSON."""
    if as_json:
        console.file.write(json.dumps(asdict(report), indent=2) + "\n")
    else:
        show(report, console)


def demand_same_weights(same: Mapping[str, bool], figures: str, command: str) -> None:
    """Raises ``KeiseiError`` if serial and parallel training of a preset did not do the same work."""
    different = [preset for preset, is_same in same.items() if not is_same]
    if different:
        raise KeiseiError(
            f"serial and parallel training gave different weights ({', '.join(different)}), so their {figures} do not "
            f"compare equal work; {command} looks for the place where they part"
        )


def machine() -> str:
    """Describes the machine in one line."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        name = lines[0].partition(":")[2].strip() if lines else name
    return f"{name}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
