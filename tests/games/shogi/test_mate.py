"""The search for a mate, beside cshogi's."""

from __future__ import annotations

import cshogi
import pytest

from keisei import make_game
from keisei.games.shogi import Board
from keisei.games.shogi.mate import _MateSearch, find_mate

NONE_LEFT = "2r2b3g4s4n4l17p"


def test_a_mate_in_one() -> None:
    board = Board(f"4k4/9/4P4/9/9/9/9/9/4K4 b G{NONE_LEFT} 1")
    line = find_mate(board)
    assert line is not None
    assert [move.usi() for move in line] == ["G*5b"]
    assert board == Board(f"4k4/9/4P4/9/9/9/9/9/4K4 b G{NONE_LEFT} 1")


def test_a_mate_in_three_with_the_longest_defence() -> None:
    board = Board("7k1/9/6P1P/9/9/9/9/9/4K4 b 2G2r2b2g4s4n4l16p 1")
    line = find_mate(board)
    assert line is not None
    assert len(line) == 3
    for move in line:
        board.push(move)
    assert board.is_checkmate()


@pytest.mark.parametrize("sfen", ["startpos", "4k4/9/9/9/9/9/9/9/4K4 b 2r2b4g4s4n4l18p 1"])
def test_no_checks_no_mate(sfen: str) -> None:
    assert find_mate(Board(sfen)) is None


def test_a_search_can_be_stopped() -> None:
    with pytest.raises(TimeoutError, match="stopped"):
        find_mate(Board(), stopped=lambda: True)


def positions() -> list[Board]:
    """Positions of random games, which are full of mates that nobody sees."""
    game = make_game("shogi", batch=16, seed=5, max_plies=400)
    found = []
    for ply in range(300):
        game.step(game.random_actions())
        if ply % 15 == 0:
            found += [Board.from_packed(row.tobytes()) for row in game.pack()]
    return found


def test_cshogi_finds_no_mate_that_is_overlooked() -> None:
    mates = 0
    for board in positions():
        line = _MateSearch(board.copy(), lambda: False).attack(3)[0]
        oracle = cshogi.Board(board.sfen())
        if not oracle.is_check() and oracle.mate_move(3):
            assert line is not None, board.sfen()
        if line is None:
            continue
        mates += 1
        for move in line:
            board.push(move)
        assert board.is_checkmate()
    assert mates > 10
