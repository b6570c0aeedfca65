"""What ``keisei runs`` does with runs: it labels, renames and deletes them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import typer
from rich.text import Text

from keisei.cli.views.terminal import Terminal
from keisei.cli.views.wording import counted
from keisei.errors import ConfigError, RunError
from keisei.runs.directory import RunDirectory
from keisei.runs.labels import Labels, read_labels, retagged, write_labels
from keisei.runs.order import TRASH, delete_run, empty_trash, in_trash, untrained

__all__ = ["Orders", "chosen_runs", "empty_the_trash"]


@dataclass(frozen=True)
class Orders:
    """What to do with each of the chosen runs."""

    tags: Sequence[str] = ()
    untags: Sequence[str] = ()
    note: str | None = None
    archived: bool | None = None
    """Whether to archive them; None leaves them as they are."""
    rename: str | None = None
    delete: bool = False
    yes: bool = False
    """Whether to delete without asking."""

    def __bool__(self) -> bool:
        labels = self.tags or self.untags or self.note is not None or self.archived is not None
        return bool(labels or self.rename is not None or self.delete)

    def carry_out(self, runs: Sequence[RunDirectory]) -> None:
        """Carries out all orders, or none of them if they contradict each other."""
        self._check(runs)
        if self.delete:
            self._delete(runs)
            return
        for run in runs:
            self._label(run)
        if self.rename is not None:
            from keisei.policies.trust import renamed_run  # it imports the settings

            moved = renamed_run(runs[0], self.rename)
            _tell(f"{runs[0].name} is {moved.name} now: {moved.path}")

    def _check(self, runs: Sequence[RunDirectory]) -> None:
        if self.rename is not None and len(runs) != 1:
            raise ConfigError(f"--rename gives one run another name, got {counted(len(runs), 'run')}")
        if self.delete and replace(self, delete=False, yes=False):
            raise ConfigError("--delete stands alone; leave out the other changes")

    def _label(self, run: RunDirectory) -> None:
        """Labels a run. Tags and notes may change while a run is trained, but only a run that has ended can be
        archived."""
        before = read_labels(run)
        labels = retagged(before, self.tags, self.untags)
        if self.note is not None:
            labels = replace(labels, note=self.note)
        if self.archived is not None:
            labels = replace(labels, archived=self.archived)
        if labels == before:
            return
        with untrained(run) if labels.archived and not before.archived else nullcontext():
            write_labels(run, labels)
        _tell(f"{run.name}: {_described(labels)}")

    def _delete(self, runs: Sequence[RunDirectory]) -> None:
        names = ", ".join(run.name for run in runs)
        if not self.yes:
            question = f"Move {counted(len(runs), 'run')} to the trash ({names})?"
            try:
                agreed = typer.confirm(question)
            except typer.Abort:  # nobody is there to answer
                raise ConfigError(
                    f"nobody has answered, so {names} stays; --yes deletes without asking"
                ) from None
            if not agreed:
                _tell("Nothing is deleted.")
                return
        for run in runs:
            place = delete_run(run)
            _tell(f"{run.name} is in the trash. Take it back: {_way_back(run, place)}")
        _tell(f"Delete the trash for good: keisei runs --root {shlex.quote(str(runs[0].root))} --empty-trash")


def empty_the_trash(root: Path, yes: bool) -> None:
    """Deletes what is in the trash for good, if a person agrees."""
    found = in_trash(root)
    if not found:
        _tell(f"There is no trash in {root}.")
        return
    listed = ", ".join(path.name for path in found)
    if not yes:
        try:
            agreed = typer.confirm(f"Delete {counted(len(found), 'run')} for good ({listed})?")
        except typer.Abort:
            raise ConfigError(
                "nobody has answered, so the trash stays; --yes deletes without asking"
            ) from None
        if not agreed:
            _tell("The trash stays.")
            return
    _tell(f"{counted(empty_trash(root), 'run')} of {root / TRASH} deleted for good.")


def chosen_runs(names: Sequence[str], found: Sequence[RunDirectory], root: Path) -> list[RunDirectory]:
    """Finds the runs that are named by name, by path, or by the folder that they lie in."""
    chosen: dict[Path, RunDirectory] = {}
    for name in names:
        fitting = [run for run in found if name in (run.name, str(run.path))]
        fitting = fitting or [run for run in found if run.name.startswith(f"{name.rstrip('/')}/")]
        if not fitting:
            known = ", ".join(run.name for run in found) or "none"
            raise RunError(f"no run is named {name!r}. Runs in {root}: {known}")
        chosen |= {run.path: run for run in fitting}
    return list(chosen.values())


def _described(labels: Labels) -> str:
    tags = " ".join(f"#{tag}" for tag in labels.tags)
    archived, note = "archived" if labels.archived else "", f"note: {labels.note}" if labels.note else ""
    return ", ".join(filter(None, (tags, archived, note))) or "no labels"


def _way_back(run: RunDirectory, place: Path) -> str:
    parent = "" if run.path.parent == run.root else f"mkdir -p {shlex.quote(str(run.path.parent))} && "
    return f"{parent}mv {shlex.quote(str(place))} {shlex.quote(str(run.path))}"


def _tell(text: str) -> None:
    Terminal(highlight=False).print(Text(text), soft_wrap=True)
