"""Keisei trains game-playing agents by self-play.

``import keisei`` is light: games are imported when they are made, and torch when something learns.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from keisei.errors import KeiseiError
from keisei.games import (
    GameSpec,
    ObservationSpec,
    Rows,
    SingleGame,
    Step,
    batched,
    check_game,
    make_game,
    register_game,
    registered_games,
)

if TYPE_CHECKING:
    from keisei.training.api import train
    from keisei.training.dqn_agent import train_dqn

try:
    __version__ = version("keisei")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    "GameSpec",
    "KeiseiError",
    "ObservationSpec",
    "Rows",
    "SingleGame",
    "Step",
    "__version__",
    "batched",
    "check_game",
    "make_game",
    "register_game",
    "registered_games",
    "train",
    "train_dqn",
]


def __getattr__(name: str) -> Any:
    """What trains brings torch with it, so it is imported when it is first asked for."""
    if name == "train":
        from keisei.training.api import train

        return train
    if name == "train_dqn":
        from keisei.training.dqn_agent import train_dqn

        return train_dqn
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
