"""Games of the batch as records: the actions of a match, replayed on a board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from keisei.games.records import RecordedGame
from keisei.games.shogi.board import Board, Outcome, Termination
from keisei.games.shogi.moves import Color
from keisei.games.shogi.sfen import STARTING_SFEN

if TYPE_CHECKING:
    from keisei.games.shogi.record import GameRecord

__all__ = ["KifFormat", "record_of"]


class KifFormat:
    """KIF files in UTF-8, which can write every player's name."""

    suffix = ".kif"

    def write(self, game: RecordedGame, path: Path) -> None:
        from keisei.games.shogi import kif

        kif.dump(record_of(game), path, encoding="utf-8")


def record_of(game: RecordedGame) -> GameRecord:
    """Gives the same game as a record, which ``kif`` and ``csa`` can write."""
    from keisei.games.shogi.record import GameRecord

    board = Board(game.options.get("start", STARTING_SFEN))
    for action in game.actions:
        board.push(board.move_from_action(action))
    outcome = Outcome(Termination(game.ending), _winner(game.scores))
    return GameRecord.from_board(board, outcome, (game.names[0], game.names[1]))


def _winner(scores: tuple[float, ...]) -> Color | None:
    return None if scores[0] == scores[1] else Color(0 if scores[0] > scores[1] else 1)
