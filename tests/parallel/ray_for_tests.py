"""A Ray cluster for tests: several nodes on this machine, started and ended by the tests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from games_for_tests import children_of, is_running, manager_of

import keisei
from keisei.games.contract import Array, Step
from keisei.parallel import ParallelManager
from keisei.parallel.backends.cluster.connection import import_ray, on_loopback

STORE_BYTES = 100 << 20


@contextmanager
def a_cluster(cpus: int = 3) -> Iterator[Any]:
    """One node, to which this process is connected. More can be added."""
    os.environ.setdefault("RAY_AUTH_TOKEN", "0123456789abcdef" * 4)
    ray = import_ray()
    from ray.cluster_utils import Cluster

    head = {"num_cpus": cpus, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    with on_loopback():
        cluster = Cluster(initialize_head=True, head_node_args=head)
        ray.init(cluster.address, log_to_driver=False, logging_level="error")
        try:
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


def ray_manager(game: str = "tictactoe", **settings: Any) -> ParallelManager:
    return manager_of(game, "ray", **settings)


def actor_processes() -> list[int]:
    """Processes of actors in the cluster of these tests: children of its raylets, and so grandchildren of this one."""
    return [pid for raylet in children_of(os.getpid()) for pid in children_of(raylet) if _is_actor(pid)]


def _is_actor(pid: int) -> bool:
    try:
        return b"ray::PlayingActor" in Path(f"/proc/{pid}/cmdline").read_bytes() and is_running(pid)
    except OSError:
        return False


def play_until(manager: ParallelManager, holds: Callable[[], bool], seconds: float = 90.0) -> bool:
    """Collects until something holds. The time is only there to end a test that fails."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        manager.collect_experiences(timeout=60)
    return holds()


def references() -> int:
    """Objects of the cluster that this process holds or waits for."""
    ray = import_ray()
    return len(ray._private.worker.global_worker.core_worker.get_all_reference_counts())


class SlowForOne:
    """Tic-tac-toe that is slow for the first process that plays it: its steps wait until the file ``marker`` with the
    ending ``.over`` is there."""

    def __init__(self, *, batch: int, seed: int, first_game: int, marker: str) -> None:
        self._inner = keisei.make_game("tictactoe", batch=batch, seed=seed, first_game=first_game)
        self._marker = marker
        self._slow: bool | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def step(self, actions: Array) -> Step:
        if self._slow is None:
            self._slow = self._is_mine()
        while self._slow and not Path(self._marker + ".over").exists():
            time.sleep(0.01)
        return self._inner.step(actions)

    def _is_mine(self) -> bool:
        try:
            descriptor = os.open(self._marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return Path(self._marker).read_text() == str(os.getpid())
        os.write(descriptor, str(os.getpid()).encode())
        os.close(descriptor)
        return True


SLOW_FOR_ONE = "ray_for_tests:SlowForOne"
