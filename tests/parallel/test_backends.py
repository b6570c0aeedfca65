"""Where workers run is a placement. A contract tells a broken backend, and a backend of one's own is used by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from games_for_tests import BACKENDS, digests, manager_of

from keisei.errors import ConfigError, ContractError
from keisei.parallel import backend_names
from keisei.parallel.arena import Arena
from keisei.parallel.backends import known_backends, make_backend, register_backend
from keisei.parallel.backends.check import check_backend
from keisei.parallel.backends.contract import WorkerHandle
from keisei.parallel.backends.inline import InlineBackend
from keisei.parallel.config import ParallelConfig
from keisei.parallel.messages import Failed, Manager, Question, decode_reply
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.weights.model_sync import WeightReader


@pytest.mark.slow
def test_spawned_workers_do_the_same() -> None:
    assert digests(manager_of(start_method="spawn", num_workers=1)) == digests(manager_of(num_workers=1))


@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_keep_the_contract(backend: str) -> None:
    check_backend(lambda arena: make_backend(backend, arena))


class Tampered:
    """A backend of threads whose handles go through a test's hands."""

    name = "tampered"
    repeated = 0

    def __init__(self, tamper: Callable[[Any], None], arena: Arena) -> None:
        self._threads = make_backend("thread", arena)
        self._tamper = tamper

    def start(self, plan: WorkerPlan, manager: Manager) -> WorkerHandle:
        handle = self._threads.start(plan, manager)
        self._tamper(handle)
        return handle

    def wait(self, handles: Sequence[WorkerHandle], timeout: float) -> None:
        self._threads.wait(handles, timeout)

    def places(self) -> int:
        return self._threads.places()

    def close(self) -> None:
        self._threads.close()


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
    connection = handle._connection
    # Not for ever: the thread that waits here would keep the pipe open, and with it the worker alive.
    handle.receive = lambda: connection.recv_bytes() if connection.poll(4.0) else None


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
    with pytest.raises(ContractError, match=rule):
        check_backend(lambda arena: Tampered(tamper, arena), patience=1.5)


class Counting(InlineBackend):
    """A backend of one's own: inline, but it counts its starts."""

    name = "counting"
    starts = 0

    def __init__(
        self, arena: Arena, weights: WeightReader | None = None, config: ParallelConfig | None = None
    ) -> None:
        super().__init__(arena, weights, config)
        type(self).starts = 0

    def start(self, plan: WorkerPlan, manager: Manager) -> Any:
        type(self).starts += 1
        return super().start(plan, manager)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> type[Counting]:
    monkeypatch.setattr(backend_names, "_REGISTERED", dict(backend_names._REGISTERED))
    register_backend("counting", f"{__name__}:Counting")
    return Counting


def test_a_backend_of_ones_own_is_used_by_name(counting: type[Counting]) -> None:
    expected = digests(manager_of(backend="inline", model={"hidden_dim": 8}))
    found = digests(manager_of(backend="counting", model={"hidden_dim": 8}, num_workers=3))
    assert counting.starts == 3
    assert found == expected
    assert "counting" in known_backends()
    check_backend(lambda arena: make_backend("counting", arena))


@pytest.mark.usefixtures("counting")
def test_a_name_stands_for_one_backend() -> None:
    register_backend("counting", f"{__name__}:Counting")  # once more is no harm
    with pytest.raises(ConfigError, match="a backend named 'counting' is registered already"):
        register_backend("counting", "elsewhere:Backend")
    for name, target in (("my backend", "module:Class"), ("mine", "module.Class")):
        with pytest.raises(ConfigError, match="a plain name and a target 'module:Class'"):
            register_backend(name, target)


def test_an_unknown_backend_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"backend.*must be one of inline, thread, process"):
        manager_of(backend="cluster")
    with manager_of(backend="inline") as manager:
        arena = manager.arena_for_one()
        with pytest.raises(
            ConfigError, match="no backend 'cluster'; the backends are inline, thread, process"
        ):
            make_backend("cluster", arena)
        arena.close()
