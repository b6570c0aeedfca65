"""The directory of a run: its files, its lock, and its state.

    runs/NAME/
      config.yaml      the resolved configuration
      id               a random text that tells this run from all others
      origin.json      the checkpoint that it began with, if it did; see ``runs.origin``
      state.json       running, finished, interrupted or failed
      checkpoints/     see ``runs.archive``
      run.db           metrics, games, ratings, worker events; see ``runs.database``
      log.jsonl        one JSON object per line
      tensorboard/     event files
      games/           records of games
      league/          weights of the members of the league; see ``runs.snapshots``
      live.json        what the run does now; see ``runs.live``
      control/         requests to the trainer; see ``runs.control``
      labels.json      tags, a note, and whether it is archived; see ``runs.labels``
      lock             the process that trains it now

A name may have up to three parts, such as ``lr/seed0``: runs that belong together lie in a folder. No run is
overwritten silently. If the name exists, an error lists the choices.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from keisei.errors import ForeignFileError, RunError, RunExistsError
from keisei.runs.durable_files import file_errors, overwrite_file, replace_file, sync_directory, write_new
from keisei.runs.foreign_documents import LARGEST_SETTINGS, json_of, settings_of, typed
from keisei.runs.foreign_files import check_regular, read_foreign
from keisei.runs.lock import Owner, RunLock, lock_owner
from keisei.runs.run_names import MOST_PARTS, check_run_name, folders_below, is_run_name

if TYPE_CHECKING:  # pydantic takes a tenth of a second to import, and reading a run does not need it
    from keisei.config import Settings

CONFIG = "config.yaml"
STATE = "state.json"
LOCK = "lock"
ID = "id"
_LARGEST_ID = 100
_FOLDERS = ("checkpoints", "tensorboard", "games")
_LARGEST_STATE = 1 << 20
"""Bytes of ``state.json`` and of ``lock``."""
_OWN_FOLDERS = (*_FOLDERS, "league", "control")
_APPENDED = {LOCK: _LARGEST_STATE, "log.jsonl": 1 << 40}
"""Files that are written in place, and the most bytes of each."""
_EARLIER = re.compile(r"config\.(\d+)\.yaml")

Existing = Literal["refuse", "restart", "overwrite"]


class RunState(Enum):
    """The state of a run."""

    CREATED = "created"
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class RunStatus:
    state: RunState
    since: str = ""
    """When the state began, in ISO 8601 and UTC."""
    detail: str = ""
    """Why a run failed, or who is training it."""
    seconds: float = 0.0
    """Seconds of training until then, as the last trainer counted them."""


@dataclass(frozen=True)
class RunDirectory:
    """A run on disk. Make one with ``create`` or ``open``."""

    path: Path
    folder: Path | None = field(default=None, compare=False)
    """The folder of all runs, to which its name is relative; None for the folder that it lies in."""

    @classmethod
    def create(
        cls, root: Path, name: str, config: Mapping[str, Any] | Settings, existing: Existing = "refuse"
    ) -> RunDirectory:
        """Creates ``root/name``. If it exists, ``restart`` moves the old run aside and ``overwrite`` deletes it.

        The directory appears as a whole, with its configuration, or not at all.
        """
        new = NewRun.create(root, name, config, existing)
        new.keep()
        return new.run

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Opens an existing run."""
        if not (path / CONFIG).is_file():
            near = [run.name for run in list_runs(path.parent, parts=1)]
            known = f"; the runs in {path.parent} are {', '.join(near)}" if near else ""
            raise RunError(f"{path} is not a run: it has no {CONFIG}{known}")
        return cls(path)

    @property
    def root(self) -> Path:
        """The folder of all runs, where a name of another run is looked for."""
        return self.path.parent if self.folder is None else self.folder

    @property
    def name(self) -> str:
        """Its name below the root, such as ``lr/seed0``."""
        return self.path.name if self.folder is None else self.path.relative_to(self.folder).as_posix()

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def database(self) -> Path:
        return self.path / "run.db"

    @property
    def log(self) -> Path:
        return self.path / "log.jsonl"

    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    @property
    def games(self) -> Path:
        return self.path / "games"

    @property
    def league(self) -> Path:
        return self.path / "league"

    @property
    def live(self) -> Path:
        return self.path / "live.json"

    @property
    def control(self) -> Path:
        return self.path / "control"

    def lock(self) -> RunLock:
        """Takes the lock of the run, which every process needs that writes into it. It refuses a run whose files or
        folders are links, since they would lead the writer to files of another run."""
        for name in _OWN_FOLDERS:
            check_folder(self.path / name)
        for name, most in _APPENDED.items():
            check_regular(self.path / name, most)
        return RunLock(self.path / LOCK)

    def config(self) -> dict[str, Any]:
        """Reads the resolved configuration."""
        return self.kept_config(CONFIG)

    def kept_config(self, name: str) -> dict[str, Any]:
        """Reads ``config.yaml``, or one of ``earlier_configs`` by its name."""
        try:
            config = settings_of(read_foreign(self.path, name, LARGEST_SETTINGS).decode())
            if config is None:
                raise ValueError("it must hold a table of settings, and it is empty")
            return config
        except (OSError, ValueError) as error:
            raise RunError(
                f"{self.path / name} cannot be read: {error}. Repair it by hand, or restore it from a copy"
            ) from error

    def id(self) -> str:
        """Reads the text that identifies this run; empty if an older version of Keisei made the run."""
        try:
            return read_foreign(self.path, ID, _LARGEST_ID).decode("ascii", "replace").strip()
        except OSError:
            return ""

    def change_config(self, config: Mapping[str, Any] | Settings) -> None:
        """Writes another configuration, for ``--set`` on a resumed run. The old one is kept as config.1.yaml …"""
        text = _config_text(config)
        with file_errors(self.path):
            current = read_foreign(self.path, CONFIG, LARGEST_SETTINGS)
            if text == current:
                return
            write_new(free_path(self.path, "config.{}.yaml"), current)
            replace_file(self.path / CONFIG, text)

    def earlier_configs(self) -> list[Path]:
        """Lists the files config.1.yaml … that ``change_config`` kept, newest first."""
        numbered = {path: _EARLIER.fullmatch(path.name) for path in self.path.iterdir()}
        numbers = {path: int(match[1]) for path, match in numbered.items() if match}
        return sorted(numbers, key=lambda path: numbers[path], reverse=True)

    def record_state(self, state: RunState, detail: str = "", seconds: float = 0.0) -> None:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        document = {"state": state.value, "since": since, "detail": detail, "seconds": seconds}
        content = (json.dumps(document) + "\n").encode()
        with file_errors(self.path):
            try:
                replace_file(self.path / STATE, content)
            except OSError:  # a full disk has no room for a second file, but the old one has its room
                if not (self.path / STATE).exists():
                    raise
                overwrite_file(self.path / STATE, content)

    def status(self) -> RunStatus:
        """Reads the state of the run. If it says running but its trainer has ended, the run was interrupted."""
        try:
            status, owner = self._recorded(), self._owner()
        except (OSError, ValueError, RecursionError) as error:
            return RunStatus(RunState.UNREADABLE, detail=str(error))
        if owner is not None:
            return replace(status, state=RunState.RUNNING, since=owner.since, detail=str(owner))
        if status.state is RunState.RUNNING:
            return replace(status, state=RunState.INTERRUPTED, detail="the trainer ended unexpectedly")
        return status

    def _recorded(self) -> RunStatus:
        """Reads ``state.json``."""
        try:
            status = typed(RunStatus, json_of(read_foreign(self.path, STATE, _LARGEST_STATE)))
        except FileNotFoundError:
            return RunStatus(RunState.CREATED)
        except ValueError as error:
            raise ValueError(f"{self.path / STATE}: {error}") from error
        return replace(status, seconds=status.seconds if isfinite(status.seconds) else 0.0)

    def _owner(self) -> Owner | None:
        """Finds the process that trains the run."""
        return lock_owner(self.path / LOCK) if check_regular(self.path / LOCK, _LARGEST_STATE) else None


@dataclass(frozen=True)
class NewRun:
    """A run that was just created. If its start fails, ``undo`` leaves everything as it was before."""

    run: RunDirectory
    old: Path | None = None
    """Where the old run of this name is now; None if there was none."""
    deletes_old: bool = False
    made_root: bool = False
    """Whether the folder of all runs is new too."""

    @classmethod
    def create(
        cls, root: Path, name: str, config: Mapping[str, Any] | Settings, existing: Existing = "refuse"
    ) -> NewRun:
        """Creates ``root/name``, and moves an old run aside where ``existing`` allows it."""
        check_run_name(name)
        if root.is_file():
            raise RunError(f"{root} is a file, and runs need a folder; choose another --root")
        path, text = root / name, _config_text(config)
        made = path.with_name(f".partial-{path.name}-{os.getpid()}")
        old, made_root = None, not root.exists()
        try:
            check_no_run_above(root, path)
            path.parent.mkdir(parents=True, exist_ok=True)
            _check_way(path, existing)
            _lay_out(made, text)
            old = _make_way(path, existing)
            made = made.rename(path)  # fails if another process has created the run meanwhile
            sync_directory(path.parent)
        except BaseException as error:  # Ctrl-C too leaves nothing half made
            shutil.rmtree(made, ignore_errors=True)
            if old is not None and not path.exists():
                old.rename(path)
            remove_empty([*folders_between(root, path), *([root] if made_root else [])])
            if isinstance(error, RunError) or not isinstance(error, OSError):
                raise
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise _exists(path) from None
            raise RunError(f"cannot make run {path}: {error.strerror or error}") from error
        return cls(RunDirectory(path, root), old, existing == "overwrite", made_root)

    def keep(self) -> None:
        """Deletes the old run if that was asked for. From now on there is no way back to it."""
        if self.old is not None and self.deletes_old:
            shutil.rmtree(self.old, ignore_errors=True)

    def undo(self) -> None:
        """Removes the new run, and restores the old one under its name."""
        path = self.run.path
        shutil.rmtree(_move(path, f".removed-{path.name}.{{}}"), ignore_errors=True)
        if self.old is not None and self.old.exists():
            self.old.rename(path)
        root = self.run.root
        remove_empty([*folders_between(root, path), *([root] if self.made_root else [])])


def list_runs(root: Path, parts: int = MOST_PARTS) -> list[RunDirectory]:
    """Lists all runs below a directory, by names of at most so many parts. Damaged ones are listed too; their
    ``status`` says so."""
    return [RunDirectory(path, root) for path in folders_below(root, is_run, parts)]


def run_at(text: str, root: Path) -> RunDirectory | None:
    """Finds a run by its name below ``root``, or by its path; None if there is none."""
    found = (path for path in (root / text, Path(text)) if text and (path / CONFIG).is_file())
    return next((named_below(path, root) for path in found), None)


def named_below(path: Path, root: Path) -> RunDirectory:
    """Opens the run at a path. If it lies below ``root``, its name is relative to that."""
    with suppress(ValueError, OSError):
        name = path.absolute().relative_to(root.absolute()).as_posix()
        if is_run_name(name):
            return RunDirectory(root / name, root)
    return RunDirectory(path)


def is_config(path: Path) -> bool:
    """Checks if a file is the configuration of a run, or an earlier one."""
    is_one = path.name == CONFIG or _EARLIER.fullmatch(path.name) is not None
    return is_one and (path.parent / "checkpoints").exists()


def run_name(text: str) -> str:
    """Makes a name for a run from a text such as ``pettingzoo:tictactoe_v3-dqn``: other characters become ``-``."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-")[:100]


def config_digest(config: Mapping[str, Any] | Settings) -> str:
    """Computes the SHA-256 of a configuration. The order of its keys does not matter."""
    return sha256(json.dumps(_plain(config), sort_keys=True).encode()).hexdigest()


def is_run(path: Path) -> bool:
    try:
        return not path.name.startswith(".") and (path / CONFIG).is_file()
    except OSError:  # access is denied; reading the run reports it
        return True


def check_folder(path: Path) -> None:
    """Checks a folder that a trainer writes into, if it is there."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise ForeignFileError(
            f"{path} is not a folder, and a run is written into its own folder alone: move what it leads to there"
        )


def _plain(config: Mapping[str, Any] | Settings) -> dict[str, Any]:
    return dict(config) if isinstance(config, Mapping) else config.model_dump(mode="json")


class _Dumper(yaml.SafeDumper):
    """Writes a repeated part in full each time, since settings with aliases are not read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _config_text(config: Mapping[str, Any] | Settings) -> bytes:
    """Writes the configuration as YAML, which can be read back unchanged."""
    plain = _plain(config)
    try:
        text = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
        same = settings_of(text) == plain
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RunError(f"the configuration cannot be written as YAML: {error}") from error
    if not same:
        raise RunError(
            "the configuration changes when it is written as YAML; use lists, tables, texts and numbers"
        )
    return text.encode()


def _lay_out(path: Path, config: bytes) -> None:
    """Makes the files and folders of a new run. The lock is one of them, so that a run can also be moved and removed
    on a full disk."""
    path.mkdir()
    for folder in _FOLDERS:
        (path / folder).mkdir()
    write_new(path / LOCK, b"")
    write_new(path / CONFIG, config)
    write_new(path / ID, f"{secrets.token_hex(16)}\n".encode())
    sync_directory(path)


def folders_between(root: Path, path: Path) -> list[Path]:
    """Lists the folders between the root and a run, innermost first."""
    return list(path.parents[: len(path.relative_to(root).parts) - 1])


def check_no_run_above(root: Path, path: Path) -> None:
    """Refuses a name inside the folder of another run, where runs are not looked for."""
    for folder in folders_between(root, path):
        if is_run(folder):
            raise RunError(
                f"{folder} is a run, and a run holds no other runs; choose another name than {path}"
            )


def remove_empty(folders: Iterable[Path]) -> None:
    """Removes folders, up to the first one that is not empty."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _check_way(path: Path, existing: Existing) -> None:
    """Refuses a name that is taken, unless it is that of a run which may be replaced."""
    if not path.exists() or (path.is_dir() and not os.listdir(path)):
        return
    if not is_run(path) and (inside := list_runs(path, MOST_PARTS - 1)):
        raise RunError(
            f"{path} is a folder of runs ({inside[0].name} …); choose another --name, or one within it, such as "
            f"--name {path.name}/{inside[0].name}-b"
        )
    if not is_run(path):
        raise RunError(
            f"{path} exists and is not a run of Keisei, so it is left alone; choose another --name"
        )
    if existing == "refuse":
        raise _exists(path)


def _make_way(path: Path, existing: Existing) -> Path | None:
    """Moves an old run aside, and returns its new place. A run that is being trained is not moved."""
    if not is_run(path):
        return None
    return _move(path, path.name + ".{}" if existing == "restart" else f".removed-{path.name}.{{}}")


def _move(path: Path, pattern: str) -> Path:
    """Renames a run to a free name that follows a pattern, unless it is being trained."""
    with RunLock(path / LOCK):
        return path.rename(free_path(path.parent, pattern))


def _exists(path: Path) -> RunExistsError:
    return RunExistsError(
        f"run {path} exists. Continue it: keisei train {path}; start over and keep it under another name: --restart; "
        f"delete it and start over: --overwrite; or choose another --name"
    )


def free_path(directory: Path, pattern: str) -> Path:
    """Finds the first path that is free, for a pattern such as ``first.{}``."""
    taken = set(os.listdir(directory))
    numbers = range(1, len(taken) + 2)
    return directory / next(name for number in numbers if (name := pattern.format(number)) not in taken)
