"""The directory of a run: its files, its lock, and its state.

    runs/NAME/
      config.yaml      the resolved configuration
      state.json       running, finished, interrupted or failed
      checkpoints/     see ``runs.archive``
      run.db           metrics, games, ratings, worker events; see ``runs.database``
      log.jsonl        one JSON object per line
      tensorboard/     event files
      games/           records of games
      league/          weights of the members of the league; see ``runs.snapshots``
      live.json        what the run does now; see ``runs.live``
      control/         requests to the trainer; see ``runs.control``
      lock             the process that trains it now

No run is overwritten silently. If the name exists, an error lists the choices.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from keisei.errors import RunError, RunExistsError
from keisei.runs.durable_files import file_errors, overwrite_file, replace_file, sync_directory, write_new
from keisei.runs.lock import RunLock, lock_owner

if TYPE_CHECKING:  # pydantic takes a tenth of a second to import, and reading a run does not need it
    from keisei.config import Settings

CONFIG = "config.yaml"
STATE = "state.json"
LOCK = "lock"
_FOLDERS = ("checkpoints", "tensorboard", "games")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
SAFE_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The same as ``yaml.safe_load``, ten times as fast where libyaml is there: a dashboard reads hundreds of files."""
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
            near = [run.name for run in list_runs(path.parent)]
            known = f"; the runs in {path.parent} are {', '.join(near)}" if near else ""
            raise RunError(f"{path} is not a run: it has no {CONFIG}{known}")
        return cls(path)

    @property
    def name(self) -> str:
        return self.path.name

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
        """Takes the lock of the run. A process that writes into the run needs it."""
        return RunLock(self.path / LOCK)

    def config(self) -> dict[str, Any]:
        """Reads the resolved configuration."""
        path = self.path / CONFIG
        try:
            config = yaml.load(path.read_text(encoding="utf-8"), SAFE_LOADER)
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise RunError(
                f"{path} cannot be read: {error}. Repair it by hand, or restore it from a copy"
            ) from error
        if not isinstance(config, dict):
            raise RunError(f"{path} must hold a table of settings, got {config!r}")
        return config

    def change_config(self, config: Mapping[str, Any] | Settings) -> None:
        """Writes another configuration, for ``--set`` on a resumed run. The old one is kept as config.1.yaml …"""
        text = _config_text(config)
        with file_errors(self.path):
            current = (self.path / CONFIG).read_bytes()
            if text == current:
                return
            write_new(_free(self.path, "config.{}.yaml"), current)
            replace_file(self.path / CONFIG, text)

    def earlier_configs(self) -> list[Path]:
        """Gives config.1.yaml … as ``change_config`` has kept them, newest first."""
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
                overwrite_file(self.path / STATE, content)

    def status(self) -> RunStatus:
        """Gives the state of the run. If it says running but its trainer has ended, it was interrupted."""
        owner = lock_owner(self.path / LOCK)
        try:
            document = json.loads((self.path / STATE).read_bytes())
            status = RunStatus(
                RunState(document["state"]),
                document["since"],
                document["detail"],
                float(document.get("seconds", 0.0)),
            )
        except FileNotFoundError:
            status = RunStatus(RunState.CREATED)
        except (OSError, ValueError, KeyError, TypeError) as error:
            return RunStatus(RunState.UNREADABLE, detail=f"{self.path / STATE}: {error}")
        if owner is not None:
            return replace(status, state=RunState.RUNNING, since=owner.since, detail=str(owner))
        if status.state is RunState.RUNNING:
            return replace(status, state=RunState.INTERRUPTED, detail="the trainer ended unexpectedly")
        return status


@dataclass(frozen=True)
class NewRun:
    """A run that was just created. If its start fails, ``undo`` leaves everything as it was before."""

    run: RunDirectory
    old: Path | None = None
    """Where the old run of this name is now; None if there was none."""
    deletes_old: bool = False

    @classmethod
    def create(
        cls, root: Path, name: str, config: Mapping[str, Any] | Settings, existing: Existing = "refuse"
    ) -> NewRun:
        """Creates ``root/name``, and moves an old run aside where ``existing`` allows it."""
        check_run_name(name)
        if root.is_file():
            raise RunError(f"{root} is a file, and runs need a folder; choose another --root")
        path, text = root / name, _config_text(config)
        made, old = root / f".partial-{name}-{os.getpid()}", None
        try:
            root.mkdir(parents=True, exist_ok=True)
            _check_way(path, existing)
            _lay_out(made, text)
            old = _make_way(path, existing)
            made = made.rename(path)  # fails if another process has created the run meanwhile
            sync_directory(root)
        except (OSError, RunError) as error:
            shutil.rmtree(made, ignore_errors=True)
            if old is not None:
                old.rename(path)
            if isinstance(error, RunError):
                raise
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise _exists(path) from None
            raise RunError(f"cannot make run {path}: {error.strerror or error}") from error
        return cls(RunDirectory(path), old, existing == "overwrite")

    def keep(self) -> None:
        """Deletes the old run if that was asked for. From now on there is no way back to it."""
        if self.old is not None and self.deletes_old:
            shutil.rmtree(self.old, ignore_errors=True)

    def undo(self) -> None:
        """Removes the new run, and gives the old one its name back."""
        path = self.run.path
        shutil.rmtree(_move(path, f".removed-{path.name}.{{}}"), ignore_errors=True)
        if self.old is not None and self.old.exists():
            self.old.rename(path)


def list_runs(root: Path) -> list[RunDirectory]:
    """Lists all runs below a directory, by name. Damaged ones are listed too; their ``status`` says so."""
    if not root.is_dir():
        return []
    return [RunDirectory(path) for path in sorted(root.iterdir()) if _is_run(path)]


def check_run_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise RunError(
            f"{name!r} cannot name a run: it is a directory's name of 1 to 100 letters, digits, '.', '_' and '-', "
            f"and starts with a letter or digit"
        )


def run_name(text: str) -> str:
    """Makes a name for a run of a text such as ``pettingzoo:tictactoe_v3-dqn``: other characters become ``-``."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-")[:100]


def config_digest(config: Mapping[str, Any] | Settings) -> str:
    """Computes the SHA-256 of a configuration. The order of its keys does not matter."""
    return sha256(json.dumps(_plain(config), sort_keys=True).encode()).hexdigest()


def _is_run(path: Path) -> bool:
    return not path.name.startswith(".") and (path / CONFIG).is_file()


def _plain(config: Mapping[str, Any] | Settings) -> dict[str, Any]:
    return dict(config) if isinstance(config, Mapping) else config.model_dump(mode="json")


def _config_text(config: Mapping[str, Any] | Settings) -> bytes:
    """Writes the configuration as YAML, which can be read back unchanged."""
    plain = _plain(config)
    try:
        text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
        same = yaml.safe_load(text) == plain
    except yaml.YAMLError as error:
        raise RunError(f"the configuration cannot be written as YAML: {error}") from error
    if not same:
        raise RunError(
            "the configuration changes when it is written as YAML; use lists, tables, texts and numbers"
        )
    return text.encode()


def _lay_out(path: Path, config: bytes) -> None:
    path.mkdir()
    for folder in _FOLDERS:
        (path / folder).mkdir()
    write_new(path / CONFIG, config)
    sync_directory(path)


def _check_way(path: Path, existing: Existing) -> None:
    """Refuses a name that is taken, unless it is that of a run which may be replaced."""
    if not path.exists() or (path.is_dir() and not os.listdir(path)):
        return
    if not _is_run(path):
        raise RunError(
            f"{path} exists and is not a run of Keisei, so it is left alone; choose another --name"
        )
    if existing == "refuse":
        raise _exists(path)


def _make_way(path: Path, existing: Existing) -> Path | None:
    """Moves an old run aside, and gives its new place. A run that is being trained is not moved."""
    if not _is_run(path):
        return None
    return _move(path, path.name + ".{}" if existing == "restart" else f".removed-{path.name}.{{}}")


def _move(path: Path, pattern: str) -> Path:
    """Gives a run a free name that follows a pattern, unless it is being trained."""
    with RunLock(path / LOCK) as lock:
        moved = path.rename(_free(path.parent, pattern))
        lock.path = moved / LOCK
    return moved


def _exists(path: Path) -> RunExistsError:
    return RunExistsError(
        f"run {path} exists. Continue it: keisei train {path}; start over and keep it under another name: --restart; "
        f"delete it and start over: --overwrite; or choose another --name"
    )


def _free(directory: Path, pattern: str) -> Path:
    taken = set(os.listdir(directory))
    numbers = range(1, len(taken) + 2)
    return directory / next(name for number in numbers if (name := pattern.format(number)) not in taken)
