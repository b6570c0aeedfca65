"""A worker on another machine. It plays in a small arena of its own, and what it has played is sent back whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from keisei.experience.slab import SlabRecord
from keisei.machine.freed_memory import keep_freed_memory
from keisei.machine.shared_memory import SharedBlock
from keisei.machine.torch_threads import stay_on_one_thread
from keisei.parallel.arena import Arena
from keisei.parallel.backends.cluster.parcels import Briefing, Played, Task
from keisei.parallel.messages import THROUGH_PIPE, Order, OrderKind, Question, StatePiece
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.weights.model_sync import WeightCopy, WeightsOfVersion
from keisei.parallel.weights.shelf import Shelf, StoredMember
from keisei.parallel.worker.self_play_worker import SelfPlayWorker

KEPT = 2
"""Results that are kept, as many as there are calls in flight. A call whose fate is unknown is made again, and then
gives the same result."""


class RemoteWorker:
    """Carries out tasks. It also answers its worker in place of the manager, which is too far away to ask."""

    def __init__(self, briefing: Briefing) -> None:
        stay_on_one_thread()
        keep_freed_memory()
        plan = WorkerPlan.model_validate_json(briefing.plan)
        size = replace(briefing.size, slabs=1, slots=1)
        self._shelf = None if briefing.shelf is None else Shelf(briefing.shelf)
        self._arena = Arena(size, self._shelf, SharedBlock.private(size.nbytes))
        self._control = self._arena.control(plan.worker)
        self._weights = None if briefing.weights is None else WeightCopy(*briefing.weights)
        reader = None if self._weights is None else self._weights.reader
        self._worker = SelfPlayWorker(plan, self._arena, reader, self)
        self._slabs, self._compress = briefing.size.slabs, briefing.compress
        self._kept: deque[tuple[bytes, Played]] = deque(maxlen=KEPT)
        self._state, self._pieces = b"", list[bytes]()

    @property
    def steps(self) -> int:
        return int(self._control[0])

    def play(self, task: Task, weights: WeightsOfVersion | None, members: Sequence[StoredMember]) -> Played:
        """Plays a slab. The same task again gives the same result, without playing it again."""
        for order, played in self._kept:
            if order == task.order:
                return played
        stay_on_one_thread()
        if self._weights is not None and weights is not None:
            self._weights.take(weights)
        self._stock_shelf(task, members)
        for table in task.forget:
            self._worker.obey(Order(OrderKind.FORGET, table))
        played = self._carry_out(Order.decode(task.order), task.state)
        self._kept.append((task.order, played))
        return played

    def _stock_shelf(self, task: Task, members: Sequence[StoredMember]) -> None:
        if self._shelf is not None:
            self._shelf.keep_only(task.on_shelf)
            for member in members:
                self._shelf.take(member)

    def _carry_out(self, order: Order, state: bytes) -> Played:
        if not 0 <= order.slab < self._slabs:
            raise IndexError(f"the arena has slabs 0 … {self._slabs - 1}, and no slab {order.slab}")
        self._state, self._pieces = state, []
        record = self._worker.obey(replace(order, slab=0, state_slot=0, source=THROUGH_PIPE))
        assert record is not None
        state, slot = self._saved(record, order.state_slot)
        record = replace(record, slab=order.slab, state_slot=slot)
        return Played.of(record, self.steps, self._arena.slab(0), state, self._compress)

    def _saved(self, record: SlabRecord, slot: int) -> tuple[bytes, int]:
        """Returns the state that the worker has left, and the slot of the manager's arena for it."""
        if record.state_slot == THROUGH_PIPE:
            return b"".join(self._pieces), THROUGH_PIPE
        return self._arena.read_state(0), slot

    # What its worker asks of the manager.

    def ask(self, question: Question) -> None:
        raise NotImplementedError("central inference does not serve other machines")

    def fetch_state(self, table: int) -> bytes:
        return self._state

    def deliver_piece(self, piece: StatePiece) -> None:
        self._pieces.append(piece.content)
