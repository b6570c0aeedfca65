"""Decides which worker plays which table next. The manager holds the queue of tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from keisei.parallel.messages import Order
from keisei.parallel.tables import Table
from keisei.parallel.workers import WORKING, Worker


class Dealer:
    """Deals tables to workers. A table stays with the worker that holds its games, unless another worker has nothing to
    do. The caller must send the orders of a worker before it takes the next ones."""

    def __init__(
        self,
        tables: Sequence[Table],
        workers: Sequence[Worker],
        newest_version: Callable[[], int],
    ) -> None:
        self._tables, self._workers = tables, workers
        self._newest_version = newest_version

    # In rounds: each worker has one order at a time.

    def one_each(self) -> Iterator[tuple[Worker, list[Order]]]:
        """Deals a waiting table to each worker that has nothing to do. So no worker rests while a table waits."""
        for worker in self._workers:
            if worker.can_play and not worker.orders:
                table = self._next_for(worker)
                if table is not None:
                    yield worker, self._orders(table, worker)

    def _next_for(self, worker: Worker) -> Table | None:
        waiting = [table for table in self._tables if table.waits and not table.dealt]
        waiting = [table for table in waiting if not self._better_elsewhere(table, worker)]
        for candidates in (
            [table for table in waiting if table.worker == worker.number],
            [table for table in waiting if table.worker is None],
        ):
            if candidates:
                return candidates[0]
        if not waiting:
            return None
        # Take the last table of the worker that has the most waiting tables.
        busiest = Counter(table.worker for table in waiting).most_common(1)[0][0]
        return [table for table in waiting if table.worker == busiest][-1]

    def _better_elsewhere(self, table: Table, worker: Worker) -> bool:
        """Checks if the table failed under this worker and another one can try it. The other one shows whether
        the table or the worker is the cause."""
        failed = {failure.worker for failure in table.failures}
        others = {other.number for other in self._workers if other.state in WORKING}
        return worker.number in failed and bool(others - failed)

    # In a stream: each worker has several orders at a time.

    def ahead(self) -> Iterator[tuple[Worker, list[Order]]]:
        """Deals all waiting orders, each to the worker that holds the table. A table without a worker goes to the one
        with the fewest tables."""
        for table in self._tables:
            if table.dealt == 0 and (table.moving or not self._is_in_good_hands(table)):
                self._take_away(table)
            if not table.waits or table.moving:
                continue
            worker = self._fewest_tables() if table.worker is None else self._worker(table.worker)
            if worker is not None and worker.can_play and worker.room > 0:
                yield worker, self._orders(table, worker)

    def balance(self) -> None:
        """Shares the tables evenly among workers. A table moves when its worker has done the orders that it has."""
        loads = self._loads()
        for table in self._tables:
            if table.dealt and not self._is_in_good_hands(table):
                table.moving = True
            if loads and (table.moving or not self._is_in_good_hands(table)):
                loads[_least(loads)] += 1  # the worker with the fewest tables takes it
        while len(loads) > 1:
            busiest, idlest = max(loads, key=lambda number: loads[number]), _least(loads)
            if loads[busiest] - loads[idlest] < 2:
                return
            held = [table for table in self._tables if table.worker == busiest and not table.moving]
            min(held, key=lambda table: table.dealt).moving = True
            loads[busiest] -= 1
            loads[idlest] += 1

    def _loads(self) -> dict[int, int]:
        """Counts the tables of each available worker, without those that move."""
        held = Counter(table.worker for table in self._tables if not table.moving)
        return {worker.number: held[worker.number] for worker in self._workers if worker.can_play}

    def _fewest_tables(self) -> Worker | None:
        loads = self._loads()
        return self._worker(_least(loads)) if loads else None

    def _is_in_good_hands(self, table: Table) -> bool:
        return table.worker is not None and self._worker(table.worker).can_play

    # In both modes.

    def _worker(self, number: int) -> Worker:
        return self._workers[number]

    def _orders(self, table: Table, worker: Worker) -> list[Order]:
        if table.worker != worker.number:
            self._take_away(table)
        return table.deal(worker.number, self._newest_version(), worker.room)

    def _take_away(self, table: Table) -> None:
        """Takes a table from its worker, which may then forget the games."""
        if table.worker is not None:
            self._worker(table.worker).stale.append(table.number)
        table.drop_hands()


def _least(loads: dict[int, int]) -> int:
    return min(loads, key=lambda number: loads[number])
