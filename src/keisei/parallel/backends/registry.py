"""Backends by name. Your own backend is registered in the same way as the built-in ones. It is imported at first
use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from keisei.errors import ConfigError

if TYPE_CHECKING:
    from keisei.machine.start_method import StartMethod
    from keisei.parallel.arena import Arena
    from keisei.parallel.backends.contract import Backend
    from keisei.parallel.weights.model_sync import WeightReader

_REGISTERED = {
    "inline": "keisei.parallel.backends.inline:InlineBackend",
    "thread": "keisei.parallel.backends.thread:ThreadBackend",
    "process": "keisei.parallel.backends.process:ProcessBackend",
}


def register_backend(name: str, target: str) -> None:
    """Registers a backend under a name for ``parallel.backend``. ``target`` is ``module:Class``. The class is called
    with the arena, the reader of weights (or None) and the start method."""
    if not name.isidentifier() or target.count(":") != 1:
        raise ConfigError(
            f"a backend has a plain name and a target 'module:Class', got {name!r} and {target!r}"
        )
    if _REGISTERED.setdefault(name, target) != target:
        raise ConfigError(f"a backend named {name!r} is registered already; choose another name")


def known_backends() -> list[str]:
    return list(_REGISTERED)


def make_backend(
    name: str, arena: Arena, weights: WeightReader | None = None, start_method: StartMethod = "auto"
) -> Backend:
    """Makes the backend with this name. Its workers play in this arena."""
    if name not in _REGISTERED:
        raise ConfigError(f"there is no backend {name!r}; the backends are {', '.join(_REGISTERED)}")
    module, _, attribute = _REGISTERED[name].partition(":")
    backend: Backend = getattr(import_module(module), attribute)(arena, weights, start_method)
    return backend
