"""Games of a match as records, in the format of the game."""

from __future__ import annotations

from pathlib import Path

from keisei.errors import ConfigError
from keisei.evaluation.results import MatchResult
from keisei.games.offers import ReadsRecords, RecordedGame, RecordFormat

__all__ = ["record_suffixes", "recorded_game", "write_record"]


def recorded_game(match: MatchResult, number: int) -> RecordedGame:
    """Makes a record of a game of a match that was played with ``record=True``, with names and scores by seat."""
    game = match.games[number]
    if not game.actions:
        raise ConfigError("a record is made of a game's actions; play the match with record=True")
    first, second = match.players
    names = tuple(first if seat == game.seat else second for seat in range(match.seats))
    return RecordedGame(match.options, game.actions, names, game.scores[: match.seats], game.ending)


def write_record(match: MatchResult, number: int, stem: Path, suffix: str | None = None) -> Path:
    """Writes such a game into a file and returns its path: ``stem`` with the suffix of the game's format, or with
    another one of its ``suffixes``."""
    if match.record_format is None:
        raise ConfigError(f"{match.game} has no format for records; its GameSpec.record_format may bring one")
    suffix = suffix or match.record_format.suffix
    if suffix not in record_suffixes(match.record_format):
        known = ", ".join(record_suffixes(match.record_format))
        raise ConfigError(f"{match.game} has no records with the suffix {suffix}; it has {known}")
    path = stem.with_name(stem.name + suffix)
    match.record_format.write(recorded_game(match, number), path)
    return path


def record_suffixes(form: RecordFormat) -> tuple[str, ...]:
    """Lists the suffixes of all files that a format writes."""
    return form.suffixes if isinstance(form, ReadsRecords) else (form.suffix,)
