"""Actors of a Ray cluster play the same bits as workers on one machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from games_for_tests import RELAY, digests, manager_of, nudge, pids_of, sequences_of, until
from ray_for_tests import a_cluster, actor_processes, ray_manager

from keisei.errors import ConfigError
from keisei.parallel import ParallelManager
from keisei.parallel.backends import make_backend
from keisei.parallel.backends.check import check_backend
from keisei.proving.same_experience import VerifySettings, verify

MODEL = {"hidden_dim": 16}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with a_cluster() as running:
        yield running


@pytest.fixture(autouse=True)
def no_actor_left(cluster: Any) -> Iterator[None]:
    yield
    assert until(lambda: not actor_processes())


def test_actors_keep_the_contract() -> None:
    check_backend(lambda arena: make_backend("ray", arena))


@pytest.mark.parametrize(
    ("game", "settings"),
    [
        ("tictactoe", {"num_workers": 1, "tables": 3}),
        ("tictactoe", {"num_workers": 3, "tables": 3, "compress_slabs": True}),
        (RELAY, {"compression_enabled": True}),
    ],
)
def test_actors_give_the_same_bits(game: str, settings: dict[str, Any]) -> None:
    expected = digests(manager_of(game, "inline", model=MODEL, **settings))
    assert digests(ray_manager(game, model=MODEL, **settings)) == expected


def test_one_digest_also_with_kills_and_a_league() -> None:
    settings = VerifySettings(
        game="tictactoe", backends=("inline", "ray"), workers=(2,), tables=3, games=4, rounds=3, kills=2,
        league=True, hidden_dim=16,
    )  # fmt: skip
    report = verify(settings)
    assert [run.name for run in report.runs] == ["inline", "ray", "crew changes", "ray, disturbed"]
    assert report.same, report.differences
    toll = report.runs[-1].toll
    assert toll is not None
    assert toll.kills == 2


def test_streams_have_no_gap_and_take_new_weights() -> None:
    with ray_manager(model=MODEL, mode="async", queue_maxsize=3) as manager:
        found = sequences_of(manager, 6)
        assert all(numbers == list(range(len(numbers))) for numbers in found.values())
        nudge(manager)
        newest = manager.sync_model_to_workers()
        assert until(lambda: any(i.record.version == newest for i in manager.collect_experiences(timeout=1)))


def test_a_snapshot_goes_on_elsewhere() -> None:
    """Played by actors, then inline, then by actors: nobody can tell."""
    expected = digests(manager_of(backend="inline", model=MODEL), rounds=3)
    found = []
    snapshots: Any = ()
    for backend in ("ray", "inline", "ray"):
        manager = manager_of(backend=backend, model=MODEL, first_version=len(found) + 1)
        for _ in found:
            nudge(manager)
        manager.synchronizer.publish(manager.model) if found else None
        with _started(manager, snapshots):
            found.append(manager.collect_experiences().digest())
            snapshots = manager.snapshot()
    assert found[0] == expected[0]


def _started(manager: ParallelManager, snapshots: Any) -> ParallelManager:
    manager.start_workers(snapshots)
    return manager


def test_an_actor_that_is_killed_is_replaced_and_nothing_changes() -> None:
    expected = digests(manager_of(backend="inline", model=MODEL))
    with ray_manager(model=MODEL) as manager:
        found = []
        for number in range(4):
            if number == 1:
                os.kill(pids_of(manager)[0], signal.SIGKILL)
            found.append(manager.collect_experiences().digest())
            nudge(manager)
            manager.sync_model_to_workers()
        assert until(lambda: (manager.supervisor.pump(0.05), manager.get_status().restarts == 1)[1])
        assert manager.get_status().drops.corrupted == 0
    assert found == expected


def test_a_stopped_actor_is_found_by_its_heartbeat() -> None:
    expected = digests(manager_of(backend="inline"), rounds=3)
    with ray_manager(hang_timeout=2.0) as manager:
        found = [manager.collect_experiences().digest()]
        os.kill(pids_of(manager)[1], signal.SIGSTOP)
        found += [manager.collect_experiences().digest() for _ in range(2)]
    assert found == expected


def test_central_inference_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="inference = central asks the learner's machine in every step"):
        ray_manager(model=MODEL, inference="central")
