"""The manager of parallel collection: starts workers, keeps them alive, and hands out what they play.

In synchronous mode every collection is a round: each worker plays the same number of slabs with the same
weights, and rests while the learner learns. In asynchronous mode workers play on, as far as their slabs
reach, and take the newest weights at every slab.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from torch import nn

from keisei.config import AnySettings, parse_settings
from keisei.errors import ParallelError, SharedMemoryError, WorkerStartError
from keisei.experience.collected import Experiences
from keisei.experience.schema import SlabShape, bytes_per_transition
from keisei.parallel.backends import make_backend
from keisei.parallel.communication import START_SECONDS, WorkerCommunicator
from keisei.parallel.config import EnvConfig, ParallelConfig
from keisei.parallel.crew import WORKING, Member, WorkerSnapshot, WorkerState, plan_worker
from keisei.parallel.gathering import Gathering
from keisei.parallel.inference import CentralInference
from keisei.parallel.messages import Question
from keisei.parallel.model_sync import Compression, ModelSynchronizer
from keisei.parallel.plan import WorkerMemory
from keisei.parallel.rounds import POLL_SECONDS, Collector
from keisei.parallel.scaling import LoadWatch, summed
from keisei.parallel.status import ManagerStatus, build_status
from keisei.parallel.supervision import Supervisor
from keisei.parallel.timeline import Timeline
from keisei.policies.networks import ActorCritic, ModelConfig, build_network

logger = logging.getLogger(__name__)

STOP_SECONDS = 2.0


class _Phase(Enum):
    NEW = "has not been started; call start_workers first"
    RUNNING = "is running"
    STOPPED = "has been stopped; make a new one"


class ParallelManager:
    """Plays games in many workers at once and collects their experience.

    Settings come typed or as plain dicts. ``model_config`` None plays at random. Use it as a context
    manager, or call ``stop_workers`` at the end: nothing is left behind, also after an error.
    """

    def __init__(
        self,
        env_config: EnvConfig | Mapping[str, Any],
        model_config: ModelConfig | Mapping[str, Any] | None,
        parallel_config: ParallelConfig | Mapping[str, Any],
        *,
        model: ActorCritic | None = None,
        first_version: int = 1,
    ) -> None:
        """``first_version`` numbers the first weights, so that a resumed run counts on."""
        self.env = _typed(EnvConfig, env_config, "env_config")
        self.config = _typed(ParallelConfig, parallel_config, "parallel_config")
        self.model_config = (
            None if model_config is None else _typed(ModelConfig, model_config, "model_config")
        )
        game = self.env.make(batch=1, seed=0, max_game_length=self.config.max_game_length)
        self.spec = game.spec
        self._shape = SlabShape.of(self.spec, self.config.slab_steps, self.config.games_per_worker)
        self.model = self._build_model(model)
        self.synchronizer = self._build_synchronizer(first_version)
        self.timeline = Timeline()
        self._inference: CentralInference | None = None
        if self.config.inference == "central" and self.model is not None:
            self._inference = CentralInference(
                self.model, self.version, game, self._shape.slots, self.config.workers
            )
        self._connect()
        self._load = LoadWatch(self.config)
        self._phase = _Phase.NEW
        self._next_worker = 0
        self._since_reset = 0
        self._started_at = 0.0
        self._policy_lag = 0.0

    def _build_model(self, model: ActorCritic | None) -> ActorCritic | None:
        if model is not None and self.model_config is None:
            raise ParallelError("a model was given without model_config, by which workers build theirs")
        if model is not None or self.model_config is None:
            return model
        return build_network(self.model_config, self.spec, self.config.seed)

    def _build_synchronizer(self, first_version: int) -> ModelSynchronizer | None:
        if self.model is None:
            return None
        compression: Compression = self.config.compression if self.config.compression_enabled else "none"
        return ModelSynchronizer(self.model, compression, first_version=first_version)

    def _connect(self) -> None:
        """All parts meet here."""
        config = self.config
        backend = make_backend(config.placement, config.start_method)
        self.communicator = WorkerCommunicator(backend, self, config.hang_timeout)
        self._members = self.communicator.members
        self._gathering = Gathering(
            self._members, verify=config.verify_checksums, hand_out_copies=not config.use_shared_memory
        )
        self.supervisor = Supervisor(
            self.communicator, self._gathering, self._inference, self.timeline, config.max_failures,
            newest_version=lambda: self.version,
        )  # fmt: skip
        self._collector = Collector(config, self.communicator, self._gathering, self.supervisor)

    # Life.

    def start_workers(self, snapshots: Sequence[WorkerSnapshot] = ()) -> None:
        """Start all workers; returns when every one is ready, or raises with the traceback of one that is not.

        With ``snapshots``, each worker goes on exactly where its snapshot was taken.
        """
        if self._phase is not _Phase.NEW:
            raise ParallelError(f"start_workers was called, but the manager {self._phase.value}")
        self._phase = _Phase.RUNNING
        self._started_at = time.monotonic()
        try:
            self._add(max(self.config.workers, len(snapshots)), snapshots)
        except BaseException:
            self.stop_workers()
            raise

    def stop_workers(self) -> None:
        """End all workers, at once where they do not end by themselves. Calling it again does nothing."""
        for member in self._members:
            if member.handle is not None:
                member.memory.control[1] = 1  # all of them begin to end, before any is waited for
        deadline = time.monotonic() + STOP_SECONDS
        for member in self._members:
            self.communicator.stop(member, max(0.1, deadline - time.monotonic()))
            if member.state is not WorkerState.QUARANTINED:
                member.state = WorkerState.STOPPED
        self._gathering.forget()
        for member in self._members:
            member.memory.close()
        if self._phase is _Phase.RUNNING:
            self._phase = _Phase.STOPPED

    def __enter__(self) -> Self:
        if self._phase is _Phase.NEW:
            self.start_workers()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_workers()

    def add_workers(self, count: int = 1) -> list[int]:
        """Start more workers while the others go on; gives their ids. Workers that were removed come back first,
        and go on with their games."""
        self._demand_running("add_workers")
        if count < 1:
            raise ParallelError(f"add_workers takes a number of at least 1, got {count}")
        return self._add(count)

    def remove_workers(self, workers: Iterable[int]) -> None:
        """Let workers finish the slabs they have begun, and end them. What they played is still handed out."""
        self._demand_running("remove_workers")
        leaving = [
            m for m in self._chosen(workers) if m.state not in (WorkerState.STOPPED, WorkerState.QUARANTINED)
        ]
        for member in leaving:
            member.state = WorkerState.DRAINING
        deadline = time.monotonic() + self.config.timeout
        while any(member.orders for member in leaving) and time.monotonic() < deadline:
            self.supervisor.pump(POLL_SECONDS)
        self._end(leaving)

    def _end(self, members: list[Member]) -> None:
        for member in members:
            if self.communicator.stop(member, STOP_SECONDS):
                member.state = WorkerState.STOPPED
            else:
                member.state = WorkerState.QUARANTINED  # its memory can't be given to another

    def _add(self, count: int, snapshots: Sequence[WorkerSnapshot] = ()) -> list[int]:
        """Places of workers that were removed are filled first, so that memory does not grow by and by."""
        members = [member for member in self._members if member.state is WorkerState.STOPPED][:count]
        members += [self._enrol() for _ in range(count - len(members))]
        for member in members:
            member.revive()
        for member, snapshot in zip(members, snapshots, strict=False):
            member.restore(snapshot)
        for member in members:
            self.communicator.start(member)
        try:
            self._await_ready(members)
        except BaseException:
            self._end(members)
            raise
        return [member.worker for member in members]

    def _await_ready(self, members: list[Member]) -> None:
        patience = max(self.config.timeout, START_SECONDS)
        deadline = time.monotonic() + patience
        while any(member.state is WorkerState.STARTING for member in members):
            self.supervisor.pump(POLL_SECONDS)
            broken = next((m for m in members if m.failures or m.state is WorkerState.QUARANTINED), None)
            if broken is not None:
                raise WorkerStartError(f"worker {broken.worker} could not be started:\n{broken.last_error}")
            if time.monotonic() > deadline:
                raise WorkerStartError(f"workers were not ready after {patience:g} s; raise parallel.timeout")

    def _enrol(self) -> Member:
        central = self._inference is not None
        plan = plan_worker(self._next_worker, self.env, self.model_config, self.config, central=central)
        self._next_worker += 1
        weights = self.synchronizer.reader() if self.synchronizer is not None else None
        member = Member(plan, WorkerMemory.allocate(self._shape, self.config.queue_maxsize, weights))
        self._members.append(member)
        return member

    # Weights.

    @property
    def version(self) -> int:
        """The newest version of the weights; 0 where there is no network."""
        return self.synchronizer.version if self.synchronizer is not None else 0

    def sync_model_to_workers(self, model: nn.Module | None = None, step: int | None = None) -> int:
        """Publish the weights of a model (the manager's own by default); workers take them at their next slab.

        With ``step``, only every ``model_sync_interval``-th step publishes. Gives the newest version.
        """
        if self.synchronizer is None:
            raise ParallelError("there is no model to synchronise: the manager was made without model_config")
        if step is not None and step % self.config.model_sync_interval:
            return self.version
        source = self.model if model is None else model
        assert source is not None
        version = self.synchronizer.publish(source)
        if self._inference is not None:
            self._inference.take(source, version)
        return version

    # Control.

    def pause_workers(self, workers: Iterable[int] | None = None) -> None:
        """Give these workers (all by default) no new slabs; they rest when the ones they have are played."""
        self._demand_running("pause_workers")
        for member in self._chosen(workers):
            if member.state in WORKING:
                member.state = WorkerState.PAUSED

    def resume_workers(self, workers: Iterable[int] | None = None) -> None:
        """Let paused workers go on where they were."""
        self._demand_running("resume_workers")
        for member in self._chosen(workers):
            if member.state is WorkerState.PAUSED:
                back = WorkerState.RUNNING if member.ready else WorkerState.STARTING
                member.state = WorkerState.FAILED if member.handle is None else back

    def reset_workers(self, workers: Iterable[int] | None = None) -> None:
        """Start all games of these workers anew, from other random numbers. Played slabs are still handed out."""
        self._demand_running("reset_workers")
        for member in self._chosen(workers):
            if member.state in WORKING or member.state is WorkerState.PAUSED:
                self.communicator.send(member, member.order_reset())
        self.supervisor.pump(0)  # read what they say, so that pipes stay empty however often this is called
        self._since_reset = 0

    def snapshot(self) -> list[WorkerSnapshot]:
        """The games of all workers, for ``start_workers``.

        Synchronous: as they are between two collections; a resumed run gives the same bits. Asynchronous: as each
        worker last handed them in, while it plays on. A resumed run plays again what the worker had in hand, resets
        excepted; what has arrived, but was not handed out by ``collect_experiences``, is lost to learning.
        """
        self._demand_running("snapshot")
        if self.config.mode == "sync" and any(member.orders for member in self._members):
            raise ParallelError(
                "a snapshot is taken between two synchronous collections; workers are still playing"
            )
        return [member.snapshot() for member in self._members if member.state is not WorkerState.STOPPED]

    def get_status(self) -> ManagerStatus:
        """States, rates, queues, lag, memory, restarts, drops and errors, as of now."""
        return build_status(
            self._members,
            running=self._phase is _Phase.RUNNING,
            version=self.version,
            policy_lag=self._policy_lag,
            transitions=self._gathering.transitions,
            seconds=time.monotonic() - self._started_at if self._started_at else 0.0,
            drops=self._gathering.drops,
        )

    @property
    def bytes_per_transition(self) -> float:
        """What a transition costs on its way to the learner."""
        return bytes_per_transition(self._shape)

    def export_trace(self, path: str | Path) -> None:
        """Write who did what when, for chrome://tracing or ui.perfetto.dev."""
        self.timeline.export(path)

    # Collecting.

    def collect_experiences(
        self, target_steps: int | None = None, timeout: float | None = None
    ) -> Experiences:
        """At least ``target_steps`` transitions (by default one slab of each worker).

        Synchronous: one round of all workers; raises ``CollectTimeoutError`` where no worker makes a step for
        ``timeout`` seconds. Asynchronous: what there is after ``timeout`` seconds, be it nothing. Gives the
        slabs of the collection before back to the workers: its arrays are then no longer valid.
        """
        self._demand_running("collect_experiences")
        if target_steps is not None and target_steps < 1:
            raise ParallelError(
                f"target_steps is at least 1, or None for a slab of each worker; got {target_steps}"
            )
        self._gathering.release()
        if self.config.worker_reset_interval and self._since_reset >= self.config.worker_reset_interval:
            self.reset_workers()
        began = time.monotonic()
        patience = self.config.timeout if timeout is None else timeout
        experiences = self._collect(target_steps, patience)
        self._policy_lag = experiences.policy_lag
        self._since_reset += len(experiences)
        waited = time.monotonic() - began
        self.timeline.span("learner", "collect", began, waited)
        self._load.learner_waited(waited)
        self._rescale()
        return experiences

    def _collect(self, target: int | None, patience: float) -> Experiences:
        if self.config.mode == "sync":
            self._collector.round(target, self.version, patience)
            return self._gathering.hand_out(self.version, None)
        lag = self.config.max_policy_lag
        self._collector.stream(target, patience, oldest=0 if lag is None else self.version - lag)
        return self._gathering.hand_out(self.version, target)

    def release_experiences(self) -> None:
        """Give the slabs of the last collection back before the next one: for a learner that has copied what it needs.
        The arrays of that collection are then no longer valid.

        Asynchronous workers play on in these slabs while the learner learns; inline ones, which have no time of their
        own, do so in the next collection. Synchronous ones rest. Calling it again does nothing.
        """
        self._demand_running("release_experiences")
        self._gathering.release()
        if self.config.mode == "async":
            self._collector.play_on()

    def _rescale(self) -> None:
        working = [member for member in self._members if member.state in WORKING]
        advice = self._load.advice(len(working), summed([member.tally for member in self._members]))
        if advice > 0:
            self._add_by_load(advice)
        elif advice < 0:
            self.remove_workers([working[-1].worker])
        if advice:
            logger.info("%d workers by load", len(working) + advice)

    def _add_by_load(self, count: int) -> None:
        """A worker that cannot be had must not cost the caller the experience that has just been collected."""
        try:
            self.add_workers(count)
        except (WorkerStartError, SharedMemoryError) as error:
            logger.error("no worker could be added by load: %s", str(error))

    def ask(self, question: Question) -> None:
        """Answer a worker that runs inline, in the middle of its step."""
        asking = next(member for member in self._members if member.orders and member.handle is not None)
        assert self._inference is not None
        self._inference.decide({asking.worker: (asking, question)})

    # Guards.

    def _demand_running(self, call: str) -> None:
        if self._phase is not _Phase.RUNNING:
            raise ParallelError(f"{call} was called, but the manager {self._phase.value}")

    def _chosen(self, workers: Iterable[int] | None) -> list[Member]:
        if workers is None:
            return [member for member in self._members if member.state is not WorkerState.STOPPED]
        by_id = {member.worker: member for member in self._members}
        wanted = list(workers)
        unknown = [worker for worker in wanted if worker not in by_id]
        if unknown:
            raise ParallelError(f"there is no worker {unknown[0]}; the workers are {sorted(by_id)}")
        return [by_id[worker] for worker in wanted]


def _typed(kind: type[AnySettings], given: AnySettings | Mapping[str, Any], where: str) -> AnySettings:
    return given if isinstance(given, kind) else parse_settings(kind, given, where)  # type: ignore[arg-type]
