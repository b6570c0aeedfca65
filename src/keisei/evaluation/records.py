"""Games of a match as Shogi records, for KIF and CSA files."""

from __future__ import annotations

from pathlib import Path

from keisei.errors import ConfigError
from keisei.evaluation.matches import MatchResult, PlayedGame
from keisei.games.shogi import kif
from keisei.games.shogi.board import Board, Outcome, Termination
from keisei.games.shogi.moves import Color
from keisei.games.shogi.record import GameRecord
from keisei.games.shogi.sfen import STARTING_SFEN

__all__ = ["shogi_record", "write_kif"]


def shogi_record(match: MatchResult, number: int) -> GameRecord:
    """A game of a Shogi match that was played with ``record=True``."""
    game = match.games[number]
    if match.game != "shogi" or not game.actions:
        raise ConfigError(
            f"a record is made of the actions of a Shogi game; this is a game of {match.game} with "
            f"{len(game.actions)} actions. Play the match with record=True"
        )
    board = Board(match.options.get("start", STARTING_SFEN))
    for action in game.actions:
        board.push(board.move_from_action(action))
    names = match.players if game.seat == 0 else (match.players[1], match.players[0])
    return GameRecord.from_board(board, Outcome(Termination(game.ending), _winner(game)), names)


def write_kif(match: MatchResult, number: int, path: Path) -> None:
    """The same as a KIF file. It is UTF-8, which has a sign for every player's name."""
    kif.dump(shogi_record(match, number), path, encoding="utf-8")


def _winner(game: PlayedGame) -> Color | None:
    return None if game.result == 0 else Color(game.seat if game.result > 0 else 1 - game.seat)
