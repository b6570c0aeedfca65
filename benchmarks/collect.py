"""How fast experience reaches the learner: ours, the limits of the machine, and others.

All contenders take turns in one run. The dummy game takes no time and has 17.1 KB a row, so collecting itself is
measured; Shogi is the real use. ``collect_limits`` has bare loops as limits, ``collect_queue`` the design that
pickles dicts into a queue, and ``peers`` other libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Protocol, TypeAlias, get_args

from rich.console import Console

from benchmarks.collect_limits import Arrivals, Forward, InferenceLimit, SharedMemoryLimit
from benchmarks.collect_queue import Message, QueueOfDicts
from benchmarks.collect_report import (
    FORWARD,
    LARGE_SLOTS,
    NETWORK,
    QUEUES,
    RANDOM,
    SAMPLING,
    SMALL_SLOTS,
    CollectReport,
    Result,
    Shares,
    scaling_of,
    show,
    targets_of,
)
from benchmarks.measure import machine, race, tell
from benchmarks.peers import PEERS, PeerMissingError
from keisei.machine.cores import usable_cores
from keisei.parallel import EnvConfig, Experiences, ParallelConfig, ParallelManager
from keisei.policies.networks import ModelConfig

Mode = Literal["sync", "async"]
GAMES = ("dummy", "shogi")
MLP = ModelConfig(network="mlp", hidden_dim=256, num_layers=2)
"""3726-256-256-2187+1 on the dummy game, as in the published comparison of collectors."""
PATIENCE = 60.0
SLABS = 2
"""Slabs of each worker: one in play, one at the learner, which gives it back at once. More would only be played
between turns."""


def worker_counts() -> tuple[int, ...]:
    """Gives 1, 2, 4, … workers up to the number of cores, and all cores."""
    cores = usable_cores()
    return tuple(sorted({1 << power for power in range(cores.bit_length())} | {cores}))


@dataclass(frozen=True)
class Settings:
    """What is measured, and for how long."""

    rounds: int = 3
    seconds: float = 0.5
    games_per_worker: int = 256
    games: tuple[str, ...] = GAMES
    peers: bool = False
    workers: tuple[int, ...] = field(default_factory=worker_counts)
    network: ModelConfig = MLP
    slab: int = 8192
    """Transitions of a slab; this many games need more than the default of 4096."""

    @property
    def steps(self) -> int:
        """Steps of each game in a slab."""
        return max(1, self.slab // self.games_per_worker)


class Entry(Protocol):
    """A contender that holds processes and ends them."""

    def __call__(self, seconds: float) -> float: ...

    def close(self) -> None: ...


Contestant: TypeAlias = tuple[Result, Callable[[], Entry]]
"""What is measured, without its figures, and how to start it."""


def run(settings: Settings, *, as_json: bool, console: Console) -> None:
    report = measure(settings, console)
    tell(report, show, as_json=as_json, console=console)


def measure(settings: Settings, console: Console) -> CollectReport:
    results: list[Result] = []
    missing: dict[str, str] = {}
    for game in settings.games:
        for policy in (NETWORK, RANDOM):
            results += _race(settings, list(_contenders(settings, game, policy)), missing, console)
    return CollectReport(
        machine=machine(),
        games_per_worker=settings.games_per_worker,
        rounds=settings.rounds,
        seconds=settings.seconds,
        results=results,
        peers_missing=missing,
        scaling=scaling_of(results),
        targets=targets_of(results),
    )


def _race(
    settings: Settings, contenders: list[Contestant], missing: dict[str, str], console: Console
) -> list[Result]:
    """Contenders that are compared take turns; each rests during the turns of others."""
    entries: dict[str, tuple[Result, Entry]] = {}
    with ExitStack() as stack:
        for result, build in contenders:
            try:
                entry = stack.enter_context(closing(build()))
                entry(settings.seconds / 2)  # The first round warms up memory and code.
            except PeerMissingError as reason:
                missing[result.name] = str(reason)
                continue
            entries[f"{result.name}, workers: {result.workers}"] = (result, entry)
        turns = {name: entry for name, (_, entry) in entries.items()}
        rates = race(turns, settings.seconds, settings.rounds, console)
        return [_complete(*entries[name], rate) for name, rate in rates.items()]


def _complete(result: Result, entry: Entry, rate: float) -> Result:
    if isinstance(entry, Collecting):
        result = replace(result, bytes_per_transition=entry.bytes_per_transition, shares=entry.shares)
    return replace(result, per_second=rate)


def _contenders(settings: Settings, game: str, policy: str) -> Iterator[Contestant]:
    """Groups each contender with those it is compared with."""
    model = settings.network if policy == NETWORK else None
    for workers in settings.workers:
        yield from _limits(settings, game, policy, workers)
        for mode in get_args(Mode):
            ours = Result("keisei", mode, game, policy, workers)
            yield ours, partial(Collecting, settings, game, model, mode, workers)
    most = max(settings.workers)
    for message in get_args(Message) if game == "dummy" else ():
        queue = Result("baseline", QUEUES[message], game, policy, most)
        yield queue, partial(QueueOfDicts, game, model, message, most)
    for peer in PEERS if settings.peers else ():
        if (peer.game, peer.policy) == (game, policy):
            yield Result("peer", peer.name, game, policy, peer.workers), peer.start


def _limits(settings: Settings, game: str, policy: str, workers: int) -> Iterator[Contestant]:
    games = settings.games_per_worker
    if policy == RANDOM:
        for name, steps in ((LARGE_SLOTS, settings.steps), (SMALL_SLOTS, 1)):
            bare = partial(SharedMemoryLimit, game, games, steps, workers)
            yield Result("limit", name, game, policy, workers), bare
        return
    for name in (FORWARD, SAMPLING):
        loop = Forward(game, games, settings.network, sampling=name == SAMPLING)
        yield Result("limit", name, game, policy, workers), partial(InferenceLimit, loop, workers)


class Collecting:
    """Keisei with its default settings: processes, shared memory, checksums."""

    def __init__(
        self, settings: Settings, game: str, model: ModelConfig | None, mode: Mode, workers: int
    ) -> None:
        self._mode, self._workers = mode, workers
        self._manager = ParallelManager(
            EnvConfig(game=game),
            model,
            ParallelConfig(
                backend="process",
                num_workers=workers,
                tables=workers,
                games=settings.games_per_worker,
                horizon=settings.steps,
                queue_maxsize=SLABS,
                mode=mode,
                timeout=PATIENCE,
            ),
        )
        self._manager.start_workers()
        self._seconds: dict[str, float] = dict.fromkeys(("all", "played", "game", "policy"), 0.0)

    def __call__(self, seconds: float) -> float:
        manager = self._manager
        arrivals = Arrivals(self._workers)
        if self._mode == "async":
            manager.resume_workers()
        while arrivals.elapsed < seconds or not arrivals.complete:
            self._take(manager.collect_experiences(), arrivals)
        self._seconds["all"] += arrivals.worker_seconds
        if self._mode == "async":
            self._rest()
        return arrivals.rate

    def _take(self, experiences: Experiences, arrivals: Arrivals) -> None:
        for item in experiences:
            item.slab.packed[:-1, :, 0].sum()  # A learner reads its experience.
            record = item.record
            arrivals.count(record.worker, record.transitions)
            self._seconds["played"] += record.seconds
            self._seconds["game"] += record.game_seconds
            self._seconds["policy"] += record.policy_seconds

    def _rest(self) -> None:
        """Pauses asynchronous workers, so that they do not slow the next turn."""
        self._manager.pause_workers()
        while self._manager.communicator.get_queue_info()["playing"]:
            self._manager.collect_experiences()

    @property
    def bytes_per_transition(self) -> float:
        return self._manager.bytes_per_transition

    @property
    def shares(self) -> Shares:
        everything, played, game, policy = self._seconds.values()
        return Shares(
            game / everything,
            policy / everything,
            (played - game - policy) / everything,
            max(0.0, 1 - played / everything),
        )

    def close(self) -> None:
        self._manager.stop_workers()
