"""Nodes of a cluster come, go, fall silent and are slow. The experience stays the same, and nothing is left behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import ray
from games_for_tests import is_running, manager_of, players, until
from ray_for_tests import SLOW_FOR_ONE, a_cluster, actor_processes, play_until, ray_manager, references

from keisei.parallel import ParallelManager, crew
from keisei.parallel.backends.cluster import handle as handle_module
from keisei.parallel.workers import WorkerState
from keisei.training.api import train

NODE = {"num_cpus": 1, "object_store_memory": 80 << 20}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head with room for one worker."""
    with a_cluster(cpus=1) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_of_ray_left(cluster: Any) -> Iterator[None]:
    gc.collect()
    before = references()
    yield
    gc.collect()
    assert until(lambda: not actor_processes())
    assert until(lambda: references() <= before), "objects are left in the store"


@pytest.fixture
def node(cluster: Any) -> Iterator[Any]:
    """A second node, which may be gone at the end of the test."""
    added = cluster.add_node(**NODE)
    yield added
    if added in cluster.worker_nodes:
        cluster.remove_node(added)
    assert until(lambda: nodes_alive() == 1, 60), "Ray takes its time to notice that a node is lost"


def nodes_alive() -> int:
    return sum(node["Alive"] for node in ray.nodes())


def states(manager: ParallelManager) -> list[str]:
    return [worker.state.value for worker in manager.workers]


def kill_raylet(cluster: Any, node: Any) -> None:
    os.kill(node.all_processes["raylet"][0].process.pid, signal.SIGKILL)


def remove_whole_node(cluster: Any, node: Any) -> None:
    cluster.remove_node(node, allow_graceful=False)


@pytest.mark.parametrize("harm", [kill_raylet, remove_whole_node])
def test_a_lost_node_changes_nothing(
    cluster: Any, node: Any, harm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle_module, "LOST_SECONDS", 6.0)  # a test need not wait so long
    settings: dict[str, Any] = {"tables": 4, "model": {"hidden_dim": 16}}
    with manager_of(backend="inline", **settings) as undisturbed:
        expected = [undisturbed.collect_experiences().digest() for _ in range(4)]
    with ray_manager(**settings, num_workers=2, hang_timeout=10.0) as manager:
        first = manager.collect_experiences()
        found = [first.digest()]
        assert players(first) == {0, 1}
        harm(cluster, node)
        found += [manager.collect_experiences(timeout=60).digest() for _ in range(3)]
        assert found == expected


def test_a_node_that_joins_later_is_used(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(crew, "GROW_SECONDS", 0.1)
    with ray_manager(num_workers="auto", tables=4) as growing:
        assert len(growing.workers) == 1
        node = cluster.add_node(**NODE)
        assert play_until(growing, lambda: states(growing) == ["running", "running"])
    with ray_manager(num_workers=3, tables=4) as waiting:
        assert "workers that wait for a place to run: 1" in caplog.text
        assert states(waiting).count(WorkerState.RUNNING.value) == 2
        third = cluster.add_node(**NODE)
        assert play_until(waiting, lambda: states(waiting) == ["running"] * 3)
    for added in (node, third):
        cluster.remove_node(added)
    assert until(lambda: nodes_alive() == 1, 60)


def test_a_slow_node_holds_up_its_last_table_only(cluster: Any, node: Any, tmp_path: Path) -> None:
    """The slow one goes on when the other one has played all other tables."""
    marker = tmp_path / "slow"
    options, patience = {"marker": str(marker)}, {"timeout": 200.0, "hang_timeout": 200.0}
    with ray_manager(SLOW_FOR_ONE, options=options, tables=6, **patience) as manager:

        def release() -> None:
            until(lambda: sum(worker.totals.slabs for worker in manager.workers) == 5, 200)
            marker.with_suffix(".over").touch()

        releasing = Thread(target=release)
        releasing.start()
        played = [item.record.worker for item in manager.collect_experiences()]
        releasing.join()
    assert sorted(played.count(worker) for worker in (0, 1)) == [1, 5]


def test_a_slow_node_does_not_hold_up_a_stream(cluster: Any, node: Any, tmp_path: Path) -> None:
    marker = tmp_path / "slow"
    with ray_manager(SLOW_FOR_ONE, options={"marker": str(marker)}, tables=4, mode="async") as manager:
        found: list[int] = []
        while len(found) < 12:
            found += [item.record.worker for item in manager.collect_experiences(timeout=20)]
            manager.release_experiences()
        assert len(set(found)) == 1, "the other one has not made a single step"
        marker.with_suffix(".over").touch()


def test_a_driver_that_dies_is_resumed(cluster: Any, tmp_path: Path) -> None:
    """The run is trained by a process of its own, which is killed after its first checkpoints."""
    settings = [
        "run.steps=6000", "run.checkpoint_every=1", "evaluation.every=0", "evaluation.opponents=[]",
        "parallel.tables=2", "parallel.games=16", "parallel.horizon=16", "parallel.num_workers=1",
    ]  # fmt: skip
    on_ray = [*settings, "parallel.backend=ray", f"parallel.address={cluster.address}"]
    program = "import sys, keisei; keisei.train('tictactoe-ppo', root=sys.argv[1], overrides=sys.argv[2:])"
    driver = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "there"), *on_ray])
    expected = train("tictactoe-ppo", root=tmp_path, overrides=[*settings, "parallel.backend=inline"])
    saved = tmp_path / "there" / "tictactoe-ppo" / "checkpoints" / "update-000000002"
    try:
        assert until(saved.exists, 90)
    finally:
        driver.kill()
        driver.wait()
    assert until(lambda: not actor_processes()), "actors end with their driver"
    assert train("tictactoe-ppo", root=tmp_path / "there", overrides=on_ray).digest == expected.digest


def test_a_cluster_of_our_own_ends_with_its_driver() -> None:
    """kill -9 of a program that has started Ray leaves no process behind."""
    program = (
        "import sys, time\n"
        "from keisei.parallel.backends.cluster.connection import Connection\n"
        "connection = Connection('local', 1)\n"
        "import ray\n"
        "print(ray._private.worker._global_node.all_processes['raylet'][0].process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    raylet = int(driver.stdout.readline())
    driver.kill()
    driver.communicate()
    assert until(lambda: not is_running(raylet))
