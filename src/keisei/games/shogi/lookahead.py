"""Look-ahead in Shogi by the native core: material, captures and alpha-beta."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keisei.errors import GameError
from keisei.games.contract import ByteArray, IntArray
from keisei.native import core

_SHALLOW = 3
_ROWS_AT_ONCE = 64
"""Rows of one native call. Between calls, Ctrl-C can interrupt."""


def grab(packed: ByteArray, keys: NDArray[np.uint64]) -> IntArray:
    """Gets the capture or promotion that wins the most material, else a random move."""
    actions, scores, nodes = _room(len(keys))
    _need_moves(core.grab(packed, keys, actions, scores, nodes))
    return actions


def search(packed: ByteArray, depth: int, keys: NDArray[np.uint64]) -> IntArray:
    """Gets the best move of a search over ``depth`` plies, which counts material at the leaves."""
    actions, scores, nodes = _room(len(keys))
    stride = _ROWS_AT_ONCE if depth <= _SHALLOW else 1
    for start in range(0, len(keys), stride):
        part = slice(start, start + stride)
        _need_moves(
            core.search(packed[part], depth, keys[part], actions[part], scores[part], nodes[part]), start
        )
    return actions


def _room(rows: int) -> tuple[IntArray, IntArray, NDArray[np.uint64]]:
    """Makes the arrays that the core writes: actions, scores and positions looked at."""
    return np.empty(rows, np.int32), np.empty(rows, np.int32), np.empty(rows, np.uint64)


def _need_moves(bad: int, start: int = 0) -> None:
    if bad >= 0:
        raise GameError(
            f"row {start + bad} of the packed rows is no Shogi position with a legal move; it was damaged, or its "
            f"game is over"
        )
