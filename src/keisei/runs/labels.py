"""``labels.json``: what people have written on a run: tags, a note, and that it is put away.

It is a file of its own that no trainer writes, so tags and notes can be changed while the run is trained.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from keisei.errors import RunError
from keisei.runs.directory import RunDirectory
from keisei.runs.durable_files import file_errors, replace_file
from keisei.runs.foreign_documents import json_of, typed
from keisei.runs.foreign_files import read_foreign

__all__ = ["LABELS", "Labels", "read_labels", "retagged", "write_labels"]

LABELS = "labels.json"
LONGEST_NOTE = 2000
MOST_TAGS = 20
_TAG = re.compile(r"[\w][\w.+-]{0,39}")
_LARGEST = 1 << 16


@dataclass(frozen=True)
class Labels:
    """What people have written on a run."""

    tags: tuple[str, ...] = ()
    """Sorted."""
    note: str = ""
    archived: bool = False
    """Whether lists leave it out."""


def read_labels(run: RunDirectory) -> Labels:
    """Reads the labels of a run; none if nothing is written, or if the file is damaged."""
    try:
        labels = typed(Labels, json_of(read_foreign(run.path, LABELS, _LARGEST)))
        check_labels(labels)
    except (OSError, ValueError, RunError):
        return Labels()
    return replace(labels, tags=tuple(sorted({*labels.tags})))


def write_labels(run: RunDirectory, labels: Labels) -> None:
    check_labels(labels)
    content = json.dumps(asdict(labels), indent=1, ensure_ascii=False) + "\n"
    with file_errors(run.path):
        replace_file(run.path / LABELS, content.encode())


def retagged(labels: Labels, added: Iterable[str], removed: Iterable[str] = ()) -> Labels:
    """Makes a copy of the labels with other tags. ``#`` before a tag is left out, as people type it."""
    tags = ({*labels.tags} | _plain(added)) - _plain(removed)
    return replace(labels, tags=tuple(sorted(tags)))


def check_labels(labels: Labels) -> None:
    """Refuses tags that could not be typed as one word, and notes that are no notes."""
    for tag in labels.tags:
        if not _TAG.fullmatch(tag):
            raise RunError(
                f"{tag[:60]!r} is no tag: it is one word of 1 to 40 letters, digits, '.', '_', '+' and '-'"
            )
    if len(labels.tags) > MOST_TAGS:
        raise RunError(f"a run has at most {MOST_TAGS} tags, got {len(labels.tags)}; write a note instead")
    if len(labels.note) > LONGEST_NOTE:
        raise RunError(f"a note has at most {LONGEST_NOTE} letters, got {len(labels.note):,}")
    if not all(sign.isprintable() or sign == "\n" for sign in labels.note):
        raise RunError("a note is plain text, without control characters")


def _plain(tags: Iterable[str]) -> set[str]:
    return {tag.removeprefix("#") for tag in tags}
