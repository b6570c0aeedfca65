"""The engine: receives commands, thinks in a thread of its own, and answers in time.

One loop receives everything in order: lines of the GUI, and results of the thread that thinks. So no locks are needed,
and an answer always belongs to the last ``go``. Late results for an older ``go`` are ignored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Protocol, TypeAlias

from keisei.errors import KeiseiError
from keisei.interfaces.usi.protocol import EngineOptions, Insight, Limits, info_lines, option_of

__all__ = ["Engine", "Load", "Mind", "Study", "Task", "Tell"]

FAILED = 2
"""The exit code if no player could be loaded."""
_LONGEST_ERROR = 400

Tell: TypeAlias = Callable[[Insight], None]


@dataclass(frozen=True)
class Task:
    """How to think about a position."""

    options: EngineOptions
    limits: Limits
    seconds: float | None
    """How long it should take; None for as long as it likes."""
    tell: Tell
    stopped: Callable[[], bool]


class Study(Protocol):
    """A position that the engine thinks about."""

    @property
    def turn(self) -> int: ...

    def settled(self) -> str | None:
        """Returns ``win`` if a win can be declared and ``resign`` if there is no move; None if a move has to be
        found."""
        ...

    def any_move(self) -> str:
        """Picks a legal move at once."""
        ...

    def think(self, task: Task) -> None:
        """Reports ever better results until they are good enough, the time is used up, or it is stopped."""
        ...

    def mate(self, stopped: Callable[[], bool]) -> str:
        """Finds the moves of a mate. Returns ``nomate`` if there is none, and ``timeout`` if it was stopped."""
        ...


class Mind(Protocol):
    """A player that has been loaded."""

    def study(self, position: str) -> Study:
        """Reads the words after ``position``. A wrong one is a ``KeiseiError``."""
        ...


Load: TypeAlias = Callable[[EngineOptions], Mind]


@dataclass(frozen=True)
class _Heard:
    line: str | None
    """None if the GUI has closed the pipe."""
    at: float


@dataclass(frozen=True)
class _Loaded:
    mind: Mind | None
    player: tuple[object, ...]
    error: str = ""


@dataclass(frozen=True)
class _Found:
    search: int
    insight: Insight


@dataclass(frozen=True)
class _Done:
    search: int
    error: str = ""
    mate: str = ""


_Event: TypeAlias = _Heard | _Loaded | _Found | _Done


@dataclass
class _Search:
    """A ``go`` that has not been answered."""

    number: int
    options: EngineOptions
    limits: Limits
    study: Study
    seconds: tuple[float, float] | None
    started: float
    deadline: float | None
    waits: bool
    """True while only ``stop`` or ``ponderhit`` may bring an answer."""
    verdict: str | None
    """The answer, if no move has to be found."""
    insight: Insight | None = None
    done: _Done | None = None
    stop: Event = field(default_factory=Event)

    def task(self, tell: Tell) -> Task:
        seconds = None if self.seconds is None or self.waits else self.seconds[0]
        return Task(self.options, self.limits, seconds, tell, self.stop.is_set)


class Engine:
    """Speaks USI. ``send`` writes a line, ``load`` loads the player that the options name."""

    def __init__(self, send: Callable[[str], None], load: Load, options: EngineOptions) -> None:
        self._send, self._load, self._options = send, load, options
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._mind: Mind | None = None
        self._loaded: tuple[object, ...] | None = None
        self._loading = False
        self._asked_ready = False
        self._held: list[_Heard] = []
        """What was heard while the player was loaded."""
        self._position = "startpos"
        self._search: _Search | None = None
        self._searches = 0
        self._exit_code: int | None = None
        self._commands: dict[str, Callable[[list[str], float], None]] = {
            "usi": self._usi,
            "setoption": self._setoption,
            "isready": self._isready,
            "quit": self._quit,
        }
        self._playing: dict[str, Callable[[list[str], float], None]] = {
            "usinewgame": self._forget,
            "position": self._set_position,
            "go": self._go,
            "stop": self._stop,
            "ponderhit": self._ponderhit,
            "gameover": self._forget,
        }

    def listen(self, lines: Iterable[str]) -> None:
        """Takes the lines of the GUI. It is called in a thread of its own, since reading blocks."""
        for line in lines:
            self.hear(line)
        self._events.put(_Heard(None, time.monotonic()))

    def hear(self, line: str) -> None:
        self._events.put(_Heard(line, time.monotonic()))

    def run(self) -> int:
        """Answers until ``quit``, or until the pipe is closed. Returns the exit code."""
        while self._exit_code is None:
            try:
                event = self._events.get(timeout=self._patience())
            except Empty:
                self._answer()
                continue
            self._handle(event)
        self._forget([], 0.0)
        return self._exit_code

    def _patience(self) -> float | None:
        search = self._search
        if search is None or search.waits or search.deadline is None:
            return None
        return max(0.0, search.deadline - time.monotonic())

    def _handle(self, event: _Event) -> None:
        match event:
            case _Heard():
                self._obey(event)
            case _Loaded():
                self._take(event)
            case _Found() if self._search is not None and event.search == self._search.number:
                self._note(self._search, event.insight)
            case _Done() if self._search is not None and event.search == self._search.number:
                self._search.done = event
                if not self._search.waits:
                    self._answer()

    def _obey(self, heard: _Heard) -> None:
        words = ["quit"] if heard.line is None else heard.line.split()
        name = words[0] if words else ""
        if name in self._commands:
            self._commands[name](words[1:], heard.at)
        elif self._held or (name == "go" and not self._need_player()):
            self._held.append(heard)  # the player is being loaded
        elif name in self._playing:
            self._playing[name](words[1:], heard.at)
        elif name:
            self._say(f"{name[:40]!r} is no command of USI, and is ignored")

    # Before a game.

    def _usi(self, words: list[str], at: float) -> None:
        self._send("id name Keisei")
        self._send("id author Keisei contributors")
        for line in self._options.offered():
            self._send(line)
        self._send("usiok")

    def _setoption(self, words: list[str], at: float) -> None:
        try:
            self._options = self._options.changed(*option_of(words))
        except ValueError as error:
            self._say(f"error: {error}")

    def _isready(self, words: list[str], at: float) -> None:
        self._asked_ready = True
        if self._need_player():
            self._ready()

    def _ready(self) -> None:
        if self._asked_ready:
            self._asked_ready = False
            self._send("readyok")

    def _need_player(self) -> bool:
        """Checks if the player of the options is there. If not, it is being loaded now."""
        if self._loading:
            return False
        if self._mind is not None and self._loaded == self._options.player:
            return True
        self._loading = True
        self._start(self._load_player, self._options)
        return False

    def _load_player(self, options: EngineOptions) -> None:
        try:
            self._events.put(_Loaded(self._load(options), options.player))
        except Exception as error:
            self._events.put(_Loaded(None, options.player, _told(error)))

    def _take(self, loaded: _Loaded) -> None:
        self._loading = False
        if loaded.mind is None:
            self._say(f"error: {loaded.error}")
            self._exit_code = FAILED
            return
        self._mind, self._loaded = loaded.mind, loaded.player
        if not self._need_player():  # the options have changed meanwhile, so it is loaded again
            return
        self._ready()
        held, self._held = self._held, []
        for heard in held:
            self._obey(heard)

    # In a game.

    def _set_position(self, words: list[str], at: float) -> None:
        self._position = " ".join(words)

    def _go(self, words: list[str], at: float) -> None:
        self._forget([], at)
        limits = Limits.parse(words)
        assert self._mind is not None  # the player is loaded before any command of a game
        try:
            study = self._mind.study(self._position)
        except Exception as error:  # a text may cause any error
            self._say(f"error: {_told(error)}")
            self._send("checkmate notimplemented" if limits.mate is not None else "bestmove resign")
            return
        self._searches += 1
        seconds = limits.seconds(study.turn, self._options)
        waits = limits.infinite or limits.ponder
        deadline = None if seconds is None else at + seconds[1]
        verdict = study.settled() if limits.mate is None else None
        self._search = _Search(
            self._searches, self._options, limits, study, seconds, at, deadline, waits, verdict
        )
        if verdict is None:
            self._start(self._work, self._search)
        elif not waits:
            self._answer()

    def _work(self, search: _Search) -> None:
        """Thinks, in its own thread."""
        number = search.number
        try:
            if search.limits.mate is not None:
                self._events.put(_Done(number, mate=search.study.mate(search.stop.is_set)))
                return
            search.study.think(search.task(lambda insight: self._events.put(_Found(number, insight))))
            self._events.put(_Done(number))
        except Exception as error:
            self._events.put(_Done(number, error=_told(error)))

    def _note(self, search: _Search, insight: Insight) -> None:
        search.insight = insight
        elapsed = time.monotonic() - search.started
        for line in info_lines(insight, elapsed, search.options.lines > 1):
            self._send(line)

    def _stop(self, words: list[str], at: float) -> None:
        if self._search is not None:
            self._answer()

    def _ponderhit(self, words: list[str], at: float) -> None:
        """Starts the clock, since the opponent has played the expected move."""
        search = self._search
        if search is None or not search.limits.ponder:
            return
        search.waits = search.limits.infinite
        search.deadline = None if search.seconds is None else at + search.seconds[0]
        if not search.waits and (search.done is not None or search.verdict is not None):
            self._answer()

    def _forget(self, words: list[str], at: float) -> None:
        """Stops thinking without an answer."""
        if self._search is not None:
            self._search.stop.set()
            self._search = None

    def _answer(self) -> None:
        """Answers the last ``go`` with what is known by now, and stops thinking."""
        search = self._search
        if search is None:
            return
        self._forget([], 0.0)
        done = search.done or _Done(search.number)
        if done.error:
            self._say(f"error: {done.error}")
        if search.limits.mate is not None:
            self._send(f"checkmate {'notimplemented' if done.error else done.mate or 'timeout'}")
        elif done.error:
            self._send("bestmove resign")
        else:
            self._send(f"bestmove {self._best(search)}")

    def _best(self, search: _Search) -> str:
        if search.verdict is not None:
            return search.verdict
        if search.insight is None or not search.insight.lines:
            return search.study.any_move()
        best = search.insight.lines[0]
        if 100 * best.chance < search.options.resign_below:
            return "resign"
        return best.moves[0] + (f" ponder {best.moves[1]}" if len(best.moves) > 1 else "")

    def _quit(self, words: list[str], at: float) -> None:
        self._exit_code = 0

    def _say(self, text: str) -> None:
        self._send(f"info string {text}")

    def _start(self, work: Callable[..., None], subject: object) -> None:
        Thread(target=work, args=(subject,), daemon=True).start()


def _told(error: Exception) -> str:
    """Writes an error in one line."""
    text = str(error) if isinstance(error, KeiseiError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:_LONGEST_ERROR]
