"""What every training loop shares: its parts, its length, and the events it makes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from keisei.experience.collected import Experiences
from keisei.experience.contract import Buffer
from keisei.games.contract import GameSpec
from keisei.learners.contract import Learner, Report
from keisei.parallel.parallel_manager import ParallelManager
from keisei.parallel.status import ManagerStatus
from keisei.parallel.timeline import Timeline
from keisei.runs.live import Glimpse
from keisei.training.events import CollectionSummary, Counters, GameSummary, Update
from keisei.training.league.opponents import OpponentManager
from keisei.training.regimes.publishing import Publisher

__all__ = [
    "AnyParts",
    "Laps",
    "Pace",
    "Parts",
    "collect",
    "counted",
    "hand_over",
    "play_and_learn",
    "summarise",
    "told",
    "utilisation",
]


OwnLearner = TypeVar("OwnLearner", bound=Learner[Any])


@dataclass(frozen=True)
class Parts(Generic[OwnLearner]):
    """What a loop works with; ``training.wiring`` builds them. Buffer and learner belong to one regime and use the
    same kind of view."""

    spec: GameSpec
    manager: ParallelManager
    buffer: Buffer[Any]
    learner: OwnLearner
    publisher: Publisher
    rollout: int
    """Transitions of an update."""
    league: OpponentManager | None = None
    """The opponents of the learner; None if it only meets itself and those of the seating."""


AnyParts: TypeAlias = Parts[Learner[Any]]
"""Parts whose regime does not matter."""


@dataclass(frozen=True)
class Pace:
    """How long a run lasts."""

    steps: float = math.inf
    seconds: float = math.inf
    clock: Callable[[], float] = time.monotonic
    games: float = math.inf
    updates: float = math.inf

    def progress(self, counters: Counters) -> float:
        """Computes the share of the run that is done, by transitions, the clock, games or updates, whichever is
        most."""
        done = (
            counters.transitions / self.steps,
            counters.seconds / self.seconds,
            counters.games / self.games,
            counters.update / self.updates,
        )
        return min(1.0, max(done))

    def is_over(self, counters: Counters) -> bool:
        return self.progress(counters) >= 1.0


def play_and_learn(parts: Parts[OwnLearner], pace: Pace, start: Counters) -> Iterator[Update]:
    """Collects, learns, publishes and yields an update, until the run is over. It is the loop of every regime in which
    one network learns. It calls no logger and writes no file.

    Synchronous workers rest while the learner learns, so a run with the same seed ends with the same weights.
    Asynchronous workers play on. What they play is some updates old, and the buffer corrects for this.
    """
    counters, began = start, pace.clock() - start.seconds
    while not pace.is_over(counters):
        progress = pace.progress(counters)
        experiences, games, collection = collect(parts, counters, progress)
        laps = Laps(parts.manager.timeline)
        hand_over(parts, experiences)
        laps.lap("prepare")
        report = parts.learner.learn(parts.buffer.view(), progress)
        laps.lap("learn")
        counters = counted(counters, games, collection, pace.clock() - began)
        progress = pace.progress(counters)
        parts.publisher.publish(parts.learner.behaviour(progress), report)
        laps.lap("publish")
        yield told(counters, progress, games, collection, report, laps, parts.buffer.numbers())


class Laps:
    """Measures the steps of the learner, one after the other, and adds each to the timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._began = time.monotonic()
        self.seconds: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Ends a step: the time since the last lap belongs to it."""
        began, self._began = self._began, time.monotonic()
        self._timeline.span("learner", name, began, self._began - began)
        self.seconds[name] = self._began - began


def collect(
    parts: Parts[OwnLearner], counters: Counters, progress: float
) -> tuple[Experiences, GameSummary, CollectionSummary]:
    """Collects the experience of one update, with a summary of it. The league decides whom the learner meets."""
    manager, league, began = parts.manager, parts.league, time.monotonic()
    if league is not None:
        league.prepare(counters, progress, lambda: parts.learner.behaviour(progress))
    before = manager.get_status()
    experiences = manager.collect_experiences(parts.rollout)
    while not len(experiences):  # asynchronous workers may have nothing yet
        experiences = manager.collect_experiences(parts.rollout)
    seconds = time.monotonic() - began
    after = manager.get_status()
    collection = CollectionSummary(
        transitions=len(experiences),
        seconds=seconds,
        policy_lag=experiences.policy_lag,
        queue_depth=after.queue_info["filled"],
        worker_utilisation=utilisation(before, after, seconds),
        workers=after.active_workers,
        restarts=after.restarts,
        dropped=after.drops.lagging,
        league=None if league is None else league.take(experiences),
        glimpse=glimpse_of(experiences),
    )
    return experiences, summarise(experiences, parts.spec), collection


LARGEST_GLIMPSE = 1024
"""Bytes of a packed row. Larger ones would cost time that only those who watch could notice."""
LONGEST_GLIMPSE = 64


def glimpse_of(experiences: Experiences) -> Glimpse | None:
    """Gets the last plies of the first game of the first slab."""
    slab, table = experiences.slabs[0].slab, experiences.slabs[0].record.table
    if slab.shape.packed_bytes > LARGEST_GLIMPSE:
        return None
    steps = np.flatnonzero(slab.acting[: slab.shape.steps, 0])[-LONGEST_GLIMPSE:]
    return Glimpse(
        table=table,
        packed=tuple(row.tobytes().hex() for row in slab.packed[steps, 0]),
        seats=tuple(slab.seat[steps, 0].tolist()),
        plies=tuple(slab.ply[steps, 0].tolist()),
        actions=tuple(slab.action[steps, 0].tolist()),
        values=tuple(slab.value[steps, 0].tolist()),
    )


def counted(before: Counters, games: GameSummary, collection: CollectionSummary, seconds: float) -> Counters:
    """Gets the counters after an update."""
    return replace(
        before,
        update=before.update + 1,
        transitions=before.transitions + collection.transitions,
        games=before.games + games.games,
        seconds=seconds,
    )


def hand_over(parts: Parts[OwnLearner], experiences: Experiences) -> None:
    """Hands experience to the buffer, and returns all slabs that the buffer does not keep to the workers."""
    leases = parts.buffer.take(experiences.slabs)
    parts.manager.end_leases(leases.ended)
    parts.manager.release_experiences(keep=leases.kept)


def told(
    counters: Counters,
    progress: float,
    games: GameSummary,
    collection: CollectionSummary,
    report: Report,
    laps: Laps,
    buffer: Mapping[str, float],
) -> Update:
    """Makes the event of one update. Counters and progress are those after it."""
    return Update(
        counters,
        progress,
        games,
        collection,
        report,
        learn_seconds=sum(laps.seconds.values()),
        prepare_seconds=laps.seconds.get("prepare", 0.0),
        publish_seconds=laps.seconds.get("publish", 0.0),
        buffer=buffer,
    )


def summarise(experiences: Experiences, spec: GameSpec) -> GameSummary:
    """Summarises the games that ended in this experience."""
    plies: list[int] = []
    endings = np.zeros(len(spec.endings), np.int64)
    truncated = firsts = draws = 0
    rewards = 0.0
    for item in experiences:
        slab = item.slab
        done = slab.terminated | slab.truncated
        # If several seats act at once, slots of seats that rest are 0.
        ply = slab.ply.reshape(*done.shape, -1).max(axis=2)
        plies += (ply[done] + 1).tolist()
        endings += np.bincount(slab.ending[done], minlength=len(endings))
        if spec.seats > 1:
            scores = slab.score[slab.terminated]  # a truncated game has no winner
            firsts += int((scores[:, 0] > scores[:, 1:].max(axis=1)).sum())
            draws += int((scores == scores[:, :1]).all(axis=1).sum())
        truncated += int(slab.truncated.sum())
        # The sum over all steps. Rewards of games from before this experience are missing, and those of unfinished
        # games are included; on average this cancels.
        rewards += float(slab.reward[:, :, 0].sum())
    games = len(plies)
    return GameSummary(
        games=games,
        mean_plies=_mean(sum(plies), games),
        mean_reward=_mean(rewards, games),
        first_wins=_mean(firsts, games),
        draws=_mean(draws, games),
        truncations=_mean(truncated, games),
        endings={name: int(count) for name, count in zip(spec.endings, endings, strict=True) if count},
    )


def _mean(total: float, count: int) -> float:
    return total / count if count else math.nan


def utilisation(before: ManagerStatus, after: ManagerStatus, seconds: float) -> float:
    """Computes the share of the workers' time in which they played."""
    played = sum(worker.seconds for worker in after.workers) - sum(
        worker.seconds for worker in before.workers
    )
    return min(1.0, played / (seconds * max(1, after.active_workers))) if seconds > 0 else 0.0
