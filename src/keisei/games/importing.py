"""Imports what a text names as ``module:Class``: games and networks of your own."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from keisei.errors import KeiseiError, in_one_line
from keisei.games.options import did_you_mean


def import_object(path: str, *, missing: type[KeiseiError], broken: type[KeiseiError]) -> Any:
    """Imports the object behind ``module:Class``. Raises ``missing`` if it does not exist, and ``broken`` if its module
    cannot be imported."""
    module_name, _, name = path.partition(":")
    if not module_name or not name:
        raise missing(f"{path!r} names no class; write 'module:Class'")
    if not module_name.startswith("keisei."):
        _search_current_directory()
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise broken(
                f"{module_name} needs the package {error.name!r}, which is not installed; pip install it"
            ) from error
        raise missing(
            f"there is no module {error.name!r} for {path!r} in the current directory, on PYTHONPATH and among the "
            f"installed packages; put its folder on PYTHONPATH, or install it"
        ) from error
    except Exception as error:
        raise broken(f"{path!r} cannot be imported: {in_one_line(error)}") from error
    try:
        return getattr(module, name)
    except AttributeError as error:
        names = [known for known in vars(module) if not known.startswith("_")]
        raise missing(f"{module_name} has no {name!r}{did_you_mean(name, names)}") from error


def _search_current_directory() -> None:
    """Puts the current directory first on the path, as ``python -m`` does. It stays there, since the module may import
    its neighbours later. Worker processes take over the path."""
    try:
        here = os.getcwd()
    except OSError:
        return  # it was deleted
    if not sys.flags.safe_path and here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
