"""The manager of parallel collection: runs workers, and hands out the experience that they collect.

Games belong to tables, and workers play the tables. In synchronous mode, every collection is a round: all tables are
played equally far with the same weights, and workers rest during the update. In asynchronous mode, workers play on
while they have free slabs, and take the newest weights at every slab.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from torch import nn

from keisei.config import parse_settings
from keisei.errors import ParallelError
from keisei.experience.collected import Experiences, Lease, LentSlab
from keisei.experience.schema import SlabShape, bytes_per_transition
from keisei.games.contract import Game
from keisei.games.env_config import EnvConfig
from keisei.games.registry import portable_name
from keisei.parallel.arena import Arena, ArenaSize
from keisei.parallel.backends import make_backend
from keisei.parallel.collector import Collector
from keisei.parallel.communication import WorkerCommunicator
from keisei.parallel.config import ParallelConfig
from keisei.parallel.crew import Crew
from keisei.parallel.dealer import Dealer
from keisei.parallel.deliveries import Deliveries, Stock
from keisei.parallel.document_names import read_settings
from keisei.parallel.inference import CentralInference
from keisei.parallel.lineups import Lineups
from keisei.parallel.messages import Question, StatePiece
from keisei.parallel.plan import LeaguePlan, WorkerPlan
from keisei.parallel.status import ManagerStatus, active, queue_info, worker_statuses
from keisei.parallel.supervision import Supervisor
from keisei.parallel.tables import Table, TableSnapshot
from keisei.parallel.timeline import Timeline
from keisei.parallel.weights.model_sync import Compression, ModelSynchronizer
from keisei.parallel.weights.shelf import Shelf
from keisei.parallel.workers import Worker
from keisei.policies.agents_network import AgentsNetwork, AgentsPlan
from keisei.policies.behaviour import Behaviour, Play, PlaySettings
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import ActorCritic, build_network


class _Phase(Enum):
    NEW = "has not been started; call start_workers first"
    RUNNING = "is running"
    STOPPED = "has been stopped; make a new one"


class ParallelManager:
    """Plays tables of games with many workers at once and collects their experience.

    Settings are typed or plain dicts. If ``model_config`` is None, workers play at random. Use it as a context
    manager, or call ``stop_workers`` at the end. Nothing is left behind, even after an error.
    """

    def __init__(
        self,
        env_config: EnvConfig | Mapping[str, Any],
        model_config: ModelConfig | Mapping[str, Any] | None,
        parallel_config: ParallelConfig | Mapping[str, Any],
        *,
        model: ActorCritic | None = None,
        seed: int = 0,
        first_version: int = 1,
        first_settings: Play | None = None,
        leased_slabs: int = 0,
        league: LeaguePlan | None = None,
        agents: AgentsPlan | None = None,
    ) -> None:
        """``first_version`` is the number of the first weights, so that a resumed run continues to count.
        ``first_settings`` say how freely they are played, by default as ``parallel_config`` says. ``leased_slabs``
        are extra slabs for buffers that keep slabs. With a ``league``, ``lineups`` seats its members. ``agents`` are
        the networks of independent agents, which ``model`` then holds."""
        self.env, self.config, self.seed = read_settings(env_config, parallel_config, seed)
        if model_config is not None and not isinstance(model_config, ModelConfig):
            model_config = parse_settings(ModelConfig, model_config, "model_config")
        game = self.env.make(batch=1, seed=0)
        self.spec = game.spec
        self.model_config = None if model_config is None else model_config.resolved(self.spec)
        if league is not None and self.model_config is None:
            raise ParallelError("a league is for a learner with a network: give model_config too")
        if agents is not None and not isinstance(model, AgentsNetwork):
            raise ParallelError("independent agents play with an AgentsNetwork: give it as model too")
        self._league, self._agents = league, agents
        self.model = self._build_model(model)
        settings = self._play_settings if first_settings is None else first_settings
        self.synchronizer = self._build_synchronizer(first_version, settings)
        self.timeline = Timeline()
        self._phase = _Phase.NEW
        self.since_reset = 0
        """Transitions since all games were last reset (``worker_reset_interval``)."""
        self._started_at = 0.0
        self._policy_lag = 0.0
        self._connect(game, leased_slabs)
        if self.inference is not None and self.model is not None:
            self.inference.take(self.model, first_version, settings)

    def _connect(self, game: Game, leased_slabs: int) -> None:
        """Makes the parts of collection and connects them."""
        config, plan, weights = self.config, self.plan(0), self.synchronizer
        self.tables = [Table(number, config.games, self.seed) for number in range(config.table_count)]
        self.stock = Stock(config, leased_slabs)
        shelf = Shelf.of(self._league, self.model_config, self.spec)
        self.arena = self.stock.arena(SlabShape.of(self.spec, config.horizon, config.games), shelf)
        self.deliveries = Deliveries(
            self.arena,
            self.stock,
            verify=config.verify_checksums,
            hand_out_copies=not config.use_shared_memory,
        )
        reader = None if weights is None else weights.reader()
        self.backend = make_backend(config.backend, self.arena, reader, config)
        self.communicator = WorkerCommunicator(
            self.backend, self, self.plan,
            lambda: queue_info(self.tables, self.stock, self.deliveries), config.hang_timeout,
        )  # fmt: skip
        self.inference = None
        if plan.central and self.model is not None:
            self.inference = CentralInference(
                self.model, self.version, game, plan, self.arena, config.inference_places
            )
        self.supervisor = Supervisor(
            self.tables, self.arena, self.stock, self.communicator, self.deliveries, self.inference,
            self.timeline, config.max_failures,
        )  # fmt: skip
        self.crew = Crew(config, self.tables, self.backend, self.communicator, self.supervisor)
        self.collector = Collector(
            config, self.slab_transitions, self.tables, self.communicator, self.stock, self.deliveries,
            Dealer(self.tables, self.communicator.workers, lambda: self.version), self.supervisor,
        )  # fmt: skip
        self.lineups: Lineups | None = None
        """The members of the league that each table meets; None without a league."""
        if shelf is not None and self._league is not None and self.model_config is not None:
            self.lineups = Lineups(self.tables, self.arena, shelf, self._league, self.model_config)

    def _build_model(self, model: ActorCritic | None) -> ActorCritic | None:
        if model is not None and self.model_config is None:
            raise ParallelError("a model was given without model_config, by which workers build theirs")
        if model is not None or self.model_config is None:
            return model
        return build_network(self.model_config, self.spec, self.seed)

    def _build_synchronizer(self, first_version: int, settings: Play) -> ModelSynchronizer | None:
        if self.model is None:
            return None
        compression: Compression = self.config.compression if self.config.compression_enabled else "none"
        return ModelSynchronizer(self.model, compression, first_version=first_version, settings=settings)

    def plan(self, worker: int) -> WorkerPlan:
        """Gets the settings that a worker gets when it starts."""
        # Other processes do not have the games that this program has registered by name.
        here = self.config.backend in ("inline", "thread")
        env = self.env if here else self.env.model_copy(update={"game": portable_name(self.env.game)})
        return WorkerPlan.of(
            worker, env, self.model_config, self.config, self.seed, self._league, self._agents
        )

    @property
    def _play_settings(self) -> Play:
        players = 1 if self._agents is None else len(self._agents.models)
        return (PlaySettings(self.config.temperature, self.config.epsilon),) * players

    def arena_for_one(self) -> Arena:
        """Makes separate memory for one more worker that plays the same tables, one slab at a time."""
        return Arena(ArenaSize.of(self.arena.size.shape, slabs=1, slots=1))

    @property
    def workers(self) -> Sequence[Worker]:
        return self.crew.workers

    # Start and stop.

    def start_workers(self, snapshots: Sequence[TableSnapshot] = (), since_reset: int = 0) -> None:
        """Starts all workers. Returns when every worker is ready, or raises the error of one that failed.

        With ``snapshots``, each table continues exactly from its snapshot, with any number of workers. ``since_reset``
        is what the manager that took them had then.
        """
        if self._phase is not _Phase.NEW:
            raise ParallelError(f"start_workers was called, but the manager {self._phase.value}")
        for snapshot in snapshots:
            if not 0 <= snapshot.table < len(self.tables):
                raise ParallelError(
                    f"a snapshot is of table {snapshot.table}, and there are {len(self.tables)} tables; "
                    f"start with the tables that the snapshots were taken from"
                )
            self.tables[snapshot.table].restore(snapshot, self.arena, self.stock)
        self.since_reset = since_reset
        if self.lineups is not None:
            self.lineups.demand_all()
        self._phase = _Phase.RUNNING
        self._started_at = time.monotonic()
        try:
            self.crew.start()
        except BaseException:
            self.stop_workers()
            raise

    def stop_workers(self) -> None:
        """Ends all workers. Those that do not end by themselves are killed. Calling it again does nothing."""
        self.crew.stop()
        self.deliveries.forget()
        self.backend.close()
        self.arena.close()
        if self.synchronizer is not None and self._phase is not _Phase.STOPPED:
            self._last_version = self.synchronizer.version
            self.synchronizer.close()
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
        """Starts more workers while the others play on, and returns their numbers. Numbers of removed workers are used
        first. The tables stay the same; more workers play them."""
        self._demand_running("add_workers")
        if count < 1:
            raise ParallelError(f"add_workers takes a number of at least 1, got {count}")
        return self.crew.add(count)

    def remove_workers(self, workers: Iterable[int]) -> None:
        """Lets workers finish the slabs that they have begun, and ends them. Other workers take over their tables."""
        self._demand_running("remove_workers")
        self.crew.remove(workers)

    # Weights.

    @property
    def version(self) -> int:
        """The newest version of the weights; 0 if there is no network."""
        if self.synchronizer is None:
            return 0
        return self._last_version if self._phase is _Phase.STOPPED else self.synchronizer.version

    def sync_model_to_workers(self, model: nn.Module | None = None, step: int | None = None) -> int:
        """Publishes the weights of a model (by default the manager's own). Workers take them at their next slab.

        With ``step``, only every ``model_sync_interval``-th step publishes. Returns the newest version.
        """
        if self.model is None:
            raise ParallelError("there is no model to synchronise: the manager was made without model_config")
        if step is not None and step % self.config.model_sync_interval:
            return self.version
        return self._publish(self.model if model is None else model, self._play_settings)

    def publish(self, behaviour: Behaviour) -> int:
        """Publishes a behaviour that workers use from their next slab on. Returns its version."""
        return self._publish(behaviour.network, behaviour.settings)

    def _publish(self, network: nn.Module, settings: Play) -> int:
        if self.synchronizer is None:
            raise ParallelError("there is no network to publish: the manager was made without model_config")
        version = self.synchronizer.publish(network, settings)
        if self.inference is not None:
            self.inference.take(network, version, settings)
        return version

    # Control.

    def pause_workers(self, workers: Iterable[int] | None = None) -> None:
        """Sends these workers (by default all) no new orders. The other workers play their tables."""
        self._demand_running("pause_workers")
        for worker in self.crew.chosen(workers):
            worker.pause()

    def resume_workers(self, workers: Iterable[int] | None = None) -> None:
        """Lets paused workers play again."""
        self._demand_running("resume_workers")
        for worker in self.crew.chosen(workers):
            worker.resume()

    def reset_workers(self, tables: Iterable[int] | None = None) -> None:
        """Starts new games at these tables (by default all), with other random numbers."""
        self._demand_running("reset_workers")
        known = range(len(self.tables))
        wanted = list(known if tables is None else tables)
        unknown = [number for number in wanted if number not in known]
        if unknown:
            raise ParallelError(f"there is no table {unknown[0]}; the tables are 0 … {len(known) - 1}")
        for number in wanted:
            self.tables[number].reset()
        if tables is None:
            self.since_reset = 0

    def snapshot(self) -> list[TableSnapshot]:
        """Gets the games of all tables, for ``start_workers``.

        Synchronous: the games between two collections. A resumed run gives the same bits. Asynchronous: the games
        after the last slab that each table handed in, while workers play on. A resumed run plays unfinished slabs
        again, but without resets that were called meanwhile. Slabs that have arrived, but that
        ``collect_experiences`` has not handed out, are not learned from.
        """
        self._demand_running("snapshot")
        if self.config.mode == "sync" and any(table.orders for table in self.tables):
            raise ParallelError(
                "a snapshot is taken between two synchronous collections; workers are still playing"
            )
        return [table.snapshot(self.arena) for table in self.tables]

    def get_status(self) -> ManagerStatus:
        """Gets current states, rates, queues, lag, memory, restarts, drops and errors."""
        workers = worker_statuses(self.workers, self.tables)
        running = self._phase is _Phase.RUNNING
        errors = [worker.last_error for worker in workers if worker.last_error]
        seconds = time.monotonic() - self._started_at if self._started_at else 0.0
        return ManagerStatus(
            running=running,
            active_workers=active(self.workers) if running else 0,
            workers=workers,
            tables=len(self.tables),
            queue_info=self.communicator.get_queue_info(),
            version=self.version,
            policy_lag=self._policy_lag,
            transitions=self.deliveries.transitions,
            transitions_per_second=self.deliveries.transitions / seconds if seconds > 0 else 0.0,
            restarts=sum(worker.restarts for worker in workers),
            drops=replace(self.deliveries.drops, repeated=self.backend.repeated),
            last_error=errors[-1] if errors else "",
        )

    def waiting_opponents(self) -> set[int]:
        """Lists the opponents that the learner met in games of slabs that have arrived and were not handed out yet."""
        return self.deliveries.opponents()

    @property
    def slab_transitions(self) -> int:
        """How many transitions a whole slab holds."""
        return self.arena.size.shape.transitions

    @property
    def bytes_per_transition(self) -> float:
        """How many bytes a transition takes on its way to the learner."""
        return bytes_per_transition(self.arena.size.shape)

    def export_trace(self, path: str | Path) -> None:
        """Writes a trace of workers and learner, for chrome://tracing or ui.perfetto.dev."""
        self.timeline.export(path)

    # Collecting.

    def collect_experiences(
        self, target_steps: int | None = None, timeout: float | None = None
    ) -> Experiences:
        """Collects at least ``target_steps`` transitions (by default one slab of each table).

        Synchronous: plays one round of all tables. Raises ``CollectTimeoutError`` if no worker makes a step for
        ``timeout`` seconds. Asynchronous: gives what has arrived after ``timeout`` seconds, which may be nothing. The
        slabs of the previous collection are given back to the workers, so its arrays are no longer valid.
        """
        self._demand_running("collect_experiences")
        if target_steps is not None and target_steps < 1:
            raise ParallelError(
                f"target_steps is at least 1, or None for a slab of each table; got {target_steps}"
            )
        self.deliveries.release()
        if self.config.worker_reset_interval and self.since_reset >= self.config.worker_reset_interval:
            self.reset_workers()
        self.crew.grow()
        began = time.monotonic()
        patience = self.config.timeout if timeout is None else timeout
        if self.config.mode == "sync":
            self.collector.round(target_steps, self.version, patience)
        else:
            lag = self.config.max_policy_lag
            self.collector.stream(target_steps, patience, oldest=0 if lag is None else self.version - lag)
        experiences = self.deliveries.hand_out(
            self.version, None if self.config.mode == "sync" else target_steps
        )
        self._policy_lag = experiences.policy_lag
        self.since_reset += len(experiences)
        waited = time.monotonic() - began
        self.timeline.span("learner", "collect", began, waited)
        self.crew.rescale(waited)
        return experiences

    def release_experiences(self, keep: Collection[Lease] = ()) -> None:
        """Returns the slabs of the last collection before the next one. Call it when the learner has copied what it
        needs, or keeps some slabs under a lease. The arrays of the other slabs are then no longer valid.

        Asynchronous workers play on in these slabs during the update. Inline workers have no thread of their own, so
        they play on in the next collection. Synchronous workers rest. Calling it again does nothing.
        """
        self._demand_running("release_experiences")
        self.deliveries.release(keep)
        if self.config.mode == "async":
            self.collector.play_on()

    def lend_slabs(self, count: int) -> Sequence[LentSlab]:
        """Lends empty slabs to a buffer that restores what it had kept."""
        return self.deliveries.lend(count)

    def end_leases(self, leases: Iterable[Lease]) -> None:
        """Takes back slabs that a buffer no longer needs."""
        self._demand_running("end_leases")
        self.deliveries.end_leases(leases)

    # Requests of inline workers.

    def ask(self, question: Question) -> None:
        assert self.inference is not None
        self.inference.decide_now(question, self.tables[question.table].orders[0].epoch)

    def fetch_state(self, table: int) -> bytes:
        saved = self.tables[table].saved
        return b"" if saved is None else saved.state

    def deliver_piece(self, piece: StatePiece) -> None:
        self.tables[piece.table].take_piece(piece.content, piece.is_first)

    # Checks.

    def _demand_running(self, call: str) -> None:
        if self._phase is not _Phase.RUNNING:
            raise ParallelError(f"{call} was called, but the manager {self._phase.value}")
