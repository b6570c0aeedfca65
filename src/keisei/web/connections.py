"""Limits of connections: how long they may wait, and how many there may be. Connections that send or read nothing make
room for others.

Alone, uvicorn waits for a request without end, and counts connections without regard to their address.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Connection"]

MOST_CONNECTIONS = 300
MOST_FROM_ONE = 150
"""Connections from one address. A person behind a tunnel or a team behind a proxy has a single one."""
HEAD_SECONDS = 5.0
"""How long the head of a request may take, from the moment when the connection is free for it."""
BODY_SECONDS = 10.0
"""How long its body may take."""
TAKING_SECONDS = 30.0
"""How long a client may read nothing of an answer that is too large to be buffered."""
SILENT_SECONDS = 1.0
"""A new connection that sends no request for this long is closed when its place is needed."""


class Connection(H11Protocol):
    """A connection with limits."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._timer: TimerHandle | None = None
        self._taking: TimerHandle | None = None
        self._awaits = ""
        """What is due from the client: the head or the body of a request, or nothing."""
        self._free_since = self.loop.time()
        self._has_asked = False

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    # What uvicorn and the loop tell.

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()
        self._find_place()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._timer, self._taking):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking = self.loop.call_later(TAKING_SECONDS, self.cut)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._taking is not None:
            self._taking.cancel()

    # Time.

    def cut(self) -> None:
        self.transport.abort()

    def _look(self) -> None:
        """Sets the time until which the client must have sent what is due. More of the same gives no more time."""
        due = self._due()
        self._has_asked |= due != "head"
        if due == self._awaits:
            return
        self._awaits = due
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due and not self.transport.is_closing():
            self._free_since = self.loop.time()
            self._timer = self.loop.call_later(HEAD_SECONDS if due == "head" else BODY_SECONDS, self.cut)

    def _due(self) -> str:
        if self.cycle is None or self.cycle.response_complete:
            return "head"
        return "body" if self.cycle.more_body else ""

    # Numbers.

    def _find_place(self) -> None:
        """Takes the place of an idle connection if there are too many, else refuses the request that will come."""
        others = [
            other for other in self.connections if isinstance(other, Connection) and other._counts(self)
        ]
        own = [other for other in others if other.address == self.address]
        crowd = own if len(own) >= MOST_FROM_ONE else others if len(others) >= MOST_CONNECTIONS else None
        if crowd is None:
            return
        idle = [other for other in crowd if other._may_go()]
        if idle:
            min(idle, key=lambda other: other._free_since).cut()
        elif len(crowd) >= 2 * MOST_CONNECTIONS:
            self.cut()
        else:
            self.limit_concurrency = 0  # uvicorn answers with 503, and closes

    def _may_go(self) -> bool:
        """Checks if nothing is lost with this connection: it has its answer, or has long had time to ask."""
        if self._awaits != "head" or self.transport.get_write_buffer_size():
            return False
        return self._has_asked or self._free_since <= self.loop.time() - SILENT_SECONDS

    def _counts(self, newcomer: Connection) -> bool:
        return self is not newcomer and not self.transport.is_closing()
