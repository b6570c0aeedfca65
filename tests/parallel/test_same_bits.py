"""One digest: for any number of workers, wherever they run, and while they come and go."""

from __future__ import annotations

from typing import Any

import pytest
from games_for_tests import BACKENDS, RELAY, digests, manager_of

from keisei.parallel import ParallelManager, TableSnapshot

NETWORK = {"hidden_dim": 16}
RANDOM_OPPONENT = {"opponents": [{"policy": "random", "share": 0.6}], "opening_plies": 2}
OPPONENTS = {
    "opponents": [{"policy": "random", "share": 0.4}, {"policy": "learner", "share": 0.3, "epsilon": 0.5}],
    "opening_plies": 2,
}
ANYWHERE: dict[str, dict[str, Any]] = {
    "shogi": {"game": "shogi"},
    "rows that come and go": {"game": RELAY, "temperature": 1.5, "epsilon": 0.1},
    "opponents and openings": {"game": "connect-four", "seating": RANDOM_OPPONENT},
    "games cut short": {"game": "shogi", "env": {"max_moves": 7}, "worker_reset_interval": 300},
    "tables of different kinds": {
        "game": "connect-four",
        "table_overrides": {1: {"epsilon": 1.0}, 4: {"seating": RANDOM_OPPONENT, "temperature": 0.1}},
    },
    "episodes are counted": {"game": "tictactoe", "episodes_per_worker": 7},
}
"""With the network in workers, and in the manager."""
IN_WORKERS: dict[str, dict[str, Any]] = {
    "at random": {"game": "shogi", "model": None},
    "residual network": {
        "game": "connect-four",
        "model": {"network": "residual", "channels": 8, "blocks": 1},
    },
    "the learner as its own opponent": {"game": "tictactoe", "seating": OPPONENTS},
    "dice, and an opponent by simple rules": {
        "game": "ludo",
        "seating": {"opponents": [{"policy": "heuristic", "share": 0.5}]},
    },
    "a world with agents that rest": {
        "game": "cleanup",
        "options": {"height": 6, "width": 10, "rest": 3, "max_turns": 20},
    },
    "large rows": {"game": "dummy", "model": None, "options": {"length": 5}},
    "lossless weights": {"game": "tictactoe", "compression_enabled": True},
}
CASES = IN_WORKERS | {
    f"{name}, {inference}": case | {"inference": inference}
    for name, case in ANYWHERE.items()
    for inference in ("worker", "central")
}


def manager_for(case: str, backend: str, workers: int) -> ParallelManager:
    settings: dict[str, Any] = {"model": NETWORK, "tables": 5, **CASES[case]}
    return manager_of(backend=backend, num_workers=workers, **settings)


@pytest.mark.parametrize("case", CASES)
def test_neither_place_nor_number_of_workers_changes_a_bit(case: str) -> None:
    expected = digests(manager_for(case, "inline", 1), rounds=3, target=200)
    assert len(set(expected)) == len(expected)
    for backend in BACKENDS:
        for workers in (1, 2, 3, 5):
            found = digests(manager_for(case, backend, workers), rounds=3, target=200)
            assert found == expected, f"{backend} with {workers}"


@pytest.mark.parametrize("inference", ["worker", "central"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_nor_do_workers_that_come_and_go(backend: str, inference: str) -> None:
    settings: dict[str, Any] = {"game": RELAY, "model": NETWORK, "tables": 5, "inference": inference}
    with manager_of(backend="inline", num_workers=1, **settings) as undisturbed:
        expected = [undisturbed.collect_experiences().digest() for _ in range(8)]
    with manager_of(backend=backend, **settings) as manager:
        changes = [
            lambda: manager.add_workers(),
            lambda: manager.remove_workers([0]),
            lambda: manager.pause_workers([1]),
            lambda: manager.add_workers(2),
            lambda: manager.resume_workers(),
            lambda: manager.remove_workers([1, 2, 3]),
            lambda: None,
            lambda: None,
        ]
        found = []
        for change in changes:
            found.append(manager.collect_experiences().digest())
            change()
    assert found == expected


@pytest.mark.parametrize("inference", ["worker", "central"])
def test_nor_does_a_stop_and_a_start_with_other_workers(inference: str) -> None:
    settings: dict[str, Any] = {"game": RELAY, "model": NETWORK, "tables": 5, "inference": inference}
    with manager_of(backend="inline", **settings) as whole:
        expected = [whole.collect_experiences().digest() for _ in range(6)]
    found: list[str] = []
    snapshots: list[TableSnapshot] = []
    for backend, workers in (("process", 2), ("thread", 3), ("process", 5)):
        manager = manager_of(backend=backend, num_workers=workers, **settings)
        manager.start_workers(snapshots)
        with manager:
            found += [manager.collect_experiences().digest() for _ in range(2)]
            snapshots = manager.snapshot()
    assert found == expected


def test_another_seed_gives_other_bits() -> None:
    assert digests(manager_of(backend="inline", seed=1)) != digests(manager_of(backend="inline", seed=2))


def test_another_number_of_tables_is_another_experiment_that_begins_alike() -> None:
    """Games are numbered across all tables, so the first tables play the same."""
    with manager_of(backend="inline", tables=2) as few, manager_of(backend="inline", tables=3) as more:
        first, second = few.collect_experiences(), more.collect_experiences()
        assert len(second) == 96
        for ours, theirs in zip(first, second, strict=False):
            assert (ours.slab.action == theirs.slab.action).all()


def test_a_table_that_explores_more_does() -> None:
    overrides = {1: {"epsilon": 1.0}}
    with manager_of(model={"hidden_dim": 8}, table_overrides=overrides, temperature=0.0001) as manager:
        sharp, free = (item.slab.log_prob[1:3].mean() for item in manager.collect_experiences())
    assert sharp > -0.5, "the network hardly leaves a choice at this temperature"
    assert free < -1.5
