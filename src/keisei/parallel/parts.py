"""Builds and connects the parts of collection."""

from __future__ import annotations

from dataclasses import dataclass

from keisei.errors import ParallelError
from keisei.experience.schema import SlabShape
from keisei.games.contract import Game
from keisei.parallel.arena import Arena, ArenaSize, demand_memory
from keisei.parallel.backends import make_backend
from keisei.parallel.backends.contract import Backend
from keisei.parallel.communication import WorkerCommunicator
from keisei.parallel.config import ParallelConfig
from keisei.parallel.crew import Crew
from keisei.parallel.dealer import Dealer
from keisei.parallel.deliveries import Deliveries
from keisei.parallel.inference import CentralInference
from keisei.parallel.lineups import Lineups
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.rounds import Collector
from keisei.parallel.status import queue_info
from keisei.parallel.stock import Stock
from keisei.parallel.supervision import Supervisor
from keisei.parallel.tables import Table, TableSnapshot
from keisei.parallel.timeline import Timeline
from keisei.parallel.weights.model_sync import ModelSynchronizer
from keisei.parallel.weights.shelf import PlaceKind, Shelf
from keisei.parallel.worker.self_play_worker import Manager
from keisei.policies.networks import ActorCritic


@dataclass(frozen=True)
class PlayParts:
    """The parts that a manager works with."""

    arena: Arena
    stock: Stock
    tables: list[Table]
    backend: Backend
    communicator: WorkerCommunicator
    deliveries: Deliveries
    inference: CentralInference | None
    supervisor: Supervisor
    crew: Crew
    collector: Collector
    lineups: Lineups | None

    @classmethod
    def of(
        cls,
        config: ParallelConfig,
        plan: WorkerPlan,
        game: Game,
        manager: Manager,
        model: ActorCritic | None,
        weights: ModelSynchronizer | None,
        timeline: Timeline,
        leased_slabs: int,
    ) -> PlayParts:
        """Makes all parts and connects them."""
        count = config.table_count
        slabs = count * config.queue_maxsize + leased_slabs
        # A hung thread keeps its slabs, because it cannot be ended. A process can be ended.
        reserve = count * config.queue_maxsize if config.backend == "thread" else 0
        shape = SlabShape.of(game.spec, config.horizon, config.games)
        # In synchronous mode, each table uses one slab at a time.
        in_use = leased_slabs + count * (config.queue_maxsize if config.mode == "async" else 1)
        demand_memory(shape, in_use)
        shelf = _shelf(plan, game)
        arena = Arena(ArenaSize.of(shape, slabs + reserve, Stock.slots(slabs, reserve, count)), shelf)
        if leased_slabs:
            arena.reserve(in_use)  # slabs that are given back are the first to be used again
        stock = Stock(slabs, reserve, count)
        tables = [Table(number, config.games, plan.seed) for number in range(count)]
        deliveries = Deliveries(
            arena, stock, verify=config.verify_checksums, hand_out_copies=not config.use_shared_memory
        )
        backend = make_backend(config.backend, arena, None if weights is None else weights.reader(), config)
        communicator = WorkerCommunicator(
            backend,
            manager,
            lambda worker: plan.model_copy(update={"worker": worker}),
            lambda: queue_info(tables, stock, deliveries),
            config.hang_timeout,
        )
        inference = None
        if plan.central and model is not None and weights is not None:
            inference = CentralInference(model, weights.version, game, plan, arena, config.inference_places)
        supervisor = Supervisor(
            tables, arena, stock, communicator, deliveries, inference, timeline, config.max_failures
        )
        crew = Crew(config, tables, backend, communicator, supervisor)
        dealer = Dealer(tables, communicator, lambda: 0 if weights is None else weights.version)
        collector = Collector(
            config, shape.transitions, tables, communicator.workers, stock, deliveries, dealer, supervisor
        )
        lineups = None
        if shelf is not None and plan.league is not None and plan.model is not None:
            lineups = Lineups(tables, arena, shelf, plan.league, plan.model)
        return cls(
            arena=arena,
            stock=stock,
            tables=tables,
            backend=backend,
            communicator=communicator,
            deliveries=deliveries,
            inference=inference,
            supervisor=supervisor,
            crew=crew,
            collector=collector,
            lineups=lineups,
        )

    def queue_info(self) -> dict[str, int]:
        return queue_info(self.tables, self.stock, self.deliveries)

    def restore(self, snapshot: TableSnapshot) -> None:
        """Lets a table continue from a snapshot. Call it before anything is ordered."""
        if not 0 <= snapshot.table < len(self.tables):
            raise ParallelError(
                f"a snapshot is of table {snapshot.table}, and there are {len(self.tables)} tables; "
                f"start with the tables that the snapshots were taken from"
            )
        self.tables[snapshot.table].restore(snapshot, self.arena, self.stock)

    def close(self) -> None:
        self.deliveries.forget()
        self.backend.close()
        self.arena.close()


def _shelf(plan: WorkerPlan, game: Game) -> Shelf | None:
    """Makes the shelf for the weights of the league."""
    if plan.league is None or plan.model is None:
        return None
    own = PlaceKind.of(plan.model, game.spec, plan.league.snapshots)
    return Shelf([own, *(PlaceKind.of(model, game.spec, 1) for model in plan.league.networks)])
