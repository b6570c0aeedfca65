"""Is the experience the same, bit for bit, with any backend, any number of workers, and any failures?

``verify`` plays the same rounds inline, in threads, in processes or on a cluster, and compares. ``Reference`` plays
single slabs again, for a run whose order is not known in advance.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from keisei.errors import ConfigError
from keisei.experience.collected import CollectedSlab, Experiences
from keisei.experience.slab import SlabRecord
from keisei.games.env_config import EnvConfig
from keisei.games.randomness import keyed_word
from keisei.games.registry import DEFAULT_GAME
from keisei.machine.torch_threads import torch_threads
from keisei.parallel.backend_names import runs_elsewhere
from keisei.parallel.config import ParallelConfig
from keisei.parallel.messages import Order, OrderKind, Start
from keisei.parallel.parallel_manager import ParallelManager
from keisei.parallel.weights.model_sync import ModelSynchronizer
from keisei.parallel.worker.self_play_worker import SelfPlayWorker
from keisei.policies.behaviour import Behaviour
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import ActorCritic
from keisei.proving.disturbance import Disturber, Toll
from keisei.training.events import Counters
from keisei.training.league.assembly import Assembly, assemble
from keisei.training.league.opponents import OpponentManager
from keisei.training.league.settings import LeagueSettings, MemberSettings

BACKENDS = ("inline", "thread", "process")
"""The backends that every machine has."""
KILLABLE = ("process", "ray")
"""The backends whose workers are processes, which can be killed."""

SLAB_STEPS = 32
"""Steps of a slab: some 50 ms with a small network, so workers make progress between two kills."""
KILL_EVERY = 0.05
STOP_SHARE = 0.25
HANG_SECONDS = 0.2
"""Seconds after which a stopped worker counts as hung. A step takes a hundredth of it, also on a busy machine."""
HANG_SECONDS_ELSEWHERE = 5.0
"""The same for workers that tell of their steps by heartbeats."""
KEPT_VERSIONS = 8
QUICK_LEAGUE = LeagueSettings(
    window=2,
    milestones=1,
    save_steps=1,
    swap_steps=1,
    sampling="pfsp",
    members=(MemberSettings(policy="random", share=0.2),),
)
"""A league in which every round adds a snapshot and every slab draws another member, so places on the shelf are used
again and again."""


@dataclass(frozen=True, slots=True)
class VerifySettings:
    game: str = DEFAULT_GAME
    tables: int = 5
    games: int = 16
    """Games of each table."""
    backends: tuple[str, ...] = BACKENDS
    """The backends to compare. The first one is the reference; the crew changes in the last one."""
    address: str = "local"
    """The Ray cluster, if one of the backends is ``ray``."""
    workers: tuple[int, ...] = (1, 2, 3)
    """The numbers of workers to compare."""
    rounds: int = 20
    seed: int = 0
    network: bool = True
    """False plays at random."""
    central: bool = False
    """Use one inference in the manager's process for all workers."""
    kills: int = 0
    """The number of workers to kill in one more run of each backend that has processes."""
    stops: bool = False
    """Stop (SIGSTOP) some of them instead of killing them."""
    league: bool = False
    """Let the learner meet a league, which gets a snapshot after each round."""
    hidden_dim: int = 64

    def manager(self, backend: str, workers: int, **changes: Any) -> ParallelManager:
        config = ParallelConfig(
            backend=backend,
            address=self.address,
            num_workers=workers,
            tables=self.tables,
            games=self.games,
            horizon=SLAB_STEPS,
            inference="central" if self.central and self.network else "worker",
        )
        model = ModelConfig(hidden_dim=self.hidden_dim) if self.network else None
        league = self.assemble_league()
        return ParallelManager(
            EnvConfig(game=self.game),
            model,
            config.model_copy(update=changes),
            seed=self.seed,
            league=None if league is None else league.plan,
        )

    def assemble_league(self) -> Assembly | None:
        if not self.league:
            return None
        spec = EnvConfig(game=self.game).make(batch=1, seed=0).spec
        return assemble(QUICK_LEAGUE, spec, self.tables)


@dataclass(frozen=True, slots=True)
class Run:
    """One way to play the rounds, and its result."""

    name: str
    workers: str
    """The number of workers."""
    transitions: int
    seconds: float
    digests: tuple[str, ...]
    """The digest of each round."""
    toll: Toll | None = None
    restarts: int = 0

    @property
    def title(self) -> str:
        return f"{self.name} with {self.workers}"

    @property
    def digest(self) -> str:
        return hashlib.blake2b("".join(self.digests).encode(), digest_size=16).hexdigest()

    def first_difference(self, other: Run) -> int | None:
        """Finds the first round, counted from 1, in which two runs differ."""
        for number, (ours, theirs) in enumerate(zip(self.digests, other.digests, strict=False), 1):
            if ours != theirs:
                return number
        shorter = min(len(self.digests), len(other.digests))
        return None if len(self.digests) == len(other.digests) else shorter + 1


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """All runs. The first one is undisturbed, and the reference."""

    runs: tuple[Run, ...]

    @property
    def differences(self) -> dict[str, int]:
        """For each run, the first round that differs from the reference."""
        found = {run.title: run.first_difference(self.runs[0]) for run in self.runs[1:]}
        return {name: number for name, number in found.items() if number is not None}

    @property
    def same(self) -> bool:
        return not self.differences


Observer = Callable[[str, int, int], None]
"""Called with a run's name, its progress, and its length."""


def verify(settings: VerifySettings, observe: Observer = lambda name, done, total: None) -> VerifyReport:
    """Plays the same rounds with each number of workers in each backend, and once more while workers come and go.
    With kills, the disturbed runs come first, since their number of rounds is not known in advance; the others then
    play as many."""
    rounds, disturbed = settings.rounds, list[Run]()
    with torch_threads(1):
        if settings.kills:
            disturbed = _play_disturbed(settings, observe)
            rounds = len(disturbed[0].digests)
        runs = [
            _play(settings, backend, workers, rounds, observe)
            for backend in settings.backends
            for workers in settings.workers
        ]
        runs.append(_play_with_changing_crew(settings, rounds, observe))
    return VerifyReport((*runs, *disturbed))


def _rehearsal(settings: VerifySettings, backend: str, workers: int, **changes: Any) -> _Rehearsal:
    manager, league = settings.manager(backend, workers, **changes), settings.assemble_league()
    return _Rehearsal(manager, settings.seed, None if league is None else league.open(manager))


def _play(settings: VerifySettings, backend: str, workers: int, rounds: int, observe: Observer) -> Run:
    rehearsal = _rehearsal(settings, backend, workers)
    name = f"{backend}, {workers}"
    with rehearsal.manager:
        for done in range(rounds):
            observe(name, done, rounds)
            rehearsal.round()
    observe(name, rounds, rounds)
    return rehearsal.result(backend, str(workers))


def _play_with_changing_crew(settings: VerifySettings, rounds: int, observe: Observer) -> Run:
    """Plays in the last backend. A worker is added after a third of the rounds, and the first one is removed after
    two thirds."""
    name = "crew changes"
    rehearsal = _rehearsal(settings, settings.backends[-1], 2)
    manager = rehearsal.manager
    with manager:
        for done in range(rounds):
            observe(name, done, rounds)
            if done == rounds // 3:
                manager.add_workers()
            if done == 2 * rounds // 3:
                manager.remove_workers([0])
            rehearsal.round()
    observe(name, rounds, rounds)
    return rehearsal.result(name, "2, 3, 2")


def _play_disturbed(settings: VerifySettings, observe: Observer) -> list[Run]:
    """Plays until all kills are done and all workers have recovered, in each backend that has processes. The backends
    take turns, so that they play equally many rounds."""
    killable = [backend for backend in settings.backends if backend in KILLABLE]
    if not killable:
        raise ConfigError(
            f"only workers in processes can be killed: take one of the backends {', '.join(KILLABLE)}"
        )
    with ExitStack() as stack:
        runs = [stack.enter_context(_Disturbed(settings, backend)) for backend in killable]
        while any(run.goes_on for run in runs):
            for run in runs:
                run.round(observe)
        return [run.result() for run in runs]


class _Disturbed(AbstractContextManager["_Disturbed"]):
    """One run whose workers are killed."""

    def __init__(self, settings: VerifySettings, backend: str) -> None:
        self._settings, self._backend, self._workers = settings, backend, max(settings.workers)
        self._name = f"{backend}, disturbed"
        patience = HANG_SECONDS_ELSEWHERE if runs_elsewhere(backend) else HANG_SECONDS
        self._rehearsal = _rehearsal(settings, backend, self._workers, hang_timeout=patience)
        manager = self._rehearsal.manager
        self._disturber = Disturber(
            manager.workers,
            manager.tables,
            every=KILL_EVERY,
            stop_share=STOP_SHARE if settings.stops else 0.0,
            limit=settings.kills,
            seed=settings.seed,
        )
        self._stack = ExitStack()

    def __enter__(self) -> _Disturbed:
        manager = self._stack.enter_context(self._rehearsal.manager)
        handles = [worker.handle for worker in manager.workers if worker.handle is not None]
        if all(handle.process_id is None for handle in handles):
            self._stack.close()
            raise ConfigError("no worker runs on this machine, so none can be killed; verify without --kills")
        self._stack.enter_context(self._disturber)
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    @property
    def goes_on(self) -> bool:
        return len(self._rehearsal.digests) < self._settings.rounds or not self._disturber.at_rest

    def round(self, observe: Observer) -> None:
        self._rehearsal.round()
        kills = self._settings.kills
        observe(self._name, min(self._disturber.toll.strikes, kills), kills)

    def result(self) -> Run:
        restarts = self._rehearsal.manager.get_status().restarts
        return self._rehearsal.result(self._name, str(self._workers), self._disturber.toll, restarts)


class _Rehearsal:
    """Plays rounds with one manager, with new weights after each."""

    def __init__(self, manager: ParallelManager, seed: int, league: OpponentManager | None) -> None:
        self.manager = manager
        self._league = league
        self.digests: list[str] = []
        self._transitions = 0
        self._weights = PlannedWeights(manager.model, seed) if manager.model is not None else None
        self._began = time.monotonic()

    def round(self) -> None:
        if self._league is not None:
            counters = Counters(update=len(self.digests), transitions=self._transitions)
            self._league.prepare(counters, 0.0, self._behaviour)
        experiences = self.manager.collect_experiences()
        self.digests.append(experiences.digest())
        self._transitions += len(experiences)
        if self._league is not None:
            self._league.take(experiences)
        if self._weights is not None:
            self._weights.publish(self.manager)

    def _behaviour(self) -> Behaviour:
        assert self.manager.model is not None
        return Behaviour(self.manager.model)

    def result(self, name: str, workers: str, toll: Toll | None = None, restarts: int = 0) -> Run:
        seconds = time.monotonic() - self._began
        return Run(name, workers, self._transitions, seconds, tuple(self.digests), toll, restarts)


class PlannedWeights:
    """Weights of every version, known in advance: first those of a model, then with noise that depends only on seed
    and version."""

    FIRST_VERSION = 1
    NOISE = 0.1
    """The size of the noise, enough to change most games."""

    def __init__(self, model: ActorCritic, seed: int) -> None:
        self._first = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        self._seed = seed

    def of(self, version: int) -> dict[str, Tensor]:
        if version == self.FIRST_VERSION:
            return dict(self._first)
        generator = torch.Generator().manual_seed(keyed_word(self._seed, version) >> 1)
        return {name: self._with_noise(tensor, generator) for name, tensor in self._first.items()}

    def _with_noise(self, tensor: Tensor, generator: torch.Generator) -> Tensor:
        if not tensor.is_floating_point() or not tensor.numel():
            return tensor
        noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float32).to(tensor)
        return tensor + noise * (self.NOISE * tensor.abs().mean())

    def publish(self, manager: ParallelManager) -> int:
        """Publishes the weights of a manager's next version."""
        assert manager.model is not None
        manager.model.load_state_dict(self.of(manager.version + 1))
        return manager.sync_model_to_workers()


def slab_digest(item: CollectedSlab) -> str:
    """Computes a digest of one slab: every written byte, and its identity."""
    return Experiences((item,), item.record.version).digest()


class Reference:
    """The undisturbed tables, played in this thread. Each slab is played again from the table, epoch, sequence and
    weights of its record."""

    def __init__(self, manager: ParallelManager, weights: PlannedWeights) -> None:
        """``manager`` has the same settings as the one whose slabs are checked; it need not play."""
        self._weights = weights
        self._versions: OrderedDict[int, ModelSynchronizer] = OrderedDict()
        self._epochs: dict[int, int] = {}
        self._arena = manager.arena_for_one()
        first = self._at(PlannedWeights.FIRST_VERSION)
        self._worker = SelfPlayWorker(manager.plan(0), self._arena, first.reader(), manager)

    def digest(self, record: SlabRecord) -> str:
        """Computes the right digest of a slab. Slabs of a table must be asked for in their order."""
        begins = self._epochs.get(record.table) != record.epoch
        self._epochs[record.table] = record.epoch
        self._worker.weights = self._at(record.version).reader()
        order = Order(
            OrderKind.PLAY, record.table, record.epoch, record.sequence, record.version,
            start=Start.BEGIN if begins else Start.GO_ON,
        )  # fmt: skip
        played = self._worker.obey(order)
        assert played is not None
        first_game = self._worker.plan.first_game(record.table)
        return slab_digest(CollectedSlab(played, first_game, self._arena.slab(0)))

    def _at(self, version: int) -> ModelSynchronizer:
        if version not in self._versions:
            state: Mapping[str, Tensor] = self._weights.of(version)
            self._versions[version] = ModelSynchronizer(state, first_version=version)
            if len(self._versions) > KEPT_VERSIONS:
                self._versions.popitem(last=False)[1].close()
        return self._versions[version]

    def close(self) -> None:
        self._arena.close()
        for synchronizer in self._versions.values():
            synchronizer.close()
