"""DQN in one process compared with DQN with workers, at equal gradient steps for each transition.

Every contender trains a preset for the same number of transitions. Serial and synchronous training do exactly the
same work and end with the same weights, whose digests are compared. Asynchronous training learns while workers play,
by the same replay ratio, so its weights differ.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.measure import demand_same_weights, machine, tell, widen
from keisei.training.events import Update
from keisei.training.presets import load_preset, preset_names
from keisei.training.settings import TrainConfig
from keisei.training.studies.profiling import placed, profile

PRESETS = ("ludo-dqn", "connect-four-dqn")
CONTENDERS = ("serial", "parallel", "asynchronous")


@dataclass(frozen=True)
class Settings:
    """What is measured, and how often."""

    rounds: int = 3
    updates: int = 12
    """Collections of each contender, in each round."""
    workers: int = 2
    presets: tuple[str, ...] = tuple(name for name in PRESETS if name in preset_names())
    overrides: tuple[str, ...] = ()
    """Changes of the presets, as in ``keisei train --set``."""


@dataclass(frozen=True)
class Trained:
    """One training."""

    seconds: float
    games: int
    transitions: int
    gradient_steps: int
    digest: str


@dataclass(frozen=True)
class Result:
    """One contender: medians of its rounds."""

    preset: str
    contender: str
    episodes_per_minute: float
    transitions_per_second: float
    gradient_steps_per_second: float
    steps_per_transition: float
    """Gradient steps for each transition. It is the same for all contenders."""
    digests: list[str]
    """The distinct digests of the final weights."""


@dataclass(frozen=True)
class DQNReport:
    machine: str
    workers: int
    rounds: int
    results: list[Result]
    speedups: dict[str, dict[str, float]]
    """By preset: how many times as many episodes as in one process."""
    same_weights: dict[str, bool]
    """By preset: whether serial and synchronous training ended with the same bits each time."""


def run(settings: Settings, *, as_json: bool, console: Console) -> None:
    report = measure(settings, console)
    tell(report, _show, as_json=as_json, console=console)
    demand_same_weights(report.same_weights, "rates", "keisei verify --training")


def measure(settings: Settings, console: Console) -> DQNReport:
    by_preset = {preset: _race(preset, settings, console) for preset in settings.presets}
    return DQNReport(
        machine=machine(),
        workers=settings.workers,
        rounds=settings.rounds,
        results=[result for results in by_preset.values() for result in results],
        speedups={preset: _speedups(results) for preset, results in by_preset.items()},
        same_weights={preset: _same_weights(results) for preset, results in by_preset.items()},
    )


def _race(preset: str, settings: Settings, console: Console) -> list[Result]:
    """Contenders take turns, so a slow moment affects all of them."""
    found: dict[str, list[Trained]] = {name: [] for name in CONTENDERS}
    turns = [name for _ in range(settings.rounds) for name in CONTENDERS]
    for name in track(turns, description=preset, console=console, transient=True):
        found[name].append(_train(_config(preset, name, settings), name))
    return [_result(preset, name, trained) for name, trained in found.items()]


def _config(preset: str, contender: str, settings: Settings) -> TrainConfig:
    source = load_preset(preset)
    steps = settings.updates * source.config(settings.overrides).rollout
    mode = "async" if contender == "asynchronous" else "sync"
    fixed = [
        *settings.overrides,
        f"run.steps={steps}",
        "run.minutes=null",
        f"parallel.mode={mode}",
        f"parallel.num_workers={settings.workers}",
        "learner.replay.learning_starts=0",
    ]
    return source.config(fixed)


def _train(config: TrainConfig, contender: str) -> Trained:
    games = 0

    def count(update: Update) -> None:
        nonlocal games
        games += update.games.games

    found = profile(placed(config, "serial" if contender == "serial" else "parallel"), count)
    return Trained(found.wall, games, found.transitions, found.gradient_steps, found.digest)


def _result(preset: str, contender: str, trained: Sequence[Trained]) -> Result:
    return Result(
        preset=preset,
        contender=contender,
        episodes_per_minute=statistics.median(60 * one.games / one.seconds for one in trained),
        transitions_per_second=statistics.median(one.transitions / one.seconds for one in trained),
        gradient_steps_per_second=statistics.median(one.gradient_steps / one.seconds for one in trained),
        steps_per_transition=statistics.median(one.gradient_steps / one.transitions for one in trained),
        digests=sorted({one.digest for one in trained}),
    )


def _speedups(results: Sequence[Result]) -> dict[str, float]:
    serial = results[0]
    return {
        f"{result.contender} to serial": result.episodes_per_minute / serial.episodes_per_minute
        for result in results[1:]
    }


def _same_weights(results: Sequence[Result]) -> bool:
    return len({digest for result in results[:2] for digest in result.digests}) == 1


def _show(report: DQNReport, console: Console) -> None:
    widen(console)
    for preset, speedups in report.speedups.items():
        console.print(_table(preset, [result for result in report.results if result.preset == preset]))
        for what, ratio in speedups.items():
            console.print(f"  {what}: {ratio:.2f} x")
        same = "same bits" if report.same_weights[preset] else "DIFFERENT"
        console.print(f"  weights of serial and parallel: {same}")
    console.print(f"\n{report.machine}; {report.workers} workers, medians of {report.rounds} rounds")


def _table(preset: str, results: Sequence[Result]) -> Table:
    table = Table(title=preset, title_justify="left", box=SIMPLE)
    table.add_column("")
    for heading in ("episodes/min", "transitions/s", "gradient steps/s", "steps per 1,000 transitions"):
        table.add_column(heading, justify="right")
    for row in results:
        table.add_row(
            row.contender,
            f"{row.episodes_per_minute:,.0f}",
            f"{row.transitions_per_second:,.0f}",
            f"{row.gradient_steps_per_second:,.1f}",
            f"{1000 * row.steps_per_transition:.2f}",
        )
    return table
