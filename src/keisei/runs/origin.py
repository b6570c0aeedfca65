"""``origin.json``: where a run comes from, if it began with the state or the weights of another run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from keisei.runs.directory import RunDirectory
from keisei.runs.durable_files import file_errors, replace_file
from keisei.runs.foreign_documents import json_of, shown_text, typed
from keisei.runs.foreign_files import read_foreign

__all__ = ["BRANCH", "WEIGHTS", "Origin", "read_origin", "write_origin"]

ORIGIN = "origin.json"
BRANCH, WEIGHTS = "branch", "weights"
_WORDS = {BRANCH: "branched from", WEIGHTS: "began with the weights of"}
_LARGEST = 1 << 16


@dataclass(frozen=True)
class Origin:
    """A checkpoint of another run."""

    kind: str
    """``branch`` if all was taken over, ``weights`` if only the weights were."""
    run: str
    """The path of that run."""
    id: str
    """The id of that run; empty if it has none."""
    update: int
    checkpoint: str
    """The name of the checkpoint in its run."""
    weights: str
    """The digest of the weights."""

    def __str__(self) -> str:
        return f"{_WORDS[self.kind]} {self.run}@{self.update} (weights {self.weights[:12]})"


def write_origin(run: RunDirectory, origin: Origin) -> None:
    with file_errors(run.path):
        replace_file(run.path / ORIGIN, (json.dumps(asdict(origin), indent=1) + "\n").encode())


def read_origin(run: RunDirectory) -> Origin | None:
    """Reads where a run comes from; None if it began with nothing, or if the file is damaged."""
    try:
        origin = typed(Origin, json_of(read_foreign(run.path, ORIGIN, _LARGEST)))
    except (OSError, ValueError):
        return None
    if origin.kind not in _WORDS:
        return None
    return replace(origin, run=shown_text(origin.run))
