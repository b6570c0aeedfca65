"""The directory of a run: its files, its lock, and its state.

    runs/NAME/
      config.yaml      the resolved configuration
      state.json       running, finished, interrupted or failed
      checkpoints/     see ``runs.archive``
      run.db           metrics, games, ratings, worker events; see ``runs.database``
      log.jsonl        one JSON object per line
      tensorboard/     event files
      games/           records of games
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
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from keisei.errors import RunError, RunExistsError
from keisei.runs.durable_files import replace_file, sync_directory, write_new
from keisei.runs.lock import RunLock, lock_owner

if TYPE_CHECKING:  # pydantic takes a tenth of a second to import, and reading a run does not need it
    from keisei.config import Settings

CONFIG = "config.yaml"
STATE = "state.json"
LOCK = "lock"
_FOLDERS = ("checkpoints", "tensorboard", "games")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

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
        check_run_name(name)
        path = root / name
        text = _config_text(config)
        root.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _make_way(path, existing)
        partial = root / f".partial-{name}-{os.getpid()}"
        try:
            _lay_out(partial, text)
            os.rename(partial, path)  # fails if another process has created the run meanwhile
        except OSError as error:
            shutil.rmtree(partial, ignore_errors=True)
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise _exists(path) from None
            raise RunError(f"cannot make run {path}: {error.strerror or error}") from error
        sync_directory(root)
        return cls(path)

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

    def lock(self) -> RunLock:
        """Takes the lock of the run. A process that writes into the run needs it."""
        return RunLock(self.path / LOCK)

    def config(self) -> dict[str, Any]:
        """Reads the resolved configuration."""
        path = self.path / CONFIG
        try:
            config = yaml.safe_load(path.read_text(encoding="utf-8"))
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
        current = (self.path / CONFIG).read_bytes()
        if text == current:
            return
        write_new(_free(self.path, "config.{}.yaml"), current)
        replace_file(self.path / CONFIG, text)

    def record_state(self, state: RunState, detail: str = "") -> None:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        document = {"state": state.value, "since": since, "detail": detail}
        replace_file(self.path / STATE, (json.dumps(document) + "\n").encode())

    def status(self) -> RunStatus:
        """Gives the state of the run. If it says running but its trainer has ended, it was interrupted."""
        owner = lock_owner(self.path / LOCK)
        try:
            document = json.loads((self.path / STATE).read_bytes())
            status = RunStatus(RunState(document["state"]), document["since"], document["detail"])
        except FileNotFoundError:
            status = RunStatus(RunState.CREATED)
        except (OSError, ValueError, KeyError, TypeError) as error:
            return RunStatus(RunState.UNREADABLE, detail=f"{self.path / STATE}: {error}")
        if owner is not None:
            return RunStatus(RunState.RUNNING, owner.since, str(owner))
        if status.state is RunState.RUNNING:
            return RunStatus(RunState.INTERRUPTED, status.since, "the trainer ended unexpectedly")
        return status


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


def _make_way(path: Path, existing: Existing) -> None:
    """Moves an old run aside or deletes it. It refuses a run that is being trained, and directories that are not
    runs."""
    if not _is_run(path):
        if path.is_dir() and not os.listdir(path):
            return
        raise RunError(
            f"{path} exists and is not a run of Keisei, so it is left alone; choose another --name"
        )
    if existing == "refuse":
        raise _exists(path)
    pattern = path.name + ".{}" if existing == "restart" else f".removed-{path.name}.{{}}"
    with RunLock(path / LOCK) as lock:
        moved = path.rename(_free(path.parent, pattern))
        lock.path = moved / LOCK
    if existing == "overwrite":
        shutil.rmtree(moved)


def _exists(path: Path) -> RunExistsError:
    return RunExistsError(
        f"run {path} exists. Continue it: keisei train {path}; start over and keep it under another name: --restart; "
        f"delete it and start over: --overwrite; or choose another --name"
    )


def _free(directory: Path, pattern: str) -> Path:
    taken = set(os.listdir(directory))
    numbers = range(1, len(taken) + 2)
    return directory / next(name for number in numbers if (name := pattern.format(number)) not in taken)
