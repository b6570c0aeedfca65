"""How things are measured here: side by side in one run, several rounds in turn, medians and ratios.

Machines drift, so a figure alone says little; the ratio of two that took turns says more.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import track

Contender = Callable[[float], float]
"""Works for about so many seconds and gives its rate per second."""


WIDTH = 130
"""Of tables in a file; a terminal may be narrower, but a file need not be."""


def widen(console: Console) -> None:
    """Give tables room where no terminal limits it."""
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)


def race(
    contenders: Mapping[str, Contender], seconds: float, rounds: int, console: Console
) -> dict[str, float]:
    """The median rate of each contender. They take turns, so that a slow moment hits all of them."""
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    turns = [name for _ in range(rounds) for name in contenders]
    for name in track(turns, description="measuring", console=console, transient=True):
        rates[name].append(contenders[name](seconds))
    return {name: statistics.median(values) for name, values in rates.items()}


def rate_of(work: Callable[[], int], seconds: float) -> float:
    """Repeat a piece of work, which gives how much it did, until the time is up."""
    done = 0
    started = time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        done += work()
    return done / elapsed


def machine() -> str:
    """The machine in a line, for the reader of a figure."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        name = lines[0].partition(":")[2].strip() if lines else name
    return f"{name}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
