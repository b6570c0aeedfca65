"""Saved columns come back as arrays of their own, whatever a state holds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from keisei.experience.saved_columns import columns_like
from keisei.games.contract import Array
from keisei.runs.state import Saved

EXAMPLES: dict[str, Array] = {"numbers": np.zeros(0, np.float32), "rows": np.zeros((0, 3), np.uint8)}
SAVED: dict[str, Array] = {"numbers": np.ones(2, np.float32), "rows": np.ones((2, 3), np.uint8)}


@pytest.mark.parametrize("tensors", [False, True])
def test_they_share_no_memory_with_what_was_saved(tensors: bool) -> None:
    saved: dict[str, Saved] = {
        name: torch.from_numpy(column) if tensors else column for name, column in SAVED.items()
    }
    found = columns_like(EXAMPLES, saved)
    for name, column in SAVED.items():
        np.testing.assert_array_equal(found[name], column)
        assert found[name].dtype == column.dtype
        assert not np.shares_memory(found[name], column)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"numbers": np.ones(2, np.float64)}, "must be float32"),
        ({"rows": np.ones((2, 4), np.uint8)}, "rows of the shape"),
        ({"rows": np.ones((3, 3), np.uint8)}, "different numbers of rows"),
        ({"other": np.ones(2, np.float32)}, "its columns are"),
    ],
)
def test_others_are_refused(wrong: dict[str, Array], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        columns_like(EXAMPLES, {**SAVED, **wrong})
