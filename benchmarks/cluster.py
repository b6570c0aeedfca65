"""What a Ray cluster costs, beside processes on the same machine.

Both play the game of a preset with its network on the same tables, and take turns. Then single costs are measured: a
slab, a version of the weights, idle actors. At last, one to four nodes on this machine play a game that takes time but
no processor, and the simulation (``keisei simulate``) has to forecast how fast they are.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.measure import machine, rate_of, widen
from keisei.machine.cores import usable_cores
from keisei.parallel import ParallelManager
from keisei.parallel.backends.cluster.actor import PULSE, actor_class
from keisei.parallel.backends.cluster.backend import PULSE_SECONDS
from keisei.parallel.backends.cluster.connection import import_ray, on_loopback
from keisei.parallel.backends.cluster.handle import RayHandle
from keisei.parallel.backends.cluster.simulation import Assumptions, forecast
from keisei.training.presets import load_preset

REACH = 0.8
"""What Ray is to keep of the speed of processes."""
WARM_UP = 2
SLOW_HORIZON, SLOW_GAMES, SLOW_STEP = 16, 8, 0.01
"""The slabs of the game that takes time but no processor: 0.16 s each."""
STORE_BYTES = 200 << 20


@dataclass(frozen=True)
class Settings:
    rounds: int = 5
    seconds: float = 4.0
    preset: str = "shogi-quickstart"
    actors: tuple[int, ...] = (2, 8, 32, 64)
    nodes: tuple[int, ...] = (1, 2, 4)


@dataclass
class DriverTime:
    """What slabs cost the driver."""

    slabs: int = 0
    seconds: float = 0.0
    slab_bytes: int = 0
    state_bytes: int = 0

    @property
    def seconds_each(self) -> float:
        return self.seconds / max(1, self.slabs)


@dataclass(frozen=True)
class IdleActors:
    actors: int
    cores: float
    """The share of one core that the driver takes for their heartbeats."""


@dataclass(frozen=True)
class Scaling:
    nodes: int
    measured: float
    """Slabs per second."""
    forecast: float


@dataclass(frozen=True)
class ClusterReport:
    machine: str
    preset: str
    workers: int
    process: float
    """Transitions per second, as the median of the rounds."""
    ray: float
    ratio: float
    """The median of the ratios of two turns that followed each other."""
    process_waiting: float
    """The share of their time in which workers wait for orders."""
    ray_waiting: float
    slab_bytes: int
    state_bytes: int
    slab_milliseconds: float
    """What a slab takes of the driver: the call, the check, the copy."""
    weights_bytes: int
    weights_milliseconds: float
    """What a version takes of the driver."""
    idle: Sequence[IdleActors] = field(default_factory=list)
    scaling: Sequence[Scaling] = field(default_factory=list)


def run(settings: Settings, *, as_json: bool, console: Console) -> None:
    report = measure(settings, console)
    if as_json:
        console.file.write(json.dumps(asdict(report), indent=2) + "\n")
    else:
        _show(report, console)


def measure(settings: Settings, console: Console) -> ClusterReport:
    cost = DriverTime()
    with ExitStack() as stack:
        stack.enter_context(_timed(cost))
        processes = stack.enter_context(closing(Collecting(settings.preset, "process")))
        actors = stack.enter_context(closing(Collecting(settings.preset, "ray")))
        turns = track(range(settings.rounds), description="measuring", console=console, transient=True)
        rates = [(processes(settings.seconds), actors(settings.seconds)) for _ in turns]
        waiting = processes.waiting, actors.waiting
        weights_bytes, weights_seconds = actors.weights_cost()
        idle = [_idle_cost(count, settings.seconds) for count in settings.actors]
    return ClusterReport(
        machine=machine(),
        preset=settings.preset,
        workers=usable_cores(),
        process=statistics.median(rate for rate, _ in rates),
        ray=statistics.median(rate for _, rate in rates),
        ratio=statistics.median(theirs / ours for ours, theirs in rates),
        process_waiting=waiting[0],
        ray_waiting=waiting[1],
        slab_bytes=cost.slab_bytes // max(1, cost.slabs),
        state_bytes=cost.state_bytes // max(1, cost.slabs),
        slab_milliseconds=1000 * cost.seconds_each,
        weights_bytes=weights_bytes,
        weights_milliseconds=1000 * weights_seconds,
        idle=idle,
        scaling=[_scaling(nodes, settings.seconds) for nodes in settings.nodes],
    )


class Collecting:
    """Collects as a training loop does, without learning."""

    def __init__(self, preset: str, backend: str) -> None:
        config = load_preset(preset).config().resolved()
        placement = {"backend": backend, "num_workers": usable_cores()}
        self._manager = ParallelManager(
            config.env, config.model, config.parallel.model_copy(update=placement)
        )
        self._manager.start_workers()
        for _ in range(WARM_UP):
            self._collect()

    def __call__(self, seconds: float) -> float:
        return rate_of(self._collect, seconds)

    def _collect(self) -> int:
        return len(self._manager.collect_experiences())

    @property
    def waiting(self) -> float:
        return statistics.mean(worker.waiting_share for worker in self._manager.get_status().workers)

    def weights_cost(self) -> tuple[int, float]:
        """Gives the bytes of a version, and how long it takes to put it into the object store."""
        assert self._manager.synchronizer is not None
        ray, reader = import_ray(), self._manager.synchronizer.reader()
        began = time.perf_counter()
        kept = [ray.put(reader.stored()) for _ in range(10)]
        return len(reader.stored().content), (time.perf_counter() - began) / len(kept)

    def close(self) -> None:
        self._manager.stop_workers()


@contextmanager
def _timed(cost: DriverTime) -> Iterator[None]:
    """Measures what handles do for slabs."""
    play, settle, unload = RayHandle._play, RayHandle._settle, RayHandle._unload

    def timed_play(self: RayHandle, call: Any) -> Any:
        began = time.perf_counter()
        ref = play(self, call)
        cost.seconds += time.perf_counter() - began
        return ref

    def timed_settle(self: RayHandle, call: Any) -> None:
        inside = cost.seconds
        began = time.perf_counter()
        settle(self, call)
        cost.seconds = inside + time.perf_counter() - began  # the next call is made inside

    def counted_unload(self: RayHandle, record: Any, played: Any, order: Any) -> None:
        cost.slabs += 1
        cost.slab_bytes += len(played.slab)
        cost.state_bytes += len(played.state)
        unload(self, record, played, order)

    RayHandle._play, RayHandle._settle = timed_play, timed_settle  # type: ignore[method-assign]
    RayHandle._unload = counted_unload  # type: ignore[method-assign]
    try:
        yield
    finally:
        RayHandle._play, RayHandle._settle, RayHandle._unload = play, settle, unload  # type: ignore[method-assign]


def _idle_cost(count: int, seconds: float) -> IdleActors:
    """Measures what the heartbeats of actors that do nothing else cost the driver, with the same calls."""
    ray = import_ray()
    actors = [actor_class(ray).options(num_cpus=0).remote() for _ in range(count)]
    try:
        ray.get([actor.greet.remote() for actor in actors])
        beats = {_beat(actor): actor for actor in actors}
        began, worked = time.perf_counter(), time.process_time()
        while time.perf_counter() - began < seconds:
            ray.wait(list(beats), num_returns=1, timeout=0.05)
            for ref in ray.wait(list(beats), num_returns=count, timeout=0)[0]:
                actor = beats.pop(ref)
                ray.get(ref)
                beats[_beat(actor)] = actor
        return IdleActors(count, (time.process_time() - worked) / (time.perf_counter() - began))
    finally:
        for actor in actors:
            ray.kill(actor)


def _beat(actor: Any) -> Any:
    return actor.pulse.options(concurrency_group=PULSE).remote(PULSE_SECONDS)


def _scaling(nodes: int, seconds: float) -> Scaling:
    """Measures slabs per second with so many nodes of one worker each, and forecasts them."""
    cost = DriverTime()
    with _nodes(nodes) as address, _timed(cost):
        manager = ParallelManager(
            {"game": "benchmarks.slow_game:SlowGame", "options": {"step_seconds": SLOW_STEP}},
            None,
            {
                "backend": "ray", "address": address, "num_workers": nodes, "tables": 2 * nodes, "games": SLOW_GAMES,
                "horizon": SLOW_HORIZON,
            },
        )  # fmt: skip
        with manager:
            for _ in range(WARM_UP):
                manager.collect_experiences()
            measured = rate_of(lambda: len(manager.collect_experiences().slabs), seconds)
            workers = manager.get_status().workers
            played = sum(worker.seconds for worker in workers) / max(
                1, sum(worker.slabs for worker in workers)
            )
    given = Assumptions(
        nodes=nodes, cores=1, tables=2 * nodes, slab_transitions=SLOW_GAMES * SLOW_HORIZON, slab_seconds=played,
        slab_bytes=cost.slab_bytes // max(1, cost.slabs), state_bytes=cost.state_bytes // max(1, cost.slabs),
        driver_seconds=cost.seconds_each, weights_bytes=0, learn_seconds=0.0,
    )  # fmt: skip
    return Scaling(nodes, measured, forecast(given).slabs_per_second)


@contextmanager
def _nodes(count: int) -> Iterator[str]:
    """Starts a cluster of several nodes on this machine, and gives its address. No worker plays on its head."""
    import_ray()
    from ray.cluster_utils import Cluster

    usual = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    with on_loopback():
        cluster = Cluster(initialize_head=True, head_node_args={**usual, "num_cpus": 0})
        try:
            for _ in range(count):
                cluster.add_node(**usual)
            yield cluster.address
        finally:
            cluster.shutdown()


def _show(report: ClusterReport, console: Console) -> None:
    widen(console)
    console.print(f"{report.machine}\n{report.preset}, {report.workers} workers\n")
    speeds = Table("", "transitions/s", "of processes", "workers wait", box=SIMPLE)
    speeds.add_row("processes", f"{report.process:,.0f}", "1", f"{report.process_waiting:.0%}")
    speeds.add_row("Ray", f"{report.ray:,.0f}", f"{report.ratio:.2f}", f"{report.ray_waiting:.0%}")
    console.print(speeds)
    console.print(f"reach: {REACH} of processes; {'yes' if report.ratio >= REACH else 'no'}\n")
    console.print(
        f"a slab: {report.slab_bytes / 1e6:.2f} MB and {report.state_bytes / 1e6:.3f} MB of state, "
        f"{report.slab_milliseconds:.2f} ms of the driver\n"
        f"a version of the weights: {report.weights_bytes / 1e6:.2f} MB, {report.weights_milliseconds:.2f} ms\n"
    )
    for each in report.idle:
        console.print(f"heartbeats of {each.actors} idle actors: {each.cores:.1%} of a core of the driver")
    scaling = Table("nodes", "slabs/s", "forecast", "measured / forecast", box=SIMPLE)
    for step in report.scaling:
        ratio = step.measured / step.forecast
        scaling.add_row(str(step.nodes), f"{step.measured:.1f}", f"{step.forecast:.1f}", f"{ratio:.2f}")
    console.print(scaling)
