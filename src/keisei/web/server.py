"""Runs the dashboard until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from keisei.errors import ConfigError
from keisei.web.access import Access, is_loopback
from keisei.web.app import Dashboard
from keisei.web.connections import Connection

__all__ = ["Server"]

SHORTEST_TOKEN = 16
PARTING_SECONDS = 1.0
"""How long answers may still take when the server ends."""
ENDING_SECONDS = 4.0
"""After this long the process ends in any case, even if a read waits for a disk that does not answer."""


@dataclass(frozen=True)
class Server:
    """A dashboard at an address. ``token`` may be left out on loopback; then a new one is made."""

    root: Path
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    names: tuple[str, ...] = ()
    private: bool = False
    """Whether reading needs the token on loopback too."""
    presets: Callable[[], Mapping[str, Mapping[str, Any]]] = dict
    """Gets the settings of all presets, to compare runs with."""

    def access(self) -> Access:
        if self.token is not None:
            _check_token(self.token)
        if self.token is None and not is_loopback(self.host):
            raise ConfigError(
                f"others can reach {self.host}, so the dashboard needs a token there: write one into a file for "
                f"--token-file, or into the environment variable KEISEI_TOKEN; or serve on 127.0.0.1"
            )
        return Access.of(self.host, self.token, self.names, self.private)

    def listen(self) -> socket.socket:
        """Opens the socket, so that a port that is taken is told before anything starts."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self.host, self.port))
            listening.listen()  # from now on a browser waits for an answer, and is not refused
        except OSError as error:
            listening.close()
            raise ConfigError(
                f"the dashboard cannot listen on {self.host}:{self.port}: {error.strerror}; choose another --port"
            ) from error
        return listening

    def uvicorn(self, access: Access) -> uvicorn.Server:
        dashboard = Dashboard(self.root, lambda: server.should_exit, self.presets)
        # No access log, and no warnings about odd requests: nothing that a stranger sends is written anywhere.
        config = uvicorn.Config(
            dashboard.app(access),
            http=Connection,
            ws="none",
            log_level="error",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        server = _Ending(config, dashboard.close)
        return server


def _check_token(token: str) -> None:
    if len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            f"a token has at least {SHORTEST_TOKEN} letters, and this one has {len(token)}: it can be guessed"
        )
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise ConfigError(
            "a token is one line of letters, digits and signs in ASCII, without spaces: browsers send it in a header"
        )


class _Ending(uvicorn.Server):
    """Ends within five seconds of Ctrl-C or SIGTERM, whatever it does, and with exit code 0."""

    def __init__(self, config: uvicorn.Config, close: Callable[[], None]) -> None:
        super().__init__(config)
        self._close = close

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handles signals. Uvicorn would raise them again at the end, but here they are a normal way to end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        earlier = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            last_resort = threading.Timer(ENDING_SECONDS, os._exit, (0,))
            last_resort.daemon = True
            last_resort.start()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._close()
        asyncio.get_running_loop().call_later(PARTING_SECONDS, self._cut_all)
        await super().shutdown(sockets)

    def _cut_all(self) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection):
                connection.cut()
