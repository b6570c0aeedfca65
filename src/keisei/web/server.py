"""Runs the dashboard until Ctrl-C."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from keisei.errors import ConfigError
from keisei.web.access import Access, is_loopback
from keisei.web.app import make_app

__all__ = ["Server"]

MOST_CLIENTS = 200
"""Connections at once. Further ones get 503."""
SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Server:
    """A dashboard at an address. ``token`` may be left out on loopback; then a new one is made."""

    root: Path
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    names: tuple[str, ...] = ()

    def access(self) -> Access:
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise ConfigError(f"a token has at least {SHORTEST_TOKEN} letters; this one can be guessed")
        if self.token is None and not is_loopback(self.host):
            raise ConfigError(
                f"others can reach {self.host}, so the dashboard needs a token there: write one into a file for "
                f"--token-file, or into the environment variable KEISEI_TOKEN; or serve on 127.0.0.1"
            )
        return Access.of(self.host, self.token, self.names)

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
        # No access log: nothing that a browser sends is written anywhere.
        config = uvicorn.Config(
            make_app(self.root, access, lambda: server.should_exit),
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            limit_concurrency=MOST_CLIENTS,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=5,
        )
        server = uvicorn.Server(config)
        return server
