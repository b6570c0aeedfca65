"""What is played: the contract, the games that come with Keisei, and ways to bring more."""

from typing import TYPE_CHECKING, Any

from keisei.games.contract import FinalRows, Game, GameFactory, GameSpec, ObservationSpec, Rows, Step
from keisei.games.offers import (
    HasHeuristic,
    LooksAhead,
    ReadsMoves,
    ReadsRecords,
    RecordedGame,
    RecordFormat,
    ShowsSides,
    ShowsText,
)
from keisei.games.registry import game_factory, make_game, register_game, registered_games
from keisei.games.single import Outcome, SingleGame, batched

if TYPE_CHECKING:
    from keisei.games.check import check_game

__all__ = [
    "FinalRows",
    "Game",
    "GameFactory",
    "GameSpec",
    "HasHeuristic",
    "LooksAhead",
    "ObservationSpec",
    "Outcome",
    "ReadsMoves",
    "ReadsRecords",
    "RecordFormat",
    "RecordedGame",
    "Rows",
    "ShowsSides",
    "ShowsText",
    "SingleGame",
    "Step",
    "batched",
    "check_game",
    "game_factory",
    "make_game",
    "register_game",
    "registered_games",
]


def __getattr__(name: str) -> Any:
    """Imports ``check_game`` when it is first used, since only authors of games need it."""
    if name == "check_game":
        from keisei.games.check import check_game

        return check_game
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
