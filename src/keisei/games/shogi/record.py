"""The record of a game: what KIF and CSA files hold.

A ``GameRecord`` is always a legal game: it replays its moves when it is created.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from keisei.errors import IllegalMoveError, NotationError
from keisei.games.shogi.board import Board, Outcome, Termination
from keisei.games.shogi.moves import Color, Move
from keisei.games.shogi.sfen import STARTING_SFEN, parse_sfen

# The winner, for each ending in which it follows from the side to move.
_MOVER_LOSES = {Termination.RESIGNATION, Termination.TIME_UP, Termination.NO_LEGAL_MOVES}
_MOVER_WINS = {Termination.DECLARATION}
_SOMEONE_WINS = {Termination.ILLEGAL_MOVE, Termination.PERPETUAL_CHECK}

_MOST_SECONDS = 999_999
# Text that one of the formats would not read as a header.
_BAD_HEADER_KEY = re.compile(
    r"[0-9０-９*#&|+'$]|まで|変化|手数|盤面回転|(先手|後手|下手|上手|手合割)(の持駒)?$|.*[:：\r\n]|$"
)


@dataclass(frozen=True, slots=True)
class GameRecord:
    """The moves of a game from its start, with names, comments and times."""

    start: str = STARTING_SFEN
    """SFEN of the first position."""
    moves: tuple[Move, ...] = ()
    outcome: Outcome | None = None
    """How the game ended; None if the record has no ending."""
    names: tuple[str, str] = ("", "")
    """The players, black first."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """All other headers, with CSA's key if there is one (``EVENT``, ``SITE``, ``START_TIME`` …)."""
    comments: Mapping[int, str] = field(default_factory=dict)
    """Comments, by the number of moves before them; 0 is before the first move."""
    seconds: tuple[int | None, ...] = ()
    """The time of each move; empty if the record has none."""

    def __post_init__(self) -> None:
        self._check()
        self._normalise()
        turn = self.board().turn  # replays the game, so a record is always legal
        if self.outcome is not None and not _fits(self.outcome, turn):
            raise NotationError(f"{self.outcome} cannot be: {turn.name.lower()} is to move at the end")

    def _check(self) -> None:
        moves = len(self.moves)
        if self.seconds and len(self.seconds) != moves:
            raise NotationError(f"{len(self.seconds)} times for {moves} moves; give one for each, or none")
        for time in self.seconds:
            if time is not None and not 0 <= time <= _MOST_SECONDS:
                raise NotationError(f"a move took {time} seconds; times are 0 … {_MOST_SECONDS}")
        for number in self.comments:
            if not 0 <= number <= moves:
                raise NotationError(f"a comment after move {number}; this record has {moves}")
        for key in self.headers:
            check_header_key(key)

    def _normalise(self) -> None:
        """Normalises the fields, so records compare equal after they are written and read."""
        normal = {
            "start": Board(self.start).sfen(),
            "moves": tuple(self.moves),
            "names": (_one_line(self.names[0]), _one_line(self.names[1])),
            "headers": {key: _one_line(value) for key, value in self.headers.items()},
            "comments": {number: "\n".join(lines_of(text)) for number, text in self.comments.items()},
            "seconds": self.seconds if any(time is not None for time in self.seconds) else (),
        }
        for name, value in normal.items():
            object.__setattr__(self, name, value)  # the way to do so in a frozen dataclass

    @classmethod
    def from_board(
        cls, board: Board, outcome: Outcome | None = None, names: tuple[str, str] = ("", "")
    ) -> GameRecord:
        """Makes a record of a board's game. The ending is the board's own unless another is given."""
        start, moves = board.copy(), tuple(board.move_stack)
        for _ in moves:
            start.pop()
        return cls(start.sfen(), moves, outcome or board.outcome(), names)

    def boards(self) -> Iterator[Board]:
        """Yields each position from the first to the last. It is one board that changes, so copy what you keep."""
        board = Board(self.start)
        yield board
        for move in self.moves:
            board.push(move)
            yield board

    def until(self, ply: int) -> GameRecord:
        """Makes a record of the first moves of the game, without an ending."""
        return GameRecord(self.start, self.moves[:ply], names=self.names)

    @property
    def last_turn(self) -> Color:
        """The side to move when the game ended."""
        first = parse_sfen(self.start).turn
        return first.opponent if len(self.moves) % 2 else first

    def board(self) -> Board:
        """Gets the last position, with the whole game as its history."""
        board = Board(self.start)
        for number, move in enumerate(self.moves, start=1):
            try:
                board.push(move)
            except IllegalMoveError as error:
                raise IllegalMoveError(f"move {number} of the record: {error}") from None
        return board


def _fits(outcome: Outcome, turn: Color) -> bool:
    if outcome.termination in _SOMEONE_WINS:
        return outcome.winner is not None
    return outcome == ending(outcome.termination, turn)


def ending(termination: Termination, turn: Color) -> Outcome:
    """Gets the outcome of an ending whose winner follows from the side to move."""
    if termination in _MOVER_LOSES:
        return Outcome(termination, turn.opponent)
    return Outcome(termination, turn if termination in _MOVER_WINS else None)


def rule_broken(board: Board, winner: Color) -> Outcome:
    """Gets the outcome of a loss by breaking a rule. KIF and CSA have no word for perpetual check, so the board
    decides."""
    perpetual = Outcome(Termination.PERPETUAL_CHECK, winner)
    return perpetual if board.outcome() == perpetual else Outcome(Termination.ILLEGAL_MOVE, winner)


def check_header_key(key: str) -> None:
    if _BAD_HEADER_KEY.match(key) or key != key.strip():
        raise NotationError(f"{key[:60]!r} cannot be the name of a header; use letters, such as 'EVENT'")


def _one_line(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise NotationError(f"names and headers are one line each; got {text[:60]!r}")
    return text.strip()


class RecordBuilder:
    """What a reader has found so far. It plays each move at once, so errors name a line."""

    def __init__(self) -> None:
        self.names = ["", ""]
        self.headers: dict[str, str] = {}
        self.comments: dict[int, str] = {}
        self.outcome: Outcome | None = None
        self.board: Board | None = None
        self._start = STARTING_SFEN
        self._moves: list[Move] = []
        self._seconds: list[int | None] = []

    def begin(self, board: Board) -> Board:
        """Sets the first position."""
        self.board, self._start = board, board.sfen()
        return board

    @property
    def played(self) -> int:
        return len(self._moves)

    def push(self, move: Move, seconds: int | None = None) -> None:
        assert self.board is not None
        if self.outcome is not None:
            raise NotationError("a move stands after the end of the game")
        self.board.push(move)
        self._moves.append(move)
        self._seconds.append(seconds)

    def set_seconds(self, seconds: int) -> None:
        """Sets the time of the last move. A time for the ending itself is ignored."""
        if self._moves and self.outcome is None:
            self._seconds[-1] = seconds

    def comment(self, text: str) -> None:
        before = self.comments.get(self.played)
        self.comments[self.played] = text if before is None else f"{before}\n{text}"

    def record(self) -> GameRecord:
        return GameRecord(
            start=self._start,
            moves=tuple(self._moves),
            outcome=self.outcome,
            names=(self.names[0], self.names[1]),
            headers=self.headers,
            comments=self.comments,
            seconds=tuple(self._seconds),
        )


@contextmanager
def at_line(number: int) -> Iterator[None]:
    """Adds the line number to errors."""
    try:
        yield
    except NotationError as error:
        raise type(error)(f"line {number}: {error}") from None


def decode(data: str | bytes) -> str:
    """Decodes a record: UTF-8 with or without a byte order mark, or Shift-JIS as on Windows.

    Japanese text in Shift-JIS is almost never valid UTF-8, so UTF-8 is tried first.
    """
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    for encoding in ("utf-8-sig", "cp932"):
        try:
            return bytes(data).decode(encoding)
        except UnicodeDecodeError:
            continue
    raise NotationError("the bytes are neither UTF-8 nor Shift-JIS; convert the file to UTF-8")


def lines_of(text: str) -> list[str]:
    """Splits a record into lines, with the line ends of any system. ``splitlines`` would also split at other
    characters."""
    return re.split("\r\n|\r|\n", text)


def write_text(path: Path, text: str, encoding: str) -> None:
    """Writes a record to a file. An error names a character that the encoding does not have."""
    try:
        path.write_bytes(text.encode(encoding))
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        raise NotationError(
            f"{encoding} has no {bad!r}; write the record in UTF-8 (encoding='utf-8')"
        ) from None
