from __future__ import annotations

import doctest
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keisei.games.shogi as shogi
from keisei.errors import (
    ConfigError,
    IllegalActionError,
    IllegalMoveError,
    InvalidMoveError,
    InvalidPositionError,
)
from keisei.games.shogi import (
    BLACK,
    STARTING_SFEN,
    WHITE,
    Board,
    Color,
    Move,
    Outcome,
    Piece,
    PieceType,
    Termination,
    parse_square,
    perft,
)
from keisei.games.shogi.illegal import why_illegal

STARTS = [
    STARTING_SFEN,
    "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
    "4k4/9/9/9/9/9/9/9/4K4 b RBGSNLPrbgsnlp 1",
    "8k/9/9/9/9/9/9/9/R7K b - 1",
]


def test_public_names() -> None:
    for name in shogi.__all__:
        assert hasattr(shogi, name)
    assert sorted(shogi.__all__) == sorted(set(shogi.__all__))


def test_the_examples_in_the_documentation() -> None:
    page = Path(__file__).parents[3] / "docs" / "games" / "shogi_api.md"
    for result in (
        doctest.testfile(str(page), module_relative=False, encoding="utf-8"),
        doctest.testmod(shogi),
        doctest.testmod(shogi.board),
    ):
        assert result.attempted > 0
        assert result.failed == 0


def test_the_start() -> None:
    board = Board()
    assert board.sfen() == STARTING_SFEN
    assert board.turn is BLACK
    assert board.ply == 0
    assert len(board.legal_moves) == 30
    assert board.piece_at(parse_square("8h")) == Piece(BLACK, PieceType.BISHOP)
    assert board.piece_at(parse_square("8b")) == Piece(WHITE, PieceType.ROOK)
    assert board.piece_at(parse_square("5e")) is None
    assert board.hand(BLACK) == board.hand(WHITE) == {}
    assert board.king(WHITE) == parse_square("5a")
    assert board.peek() is None
    assert not board.is_check()
    assert board.outcome() is None
    assert not board.is_game_over()


def test_playing_and_taking_back() -> None:
    board = Board()
    assert board.push_usi("7g7f") == Move.from_usi("7g7f")
    board.push_usi("3c3d")
    board.push_usi("8h2b+")
    assert board.hand(BLACK) == {PieceType.BISHOP: 1}
    assert board.piece_at(parse_square("2b")) == Piece(BLACK, PieceType.HORSE)
    assert board.turn is WHITE
    assert board.ply == 3
    assert board.peek() == Move.from_usi("8h2b+")
    assert [board.pop().usi() for _ in range(3)] == ["8h2b+", "3c3d", "7g7f"]
    assert board == Board()
    with pytest.raises(IndexError):
        board.pop()
    assert board == Board()


def test_legal_moves_as_a_collection() -> None:
    board = Board()
    moves = list(board.legal_moves)
    assert len(moves) == len(set(moves)) == 30
    assert all(move in board.legal_moves for move in moves)
    assert Move.from_usi("7g7e") not in board.legal_moves
    assert "7g7f" not in board.legal_moves  # a text is no Move
    assert board.legal_moves
    assert repr(board.legal_moves).startswith("<30 legal moves: 1g1f 1i1h")
    mated = Board("4k4/4G4/4P4/9/9/9/9/9/4K4 w 2r2b3g4s4n4l17p 1")
    assert not mated.legal_moves
    assert mated.is_checkmate()
    assert mated.outcome() == Outcome(Termination.NO_LEGAL_MOVES, BLACK)


def test_copies_go_their_own_ways() -> None:
    board = Board()
    board.push_usi("7g7f")
    other = board.copy()
    other.push_usi("3c3d")
    assert board.ply == 1
    assert other.pop().usi() == "3c3d"
    assert other.pop().usi() == "7g7f"
    assert board.move_stack == [Move.from_usi("7g7f")]


def test_equality_and_repr() -> None:
    board = Board.from_usi_position("startpos moves 7g7f 3c3d 2g2f")
    same = Board.from_usi_position("startpos moves 2g2f 3c3d 7g7f")
    assert board == same
    assert board.key == same.key
    assert board != Board()
    assert board != "board"
    assert eval(repr(board)) == board
    with pytest.raises(TypeError):
        hash(board)


FAULTS = {
    "5e5d": "there is no piece on 5e",
    "3c3d": "it is black's turn, and the pawn on 3c is the opponent's",
    "9i9g": "a piece of the same side stands on 9g",
    "7g7e": "a pawn on 7g does not reach 7e",
    "8h2b+": "a bishop on 8h does not reach 2b",
    "2h2c": "a rook on 2h does not reach 2c",
    "9i8h": "a piece of the same side",
    "9i8g": "a piece of the same side",
    "7i5g": "a piece of the same side",
    "6i5h+": "a gold cannot promote",
    "7g7f+": "promotes only on a move into",
    "P*5e": "black has no pawn in hand",
}


@pytest.mark.parametrize(("text", "reason"), FAULTS.items())
def test_illegal_moves_say_why_and_change_nothing(text: str, reason: str) -> None:
    board = Board()
    with pytest.raises(IllegalMoveError, match=reason) as caught:
        board.push_usi(text)
    assert STARTING_SFEN in str(caught.value)
    assert board == Board()
    assert board.move_stack == []


def test_more_reasons() -> None:
    board = Board("4k4/2G6/4p4/9/9/9/9/9/4K4 w Pr 1")
    with pytest.raises(IllegalMoveError, match="white has no gold in hand"):
        board.push_usi("G*5e")
    with pytest.raises(IllegalMoveError, match="dropped on empty squares, and 7b is taken"):
        board.push_usi("R*7b")
    with pytest.raises(IllegalMoveError, match="leaves the king in check"):
        board.push_usi("5a6a")


def test_wrong_arguments() -> None:
    board = Board()
    with pytest.raises(InvalidMoveError, match="push_usi takes text"):
        board.push("7g7f")  # type: ignore[arg-type]
    with pytest.raises(InvalidMoveError):
        board.push_usi("pawn to 7f")
    with pytest.raises(InvalidPositionError, match="outside 0 … 80"):
        board.piece_at(81)
    with pytest.raises(InvalidPositionError, match="got int"):
        Board(5)  # type: ignore[arg-type]
    with pytest.raises(IllegalMoveError, match="move 2 of the USI position: 7g7f is illegal"):
        Board.from_usi_position("startpos moves 7g7f 7g7f")
    with pytest.raises(InvalidMoveError, match="move 1 of the USI position"):
        Board.from_usi_position("startpos moves 7776FU")


def test_every_legal_move_passes_the_explanation() -> None:
    """The words for illegal moves must never fit a legal one: then only the position after it is left."""
    rng = random.Random(3)
    for start in STARTS * 3:
        board = Board(start)
        for _ in range(60):
            moves = list(board.legal_moves)
            if not moves:
                break
            for move in moves:
                assert why_illegal(board.setup, move).startswith("uchifuzume")  # its last resort
            board.push(rng.choice(moves))


@given(st.sampled_from(STARTS), st.lists(st.integers(0, 600), max_size=40), st.integers(0, 2**15 - 1))
def test_any_other_move_is_refused_with_a_reason(start: str, picks: list[int], code: int) -> None:
    board = Board(start)
    _play(board, picks)
    try:
        move = Move.from_native(code)
    except (InvalidMoveError, ValueError):
        return
    if move in board.legal_moves:
        return
    before = board.sfen(), board.move_stack
    with pytest.raises(IllegalMoveError, match=" is illegal: "):
        board.push(move)
    assert (board.sfen(), board.move_stack) == before


def _play(board: Board, picks: list[int]) -> None:
    for pick in picks:
        moves = sorted(board.legal_moves)
        if moves:
            board.push(moves[pick % len(moves)])


def _state(board: Board) -> tuple[object, ...]:
    return (
        board.sfen(),
        board.key,
        board.move_stack,
        board.repetitions(),
        board.is_check(),
        board.outcome(),
        sorted(board.legal_moves),
        board.pack(),
    )


@given(st.sampled_from(STARTS), st.lists(st.integers(0, 600), max_size=60))
def test_pop_restores_everything(start: str, picks: list[int]) -> None:
    board = Board(start)
    states = [_state(board)]
    for pick in picks:
        moves = sorted(board.legal_moves)
        if not moves:
            break
        board.push(moves[pick % len(moves)])
        states.append(_state(board))
    while board.move_stack:
        assert _state(board) == states.pop()
        board.pop()
    assert _state(board) == states.pop()


@given(st.sampled_from(STARTS), st.lists(st.integers(0, 600), max_size=40))
def test_other_forms_hold_the_same_position(start: str, picks: list[int]) -> None:
    board = Board(start)
    _play(board, picks)
    for other in (
        Board(board.sfen()),
        Board.from_packed(board.pack()),
        Board.from_setup(board.setup),
        board.copy(),
    ):
        assert other == board
        assert other.key == board.key
        assert sorted(other.legal_moves) == sorted(board.legal_moves)


@given(st.sampled_from(STARTS), st.lists(st.integers(0, 600), max_size=30))
def test_actions_name_moves_one_to_one(start: str, picks: list[int]) -> None:
    board = Board(start)
    _play(board, picks)
    actions = {board.action(move): move for move in board.legal_moves}
    assert len(actions) == len(board.legal_moves)
    for action, move in actions.items():
        assert 0 <= action < 2187
        assert board.move_from_action(action) == move


def test_actions_that_name_no_move() -> None:
    board = Board()
    with pytest.raises(IllegalMoveError):
        board.action(Move.from_usi("5e5d"))
    legal = {board.action(move) for move in board.legal_moves}
    unused = next(action for action in range(2187) if action not in legal)
    with pytest.raises(IllegalActionError, match=f"action {unused} is not a legal move"):
        board.move_from_action(unused)
    for action in (-1, 2187):
        with pytest.raises(IllegalActionError, match="outside 0 … 2186"):
            board.move_from_action(action)


@given(st.binary(max_size=80))
def test_bytes_that_are_no_packed_position(packed: bytes) -> None:
    with pytest.raises(InvalidPositionError, match="not a packed position"):
        Board.from_packed(packed)


def test_perft() -> None:
    assert [perft("startpos", depth) for depth in range(4)] == [1, 30, 900, 25470]
    with pytest.raises(ConfigError, match="got -1"):
        perft("startpos", -1)
    with pytest.raises(InvalidPositionError):
        perft("4k4/9/9/9/9/9/9/9/9 b - 1", 1)


def test_white_wins_too() -> None:
    board = Board("4k4/9/9/9/9/9/4p4/9/4K4 w g 1")
    board.push_usi("G*5h")
    assert board.is_checkmate()
    assert board.outcome() == Outcome(Termination.NO_LEGAL_MOVES, Color.WHITE)
