"""Keisei trains game-playing agents by self-play.

``import keisei`` is light: games are imported when they are made, and torch when something learns.
"""

from importlib.metadata import PackageNotFoundError, version

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
]
