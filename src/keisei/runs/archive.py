"""The checkpoints of a run: which is the newest whole one, which is best, and which can be removed.

    checkpoints/
      update-000000040/   the last ``keep``, every milestone, and the best
      update-000000050/
      latest -> update-000000050    for people; ``latest()`` trusts nothing but what it has verified
      best -> update-000000040

A checkpoint counts from the moment its directory has its final name. While it is written or removed, its name
starts with a dot. A process that is killed leaves only such names, and the next start removes them.
"""

from __future__ import annotations

import logging
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from keisei.errors import CheckpointError, CheckpointVersionError, CheckpointWriteError, ForeignFileError
from keisei.runs.checkpoint import PARTIAL, Checkpoint, checkpoint_rank, load_checkpoint, save_checkpoint
from keisei.runs.durable_files import replace_link, sync_directory

logger = logging.getLogger(__name__)

REMOVED = ".removed-"
SET_ASIDE = "set-aside-"
_LOOKS = 5
"""How often a reader tries again when the trainer has just removed a checkpoint."""


@dataclass(frozen=True)
class Found:
    """A whole checkpoint, its path, and the damaged ones that were skipped."""

    checkpoint: Checkpoint
    path: Path
    skipped: tuple[str, ...] = ()
    """For each skipped one, a message that names the file and the damage."""


class CheckpointArchive:
    """Keeps the last ``keep`` checkpoints, every ``milestone_every``-th update, and the best.

    Only the process that holds the run's lock writes. Others open the store with ``read_only``.
    """

    def __init__(
        self, directory: Path, keep: int = 3, milestone_every: int | None = None, *, read_only: bool = False
    ) -> None:
        if keep < 1 or (milestone_every is not None and milestone_every < 1):
            raise CheckpointError(
                f"keep = {keep} and milestone_every = {milestone_every}: at least one checkpoint is kept, and "
                f"milestones are 1 or more updates apart (or None)"
            )
        self.directory = directory
        self._keep = keep
        self._milestone_every = milestone_every
        self._read_only = read_only
        if not read_only:
            directory.mkdir(parents=True, exist_ok=True)
            self._remove_leftovers()

    def paths(self) -> list[Path]:
        """Lists the paths of all checkpoints, oldest first. They are not verified. Links to other places are left
        out."""
        if self.directory.is_symlink():
            raise ForeignFileError(
                f"{self.directory} is a link, and a run is read from its own folder alone; put the checkpoints there"
            )
        names = os.listdir(self.directory) if self.directory.is_dir() else []
        ranked = sorted((rank, name) for name in names if (rank := checkpoint_rank(name)))
        return [path for _, name in ranked if not (path := self.directory / name).is_symlink()]

    def latest(self, way_out: str = "start over with --restart") -> Found | None:
        """Finds the newest whole checkpoint; None if there is no checkpoint at all.

        Damaged ones are logged and skipped. If none is whole, that is an error: to start from nothing would
        silently lose the run. ``way_out`` is what a person can do then beside restoring one.
        """
        for _ in range(_LOOKS):
            paths = self.paths()
            found, problems = self._newest_whole(paths)
            if found or not paths:
                return found
            if all(path.exists() for path in paths):
                break
        raise CheckpointError(
            "\n  ".join([f"none of the {len(paths)} checkpoints in {self.directory} is whole:", *problems])
            + f"\nRestore one from a copy, or {way_out}"
        )

    def best(self) -> Found | None:
        """Gets the checkpoint marked as best; None if there is none. A damaged one raises ``CheckpointError``."""
        path = self.best_path()
        return None if path is None else Found(load_checkpoint(path), path)

    def best_path(self) -> Path | None:
        return self._target("best")

    def save(self, checkpoint: Checkpoint) -> Path:
        """Writes a checkpoint, and removes those that are no longer needed.

        ``CheckpointWriteError`` means that it could not be written; the others do not change.
        """
        self._check_writable()
        path = save_checkpoint(self.directory, checkpoint)
        try:
            replace_link(self.directory / "latest", path.name)
            self._prune(path)
        except OSError as error:  # the checkpoint itself is safe, so training need not stop
            logger.warning("checkpoint %s is saved, but tidying up after it failed: %s", path, error)
        return path

    def mark_best(self, path: Path) -> None:
        """Lets ``best`` point to a checkpoint of this store, in one step."""
        self._check_writable()
        if path.name not in {known.name for known in self.paths()}:
            raise CheckpointError(
                f"{path} is not a checkpoint in {self.directory}; mark one that was saved there"
            )
        try:
            replace_link(self.directory / "best", path.name)
        except OSError as error:
            raise CheckpointWriteError(f"cannot mark {path} as best: {error.strerror or error}") from error

    def rewind(self, update: int) -> list[Path]:
        """Sets aside all checkpoints after ``update``, damaged or not, for a run that continues from there.

        They are renamed, not deleted. A person can look at them and delete them.
        """
        self._check_writable()
        moved = []
        for path in self.paths():
            rank = checkpoint_rank(path.name)
            if rank is not None and rank[0] > update:
                moved.append(path.rename(self._free(f"{SET_ASIDE}{path.name}")))
        left = self.paths()
        if left:
            self._prune(left[-1])  # the last process may have been killed before it did this
        for name in ("latest", "best"):
            if (self.directory / name).is_symlink() and self._target(name) is None:
                (self.directory / name).unlink()
        sync_directory(self.directory)
        return moved

    def _newest_whole(self, paths: list[Path]) -> tuple[Found | None, list[str]]:
        problems: list[str] = []
        for path in reversed(paths):
            try:
                return Found(load_checkpoint(path), path, tuple(problems)), problems
            except CheckpointVersionError:
                # Whole, but of another version of Keisei. An earlier checkpoint would lose what was learned since.
                raise
            except CheckpointError as error:
                if path.exists():  # otherwise the trainer has just removed it
                    problems.append(str(error))
                    logger.warning("checkpoint %s is skipped: %s", path.name, error)
        return None, problems

    def _target(self, link: str) -> Path | None:
        """Follows a link to a checkpoint; None if it does not point to one of this store."""
        try:
            path = self.directory / os.readlink(self.directory / link)
        except OSError:
            return None
        return path if path in self.paths() else None

    def _prune(self, saved: Path) -> None:
        """Removes old checkpoints, except milestones, the best, and the one just saved."""
        paths = self.paths()
        attempts = {rank[0]: path for path in paths if (rank := checkpoint_rank(path.name))}
        last_attempts = list(attempts.values())
        kept = {*last_attempts[-self._keep :], saved, self.best_path()}
        if self._milestone_every is not None:
            kept |= {path for update, path in attempts.items() if update % self._milestone_every == 0}
        for path in paths:
            if path not in kept:
                self._remove(path)

    def _remove(self, path: Path) -> None:
        """Renames it first, so that no reader finds a checkpoint with half of its files."""
        removed = path.with_name(f"{REMOVED}{path.name}")
        shutil.rmtree(removed, ignore_errors=True)
        path.rename(removed)
        shutil.rmtree(removed, ignore_errors=True)

    def _remove_leftovers(self) -> None:
        for path in self.directory.iterdir():
            if path.name.startswith((PARTIAL, REMOVED)):
                logger.info("%s is left over from an interrupted run and is removed", path)
                if path.is_symlink() or path.is_file():
                    path.unlink(missing_ok=True)
                else:
                    shutil.rmtree(path, ignore_errors=True)

    def _free(self, name: str) -> Path:
        taken = set(os.listdir(self.directory))
        names = (name if attempt == 0 else f"{name}.{attempt}" for attempt in range(len(taken) + 1))
        return self.directory / next(name for name in names if name not in taken)

    def _check_writable(self) -> None:
        if self._read_only:
            raise CheckpointError(f"{self.directory} was opened to read; only the trainer writes there")
