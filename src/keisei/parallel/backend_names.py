"""The names of backends. Your own backend is registered in the same way as the built-in ones. It is imported at first
use (``backends.make_backend``)."""

from __future__ import annotations

from dataclasses import dataclass

from keisei.errors import ConfigError


@dataclass(frozen=True, slots=True)
class _Entry:
    target: str
    """``module:Class``."""
    elsewhere: bool = False
    """True if workers may run on other machines."""


_REGISTERED = {
    "inline": _Entry("keisei.parallel.backends.inline:InlineBackend"),
    "thread": _Entry("keisei.parallel.backends.thread:ThreadBackend"),
    "process": _Entry("keisei.parallel.backends.process:ProcessBackend"),
    "ray": _Entry("keisei.parallel.backends.cluster.backend:RayBackend", elsewhere=True),
}


def register_backend(name: str, target: str, *, elsewhere: bool = False) -> None:
    """Registers a backend under a name for ``parallel.backend``. ``target`` is ``module:Class``. The class is called
    with the arena, the reader of weights (or None) and the settings (``ParallelConfig``). ``elsewhere`` says that its
    workers may run on other machines, where no central inference can serve them."""
    if not name.isidentifier() or target.count(":") != 1:
        raise ConfigError(
            f"a backend has a plain name and a target 'module:Class', got {name!r} and {target!r}"
        )
    entry = _Entry(target, elsewhere)
    if _REGISTERED.setdefault(name, entry) != entry:
        raise ConfigError(f"a backend named {name!r} is registered already; choose another name")


def known_backends() -> list[str]:
    return list(_REGISTERED)


def runs_elsewhere(name: str) -> bool:
    """Checks whether the workers of a backend may run on other machines."""
    return name in _REGISTERED and _REGISTERED[name].elsewhere


def target_of(name: str) -> tuple[str, str]:
    """Gets the module and the class of a backend."""
    if name not in _REGISTERED:
        raise ConfigError(f"there is no backend {name!r}; the backends are {', '.join(_REGISTERED)}")
    module, _, attribute = _REGISTERED[name].target.partition(":")
    return module, attribute
