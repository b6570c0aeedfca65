"""Central inference: workers step games, and one batch in the learner's process decides for all."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from games_for_tests import BACKENDS, RELAY, TROUBLED, digests, manager_of, pids_of, players, until

from keisei.errors import WorkerStartError
from keisei.machine.torch_threads import torch_threads
from keisei.parallel import ParallelManager
from keisei.parallel.inference import CentralInference

NETWORK = {"hidden_dim": 16}
OPPONENTS = {"opponents": [{"policy": "random", "share": 0.6}], "opening_plies": 2}


def inference_of(manager: ParallelManager) -> CentralInference:
    inference = manager.inference
    assert inference is not None
    return inference


CASES: dict[str, dict[str, Any]] = {
    "shogi": {"game": "shogi", "env": {"max_moves": 6}},
    "rows that come and go": {"game": RELAY},
    "opponents": {"game": "tictactoe", "seating": OPPONENTS, "worker_reset_interval": 150},
    "tables of different kinds": {
        "game": "connect-four",
        "tables": 3,
        "table_overrides": {0: {"epsilon": 1.0}, 2: {"temperature": 0.01}},
    },
}


@pytest.mark.parametrize("case", CASES)
def test_all_backends_give_the_same_bits(case: str) -> None:
    settings = {"model": NETWORK, "inference": "central", **CASES[case]}
    inline, thread, process = (digests(manager_of(backend=b, **settings), target=100) for b in BACKENDS)
    assert inline == thread == process
    assert len(set(inline)) == len(inline)


@pytest.mark.parametrize("outputs", ["policy", "q", "dueling"])
def test_the_numbers_are_those_of_in_worker_inference_up_to_rounding(outputs: str) -> None:
    """Also the values of a Q network, which depend on the legal actions."""

    def column(inference: str) -> torch.Tensor:
        model = {**NETWORK, "outputs": outputs}
        with manager_of("tictactoe", model=model, inference=inference) as manager:
            return torch.from_numpy(manager.collect_experiences().column("value"))

    torch.testing.assert_close(column("central"), column("worker"), atol=1e-5, rtol=1e-4)


def test_a_reset_gives_both_the_same_random_numbers() -> None:
    def actions(inference: str) -> torch.Tensor:
        with manager_of("connect-four", "inline", model=NETWORK, inference=inference) as manager:
            manager.reset_workers()
            return torch.from_numpy(manager.collect_experiences().column("action"))

    assert torch.equal(actions("central"), actions("worker"))


def test_workers_have_no_network_of_their_own() -> None:
    with manager_of(model=NETWORK, inference="central", backend="inline") as manager:
        manager.collect_experiences()
        worker = manager.workers[0].handle._worker  # type: ignore[union-attr]
        assert worker._network is None


def test_without_a_network_central_means_nothing() -> None:
    assert digests(manager_of(inference="central")) == digests(manager_of(inference="worker"))


def test_a_learner_that_takes_its_time_is_no_reason_to_call_workers_hung() -> None:
    """In asynchronous mode workers may wait for an answer as long as the learner learns."""
    with manager_of(model=NETWORK, inference="central", mode="async", hang_timeout=1.0) as manager:
        for _ in range(2):
            assert len(manager.collect_experiences(target_steps=64, timeout=20)) >= 64
            time.sleep(1.2)
        assert len(manager.collect_experiences(target_steps=64, timeout=20)) >= 64
        assert manager.get_status().restarts == 0


def test_a_question_that_waits_for_an_answer_is_no_reason_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is noted just before a collection returns, and answered after the learner's pause."""
    with manager_of(model=NETWORK, inference="central", mode="async", hang_timeout=5.0) as manager:
        manager.collect_experiences(timeout=20)
        with monkeypatch.context() as patch:
            patch.setattr(inference_of(manager), "answer", lambda could_ask: [])
            manager.release_experiences()

            def everybody_asks() -> bool:
                manager.supervisor.pump(0.01)
                return all(worker.asks for worker in manager.workers)

            assert until(everybody_asks)
        for worker in manager.workers:
            worker._progress_at -= 3600  # the learner learned for an hour
        assert len(manager.collect_experiences(target_steps=64, timeout=20)) >= 64
        assert manager.get_status().restarts == 0
        assert not any(worker.asks and not worker.orders for worker in manager.workers)


def test_a_worker_that_got_its_answer_and_makes_no_step_is_hung(tmp_path: Path) -> None:
    """A question excuses a worker only until it is answered."""
    expected = digests(manager_of(TROUBLED, backend="inline", model=NETWORK, inference="central"), 6)
    options = {"trouble": "stall", "at": 2, "games_from": 4, "marker": str(tmp_path / "happened")}
    manager = manager_of(TROUBLED, options=options, model=NETWORK, inference="central", hang_timeout=0.5)
    assert digests(manager, 6) == expected
    assert manager.get_status().restarts == 1


def test_a_worker_killed_while_it_waits_for_an_answer() -> None:
    settings: dict[str, Any] = {"model": NETWORK, "inference": "central"}
    expected = digests(manager_of(backend="inline", **settings), 4)
    manager = manager_of(**settings)
    inference = inference_of(manager)
    answer, calls = inference.answer, [0]

    def kill_first(could_ask: int) -> list[int]:
        calls[0] += 1
        if calls[0] in (5, 20):
            os.kill(pids_of(manager)[calls[0] % 2], signal.SIGKILL)
        return answer(could_ask)

    inference.answer = kill_first  # type: ignore[method-assign]
    assert digests(manager, 4) == expected
    assert manager.get_status().restarts == 2


def test_workers_can_be_added_and_removed() -> None:
    settings: dict[str, Any] = {"model": NETWORK, "inference": "central", "tables": 4}
    with manager_of(backend="inline", **settings) as inline:
        expected = [inline.collect_experiences().digest() for _ in range(3)]
    with manager_of(**settings) as manager:
        found = [manager.collect_experiences().digest()]
        manager.add_workers(2)
        found.append(manager.collect_experiences().digest())
        manager.remove_workers([0, 3])
        experiences = manager.collect_experiences()
        assert players(experiences) <= {1, 2}
        found.append(experiences.digest())
    assert found == expected


def test_several_tables_may_share_a_forward_pass() -> None:
    """For graphics cards. The number of places belongs to the experiment; workers change no bit."""
    settings: dict[str, Any] = {
        "model": NETWORK, "inference": "central", "tables": 5, "inference_places": 2,
    }  # fmt: skip
    expected = digests(manager_of(RELAY, backend="inline", **settings))
    for workers in (1, 2, 3):
        assert digests(manager_of(RELAY, "thread", num_workers=workers, **settings)) == expected


def test_a_forward_pass_has_the_rows_of_one_table() -> None:
    manager = manager_of("connect-four", "thread", model=NETWORK, inference="central", tables=3)
    inference, rows = inference_of(manager), set()
    forward = inference._forward

    def counted(observations: Any, legal: Any) -> Any:
        rows.add(len(observations))
        return forward(observations, legal)

    inference._forward = counted  # type: ignore[method-assign]
    digests(manager, 2)
    assert rows == {4}


def test_opponents_with_the_learners_network_need_it_in_the_worker() -> None:
    seating = {"opponents": [{"policy": "learner", "share": 0.5, "temperature": 2.0}]}
    for settings in ({"seating": seating}, {"table_overrides": {1: {"seating": seating}}}):
        manager = manager_of(model=NETWORK, inference="central", **settings)
        with pytest.raises(WorkerStartError, match="'learner' plays with a network"):
            manager.start_workers()


def test_the_learner_keeps_its_threads() -> None:
    with torch_threads(2):
        manager = manager_of(model=NETWORK, inference="central", backend="inline")
        with manager:
            manager.collect_experiences()
            assert torch.get_num_threads() == 2
