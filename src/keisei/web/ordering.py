"""Changes to runs that the dashboard's pages ask for: labels, another name, and the trash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import Any

from keisei.errors import RunError
from keisei.runs.directory import RunDirectory
from keisei.runs.labels import read_labels, retagged, write_labels
from keisei.runs.order import delete_run, untrained

__all__ = ["ORDERS"]


def _label(run: RunDirectory, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Changes the labels that are given, and leaves the others as they are."""
    before = read_labels(run)
    labels = replace(
        before,
        note=_given(wanted, "note", str, before.note),
        archived=_given(wanted, "archived", bool, before.archived),
    )
    tags = _given(wanted, "tags", list, [*before.tags])
    if not all(isinstance(tag, str) for tag in tags):
        raise RunError("tags are a list of texts")
    labels = retagged(replace(labels, tags=()), tags)
    with untrained(run) if labels.archived and not before.archived else nullcontext():
        write_labels(run, labels)
    return asdict(labels)


def _rename(run: RunDirectory, wanted: Mapping[str, Any]) -> dict[str, Any]:
    from keisei.policies.trust import renamed_run  # it imports the settings

    return {"name": renamed_run(run, _given(wanted, "name", str, "")).name}


def _delete(run: RunDirectory, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Moves a run to the trash. The page repeats its name, so that no button deletes another run by mistake."""
    if _given(wanted, "name", str, "") != run.name:
        raise RunError(f"to delete {run.name}, repeat its name")
    return {"trash": delete_run(run).relative_to(run.root).as_posix()}


ORDERS: Mapping[str, Callable[[RunDirectory, Mapping[str, Any]], dict[str, Any]]] = {
    "labels": _label,
    "rename": _rename,
    "delete": _delete,
}
"""What may be asked of a run, by the last part of the address. All of it needs the token."""


def _given(wanted: Mapping[str, Any], name: str, kind: type, usual: Any) -> Any:
    value = wanted.get(name, usual)
    if not isinstance(value, kind):
        raise RunError(f"{name} is a {kind.__name__}, got {type(value).__name__}")
    return value
