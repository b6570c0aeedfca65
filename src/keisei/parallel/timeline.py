"""Records what workers and learner do, as spans and marks. It is exported as a trace for Chrome and Perfetto."""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from keisei.experience.slab import SlabRecord

CAPACITY = 20_000
"""The number of events that are kept. Older ones are dropped, so that memory does not grow in a long run."""


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    lane: str
    name: str
    started: float
    """Time by ``time.monotonic``."""
    seconds: float | None
    """None for a mark, which has no length."""
    details: tuple[tuple[str, float], ...] = ()


class Timeline:
    """Holds the latest events of a manager and its workers."""

    def __init__(self) -> None:
        self.events: deque[TimelineEvent] = deque(maxlen=CAPACITY)

    def span(self, lane: str, name: str, started: float, seconds: float) -> None:
        self.events.append(TimelineEvent(lane, name, started, seconds))

    def mark(self, lane: str, name: str) -> None:
        self.events.append(TimelineEvent(lane, name, time.monotonic(), None))

    def slab(self, record: SlabRecord) -> None:
        lane = f"worker {record.worker}"
        if record.waited_seconds > 0:
            began = record.started - record.waited_seconds
            self.events.append(TimelineEvent(lane, "wait", began, record.waited_seconds))
        details = (
            ("table", float(record.table)),
            ("sequence", float(record.sequence)),
            ("version", float(record.version)),
            ("transitions", float(record.transitions)),
            ("game seconds", record.game_seconds),
            ("policy seconds", record.policy_seconds),
        )
        self.events.append(
            TimelineEvent(lane, f"table {record.table}", record.started, record.seconds, details)
        )

    def export(self, path: str | Path) -> None:
        """Writes the events in the trace event format (JSON), which chrome://tracing and ui.perfetto.dev open."""
        lanes = {lane: number for number, lane in enumerate(sorted({event.lane for event in self.events}))}
        names = [
            {"ph": "M", "name": "thread_name", "pid": 0, "tid": number, "args": {"name": lane}}
            for lane, number in lanes.items()
        ]
        Path(path).write_text(
            json.dumps(
                {"traceEvents": names + [_as_trace(event, lanes[event.lane]) for event in self.events]}
            )
        )


def _as_trace(event: TimelineEvent, lane: int) -> dict[str, object]:
    trace: dict[str, object] = {"name": event.name, "pid": 0, "tid": lane, "ts": event.started * 1e6}
    if event.seconds is None:
        return trace | {"ph": "i", "s": "t"}
    return trace | {"ph": "X", "dur": event.seconds * 1e6, "args": dict(event.details)}
