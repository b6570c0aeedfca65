"""The manager's end of one actor: it makes the calls, and receives their results.

An actor never writes into the manager's arena. What it has played is copied there by its handle, and only if it is the
slab that was ordered. So a lost actor, or one that is thought to be lost, can do no harm.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from keisei.experience.slab import SlabRecord
from keisei.machine.processes import is_stopped, is_there
from keisei.parallel.arena import Arena
from keisei.parallel.backends.cluster.actor import PULSE
from keisei.parallel.backends.cluster.greeting import Greeting, machine_identity, version_conflict, versions
from keisei.parallel.backends.cluster.late import Late
from keisei.parallel.backends.cluster.parcels import Briefing, Played, Task
from keisei.parallel.backends.cluster.supplies import Supplies
from keisei.parallel.messages import (
    PIECE_BYTES,
    THROUGH_PIPE,
    Failed,
    Manager,
    Order,
    OrderKind,
    Ready,
    Start,
    StatePiece,
    decode_reply,
    encode_reply,
)
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.worker.members import split_members

IN_FLIGHT = 2
"""Calls of one actor at a time. In rounds it is one, since the manager sends one order; otherwise the second keeps the
actor busy while the first result travels."""
LOST_SECONDS = 15.0
"""An actor that answers no heartbeat for this long counts as lost, with its node."""
TRIES = 10
"""How often a call whose fate is unknown is made again."""
TRY_SECONDS = 0.5
"""Seconds between two such calls."""


class _Stage(Enum):
    QUEUED = "it waits for a place to run"
    """Ray has not started its process: no node has room, or the process is still loading."""
    BEGINNING = "it starts"
    READY = "it runs"


@dataclass(slots=True)
class _Call:
    """An order that the actor has been given, or will be."""

    order: Order
    message: bytes
    forget: tuple[int, ...]
    ref: Any = None


class RayHandle:
    """One actor. Messages are in the order of the orders."""

    def __init__(
        self,
        ray: Any,
        actor: Any,
        plan: WorkerPlan,
        briefing: Briefing,
        arena: Arena,
        supplies: Supplies,
        manager: Manager,
        late: Late,
        pulse_seconds: float,
        place: str,
    ) -> None:
        self._ray, self._actor, self._arena, self._manager = ray, actor, arena, manager
        self._briefing, self._supplies, self._late = briefing, supplies, late
        self._pulse_seconds, self._place = pulse_seconds, place
        self._control = arena.control(plan.worker)
        self._steps_before = int(self._control[0])
        self._stage = _Stage.QUEUED
        self._alive = True
        self._reason = ""
        self.killed_from_outside = False
        self._node = ""
        """The address of its node, once it is known."""
        self.process_id: int | None = None
        """Its process, if it is one of this machine."""
        self._opening: Any = actor.greet.remote()
        self._pulse: Any = None
        self._pulse_at = 0.0
        self._silent = 0
        self._orders: deque[_Call] = deque()
        """Orders that are not sent yet."""
        self._calls: deque[_Call] = deque()
        self._forget: list[int] = []
        self._messages: deque[bytes] = deque()
        self._ready: Collection[Any] = ()
        self._again_at: float | None = None
        self._tries = 0
        self._version: int | None = None
        """The weights that the actor has."""
        self._members: set[int] = set()
        """The members whose weights the actor has."""

    # What the manager asks.

    def send(self, message: bytes) -> None:
        if not self._alive:
            return
        order = Order.decode(message)
        if order.kind is OrderKind.STOP:
            self.kill()
        elif order.kind is OrderKind.FORGET:
            self._forget.append(order.table)
        else:
            self._orders.append(_Call(order, message, tuple(self._forget)))
            self._forget.clear()
            self._dispatch()

    def receive(self) -> bytes | None:
        if self._alive and not self._messages:
            self._take_in()
        return self._messages.popleft() if self._messages else None

    def is_alive(self) -> bool:
        return self._alive

    def ask_to_stop(self) -> None:
        self.kill()

    def kill(self) -> bool:
        """Ends the actor. Its process may live for a moment, but nothing that it does arrives here any more."""
        self._end("it was stopped")
        return True

    def join(self, timeout: float) -> bool:
        """Waits until the process is gone, if it is on this machine."""
        deadline = time.monotonic() + timeout
        while not self._alive and self.process_id is not None and is_there(self.process_id):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return not self._alive

    @property
    def steps(self) -> int:
        return int(self._control[0])

    @property
    def is_suspended(self) -> bool:
        return is_stopped(self.process_id)

    @property
    def is_queued(self) -> bool:
        return self._alive and self._stage is _Stage.QUEUED

    @property
    def exit_reason(self) -> str:
        if not self._alive:
            return self._reason
        return f"{self._stage.value} with {self._place}" if self.is_queued else self._stage.value

    # What the backend asks.

    @property
    def refs(self) -> list[Any]:
        """The calls to wait for: the oldest one, and the heartbeat."""
        oldest = self._calls[0].ref if self._calls else self._opening
        return [ref for ref in (oldest, self._pulse) if ref is not None]

    @property
    def has_news(self) -> bool:
        return not self._alive or bool(self._messages)

    def look(self, ready: Collection[Any]) -> None:
        """Notes which calls are done."""
        self._ready = ready

    # Calls.

    def _dispatch(self) -> None:
        while self._orders and len(self._calls) < IN_FLIGHT and self._again_at is None:
            call = self._orders.popleft()
            call.ref = self._play(call)
            self._calls.append(call)

    def _play(self, call: _Call) -> Any:
        order = call.order
        state = self._state_for(order)
        version, weights = self._supplies.weights(order.version)
        if version == self._version:
            weights = None
        on_shelf = self._supplies.on_shelf
        self._members &= set(on_shelf)
        new = sorted(_named(order, state) & set(on_shelf) - self._members)
        ref = self._actor.play.remote(
            Task(call.message, call.forget, state, on_shelf), weights, *self._supplies.members(new)
        )
        self._version = version
        self._members |= set(new)
        return ref

    def _state_for(self, order: Order) -> bytes:
        if order.start is not Start.LOAD:
            return b""
        if order.source == THROUGH_PIPE:
            return self._manager.fetch_state(order.table)
        return self._arena.read_state(order.source)

    def _ask_again(self) -> None:
        """Makes all calls again. The actor may have lost the calls, or only their results, which it then sends
        again."""
        self._again_at = None
        self._version, self._members = None, set()
        for call in self._calls:
            call.ref = self._play(call)

    # What arrives.

    def _take_in(self) -> None:
        if self._again_at is not None and time.monotonic() >= self._again_at:
            self._ask_again()
        if self._opening in self._ready:
            self._open()
        while self._alive and self._calls and self._again_at is None and self._calls[0].ref in self._ready:
            self._settle(self._calls[0])
        if self._alive and self._pulse is not None:
            self._feel_pulse()

    def _open(self) -> None:
        """Receives the greeting, and then the report that the worker is made."""
        answer = self._result(self._opening)
        if not self._alive:
            return
        if isinstance(answer, Greeting):
            self._node, self._stage = answer.node, _Stage.BEGINNING
            if answer.machine == machine_identity():
                self.process_id = answer.process_id
            conflict = version_conflict(versions(), answer.versions)
            if conflict:
                self._fail(Failed(f"node {answer.node} has other versions: {conflict}; install the same", ""))
                return
            self._opening = self._actor.begin.remote(self._briefing)
        elif isinstance(answer, Played):
            failed = decode_reply(answer.reply)
            assert isinstance(failed, Failed)
            self._fail(failed)
        else:
            self._opening, self._stage = None, _Stage.READY
            self._messages.append(encode_reply(Ready()))
            self._beat()  # not before: while torch is loaded, nothing else runs in its process

    def _settle(self, call: _Call) -> None:
        try:
            played: Played = self._ray.get(call.ref)
        except self._ray.exceptions.ActorUnavailableError as error:
            self._try_later(error)
            return
        except self._ray.exceptions.RayError as error:
            self._lose(error)
            return
        self._count(played.steps)
        reply = decode_reply(played.reply)
        if isinstance(reply, Failed):
            self._fail(reply)
        elif isinstance(reply, SlabRecord) and _is_of(reply, call.order):
            self._calls.popleft()  # with the reference, so the object store can free it
            self._tries = 0
            self._unload(reply, played, call.order)
            self._dispatch()
        else:
            self._late.repeated += 1
            self._try_later(None)

    def _unload(self, record: SlabRecord, played: Played, order: Order) -> None:
        """Copies slab and state into the arena, and tells the manager."""
        played.unload(self._arena.slab(order.slab))
        if record.state_slot == THROUGH_PIPE:
            for start in range(0, len(played.state), PIECE_BYTES):
                piece = StatePiece(order.table, start == 0, played.state[start : start + PIECE_BYTES])
                self._messages.append(encode_reply(piece))
        else:
            self._arena.write_state(order.state_slot, played.state)
        # The clock of another machine means nothing here.
        record = replace(record, started=time.monotonic() - record.seconds)
        self._messages.append(encode_reply(record))

    def _result(self, ref: Any) -> Any:
        try:
            return self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            self._lose(error)
            return None

    def _count(self, steps: int) -> None:
        self._control[0] = self._steps_before + steps

    # Heartbeats.

    def _beat(self) -> None:
        self._pulse = self._actor.pulse.options(concurrency_group=PULSE).remote(self._pulse_seconds)
        self._pulse_at = time.monotonic()

    def _feel_pulse(self) -> None:
        if self._pulse not in self._ready:
            if time.monotonic() - self._pulse_at > LOST_SECONDS + self._pulse_seconds:
                self._end(f"node {self._node} has not answered for {LOST_SECONDS:g} s", from_outside=True)
            return
        try:
            self._count(self._ray.get(self._pulse))
            self._silent = 0
        except self._ray.exceptions.ActorUnavailableError as error:
            self._silent += 1
            if self._silent > TRIES:
                self._lose(error)
        except self._ray.exceptions.RayError as error:
            if not self._calls:  # open calls raise it too, after the results of earlier ones
                self._lose(error)
            self._pulse = None
            return
        if self._alive:
            self._beat()

    # The end.

    def _try_later(self, error: Exception | None) -> None:
        self._tries += 1
        if self._tries > TRIES:
            self._end(f"its calls were lost {TRIES} times: {_in_short(error)}", from_outside=True)
        elif self._again_at is None:
            self._again_at = time.monotonic() + (0 if error is None else TRY_SECONDS)

    def _fail(self, failed: Failed) -> None:
        """Tells the manager why the actor ends."""
        reason = f"{failed.reason} (on {f'node {self._node}' if self._node else 'a node of the cluster'})"
        self._messages.append(encode_reply(Failed(reason, failed.traceback)))
        self._end(reason)

    def _lose(self, error: Exception) -> None:
        """Ends an actor that Ray reports as dead, or whose result cannot be had."""
        exceptions = self._ray.exceptions
        its_own = isinstance(error, exceptions.RayTaskError) or getattr(error, "actor_init_failed", False)
        if its_own:
            self._fail(Failed(_in_short(error), str(error)))
        else:
            self._end(_in_short(error), from_outside=True)

    def _end(self, reason: str, *, from_outside: bool = False) -> None:
        if not self._alive:
            return
        self._alive, self._reason, self.killed_from_outside = False, reason, from_outside
        self._late.refs += [call.ref for call in self._calls]
        self._calls.clear()
        self._orders.clear()
        self._opening = self._pulse = None
        with suppress(Exception):  # it is dead already, or the cluster is gone
            self._ray.kill(self._actor)
        self._actor = None


def _named(order: Order, state: bytes) -> set[int]:
    """Lists the members that the games of an order may meet."""
    members, _ = split_members(state)
    return {order.lineup.member} | (set() if members is None else set(members.tolist()))


def _is_of(record: SlabRecord, order: Order) -> bool:
    """Checks if a record belongs to this order. A second delivery of an earlier slab does not."""
    same = (record.table, record.epoch, record.sequence) == (order.table, order.epoch, order.sequence)
    return same and order.version in (-1, record.version)


def _in_short(error: Exception | None) -> str:
    """Finds the sentence in one of Ray's long messages that says why."""
    text = str(error)
    if "No module named" in text or "failed to import on the worker" in text:
        return "keisei cannot be imported there; install it on every node"
    found = re.search(r"The actor is dead because[^.\n]*|[A-Za-z]*Error: [^\n]*", text)
    return found[0] if found else " ".join(text.split())[:200]
