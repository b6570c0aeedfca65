"""CSA 2.2, the record format of computer Shogi: ``loads``/``load`` read it, ``dumps``/``dump`` write it.

    V2.2
    N+Ada
    N-Ben
    PI
    +
    +7776FU
    T16
    -3334FU
    %TORYO

A move names the piece after the move. So a promoted name for an unpromoted piece is a promotion.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from keisei.errors import IllegalMoveError, InvalidMoveError, InvalidPositionError, NotationError
from keisei.games.shogi.board import Board, Outcome, Termination
from keisei.games.shogi.moves import (
    BLACK,
    HAND_ORDER,
    PIECES_IN_SET,
    WHITE,
    Color,
    Move,
    Piece,
    PieceType,
    square_at,
    square_file,
    square_rank,
)
from keisei.games.shogi.record import (
    GameRecord,
    RecordBuilder,
    at_line,
    check_header_key,
    decode,
    ending,
    lines_of,
    rule_broken,
    write_text,
)
from keisei.games.shogi.sfen import STARTING_SFEN, Setup, parse_sfen, write_sfen

_TYPE_OF_NAME = {
    "FU": PieceType.PAWN,
    "KY": PieceType.LANCE,
    "KE": PieceType.KNIGHT,
    "GI": PieceType.SILVER,
    "KI": PieceType.GOLD,
    "KA": PieceType.BISHOP,
    "HI": PieceType.ROOK,
    "OU": PieceType.KING,
    "TO": PieceType.PRO_PAWN,
    "NY": PieceType.PRO_LANCE,
    "NK": PieceType.PRO_KNIGHT,
    "NG": PieceType.PRO_SILVER,
    "UM": PieceType.HORSE,
    "RY": PieceType.DRAGON,
}
_NAMES = {kind: name for name, kind in _TYPE_OF_NAME.items()}
_SIDES = {"+": BLACK, "-": WHITE}

_ENDINGS = {
    "%TORYO": Termination.RESIGNATION,
    "%CHUDAN": Termination.INTERRUPTED,
    "%SENNICHITE": Termination.REPETITION,
    "%TIME_UP": Termination.TIME_UP,
    "%JISHOGI": Termination.IMPASSE,
    "%KACHI": Termination.DECLARATION,
    "%TSUMI": Termination.NO_LEGAL_MOVES,
    "%MAX_MOVES": Termination.MAX_PLIES,
}
_WORD_OF_ENDING = {termination: word for word, termination in _ENDINGS.items()}
_READ_ENDINGS = _ENDINGS | {
    "%HIKIWAKE": Termination.IMPASSE,
    "%MATTA": Termination.INTERRUPTED,
    "%FUZUMI": Termination.INTERRUPTED,
    "%ERROR": Termination.INTERRUPTED,
}

_PLACE = re.compile(r"([0-9])([0-9])([A-Z]{2})")
_MOVE = re.compile(r"([+-])([0-9])([0-9])([1-9])([1-9])([A-Z]{2})")
_TIME = re.compile(r"T([0-9]{1,6})(?:\.[0-9]*)?")


def loads(data: str | bytes) -> GameRecord:
    """Reads the first game of a text, or of the bytes of a file in UTF-8 or Shift-JIS."""
    return next(_games(data))


def loads_all(data: str | bytes) -> list[GameRecord]:
    """Reads all games of a text. A line with only ``/`` separates them."""
    return list(_games(data))


def load(path: str | os.PathLike[str]) -> GameRecord:
    """Reads the first game of a .csa file."""
    return loads(Path(path).read_bytes())


def dump(record: GameRecord, path: str | os.PathLike[str], encoding: str = "utf-8") -> None:
    """Writes a game to a file."""
    write_text(Path(path), dumps(record), encoding)


def _games(data: str | bytes) -> Iterator[GameRecord]:
    reader = _Reader()
    number = 0
    for number, line in enumerate(lines_of(decode(data)), start=1):
        with at_line(number):
            if line.rstrip() == "/":
                yield reader.finish()
                reader = _Reader()
                continue
            reader.read(line)
    with at_line(number):
        yield reader.finish()


class _Reader:
    """Reads one game line by line. The line with the side to move completes the position."""

    def __init__(self) -> None:
        self.found = RecordBuilder()
        self.board = bytearray(81)
        self.hands = bytearray(14)
        self.placed = False
        self.all_to: Color | None = None
        self.recognised = False

    def read(self, line: str) -> None:
        """Reads one line: a comment, a name, a header, or statements separated by commas."""
        if line.startswith("'"):
            if not line.startswith("'CSA encoding="):
                self.found.comment(line[1:].removeprefix("*"))
        elif line[:2] in ("N+", "N-"):
            self.found.names[_SIDES[line[1]]] = line[2:].strip()
            self.recognised = True
        elif line.startswith("$"):
            key, _, value = line[1:].partition(":")
            check_header_key(key.strip())
            self.found.headers[key.strip()] = value.strip()
            self.recognised = True
        else:
            for statement in line.split(","):
                if statement.strip():
                    self._statement(statement.rstrip())
                    self.recognised = True

    def finish(self) -> GameRecord:
        if not self.recognised:
            raise NotationError("the text holds no CSA: no version, no position and no move")
        if self.found.board is None:
            self._begin(BLACK)
        return self.found.record()

    def _statement(self, text: str) -> None:
        text = text if text.startswith("P") else text.strip()
        if text in _SIDES:
            self._needs_no_moves(text)
            self._begin(_SIDES[text])
        elif text[0] in "+-":
            self.found.push(_parse_move(text, self.found.board or self._begin(_SIDES[text[0]])))
        elif text[0] == "%":
            self._end(text)
        elif match := _TIME.fullmatch(text):
            self.found.set_seconds(int(match[1]))
        elif text[0] == "P":
            self._needs_no_moves(text)
            self._place(text)
        elif not re.fullmatch(r"V[0-9.]{1,8}", text):
            raise NotationError(f"{text[:60]!r} is not a statement of CSA")

    def _needs_no_moves(self, text: str) -> None:
        if self.found.board is not None:
            raise NotationError(f"{text[:60]!r} changes the position after the side to move was given")

    def _begin(self, turn: Color) -> Board:
        if not self.placed:
            self._place("PI")
        if self.all_to is not None:
            _give_rest(self.board, self.hands, self.all_to)
        return self.found.begin(Board.from_setup(Setup(bytes(self.board), bytes(self.hands), turn, 0)))

    def _end(self, text: str) -> None:
        board = self.found.board or self._begin(BLACK)
        if self.found.outcome is not None:
            raise NotationError("the game ends twice")
        self.found.outcome = _parse_ending(text, board)

    def _place(self, text: str) -> None:
        kind = text[1:2]
        if kind == "I":
            self.board[:] = parse_sfen(STARTING_SFEN).board
            for file, rank, name in _places(text[2:].strip()):
                self._take_away(file, rank, name)
        elif kind in _SIDES:
            for file, rank, name in _places(text[2:].strip()):
                self._put(_SIDES[kind], file, rank, name)
        elif kind in tuple("123456789"):
            self._place_rank(int(kind), text)
        else:
            raise InvalidPositionError(
                f"{text[:60]!r} is not a position line; they are PI, P1 … P9, P+ and P-"
            )
        self.placed = True

    def _place_rank(self, rank: int, text: str) -> None:
        row = text[2:].ljust(27)
        for index, file in enumerate(range(9, 0, -1)):
            cell = row[3 * index : 3 * index + 3]
            code = 0
            if cell.strip() not in ("", "*"):
                if cell[0] not in _SIDES or cell[1:] not in _TYPE_OF_NAME:
                    raise InvalidPositionError(
                        f"{cell!r} in rank {rank} is not a square; one is ' * ', '+FU' or '-FU'"
                    )
                code = Piece(_SIDES[cell[0]], _TYPE_OF_NAME[cell[1:]]).native
            self.board[square_at(file, rank)] = code
        if row[27:].strip():
            raise InvalidPositionError(f"rank {rank} has more than 9 squares: {text[:60]!r}")

    def _take_away(self, file: int, rank: int, name: str) -> None:
        square = square_at(file, rank) if file and rank else None
        code = self.board[square] if square is not None else 0
        if square is None or not code or Piece.from_native(code).type is not _TYPE_OF_NAME.get(name):
            raise InvalidPositionError(f"PI cannot take away {file}{rank}{name}: no such piece stands there")
        self.board[square] = 0

    def _put(self, color: Color, file: int, rank: int, name: str) -> None:
        if (file, rank, name) == (0, 0, "AL"):
            self.all_to = color
            return
        kind = _TYPE_OF_NAME.get(name)
        if kind is None or (file == 0) != (rank == 0):
            raise InvalidPositionError(
                f"{file}{rank}{name} is not a piece on a square; one is written like 77FU, or 00FU in hand"
            )
        if file:
            if self.board[square_at(file, rank)]:
                raise InvalidPositionError(f"{file}{rank}{name} stands on a square that is taken")
            self.board[square_at(file, rank)] = Piece(color, kind).native
        elif kind > PieceType.GOLD:
            raise InvalidPositionError(f"{name} is never in a hand")
        else:
            slot = 7 * color + kind - 1
            if self.hands[slot] == PIECES_IN_SET[kind]:
                raise InvalidPositionError(f"a hand holds at most {PIECES_IN_SET[kind]} of {name}")
            self.hands[slot] += 1


def _places(text: str) -> Iterator[tuple[int, int, str]]:
    for start in range(0, len(text), 4):
        match = _PLACE.fullmatch(text[start : start + 4])
        if match is None:
            raise InvalidPositionError(
                f"{text[start : start + 4]!r} is not a piece on a square; one is written like 77FU"
            )
        yield int(match[1]), int(match[2]), match[3]


def _give_rest(board: bytearray, hands: bytearray, color: Color) -> None:
    """Handles ``AL``: all pieces of the set that are not placed yet go to one hand."""
    placed = [Piece.from_native(code).type.plain for code in board if code]
    for kind in HAND_ORDER:
        rest = PIECES_IN_SET[kind] - placed.count(kind) - hands[kind - 1] - hands[7 + kind - 1]
        hands[7 * color + kind - 1] += max(rest, 0)


def _parse_move(text: str, board: Board) -> Move:
    match = _MOVE.fullmatch(text)
    kind = _TYPE_OF_NAME.get(match[6]) if match else None
    if match is None or kind is None:
        raise InvalidMoveError(
            f"{text[:60]!r} is not a CSA move; it is written like '+7776FU', or '+0055FU' for a drop"
        )
    if _SIDES[match[1]] is not board.turn:
        raise IllegalMoveError(f"{text} moves out of turn: {board.turn.name.lower()} is to move")
    target = square_at(int(match[4]), int(match[5]))
    if match[2] == match[3] == "0":
        return Move(None, target, drop=kind)
    if "0" in (match[2], match[3]):
        raise InvalidMoveError(f"{text} starts from no square; squares run from 11 to 99, and 00 is the hand")
    origin = square_at(int(match[2]), int(match[3]))
    if origin == target:
        raise InvalidMoveError(
            f"{text} stays on its square {match[2]}{match[3]}; a move names two squares, as in '+7776FU'"
        )
    piece = board.piece_at(origin)
    promotion = piece is not None and kind is not piece.type
    if piece is not None and promotion and kind is not piece.type.promoted:
        raise IllegalMoveError(
            f"{text} makes a {match[6]} of the {_NAMES[piece.type]} on {match[2]}{match[3]}"
        )
    return Move(origin, target, promotion)


def _parse_ending(text: str, board: Board) -> Outcome:
    if text in _READ_ENDINGS:
        return ending(_READ_ENDINGS[text], board.turn)
    if text == "%ILLEGAL_MOVE":
        return rule_broken(board, board.turn.opponent)
    if text in ("%+ILLEGAL_ACTION", "%-ILLEGAL_ACTION"):
        return rule_broken(board, _SIDES[text[1]].opponent)
    known = " ".join(_READ_ENDINGS)
    raise NotationError(f"{text[:60]!r} is not an ending; known are {known} %ILLEGAL_MOVE %±ILLEGAL_ACTION")


def dumps(record: GameRecord) -> str:
    """Writes a game as CSA 2.2. The format has no move number, so a start in mid-game counts from 1."""
    lines = ["V2.2"]
    lines += [f"N{sign}{record.names[color]}" for sign, color in _SIDES.items() if record.names[color]]
    lines += [f"${key}:{value}" for key, value in record.headers.items()]
    setup = parse_sfen(record.start)
    start = Setup(setup.board, setup.hands, setup.turn, 0)
    lines += ["PI", "+"] if write_sfen(start) == STARTING_SFEN else _position_lines(start)
    lines += _move_lines(record)
    return "\n".join(lines) + "\n"


def _position_lines(setup: Setup) -> list[str]:
    lines = [
        f"P{rank}" + "".join(_cell(setup.board[square_at(file, rank)]) for file in range(9, 0, -1))
        for rank in range(1, 10)
    ]
    for sign, color in _SIDES.items():
        hand = "".join(f"00{_NAMES[kind]}" * count for kind, count in setup.hand(color).items())
        lines += [f"P{sign}{hand}"] if hand else []
    return [*lines, "+-"[setup.turn]]


def _cell(code: int) -> str:
    if not code:
        return " * "
    piece = Piece.from_native(code)
    return "+-"[piece.color] + _NAMES[piece.type]


def _comment_lines(record: GameRecord, played: int) -> list[str]:
    text = record.comments.get(played)
    return [] if text is None else ["'*" + line for line in text.split("\n")]


def _move_lines(record: GameRecord) -> list[str]:
    lines = _comment_lines(record, 0)
    boards = record.boards()
    next(boards)
    for number, (move, board) in enumerate(zip(record.moves, boards, strict=True), start=1):
        lines.append(csa_move(board, move))
        time = record.seconds[number - 1] if record.seconds else None
        lines += [] if time is None else [f"T{time}"]
        lines += _comment_lines(record, number)
    return lines if record.outcome is None else [*lines, _ending_word(record.outcome, record.last_turn)]


def csa_move(board: Board, move: Move) -> str:
    """Writes a move as in ``+7776FU``. The board has already played it."""
    piece = board.piece_at(move.to_square)
    if piece is None:
        raise IllegalMoveError(f"{move} was not the last move on this board")
    origin = "00" if move.from_square is None else _square(move.from_square)
    return f"{'+-'[piece.color]}{origin}{_square(move.to_square)}{_NAMES[piece.type]}"


def _square(square: int) -> str:
    return f"{square_file(square)}{square_rank(square)}"


def _ending_word(outcome: Outcome, turn: Color) -> str:
    if outcome.winner is None or outcome.termination in _WORD_OF_ENDING:
        return _WORD_OF_ENDING[outcome.termination]
    if outcome.winner is turn:
        return f"%{'+-'[turn.opponent]}ILLEGAL_ACTION"
    return "%ILLEGAL_MOVE"
