"""The words of USI: the options of our engine, the limits of a search, and the lines that tell what was found.

A GUI starts an engine and waits for its first answer, so this module imports the standard library alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

__all__ = ["EngineOptions", "Insight", "Limits", "Line", "info_lines"]

MOST_THREADS = 512
MOST_LINES = 593
"""No position has more legal moves."""
MOST_DEPTH = 32
_LONG = 1_000_000_000
_HORIZON = 30
"""A move gets this part of the time that is left."""
_LONGEST_WISH = 4
"""A move that takes longer than planned ends after this many times its plan."""
_LEAST = 200
"""Milliseconds that every move gets, if the clock has them."""


@dataclass(frozen=True)
class _Option:
    """An option that a GUI shows, and the field of ``EngineOptions`` that it sets."""

    name: str
    field: str
    kind: str
    low: int = 0
    high: int = 0

    def line(self, value: object) -> str:
        shown = {"spin": f"{value} min {self.low} max {self.high}", "check": str(value).lower()}
        return f"option name {self.name} type {self.kind} default {shown.get(self.kind, str(value) or '<empty>')}"

    def parse(self, text: str) -> object:
        if self.kind == "check":
            return text.lower() == "true"
        if self.kind == "string":
            return "" if text == "<empty>" else text
        number = _whole(text)
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"{self.name} is a whole number, {self.low} to {self.high}; got {text[:40]!r}")
        return number


@dataclass(frozen=True)
class EngineOptions:
    """The options of the engine. 0 means no limit."""

    run: str = "search:4"
    """A run, RUN@UPDATE, a checkpoint's directory, or a player such as search:4."""
    root: str = "runs"
    """The folder of runs."""
    temperature: float = 0.0
    threads: int = 1
    lines: int = 1
    depth: int = 0
    nodes: int = 0
    move_time: int = 0
    """The most milliseconds for a move."""
    delay: int = 100
    """Milliseconds that a move takes on its way to the GUI."""
    resign_below: int = 0
    """The engine resigns if it expects to win less than this percentage of games."""
    ponder: bool = False

    @property
    def player(self) -> tuple[object, ...]:
        """What is loaded from disk. If it changes, the engine loads again."""
        return self.run, self.root, self.threads

    def offered(self) -> Iterator[str]:
        """Yields a line for each option, for the answer to ``usi``."""
        for option in _OPTIONS.values():
            yield option.line(getattr(self, option.field))

    def changed(self, name: str, value: str) -> EngineOptions:
        """Applies a ``setoption`` to the options. Unknown names are ignored, as USI asks. A bad value is a
        ``ValueError``."""
        option = _OPTIONS.get(name.lower())
        if option is None:
            return self
        found = _temperature(value) if option.field == "temperature" else option.parse(value)
        changes: Mapping[str, object] = {option.field: found}
        return replace(self, **changes)  # type: ignore[arg-type]


_OPTIONS = {
    option.name.lower(): option
    for option in (
        _Option("USI_Ponder", "ponder", "check"),
        _Option("Run", "run", "string"),
        _Option("Root", "root", "string"),
        _Option("Temperature", "temperature", "string"),
        _Option("Threads", "threads", "spin", 1, MOST_THREADS),
        _Option("MultiPV", "lines", "spin", 1, MOST_LINES),
        _Option("Depth", "depth", "spin", 0, MOST_DEPTH),
        _Option("Nodes", "nodes", "spin", 0, _LONG),
        _Option("MoveTime", "move_time", "spin", 0, _LONG),
        _Option("NetworkDelay", "delay", "spin", 0, 60_000),
        _Option("ResignBelow", "resign_below", "spin", 0, 50),
    )
}


def _temperature(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if found != 0 and not 1e-6 <= found < _LONG:
        raise ValueError(f"Temperature is 0 for the best move, or a number above it; got {text[:40]!r}")
    return found


def option_of(words: Sequence[str]) -> tuple[str, str]:
    """Reads ``name NAME value VALUE``. Names and values may have spaces."""
    at = words.index("value") if "value" in words else len(words)
    start = 1 if words[:1] == ["name"] else 0
    return " ".join(words[start:at]), " ".join(words[at + 1 :])


_NUMBERS = ("btime", "wtime", "byoyomi", "binc", "winc", "nodes", "depth", "movetime", "mate")


@dataclass(frozen=True)
class Limits:
    """What a ``go`` allows. Times are milliseconds. None means that ``go`` does not name the limit."""

    times: tuple[int | None, int | None] = (None, None)
    """The time that black and white have left."""
    increments: tuple[int, int] = (0, 0)
    byoyomi: int = 0
    nodes: int = 0
    depth: int = 0
    move_time: int = 0
    infinite: bool = False
    ponder: bool = False
    mate: int | None = None
    """The time to look for a mate; 0 for no limit."""

    @classmethod
    def parse(cls, words: Sequence[str]) -> Limits:
        """Reads the words after ``go``. Words that are unknown or have no number are ignored."""
        given = {name: _number_after(words, name) for name in _NUMBERS}
        mate = "mate" in words
        return cls(
            times=(given["btime"], given["wtime"]),
            increments=(given["binc"] or 0, given["winc"] or 0),
            byoyomi=given["byoyomi"] or 0,
            nodes=given["nodes"] or 0,
            depth=given["depth"] or 0,
            move_time=given["movetime"] or 0,
            infinite="infinite" in words and not mate,
            ponder="ponder" in words,
            mate=(given["mate"] or 0) if mate else None,
        )

    def seconds(self, turn: int, options: EngineOptions) -> tuple[float, float] | None:
        """Computes how long a side should think, and how long it may think at most; None if nothing limits it."""
        caps = [time for time in (self.move_time, options.move_time, self.mate or 0) if time]
        clock = self._on_clock(turn)
        if clock is None and not caps:
            return None
        wish, most = clock or (_LONG, _LONG)
        most = min([most, *caps])
        most = max(most - options.delay, most // 2)  # with little time, half of it is kept for delays
        wish = min(wish, most)
        return wish / 1000, min(most, max(_LONGEST_WISH * wish, _LEAST)) / 1000

    def _on_clock(self, turn: int) -> tuple[int, int] | None:
        """Computes the milliseconds that the clock allows: a fair part, and all of them. Some GUIs add the increment to
        the time that is left and others do not, so it is not counted twice."""
        left, gain = self.times[turn], self.increments[turn]
        if left is None and not (gain or self.byoyomi):
            return None
        left = max(left or 0, 0)
        whole = max(left, gain) + self.byoyomi
        return min(whole, left // _HORIZON + gain + self.byoyomi), whole


def _number_after(words: Sequence[str], name: str) -> int | None:
    at = words.index(name) + 1 if name in words else len(words)
    number = _whole(words[at]) if at < len(words) else None
    return None if number is None else min(max(0, number), _LONG)


def _whole(text: str) -> int | None:
    """Reads a whole number; None if the text is none, or too long to be meant."""
    try:
        return int(text) if len(text) < 20 else None
    except ValueError:
        return None


@dataclass(frozen=True)
class Line:
    """A move and what may follow it."""

    moves: tuple[str, ...]
    score: str = ""
    """As USI writes it, from the view of the side to move: ``cp 35`` or ``mate 3``; empty if it is not known."""
    chance: float = 0.5
    """The expected share of games that are won from here."""


@dataclass(frozen=True)
class Insight:
    """What the engine knows so far about a position: the best lines first."""

    depth: int
    nodes: int
    lines: tuple[Line, ...]


def info_lines(insight: Insight, seconds: float, several: bool) -> Iterator[str]:
    """Writes ``info`` for each line. ``several`` numbers them."""
    speed = round(insight.nodes / max(seconds, 1e-3))
    start = f"info depth {insight.depth} time {round(1000 * seconds)} nodes {insight.nodes} nps {speed}"
    for number, line in enumerate(insight.lines, start=1):
        place = f" multipv {number}" if several else ""
        score = f" score {line.score}" if line.score else ""
        yield f"{start}{place}{score} pv {' '.join(line.moves)}"
