"""Games of the batch as records, and records as actions of the batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from keisei.errors import NotationError
from keisei.games.offers import RecordedGame
from keisei.games.shogi.board import Board, Outcome, Termination
from keisei.games.shogi.moves import Color
from keisei.games.shogi.sfen import STARTING_SFEN

if TYPE_CHECKING:
    from keisei.games.shogi.record import GameRecord

__all__ = ["ShogiRecords", "read_records", "record_of", "recorded", "usi_line"]

_TERMINATIONS = {"crashed": Termination.ILLEGAL_MOVE}
"""Endings that no notation has a word for, and what is written for them."""


class ShogiRecords:
    """KIF and CSA files in UTF-8, which can write every player's name, and SFEN: a line of moves for each game."""

    suffix = ".kif"
    suffixes = (".kif", ".kifu", ".csa", ".sfen")

    def write(self, game: RecordedGame, path: Path) -> None:
        from keisei.games.shogi import csa, kif

        record = record_of(game)
        if path.suffix.lower() == ".csa":
            csa.dump(record, path)
        elif path.suffix.lower() == ".sfen":
            path.write_text(usi_line(record) + "\n", encoding="ascii")
        else:
            kif.dump(record, path, encoding="utf-8")

    def read(self, path: Path) -> list[RecordedGame]:
        return [recorded(record) for record in read_records(path)]


def read_records(path: Path) -> list[GameRecord]:
    """Reads all games of a KIF, CSA or SFEN file."""
    from keisei.games.shogi import csa, kif

    suffix = path.suffix.lower()
    if suffix not in ShogiRecords.suffixes:
        raise NotationError(f"{path} is no record of Shogi: its name ends in none of {ShogiRecords.suffixes}")
    try:
        data = path.read_bytes()
        if suffix == ".csa":
            return csa.loads_all(data)
        return _sfen_lines(data) if suffix == ".sfen" else [kif.loads(data)]
    except OSError as error:
        raise NotationError(f"{path} cannot be read: {error.strerror or error}") from error
    except NotationError as error:
        raise type(error)(f"{path}: {error}") from None


def record_of(game: RecordedGame) -> GameRecord:
    """Makes a ``GameRecord`` of the same game, which ``kif`` and ``csa`` can write."""
    from keisei.games.shogi.record import GameRecord

    board = Board(game.options.get("start", STARTING_SFEN))
    for action in game.actions:
        board.push(board.move_from_action(action))
    termination = _TERMINATIONS.get(game.ending) or Termination(game.ending)
    return GameRecord.from_board(
        board, Outcome(termination, _winner(game.scores)), (game.names[0], game.names[1])
    )


def recorded(record: GameRecord) -> RecordedGame:
    """Turns a record into actions of the batch."""
    actions = []
    boards = record.boards()
    for move in record.moves:
        actions.append(next(boards).action(move))
    outcome = record.outcome
    scores: tuple[float, ...] = ()
    if outcome is not None and outcome.termination is not Termination.INTERRUPTED:
        black = 0.0 if outcome.winner is None else 1.0 if outcome.winner is Color.BLACK else -1.0
        scores = (black, -black)
    ending = Termination.INTERRUPTED if outcome is None else outcome.termination
    return RecordedGame({"start": record.start}, tuple(actions), record.names, scores, ending.value)


def usi_line(record: GameRecord) -> str:
    """Writes a game as USI's ``position`` does, without that word."""
    start = "startpos" if record.start == STARTING_SFEN else f"sfen {record.start}"
    return " ".join([start, *(["moves", *map(str, record.moves)] if record.moves else [])])


def _sfen_lines(data: bytes) -> list[GameRecord]:
    from keisei.games.shogi.record import GameRecord, at_line, decode, lines_of

    records = []
    for number, line in enumerate(lines_of(decode(data)), start=1):
        if line.strip():
            with at_line(number):
                records.append(GameRecord.from_board(Board.from_usi_position(line)))
    return records


def _winner(scores: tuple[float, ...]) -> Color | None:
    if not scores or scores[0] == scores[1]:
        return None
    return Color(0 if scores[0] > scores[1] else 1)
