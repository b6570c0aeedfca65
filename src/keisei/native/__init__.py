"""Picks the build of the native core that suits this processor.

``KEISEI_NATIVE=baseline`` (or ``avx2``) chooses a build by name, for tests and bug reports.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from keisei.errors import ConfigError, KeiseiError

if TYPE_CHECKING:
    from keisei.native import _core as core

__all__ = ["BUILDS", "build_for", "core", "load_core", "usable_builds"]

BUILDS = {"avx2": {"avx2", "bmi1", "bmi2", "popcnt", "lzcnt"}, "baseline": set[str]()}
"""The builds, fastest first, each with the processor features that its compiler may use."""


def load_core(build: str) -> object:
    """Imports one build of the core by name."""
    try:
        return import_module(f"keisei.native._core_{build}")
    except ModuleNotFoundError as error:
        raise KeiseiError(
            f"the native core ({build}) is not built; `keisei doctor` says how to get it for this copy of Keisei"
        ) from error


def build_for(features: Iterable[str]) -> str:
    """Picks the fastest build for a processor with these features. ARM processors have none of them."""
    return next(build for build, needs in BUILDS.items() if needs <= {*features})


def usable_builds() -> list[str]:
    """Lists the builds that this processor can run, fastest first."""
    best = build_for(load_core("baseline").cpu_features())  # type: ignore[attr-defined]
    return list(BUILDS)[list(BUILDS).index(best) :]


def _pick() -> object:
    wanted = os.environ.get("KEISEI_NATIVE", "")
    if wanted and wanted not in BUILDS:
        raise ConfigError(f"KEISEI_NATIVE names no build: {wanted!r}; the builds are {', '.join(BUILDS)}")
    return load_core(wanted or usable_builds()[0])


if not TYPE_CHECKING:
    core = _pick()
