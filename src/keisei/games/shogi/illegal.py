"""Explains in words why a move is illegal. The native core decides; this module only explains."""

from __future__ import annotations

from keisei.errors import InvalidPositionError
from keisei.games.shogi.moves import BLACK, SQUARE_NAMES, Move, Piece, PieceType, square_file, square_rank
from keisei.games.shogi.sfen import Setup, is_dead_end, native_position

_Step = tuple[int, int]
"""Steps in files and ranks, as black sees them: (0, -1) is straight ahead."""

_GOLD_STEPS: tuple[_Step, ...] = ((-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (0, 1))
_DIAGONAL: tuple[_Step, ...] = ((-1, -1), (1, -1), (-1, 1), (1, 1))
_STRAIGHT: tuple[_Step, ...] = ((0, -1), (-1, 0), (1, 0), (0, 1))

_STEPS: dict[PieceType, tuple[_Step, ...]] = {
    PieceType.PAWN: ((0, -1),),
    PieceType.KNIGHT: ((-1, -2), (1, -2)),
    PieceType.SILVER: (*_DIAGONAL, (0, -1)),
    PieceType.GOLD: _GOLD_STEPS,
    PieceType.KING: _DIAGONAL + _STRAIGHT,
    PieceType.PRO_PAWN: _GOLD_STEPS,
    PieceType.PRO_LANCE: _GOLD_STEPS,
    PieceType.PRO_KNIGHT: _GOLD_STEPS,
    PieceType.PRO_SILVER: _GOLD_STEPS,
    PieceType.HORSE: _STRAIGHT,
    PieceType.DRAGON: _DIAGONAL,
}
_SLIDES: dict[PieceType, tuple[_Step, ...]] = {
    PieceType.LANCE: ((0, -1),),
    PieceType.BISHOP: _DIAGONAL,
    PieceType.HORSE: _DIAGONAL,
    PieceType.ROOK: _STRAIGHT,
    PieceType.DRAGON: _STRAIGHT,
}


def why_illegal(setup: Setup, move: Move) -> str:
    """Names the rule that an illegal move breaks."""
    reason = _why_no_drop(setup, move) if move.drop is not None else _why_no_board_move(setup, move)
    return reason or _why_no_such_position(setup, move)


def _name(piece: Piece) -> str:
    return piece.type.name.lower().replace("_", "-")


def _why_no_drop(setup: Setup, move: Move) -> str | None:
    assert move.drop is not None
    piece, target = Piece(setup.turn, move.drop), SQUARE_NAMES[move.to_square]
    if move.drop not in setup.hand(setup.turn):
        return f"{setup.turn.name.lower()} has no {_name(piece)} in hand"
    if setup.board[move.to_square]:
        return f"pieces are dropped on empty squares, and {target} is taken"
    if is_dead_end(piece, move.to_square):
        return f"a {_name(piece)} dropped on {target} could never move"
    if move.drop is PieceType.PAWN:
        file = square_file(move.to_square)
        if piece.native in setup.board[(file - 1) * 9 : file * 9]:
            return f"nifu: an unpromoted pawn of the same side already stands on file {file}"
    return None


def _why_no_board_move(setup: Setup, move: Move) -> str | None:
    assert move.from_square is not None
    origin, target = SQUARE_NAMES[move.from_square], SQUARE_NAMES[move.to_square]
    if not setup.board[move.from_square]:
        return f"there is no piece on {origin}"
    piece = Piece.from_native(setup.board[move.from_square])
    if piece.color is not setup.turn:
        return f"it is {setup.turn.name.lower()}'s turn, and the {_name(piece)} on {origin} is the opponent's"
    taken = setup.board[move.to_square]
    if taken and Piece.from_native(taken).color is setup.turn:
        return f"a piece of the same side stands on {target}"
    if not _reaches(setup, piece, move.from_square, move.to_square):
        return f"a {_name(piece)} on {origin} does not reach {target}"
    return _why_no_promotion(piece, move)


def _why_no_promotion(piece: Piece, move: Move) -> str | None:
    assert move.from_square is not None
    target = SQUARE_NAMES[move.to_square]
    if not move.promotion:
        if is_dead_end(piece, move.to_square):
            return f"a {_name(piece)} must promote on {target}, where it could never move again"
        return None
    if not piece.type.can_promote:
        return f"a {_name(piece)} cannot promote"
    zone = range(1, 4) if piece.color is BLACK else range(7, 10)
    if square_rank(move.from_square) not in zone and square_rank(move.to_square) not in zone:
        return "a piece promotes only on a move into, within or out of the opponent's three ranks"
    return None


def _reaches(setup: Setup, piece: Piece, origin: int, target: int) -> bool:
    forward = 1 if piece.color is BLACK else -1
    files = square_file(target) - square_file(origin)
    ranks = (square_rank(target) - square_rank(origin)) * forward
    if (files, ranks) in _STEPS.get(piece.type, ()):
        return True
    distance = max(abs(files), abs(ranks))
    if files % distance or ranks % distance:
        return False
    direction = (files // distance, ranks // distance)
    if direction not in _SLIDES.get(piece.type, ()):
        return False
    stride = direction[0] * 9 + direction[1] * forward
    return not any(setup.board[origin + stride * step] for step in range(1, distance))


def _why_no_such_position(setup: Setup, move: Move) -> str:
    """Explains why the rules forbid the position after a move that the piece can make."""
    board = bytearray(setup.board)
    if move.drop is not None:
        board[move.to_square] = Piece(setup.turn, move.drop).native
    else:
        assert move.from_square is not None
        piece = Piece.from_native(board[move.from_square])
        after = piece.type.promoted if move.promotion else piece.type
        board[move.to_square], board[move.from_square] = Piece(setup.turn, after).native, 0
    try:  # hands do not matter for check, and without them the number of pieces stays correct
        native_position(Setup(bytes(board), bytes(14), setup.turn.opponent, 0))
    except InvalidPositionError:
        return "it leaves the king in check"
    return "uchifuzume: a dropped pawn may not give checkmate"
