"""Independent agents: one after another, and at the same time, at equal learning work.

Three things are measured for each number of agents, beside a loop that does it agent by agent:

- acting: what all agents of some worlds do in a turn, without stepping the worlds;
- training: gradient steps on memories that are full;
- the whole experiment: epochs of turns with training in between. All contenders play the same turns and make the same
  number of gradient steps, which is checked.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.measure import machine, rate_of, widen
from keisei import ParallelEnvironment
from keisei.errors import KeiseiError
from keisei.experience.agents_buffer import AgentsBuffer
from keisei.games.contract import IntArray
from keisei.learners.independent import IndependentLearners
from keisei.machine.cores import usable_cores
from keisei.machine.torch_threads import single_threaded
from keisei.policies.agents_policy import AgentsPolicy
from keisei.policies.behaviour import TableGames
from keisei.policies.contract import Policy, Situation
from keisei.policies.neural import NeuralPolicy

ONE_BY_ONE = "one after another"
EXPERIMENTS: Mapping[str, Mapping[str, Any]] = {
    ONE_BY_ONE: {"enabled": False},
    "parallel actions": {"parallel_training": False},
    "parallel training": {},
    "asynchronous": {"async_learning": True},
}
"""What is joined in each experiment. Parallel training has parallel actions too, and asynchronous both."""
TRAININGS = ("sequential", "stacked", "threads", "processes")


@dataclass(frozen=True)
class Settings:
    """What is measured, and how often."""

    agents: tuple[int, ...] = (2, 8, 32, 128)
    rounds: int = 3
    seconds: float = 1.0
    """How long a turn of acting or training lasts."""
    decisions: int = 40_000
    """Decisions of one experiment, of all agents together. It has at least ``least_epochs`` epochs."""
    least_epochs: int = 12
    worlds: int = 1
    max_turns: int = 50
    train_steps: int = 4
    """Gradient steps of each agent for each epoch."""
    batch_size: int = 64
    hidden_dim: int = 64
    trainings: tuple[str, ...] = TRAININGS
    game: str = "treasurehunt"

    def epochs(self, agents: int) -> int:
        return max(self.least_epochs, self.decisions // (agents * self.worlds * self.max_turns))


@dataclass(frozen=True)
class Result:
    """One number of agents: medians of all rounds."""

    agents: int
    acting: dict[str, float]
    """Turns of a world per second, without the world itself."""
    training: dict[str, float]
    """Gradient steps per second, of all agents together."""
    experiment: dict[str, float]
    """Turns of a world per second, learning included."""
    steps_per_second: dict[str, float]
    """Gradient steps per second in these experiments."""
    gradient_steps: dict[str, int]
    """How much each contender has learned. It is the same for all."""
    ratios: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class IndependentReport:
    machine: str
    rounds: int
    results: list[Result]


def run(settings: Settings, *, as_json: bool, console: Console) -> None:
    report = measure(settings, console)
    if as_json:
        console.file.write(json.dumps(asdict(report), indent=2) + "\n")
    else:
        _show(report, console)
    unequal = [result.agents for result in report.results if len({*result.gradient_steps.values()}) > 1]
    if unequal:
        raise KeiseiError(
            f"contenders made different numbers of gradient steps with {unequal} agents, so their rates do not compare "
            f"equal work"
        )


def measure(settings: Settings, console: Console) -> IndependentReport:
    return IndependentReport(
        machine=machine(),
        rounds=settings.rounds,
        results=[_result(count, settings, console) for count in settings.agents],
    )


def _result(count: int, settings: Settings, console: Console) -> Result:
    acting = _race(_actors(count, settings), settings, console, f"{count} agents act")
    training = _race(_trainers(count, settings), settings, console, f"{count} agents learn")
    turns, steps, work = _experiments(count, settings, console)
    baselines = (("acting", acting), ("training", training), ("experiment", turns))
    ratios = {
        f"{what}, {name}": rate / next(iter(rates.values()))
        for what, rates in baselines
        for name, rate in list(rates.items())[1:]
    }
    return Result(count, acting, training, turns, steps, work, ratios)


def _race(
    contenders: Mapping[str, Callable[[], float]], settings: Settings, console: Console, what: str
) -> dict[str, float]:
    """Contenders take turns, so a slow moment affects all of them."""
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    turns = [name for _ in range(settings.rounds) for name in contenders]
    for name in track(turns, description=what, console=console, transient=True):
        rates[name].append(contenders[name]())
    return {name: statistics.median(values) for name, values in rates.items()}


def environment(count: int, settings: Settings, **parallel: Any) -> ParallelEnvironment:
    """Makes a world with so many agents."""
    return ParallelEnvironment(
        settings.game,
        {
            "parallel": {"train_interval": 1, **parallel},
            "experiment": {
                "epochs": settings.epochs(count),
                "max_turns": settings.max_turns,
                "worlds": settings.worlds,
            },
            "model": {
                "network": "mlp",
                "hidden_dim": settings.hidden_dim,
                "num_layers": 2,
                "batch_size": settings.batch_size,
                "memory_size": 20 * settings.worlds * settings.max_turns,
                "train_steps": settings.train_steps,
            },
            "world": {"agents": count},
        },
    )


# Acting


def _actors(count: int, settings: Settings) -> dict[str, Callable[[], float]]:
    env = environment(count, settings)
    learner = _learner(env)
    world = env.settings.env.make(batch=settings.worlds, seed=1)
    situation = Situation(world, 1, 0)
    together = AgentsPolicy(learner.network, env.spec)
    together.behave(learner.behaviour(0.5).settings, TableGames(0, settings.worlds, settings.worlds))
    alone = [NeuralPolicy(agent.network, env.spec, 0.0, 0.5) for agent in learner.agents]
    rows = [np.flatnonzero(situation.rows.seat == seat).astype(np.int32) for seat in range(count)]

    def turn_together() -> int:
        situation.advance()
        together.act(situation)
        return settings.worlds

    def turn_alone() -> int:
        situation.advance()
        _one_by_one(alone, situation, rows)
        return settings.worlds

    return {
        ONE_BY_ONE: lambda: _rate(turn_alone, settings.seconds),
        "at once": lambda: _rate(turn_together, settings.seconds),
    }


def _one_by_one(policies: Sequence[Policy], situation: Situation, rows: Sequence[IntArray]) -> None:
    for policy, own in zip(policies, rows, strict=True):
        policy.act(situation, own)


def _rate(work: Callable[[], int], seconds: float) -> float:
    with single_threaded():
        work()  # the first one is slower than all others
        return rate_of(work, seconds)


# Training


def _trainers(count: int, settings: Settings) -> dict[str, Callable[[], float]]:
    return {name: _trainer(name, count, settings) for name in settings.trainings}


def _trainer(name: str, count: int, settings: Settings) -> Callable[[], float]:
    modes = {"sequential": {"parallel_training": False}, "stacked": {}, "threads": {"use_threads": True}}
    env = environment(count, settings, **modes.get(name, {"use_threads": False}))
    _fill(env)
    learner, buffer = _learner(env), _buffer(env)

    def train() -> int:
        for memory in buffer.memories:
            memory._owed = settings.train_steps  # type: ignore[union-attr]
        report = learner.learn(buffer.view(), 0.5)
        if report.failures:
            raise KeiseiError(f"agents could not learn: {report.failures}")
        return settings.train_steps * count

    def rate() -> float:
        try:
            return _rate(train, settings.seconds)
        finally:
            learner.close()

    return rate


def _fill(env: ParallelEnvironment) -> None:
    """Plays a few epochs without learning from them."""
    from keisei.training.regimes.independent import agents_plan
    from keisei.training.wiring import build_manager

    learner = _learner(env)
    with build_manager(env.settings, learner.behaviour(0.0), 1, 0, None, agents_plan(learner)) as manager:
        for _ in range(4):
            _buffer(env).take(manager.collect_experiences().slabs)


def _learner(env: ParallelEnvironment) -> IndependentLearners:
    return env._learner


def _buffer(env: ParallelEnvironment) -> AgentsBuffer:
    return env._buffer


# Whole experiments


def _experiments(
    count: int, settings: Settings, console: Console
) -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
    seconds: dict[str, list[float]] = {name: [] for name in EXPERIMENTS}
    work: dict[str, int] = {}
    turns = [name for _ in range(settings.rounds) for name in EXPERIMENTS]
    for name in track(turns, description=f"{count} agents", console=console, transient=True):
        env = environment(count, settings, **EXPERIMENTS[name])
        began = time.perf_counter()
        work[name] = env.run_experiment_parallel().gradient_steps
        seconds[name].append(time.perf_counter() - began)
    played = settings.epochs(count) * settings.max_turns * settings.worlds
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return (
        {name: played / median for name, median in medians.items()},
        {name: work[name] / median for name, median in medians.items()},
        work,
    )


def _show(report: IndependentReport, console: Console) -> None:
    widen(console)
    console.print(_table("acting: turns/s", [(r.agents, r.acting) for r in report.results]))
    console.print(_table("training: gradient steps/s", [(r.agents, r.training) for r in report.results]))
    console.print(_table("experiment: turns/s", [(r.agents, r.experiment) for r in report.results]))
    console.print(
        _table("experiment: gradient steps/s", [(r.agents, r.steps_per_second) for r in report.results])
    )
    console.print(_growth(report))
    console.print(f"\n{report.machine}, {usable_cores()} usable; medians of {report.rounds} rounds")


def _table(title: str, rows: Sequence[tuple[int, Mapping[str, float]]]) -> Table:
    """Rates, and how many times the loop that does it one after another."""
    table = Table(title=title, title_justify="left", box=SIMPLE)
    table.add_column("agents", justify="right")
    for name in rows[0][1]:
        table.add_column(name, justify="right")
    for agents, rates in rows:
        first = next(iter(rates.values()))
        table.add_row(str(agents), *(f"{rate:,.0f} ({rate / first:.2f} x)" for rate in rates.values()))
    return table


def _growth(report: IndependentReport) -> Table:
    """How the cost of a turn grows with the number of agents, as bars."""
    table = Table(title="cost of a turn, learning included", title_justify="left", box=SIMPLE)
    for heading in ("agents", "", "ms", ""):
        table.add_column(heading, justify="right" if heading in ("agents", "ms") else "left")
    costs = [(r.agents, name, 1000 / rate) for r in report.results for name, rate in r.experiment.items()]
    most = max(cost for *_, cost in costs)
    for agents, name, cost in costs:
        table.add_row(str(agents), name, f"{cost:.2f}", "█" * max(1, round(50 * cost / most)))
    return table
