"""Material counted without the core, as an oracle for players that count it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keisei.games.shogi import Board

# What a piece is worth on the board: pawn 1 … gold 6, as docs/games/shogi.md has it.
WORTH = {"P": 1, "L": 3, "N": 4, "S": 5, "B": 8, "R": 10, "G": 6, "K": 0, "+P": 7, "+L": 6, "+N": 6, "+S": 6,
         "+B": 10, "+R": 12}  # fmt: skip


def material(board: Board) -> int:
    """What black has more than white, from the SFEN alone."""
    squares, _, hands, _ = board.sfen().split()
    total, promoted, count = 0, "", ""
    for sign in squares.replace("/", ""):
        if sign == "+":
            promoted = "+"
        elif not sign.isdigit():
            total += WORTH[promoted + sign.upper()] * (1 if sign.isupper() else -1)
            promoted = ""
    for sign in hands.replace("-", ""):
        if sign.isdigit():
            count += sign
        else:
            total += WORTH[sign.upper()] * int(count or 1) * (1 if sign.isupper() else -1)
            count = ""
    return total


@pytest.fixture(name="material")
def material_fixture() -> Callable[[Board], int]:
    return material
