"""What the adapters share: Gymnasium spaces for a spec, and clear errors for missing packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from gymnasium import spaces

from keisei.errors import GameError
from keisei.games.contract import Array, GameSpec

SEED_LIMIT = 1 << 63


def need(module: str, install: str) -> Any:
    """Imports a module of an optional package. An error says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise GameError(f"this needs {module}, which is not installed here; {install}") from error


def observation_box(spec: GameSpec) -> spaces.Box:
    """Makes the space of one observation. Booleans become uint8, since a Box has no booleans."""
    dtype = as_numbers(np.zeros((), spec.observation.dtype)).dtype
    low, high = -np.inf, np.inf
    if np.issubdtype(dtype, np.integer):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    if spec.observation.dtype == np.bool_:
        high = 1
    return spaces.Box(low, high, spec.observation.shape, dtype.type)


def as_numbers(observations: Array) -> Array:
    return observations.view(np.uint8) if observations.dtype == np.bool_ else observations
