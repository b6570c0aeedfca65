"""Columns of decisions as checkpoints have them: whether they are those of a game, before anything is learned from
them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from keisei.games.contract import Array
from keisei.runs.state import Saved

__all__ = ["check_actions", "columns_like"]


def columns_like(examples: Mapping[str, Array], tensors: Mapping[str, Saved]) -> dict[str, Array]:
    """Copies saved columns as arrays of their own, since the rows of a checkpoint may be a view of its file. They have
    the types and row shapes of the examples, and all have as many rows. Raises ``ValueError`` for others."""
    if tensors.keys() != examples.keys():
        raise ValueError(f"its columns are {', '.join(tensors)}, and not {', '.join(examples)}")
    columns: dict[str, Array] = {name: np.asarray(tensor).copy() for name, tensor in tensors.items()}
    for name, example in examples.items():
        column = columns[name]
        if column.ndim == 0 or (column.dtype, column.shape[1:]) != (example.dtype, example.shape[1:]):
            raise ValueError(
                f"its column {name} is {column.dtype} of the shape {column.shape}, and must be {example.dtype} with "
                f"rows of the shape {example.shape[1:]}"
            )
    if len({len(column) for column in columns.values()}) != 1:
        raise ValueError("its columns have different numbers of rows")
    return columns


def check_actions(actions: Array, num_actions: int) -> None:
    """Raises ``ValueError`` if one of the actions is none of the game."""
    if len(actions) and not (np.min(actions) >= 0 and np.max(actions) < num_actions):
        raise ValueError(f"its actions are not all in 0 … {num_actions - 1}")
