"""One game of Shogi for people and tests, in the style of python-chess.

>>> board = Board()
>>> board.push_usi("7g7f")
Move.from_usi('7g7f')
>>> Move.from_usi("3c3d") in board.legal_moves
True
>>> board.outcome() is None
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from keisei.errors import (
    ConfigError,
    IllegalActionError,
    IllegalMoveError,
    InvalidMoveError,
    InvalidPositionError,
    NotationError,
)
from keisei.games.shogi.illegal import why_illegal
from keisei.games.shogi.moves import SQUARES, Color, Move, Piece, PieceType
from keisei.games.shogi.picture import board_svg, board_text
from keisei.games.shogi.sfen import STARTING_SFEN, Setup, native_position, parse_sfen, write_sfen
from keisei.native import core


class Termination(Enum):
    """How a game ended. ``Board.outcome`` returns the first three; records use all of them."""

    NO_LEGAL_MOVES = "no_legal_moves"
    """Checkmate, or no legal move: the side to move loses."""
    REPETITION = "repetition"
    """The same position for the fourth time (千日手): a draw."""
    PERPETUAL_CHECK = "perpetual_check"
    """A fourfold repetition in which every move of one side gave check: that side loses."""
    DECLARATION = "declaration"
    """The side to move declared an entering-king win (入玉宣言)."""
    MAX_PLIES = "max_plies"
    """The ply limit was reached."""
    RESIGNATION = "resignation"
    TIME_UP = "time_up"
    ILLEGAL_MOVE = "illegal_move"
    """One side broke a rule; the other side is the winner."""
    IMPASSE = "impasse"
    """A draw by agreement with both kings entered (持将棋)."""
    INTERRUPTED = "interrupted"
    """The game was interrupted (中断): no result."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a game: how, and who won; ``winner`` is None for a draw or no result."""

    termination: Termination
    winner: Color | None


class LegalMoves:
    """A view of the current legal moves of a board: iterate, count, or test with ``in``."""

    __slots__ = ("_position",)

    def __init__(self, position: core.PlayedPosition) -> None:
        self._position = position

    def __iter__(self) -> Iterator[Move]:
        return map(Move.from_native, self._position.legal_moves())

    def __len__(self) -> int:
        return len(self._position.legal_moves())

    def __bool__(self) -> bool:
        return len(self) > 0

    def __contains__(self, move: object) -> bool:
        return isinstance(move, Move) and self._position.is_legal(move.native)

    def __repr__(self) -> str:
        return f"<{len(self)} legal moves: {' '.join(sorted(map(str, self)))}>"


class Board:
    """A position with the moves that led to it."""

    def __init__(self, sfen: str | None = None) -> None:
        """``sfen`` may be SFEN or ``"startpos"``. The default is the usual start position."""
        text = STARTING_SFEN if sfen is None else sfen
        self._position = native_position(parse_sfen(text), text)

    @classmethod
    def from_setup(cls, setup: Setup) -> Board:
        """Makes a board from a setup of pieces. The readers of KIF and CSA use it."""
        return cls._of(native_position(setup))

    @classmethod
    def from_packed(cls, packed: bytes) -> Board:
        """Makes a board from a packed position, such as a row of ``Game.pack``."""
        try:
            return cls._of(core.PlayedPosition(packed))
        except ValueError as error:
            raise InvalidPositionError(f"these bytes are not a packed position: {error}") from None

    @classmethod
    def from_usi_position(cls, text: str) -> Board:
        """Reads USI's ``position`` command: ``[position] (startpos | sfen …) [moves 7g7f …]``."""
        if not isinstance(text, str):
            raise InvalidPositionError(f"a USI position is text; got {type(text).__name__}")
        words = text.split()
        if words[:1] == ["position"]:
            words = words[1:]
        start = words.index("moves") if "moves" in words else len(words)
        board = cls(" ".join(words[:start]))
        for number, word in enumerate(words[start + 1 :], start=1):
            try:
                board.push_usi(word)
            except NotationError as error:
                raise type(error)(f"move {number} of the USI position: {error}") from None
        return board

    @classmethod
    def _of(cls, position: core.PlayedPosition) -> Board:
        board = cls.__new__(cls)
        board._position = position
        return board

    # Pieces and position.

    @property
    def setup(self) -> Setup:
        """The position without its history."""
        position = self._position
        return Setup(position.board(), position.hands(), Color(position.turn), position.ply)

    @property
    def turn(self) -> Color:
        return Color(self._position.turn)

    @property
    def ply(self) -> int:
        """The number of moves played, from 0. A board from SFEN starts at the move number minus one."""
        return self._position.ply

    @property
    def key(self) -> int:
        """64-bit hash of pieces, hands and turn; equal positions have equal keys."""
        return self._position.key

    def piece_at(self, square: int) -> Piece | None:
        if square not in SQUARES:
            raise InvalidPositionError(
                f"square {square!r} is outside 0 … 80; parse_square('7g') gives a number"
            )
        code = self._position.board()[square]
        return Piece.from_native(code) if code else None

    def hand(self, color: Color) -> dict[PieceType, int]:
        """Gets the pieces in a side's hand and their counts, rook first. Counts of 0 are left out."""
        return self.setup.hand(Color(color))

    def king(self, color: Color) -> int:
        """Gets the square of a side's king."""
        return self._position.board().index(Piece(Color(color), PieceType.KING).native)

    # Moves.

    @property
    def legal_moves(self) -> LegalMoves:
        return LegalMoves(self._position)

    @property
    def move_stack(self) -> list[Move]:
        """The moves played on this board, oldest first."""
        return [Move.from_native(code) for code in self._position.history()]

    def push(self, move: Move) -> None:
        """Plays a legal move. Any other move raises ``IllegalMoveError``, and the board does not change."""
        if not isinstance(move, Move):
            raise InvalidMoveError(f"push takes a Move, got {move!r}; push_usi takes text")
        try:
            self._position.push(move.native)
        except ValueError:
            raise self._illegal(move) from None

    def push_usi(self, text: str) -> Move:
        """Plays a move written in USI, and returns it."""
        move = Move.from_usi(text)
        self.push(move)
        return move

    def pop(self) -> Move:
        """Takes back the last move, and returns it. Raises ``IndexError`` if there is none."""
        return Move.from_native(self._position.pop())

    def peek(self) -> Move | None:
        """Gets the last move; None if no move was played."""
        history = self._position.history()
        return Move.from_native(history[-1]) if history else None

    def action(self, move: Move) -> int:
        """Gets the action number, 0 … 2186, of a legal move in the ``shogi`` game."""
        if move not in self.legal_moves:
            raise self._illegal(move)
        return self._position.action_of(move.native)

    def move_from_action(self, action: int) -> Move:
        """Gets the legal move of an action number in this position."""
        if not 0 <= action < core.ACTIONS:
            raise IllegalActionError(f"action {action!r} is outside 0 … {core.ACTIONS - 1}")
        try:
            return Move.from_native(self._position.move_of(int(action)))
        except ValueError:
            raise IllegalActionError(f"action {action} is not a legal move in {self.sfen()!r}") from None

    def _illegal(self, move: Move) -> IllegalMoveError:
        return IllegalMoveError(f"{move} is illegal: {why_illegal(self.setup, move)} (in {self.sfen()!r})")

    # The state of the game.

    def is_check(self) -> bool:
        """Checks if the side to move is in check."""
        return self._position.is_check()

    def is_checkmate(self) -> bool:
        return self.is_check() and not self.legal_moves

    def repetitions(self) -> int:
        """Counts how often this position occurred before in this game; 3 is a fourfold repetition."""
        return self._position.repetitions()

    def can_declare_win(self) -> bool:
        """Checks if the side to move may declare a win by the 27-point rule."""
        return self._position.can_declare_win()

    def outcome(self) -> Outcome | None:
        """Gets how the game ended by its rules; None while it continues.

        A declaration is a player's choice and a ply limit is a setting, so neither ends a ``Board``.
        """
        code, winner = self._position.ending()
        if not code:
            return None
        return Outcome(Termination(core.ENDINGS[code]), None if winner < 0 else Color(winner))

    def is_game_over(self) -> bool:
        return self.outcome() is not None

    # In and out.

    def sfen(self) -> str:
        return write_sfen(self.setup)

    def pack(self) -> bytes:
        """Gets the position in the compact form of the ``shogi`` game; ``from_packed`` reads it."""
        return self._position.pack()

    def copy(self) -> Board:
        """Makes an independent copy, history included."""
        return self._of(self._position.copy())

    def __eq__(self, other: object) -> bool:
        """Compares pieces, hands, side to move and ply. The history may differ."""
        return self.setup == other.setup if isinstance(other, Board) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a board is mutable, so it has no hash

    def __str__(self) -> str:
        return board_text(self.setup)

    def __repr__(self) -> str:
        return f"Board({self.sfen()!r})"

    def _repr_svg_(self) -> str:
        """Notebooks show the board as a picture."""
        return board_svg(self.setup, self.peek())


def perft(sfen: str, depth: int) -> int:
    """Counts the sequences of ``depth`` legal moves from a position: the usual test of a move generator.

    Composed positions with more pieces than a set has are allowed, since such tests use them.
    """
    if depth < 0:
        raise ConfigError(f"perft counts moves to a depth of 0 or more; got {depth}")
    return native_position(parse_sfen(sfen), sfen, strict=False).perft(depth)
