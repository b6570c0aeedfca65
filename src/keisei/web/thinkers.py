"""Processes that think for pages. A thought has a deadline, and ends when the one who asked has left.

Nothing can stop a thread, and code that holds the interpreter stops all of them. A process can be killed whatever it
does, so a thought that must end takes its process along. The next one starts a new process.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from keisei.errors import KeiseiError
from keisei.machine.new_processes import deaf_to_terminal, main_left_out, own_fork_server
from keisei.machine.start_method import chosen_start_method
from keisei.web.thoughts import serve_thoughts

__all__ = ["Thinkers", "ThinkingError"]

MOST_THINKERS = 2
THINKING_SECONDS = 10.0
"""How long a thought may take."""
WAITING_SECONDS = 30.0
"""How long a thought waits for a process that is free."""
STARTING_SECONDS = 60.0
"""How long a process may take to start, and to import torch from a slow disk on a busy machine."""
LONGEST_ANSWER = 64 << 20
PRELOAD = ("keisei.web.thoughts",)
_STARTING = threading.Lock()
"""Processes start one at a time: for a moment, the program's main module is left out."""


class ThinkingError(KeiseiError):
    """A thought took too long, found no process, or lost it."""


class Thinkers:
    """A few processes that think, one thought each. They start when they are needed."""

    def __init__(self, root: Path) -> None:
        self._all = [_Thinker(root) for _ in range(MOST_THINKERS)]
        # The one that thought last is asked first: it has loaded what the next thought needs.
        self._free: asyncio.LifoQueue[_Thinker] = asyncio.LifoQueue()
        for thinker in self._all:
            self._free.put_nowait(thinker)
        self._is_closed = False

    async def think(self, thought: str, *arguments: Any, needs_torch: bool = True) -> Any:
        """Runs a function of ``thoughts`` and returns its result. Cancelling this call ends the thought."""
        thinker = await self._next_free()
        try:
            return await thinker.think(thought, arguments, needs_torch)
        finally:
            self._free.put_nowait(thinker)

    async def _next_free(self) -> _Thinker:
        try:
            async with asyncio.timeout(WAITING_SECONDS):
                thinker = await self._free.get()
        except TimeoutError:
            raise ThinkingError(
                f"{MOST_THINKERS} other requests are being thought about, and none has ended within "
                f"{WAITING_SECONDS:g} s; try again soon"
            ) from None
        if self._is_closed:
            self._free.put_nowait(thinker)
            raise ThinkingError("the server ends")
        return thinker

    def close(self) -> None:
        """Ends all thoughts at once."""
        self._is_closed = True
        for thinker in self._all:
            thinker.kill()


class _Thinker:
    """A place for one process at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: multiprocessing.process.BaseProcess | None = None
        self._socket: socket.socket | None = None
        """Our end of the line to the process, which ends when this is closed."""
        self._line: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._is_warm = False

    async def think(self, thought: str, arguments: tuple[Any, ...], needs_torch: bool) -> Any:
        try:
            await self._prepare(needs_torch)
            answer = await self._ask(THINKING_SECONDS, thought, *arguments)
        except BaseException:  # also if the one who asked has left
            self.kill()
            raise
        if "error" in answer:
            raise _error(answer["error"], answer["text"])
        return answer["found"]

    async def _prepare(self, needs_torch: bool) -> None:
        if self._line is not None and self._line[0].at_eof():  # it has ended since its last thought
            self.kill()
        if self._line is None:
            await asyncio.to_thread(self._start)
            self._line = await asyncio.open_unix_connection(sock=self._socket, limit=LONGEST_ANSWER)
            await self._ask(STARTING_SECONDS, "there")
        if needs_torch and not self._is_warm:
            await self._ask(STARTING_SECONDS, "warmed_up")
            self._is_warm = True

    async def _ask(self, seconds: float, thought: str, *arguments: Any) -> dict[str, Any]:
        assert self._line is not None
        reader, writer = self._line
        try:
            async with asyncio.timeout(seconds):
                writer.write(json.dumps([thought, arguments]).encode() + b"\n")
                answer: dict[str, Any] = json.loads(await reader.readline())
                return answer
        except TimeoutError:
            raise ThinkingError(
                f"this took longer than {seconds:g} s, and a page waits no longer; ask for a shallower search or a "
                f"shorter game, or use `keisei play`, which has no such limit"
            ) from None
        except (ValueError, OSError):  # the line was closed, perhaps in the middle of an answer
            raise ThinkingError("the process that thought about this has ended; try again") from None

    def _start(self) -> None:
        """Starts a process. If nobody waits until it has started, the next thought uses it."""
        method = chosen_start_method()
        context: Any = multiprocessing.get_context(method)
        with (
            _STARTING,
            deaf_to_terminal(),
            main_left_out(),
            own_fork_server(PRELOAD) if method == "forkserver" else nullcontext(),
        ):
            if self._process is not None:
                return
            ours, theirs = socket.socketpair()
            arguments = (theirs, self._root)
            process = context.Process(
                target=serve_thoughts, args=arguments, name="keisei-thinker", daemon=True
            )
            process.start()
            theirs.close()
            self._process, self._socket = process, ours

    def kill(self) -> None:
        """Ends the process, whatever it does."""
        process, end, line = self._process, self._socket, self._line
        self._process, self._socket, self._line, self._is_warm = None, None, None, False
        if line is not None:
            line[1].close()
        elif end is not None:
            end.close()
        if process is not None:
            process.kill()


def _error(kind: str, text: str) -> KeiseiError:
    """Makes again the error that a thought has raised in its process."""
    return {found.__name__: found for found in _kinds(KeiseiError)}.get(kind, KeiseiError)(text)


def _kinds(kind: type[KeiseiError]) -> Iterator[type[KeiseiError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)
