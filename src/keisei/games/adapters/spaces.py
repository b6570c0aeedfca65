"""What the adapters share: Gymnasium spaces for a spec, and a clear word on what is not installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from gymnasium import spaces

from keisei.errors import GameError
from keisei.games.contract import Array, Game, GameSpec

SEED_LIMIT = 1 << 63


def need(module: str, install: str) -> Any:
    """Import a module of an optional package, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise GameError(f"this needs {module}, which is not installed here; {install}") from error


def observation_box(spec: GameSpec) -> spaces.Box:
    """The space of one observation. Booleans are offered as uint8, since a Box has no booleans."""
    dtype = as_numbers(np.zeros((), spec.observation.dtype)).dtype
    low, high = -np.inf, np.inf
    if np.issubdtype(dtype, np.integer):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    if spec.observation.dtype == np.bool_:
        high = 1
    return spaces.Box(low, high, spec.observation.shape, dtype.type)


def as_numbers(observations: Array) -> Array:
    return observations.view(np.uint8) if observations.dtype == np.bool_ else observations


def picture(game: Game, index: int = 0) -> str:
    """The picture that Python games give of themselves; a line of facts where there is none."""
    text = getattr(game, "text", None)
    if text is not None:
        return str(text(index))
    rows = game.rows()
    row = int(np.searchsorted(rows.game, index))
    return f"{game.spec.name}: ply {rows.ply[row]}, seat {rows.seat[row]} to act"
