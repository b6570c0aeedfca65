"""Handles the events of workers, and replaces workers that die."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from keisei.experience.slab import SlabRecord
from keisei.parallel.arena import Arena
from keisei.parallel.communication import Death, Event, WorkerCommunicator
from keisei.parallel.deliveries import Deliveries, Stock
from keisei.parallel.inference import GATHER_SECONDS, CentralInference
from keisei.parallel.messages import NeedState, Question, Ready, StatePiece, state_piece
from keisei.parallel.tables import Table
from keisei.parallel.timeline import Timeline
from keisei.parallel.workers import Worker, WorkerState

logger = logging.getLogger(__name__)


class Supervisor:
    """Handles every event. The death of a worker does not change the experience: other workers load the last saved
    states of its tables, and play the unfinished slabs again."""

    def __init__(
        self,
        tables: Sequence[Table],
        arena: Arena,
        stock: Stock,
        communicator: WorkerCommunicator,
        deliveries: Deliveries,
        inference: CentralInference | None,
        timeline: Timeline,
        max_failures: int,
    ) -> None:
        self._tables, self._arena, self._stock = tables, arena, stock
        self._communicator = communicator
        self._deliveries = deliveries
        self._inference = inference
        self._timeline = timeline
        self._max_failures = max_failures

    def pump(self, timeout: float) -> None:
        """Waits for events, handles them, and starts the successors that are due."""
        for worker, event in self._communicator.events(self._patience(timeout)):
            self._act_on(worker, event)
        if self._inference is not None:
            for number in self._inference.answer(self._could_ask()):
                self._communicator.answer(self._communicator.workers[number])
        for worker in self._communicator.workers:
            if worker.is_due:
                worker.totals.restarts += 1
                self._communicator.start(worker)

    def _patience(self, timeout: float) -> float:
        """Limits the time-out, so that it ends when the next successor is due or a question has waited long
        enough."""
        if self._inference is not None and self._inference.is_asked:
            timeout = min(timeout, GATHER_SECONDS)
        failed = [worker for worker in self._communicator.workers if worker.state is WorkerState.FAILED]
        return max(0.0, min([timeout, *(worker.retry_at - time.monotonic() for worker in failed)]))

    def _could_ask(self) -> int:
        """Counts the workers that are playing."""
        return sum(bool(worker.orders) and worker.is_ready for worker in self._communicator.workers)

    def _act_on(self, worker: Worker, event: Event) -> None:
        match event:
            case Ready():
                worker.became_ready()
                self._timeline.mark(f"worker {worker.number}", "ready")
            case SlabRecord():
                self._take_slab(worker, event)
            case Question():
                if self._inference is not None:
                    worker.asks = True
                    self._inference.note(worker.number, event, self._tables[event.table].orders[0].epoch)
            case NeedState():
                self._send_piece(worker, event)
            case StatePiece():
                self._tables[event.table].take_piece(event.content, event.is_first)
                worker.watch_anew()
            case Death():
                self._bury(worker, event)

    def _send_piece(self, worker: Worker, need: NeedState) -> None:
        """Sends a worker one part of a state that it loads and that is too large for a slot."""
        saved = self._tables[need.table].saved
        if worker.handle is not None and saved is not None:
            worker.handle.send(state_piece(saved.state, need.offset))
        worker.watch_anew()

    def _take_slab(self, worker: Worker, record: SlabRecord) -> None:
        if not self._deliveries.is_whole(record):
            if worker.handle is not None:
                worker.handle.kill()
            self._bury(worker, Death("it delivered a slab with a wrong checksum"))
            return
        slab, table = self._arena.slab(record.slab), self._tables[record.table]
        if self._inference is not None:
            self._inference.value_ends(slab)
        for slot in table.done(record):
            self._stock.give_slot(slot)
        worker.played(record, episodes=int(slab.terminated.sum() + slab.truncated.sum()))
        self._deliveries.arrive(record, table.first_game)
        self._timeline.slab(record)

    def _bury(self, worker: Worker, death: Death) -> None:
        if self._inference is not None:
            self._inference.forget(worker.number)
        self._timeline.mark(f"worker {worker.number}", "died")
        place = ""
        if worker.orders:
            playing = self._tables[worker.orders[0].table]
            playing.note_failure(worker.number, death.reason, death.from_outside, death.traceback)
            place = playing.describe_place()
        self.hand_on_tables(worker, still_writes=death.still_writes)
        worker.died(
            death.reason,
            from_outside=death.from_outside,
            max_failures=self._max_failures,
            place=place,
            traceback=death.traceback,
        )
        if death.still_writes:
            worker.put_out(death.reason)
        _tell(worker)

    def hand_on_tables(self, worker: Worker, *, still_writes: bool) -> None:
        """Frees the tables of a worker that is gone, so that others play them. If it may still write to its slabs,
        the tables get other slabs."""
        for table in self._tables:
            if table.worker == worker.number:
                if still_writes:
                    table.move_orders(self._stock.replace_lost)
                table.drop_hands()


def _tell(worker: Worker) -> None:
    """Describes the death of a worker in one line. The run's log keeps the traceback too."""
    if worker.state is WorkerState.STOPPED:
        return
    is_out = worker.state is WorkerState.QUARANTINED
    place = f" ({worker.last_place})" if worker.last_place else ""
    logger.log(
        logging.ERROR if is_out else logging.WARNING,
        "worker %d %s: %s%s",
        worker.number, "failed too often and is out" if is_out else "died and is replaced", worker.last_error, place,
        extra={"traceback": worker.last_traceback},
    )  # fmt: skip
