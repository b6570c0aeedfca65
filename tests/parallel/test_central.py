"""Central inference: workers step games, and one batch in the learner's process decides for all."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
import torch
from games_for_tests import BACKENDS, RELAY, digests, manager_of, pids_of

from keisei.errors import WorkerStartError
from keisei.machine.torch_threads import torch_threads

NETWORK = {"hidden_dim": 16}
OPPONENTS = {"opponents": [{"policy": "random", "share": 0.6}], "opening_plies": 2}
CASES: dict[str, dict[str, Any]] = {
    "shogi": {"game": "shogi", "max_game_length": 6},
    "rows that come and go": {"game": RELAY},
    "opponents": {"game": "tictactoe", "seating": OPPONENTS, "worker_reset_interval": 150},
    "workers of different kinds": {
        "game": "connect-four",
        "num_workers": 3,
        "worker_overrides": {0: {"epsilon": 1.0}, 2: {"temperature": 0.01}},
    },
}


@pytest.mark.parametrize("case", CASES)
def test_all_backends_give_the_same_bits(case: str) -> None:
    settings = {"model": NETWORK, "inference": "central", **CASES[case]}
    inline, thread, process = (digests(manager_of(backend=b, **settings), target=100) for b in BACKENDS)
    assert inline == thread == process
    assert len(set(inline)) == len(inline)


def test_the_numbers_are_those_of_in_worker_inference_up_to_rounding() -> None:
    def column(inference: str) -> torch.Tensor:
        with manager_of("connect-four", model=NETWORK, inference=inference) as manager:
            return torch.from_numpy(manager.collect_experiences().column("value"))

    torch.testing.assert_close(column("central"), column("worker"), atol=1e-5, rtol=1e-4)


def test_workers_have_no_network_of_their_own() -> None:
    with manager_of(model=NETWORK, inference="central", backend="inline") as manager:
        manager.collect_experiences()
        worker = manager.communicator.members[0].handle._worker  # type: ignore[union-attr]
        assert worker._network is None


def test_without_a_network_central_means_nothing() -> None:
    assert digests(manager_of(inference="central")) == digests(manager_of(inference="worker"))


def test_a_learner_that_takes_its_time_is_no_reason_to_call_workers_hung() -> None:
    """In asynchronous mode workers may wait for an answer as long as the learner learns."""
    with manager_of(model=NETWORK, inference="central", mode="async", hang_timeout=3.0) as manager:
        for _ in range(3):
            assert len(manager.collect_experiences(target_steps=64, timeout=20)) >= 64
            time.sleep(3.5)
        assert manager.get_status().restarts == 0


def test_a_worker_killed_while_it_waits_for_an_answer() -> None:
    settings: dict[str, Any] = {"model": NETWORK, "inference": "central"}
    expected = digests(manager_of(backend="inline", **settings), 4)
    manager = manager_of(**settings)
    assert manager._inference is not None
    answer, calls = manager._inference.answer, [0]

    def kill_first(members: Any) -> Any:
        calls[0] += 1
        if calls[0] in (5, 20):
            os.kill(pids_of(manager)[calls[0] % 2], signal.SIGKILL)
        return answer(members)

    manager._inference.answer = kill_first  # type: ignore[method-assign]
    assert digests(manager, 4) == expected
    assert manager.get_status().restarts == 2


def test_workers_can_be_added_and_removed() -> None:
    with manager_of(model=NETWORK, inference="central") as manager:
        assert len(manager.collect_experiences()) == 64
        manager.add_workers(2)
        assert len(manager.collect_experiences()) == 128
        manager.remove_workers([0, 3])
        assert {item.record.worker for item in manager.collect_experiences()} == {1, 2}


def test_opponents_with_the_learners_network_need_it_in_the_worker() -> None:
    seating = {"opponents": [{"policy": "learner", "share": 0.5, "temperature": 2.0}]}
    manager = manager_of(model=NETWORK, inference="central", seating=seating)
    with pytest.raises(WorkerStartError, match="'learner' plays with a network"):
        manager.start_workers()


def test_the_learner_keeps_its_threads() -> None:
    with torch_threads(2):
        manager = manager_of(model=NETWORK, inference="central", backend="inline")
        with manager:
            manager.collect_experiences()
            assert torch.get_num_threads() == 2
