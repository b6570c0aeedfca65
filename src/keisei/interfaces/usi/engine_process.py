"""The process of another program's engine. Its output takes bounded memory, every wait has a time limit, and everything
that it has started is ended."""

from __future__ import annotations

import errno
import os
import select
import shlex
import subprocess
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from keisei.errors import ConfigError, EngineError, EngineTimeoutError
from keisei.machine.processes import end_session

__all__ = ["EngineProcess"]

MOST_LINE = 1 << 16
"""Bytes of the longest line that an engine may write."""
_LAST_WORDS, _LAST_BYTES = 5, 2048
"""How much of standard error is reported when an engine has ended: lines, and bytes in total."""
_END_SECONDS = 2.0
_SEND_SECONDS = 10.0
_LONGEST_WAIT = 3600.0  # the system counts waits in milliseconds, in 32 bits


class EngineProcess:
    """An engine that runs. It has a session of its own, so all that it starts can be ended with it.

    Its output is read only when a caller waits for it. An engine that writes more has to wait, so a flood of output
    stays in its pipes, whose size the system limits.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.name = shlex.join(command)
        if not "".join(command):
            raise ConfigError("an engine is a command, such as ./engine --fast; this one is empty")
        try:
            piped = subprocess.PIPE
            self._process = subprocess.Popen(
                command, bufsize=0, stdin=piped, stdout=piped, stderr=piped, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise EngineError(
                f"the engine {self.name} cannot be started: {_why(command[0], error)}"
            ) from error
        self._input, self._output, self._error = (
            stream.fileno()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr)
            if stream is not None
        )
        for pipe in (self._input, self._output, self._error):
            os.set_blocking(pipe, False)
        self._open = {self._output, self._error}
        self._lines: deque[bytes] = deque()
        self._begun = b""
        self._errors = b""

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def send(self, line: str) -> None:
        """Sends a line. Raises ``BrokenPipeError`` if the engine no longer reads."""
        left, deadline = line.encode() + b"\n", time.monotonic() + _SEND_SECONDS
        while left:
            try:
                left = left[os.write(self._input, left) :]
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise EngineError(
                        f"the engine {self.name} does not read what it is told; it should answer after each line"
                    ) from None
                _ready({self._input}, select.POLLOUT, _SEND_SECONDS)

    def lines(self, deadline: float) -> Iterator[str]:
        """Yields what the engine says, up to the end of its output. After the deadline that is an
        ``EngineTimeoutError``, even if the engine talks on."""
        late = False
        while True:
            while self._lines:
                yield self._lines.popleft().decode("utf-8", "replace")
            if self._output not in self._open:
                return
            if late:
                raise EngineTimeoutError(f"the engine {self.name} did not answer in time")
            late = time.monotonic() >= deadline  # what has come by now is still heard
            self._listen(deadline)

    def last_words(self) -> str:
        """Gets the last lines of standard error. The engine has closed a pipe, so nothing more is read."""
        self._open.discard(self._output)
        deadline = time.monotonic() + _END_SECONDS
        while self._open and time.monotonic() < deadline:
            self._listen(deadline)
        words = self._errors.decode("utf-8", "replace").strip().split("\n")
        told = " / ".join(filter(None, map(str.strip, words[-_LAST_WORDS:])))
        return "".join(sign if sign.isprintable() else "?" for sign in told)

    def exit_code(self) -> int | None:
        """Waits a moment for the engine's exit code; None if it still runs."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(_END_SECONDS)
        return None

    def end(self) -> None:
        """Ends the engine and all that it has started: asks first, and then kills."""
        assert self._process.stdin is not None
        try:
            with suppress(OSError):
                os.write(self._input, b"quit\n")
            self._process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
        finally:  # also after a second Ctrl-C
            end_session(self._process.pid)
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()

    def _listen(self, deadline: float) -> None:
        """Waits until the engine says something, and reads it once."""
        seconds = min(max(0.0, deadline - time.monotonic()), _LONGEST_WAIT)
        for pipe in _ready(self._open, select.POLLIN, seconds):
            chunk = os.read(pipe, MOST_LINE)
            if not chunk:
                self._open.remove(pipe)
            elif pipe == self._output:
                self._take(chunk)
            else:
                self._errors = (self._errors + chunk)[-_LAST_BYTES:]

    def _take(self, chunk: bytes) -> None:
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        if max(map(len, (*lines, self._begun))) > MOST_LINE:
            raise EngineError(
                f"the engine {self.name} wrote a line of more than {MOST_LINE} bytes, which no answer of USI has; "
                f"is it an engine?"
            )
        self._lines.extend(lines)


def _ready(pipes: Iterable[int], event: int, seconds: float) -> list[int]:
    """Waits until one of the pipes is ready, and returns all that are."""
    waiting = select.poll()
    for pipe in pipes:
        waiting.register(pipe, event)
    return [pipe for pipe, _ in waiting.poll(1000 * seconds)]


def _why(program: str, error: OSError | ValueError) -> str:
    """Says why a command cannot be started, and what to do."""
    if isinstance(error, ValueError):
        return f"{error}; a command has no such signs"
    said, is_file = error.strerror or str(error), os.path.isfile(program)
    if error.errno == errno.ENOENT and is_file:
        return f"{said}: its first line names a program that is not there"
    if error.errno == errno.ENOENT:
        return (
            f"{said}; give the path of a program, as in usi:./engine, with quotes around one that has spaces"
        )
    if os.path.isdir(program):
        return f"{said}: it is a folder; name the program in it"
    if error.errno == errno.EACCES and is_file:
        return f"{said}; if it is a program, let it run: chmod +x {shlex.quote(program)}"
    if error.errno == errno.ENOEXEC:
        return f"{said}: it is no program for this machine; a script needs a first line such as #!/bin/sh"
    return f"{said}; give the path of a program, as in usi:./engine"
