"""Look-ahead by the native core says which row it cannot decide for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from keisei import make_game
from keisei.errors import GameError
from keisei.games.contract import ByteArray, IntArray
from keisei.games.shogi import Board, lookahead

CHECKMATED = "4k4/4G4/4G4/9/9/9/9/9/4K4 w - 1"
ROWS = 70
"""More than one native call decides for."""


def search(packed: ByteArray, keys: np.ndarray) -> IntArray:
    return lookahead.search(packed, 1, keys)


@pytest.mark.parametrize("choose", [lookahead.grab, search])
@pytest.mark.parametrize("row", [0, 66])
def test_a_row_without_a_move_is_named(choose: Callable[..., IntArray], row: int) -> None:
    game = make_game("shogi", batch=ROWS, seed=1)
    keys = np.arange(ROWS, dtype=np.uint64)
    assert (choose(game.pack(), keys) >= 0).all()
    for bad in (
        np.zeros(game.spec.packed_bytes, np.uint8),
        np.frombuffer(Board(CHECKMATED).pack(), np.uint8),
    ):
        packed = game.pack()
        packed[row] = bad
        with pytest.raises(
            GameError, match=f"row {row} of the packed rows is no Shogi position with a legal move"
        ):
            choose(packed, keys)
