"""Which runs may import code. People pass runs on as folders, so the code that a run names may be a stranger's.

Registered games and Keisei's own networks are always allowed. Other code (``module:Class``, ``path.py:Class``), and a
Ray cluster to connect to, are used only if the user said so: with ``--trust RUN``, with ``keisei.load(...,
trust=True)``, or by starting the run here themselves. What they said is kept outside of the run, in a file for each
trusted path, with the run's id, the names, and the files that these came from. If one of them changes, they are asked
again.

Data of a run is checked where it is read. Workers follow the decision of their trainer.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from keisei.config import Settings
from keisei.errors import UntrustedCodeError
from keisei.games.importing import origin_of
from keisei.games.own_files import absolute_name
from keisei.games.registry import names_code
from keisei.policies.model_config import BUILT_IN
from keisei.runs.directory import RunDirectory
from keisei.runs.durable_files import replace_file
from keisei.runs.foreign_documents import json_of
from keisei.runs.foreign_files import read_foreign
from keisei.runs.order import move_run

__all__ = ["code_in", "demand_trust", "renamed_run", "trust", "trust_run", "trust_settings"]

logger = logging.getLogger(__name__)

_LARGEST = 1 << 20
_MANIFEST, _LARGEST_MANIFEST = "manifest.json", 64 << 20
_NOBODY = "nobody has said here that they trust this run"
LOCAL = "local"
"""The address of a Ray cluster that the trainer starts itself."""


@dataclass(frozen=True)
class _Trusted:
    """What a user trusts in the run at a path."""

    path: str
    id: str
    """The id of the run, since another run may take its place."""
    code: Mapping[str, str]
    """Names, and the file or folder that each came from."""


_THIS_PROCESS: dict[str, _Trusted] = {}
"""By path: what is trusted until this process ends, and what could not be written."""


def code_in(document: object, place: str = "") -> dict[str, str]:
    """Lists all code that settings or a part of a checkpoint name, each with the place where it is named first."""
    found: dict[str, str] = {}
    for where, key, text in _texts(document, place):
        if _is_code(key, text):
            found.setdefault(absolute_name(text), where)
    return found


def demand_trust(run: RunDirectory | None, document: object, source: str, given: Iterable[str] = ()) -> None:
    """Raises ``UntrustedCodeError`` if data of a run names code that the user does not trust there. ``given`` is code
    that the user has named themselves just now. Outside of a run, only ``given`` code is trusted."""
    wanted = {name: place for name, place in code_in(document).items() if name not in {*given}}
    if not wanted:
        return
    if run is None:
        raise _refusal_alone(source, *next(iter(wanted.items())))
    path = _path_of(run)
    known = [found for found in (_read(path), _THIS_PROCESS.get(path)) if found is not None]
    for name, place in wanted.items():
        objections = [_objection(trusted, run, name) for trusted in known]
        if "" not in objections:
            raise _refusal(run, source, name, place, (objections or [_NOBODY])[-1])


def trust(run: RunDirectory, names: Iterable[str], *, keep: bool = True) -> dict[str, str]:
    """Lets a run name this code, beside what it may name already. Returns the names with the files that they come from.
    With ``keep``, this is written down for later; else it holds for this process."""
    path, run_id = _path_of(run), run.id()
    before = _THIS_PROCESS.get(path) or _read(path)
    known = before.code if before is not None and before.id == run_id else {}
    code = {**known, **{name: _origin(name) for name in names}}
    if code == known:
        return code
    _THIS_PROCESS[path] = trusted = _Trusted(path, run_id, code)
    if keep:
        _write(trusted)
    return code


def trust_run(run: RunDirectory, *, keep: bool = True) -> dict[str, str]:
    """Lets a run name all code that its settings and its checkpoints name now. Returns the names with the files that
    they come from."""
    found = code_in(run.config())
    for folder in (run.checkpoints, run.league):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            found |= code_in(_documents(path))
    return trust(run, found, keep=keep)


def renamed_run(run: RunDirectory, name: str) -> RunDirectory:
    """Renames a run. It stays trusted if it was, since the user has named both places."""
    before = _path_of(run)
    moved = move_run(run, name)
    after = _path_of(moved)
    for trusted, keep in ((_read(before), True), (_THIS_PROCESS.pop(before, None), False)):
        if trusted is not None:  # whose id is compared when it is asked for
            _THIS_PROCESS[after] = carried = replace(trusted, path=after)
            if keep:
                _write(carried)
    _forget(before)
    return moved


def trust_settings(run: RunDirectory, settings: Settings, *, keep: bool = True) -> None:
    """Lets a run name the code of settings that the user has chosen themselves."""
    trust(run, code_in(settings.model_dump(mode="json")), keep=keep)


def _texts(document: object, place: str) -> Iterator[tuple[str, str, str]]:
    """Yields all texts in tables and lists, with their place and the name of their entry."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            here = f"{place}.{key}" if place else str(key)
            if isinstance(value, str):
                yield here, str(key), value
            else:
                yield from _texts(value, here)
    elif isinstance(document, list | tuple):
        for number, value in enumerate(document):
            yield from _texts(value, f"{place}.{number}")


def _documents(checkpoint: Path) -> object:
    """Reads the documents of a checkpoint; None if it is damaged, since nothing is imported for a damaged one."""
    try:
        return json_of(read_foreign(checkpoint, _MANIFEST, _LARGEST_MANIFEST))["documents"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_code(key: str, text: str) -> bool:
    if key == "game":
        return names_code(text)
    if key == "network":
        return ":" in text and text not in BUILT_IN.values()
    return key == "address" and text != LOCAL


def _refusal(run: RunDirectory, source: str, name: str, place: str, reason: str) -> UntrustedCodeError:
    what = "connect to the Ray cluster" if place.endswith("address") else "run the code"
    return UntrustedCodeError(
        f"{source} wants to {what} {name!r} ({place}), and {reason}. That could do anything on this machine, so it was "
        f"not done. If you know this run, say so once: add --trust {run.path} to the command (in Python: "
        f"keisei.load(..., trust=True)). Runs of your own games that an earlier version started need this once too"
    )


def _refusal_alone(source: str, name: str, place: str) -> UntrustedCodeError:
    return UntrustedCodeError(
        f"{source} needs the code {name!r} ({place}), which it does not hold, and that could do anything on this "
        f"machine, so it was not imported. If you have that code and know it, load the checkpoint with keisei.load("
        f"{source!r}, trust=True); or put it back into the folder checkpoints of its run, and add --trust RUN to the "
        f"command"
    )


def _objection(trusted: _Trusted, run: RunDirectory, name: str) -> str:
    """Says why a name is not trusted; empty if it is."""
    if trusted.id != run.id():
        return "another run was trusted at this path before"
    if name not in trusted.code:
        return f"this run was trusted with other code ({', '.join(trusted.code)})"
    now, then = _origin(name), trusted.code[name]
    # Code that does not exist cannot run, and the error of the import says where it was looked for.
    return f"it came from {then or 'nowhere'} before and comes from {now} now" if now and now != then else ""


def _origin(name: str) -> str:
    place = origin_of(name)
    return place and str(Path(place).resolve())


def _path_of(run: RunDirectory) -> str:
    return str(run.path.resolve())


def _folder() -> Path | None:
    """Finds the folder where the user's trust is recorded; None if this user has no home."""
    state = os.environ.get("XDG_STATE_HOME")
    try:
        return (Path(state) if state else Path.home() / ".local" / "state") / "keisei" / "trusted"
    except RuntimeError:
        return None


def _file_of(path: str) -> str:
    return f"{sha256(path.encode()).hexdigest()[:32]}.json"


def _read(path: str) -> _Trusted | None:
    folder = _folder()
    try:
        document: Any = json_of(read_foreign(folder, _file_of(path), _LARGEST)) if folder else None
        found = _Trusted(**document)
        return found if found.path == path and isinstance(found.code, dict) else None
    except (OSError, ValueError, TypeError):
        return None


def _forget(path: str) -> None:
    folder = _folder()
    if folder is not None:
        with suppress(OSError):
            (folder / _file_of(path)).unlink()


def _write(trusted: _Trusted) -> None:
    """Writes down what is trusted. If that is not possible, the user is asked again next time."""
    folder = _folder()
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(folder / _file_of(trusted.path), (json.dumps(asdict(trusted), indent=1) + "\n").encode())
    except OSError as error:
        logger.warning("%s cannot be trusted for longer than this process: %s", trusted.path, error)
