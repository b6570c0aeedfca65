"""Imports what a text names as ``module:Class`` or ``path.py:Class``: games and networks of your own.

This module does not check whether the code may run. A caller with a text from untrusted data checks it first
(``keisei.policies.trust``).
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from keisei.errors import KeiseiError, in_one_line
from keisei.games.options import did_you_mean
from keisei.games.own_files import OWN_FILES, file_of, file_of_module, import_file, is_imported
from keisei.machine.safe_path import looks_here


def import_object(path: str, *, missing: type[KeiseiError], broken: type[KeiseiError]) -> Any:
    """Imports the object behind ``module:Class`` or ``path.py:Class``. Raises ``missing`` if it does not exist, and
    ``broken`` if its module cannot be imported."""
    module_name, _, name = path.rpartition(":")
    if not module_name or not name:
        raise missing(f"{path!r} names no class; write 'module:Class' or 'path.py:Class'")
    module = import_named(module_name, missing=missing, broken=broken)
    try:
        return getattr(module, name)
    except AttributeError as error:
        names = [known for known in vars(module) if not known.startswith("_")]
        raise missing(f"{module_name} has no {name!r}{did_you_mean(name, names)}") from error


def import_named(name: str, *, missing: type[KeiseiError], broken: type[KeiseiError]) -> ModuleType:
    """Imports a module by its name, or a file by its path."""
    file = file_of(f"{name}:")
    if file is not None and not is_imported(file) and not file.expanduser().is_file():
        raise missing(f"there is no file {name} on this machine{_beside(file)}")
    if file is None and not name.startswith("keisei."):
        _search_current_directory(name.partition(".")[0])
    try:
        return import_module(name) if file is None else import_file(file)
    except ModuleNotFoundError as error:
        if file is not None or error.name is None or not (name + ".").startswith(error.name + "."):
            raise broken(_what_it_needs(name, error.name or "")) from error
        raise missing(
            f"there is no module {error.name!r} for {name!r} in the current directory, on PYTHONPATH and among the "
            f"installed packages; put its folder on PYTHONPATH, install it, or name its file: path.py:Class"
        ) from error
    except Exception as error:
        raise broken(f"{name!r} cannot be imported: {in_one_line(error)}") from error


def name_of(found: object) -> str:
    """Writes the name by which other processes can import a class or a function; empty if there is none. Definitions of
    the main program are named by its file."""
    module = sys.modules.get(getattr(found, "__module__", None) or "")
    name = getattr(found, "__qualname__", "")
    if module is None or getattr(module, name, None) is not found:
        return ""
    return f"{file_of_module(module) or module.__name__}:{name}"


def origin_of(path: str) -> str:
    """Finds the file or the folder that ``module:Class`` would be imported from, without importing anything; empty if
    there is none. For a module in a package, it is the folder of the whole package."""
    file = file_of(path)
    if file is not None:
        return str(file.expanduser()) if file.expanduser().is_file() else ""
    package = path.partition(":")[0].partition(".")[0]
    module = sys.modules.get(package)
    if module is not None:
        spec = module.__spec__
        return _place(spec) if spec is not None else str(getattr(module, "__file__", None) or "")
    spec = _find(package)
    return "" if spec is None else _place(spec)


def _what_it_needs(name: str, missing: str) -> str:
    neighbour = missing.removeprefix(f"{OWN_FILES}.")
    if neighbour != missing:
        return f"{name} is no part of a package; write 'import {neighbour}' for a file beside it, without the dot"
    return f"{name} needs the package {missing!r}, which is not installed; pip install it"


def _beside(file: Path) -> str:
    folder = file.expanduser().parent
    return did_you_mean(file.name, [path.name for path in folder.glob("*.py")])


def _find(package: str) -> ModuleSpec | None:
    """Searches as an import does, with the current directory first."""
    here = _current_directory()
    for finder in sys.meta_path:
        if finder is PathFinder:
            spec = PathFinder.find_spec(package, [*([here] if here else []), *sys.path])
        else:
            spec = finder.find_spec(package, None)
        if spec is not None:
            return spec
    return None


def _place(spec: ModuleSpec) -> str:
    folders = list(spec.submodule_search_locations or ())
    return str(folders[0] if folders else spec.origin or "")


def _search_current_directory(package: str) -> None:
    """Puts the current directory first on the path if the package lies there, as ``python -m`` does. It stays there,
    since the module may import its neighbours later. Worker processes inherit the path."""
    here = _current_directory()
    if here and here not in sys.path and PathFinder.find_spec(package, [here]) is not None:
        sys.path.insert(0, here)


def _current_directory() -> str:
    """Gets the current directory; empty if it no longer exists, or if Python does not import from it."""
    try:
        return os.getcwd() if looks_here() and "" not in sys.path else ""
    except OSError:
        return ""
