"""Runs the engine of another program and speaks USI with it. Every wait has an end."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from keisei.errors import EngineError, EngineTimeoutError
from keisei.interfaces.usi.engine_process import EngineProcess

__all__ = ["UsiClient"]

START_SECONDS = 60.0
"""How long an engine may take to load."""
_STALE_SECONDS = 1.0


class UsiClient:
    """An engine in a process of its own. After an error it is ended; ``start`` starts it again."""

    def __init__(self, command: Sequence[str], options: Mapping[str, str] | None = None) -> None:
        self.command = list(command)
        self.options = dict(options or {})
        self._engine: EngineProcess | None = None

    @property
    def name(self) -> str:
        return shlex.join(self.command)

    def start(self, seconds: float = START_SECONDS) -> None:
        """Starts the engine and waits until it is ready. Nothing happens if it runs."""
        if self._engine is not None and self._engine.runs:
            return
        self.end()
        self._engine = EngineProcess(self.command)
        deadline = time.monotonic() + seconds
        try:
            self._send("usi")
            self._wait_for("usiok", deadline)
            for name, value in self.options.items():
                self._send(f"setoption name {name} value {value}")
            self._send("isready")
            self._wait_for("readyok", deadline)
        except EngineTimeoutError:
            self.end()
            raise

    def new_game(self) -> None:
        """Starts the engine if it does not run, and tells it that a game begins."""
        self.start()
        self._send("usinewgame")

    def go(self, position: str, words: str, seconds: float) -> str:
        """Asks the engine for a move, ``resign`` or ``win``. If it takes longer than ``seconds``, that is an
        ``EngineTimeoutError``."""
        self._send(f"position {position}")
        self._send(f"go {words}")
        try:
            return self._wait_for("bestmove", time.monotonic() + seconds)
        except EngineTimeoutError:
            self._stop()
            raise

    def game_over(self, result: str) -> None:
        """Tells the engine its result: ``win``, ``lose`` or ``draw``. Nothing is sent to an engine that has ended."""
        with suppress(EngineError):
            self._send(f"gameover {result}")

    def end(self) -> None:
        """Ends the engine, with all that it has started: asks first, and then kills."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.end()

    def _stop(self) -> None:
        """Reads the late answer, so that it is not mistaken for a later one. An engine that still does not answer is
        ended."""
        try:
            self._send("stop")
            self._wait_for("bestmove", time.monotonic() + _STALE_SECONDS)
        except EngineError:
            self.end()

    def _send(self, line: str) -> None:
        try:
            self._running().send(line)
        except OSError:
            raise self._ended() from None
        except EngineError:
            self.end()
            raise

    def _wait_for(self, word: str, deadline: float) -> str:
        """Waits for a line that begins with a word, and returns its next word."""
        try:
            for line in self._running().lines(deadline):
                found = line.split(maxsplit=2)
                if found[:1] == [word]:
                    return found[1] if len(found) > 1 else ""
        except EngineTimeoutError:
            raise EngineTimeoutError(
                f"the engine {self.name} did not say {word} in time; give it more, or see what it waits for"
            ) from None
        except EngineError:
            self.end()
            raise
        raise self._ended()

    def _running(self) -> EngineProcess:
        if self._engine is None:
            raise EngineError(f"the engine {self.name} does not run; start it first")
        return self._engine

    def _ended(self) -> EngineError:
        """Describes an engine that has ended, with what it wrote last to standard error."""
        engine = self._running()
        words, code = engine.last_words(), engine.exit_code()
        self.end()
        how = "has closed its output" if code is None else f"has ended with code {code}"
        return EngineError(f"the engine {self.name} {how}{words and f': {words}'}")
