from __future__ import annotations

from pathlib import Path

import cshogi
import cshogi.KIF
import pytest

from keisei.errors import IllegalMoveError, InvalidMoveError, InvalidPositionError, NotationError
from keisei.games.shogi import BLACK, WHITE, Board, GameRecord, Move, Outcome, Termination, kif
from keisei.games.shogi.sfen import HANDICAPS

DATA = Path(__file__).parents[2] / "data" / "shogi"
MOVES = "7g7f 3c3d 8h2b+ 3a2b B*6e 8c8d 6e4c+ 4a5b 4c5b 5a5b G*4c"
HEAD = "手合割：平手\n手数----指手---------消費時間--\n"


def usi(moves: tuple[Move, ...]) -> str:
    return " ".join(move.usi() for move in moves)


def test_golden_file() -> None:
    text = (DATA / "game.kifu").read_text(encoding="utf-8")
    record = kif.loads(text)
    assert usi(record.moves) == MOVES
    assert record.names == ("先手 太郎", "後手 花子")
    assert record.headers == {"EVENT": "検査対局", "START_TIME": "2024/01/02 03:04:05"}
    assert record.seconds == (1, 2, 65, 10, 30, 0, 3660, 7, 1, 1, 3)
    assert record.comments == {0: "よろしくお願いします", 3: "角交換\n  二行目の注釈", 11: "以下は必勝"}
    assert record.outcome == Outcome(Termination.RESIGNATION, BLACK)
    assert kif.dumps(record) == text


def test_the_same_game_from_another_program() -> None:
    """Shift-JIS, CRLF, other spellings, a bookmark, and a variation that is left out."""
    other = kif.load(DATA / "game_windows.kif")
    assert other == kif.load(DATA / "game.kifu")


def test_golden_diagram() -> None:
    text = (DATA / "diagram.kif").read_text(encoding="utf-8")
    record = kif.loads(text)
    assert record.start == "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PP+b2P1P/P5GS1/+R8/LN4bKL w r2gsn5p 101"
    assert usi(record.moves) == "6f8h 9h8h"
    assert record.outcome == Outcome(Termination.REPETITION, None)
    assert kif.dumps(record) == text


@pytest.mark.parametrize("suffix", [".kif", ".kifu"])
def test_files(tmp_path: Path, suffix: str) -> None:
    record = kif.load(DATA / "game.kifu")
    path = tmp_path / f"game{suffix}"
    kif.dump(record, path)
    assert kif.load(path) == record
    data = path.read_bytes()
    assert data.decode("cp932" if suffix == ".kif" else "utf-8").startswith("棋戦：")
    assert b"\r\n" in data
    kif.dump(record, path, encoding="utf-8-sig")
    assert kif.load(path) == record


def test_a_name_that_shift_jis_lacks(tmp_path: Path) -> None:
    record = kif.loads("先手：한국\n" + HEAD)
    with pytest.raises(NotationError, match="encoding='utf-8'"):
        kif.dump(record, tmp_path / "game.kif")
    kif.dump(record, tmp_path / "game.kifu")
    assert kif.load(tmp_path / "game.kifu") == record


@pytest.mark.parametrize("name", HANDICAPS)
def test_handicaps(name: str) -> None:
    record = kif.loads(f"手合割：{name}\n下手：a\n上手：b\n")
    assert record.start == cshogi.KIF.Parser.HANDYCAP_SFENS[name]
    assert record.names == ("a", "b")
    assert f"手合割：{name}\n" in kif.dumps(record)
    assert kif.loads(kif.dumps(record)) == record


ENDINGS = {
    "投了": Outcome(Termination.RESIGNATION, WHITE),
    "中断": Outcome(Termination.INTERRUPTED, None),
    "千日手": Outcome(Termination.REPETITION, None),
    "詰み": Outcome(Termination.NO_LEGAL_MOVES, WHITE),
    "切れ負け": Outcome(Termination.TIME_UP, WHITE),
    "反則勝ち": Outcome(Termination.ILLEGAL_MOVE, BLACK),
    "反則負け": Outcome(Termination.ILLEGAL_MOVE, WHITE),
    "入玉勝ち": Outcome(Termination.DECLARATION, BLACK),
    "持将棋": Outcome(Termination.IMPASSE, None),
    "最大手数": Outcome(Termination.MAX_PLIES, None),
}


@pytest.mark.parametrize(("word", "outcome"), ENDINGS.items())
def test_endings(word: str, outcome: Outcome) -> None:
    record = kif.loads(f"{HEAD}1 ７六歩(77)\n2 ３四歩(33)\n3 {word} ( 0:01/00:00:01)\n")
    assert record.outcome == outcome
    assert kif.loads(kif.dumps(record)) == record


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("まで2手で後手の勝ち", Outcome(Termination.RESIGNATION, WHITE)),
        ("まで、2手で後手の勝ち", Outcome(Termination.RESIGNATION, WHITE)),
        ("まで2手で千日手", Outcome(Termination.REPETITION, None)),
        ("まで2手で先手の反則負け", Outcome(Termination.ILLEGAL_MOVE, WHITE)),
        ("まで2手で先手の反則勝ち", Outcome(Termination.ILLEGAL_MOVE, BLACK)),
        ("まで2手で先手の入玉勝ち", Outcome(Termination.DECLARATION, BLACK)),
        ("まで2手で", None),
    ],
)
def test_result_line_alone(line: str, outcome: Outcome | None) -> None:
    assert kif.loads(f"{HEAD}1 ７六歩(77)\n2 ３四歩(33)\n{line}\n").outcome == outcome


def test_perpetual_check_is_told_from_other_broken_rules() -> None:
    board = Board("4k4/9/9/9/5R3/9/9/9/4K4 b - 1")
    for text in ["4e5e", "5a4a", "5e4e", "4a5a"] * 3:
        board.push_usi(text)
    record = GameRecord.from_board(board)
    assert record.outcome == Outcome(Termination.PERPETUAL_CHECK, WHITE)
    assert kif.loads(kif.dumps(record)) == record


@pytest.mark.parametrize(
    "line",
    ["1 ７六歩(77)", "１　７六歩(77)", "  1   76歩(77)  (0:00/0:0:0)", "1 ７６歩(７７)", "1 7六歩不成(77)"],
)
def test_spellings_of_a_move(line: str) -> None:
    assert usi(kif.loads(HEAD + line).moves) == "7g7f"


def test_names_of_promoted_pieces() -> None:
    board = Board("4k4/9/9/9/+P+L+N+S+B+R3/9/9/9/4K4 b - 1")
    names = {"9e9d": "と", "8e8d": "成香", "7e7d": "成桂", "6e6d": "成銀", "5e5d": "馬", "4e4d": "龍"}
    for text, name in names.items():
        assert name in kif.kif_move(board, Move.from_usi(text))
        record = GameRecord(board.sfen(), (Move.from_usi(text),))
        assert kif.loads(kif.dumps(record)) == record
        assert kif.loads(kif.dumps(record).replace("龍(45)", "竜(45)").replace("成銀(", "全(")) == record


FAULTS = {
    HEAD + "1 ７六(77)": (InvalidMoveError, "line 3: .*is no KIF move"),
    HEAD + "1 ７六歩": (InvalidMoveError, "lacks the square it starts from"),
    HEAD + "1 ７六歩(07)": (InvalidMoveError, "lacks the square it starts from"),
    HEAD + "1 ７七歩(77)": (
        InvalidMoveError,
        r"'7七歩\(77\)' stays on its square: \(77\) is where the 歩 comes from",
    ),
    HEAD + "1 ７六歩(77)\n2 ３四歩(34)": (
        InvalidMoveError,
        r"line 4: .*stays on its square: \(34\) is where",
    ),
    HEAD + "1 ７六歩(77)\n2 同　歩(76)": (InvalidMoveError, "line 4: .*stays on its square"),
    HEAD + "1 ７六と打": (InvalidMoveError, "is no drop"),
    HEAD + "1 同　歩(77)": (InvalidMoveError, "no move came before"),
    HEAD + "1 ７五歩(77)": (IllegalMoveError, "line 3: 7g7e is illegal: a pawn on 7g does not reach 7e"),
    HEAD + "1 ７六銀(77)": (IllegalMoveError, "moves 銀, but 歩 stands on 77"),
    HEAD + "1 ７六歩(77)\n3 ３四歩(33)": (NotationError, "line 4: move 3 follows move 1"),
    HEAD + "1 投了\n2 ７六歩(77)": (NotationError, "line 4: a move stands after the end"),
    HEAD + "1 投了\n2 投了": (NotationError, "ends twice"),
    HEAD + "1 ７六歩(77)\n手合割：平手": (NotationError, "the handicap stands after the first move"),
    HEAD + "まで0手で先手の勝ち": (NotationError, "black is to move at the end"),
    "手合割：五十枚落ち": (InvalidPositionError, "unknown handicap '五十枚落ち'; known are 平手"),
    "手合割：その他": (InvalidPositionError, "must be drawn"),
    "先手の持駒：飛飛": (InvalidPositionError, "names 飛 twice"),
    "先手の持駒：飛二十": (InvalidPositionError, "a hand is written like"),
    "先手の持駒：玉": (InvalidPositionError, "a hand is written like"),
    "|v香|一": (InvalidPositionError, "line 1: a row of the board has 9 squares"),
    "|" * 30: (InvalidPositionError, "a row of the board has 9 squares"),
    "| ・ ・ ・ ・ ・ ・ ・ ・ ・|一": (InvalidPositionError, "a board has 9 rows"),
    "hello": (NotationError, "'hello' is neither a header"),
    "": (NotationError, "holds no KIF"),
    "# only this\n*and that": (NotationError, "holds no KIF"),
}


@pytest.mark.parametrize(("text", "kind", "message"), [(text, *fault) for text, fault in FAULTS.items()])
def test_faults_name_the_line(text: str, kind: type[NotationError], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        kif.loads(text)
    assert type(caught.value) is kind


def test_an_impossible_diagram() -> None:
    text = (DATA / "diagram.kif").read_text(encoding="utf-8")
    with pytest.raises(InvalidPositionError, match="white has no king"):
        kif.loads(text.replace("v玉", " ・"))


def test_cshogi_reads_what_we_write_and_the_other_way_round() -> None:
    record = kif.load(DATA / "game.kifu")
    parsed = cshogi.KIF.Parser.parse_str(kif.dumps(record))
    assert parsed.sfen == record.start
    assert [cshogi.move_to_usi(move) for move in parsed.moves] == [move.usi() for move in record.moves]
    assert tuple(parsed.names) == record.names
    assert tuple(parsed.times) == record.seconds
    assert parsed.win == cshogi.BLACK_WIN

    board = cshogi.Board(record.start)
    lines = [HEAD.strip()]
    previous = None
    for number, move in enumerate(parsed.moves, start=1):
        lines.append(f"{number:4} {cshogi.KIF.move_to_kif(move, previous)}")
        board.push(move)
        previous = move
    assert kif.loads("\n".join(lines)).moves == record.moves


def test_the_same_diagram_as_cshogi() -> None:
    for sfen in (kif.load(DATA / "diagram.kif").start, kif.load(DATA / "game.kifu").board().sfen()):
        theirs = cshogi.KIF.board_to_bod(cshogi.Board(sfen))
        assert kif.loads(theirs + "\n").start.rsplit(" ", 1)[0] == sfen.rsplit(" ", 1)[0]
        assert str(Board(sfen)).splitlines()[1:12] == theirs.splitlines()[1:12]
