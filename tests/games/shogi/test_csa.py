from __future__ import annotations

from pathlib import Path

import cshogi
import cshogi.CSA
import pytest

from keisei.errors import IllegalMoveError, InvalidMoveError, InvalidPositionError, NotationError
from keisei.games.shogi import (
    BLACK,
    STARTING_SFEN,
    WHITE,
    Board,
    GameRecord,
    Move,
    Outcome,
    Termination,
    csa,
    kif,
)

DATA = Path(__file__).parents[2] / "data" / "shogi"


def usi(moves: tuple[Move, ...]) -> str:
    return " ".join(move.usi() for move in moves)


def test_golden_file() -> None:
    text = (DATA / "game.csa").read_text(encoding="utf-8")
    record = csa.loads(text)
    assert record == kif.load(DATA / "game.kifu")
    assert csa.dumps(record) == text


def test_the_same_game_spelled_otherwise() -> None:
    """The position drawn, statements divided by commas, plain comments; and a second game in the file."""
    first, second = csa.loads_all((DATA / "game_commas.csa").read_bytes())
    assert first == csa.load(DATA / "game.csa") == csa.load(DATA / "game_commas.csa")
    assert second.start == "4k4/9/9/9/9/9/9/9/4K4 w P2r2b4g4s4n4l17p 1"
    assert usi(second.moves) == "5a5b"
    assert second.outcome == Outcome(Termination.INTERRUPTED, None)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932"])
def test_files(tmp_path: Path, encoding: str) -> None:
    record = csa.load(DATA / "game.csa")
    csa.dump(record, tmp_path / "game.csa", encoding=encoding)
    assert csa.load(tmp_path / "game.csa") == record


ENDINGS = {
    "%TORYO": Outcome(Termination.RESIGNATION, WHITE),
    "%CHUDAN": Outcome(Termination.INTERRUPTED, None),
    "%SENNICHITE": Outcome(Termination.REPETITION, None),
    "%TSUMI": Outcome(Termination.NO_LEGAL_MOVES, WHITE),
    "%TIME_UP": Outcome(Termination.TIME_UP, WHITE),
    "%ILLEGAL_MOVE": Outcome(Termination.ILLEGAL_MOVE, WHITE),
    "%+ILLEGAL_ACTION": Outcome(Termination.ILLEGAL_MOVE, WHITE),
    "%-ILLEGAL_ACTION": Outcome(Termination.ILLEGAL_MOVE, BLACK),
    "%KACHI": Outcome(Termination.DECLARATION, BLACK),
    "%JISHOGI": Outcome(Termination.IMPASSE, None),
    "%HIKIWAKE": Outcome(Termination.IMPASSE, None),
    "%MATTA": Outcome(Termination.INTERRUPTED, None),
    "%FUZUMI": Outcome(Termination.INTERRUPTED, None),
    "%ERROR": Outcome(Termination.INTERRUPTED, None),
    "%MAX_MOVES": Outcome(Termination.MAX_PLIES, None),
}


@pytest.mark.parametrize(("word", "outcome"), ENDINGS.items())
def test_endings(word: str, outcome: Outcome) -> None:
    record = csa.loads(f"PI\n+\n+7776FU\n-3334FU\n{word}\n")
    assert record.outcome == outcome
    assert csa.loads(csa.dumps(record)) == record


def test_perpetual_check_is_told_from_other_broken_rules() -> None:
    for start, moves in (
        ("4k4/9/9/9/5R3/9/9/9/4K4 b - 1", "4e5e 5a4a 5e4e 4a5a "),
        ("4k4/9/9/9/4R4/9/9/9/4K4 w - 1", "5a4a 5e4e 4a5a 4e5e "),
    ):
        board = Board(start)
        for text in moves.split() * 3:
            board.push_usi(text)
        record = GameRecord.from_board(board)
        assert record.outcome == Outcome(Termination.PERPETUAL_CHECK, WHITE)
        assert csa.loads(csa.dumps(record)) == record


@pytest.mark.parametrize(
    ("text", "sfen"),
    [
        ("PI\n+\n", STARTING_SFEN),
        ("PI\n-\n", STARTING_SFEN.replace(" b ", " w ")),
        ("V2\n", STARTING_SFEN),
        ("PI82HI22KA\n-\n", "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"),
        ("P+59OU\nP-51OU\nP+00AL\n+", "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1"),
        ("P+59OU52TO00FU00FU\nP-11OU00HI\n-", "8k/4+P4/9/9/9/9/9/9/4K4 w 2Pr 1"),
    ],
)
def test_positions(text: str, sfen: str) -> None:
    record = csa.loads(text)
    assert record.start == sfen
    assert csa.loads(csa.dumps(record)) == record


def test_a_missing_side_to_move_follows_from_the_first_move() -> None:
    assert csa.loads("PI\n-3334FU").start == STARTING_SFEN.replace(" b ", " w ")


FAULTS = {
    "PI\n+\n+7776": (InvalidMoveError, "line 3: '.7776' is not a CSA move"),
    "PI\n+\n+7776XX": (InvalidMoveError, "is not a CSA move"),
    "PI\n+\n+7777FU": (InvalidMoveError, "line 3: .7777FU stays on its square 77; a move names two squares"),
    "PI\n+\n+7076FU": (InvalidMoveError, "squares run from 11 to 99"),
    "PI\n+\n+0076TO": (InvalidMoveError, "never in a hand"),
    "PI\n+\n+7775FU": (IllegalMoveError, "line 3: 7g7e is illegal: a pawn on 7g does not reach 7e"),
    "PI\n+\n-3334FU": (IllegalMoveError, "out of turn: black is to move"),
    "PI\n+\n+7776GI": (IllegalMoveError, "makes a GI of the FU on 77"),
    "PI\n+\n+7776TO": (IllegalMoveError, "promotes only"),
    "PI\n+\n%TORYO\n+7776FU": (NotationError, "line 4: a move stands after the end"),
    "PI\n+\n%TORYO\n%TORYO": (NotationError, "ends twice"),
    "PI\n+\n%GIVE_UP": (NotationError, "'%GIVE_UP' is not an ending; known are %TORYO"),
    "PI\n+\nPI": (NotationError, "after the side to move was given"),
    "PI\n+\n-": (NotationError, "after the side to move was given"),
    "P1-XX\n": (InvalidPositionError, "'-XX' in rank 1 is not a square"),
    "P1" + "+FU" * 10: (InvalidPositionError, "more than 9 squares"),
    "PX": (InvalidPositionError, "is not a position line"),
    "PI55FU\n": (InvalidPositionError, "no such piece stands there"),
    "P+59O\n": (InvalidPositionError, "is not a piece on a square"),
    "P+09FU\n": (InvalidPositionError, "is not a piece on a square"),
    "P+59XX\n": (InvalidPositionError, "is not a piece on a square"),
    "P+59OU59KI\n": (InvalidPositionError, "stands on a square that is taken"),
    "P+00OU\n": (InvalidPositionError, "never in a hand"),
    "P+00HI00HI00HI\n": (InvalidPositionError, "at most 2 of HI"),
    "P+59OU\n+\n": (InvalidPositionError, "white has no king"),
    "hello": (NotationError, "'hello' is not a statement"),
    "": (NotationError, "holds no CSA"),
    "'a comment": (NotationError, "holds no CSA"),
}


@pytest.mark.parametrize(("text", "kind", "message"), [(text, *fault) for text, fault in FAULTS.items()])
def test_faults_name_the_line(text: str, kind: type[NotationError], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        csa.loads(text)
    assert type(caught.value) is kind


@pytest.mark.parametrize("name", ["game.csa", "game_commas.csa"])
def test_cshogi_reads_the_same(name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    record = csa.loads(text)
    parsed = cshogi.CSA.Parser.parse_str(csa.dumps(record))[0]
    assert parsed.sfen == record.start
    assert [cshogi.move_to_usi(move) for move in parsed.moves] == [move.usi() for move in record.moves]
    assert list(parsed.times) == list(record.seconds)
    assert tuple(parsed.names) == record.names
    assert parsed.endgame == "%TORYO"
    assert parsed.win == cshogi.BLACK_WIN


def test_cshogi_reads_our_positions() -> None:
    for sfen in (
        "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PP+b2P1P/P5GS1/+R8/LN4bKL w r2gsn5p 1",
        "8k/9/9/9/+P+L+N+S+R+B3/9/9/9/4K4 b BG2S3N3L17Pgr 1",
    ):
        text = csa.dumps(GameRecord(sfen))
        assert cshogi.CSA.Parser.parse_str(text + "%CHUDAN\n")[0].sfen.split()[:2] == sfen.split()[:2]
        assert cshogi.Board(sfen).csa_pos().splitlines()[:9] == text.splitlines()[1:10]
