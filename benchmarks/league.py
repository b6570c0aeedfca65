"""How fast experience is collected in a league, compared with pure self-play.

Both play the game of a preset with its network, on the same tables, and take turns. In the league, a share of the games
meets a pool of snapshots: each table has one current member and draws another after ``swap_steps``. The snapshots have
different weights, so games differ as they do in training.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

import torch
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.measure import machine, rate_of, tell, widen
from keisei.machine.cores import usable_cores
from keisei.parallel import ParallelManager
from keisei.policies.behaviour import Behaviour
from keisei.policies.networks import build_network
from keisei.policies.seating import Seating
from keisei.training.events import Counters
from keisei.training.league.assembly import assemble
from keisei.training.league.settings import LeagueSettings
from keisei.training.presets import load_preset

REACH = 0.75
"""What the league is to keep of the speed of self-play."""
WARM_UP = 4
"""Collections before the first turn."""
NOISE = 0.3
"""How much the weights of snapshots differ, relative to their size."""


@dataclass(frozen=True)
class Settings:
    """What is measured, and for how long."""

    rounds: int = 30
    seconds: float = 1.0
    preset: str = "shogi-quickstart"
    members: int = 12
    latest_ratio: float = 0.5
    swap_steps: int = LeagueSettings().swap_steps


@dataclass(frozen=True)
class LeagueReport:
    machine: str
    preset: str
    members: int
    latest_ratio: float
    swap_steps: int
    workers: int
    rounds: int
    self_play: float
    """Transitions a second, as the median of the rounds."""
    league: float
    ratio: float
    """The median of the ratios of two turns that followed each other."""
    members_at_once: float
    """Members that a table meets in one slab, on average."""


def run(settings: Settings, *, as_json: bool, console: Console) -> None:
    report = measure(settings, console)
    tell(report, _show, as_json=as_json, console=console)


def measure(settings: Settings, console: Console) -> LeagueReport:
    with ExitStack() as stack:
        alone = stack.enter_context(closing(Collecting(settings, in_league=False)))
        league = stack.enter_context(closing(Collecting(settings, in_league=True)))
        turns = range(settings.rounds)
        rates = [
            (alone(settings.seconds), league(settings.seconds))
            for _ in track(turns, description="measuring", console=console, transient=True)
        ]
        return LeagueReport(
            machine=machine(),
            preset=settings.preset,
            members=settings.members,
            latest_ratio=settings.latest_ratio,
            swap_steps=settings.swap_steps,
            workers=usable_cores(),
            rounds=settings.rounds,
            self_play=statistics.median(rate for rate, _ in rates),
            league=statistics.median(rate for _, rate in rates),
            ratio=statistics.median(met / own for own, met in rates),
            members_at_once=league.members_at_once,
        )


class Collecting:
    """Collects as a training loop does, without learning."""

    def __init__(self, settings: Settings, *, in_league: bool) -> None:
        config = load_preset(settings.preset).config().resolved()
        spec = config.env.make(batch=1, seed=0).spec
        rules = LeagueSettings(
            window=settings.members, milestones=0, save_steps=1,
            latest_ratio=settings.latest_ratio, swap_steps=settings.swap_steps,
        )  # fmt: skip
        assembly = assemble(rules, spec, config.parallel.table_count) if in_league else None
        parallel = config.parallel.model_copy(update={"seating": Seating(), "num_workers": usable_cores()})
        self._manager = ParallelManager(
            config.env, config.model, parallel, league=None if assembly is None else assembly.plan
        )
        self._league = None if assembly is None else assembly.open(self._manager)
        self._network = build_network(config.model, spec, seed=1)
        self._manager.start_workers()
        self._joined = settings.members if in_league else 0
        self._met: list[int] = []
        for joined in range(max(self._joined, WARM_UP)):
            self._collect(joined)

    def __call__(self, seconds: float) -> float:
        return rate_of(lambda: self._collect(self._joined), seconds)

    def _collect(self, joined: int) -> int:
        """Collects once. A snapshot joins as long as fewer than all have."""
        if self._league is not None:
            counters = Counters(update=joined, transitions=min(joined, self._joined - 1))
            self._league.prepare(counters, 0.0, self._snapshot)
        experiences = self._manager.collect_experiences()
        if self._league is not None:
            self._league.take(experiences)
            self._met += [len(set(item.slab.policy.ravel().tolist()) - {0}) for item in experiences]
        return len(experiences)

    def _snapshot(self) -> Behaviour:
        generator = torch.Generator().manual_seed(len(self._met))
        with torch.no_grad():
            for weight in self._network.parameters():
                noise = torch.randn(weight.shape, generator=generator)
                weight.add_(noise * (NOISE * weight.abs().mean()))
        return Behaviour(self._network)

    @property
    def members_at_once(self) -> float:
        later = self._met[len(self._met) // 2 :]
        return sum(later) / max(1, len(later))

    def close(self) -> None:
        self._manager.stop_workers()


def _show(report: LeagueReport, console: Console) -> None:
    widen(console)
    console.print(report.machine)
    console.print(
        f"{report.preset}, {report.workers} workers; {1 - report.latest_ratio:.0%} of games against "
        f"{report.members} members, drawn again after {report.swap_steps:,} transitions of a table\n"
    )
    table = Table("", "transitions/s", "of self-play", "members at once", box=SIMPLE)
    for column in table.columns[1:]:
        column.justify = "right"
    rows: Sequence[tuple[str, str, str, str]] = (
        ("self-play", f"{report.self_play:,.0f}", "1", ""),
        ("league", f"{report.league:,.0f}", f"{report.ratio:.2f}", f"{report.members_at_once:.1f}"),
    )
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(f"reach: {REACH} of self-play; {'yes' if report.ratio >= REACH else 'no'}")
