"""The saved state of one part of a run, such as its learner. It knows no torch, which takes a second to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from keisei.runs.json_values import Json
from keisei.runs.pieces import Piece

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Saved", "State"]

Saved: TypeAlias = "Tensor | NDArray[Any]"
"""What a group of tensors may hold. A checkpoint on disk always loads as torch tensors."""


@dataclass(frozen=True, eq=False)
class State:
    """The saved state of one part of a run."""

    tensors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Groups of named tensors, each ``Saved``. Each group becomes a file of the checkpoint."""
    document: Json = None
    """Other data as JSON."""
    pieces: Mapping[str, Piece] = field(default_factory=dict)
    """Large parts that are written once, under a name that identifies their content."""
