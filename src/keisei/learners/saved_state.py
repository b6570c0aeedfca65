"""Checks the saved state of a learner before anything of it is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keisei.errors import CheckpointError
from keisei.runs.state import State

__all__ = ["checked_document"]

_LARGEST = 1 << 53


def checked_document(state: State, name: str, groups: Sequence[str], count: str) -> dict[str, Any]:
    """Reads the document of a learner's state. Raises ``CheckpointError`` if it lacks tensors or entries, or if its
    ``count`` of updates or steps is not a whole number of 0 or more."""
    document = state.document if isinstance(state.document, dict) else {}
    missing = [f"the {group}'s tensors" for group in groups if group not in state.tensors]
    missing += [f"the document's {entry}" for entry in ("optimizer", count) if entry not in document]
    number = document.get(count)
    if missing or type(number) is not int or not 0 <= number < _LARGEST:
        what = f"without {', '.join(missing)}" if missing else f"with {number!r} for its number of {count}"
        raise CheckpointError(
            f"this is no state of a {name} learner: it comes {what}. Take a checkpoint of a run that learned by {name}"
        )
    return document
