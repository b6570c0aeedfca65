"""Parallel is a placement: the same bits wherever workers run, and a contract that tells a broken backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from games_for_tests import BACKENDS, RELAY, digests, manager_of

from keisei.errors import ContractError
from keisei.parallel.backends import Backend, WorkerHandle, check_backend, make_backend
from keisei.parallel.messages import Failed, Question, decode_reply
from keisei.parallel.plan import WorkerMemory, WorkerPlan
from keisei.parallel.self_play_worker import Manager

OPPONENTS = {
    "opponents": [{"policy": "random", "share": 0.4}, {"policy": "learner", "share": 0.3, "epsilon": 0.5}],
    "opening_plies": 2,
}
NETWORK = {"hidden_dim": 16}
CASES: dict[str, dict[str, Any]] = {
    "shogi, network": {"game": "shogi", "model": NETWORK},
    "shogi, random": {"game": "shogi"},
    "connect-four, residual network": {
        "game": "connect-four",
        "model": {"network": "residual", "channels": 8, "blocks": 1},
    },
    "tictactoe, opponents": {"game": "tictactoe", "model": NETWORK, "seating": OPPONENTS},
    "rows that come and go": {"game": RELAY, "model": NETWORK, "temperature": 1.5, "epsilon": 0.1},
    "large rows": {"game": "dummy", "options": {"length": 5}},
    "workers of different kinds": {
        "game": "connect-four",
        "model": NETWORK,
        "num_workers": 3,
        "worker_overrides": {1: {"epsilon": 1.0}, 2: {"seating": OPPONENTS, "temperature": 0.1}},
    },
    "lossless weights": {"game": "tictactoe", "model": NETWORK, "compression_enabled": True},
    "games cut short": {
        "game": "shogi",
        "model": NETWORK,
        "max_game_length": 7,
        "worker_reset_interval": 150,
    },
}


@pytest.mark.parametrize("case", CASES)
def test_all_backends_give_the_same_bits(case: str) -> None:
    inline, thread, process = (digests(manager_of(backend=b, **CASES[case]), target=100) for b in BACKENDS)
    assert inline == thread == process
    assert len(set(inline)) == len(inline)


def test_another_seed_gives_other_bits() -> None:
    assert digests(manager_of(backend="inline", seed=1)) != digests(manager_of(backend="inline", seed=2))


def test_disabled_is_inline_and_use_threads_is_thread() -> None:
    off, threads, processes = manager_of(enabled=False), manager_of(use_threads=True), manager_of()
    assert [m.config.placement for m in (off, threads, processes)] == ["inline", "thread", "process"]
    assert digests(off) == digests(threads)


def test_a_worker_that_explores_more_does() -> None:
    overrides = {1: {"epsilon": 1.0}}
    with manager_of(model={"hidden_dim": 8}, worker_overrides=overrides, temperature=0.0001) as manager:
        sharp, free = (item.slab.log_prob[1:3].mean() for item in manager.collect_experiences())
    assert sharp > -0.5, "the network hardly leaves a choice at this temperature"
    assert free < -1.5


@pytest.mark.slow
def test_spawned_workers_do_the_same() -> None:
    assert digests(manager_of(start_method="spawn", num_workers=1)) == digests(manager_of(num_workers=1))


@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_keep_the_contract(backend: Any) -> None:
    check_backend(lambda: make_backend(backend))


class Tampered:
    """A backend of threads whose handles go through a test's hands."""

    name = "tampered"

    def __init__(self, tamper: Callable[[Any], None]) -> None:
        self._threads = make_backend("thread")
        self._tamper = tamper

    def start(self, plan: WorkerPlan, memory: WorkerMemory, manager: Manager) -> WorkerHandle:
        handle = self._threads.start(plan, memory, manager)
        self._tamper(handle)
        return handle

    def wait(self, handles: Sequence[WorkerHandle], timeout: float) -> None:
        self._threads.wait(handles, timeout)


def loses_messages(handle: Any) -> None:
    receive, count = handle.receive, [0]

    def lossy() -> bytes | None:
        message: bytes | None = receive()
        count[0] += message is not None
        return receive() if count[0] == 3 else message

    handle.receive = lossy


def swaps_messages(handle: Any) -> None:
    receive, kept = handle.receive, []

    def swapped() -> bytes | None:
        message: bytes | None = receive()
        if message is not None and len(message) > 40 and not kept:
            kept.append(message)
            return None
        return message if message is not None or len(kept) != 1 else (kept.append(b""), kept[0])[1]

    handle.receive = swapped


def blocks(handle: Any) -> None:
    connection = handle._pipe.connection
    handle.receive = lambda: connection.recv_bytes()


def swallows_errors(handle: Any) -> None:
    receive = handle.receive

    def silent() -> bytes | None:
        message: bytes | None = receive()
        return None if message is not None and isinstance(decode_reply(message), Failed) else message

    handle.receive = silent


def only_pretends_to_kill(handle: Any) -> None:
    handle.kill = lambda: True


def raises_at_the_dead(handle: Any) -> None:
    send = handle.send

    def strict(message: bytes) -> None:
        if not handle.is_alive():
            raise BrokenPipeError("the worker is gone")
        send(message)

    handle.send = strict


def forgets_questions(handle: Any) -> None:
    receive = handle.receive

    def deaf() -> bytes | None:
        message: bytes | None = receive()
        return None if message is not None and isinstance(decode_reply(message), Question) else message

    handle.receive = deaf


@pytest.mark.parametrize(
    ("tamper", "rule"),
    [
        (loses_messages, "messages arrive in order|every order is answered"),
        (swaps_messages, "messages arrive in order"),
        (blocks, "never blocks|gives None where nothing has arrived"),
        (swallows_errors, "a worker that fails says why"),
        (only_pretends_to_kill, "a worker that was killed is not alive"),
        (raises_at_the_dead, "is lost without an error"),
        (forgets_questions, "questions reach the manager"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_contract_test_finds_what_is_broken(tamper: Callable[[Any], None], rule: str) -> None:
    def factory() -> Backend:
        return Tampered(tamper)

    with pytest.raises(ContractError, match=rule):
        check_backend(factory, patience=1.5)
