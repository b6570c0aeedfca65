"""Server-sent events: what is new, for all who watch.

One task looks at each watched run, whether one page or fifty show it. So clients cost the machine almost nothing, and
the trainer nothing at all: it is not asked, only its files are.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from keisei.errors import KeiseiError
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunStatus
from keisei.web.catalogue import Catalogue, Stamp, stamp_of
from keisei.web.details import league_of, live_of, new_points

__all__ = ["MOST_STREAMS", "Streams", "TooManyError"]

LOOK_SECONDS = 1.0
LEAGUE_SECONDS = 10.0
"""How often the league of a run is read. It may have thousands of results."""
MOST_STREAMS = 100
_BACKLOG = 8
"""Events that wait for a slow client. Older ones are dropped; the newest tell enough."""
_QUIET_SECONDS = 15.0
"""After this long without an event, a comment shows that the line is alive."""


class TooManyError(KeiseiError):
    """There are too many streams."""


@dataclass
class _Channel:
    """The listeners to one run or to the list of runs, and the task that reads it for them."""

    listeners: set[asyncio.Queue[bytes | None]] = field(default_factory=set)
    """Their events; None ends a stream."""
    task: asyncio.Task[None] | None = None

    def tell(self, event: bytes | None) -> None:
        for queue in self.listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)


class Streams:
    """Opens streams. A channel begins with its first listener and ends with its last."""

    def __init__(self, catalogue: Catalogue, is_closing: Callable[[], bool]) -> None:
        """``is_closing`` tells whether the server ends. Streams end then; they never do by themselves."""
        self._catalogue, self._is_closing = catalogue, is_closing
        self._channels: dict[str, _Channel] = {}
        self.count = 0

    def open(self, name: str) -> Response:
        """Streams the events of a run, or of the list of runs if the name is empty. A stream counts from now on, so
        that a burst of requests opens no more than are allowed."""
        if self.count >= MOST_STREAMS:
            raise TooManyError(f"{MOST_STREAMS} pages watch already; close some of them")
        run = self._catalogue.run(name) if name else None
        channel = self._channels.setdefault(name, _Channel())
        if channel.task is None:
            look = self._look_at_list() if run is None else self._look_at_run(run)
            channel.task = asyncio.create_task(self._watch(channel, look))
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_BACKLOG)
        channel.listeners.add(queue)
        self.count += 1
        return _Stream(_events(queue), lambda: self._close(name, channel, queue))

    def _close(self, name: str, channel: _Channel, queue: asyncio.Queue[bytes | None]) -> None:
        self.count -= 1
        channel.listeners.discard(queue)
        if not channel.listeners and channel.task is not None:
            channel.task.cancel()
            self._channels.pop(name, None)

    async def _watch(self, channel: _Channel, look: Callable[[], bytes | None]) -> None:
        """Looks for news at intervals, and sends them to all listeners. If it fails, their streams end, and pages open
        new ones."""
        try:
            while not self._is_closing():
                with suppress(KeiseiError, OSError):  # what cannot be read now may be read later
                    event = await asyncio.to_thread(look)
                    if event is not None:
                        channel.tell(event)
                for _ in range(4):
                    if not self._is_closing():
                        await asyncio.sleep(LOOK_SECONDS / 4)
        finally:
            channel.tell(None)

    def _look_at_list(self) -> Callable[[], bytes | None]:
        seen: dict[str, Any] = {}

        def look() -> bytes | None:
            rows = {row["name"]: row for row in self._catalogue.rows()}
            changed = [row for name, row in rows.items() if seen.get(name) != row]
            gone = [name for name in seen if name not in rows]
            was_empty = not seen
            seen.clear()
            seen.update(rows)
            return None if was_empty or not (changed or gone) else _event({"runs": changed, "gone": gone})

        return look

    def _look_at_run(self, run: RunDirectory) -> Callable[[], bytes | None]:
        seen: tuple[Stamp, RunStatus] | None = None
        update = _newest_update(run)
        league_is_due, league_at = True, 0.0

        def look() -> bytes | None:
            nonlocal seen, update, league_is_due, league_at
            now = stamp_of(run), run.status()  # a trainer that was killed has changed no file
            is_league_read = league_is_due and time.monotonic() >= league_at
            if now == seen and not is_league_read:
                return None
            update, points = new_points(run, update)
            seen, status = now, now[1]
            told = {
                "state": status.state.value,
                "detail": status.detail,
                "live": live_of(run),
                "points": points,
            }
            league_is_due = league_is_due or bool(points)
            if is_league_read:
                league_is_due, league_at = False, time.monotonic() + LEAGUE_SECONDS
                with suppress(KeiseiError):
                    told["league"] = league_of(run)
            return _event(told)

        return look


class _Stream(StreamingResponse):
    """Sends events. However it ends, also before it has begun, its place is given back once."""

    def __init__(self, events: AsyncIterator[bytes], close: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers={"cache-control": "no-store"})
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._close()


def _newest_update(run: RunDirectory) -> int:
    with suppress(KeiseiError), RunDatabase(run.database, read_only=True) as database:
        progress = database.progress()
        return 0 if progress is None else progress.update
    return 0


async def _events(queue: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
    yield b": hello\n\n"
    while True:
        try:
            event = await asyncio.wait_for(queue.get(), _QUIET_SECONDS)
        except TimeoutError:
            event = b": still here\n\n"
        if event is None:
            return
        yield event


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(content, default=str).encode() + b"\n\n"
