"""Games of the batch as files, in all notations, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from keisei.errors import ConfigError, NotationError
from keisei.evaluation import play_match, recorded_game, write_record
from keisei.games.offers import ReadsRecords, RecordedGame
from keisei.games.shogi import STARTING_SFEN, Board, read_records, record_of
from keisei.games.shogi.match_records import ShogiRecords, recorded, usi_line

MATCH = play_match("shogi", {"max_plies": 80}, "search:1", "random", 2, 6, record=True)
DATA = Path(__file__).parents[2] / "data" / "shogi"


@pytest.mark.parametrize("suffix", ShogiRecords.suffixes)
def test_what_is_written_is_read(tmp_path: Path, suffix: str) -> None:
    for number in range(2):
        game = recorded_game(MATCH, number)
        (read,) = ShogiRecords().read(write_record(MATCH, number, tmp_path / f"{number}", suffix))
        assert read.actions == game.actions
        if suffix != ".sfen":  # which has moves alone
            assert (read.names, read.scores, read.ending) == (game.names, game.scores, game.ending)


def test_it_reads_what_it_writes_by_its_protocol() -> None:
    assert isinstance(ShogiRecords(), ReadsRecords)
    with pytest.raises(
        ConfigError, match=r"no records with the suffix .pgn; it has .kif, .kifu, .csa, .sfen"
    ):
        write_record(MATCH, 0, Path("x"), ".pgn")


def test_a_game_that_was_interrupted_has_no_result() -> None:
    (record,) = read_records(DATA / "game.csa")
    won = recorded(record)
    assert sorted(won.scores) == [-1.0, 1.0]
    assert record_of(won).outcome == record.outcome
    assert recorded(record.until(2)).scores == ()
    assert recorded(record.until(2)).ending == "interrupted"


def test_a_crash_is_written_as_a_loss() -> None:
    for scores in ((1.0, -1.0), (-1.0, 1.0)):
        outcome = record_of(RecordedGame({}, (), ("a", "b"), scores, "crashed")).outcome
        assert outcome is not None
        assert outcome.winner == scores.index(1.0)


def test_lines_of_sfen(tmp_path: Path) -> None:
    start = "4k4/9/9/9/9/9/PPPPPPPPP/9/4K4 w - 1"
    lines = ["startpos moves 7g7f 3c3d", "", f"sfen {start} moves 5a5b", "startpos"]
    path = tmp_path / "games.sfen"
    path.write_text("\n".join(lines))
    records = read_records(path)
    assert [len(record.moves) for record in records] == [2, 1, 0]
    assert records[1].start == Board(start).sfen()
    assert records[2].start == STARTING_SFEN
    assert [usi_line(record) for record in records] == [line for line in lines if line]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.sfen",
            "startpos\nstartpos moves 1a1b",
            r"a\.sfen: line 2: move 1 of the USI position: 1a1b is illegal",
        ),
        ("a.kif", "nonsense", r"a\.kif: line 1: 'nonsense' is neither"),
        ("a.txt", "startpos", r"a\.txt is no record of Shogi: its name ends in none of"),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(NotationError, match=message):
        read_records(tmp_path / name)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(NotationError, match=r"missing.csa cannot be read: No such file"):
        read_records(Path("missing.csa"))
