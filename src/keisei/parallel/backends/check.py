"""``check_backend`` tests whether a backend follows the contract. Use it to test your own backend."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from keisei.errors import ContractError
from keisei.experience.schema import SlabShape
from keisei.experience.slab import SlabRecord
from keisei.games.env_config import EnvConfig
from keisei.parallel.arena import Arena, ArenaSize
from keisei.parallel.backend_names import runs_elsewhere
from keisei.parallel.backends.contract import START_SECONDS, Backend, WorkerHandle
from keisei.parallel.messages import (
    ANSWER,
    THROUGH_PIPE,
    Failed,
    NeedState,
    Order,
    OrderKind,
    Question,
    Ready,
    Reply,
    Start,
    StatePiece,
    decode_reply,
    state_piece,
)
from keisei.parallel.plan import MAX_IN_FLIGHT, WorkerPlan
from keisei.policies.seating import Seating

STEPS, GAMES, SLABS = 16, 4, 8
LOOKS = 0.02
"""Seconds between two checks."""
NO_SUCH_SLAB = 1 << 20

T = TypeVar("T")


def check_backend(factory: Callable[[Arena], Backend], patience: float = START_SECONDS) -> None:
    """Plays with real workers of a backend, and raises ``ContractError`` if they break a rule.

    ``factory`` makes the backend for an arena, without weights. ``patience`` is how many seconds a start, a slab or
    an end may take.
    """
    for check in (
        _messages_arrive_in_order,
        _the_end_is_orderly,
        _last_words_are_heard,
        _the_dead_write_nothing,
        _successors_play_the_same,
        _large_states_pass_through,
        _questions_are_answered,
        _many_orders_fit,
    ):
        with _Bench(factory, patience) as bench:
            check(bench)


@dataclass
class _Bench:
    """A backend, the arena of one table, and the current worker."""

    factory: Callable[[Arena], Backend]
    patience: float
    backend: Backend = field(init=False)
    arena: Arena = field(init=False)
    handle: WorkerHandle = field(init=False)
    state: bytes = b""
    """The state that came through the pipe."""
    _started: list[WorkerHandle] = field(default_factory=list)

    def __enter__(self) -> _Bench:
        self.make_arena()
        return self

    def make_arena_anew(self, slot_bytes: int) -> None:
        self.backend.close()
        self.arena.close()
        self.make_arena(slot_bytes)

    def make_arena(self, slot_bytes: int | None = None) -> None:
        spec = EnvConfig(game="tictactoe").make(batch=1, seed=0).spec
        size = ArenaSize.of(SlabShape.of(spec, STEPS, GAMES), SLABS, SLABS)
        self.arena = Arena(size if slot_bytes is None else replace(size, slot_bytes=slot_bytes))
        self.backend = self.factory(self.arena)

    def __exit__(self, *error: object) -> None:
        for handle in self._started:
            handle.kill()
        self.backend.close()
        self.arena.close()

    def start(self, *, central: bool = False) -> None:
        plan = WorkerPlan(
            worker=0, env=EnvConfig(game="tictactoe"), model=None, seed=7, tables=1, games=GAMES,
            horizon=STEPS, seating=Seating(), overrides={}, central=central,
        )  # fmt: skip
        self.handle = self.backend.start(plan, self)
        self._started.append(self.handle)
        self.expect(Ready, "a worker that has started says that it is ready")

    def send(self, *orders: Order) -> None:
        for order in orders:
            self.handle.send(order.encode())

    def next_reply(self, rule: str) -> Reply:
        """Waits for the next message, in the same way as a manager."""
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            message = self.within(self.handle.receive, "receive gives a message or None, and never blocks")
            if message is not None:
                return decode_reply(message)
            self.within(lambda: self.backend.wait([self.handle], LOOKS), "wait returns after its time-out")
        raise ContractError(f"{self.backend.name}: {rule}; no message came in {self.patience:g} s")

    def next_record(self, rule: str) -> SlabRecord:
        """Waits for the next slab, and handles the state parts that come before it."""
        while True:
            reply = self.next_reply(rule)
            if isinstance(reply, StatePiece):
                self.deliver_piece(reply)
            elif isinstance(reply, NeedState):
                self.handle.send(state_piece(self.state, reply.offset))
            elif isinstance(reply, SlabRecord):
                return reply
            else:
                raise ContractError(f"{self.backend.name}: {rule}; it said {reply}")

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
        """Returns what a call returns, or raises an error if the call takes too long."""
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
            self.arena.slab(slab).checksum() == record.checksum,
            "what a worker wrote is in the memory when its message arrives",
        )

    def ask(self, question: Question) -> None:
        """Answers as the manager: takes the first legal action everywhere."""
        slab, step = self.arena.slab(question.slab), question.step
        game = EnvConfig(game="tictactoe").make(batch=1, seed=0)
        slab.action[step] = np.argmax(game.unpack(slab.packed[step])[1], axis=1)
        slab.log_prob[step], slab.value[step] = 0.5, 0.25

    def fetch_state(self, table: int) -> bytes:
        """Answers as the manager, for an inline worker."""
        return self.state

    def deliver_piece(self, piece: StatePiece) -> None:
        self.state = piece.content if piece.is_first else self.state + piece.content


def _play(sequence: int, slab: int | None = None, start: Start | None = None, source: int = 0) -> Order:
    """Makes the order for a slab of table 0. Its games start with slab 0."""
    chosen = (Start.GO_ON if sequence else Start.BEGIN) if start is None else start
    place = sequence % SLABS
    return Order(
        OrderKind.PLAY, sequence=sequence, slab=place if slab is None else slab, state_slot=place, start=chosen,
        source=source,
    )  # fmt: skip


def _messages_arrive_in_order(bench: _Bench) -> None:
    bench.start()
    bench.send(_play(0), _play(1), Order(OrderKind.FORGET), _play(2, start=Start.BEGIN))
    for sequence in (0, 1, 2):
        bench.check_record(bench.expect(SlabRecord, "every order is answered"), sequence, sequence)
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
    # An inline worker does nothing until receive is called, so it may still be alive after this.
    bench.until(lambda: not bench.handle.is_alive(), min(bench.patience, 1.0))
    bench.send(_play(2))
    bench.check_record(bench.expect(SlabRecord, "what a worker sent before its death is received"), 0, 0)
    failed = bench.expect(Failed, "a worker that fails says why")
    bench.demand("Traceback" in failed.traceback, "a worker that fails sends its traceback")
    bench.demand(bool(failed.reason), "a worker that fails sends its error in one line")
    gone = bench.until(lambda: not bench.handle.is_alive(), bench.patience)
    bench.demand(gone, "a worker that failed is not alive afterwards")


def _the_dead_write_nothing(bench: _Bench) -> None:
    bench.start()
    bench.send(*(_play(sequence) for sequence in range(SLABS)))
    bench.until(lambda: bench.handle.steps > 0, min(bench.patience, 1.0))
    bench.demand(bench.within(bench.handle.kill, "kill returns"), "kill ends a worker that plays")
    bench.demand(not bench.handle.is_alive(), "a worker that was killed is not alive")
    before = _contents(bench)
    time.sleep(10 * LOOKS)
    with suppress(OSError):
        bench.handle.receive()
    bench.demand(_contents(bench) == before, "after kill, a worker writes nothing any more")


def _successors_play_the_same(bench: _Bench) -> None:
    bench.start()
    bench.send(_play(0), _play(1))
    first = bench.expect(SlabRecord, "every order is answered")
    second = bench.expect(SlabRecord, "every order is answered")
    steps = bench.handle.steps
    bench.demand(steps >= 2 * STEPS, "a handle tells the steps that its worker has made")
    bench.within(bench.handle.kill, "kill returns")
    bench.start()
    bench.send(_play(1, slab=5, start=Start.LOAD, source=first.state_slot))
    again = bench.expect(SlabRecord, "a worker plays on where one that was killed had been")
    bench.demand(again.checksum == second.checksum, "a successor plays what its predecessor played")


def _large_states_pass_through(bench: _Bench) -> None:
    """Checks that states that fit no slot reach the manager and the next worker."""
    bench.make_arena_anew(slot_bytes=64)
    bench.start()
    bench.send(_play(0), _play(1))
    first = bench.next_record("a state that fits no slot comes through the pipe")
    bench.demand(first.state_slot == THROUGH_PIPE, "its record says so")
    taken = bench.state
    second = bench.next_record("every order is answered")
    bench.within(bench.handle.kill, "kill returns")
    bench.start()
    bench.state = taken
    bench.send(_play(1, slab=5, start=Start.LOAD, source=THROUGH_PIPE))
    again = bench.next_record("a worker asks for a state that lies in no slot")
    bench.demand(again.checksum == second.checksum, "a large state is loaded as a small one is")


def _questions_are_answered(bench: _Bench) -> None:
    if runs_elsewhere(bench.backend.name):
        return  # workers on other machines never ask
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
    answered = bool((bench.arena.slab(1).value[:STEPS] == 0.25).all())
    bench.demand(answered, "a worker with central inference plays what the manager decides")


def _many_orders_fit(bench: _Bench) -> None:
    """Sends as many orders as a manager ever sends ahead, before it reads a reply."""
    bench.start()
    orders = [_play(sequence) for sequence in range(MAX_IN_FLIGHT)]
    bench.within(lambda: bench.send(*orders), f"{MAX_IN_FLIGHT} orders can be sent without reading")
    for order in orders:
        bench.demand(
            bench.expect(SlabRecord, "every order is answered").sequence == order.sequence, "none is lost"
        )


def _contents(bench: _Bench) -> tuple[Any, ...]:
    slabs = tuple(bench.arena.slab(index).checksum() for index in range(SLABS))
    return (bench.handle.steps, *slabs)
