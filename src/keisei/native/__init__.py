"""Picks the build of the native core that suits this processor.

``KEISEI_NATIVE=baseline`` (or ``avx2``) asks for one build by name; tests and bug reports use it.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from keisei.errors import ConfigError, KeiseiError

if TYPE_CHECKING:
    from keisei.native import _core as core

__all__ = ["BUILDS", "core", "load_core"]

BUILDS = ("avx2", "baseline")


def load_core(build: str) -> object:
    """One build of the core by name."""
    try:
        return import_module(f"keisei.native._core_{build}")
    except ModuleNotFoundError as error:
        raise KeiseiError(
            f"the native core ({build}) is not built; `keisei doctor` says how to get it for this copy of Keisei"
        ) from error


def _pick() -> object:
    wanted = os.environ.get("KEISEI_NATIVE", "")
    if wanted and wanted not in BUILDS:
        raise ConfigError(f"KEISEI_NATIVE names no build: {wanted!r}; the builds are {', '.join(BUILDS)}")
    if wanted:
        return load_core(wanted)
    baseline = load_core("baseline")
    return load_core("avx2") if baseline.cpu_has_avx2() else baseline  # type: ignore[attr-defined]


if not TYPE_CHECKING:
    core = _pick()
