"""A model of collection on a cluster: how fast is it with a number of nodes, and from where on do more nodes bring
little?

It plays events in time: workers play slabs, the learner's network link carries them one after the other, and the
driver (the learner's process) takes them in one after the other. What it assumes is in ``Assumptions``, and nothing
else: nodes never fail, all workers are equally fast on average, and the links of other nodes are never the limit.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from keisei.games.randomness import keyed_word

Part = Literal["workers", "driver", "network", "learner", "tables"]
GPU_LEARN_SECONDS = 1e-6
"""How long a learner on a graphics card takes for each transition. This is assumed, not measured."""
WARM_UP = 2
"""Updates that are not counted."""
GAIN = 1.25
"""The curve bends where twice the nodes give less than this factor more."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the model knows. The defaults are those of the preset shogi-quickstart on a 2-core AMD EPYC: what travels
    and what it costs the driver by ``keisei bench ray``, playing and learning by ``keisei bench training``."""

    nodes: int = 1
    cores: int = 4
    """Workers of each node."""
    tables: int = 0
    """Tables of the run; 0 takes two for each worker."""
    slab_transitions: int = 4096
    slab_seconds: float = 0.26
    """How long a worker plays one slab."""
    spread: float = 0.1
    """How much that varies, as a share: slabs take between 1 - spread and 1 + spread of it."""
    slab_bytes: int = 430_000
    state_bytes: int = 17_000
    driver_seconds: float = 0.002
    """How long one slab keeps the driver's thread busy: the call, the check, the copy into the arena."""
    beat_seconds: float = 0.0003
    """How long one heartbeat keeps it busy. Each worker has one in a second."""
    call_seconds: float = 0.002
    """How long a call takes, without play and transport."""
    link: float = 1.25e9
    """Bytes per second of the learner's network link. 1.25e9 are 10 Gbit/s."""
    weights_bytes: int = 50_000
    learn_seconds: float = 5.3e-5
    """How long the learner takes for each transition, on all its cores. See ``GPU_LEARN_SECONDS``."""
    mode: Literal["sync", "async"] = "sync"
    in_flight: int = 2
    """Calls of one worker at a time, where play is asynchronous."""

    @property
    def workers(self) -> int:
        return self.nodes * self.cores

    @property
    def table_count(self) -> int:
        return self.tables or 2 * self.workers


@dataclass(frozen=True, slots=True)
class Forecast:
    """The result of a simulation."""

    nodes: int
    workers: int
    transitions_per_second: float
    slabs_per_second: float
    bytes_per_second: float
    """How many bytes go through the learner's link."""
    busy: dict[Part, float]
    """How much of the time each part works, from 0 to 1."""

    @property
    def limit(self) -> Part:
        """The part that holds up the rest: the one that works most. Tables are the limit where workers have too few."""
        if self.busy["tables"] < 1:
            return "tables"
        return max(("driver", "network", "learner", "workers"), key=lambda part: self.busy[part])


def forecast(given: Assumptions, updates: int = 12) -> Forecast:
    """Simulates some updates, each with one slab of every table."""
    model = _Model(given)
    for update in range(updates + WARM_UP):
        if update == WARM_UP:
            model.count_from_here()
        model.update()
    return model.forecast()


def growth(given: Assumptions, most: int) -> Iterator[Forecast]:
    """Forecasts for 1, 2, 4 … nodes, up to ``most``."""
    nodes = 1
    while nodes < most:
        yield forecast(replace(given, nodes=nodes))
        nodes *= 2
    yield forecast(replace(given, nodes=most))


def bend(forecasts: Sequence[Forecast]) -> Forecast | None:
    """Finds the first forecast after which more nodes bring little; None if the curve does not bend."""
    for before, after in pairwise(forecasts):
        gain = after.transitions_per_second / before.transitions_per_second
        if gain < 1 + (GAIN - 1) * (after.nodes / before.nodes - 1):
            return before
    return None


class _Model:
    """The clock, and what is busy until when."""

    def __init__(self, given: Assumptions) -> None:
        self._given = given
        self._now = 0.0
        self._link_free = 0.0
        self._slabs = 0
        self._work = {"workers": 0.0, "driver": 0.0, "network": 0.0, "learner": 0.0}
        self._start = 0.0
        self._events: list[tuple[float, int, int]] = []
        """When a slab has been played, its number, and its worker."""
        self._number = 0
        self._free_at = [0.0] * given.workers
        """When a worker has done its orders."""
        self._idle: deque[int] = deque(range(given.workers))

    def count_from_here(self) -> None:
        self._start, self._slabs = self._now, 0
        self._work = dict.fromkeys(self._work, 0.0)

    def update(self) -> None:
        """Simulates one collection of a slab of each table, and the update of the learner."""
        if self._given.mode == "sync":
            self._round()
        else:
            self._stream()
        self._learn()

    def _round(self) -> None:
        """Simulates a round. A worker gets its next table when its slab has been taken in."""
        waiting = self._given.table_count
        while waiting or self._events:
            while waiting and self._idle:
                self._order(self._idle.popleft())
                waiting -= 1
            self._idle.append(self._take_in())

    def _stream(self) -> None:
        """Simulates a stream. A worker has several orders at a time, and plays on while the learner learns."""
        while self._idle:
            worker = self._idle.popleft()
            for _ in range(self._given.in_flight):
                self._order(worker)
        for _ in range(self._given.table_count):
            self._order(self._take_in())

    def _order(self, worker: int) -> None:
        """Lets the driver make a call, and the worker play."""
        given = self._given
        self._drive(given.driver_seconds / 2)
        begins = max(self._now + given.call_seconds, self._free_at[worker])
        played = self._slab_seconds()
        self._free_at[worker] = begins + played
        self._work["workers"] += played
        heapq.heappush(self._events, (self._free_at[worker], self._number, worker))
        self._number += 1

    def _take_in(self) -> int:
        """Sends the next slab over the link, and lets the driver copy it."""
        given = self._given
        played, _, worker = heapq.heappop(self._events)
        carried = (given.slab_bytes + given.state_bytes) / given.link
        self._link_free = max(self._link_free, played) + carried
        self._work["network"] += carried
        self._now = max(self._now, self._link_free)
        self._drive(given.driver_seconds / 2)
        self._slabs += 1
        return worker

    def _learn(self) -> None:
        given = self._given
        seconds = given.learn_seconds * given.table_count * given.slab_transitions
        fetched = given.nodes * given.weights_bytes / given.link
        self._work["learner"] += seconds
        self._work["network"] += fetched
        self._now += seconds
        self._link_free = max(self._link_free, self._now) + fetched
        if given.mode == "sync":
            self._now = self._link_free

    def _drive(self, seconds: float) -> None:
        """Keeps the driver's thread busy. Heartbeats take their share of its time."""
        share = min(0.9, self._given.workers * self._given.beat_seconds)
        self._now += seconds / (1 - share)
        self._work["driver"] += seconds / (1 - share)

    def _slab_seconds(self) -> float:
        """Draws how long a slab takes. Every simulation draws the same numbers."""
        chance = (keyed_word(1, self._number) >> 1) / 2**63
        return self._given.slab_seconds * (1 + self._given.spread * (2 * chance - 1))

    def forecast(self) -> Forecast:
        given, seconds = self._given, max(1e-9, self._now - self._start)
        slabs = self._slabs / seconds
        busy: dict[Part, float] = {
            "workers": self._work["workers"] / seconds / given.workers,
            "driver": self._work["driver"] / seconds,
            "network": self._work["network"] / seconds,
            "learner": self._work["learner"] / seconds,
            "tables": min(1.0, given.table_count / given.workers),
        }
        return Forecast(
            given.nodes,
            given.workers,
            slabs * given.slab_transitions,
            slabs,
            self._work["network"] / seconds * given.link,
            {part: min(1.0, share) for part, share in busy.items()},
        )
