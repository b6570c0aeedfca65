"""Workers as actors of a Ray cluster: on this machine, or on hundreds."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from keisei.errors import ClusterError, ConfigError
from keisei.machine.cores import usable_cores
from keisei.parallel.arena import Arena
from keisei.parallel.backends.cluster.actor import actor_class
from keisei.parallel.backends.cluster.connection import Connection
from keisei.parallel.backends.cluster.handle import RayHandle
from keisei.parallel.backends.cluster.late import Late
from keisei.parallel.backends.cluster.nodes import alive_nodes, demand_of, demand_places, in_words, places
from keisei.parallel.backends.cluster.parcels import Briefing
from keisei.parallel.backends.cluster.supplies import Supplies
from keisei.parallel.backends.contract import WorkerHandle
from keisei.parallel.config import ParallelConfig
from keisei.parallel.messages import Manager
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.weights.model_sync import WeightReader

PULSE_SECONDS = 1.0
"""The longest time between two heartbeats of an actor."""
PULSES_BEFORE_HUNG = 4
"""How many heartbeats fit into ``hang_timeout``, at least."""


class RayBackend:
    """Starts actors. It connects to the cluster when the first one starts."""

    name = "ray"

    def __init__(
        self, arena: Arena, weights: WeightReader | None = None, config: ParallelConfig | None = None
    ) -> None:
        self._arena, self._weights = arena, weights
        self._config = ParallelConfig(backend="ray") if config is None else config
        self._demand = demand_of(self._config.worker_cpus, self._config.worker_gpus)
        self._pulse_seconds = min(PULSE_SECONDS, self._config.hang_timeout / PULSES_BEFORE_HUNG)
        self._cluster: _Cluster | None = None

    def start(self, plan: WorkerPlan, manager: Manager) -> RayHandle:
        _refuse_main(plan)
        cluster = self._connected()
        ray = cluster.connection.ray
        options = {"num_cpus": self._config.worker_cpus, "num_gpus": self._config.worker_gpus}
        actor = actor_class(ray).options(**options).remote()
        return RayHandle(
            ray, actor, plan, self._briefing(plan), self._arena, cluster.supplies, manager, cluster.late,
            self._pulse_seconds, in_words(self._demand),
        )  # fmt: skip

    def wait(self, handles: Sequence[WorkerHandle], timeout: float) -> None:
        """Waits for the first call that is done, and then looks at all."""
        ours = [handle for handle in handles if isinstance(handle, RayHandle)]
        refs = [ref for handle in ours for ref in handle.refs]
        if not refs or self._cluster is None:
            time.sleep(0 if any(handle.has_news for handle in ours) else timeout)
            return
        ray = self._cluster.connection.ray
        news = any(handle.has_news for handle in ours)
        ready, _ = ray.wait(refs, num_returns=1, timeout=0 if news else timeout)
        if ready:
            ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        found = set(ready)
        for handle in ours:
            handle.look(found)
        self._cluster.late.look()

    def places(self) -> int:
        return places(alive_nodes(self._connected().connection.ray), self._demand)

    @property
    def repeated(self) -> int:
        return 0 if self._cluster is None else self._cluster.late.repeated

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.supplies.clear()
            self._cluster.late.refs.clear()
            self._cluster.connection.close()

    def _connected(self) -> _Cluster:
        if self._cluster is None:
            config = self._config
            workers = usable_cores() if config.num_workers == "auto" else config.num_workers
            cpus = max(usable_cores(), math.ceil(workers * config.worker_cpus))
            connection = Connection(config.address, cpus)
            try:
                demand_places(alive_nodes(connection.ray), self._demand)
            except ClusterError:
                connection.close()
                raise
            supplies = Supplies(connection.ray, self._weights, self._arena.shelf)
            self._cluster = _Cluster(connection, supplies, Late(connection.ray))
        return self._cluster

    def _briefing(self, plan: WorkerPlan) -> Briefing:
        weights, shelf = self._weights, self._arena.shelf
        return Briefing(
            plan.model_dump_json(),
            self._arena.size,
            None if weights is None else (weights.layout, weights.compression, weights.players),
            None if shelf is None else shelf.kinds,
            self._config.compress_slabs,
            tuple(str(Path(entry or ".").resolve()) for entry in sys.path),
        )


class _Cluster:
    """What the backend holds while it is connected."""

    def __init__(self, connection: Connection, supplies: Supplies, late: Late) -> None:
        self.connection, self.supplies, self.late = connection, supplies, late


def _refuse_main(plan: WorkerPlan) -> None:
    names = [plan.env.game, plan.model.network if plan.model is not None else ""]
    for name in names:
        if name.startswith("__main__:"):
            raise ConfigError(
                f"{name} is defined in the program's main module, which other machines cannot import; move it into a "
                f"module that is installed on every node"
            )
