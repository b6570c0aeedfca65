"""The workers as the manager knows them: what each is doing, has done, and has promised."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field, replace
from enum import Enum

from keisei.errors import ParallelError
from keisei.experience.slab import SlabRecord
from keisei.games.registry import portable_name
from keisei.parallel.backends.contract import WorkerHandle
from keisei.parallel.config import EnvConfig, ParallelConfig
from keisei.parallel.messages import Order, OrderKind
from keisei.parallel.plan import MAX_IN_FLIGHT, WorkerMemory, WorkerPlan, state_slots
from keisei.policies.networks import ModelConfig

FAILURE_WINDOW = 60.0
"""Seconds within which failures on the same slab count together."""
OUTSIDE_KILLS = 20
"""How often a worker may be killed from outside on the same slab: by a person, or by a system out of memory."""
FIRST_BACKOFF = 0.1
LONGEST_BACKOFF = 5.0


class WorkerState(Enum):
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    DRAINING = "draining"
    """Finishing its orders, to be removed afterwards."""
    STOPPED = "stopped"
    FAILED = "failed"
    """Dead, and about to be replaced."""
    QUARANTINED = "quarantined"
    """Failed too often on the same slab; it gets no successor."""


WORKING = frozenset({WorkerState.STARTING, WorkerState.RUNNING, WorkerState.FAILED})
"""States in which a worker gets orders, or will when it is back."""


@dataclass
class Tally:
    """What a worker has done since the start."""

    transitions: int = 0
    slabs: int = 0
    episodes: int = 0
    restarts: int = 0
    seconds: float = 0.0
    game_seconds: float = 0.0
    policy_seconds: float = 0.0
    waited_seconds: float = 0.0

    def add(self, record: SlabRecord, episodes: int) -> None:
        self.transitions += record.transitions
        self.slabs += 1
        self.episodes += episodes
        self.seconds += record.seconds
        self.game_seconds += record.game_seconds
        self.policy_seconds += record.policy_seconds
        self.waited_seconds += record.waited_seconds


@dataclass(frozen=True, slots=True)
class WorkerSnapshot:
    """The games of one worker between two slabs."""

    worker: int
    epoch: int
    sequence: int
    """Of the next slab."""
    state: bytes
    """``Game.save``; empty where the games have not begun."""


def plan_worker(
    worker: int, env: EnvConfig, model: ModelConfig | None, config: ParallelConfig, *, central: bool
) -> WorkerPlan:
    """What a worker is to play: what all do, but for its overrides."""
    override = config.override_of(worker)
    if config.placement == "process":
        # Other processes know nothing of the games that this program has registered by name.
        env = env.model_copy(update={"game": portable_name(env.game)})
    return WorkerPlan(
        worker=worker,
        env=env,
        model=model,
        games=config.games_per_worker,
        first_game=worker * config.games_per_worker,
        seed=config.seed,
        slab_steps=config.slab_steps,
        slabs=config.queue_maxsize,
        max_game_length=config.max_game_length,
        temperature=config.temperature if override.temperature is None else override.temperature,
        epsilon=config.epsilon if override.epsilon is None else override.epsilon,
        seating=config.seating if override.seating is None else override.seating,
        central=central,
    )


@dataclass
class Member:
    """One place in the crew. A worker that dies is followed by another in the same place, with its memory."""

    plan: WorkerPlan
    memory: WorkerMemory
    handle: WorkerHandle | None = None
    state: WorkerState = WorkerState.STARTING
    orders: deque[Order] = field(default_factory=deque)
    """Sent and not yet done, oldest first. A successor gets them all again."""
    free_slabs: list[int] = field(default_factory=list)
    next_sequence: int = 0
    epoch: int = 0
    """Of the games as they will be when all orders are done."""
    committed_epoch: int = 0
    committed_state: int | None = None
    """Where the games lie as they were after the last order that was done; None means at their start."""
    failures: list[float] = field(default_factory=list)
    outside_kills: int = 0
    retry_at: float = 0.0
    last_error: str = ""
    tally: Tally = field(default_factory=Tally)
    started_at: float = 0.0
    ready: bool = False
    """Has built its games since it was started."""
    asks: bool = False
    """Waits for decisions of the manager: it makes no step, and is not to blame."""
    _steps_seen: int = -1
    _progress_at: float = 0.0

    def __post_init__(self) -> None:
        self.free_slabs = list(range(self.memory.slabs))[::-1]

    @property
    def worker(self) -> int:
        return self.plan.worker

    @property
    def playing(self) -> int:
        """Slabs ordered and not yet done."""
        return sum(order.kind is OrderKind.PLAY for order in self.orders)

    def order_slab(self, version: int) -> Order:
        """The next slab to be played, with weights of a version (-1: the newest)."""
        slab = self.free_slabs.pop()
        self._begin_to_watch()
        order = Order(OrderKind.PLAY, self.next_sequence, slab, self.epoch, version)
        self.next_sequence += 1
        self.orders.append(order)
        return order

    def order_reset(self) -> Order:
        self._begin_to_watch()
        self.epoch += 1
        order = Order(OrderKind.RESET, epoch=self.epoch)
        self.orders.append(order)
        return order

    def done(self, record: SlabRecord, episodes: int) -> None:
        """Take note of a slab that was played; anything but the expected one is a fault in the protocol."""
        order = self.orders[0] if self.orders else None
        if order is None or order.kind is not OrderKind.PLAY or order.sequence != record.sequence:
            raise ParallelError(
                f"worker {self.worker} handed in slab {record.sequence}, but was to do {order}"
            )
        self.orders.popleft()
        self.committed_state, self.committed_epoch = record.state_slot, record.epoch
        self.failures.clear()
        self.outside_kills = 0
        self.tally.add(record, episodes)

    def reset_done(self, epoch: int) -> None:
        self.orders.popleft()
        self.committed_state, self.committed_epoch = None, epoch

    def idle_seconds(self) -> float:
        """For how long a worker that has something to do has made no step."""
        steps, now = int(self.memory.control[0]), time.monotonic()
        if not self.ready:
            self._steps_seen, self._progress_at = steps, self.started_at
        elif steps != self._steps_seen or not self.orders or self.asks:
            self._steps_seen, self._progress_at = steps, now
        return now - self._progress_at

    @property
    def needs_successor(self) -> bool:
        """Dead, with something left to do. One that rests or leaves still finishes what it had begun."""
        finishing = self.state in (WorkerState.PAUSED, WorkerState.DRAINING) and bool(self.orders)
        return self.handle is None and (self.state is WorkerState.FAILED or finishing)

    @property
    def may_get_order(self) -> bool:
        """Has a free slab, and is not so far behind that its pipe might fill up."""
        return bool(self.free_slabs) and self.playing < MAX_IN_FLIGHT

    def revive(self) -> None:
        """Take a worker that was removed into the crew again; it goes on with the games it had."""
        self.failures.clear()
        self.outside_kills, self.retry_at = 0, 0.0

    def _begin_to_watch(self) -> None:
        """A worker that rested is not idle: nobody may have looked at it for as long as the learner learned."""
        if not self.orders:
            self.watch_anew()

    def watch_anew(self) -> None:
        """From now on, idleness counts again."""
        self._progress_at = time.monotonic()

    def note_failure(self, error: str, from_outside: bool, max_failures: int) -> bool:
        """Count a failure; True where the worker deserves a successor, which may have to wait for ``retry_at``."""
        now = time.monotonic()
        self.last_error = error
        if from_outside:
            self.outside_kills += 1
            return self.outside_kills < OUTSIDE_KILLS
        self.failures = [*(at for at in self.failures if now - at < FAILURE_WINDOW), now]
        if len(self.failures) > 1:
            backoff = FIRST_BACKOFF * 2.0 ** (len(self.failures) - 2)
            self.retry_at = now + min(backoff, LONGEST_BACKOFF)
        return len(self.failures) < max_failures

    def snapshot(self) -> WorkerSnapshot:
        """The games as they were after the last order that is known to be done. Later states have other slots,
        so that a worker that plays on does not disturb this."""
        slot = self.committed_state
        state = b"" if slot is None else self.memory.read_state(slot)
        open_slabs = (order.sequence for order in self.orders if order.kind is OrderKind.PLAY)
        sequence = next(open_slabs, self.next_sequence)
        return WorkerSnapshot(self.worker, self.committed_epoch, sequence, state)

    def restore(self, snapshot: WorkerSnapshot) -> None:
        """Take up a snapshot, before the worker is started."""
        self.epoch = self.committed_epoch = snapshot.epoch
        self.next_sequence = snapshot.sequence
        if snapshot.state:
            # Where the worker would have left it: its next slab then writes elsewhere.
            self.committed_state = (snapshot.sequence - 1) % state_slots(self.memory.slabs)
            self.memory.write_state(self.committed_state, snapshot.state)

    def take_newest_weights(self, version: int) -> None:
        """Old weights are not kept. Orders that outlived theirs, because a collection timed out and the learner
        went on without it, are played with the newest; every transition says which those are."""
        self.orders = deque(
            replace(order, version=version) if 0 <= order.version < version else order
            for order in self.orders
        )

    def successor_plan(self) -> WorkerPlan:
        """The plan of a worker that takes up where the last one was known to be."""
        return self.plan.model_copy(
            update={"epoch": self.committed_epoch, "resume_from": self.committed_state}
        )

    def describe_place(self) -> str:
        """Where a worker stands, for somebody who wants to see its failure again."""
        order = self.orders[0] if self.orders else None
        return (
            f"seed {self.plan.seed}, games {self.plan.first_game} … {self.plan.first_game + self.plan.games - 1}, "
            f"epoch {self.committed_epoch}, slab {order.sequence if order else self.next_sequence}"
        )
