"""What is played: the contract, the games that come with Keisei, and ways to bring more."""

from keisei.games.check import check_game
from keisei.games.contract import FinalRows, Game, GameFactory, GameSpec, ObservationSpec, Rows, Step
from keisei.games.heuristic import HasHeuristic
from keisei.games.lookahead import LooksAhead
from keisei.games.records import RecordedGame, RecordFormat
from keisei.games.registry import game_factory, make_game, register_game, registered_games
from keisei.games.single import Outcome, SingleGame, batched

__all__ = [
    "FinalRows",
    "Game",
    "GameFactory",
    "GameSpec",
    "HasHeuristic",
    "LooksAhead",
    "ObservationSpec",
    "Outcome",
    "RecordFormat",
    "RecordedGame",
    "Rows",
    "SingleGame",
    "Step",
    "batched",
    "check_game",
    "game_factory",
    "make_game",
    "register_game",
    "registered_games",
]
