"""A Ray cluster for tests: several nodes on this machine, started and ended by the tests."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from games_for_tests import is_running, manager_of

from keisei.parallel import ParallelManager
from keisei.parallel.backends.cluster.connection import import_ray

STORE_BYTES = 100 << 20


@contextmanager
def a_cluster(cpus: int = 3) -> Iterator[Any]:
    """One node, to which this process is connected. More can be added."""
    os.environ.setdefault("RAY_AUTH_TOKEN", "0123456789abcdef" * 4)
    ray = import_ray()
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": cpus,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
        },
    )
    ray.init(cluster.address, log_to_driver=False, logging_level="error")
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def ray_manager(game: str = "tictactoe", **settings: Any) -> ParallelManager:
    return manager_of(game, "ray", **settings)


def actor_processes() -> list[int]:
    """Processes of actors on this machine."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except OSError:
            continue
        if b"ray::PlayingActor" in command:
            found.append(int(entry.parent.name))
    return [pid for pid in found if is_running(pid)]


def play_until(manager: ParallelManager, holds: Any, seconds: float = 90.0) -> bool:
    """Collects until something holds. The time is only there to end a test that fails."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        manager.collect_experiences(timeout=60)
    return bool(holds())
