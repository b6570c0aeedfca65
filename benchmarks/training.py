"""Training in one process compared with training with workers, for the same learning work.

Every contender makes the same updates from the same experience: the same transitions, gradient steps and final
weights, whose digests are compared. Serial and parallel differ only in where games are played. Synchronous workers
wait while the learner learns, so it may use all cores. It is also measured on one thread, to show the gain. The
number of threads changes no bit.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.measure import demand_same_weights, machine, tell, widen
from keisei.machine.cores import usable_cores
from keisei.training.presets import load_preset, preset_names
from keisei.training.settings import TrainConfig
from keisei.training.studies.profiling import Mode, Profile, placed, profile

WORKERS = 2
PRESETS = ("shogi-quickstart", "connect-four-ppo")


@dataclass(frozen=True)
class Settings:
    """What is measured, and how often."""

    rounds: int = 3
    updates: int = 6
    """Updates of each contender, in each round."""
    presets: tuple[str, ...] = tuple(name for name in PRESETS if name in preset_names())
    overrides: tuple[str, ...] = ()
    """Changes of the presets, as in ``keisei train --set``."""


Contender: TypeAlias = tuple[Mode, int]
"""Where games are played, and the threads of the learner."""


@dataclass(frozen=True)
class Result:
    """One contender: medians of its rounds, in seconds."""

    preset: str
    mode: Mode
    learner_threads: int
    seconds: float
    """The total time, from the first order to the last weights, without the start of the workers."""
    collecting: float
    learning: float
    """Advantages, gradient steps, and publishing weights."""
    learner_cores: float
    """Cores that the learner's process kept busy while it learned."""
    updates: int
    transitions: int
    gradient_steps: int
    digests: list[str]
    """The distinct digests of the final weights; one if training is the same every time."""


@dataclass(frozen=True)
class TrainingReport:
    machine: str
    workers: int
    rounds: int
    results: list[Result]
    speedups: dict[str, dict[str, float]]
    """By preset: the median time of the first over that of the second."""
    same_weights: dict[str, bool]
    """By preset: whether the work was the same, and serial and parallel training ended with the same bits each
    time."""


def run(settings: Settings, *, as_json: bool, console: Console) -> None:
    report = measure(settings, console)
    tell(report, _show, as_json=as_json, console=console)
    demand_same_weights(report.same_weights, "times", "keisei verify")


def measure(settings: Settings, console: Console) -> TrainingReport:
    by_preset = {preset: _race(preset, settings, console) for preset in settings.presets}
    return TrainingReport(
        machine=machine(),
        workers=WORKERS,
        rounds=settings.rounds,
        results=[result for results in by_preset.values() for result in results],
        speedups={preset: _speedups(results) for preset, results in by_preset.items()},
        same_weights={preset: _same_weights(results) for preset, results in by_preset.items()},
    )


def _race(preset: str, settings: Settings, console: Console) -> list[Result]:
    """Contenders take turns, so a slow moment affects all of them."""
    config = _config(preset, settings)
    usual = int(config.resolved().placed().run.learner_threads)
    contenders: dict[Contender, list[Profile]] = {("serial", usual): [], ("parallel", usual): []}
    contenders |= {("parallel", threads): [] for threads in (1, usable_cores())}
    turns = [contender for _ in range(settings.rounds) for contender in contenders]
    for mode, threads in track(turns, description=preset, console=console, transient=True):
        run_settings = config.run.model_copy(update={"learner_threads": threads})
        found = profile(placed(config.model_copy(update={"run": run_settings}), mode))
        contenders[mode, threads].append(found)
    return [_result(preset, contender, profiles) for contender, profiles in contenders.items()]


def _config(preset: str, settings: Settings) -> TrainConfig:
    source = load_preset(preset)
    steps = settings.updates * source.config(settings.overrides).rollout
    length = [f"run.steps={steps}", "run.minutes=null"]
    return source.config(
        [*settings.overrides, *length, "parallel.mode=sync", f"parallel.num_workers={WORKERS}"]
    )


def _result(preset: str, contender: Contender, profiles: Sequence[Profile]) -> Result:
    mode, threads = contender
    return Result(
        preset=preset,
        mode=mode,
        learner_threads=threads,
        seconds=statistics.median(found.wall for found in profiles),
        collecting=statistics.median(found.collecting for found in profiles),
        learning=statistics.median(found.preparing + found.learning + found.publishing for found in profiles),
        learner_cores=statistics.median(found.learner_cores for found in profiles),
        updates=profiles[0].updates,
        transitions=profiles[0].transitions,
        gradient_steps=profiles[0].gradient_steps,
        digests=sorted({found.digest for found in profiles}),
    )


def _speedups(results: Sequence[Result]) -> dict[str, float]:
    """The first two results are serial and parallel with the same number of threads."""
    serial, parallel = results[:2]
    found = {
        "serial to parallel, in all": serial.seconds / parallel.seconds,
        "serial to parallel, collecting": serial.collecting / parallel.collecting,
        "serial to parallel, learning": serial.learning / parallel.learning,
    }
    by_threads = {result.learner_threads: result for result in results if result.mode == "parallel"}
    most = max(by_threads)
    if most > 1:
        found[f"learning, 1 thread to {most}"] = by_threads[1].learning / by_threads[most].learning
    return found


def _same_weights(results: Sequence[Result]) -> bool:
    """Whether all did the same amount of work: in one process, with workers, and for every number of threads."""
    work = {(result.updates, result.transitions, result.gradient_steps) for result in results}
    return len(work) == 1 and len({digest for result in results for digest in result.digests}) == 1


def _show(report: TrainingReport, console: Console) -> None:
    widen(console)
    for preset, speedups in report.speedups.items():
        results = [result for result in report.results if result.preset == preset]
        console.print(_table(preset, results))
        for what, ratio in speedups.items():
            console.print(f"  {what}: {ratio:.2f} x")
        console.print(f"  weights: {'same bits' if report.same_weights[preset] else 'DIFFERENT'}")
    console.print(f"\n{report.machine}; {report.workers} workers, medians of {report.rounds} rounds")


def _table(preset: str, results: Sequence[Result]) -> Table:
    first = results[0]
    title = (
        f"{preset}: {first.updates} updates, {first.transitions:,} transitions, "
        f"{first.gradient_steps:,} gradient steps"
    )
    table = Table(title=title, title_justify="left", box=SIMPLE)
    table.add_column("")
    for heading in ("learner threads", "in all", "collecting", "learning", "cores busy learning"):
        table.add_column(heading, justify="right")
    table.add_column("digest")
    for row in results:
        seconds = (f"{value:.2f} s" for value in (row.seconds, row.collecting, row.learning))
        digests = ", ".join(digest[:12] for digest in row.digests)
        table.add_row(row.mode, str(row.learner_threads), *seconds, f"{row.learner_cores:.2f}", digests)
    return table
