"""The loop: collect, learn, publish, and tell. Everything else watches.

One generator serves both modes. Synchronous workers rest while the learner learns, and every update sees the
experience of exactly the weights before it. Asynchronous workers play on; what they bring is some updates old,
and the buffer corrects for it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from keisei.experience.collected import Experiences
from keisei.experience.rollout import ExperienceBuffer
from keisei.games.contract import GameSpec
from keisei.learners.ppo import PPO
from keisei.parallel.parallel_manager import ParallelManager
from keisei.parallel.status import ManagerStatus
from keisei.parallel.timeline import Timeline
from keisei.training.events import Collection, Counters, GameSummary, Update
from keisei.training.publishing import Publisher

__all__ = ["Pace", "Parts", "self_play"]


@dataclass(frozen=True)
class Parts:
    """What the loop works with; ``training.wiring`` puts them together."""

    spec: GameSpec
    manager: ParallelManager
    buffer: ExperienceBuffer
    learner: PPO
    publisher: Publisher
    rollout: int
    """Transitions of an update."""


@dataclass(frozen=True)
class Pace:
    """How long a run lasts."""

    steps: float = math.inf
    seconds: float = math.inf
    clock: Callable[[], float] = time.monotonic

    def progress(self, counters: Counters) -> float:
        """The share of the run that is behind it, by transitions or by the clock, whichever is more."""
        return min(1.0, max(counters.transitions / self.steps, counters.seconds / self.seconds))

    def is_over(self, counters: Counters) -> bool:
        return self.progress(counters) >= 1.0


def self_play(parts: Parts, pace: Pace, start: Counters) -> Iterator[Update]:
    """Train until the pace says it is enough; gives word of each update when its weights are published."""
    counters, began = start, pace.clock() - start.seconds
    while not pace.is_over(counters):
        progress = pace.progress(counters)
        experiences, games, collection = _collect(parts)
        laps = _Laps(parts.manager.timeline)
        parts.buffer.take(experiences.slabs)
        parts.manager.release_experiences()
        preparing = laps.lap("prepare")
        report = parts.learner.update(parts.buffer.view(), progress)
        learning = laps.lap("learn")
        parts.publisher.publish(report)
        publishing = laps.lap("publish")
        counters = replace(
            counters,
            update=counters.update + 1,
            transitions=counters.transitions + collection.transitions,
            games=counters.games + games.games,
            seconds=pace.clock() - began,
        )
        yield Update(
            counters,
            pace.progress(counters),
            games,
            collection,
            report,
            learn_seconds=preparing + learning + publishing,
            prepare_seconds=preparing,
            publish_seconds=publishing,
        )


class _Laps:
    """Times what the learner does, one thing after the other, and puts each into its lane of the timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._began = time.monotonic()

    def lap(self, name: str) -> float:
        """The seconds since the last lap, which were spent on this."""
        began, self._began = self._began, time.monotonic()
        self._timeline.span("learner", name, began, self._began - began)
        return self._began - began


def _collect(parts: Parts) -> tuple[Experiences, GameSummary, Collection]:
    manager, began = parts.manager, time.monotonic()
    before = manager.get_status()
    experiences = manager.collect_experiences(parts.rollout)
    while not len(experiences):  # asynchronous workers may have nothing yet
        experiences = manager.collect_experiences(parts.rollout)
    seconds = time.monotonic() - began
    after = manager.get_status()
    collection = Collection(
        transitions=len(experiences),
        seconds=seconds,
        policy_lag=experiences.policy_lag,
        queue_depth=after.queue_info["filled"],
        worker_utilisation=utilisation(before, after, seconds),
        workers=after.active_workers,
        restarts=after.restarts,
        dropped=after.drops.lagging,
    )
    return experiences, summarise(experiences, parts.spec), collection


def summarise(experiences: Experiences, spec: GameSpec) -> GameSummary:
    """Count the games that ended in this experience."""
    plies: list[int] = []
    endings = np.zeros(len(spec.endings), np.int64)
    truncated = firsts = draws = 0
    rewards = 0.0
    for item in experiences:
        slab = item.slab
        done = slab.terminated | slab.truncated
        # Where several seats act at once, the slots of those that rest are 0.
        ply = slab.ply.reshape(*done.shape, -1).max(axis=2)
        plies += (ply[done] + 1).tolist()
        endings += np.bincount(slab.ending[done], minlength=len(endings))
        if spec.seats > 1:
            scores = slab.score[slab.terminated]  # a game that is cut off has no winner
            firsts += int((scores[:, 0] > scores[:, 1:].max(axis=1)).sum())
            draws += int((scores == scores[:, :1]).all(axis=1).sum())
        truncated += int(slab.truncated.sum())
        # Of all steps: what a game gave before this experience began, others give that go on after it.
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
    """Of the time that all workers had, the share in which they played."""
    played = _played_seconds(after) - _played_seconds(before)
    return min(1.0, played / (seconds * max(1, after.active_workers))) if seconds > 0 else 0.0


def _played_seconds(status: ManagerStatus) -> float:
    return sum(
        worker.transitions / worker.steps_per_second for worker in status.workers if worker.steps_per_second
    )
