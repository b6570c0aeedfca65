"""Training in one process against training with workers, at equal learning work.

Every contender makes the same updates from the same experience: as many transitions and gradient steps, and in the
end the same weights, whose digests are compared. Serial and parallel differ in where the games are played, and in
nothing else. Synchronous workers wait while the learner learns, so it may use all cores then: it also learns on one
thread, to show what that is worth. There the weights may differ in their last bits, as sums are added up in another
order.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.measure import machine
from keisei.errors import KeiseiError
from keisei.parallel.config import usable_cores
from keisei.training.presets import load_preset, preset_names
from keisei.training.profiling import Mode, Profile, placed, profile

WORKERS = 2
PRESETS = ("shogi-quickstart", "connect-four-ppo")


@dataclass(frozen=True)
class Settings:
    """What is measured, and how often."""

    rounds: int = 3
    updates: int = 3
    """Of each contender, in each round."""
    presets: tuple[str, ...] = tuple(name for name in PRESETS if name in preset_names())
    overrides: tuple[str, ...] = ()
    """Changes of the presets, as ``keisei train --set`` takes them."""


@dataclass(frozen=True, order=True)
class Contender:
    mode: Mode
    threads: int
    """Of the learner."""


@dataclass(frozen=True)
class Result:
    """One contender: medians of its rounds, in seconds."""

    preset: str
    mode: Mode
    learner_threads: int
    seconds: float
    """All of it, from the first order to the last weights; starting the workers is not part of it."""
    collecting: float
    learning: float
    """Advantages, gradient steps, and publishing weights."""
    learner_cores: float
    """That the learner's process kept busy while it learned."""
    updates: int
    transitions: int
    gradient_steps: int
    digests: list[str]
    """Of the final weights, without repetition: one, where training is the same every time."""


@dataclass(frozen=True)
class Comparison:
    """How many times faster the second is than the first."""

    preset: str
    what: str
    first: str
    second: str
    ratio: float


@dataclass(frozen=True)
class TrainingReport:
    machine: str
    workers: int
    rounds: int
    results: list[Result]
    comparisons: list[Comparison]
    same_weights: dict[str, bool]
    """By preset: did serial and parallel training, on as many learner threads, end with the same bits each time?"""


def run(settings: Settings, *, as_json: bool, console: Console) -> None:
    report = measure(settings, console)
    if as_json:
        console.file.write(json.dumps(asdict(report), indent=2) + "\n")
    else:
        _show(report, console)
    different = [preset for preset, same in report.same_weights.items() if not same]
    if different:
        raise KeiseiError(
            f"serial and parallel training gave different weights ({', '.join(different)}), so their times do not "
            f"compare equal work; keisei verify looks for the place where they part"
        )


def measure(settings: Settings, console: Console) -> TrainingReport:
    results = [
        result for preset in settings.presets for result in _race(preset, settings, console)
    ]
    return TrainingReport(
        machine=machine(),
        workers=WORKERS,
        rounds=settings.rounds,
        results=results,
        comparisons=[comparison for preset in settings.presets for comparison in _compare(preset, results)],
        same_weights={preset: _same_weights(preset, results) for preset in settings.presets},
    )


def _race(preset: str, settings: Settings, console: Console) -> list[Result]:
    """They take turns, so that a slow moment hits all of them."""
    threads = _usual_threads(preset, settings)
    contenders = sorted(
        {Contender("serial", threads), *(Contender("parallel", n) for n in (1, threads, usable_cores()))},
        reverse=True,
    )
    turns = [contender for _ in range(settings.rounds) for contender in contenders]
    profiles: dict[Contender, list[Profile]] = {contender: [] for contender in contenders}
    for contender in track(turns, description=preset, console=console, transient=True):
        profiles[contender].append(_train(preset, settings, contender))
    return [_result(preset, contender, found) for contender, found in profiles.items()]


def _usual_threads(preset: str, settings: Settings) -> int:
    """What a run of the preset would take."""
    changes = [*settings.overrides, f"parallel.num_workers={WORKERS}"]
    return int(load_preset(preset).config(changes).resolved().run.learner_threads)


def _train(preset: str, settings: Settings, contender: Contender) -> Profile:
    source = load_preset(preset)
    changes = [
        *settings.overrides,
        f"parallel.num_workers={WORKERS}",
        f"run.learner_threads={contender.threads}",
        "parallel.mode=sync",
        "run.minutes=null",
    ]
    steps = settings.updates * source.config(changes).run.rollout
    return profile(placed(source.config([*changes, f"run.steps={steps}"]), contender.mode))


def _result(preset: str, contender: Contender, profiles: Sequence[Profile]) -> Result:
    first = profiles[0]
    return Result(
        preset=preset,
        mode=contender.mode,
        learner_threads=contender.threads,
        seconds=statistics.median(found.wall for found in profiles),
        collecting=statistics.median(found.collecting for found in profiles),
        learning=statistics.median(found.preparing + found.learning + found.publishing for found in profiles),
        learner_cores=statistics.median(found.learner_cores for found in profiles),
        updates=first.updates,
        transitions=first.transitions,
        gradient_steps=first.gradient_steps,
        digests=sorted({found.digest for found in profiles}),
    )
