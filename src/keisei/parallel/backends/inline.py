"""Workers in this very thread: the serial mode, and the one to debug in. The same code, no concurrency."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Sequence

from keisei.machine.torch_threads import single_threaded
from keisei.parallel.backends.contract import WorkerHandle
from keisei.parallel.messages import Failed, Order, OrderKind, Ready, Reply, encode_reply
from keisei.parallel.plan import WorkerMemory, WorkerPlan
from keisei.parallel.self_play_worker import Manager, SelfPlayWorker


class InlineHandle:
    """Carries out its oldest order when the manager looks for a message."""

    process_id = None
    killed_from_outside = False

    def __init__(self, plan: WorkerPlan, memory: WorkerMemory, manager: Manager) -> None:
        self._plan, self._memory, self._manager = plan, memory, manager
        self._worker: SelfPlayWorker | None = None
        self._orders: deque[Order] = deque()
        self._alive = True
        self._started = False
        self.exit_reason = "it runs"

    def send(self, message: bytes) -> None:
        order = Order.decode(message)
        if order.kind is OrderKind.STOP:
            self.kill()
        elif self._alive:
            self._orders.append(order)

    def receive(self) -> bytes | None:
        if not self._alive:
            return None
        try:
            with single_threaded():
                reply = self._next_reply()
        except Exception:
            self._alive = False
            self.exit_reason = "it raised an error"
            return encode_reply(Failed(traceback.format_exc()))
        return None if reply is None else encode_reply(reply)

    def _next_reply(self) -> Reply | None:
        if not self._started:
            self._started = True
            self._worker = SelfPlayWorker(self._plan, self._memory, self._manager)
            return Ready()
        if self._worker is None or not self._orders:
            return None
        return self._worker.obey(self._orders.popleft())

    def is_alive(self) -> bool:
        return self._alive

    def kill(self) -> bool:
        self._alive = False
        self._worker = None
        self.exit_reason = "it was stopped"
        return True

    def join(self, timeout: float) -> bool:
        return not self._alive


class InlineBackend:
    name = "inline"

    def start(self, plan: WorkerPlan, memory: WorkerMemory, manager: Manager) -> InlineHandle:
        return InlineHandle(plan, memory, manager)

    def wait(self, handles: Sequence[WorkerHandle], timeout: float) -> None:
        """Nothing happens elsewhere, so there is nothing to wait for."""
