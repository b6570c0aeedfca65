"""The rules of Shogi, case by case: answers that several independent engines were checked against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keisei.errors import IllegalMoveError
from keisei.games.shogi import BLACK, WHITE, Board, Move

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "rules_cases.json").read_text()
)
WINNERS = {"black_win": BLACK, "white_win": WHITE, "draw": None}
KNOWN = {"status", "reason", "in_check", "n_legal", "legal", "illegal", "can_declare"}


def _play(case: dict[str, Any]) -> Board:
    board = Board(case["sfen"])
    for text in case["moves"]:
        assert board.outcome() is None
        board.push_usi(text)
    return board


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    board, expect = _play(case), case["expect"]
    assert expect.keys() <= KNOWN
    if "status" in expect:
        outcome = board.outcome()
        if expect["status"] == "ongoing":
            assert outcome is None
        else:
            assert outcome is not None
            assert outcome.winner is WINNERS[expect["status"]]
            assert outcome.termination.value == expect["reason"]
    if "in_check" in expect:
        assert board.is_check() == expect["in_check"]
    if "n_legal" in expect:
        assert len(board.legal_moves) == expect["n_legal"]
    if "can_declare" in expect:
        assert board.can_declare_win() == expect["can_declare"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_moves_of_case(case: dict[str, Any]) -> None:
    board = _play(case)
    for text in case["expect"].get("legal", ()):
        assert Move.from_usi(text) in board.legal_moves
        assert Move.from_usi(text) in list(board.legal_moves)
    before = board.sfen()
    for text in case["expect"].get("illegal", ()):
        assert Move.from_usi(text) not in board.legal_moves
        with pytest.raises(
            IllegalMoveError, match=rf"^{text.replace('*', '.').replace('+', '.')} is illegal: "
        ):
            board.push_usi(text)
    assert board.sfen() == before


REASONS = {
    "uchifuzume_basic": ("P*1b", "uchifuzume"),
    "uchifuzume_pinned_defender": ("P*1b", "uchifuzume"),
    "nifu": ("P*9e", "nifu: .* on file 9"),
    "dead_end_drops": ("N*1b", "a knight dropped on 1b could never move"),
    "forced_promotion_lance": ("7c7a", "a lance must promote on 7a"),
    "optional_promotion": ("2h2d+", "promotes only on a move into"),
    "gold_never_promotes": ("5c5b+", "a gold cannot promote"),
    "pinned_piece": ("5g4f", "leaves the king in check"),
    "king_cannot_take_guarded": ("5a5b", "leaves the king in check"),
    "promotion_leaving_zone": ("5c5d", "a silver on 5c does not reach 5d"),
    "double_check": ("5a4b", "leaves the king in check"),
}


@pytest.mark.parametrize(("name", "move", "reason"), [(name, *what) for name, what in REASONS.items()])
def test_the_error_says_why(name: str, move: str, reason: str) -> None:
    (case,) = [case for case in CASES if case["name"] == name]
    with pytest.raises(IllegalMoveError, match=reason):
        _play(case).push_usi(move)
