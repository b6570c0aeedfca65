"""Moves as people type them: every notation, what is ambiguous, and why a text is no move."""

from __future__ import annotations

import numpy as np
import pytest

from keisei import make_game
from keisei.errors import IllegalMoveError, InvalidMoveError
from keisei.games.naming import move_examples, move_names, read_move
from keisei.games.shogi import WHITE, Board, Move, kif
from keisei.games.shogi.typed_moves import read_typed_move, written_moves

OPEN = "lnsgkgsnl/1r5b1/pppppp1pp/6p2/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL b - 1"
"""The bishops face each other."""
DROPS = "4k4/9/9/9/9/4S4/9/9/4K4 b S2P 1"
"""A silver on the board and one in hand reach the same squares."""
ZONE = "8k/9/2N1P4/9/9/9/9/9/4K4 b - 1"
"""A pawn that may promote, and a knight that must."""
GOLDS = "4k4/9/9/9/9/9/9/9/3GKG3 b - 1"


def meant(sfen: str, text: str) -> list[str]:
    return [move.usi() for move in read_typed_move(Board(sfen), text)]


@pytest.mark.parametrize(
    "text",
    [
        "8c8d", "8C8D", "8c-8d", "83-84", "8384", "8三8四", "８三８四歩", "P-84", "p-84", "P84", "P-8d", "P8d",
        "P83-84", "P8c-8d", "8四歩", "８四歩", "84歩", "8d歩", "△８四歩", "☖8四歩", "8四歩(83)",
        "８四歩（８３）", "8四 歩 (83)", "P–84",
    ],
)  # fmt: skip
def test_a_move_may_be_written_in_many_ways(text: str) -> None:
    after = Board()
    after.push_usi("7g7f")
    assert meant(after.sfen(), text) == ["8c8d"]


@pytest.mark.parametrize(
    ("sfen", "text", "move"),
    [
        (OPEN, "8h2b+", "8h2b+"),
        (OPEN, "Bx22+", "8h2b+"),
        (OPEN, "bx2b=", "8h2b"),
        (OPEN, "2二角成", "8h2b+"),
        (OPEN, "2二角不成", "8h2b"),
        (OPEN, "22角成(88)", "8h2b+"),
        (OPEN, "2二角(88)", "8h2b"),  # KIF writes every promotion
        (OPEN, "88x22成", "8h2b+"),
        (OPEN, "8八2二角成", "8h2b+"),
        (DROPS, "S*55", "S*5e"),
        (DROPS, "s*5e", "S*5e"),
        (DROPS, "5五銀打", "S*5e"),
        (DROPS, "S56-55", "5f5e"),
        (DROPS, "5五銀(56)", "5f5e"),
        (DROPS, "Sx55", "5f5e"),  # a drop takes nothing
        (DROPS, "P-23", "P*2c"),
        (DROPS, "2三歩", "P*2c"),
        (ZONE, "N-81", "7c8a+"),
        (ZONE, "8一桂", "7c8a+"),
        (ZONE, "73-81", "7c8a+"),
        (GOLDS, "G49-48", "4i4h"),
        ("8k/9/9/9/4+R4/9/9/9/4K4 b - 1", "+R-54", "5e5d"),
        ("8k/9/9/9/4+R4/9/9/9/4K4 b - 1", "5四竜", "5e5d"),
        ("8k/9/9/9/4+R4/9/9/9/4K4 b - 1", "5四龍", "5e5d"),
        ("8k/9/9/9/4+S4/9/9/9/4K4 b - 1", "5四成銀", "5e5d"),
    ],
)
def test_promotions_and_drops(sfen: str, text: str, move: str) -> None:
    assert meant(sfen, text) == [move]


@pytest.mark.parametrize(
    ("sfen", "text", "moves"),
    [
        (GOLDS, "G-58", ["4i5h", "6i5h"]),
        (GOLDS, "5八金", ["4i5h", "6i5h"]),
        (OPEN, "B22", ["8h2b", "8h2b+"]),
        (OPEN, "2二角", ["8h2b", "8h2b+"]),
        (DROPS, "S-55", ["5f5e", "S*5e"]),
        (DROPS, "5五銀", ["5f5e", "S*5e"]),
        (ZONE, "52歩", ["5c5b", "5c5b+"]),
    ],
)
def test_what_may_mean_several_moves_gives_them_all(sfen: str, text: str, moves: list[str]) -> None:
    assert meant(sfen, text) == moves


@pytest.mark.parametrize(
    ("sfen", "text", "reason"),
    [
        ("startpos", "R-55", "a rook on 2h does not reach 5e"),
        ("startpos", "8c8d", "the pawn on 8c is the opponent's"),
        ("startpos", "7g7e", "a pawn on 7g does not reach 7e"),
        ("startpos", "5e5d", "there is no piece on 5e"),
        ("startpos", "P*55", "black has no pawn in hand"),
        ("startpos", "G-55", "no gold of yours can do that"),
        ("startpos", "R77-76", "no rook of yours can do that"),
        ("4k4/9/9/9/9/9/P8/9/4K4 b P 1", "P*94", "nifu"),
        ("4k4/4r4/9/9/9/9/9/4G4/4K4 b - 1", "G-48", "it leaves the king in check"),
    ],
)
def test_an_illegal_move_is_told_the_rule(sfen: str, text: str, reason: str) -> None:
    with pytest.raises(IllegalMoveError, match=f"'{text.replace('*', '.')}' is not possible: .*{reason}"):
        meant(sfen, text)


@pytest.mark.parametrize(
    "text", ["", "foo", "76", "P", "0a1a", "P-99-", "7六", "8八角成打", "7g7f7e", "x" * 500]
)
def test_other_texts_are_told_the_forms(text: str) -> None:
    with pytest.raises(InvalidMoveError, match=r"is no move; moves are written like 7g7f, P-76, .* or 7六歩"):
        meant("startpos", text)


def test_the_square_of_the_last_move_is_written_out() -> None:
    with pytest.raises(InvalidMoveError, match="'同歩' does not name its square; write it out, as in 7六歩"):
        meant("startpos", "同歩")


def test_every_way_of_writing_a_move_means_it_alone() -> None:
    """Also in KIF, which another module writes."""
    game = make_game("shogi", batch=6, seed=5, max_plies=400)
    seen = {"drop": 0, "promotion": 0, "white": 0}
    for ply in range(240):
        if ply % 11 == 0:
            for row in game.pack():
                board = Board.from_packed(row.tobytes())
                for move in board.legal_moves:
                    for text in (*written_moves(board, move), kif.kif_move(board, move)):
                        assert read_typed_move(board, text) == [move], (board.sfen(), text)
                    seen["drop"] += move.drop is not None
                    seen["promotion"] += move.promotion
                    seen["white"] += board.turn is WHITE
        game.step(game.random_actions())
    assert min(seen.values()) > 100


def test_a_batch_reads_and_writes_them() -> None:
    game = make_game("shogi", batch=2, seed=1, start=GOLDS)
    actions = np.flatnonzero(game.legal()[1]).tolist()
    names = move_names(game, actions, 1)
    found = read_move(game, "G-58", names, 1)
    assert sorted(move_examples(game, action, 1)[0] for action in found) == ["4i5h", "6i5h"]
    assert [list(move_examples(game, action, 1)) for action in found] == [
        ["4i5h", "G49-58", "5八金(49)"],
        ["6i5h", "G69-58", "5八金(69)"],
    ]
    assert read_move(game, "4I5H", names, 1) == [names["4i5h"]]


def test_a_short_way_is_shown_where_it_is_enough() -> None:
    assert written_moves(Board(), Move.from_usi("7g7f")) == ["7g7f", "P-76", "7六歩"]
    assert written_moves(Board(OPEN), Move.from_usi("8h2b+")) == ["8h2b+", "Bx22+", "2二角成"]
    assert written_moves(Board(OPEN), Move.from_usi("8h2b")) == ["8h2b", "Bx22=", "2二角不成"]
    assert written_moves(Board(DROPS), Move.from_usi("S*5e")) == ["S*5e", "S*55", "5五銀打"]
