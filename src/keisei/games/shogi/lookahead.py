"""Look-ahead in Shogi by the native core: material, captures and alpha-beta."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keisei.games.contract import ByteArray, IntArray
from keisei.native import core

_SHALLOW = 3
_ROWS_AT_ONCE = 64
"""Rows of one native call. Between calls, Ctrl-C can interrupt."""


def grab(packed: ByteArray, keys: NDArray[np.uint64]) -> IntArray:
    """Gives the capture or promotion that wins the most material, else a random move."""
    rows = len(keys)
    actions, scores, nodes = np.full(rows, -1, np.int32), np.empty(rows, np.int32), np.empty(rows, np.uint64)
    core.grab(packed, keys, actions, scores, nodes)
    return actions


def search(packed: ByteArray, depth: int, keys: NDArray[np.uint64]) -> IntArray:
    """Gives the best move of a search over ``depth`` plies, which counts material at the leaves."""
    rows = len(keys)
    actions, scores, nodes = np.full(rows, -1, np.int32), np.empty(rows, np.int32), np.empty(rows, np.uint64)
    stride = _ROWS_AT_ONCE if depth <= _SHALLOW else 1
    for start in range(0, rows, stride):
        part = slice(start, start + stride)
        core.search(packed[part], depth, keys[part], actions[part], scores[part], nodes[part])
    return actions
