"""Who may do what: checks that every request passes before anything else sees it.

- The name in ``Host`` must be one of ours, and a request that a page of another origin makes is refused. So a hostile
  page that a person opens in the same browser can neither read runs (DNS rebinding) nor change them.
- What changes a run needs the token, in a header. On another address than loopback, and if the server is private,
  reading needs it too.
- Requests are small, and answers say that scripts come from here alone.
"""

from __future__ import annotations

import hmac
import json
import secrets
from dataclasses import dataclass, field
from ipaddress import ip_address

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LARGEST_BODY", "TRUSTED", "Access", "Guard", "is_loopback"]

LARGEST_BODY = 256 << 10
"""Bytes of a request. A game of thousands of moves fits."""
_TOO_LARGE = f"a request has at most {LARGEST_BODY} bytes"
TRUSTED = "keisei.trusted"
"""The entry of a scope that says whether the token was given."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_GUARDED = ("/api/", "/metrics")
"""The paths with data of runs. Pages and scripts have none."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def is_loopback(host: str) -> bool:
    """Checks if a server at this address can be reached from its own machine alone. Of names, only ``localhost``
    counts: ``127.evil.example`` is a name too."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


@dataclass(frozen=True)
class Access:
    """The rules of one server."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    hosts: frozenset[str] = _LOOPBACK
    """The names under which the server may be called, without the port."""
    reading_is_free: bool = True
    """Whether reading works without the token."""

    @classmethod
    def of(cls, host: str, token: str | None, names: tuple[str, ...] = (), private: bool = False) -> Access:
        """Makes the rules for a server at this address. ``names`` are further names of the machine. A private server
        asks for the token on loopback too."""
        own = f"[{host}]" if ":" in host else host
        hosts = _LOOPBACK | {name.lower() for name in (own, *names)}
        given = {} if token is None else {"token": token}
        return cls(hosts=hosts, reading_is_free=is_loopback(host) and not private, **given)

    def knows(self, host: str) -> bool:
        """Checks if a ``Host`` header names this server."""
        name, _, port = host.lower().rpartition(":")
        return (name if name and port.isdigit() else host.lower()) in self.hosts

    def trusts(self, authorization: str) -> bool:
        """Checks if an ``Authorization`` header has the token. The comparison takes the same time for every wrong
        token."""
        kind, _, given = authorization.partition(" ")
        return hmac.compare_digest(given.strip().encode(), self.token.encode()) and kind.lower() == "bearer"


class Guard:
    """Lets requests through that keep the rules, and answers the others."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        answer = _Answer(send)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await answer.refuse(*refusal)
            return
        await self._app(scope, _counted(receive), answer.send)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host, path = headers.get("host", ""), scope["path"]
        if not self._access.knows(host):
            return 421, f"this server is not {host[:100]!r}; name it with --name if it should be"
        guarded = path.startswith(_GUARDED)
        if _is_foreign(headers, host) and (guarded or scope["method"] not in ("GET", "HEAD")):
            return 403, "a page of another site may not ask this server"
        if (
            headers.get("content-length", "0").isdigit()
            and int(headers.get("content-length", "0")) > LARGEST_BODY
        ):
            return 413, _TOO_LARGE
        given = headers.get("authorization", "")
        trusted = scope[TRUSTED] = self._access.trusts(given)
        if given and not trusted:
            return 401, "this token is wrong; the terminal of keisei serve shows the right one"
        if guarded and not trusted and not self._access.reading_is_free:
            return 401, "this server needs its token; the terminal of keisei serve shows it"
        return None


def _is_foreign(headers: dict[str, str], host: str) -> bool:
    """Checks if a request comes from a page of another origin. Programs that are no browsers send neither header."""
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        return True
    return headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")


def _counted(receive: Receive) -> Receive:
    """Stops reading a body that is too large, also one whose length was not told."""
    size = 0

    async def counting() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > LARGEST_BODY:
            raise HTTPException(413, _TOO_LARGE)
        return message

    return counting


class _Answer:
    """Sends an answer, with the headers that every answer has."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *(header for header in _HEADERS if header[0] not in present),
            ]
        await self._send(message)

    async def refuse(self, status: int, why: str) -> None:
        body = json.dumps({"error": why}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})
