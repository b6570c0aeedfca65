"""``check_backend``: does a backend do what the contract asks? Run it over a backend of your own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from keisei.errors import ContractError
from keisei.experience.schema import SlabShape
from keisei.experience.slab import SlabRecord
from keisei.parallel.backends.contract import Backend, WorkerHandle
from keisei.parallel.config import EnvConfig
from keisei.parallel.messages import (
    ANSWER,
    Failed,
    Order,
    OrderKind,
    Question,
    Ready,
    Reply,
    ResetDone,
    decode_reply,
)
from keisei.parallel.plan import MAX_IN_FLIGHT, WorkerMemory, WorkerPlan
from keisei.policies.seating import Seating

STEPS, GAMES, SLABS = 16, 4, 8
LOOKS = 0.02
"""Seconds between two looks."""
NO_SUCH_SLAB = 1 << 20

T = TypeVar("T")


def check_backend(factory: Callable[[], Backend], patience: float = 60.0) -> None:
    """Play with workers of a backend, real ones, and raise ``ContractError`` where they break a promise.

    ``patience`` is how many seconds a start, a slab or an end may take before it counts as never.
    """
    backend = factory()
    for check in (
        _messages_arrive_in_order,
        _the_end_is_orderly,
        _last_words_are_heard,
        _the_dead_write_nothing,
        _successors_play_the_same,
        _questions_are_answered,
        _many_orders_fit,
    ):
        with _Bench(backend, patience) as bench:
            check(bench)


@dataclass
class _Bench:
    """A backend, the memory of one worker, and the worker that runs at the moment."""

    backend: Backend
    patience: float
    memory: WorkerMemory = field(init=False)
    handle: WorkerHandle = field(init=False)
    _started: list[WorkerHandle] = field(default_factory=list)

    def __enter__(self) -> _Bench:
        spec = EnvConfig(game="tictactoe").make(batch=1, seed=0).spec
        self.memory = WorkerMemory.allocate(SlabShape.of(spec, STEPS, GAMES), SLABS, None)
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._started:
            handle.kill()
        self.memory.close()

    def start(self, *, central: bool = False, resume_from: int | None = None) -> None:
        plan = WorkerPlan(
            worker=0, env=EnvConfig(game="tictactoe"), model=None, games=GAMES, first_game=0, seed=7,
            slab_steps=STEPS, slabs=SLABS, max_game_length=None, temperature=1.0, epsilon=0.0,
            seating=Seating(), central=central, resume_from=resume_from,
        )  # fmt: skip
        self.handle = self.backend.start(plan, self.memory, self)
        self._started.append(self.handle)
        self.expect(Ready, "a worker that has started says that it is ready")

    def send(self, *orders: Order) -> None:
        for order in orders:
            self.handle.send(order.encode())

    def next_reply(self, rule: str) -> Reply:
        """The next message, waited for in the way in which a manager does."""
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            message = self.within(self.handle.receive, "receive gives a message or None, and never blocks")
            if message is not None:
                return decode_reply(message)
            self.within(lambda: self.backend.wait([self.handle], LOOKS), "wait returns after its time-out")
        raise ContractError(f"{self.backend.name}: {rule}; no message came in {self.patience:g} s")

    def expect(self, kind: type[T], rule: str) -> T:
        reply = self.next_reply(rule)
        if not isinstance(reply, kind):
            raise ContractError(f"{self.backend.name}: {rule}; it said {reply}")
        return reply

    def demand(self, holds: bool, rule: str) -> None:
        if not holds:
            raise ContractError(f"{self.backend.name}: {rule}")

    def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not holds() and time.monotonic() < deadline:
            time.sleep(LOOKS)
        return holds()

    def within(self, call: Callable[[], T], rule: str) -> T:
        """What a call gives, or an error where it does not come back."""
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(call())
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(self.patience)
        if errors:
            raise ContractError(f"{self.backend.name}: {rule}; it raised {errors[0]!r}") from errors[0]
        self.demand(bool(results), rule)
        return results[0]

    def check_record(self, record: SlabRecord, sequence: int, slab: int) -> None:
        self.demand(
            (record.sequence, record.slab) == (sequence, slab),
            f"messages arrive in order; slab {sequence} was due, and {record.sequence} came",
        )
        self.demand(
            self.memory.slab(slab).checksum() == record.checksum,
            "what a worker wrote is in the memory when its message arrives",
        )

    def ask(self, question: Question) -> None:
        """As the manager: take the first legal action everywhere."""
        slab, step = self.memory.slab(question.slab), question.step
        game = EnvConfig(game="tictactoe").make(batch=1, seed=0)
        slab.action[step] = np.argmax(game.unpack(slab.packed[step])[1], axis=1)
        slab.log_prob[step], slab.value[step] = 0.5, 0.25


def _play(sequence: int, slab: int | None = None) -> Order:
    return Order(OrderKind.PLAY, sequence, sequence % SLABS if slab is None else slab)


def _messages_arrive_in_order(bench: _Bench) -> None:
    bench.start()
    bench.send(_play(0), _play(1), Order(OrderKind.RESET, epoch=1), _play(2))
    for sequence in (0, 1):
        bench.check_record(bench.expect(SlabRecord, "every order is answered"), sequence, sequence)
    bench.demand(bench.expect(ResetDone, "messages arrive in order").epoch == 1, "messages arrive whole")
    bench.check_record(bench.expect(SlabRecord, "every order is answered"), 2, 2)
    nothing = bench.within(bench.handle.receive, "receive gives None where nothing has arrived")
    bench.demand(nothing is None, "an order is answered once")
    bench.demand(bench.handle.is_alive(), "a worker without orders waits for them")


def _the_end_is_orderly(bench: _Bench) -> None:
    bench.start()
    bench.send(Order(OrderKind.STOP))
    bench.demand(
        bench.within(lambda: bench.handle.join(bench.patience), "join returns"),
        "a worker ends by a stop order",
    )
    bench.demand(not bench.handle.is_alive(), "a worker that has ended is not alive")
    bench.demand(bool(bench.handle.exit_reason), "a worker that has ended has a reason")
    bench.within(
        lambda: bench.send(_play(0)), "a message to a worker that has ended is lost without an error"
    )
    bench.demand(bench.within(bench.handle.kill, "kill returns"), "killing a worker that has ended succeeds")


def _last_words_are_heard(bench: _Bench) -> None:
    bench.start()
    bench.send(_play(0), _play(1, NO_SUCH_SLAB))
    # Inline workers do nothing before they are asked, so this may be in vain.
    bench.until(lambda: not bench.handle.is_alive(), min(bench.patience, 1.0))
    bench.send(_play(2))
    bench.check_record(bench.expect(SlabRecord, "what a worker sent before its death is received"), 0, 0)
    failed = bench.expect(Failed, "a worker that fails says why")
    bench.demand("Traceback" in failed.traceback, "a worker that fails sends its traceback")
    gone = bench.until(lambda: not bench.handle.is_alive(), bench.patience)
    bench.demand(gone, "a worker that failed is not alive afterwards")


def _the_dead_write_nothing(bench: _Bench) -> None:
    bench.start()
    bench.send(*(_play(sequence) for sequence in range(SLABS)))
    bench.until(lambda: int(bench.memory.control[0]) > 0, min(bench.patience, 1.0))
    bench.demand(bench.within(bench.handle.kill, "kill returns"), "kill ends a worker that plays")
    bench.demand(not bench.handle.is_alive(), "a worker that was killed is not alive")
    before = _contents(bench.memory)
    time.sleep(10 * LOOKS)
    with suppress(OSError):
        bench.handle.receive()
    bench.demand(_contents(bench.memory) == before, "after kill, a worker writes nothing any more")


def _successors_play_the_same(bench: _Bench) -> None:
    bench.start()
    bench.send(_play(0), _play(1))
    first = bench.expect(SlabRecord, "every order is answered")
    second = bench.expect(SlabRecord, "every order is answered")
    bench.within(bench.handle.kill, "kill returns")
    bench.start(resume_from=first.state_slot)
    bench.send(_play(1, slab=5))
    again = bench.expect(SlabRecord, "a worker starts in the memory of one that was killed")
    bench.demand(again.checksum == second.checksum, "a successor plays what its predecessor played")


def _questions_are_answered(bench: _Bench) -> None:
    bench.start(central=True)
    bench.send(_play(0), _play(1))
    records: list[SlabRecord] = []
    while len(records) < 2:
        reply = bench.next_reply("questions reach the manager, and answers the worker")
        if isinstance(reply, Question):
            bench.ask(reply)
            bench.handle.send(ANSWER)
        elif isinstance(reply, SlabRecord):
            records.append(reply)
    bench.demand(
        [r.sequence for r in records] == [0, 1], "orders that come before an answer are kept, in order"
    )
    answered = bool((bench.memory.slab(1).value[:STEPS] == 0.25).all())
    bench.demand(answered, "a worker with central inference plays what the manager decides")


def _many_orders_fit(bench: _Bench) -> None:
    """As many as a manager ever sends ahead, before it reads a single reply."""
    bench.start()
    orders = [_play(sequence) for sequence in range(MAX_IN_FLIGHT)]
    bench.within(lambda: bench.send(*orders), f"{MAX_IN_FLIGHT} orders can be sent without reading")
    for order in orders:
        bench.demand(
            bench.expect(SlabRecord, "every order is answered").sequence == order.sequence, "none is lost"
        )


def _contents(memory: WorkerMemory) -> tuple[Any, ...]:
    slabs = tuple(memory.slab(index).checksum() for index in range(SLABS))
    return (int(memory.control[0]), *slabs)
