"""Trains units of agents on threads, and notices a training that hangs.

Each thread runs torch on one core and takes the next unit when it is done. The threads end with the training, so
nothing is left at the end. A thread cannot be ended from outside: the agents of a training that hangs are left out
until it returns.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from keisei.errors import in_one_line
from keisei.learners.agent_units import Outcome, Unit
from keisei.machine.torch_threads import stay_on_one_thread

__all__ = ["UnitThreads"]


class UnitThreads:
    """Runs units on up to ``threads`` threads. The number changes no bit."""

    def __init__(self, threads: int, timeout: float) -> None:
        self.threads, self.timeout = threads, timeout
        self._hung: set[tuple[int, ...]] = set()

    def train(self, units: Sequence[Unit], views: Mapping[int, Any], progress: float) -> dict[int, Outcome]:
        """Trains all units that are free, and waits for them. Raises nothing that belongs to an agent."""
        free = [unit for unit in units if unit.agents not in self._hung]
        work = _Work(free, views, progress, self._hung)
        threads = [
            threading.Thread(target=work.do, name=f"learner {number}", daemon=True)
            for number in range(min(self.threads, len(free)))
        ]
        try:
            for thread in threads:
                thread.start()
            work.wait(self.timeout)
        finally:
            late = work.stop()
            for thread in threads:
                thread.join(None if not late else 0.0)
        failed = dict.fromkeys(
            (agent for agents in {*self._hung, *late} for agent in agents), self._late_text
        )
        return {**failed, **work.outcomes}

    def close(self) -> None:
        """Does nothing, since no thread outlives a training."""

    @property
    def _late_text(self) -> str:
        return f"its training has not ended after {self.timeout:g} s; it is left out until it does"


class _Work:
    """The units of one training, and their results."""

    def __init__(
        self,
        units: Sequence[Unit],
        views: Mapping[int, Any],
        progress: float,
        hung: set[tuple[int, ...]],
    ) -> None:
        self._waiting = deque(units)
        self._left = len(units)
        self._views, self._progress, self._hung = views, progress, hung
        self._running: set[tuple[int, ...]] = set()
        self._changed = threading.Condition()
        self.outcomes: dict[int, Outcome] = {}

    def do(self) -> None:
        """Takes units until none is left."""
        stay_on_one_thread()
        while (unit := self._take()) is not None:
            try:
                found = unit.learn(self._views, self._progress)
            except BaseException as error:  # a thread must report how its unit ended
                found = dict.fromkeys(unit.agents, in_one_line(error))
            self._end(unit, found)

    def wait(self, timeout: float) -> None:
        """Waits until all units are done, or none has ended for ``timeout`` seconds."""
        with self._changed:
            while self._left and self._changed.wait(timeout):
                pass

    def stop(self) -> set[tuple[int, ...]]:
        """Begins no more units. Returns those that are late: running ones after a timeout."""
        with self._changed:
            timed_out = bool(self._left)
            never_begun = [unit.agents for unit in self._waiting]
            self._waiting.clear()
            if timed_out:
                self._hung |= self._running
            return {*self._running, *never_begun} if timed_out else set()

    def _take(self) -> Unit | None:
        with self._changed:
            if not self._waiting:
                return None
            unit = self._waiting.popleft()
            self._running.add(unit.agents)
            return unit

    def _end(self, unit: Unit, found: dict[int, Outcome]) -> None:
        with self._changed:
            self._running.discard(unit.agents)
            self._hung.discard(unit.agents)
            self._left -= 1
            self.outcomes |= found
            self._changed.notify_all()
