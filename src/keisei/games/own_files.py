"""Python files as modules: ``path.py:Class`` names a class in a file, wherever the file lies.

A file is imported as ``keisei.games.own_files.<its path>``. So two files of one name are two modules, and what is
pickled from one is found again in any process that reaches the file. Modules beside the file are found as in
``python path.py``. What runs is always the content of the file, never a cache of it, and its digest is kept.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

__all__ = [
    "OWN_FILES",
    "absolute_name",
    "file_of",
    "file_of_module",
    "import_file",
    "imported_now",
    "loaded_digest",
]

OWN_FILES = __name__
__path__: list[str] = []  # this module is a package, whose modules are files anywhere
_DIGEST_LENGTH = 16
_DIGESTS: dict[str, str] = {}
"""By path: the digest of what was imported."""


class _Importing(threading.local):
    files: tuple[Path, ...] = ()


_IMPORTING = _Importing()


def file_of(name: str) -> Path | None:
    """Gets the file of ``path.py:Class``, as it is written; None for any other name."""
    path, colon, _ = name.rpartition(":")
    return Path(path) if colon and path.endswith(".py") else None


def absolute_name(name: str) -> str:
    """Writes the same name with an absolute path, so that it means the same in any folder. Other names do not
    change."""
    file = file_of(name)
    return name if file is None else f"{_absolute(file)}:{name.rpartition(':')[2]}"


def import_file(file: Path) -> ModuleType:
    """Imports a file, once for each process. The program's own file is its main module, and is not run again."""
    path = _absolute(file)
    main = sys.modules.get("__main__")
    if main is not None and file_of_module(main) == path:
        _DIGESTS.setdefault(str(path), _digest(path.read_bytes()))
        return main
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # it stays there, since the file may import its neighbours later
    return import_module(_module_name(path))


def is_imported(file: Path) -> bool:
    """Checks if this process has imported the file by its path. It then uses that content even if the file is gone."""
    return _module_name(_absolute(file)) in sys.modules


def file_of_module(module: ModuleType) -> Path | None:
    """Gets the file of a module that other processes cannot import by name: the program itself, or a file imported by
    its path. None for any other module."""
    file = getattr(module, "__file__", None)
    by_path = module.__name__.startswith(f"{OWN_FILES}.")
    has_no_name = by_path or module is sys.modules.get("__main__")
    return _absolute(Path(file)) if file and has_no_name and str(file).endswith(".py") else None


def loaded_digest(file: Path) -> str:
    """Gets the digest of the content that this process has imported. The file is imported first if necessary."""
    import_file(file)
    return _DIGESTS[str(_absolute(file))]


def imported_now() -> Path | None:
    """Gets the file that this thread is importing at this moment; None if it imports none."""
    return _IMPORTING.files[-1] if _IMPORTING.files else None


def _absolute(file: Path) -> Path:
    return file.expanduser().resolve()


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:_DIGEST_LENGTH]


def _module_name(path: Path) -> str:
    return f"{OWN_FILES}.{_encoded(str(path))}"


def _encoded(path: str) -> str:
    """Writes a path without dots, which would separate modules."""
    return path.replace("%", "%25").replace(".", "%2E")


def _decoded(name: str) -> str:
    return name.replace("%2E", ".").replace("%25", "%")


class _FileLoader(SourceFileLoader):
    """Runs the current content of the file. Python's cache compares only date and size, so it may miss a quick
    change."""

    def get_code(self, fullname: str) -> CodeType:
        content = self.get_data(self.path)
        _DIGESTS[self.path] = _digest(content)
        code: CodeType = self.source_to_code(content, self.path)
        return code

    def exec_module(self, module: ModuleType) -> None:
        before = _IMPORTING.files
        _IMPORTING.files = (*before, Path(self.path))
        try:
            super().exec_module(module)
        finally:
            _IMPORTING.files = before


class _FileFinder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        file = _decoded(name)
        if package != OWN_FILES or not file.endswith(".py") or not Path(file).is_file():
            return None
        return spec_from_file_location(fullname, file, loader=_FileLoader(fullname, file))


sys.meta_path.append(_FileFinder())
