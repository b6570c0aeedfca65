"""The manager as a user sees it: start, collect, publish weights, pause, resume, reset, stop."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from games_for_tests import BACKENDS, manager_of, nudge, pids_of, players

from keisei.errors import NoWorkersError, ParallelError
from keisei.parallel import ParallelManager
from keisei.policies.networks import ModelConfig, build_network


def versions(manager: ParallelManager) -> set[int]:
    return set(manager.collect_experiences().column("version").tolist())


def test_collecting_gives_at_least_what_was_asked_for_in_a_fixed_order() -> None:
    with manager_of() as manager:
        assert len(manager.collect_experiences()) == 64, "by default a slab of each table"
        experiences = manager.collect_experiences(target_steps=150)
        assert len(experiences) == 192, "whole slabs, the same number of each table"
        order = [(item.record.table, item.record.sequence) for item in experiences]
        assert order == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]
        assert [item.first_game for item in experiences] == [0, 0, 0, 4, 4, 4]
        assert players(experiences) <= {0, 1}
        assert bool(experiences)
        with pytest.raises(ParallelError, match="target_steps is at least 1"):
            manager.collect_experiences(target_steps=0)


def test_calls_in_the_wrong_order_say_so() -> None:
    manager = manager_of(backend="inline")
    for call in (
        manager.collect_experiences,
        manager.pause_workers,
        manager.reset_workers,
        manager.add_workers,
    ):
        with pytest.raises(ParallelError, match="has not been started; call start_workers first"):
            call()
    manager.start_workers()
    with pytest.raises(ParallelError, match="is running"):
        manager.start_workers()
    manager.collect_experiences()
    manager.stop_workers()
    manager.stop_workers()
    for call in (manager.collect_experiences, manager.resume_workers, manager.start_workers):
        with pytest.raises(ParallelError, match="has been stopped; make a new one"):
            call()
    assert manager.get_status().active_workers == 0


def test_experience_that_was_handed_out_can_be_read_after_the_stop() -> None:
    with manager_of() as manager:
        experiences = manager.collect_experiences()
        before = experiences.digest()
    assert experiences.digest() == before


def test_new_weights_play_from_the_next_collection_on() -> None:
    with manager_of(model={"hidden_dim": 8}) as manager:
        assert versions(manager) == {1}
        nudge(manager)
        assert versions(manager) == {1}, "not published yet"
        assert manager.sync_model_to_workers() == 2
        assert manager.sync_model_to_workers() == 2, "nothing has changed, and nothing was sent"
        assert manager.synchronizer is not None
        assert manager.synchronizer.stats.published == 2
        assert versions(manager) == {2}


@pytest.mark.parametrize("inference", ["worker", "central"])
def test_learning_does_not_change_play_before_weights_are_published(inference: str) -> None:
    def actions(learn: bool, publish: bool) -> np.ndarray:
        with manager_of(model={"hidden_dim": 8}, backend="inline", inference=inference) as manager:
            manager.collect_experiences()
            if learn:
                nudge(manager)
            if publish:
                manager.sync_model_to_workers()
            return manager.collect_experiences().column("log_prob")

    untouched = actions(learn=False, publish=False)
    assert (actions(learn=True, publish=False) == untouched).all()
    assert (actions(learn=True, publish=True) != untouched).any()


def test_another_model_can_be_published() -> None:
    with manager_of(model={"hidden_dim": 8}) as manager:
        other = build_network(ModelConfig(hidden_dim=8), manager.spec, seed=99)
        assert manager.sync_model_to_workers(other) == 2
        assert versions(manager) == {2}


def test_a_model_of_ones_own_is_taken() -> None:
    spec = manager_of(backend="inline").spec
    model = build_network(ModelConfig(hidden_dim=8), spec, seed=99)
    env, config = {"game": "tictactoe"}, {"num_workers": 1, "backend": "inline"}
    manager = ParallelManager(env, {"hidden_dim": 8}, config, model=model)
    assert manager.model is model
    with pytest.raises(ParallelError, match="without model_config"):
        ParallelManager(env, None, config, model=model)


def test_weights_are_published_at_every_so_many_steps() -> None:
    with manager_of(model={"hidden_dim": 8}, backend="inline", model_sync_interval=3) as manager:
        found = []
        for step in range(7):
            nudge(manager)
            found.append(manager.sync_model_to_workers(step=step))
        assert found == [2, 2, 2, 3, 3, 3, 4]


def test_without_a_model_there_is_nothing_to_synchronise() -> None:
    manager = manager_of(backend="inline")
    with pytest.raises(ParallelError, match="without model_config"):
        manager.sync_model_to_workers()
    assert manager.version == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_workers_are_paused_and_resumed_by_name_and_every_table_is_played(backend: str) -> None:
    with manager_of(backend="inline", tables=3) as undisturbed:
        expected = [undisturbed.collect_experiences().digest() for _ in range(3)]
    found = []
    with manager_of(backend=backend, tables=3, num_workers=3) as manager:
        manager.pause_workers([0, 1])
        assert manager.get_status().active_workers == 1
        assert [worker.state for worker in manager.get_status().workers] == ["paused", "paused", "running"]
        experiences = manager.collect_experiences()
        assert players(experiences) == {2}
        found.append(experiences.digest())
        manager.pause_workers()
        with pytest.raises(NoWorkersError, match="all workers are paused; call resume_workers first"):
            manager.collect_experiences()
        manager.resume_workers([1])
        experiences = manager.collect_experiences()
        assert players(experiences) == {1}
        found.append(experiences.digest())
        manager.resume_workers()
        assert manager.get_status().active_workers == 3
        found.append(manager.collect_experiences().digest())
        with pytest.raises(ParallelError, match=r"no worker 7; the workers are \[0, 1, 2\]"):
            manager.pause_workers([7])
    assert found == expected


def test_a_reset_names_tables_and_starts_other_games() -> None:
    with manager_of(backend="process") as manager:
        first = manager.collect_experiences().column("action")
        manager.reset_workers([1])
        epochs = {item.record.table: item.record.epoch for item in manager.collect_experiences()}
        assert epochs == {0: 0, 1: 1}
        manager.reset_workers()
        experiences = manager.collect_experiences()
        assert [item.record.epoch for item in experiences] == [1, 2]
        for item in experiences:
            assert (item.slab.ply[0] == 0).all()
            assert (item.slab.episode[0] == 0).all()
        assert (experiences.column("action") != first).any(), "not the games of the first start again"
        with pytest.raises(ParallelError, match="there is no table 2; the tables are 0 … 1"):
            manager.reset_workers([0, 2])


def test_many_resets_in_a_row_do_not_fill_a_pipe() -> None:
    with manager_of(tables=1, num_workers=1) as manager:
        for _ in range(2000):
            manager.reset_workers()
        (item,) = manager.collect_experiences()
        assert item.record.epoch == 2000


def test_games_start_anew_by_themselves_after_so_many_transitions() -> None:
    with manager_of(worker_reset_interval=128) as manager:
        epochs = [manager.collect_experiences().slabs[0].record.epoch for _ in range(5)]
    assert epochs == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("backend", ["inline", "process"])
def test_episodes_can_be_counted_instead_of_steps(backend: str) -> None:
    with manager_of(backend=backend, episodes_per_worker=9, queue_maxsize=2) as manager:
        for _ in range(2):
            experiences = manager.collect_experiences()
            for table in (0, 1):
                slabs = [item.slab for item in experiences if item.record.table == table]
                finished = [int(slab.terminated.sum()) for slab in slabs]
                assert sum(finished) >= 9 > sum(finished[:-1])


def test_status_tells_what_is_going_on() -> None:
    with manager_of(model={"hidden_dim": 8}) as manager:
        manager.collect_experiences()
        status = manager.get_status()
        assert status["active_workers"] == status.active_workers == 2
        assert status["queue_info"] == manager.communicator.get_queue_info()
        assert status.queue_info == {"slabs": 8, "playing": 0, "free": 6, "filled": 2, "leased": 0}
        assert status.running
        assert (status.version, status.policy_lag, status.restarts) == (1, 0.0, 0)
        assert (status.transitions, status.drops.lagging, status.drops.corrupted) == (64, 0, 0)
        assert status.transitions_per_second > 0
        assert status.tables == 2
        assert sorted(table for worker in status.workers for table in worker.tables) == [0, 1]
        assert sum(worker.transitions for worker in status.workers) == 64
        assert sum(worker.slabs for worker in status.workers) == 2
        for worker in status.workers:
            assert worker.state == "running"
            assert worker.process_id in pids_of(manager)
            assert worker.memory_bytes > 1 << 20
            if worker.slabs:
                assert worker.steps_per_second > 0
                assert 0 < worker.game_share + worker.policy_share <= 1
            assert 0 <= worker.waiting_share < 1
            assert worker.last_error == ""
        with pytest.raises(KeyError):
            status["no_such_thing"]


def test_the_queue_adds_up_while_workers_play_on() -> None:
    with manager_of(mode="async", queue_maxsize=3) as manager:
        for _ in range(20):
            manager.collect_experiences(timeout=10)
            info = manager.communicator.get_queue_info()
            assert info["playing"] + info["free"] + info["filled"] == info["slabs"] == 6
            assert min(info.values()) >= 0


def test_logs_name_the_worker(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="keisei.parallel"), manager_of() as manager:
        handle = manager.workers[1].handle
        assert handle is not None
        handle.kill()
        manager.collect_experiences()
    assert any(r.name.startswith("keisei.") and "worker 1 died" in r.getMessage() for r in caplog.records)


def test_asynchronous_collection_hands_out_what_there_is() -> None:
    with manager_of(mode="async") as manager:
        assert len(manager.collect_experiences(target_steps=33, timeout=20)) >= 33
        assert len(manager.collect_experiences(target_steps=2000, timeout=20)) >= 2000, (
            "more than all slabs hold"
        )
        manager.collect_experiences(timeout=0)
        manager.pause_workers()
        handed_out: list[int] = []
        with pytest.raises(NoWorkersError, match="paused"):
            handed_out.extend(len(manager.collect_experiences(timeout=5)) for _ in range(100))
        assert sum(handed_out) > 0, "what had been played before the pause is handed out first"
        assert manager.communicator.get_queue_info()["playing"] == 0
