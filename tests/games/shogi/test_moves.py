from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.errors import InvalidMoveError
from keisei.games.shogi import (
    BLACK,
    SQUARE_NAMES,
    SQUARES,
    WHITE,
    Color,
    Move,
    Piece,
    PieceType,
    parse_square,
    square_at,
    square_file,
    square_rank,
)

HAND_TYPES = [kind for kind in PieceType if kind <= PieceType.GOLD]

squares = st.sampled_from(SQUARES)
moves = st.one_of(
    st.tuples(squares, squares, st.booleans()).filter(lambda m: m[0] != m[1]).map(lambda m: Move(*m)),
    st.builds(lambda target, kind: Move(None, target, drop=kind), squares, st.sampled_from(HAND_TYPES)),
)


def test_squares_are_numbered_file_by_file() -> None:
    assert (SQUARE_NAMES[0], SQUARE_NAMES[8], SQUARE_NAMES[9], SQUARE_NAMES[80]) == ("1a", "1i", "2a", "9i")
    for square in SQUARES:
        assert parse_square(SQUARE_NAMES[square]) == square
        assert square_at(square_file(square), square_rank(square)) == square


@pytest.mark.parametrize("name", ["", "0a", "1j", "a1", "7gg", "７g", " 7g"])
def test_no_such_square(name: str) -> None:
    with pytest.raises(InvalidMoveError, match="'1a' to '9i'"):
        parse_square(name)


def test_colors_and_pieces() -> None:
    assert BLACK.opponent is WHITE
    assert WHITE.opponent is BLACK
    assert PieceType.ROOK.promoted is PieceType.DRAGON
    assert PieceType.DRAGON.plain is PieceType.ROOK
    assert PieceType.GOLD.promoted is PieceType.GOLD
    assert Piece(WHITE, PieceType.HORSE).symbol == "+b"
    for color in Color:
        for kind in PieceType:
            assert Piece.from_native(Piece(color, kind).native) == Piece(color, kind)


def test_native_numbers() -> None:
    assert Move.from_usi("1b1a+").native == 0 | 1 << 7 | 1 << 14
    assert Move.from_usi("9i9h").native == 79 | 80 << 7
    assert Move.from_usi("G*5e").native == 40 | 87 << 7


@given(moves)
def test_every_spelling_leads_back(move: Move) -> None:
    assert Move.from_usi(move.usi()) == move
    assert Move.from_native(move.native) == move
    assert eval(repr(move)) == move
    assert str(move) == move.usi()


@given(st.lists(moves, max_size=20))
def test_moves_sort_and_hash(some: list[Move]) -> None:
    ordered = sorted(some)
    for earlier, later in pairwise(ordered):
        assert earlier <= later
        assert (earlier == later) == (earlier.native == later.native)
    assert len(set(some)) == len({move.native for move in some})


def test_order_reads_well() -> None:
    texts = ["1g1f", "2b3c", "2b3c+", "2b4d", "P*5e", "R*1a"]
    assert [move.usi() for move in sorted(map(Move.from_usi, reversed(texts)))] == texts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7g",
        "7g7",
        "7g7f++",
        "7g7g",
        "0a1b",
        "7g7j",
        "K*5e",
        "p*5e",
        "P*5e+",
        "P*",
        "+7776FU",
        "７g7f",
        "7g7f\n",
    ],
)
def test_malformed_usi_names_the_text_and_the_form(text: str) -> None:
    with pytest.raises(InvalidMoveError) as caught:
        Move.from_usi(text)
    assert repr(text) in str(caught.value)
    assert "'7g7f'" in str(caught.value)


def test_a_long_text_is_not_repeated_whole() -> None:
    with pytest.raises(InvalidMoveError) as caught:
        Move.from_usi("x" * 100_000)
    assert len(str(caught.value)) < 300


@given(st.text())
def test_any_text_is_a_move_or_an_error(text: str) -> None:
    with suppress(InvalidMoveError):
        assert Move.from_usi(text).usi() == text


@pytest.mark.parametrize(
    "fields",
    [
        {"from_square": 81, "to_square": 0},
        {"from_square": 0, "to_square": -1},
        {"from_square": None, "to_square": 0},
        {"from_square": 1, "to_square": 0, "drop": PieceType.PAWN},
        {"from_square": None, "to_square": 0, "drop": PieceType.KING},
        {"from_square": None, "to_square": 0, "drop": PieceType.PAWN, "promotion": True},
        {"from_square": 5, "to_square": 5},
    ],
)
def test_a_move_is_well_formed_or_not_made(fields: dict[str, int]) -> None:
    with pytest.raises(InvalidMoveError):
        Move(**fields)  # type: ignore[arg-type]
