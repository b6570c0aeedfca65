"""Workers in the manager's own thread: the serial mode, which is good for debugging. The code is the same, without
concurrency."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from keisei.machine.torch_threads import single_threaded
from keisei.parallel.arena import Arena
from keisei.parallel.backends.contract import WorkerHandle
from keisei.parallel.config import ParallelConfig
from keisei.parallel.messages import Failed, Manager, Order, OrderKind, Ready, Reply, encode_reply
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.weights.model_sync import WeightReader
from keisei.parallel.worker.self_play_worker import SelfPlayWorker, WorkerStopped


class InlineHandle:
    """Carries out its oldest order when the manager checks for a message."""

    process_id = None
    killed_from_outside = False
    is_suspended = False
    is_queued = False

    def __init__(
        self, plan: WorkerPlan, arena: Arena, weights: WeightReader | None, manager: Manager
    ) -> None:
        self._plan, self._arena, self._weights, self._manager = plan, arena, weights, manager
        self._control = arena.control(plan.worker)
        self._control[1] = 0
        self._worker: SelfPlayWorker | None = None
        self._orders: deque[Order] = deque()
        self._alive = True
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
        except WorkerStopped:
            self.kill()
            return None
        except Exception as error:
            self._alive = False
            self.exit_reason = "it raised an error"
            return encode_reply(Failed.of(error))
        return None if reply is None else encode_reply(reply)

    def _next_reply(self) -> Reply | None:
        if self._worker is None:
            self._worker = SelfPlayWorker(self._plan, self._arena, self._weights, self._manager)
            return Ready()
        while self._orders:
            record = self._worker.obey(self._orders.popleft())
            if record is not None:
                return record
        return None

    @property
    def steps(self) -> int:
        return int(self._control[0])

    def is_alive(self) -> bool:
        return self._alive

    def ask_to_stop(self) -> None:
        self._control[1] = 1

    def kill(self) -> bool:
        self._alive = False
        self._worker = None
        self.exit_reason = "it was stopped"
        return True

    def join(self, timeout: float) -> bool:
        return not self._alive


class InlineBackend:
    name = "inline"
    repeated = 0

    def __init__(
        self, arena: Arena, weights: WeightReader | None = None, config: ParallelConfig | None = None
    ) -> None:
        self._arena, self._weights = arena, weights

    def start(self, plan: WorkerPlan, manager: Manager) -> InlineHandle:
        return InlineHandle(plan, self._arena, self._weights, manager)

    def wait(self, handles: Sequence[WorkerHandle], timeout: float) -> None:
        """Returns at once: nothing runs elsewhere, so there is nothing to wait for."""

    def places(self) -> int:
        return 1

    def close(self) -> None:
        """Does nothing, since nothing is held."""
