"""Runs the engine of another program and speaks USI with it. Every wait has an end."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO

from keisei.errors import EngineError, EngineTimeoutError

__all__ = ["UsiClient"]

START_SECONDS = 60.0
"""How long an engine may take to load."""
_END_SECONDS = 2.0
_STALE_SECONDS = 1.0
_LAST_WORDS = 5


class UsiClient:
    """An engine in a process of its own. After an error it is ended; ``start`` starts it again."""

    def __init__(self, command: Sequence[str], options: Mapping[str, str] | None = None) -> None:
        self.command = list(command)
        self.options = dict(options or {})
        self.name = shlex.join(self.command)
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._last_words: deque[str] = deque(maxlen=_LAST_WORDS)

    def start(self, seconds: float = START_SECONDS) -> None:
        """Starts the engine and waits until it is ready. Nothing happens if it runs."""
        if self._process is not None and self._process.poll() is None:
            return
        self.end()
        self._lines = SimpleQueue()
        try:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as error:
            raise EngineError(
                f"the engine {self.name} cannot be started: {error.strerror or error}"
            ) from error
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        _in_background(_read_answers, self._process.stdout, self._lines)
        self._errors = _in_background(_read_errors, self._process.stderr, self._last_words)
        deadline = time.monotonic() + seconds
        self._send("usi")
        self._wait_for("usiok", deadline)
        for name, value in self.options.items():
            self._send(f"setoption name {name} value {value}")
        self._send("isready")
        self._wait_for("readyok", deadline)

    def new_game(self) -> None:
        """Starts the engine if it does not run, and tells it that a game begins."""
        self.start()
        self._send("usinewgame")

    def go(self, position: str, words: str, seconds: float) -> str:
        """Gives the engine's move, ``resign`` or ``win``. If it takes longer than ``seconds``, that is an
        ``EngineTimeoutError``."""
        self._send(f"position {position}")
        self._send(f"go {words}")
        try:
            return self._wait_for("bestmove", time.monotonic() + seconds)
        except EngineTimeoutError:
            self._stop()
            raise

    def game_over(self, result: str) -> None:
        """Tells how a game ended for the engine: ``win``, ``lose`` or ``draw``. One that has ended hears nothing."""
        with suppress(EngineError):
            self._send(f"gameover {result}")

    def end(self) -> None:
        """Ends the engine: asks first, and then kills."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError, ValueError):
            assert process.stdin is not None
            process.stdin.write(b"quit\n")
            process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _stop(self) -> None:
        """Takes the late answer, so that it is not mistaken for a later one. An engine that still says nothing is
        ended."""
        try:
            self._send("stop")
            self._wait_for("bestmove", time.monotonic() + _STALE_SECONDS)
        except EngineError:
            self.end()

    def _send(self, line: str) -> None:
        process = self._process
        if process is None:
            raise EngineError(f"the engine {self.name} does not run; start it first")
        try:
            assert process.stdin is not None
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        except (OSError, ValueError):
            raise self._ended() from None

    def _wait_for(self, word: str, deadline: float) -> str:
        """Waits for a line that begins with a word, and gives the next word of it."""
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                raise EngineTimeoutError(
                    f"the engine {self.name} did not say {word} in time; give it more, or see what it waits for"
                ) from None
            if line is None:
                raise self._ended()
            found = line.split()
            if found[:1] == [word]:
                return found[1] if len(found) > 1 else ""

    def _ended(self) -> EngineError:
        """Describes an engine that has ended, with what it wrote last to standard error."""
        process = self._process
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
            self._errors.join(_END_SECONDS)
        code = None if process is None else process.returncode
        self.end()
        words = f": {' / '.join(self._last_words)}" if self._last_words else ""
        return EngineError(f"the engine {self.name} has ended with code {code}{words}")


def _in_background(read: Callable[..., None], *arguments: object) -> Thread:
    thread = Thread(target=read, args=arguments, daemon=True)
    thread.start()
    return thread


def _read_answers(stream: IO[bytes], lines: SimpleQueue[str | None]) -> None:
    with stream:
        for line in stream:
            lines.put(line.decode("utf-8", "replace"))
    lines.put(None)


def _read_errors(stream: IO[bytes], last: deque[str]) -> None:
    with stream:
        for line in stream:
            last.append(line.decode("utf-8", "replace").strip())
