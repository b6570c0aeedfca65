"""What KIF and CSA share: records that are always legal, round trips, and bytes of any kind."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keisei.errors import IllegalMoveError, NotationError
from keisei.games.shogi import BLACK, WHITE, Board, Color, GameRecord, Move, Outcome, Termination, csa, kif
from keisei.games.shogi.record import decode, ending
from keisei.games.shogi.sfen import HANDICAPS

DATA = Path(__file__).parents[2] / "data" / "shogi"
FILES = sorted(path for path in DATA.iterdir() if path.suffix in (".kif", ".kifu", ".csa"))
STARTS = [
    "startpos",
    HANDICAPS["六枚落ち"],
    "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
    "4k4/9/9/9/9/9/9/9/4K4 b RBGSNLPrbgsnlp 1",
]
BY_TURN = [
    Termination.RESIGNATION,
    Termination.TIME_UP,
    Termination.DECLARATION,
    Termination.INTERRUPTED,
    Termination.IMPASSE,
    Termination.MAX_PLIES,
    Termination.REPETITION,
]
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=12)
headers = st.dictionaries(st.sampled_from(["EVENT", "SITE", "OPENING", "備考", "Round 2"]), words, max_size=3)


@st.composite
def records(draw: st.DrawFn) -> GameRecord:
    board = Board(draw(st.sampled_from(STARTS)))
    start = board.sfen()
    for pick in draw(st.lists(st.integers(0, 600), max_size=30)):
        moves = sorted(board.legal_moves)
        if not moves or board.outcome():
            break
        board.push(moves[pick % len(moves)])
    played = len(board.move_stack)
    times = st.lists(st.none() | st.integers(0, 9999), min_size=played, max_size=played)
    return GameRecord(
        start=start,
        moves=tuple(board.move_stack),
        outcome=draw(_outcomes(board)),
        names=(draw(words), draw(words)),
        headers=draw(headers),
        comments=draw(st.dictionaries(st.integers(0, played), st.lists(words).map("\n".join), max_size=3)),
        seconds=tuple(draw(times)),
    )


def _outcomes(board: Board) -> st.SearchStrategy[Outcome | None]:
    if board.outcome():
        return st.just(board.outcome())
    by_turn = st.sampled_from([ending(kind, board.turn) for kind in BY_TURN])
    broken = st.sampled_from([Outcome(Termination.ILLEGAL_MOVE, color) for color in Color])
    return st.none() | by_turn | broken


@pytest.mark.parametrize("notation", [kif, csa])
@given(record=records())
def test_round_trip(notation: ModuleType, record: GameRecord) -> None:
    text = notation.dumps(record)
    assert notation.loads(text) == record
    assert notation.loads(text.replace("\n", "\r\n").encode()) == record
    assert notation.loads(b"\xef\xbb\xbf" + text.encode()) == record
    assert notation.loads(text + "\r\n\n") == record


@given(record=records())
def test_kif_in_shift_jis(record: GameRecord) -> None:
    text = kif.dumps(record)
    try:
        data = text.encode("cp932")
        if data.decode("cp932") != text:
            return
    except UnicodeError:
        return
    assert kif.loads(data) == record


@given(record=records())
def test_from_one_notation_to_the_other(record: GameRecord) -> None:
    assert csa.loads(csa.dumps(kif.loads(kif.dumps(record)))) == record


@pytest.mark.parametrize("notation", [kif, csa])
@given(data=st.text() | st.binary())
@example(data="1 \x00")
@example(data=b"\xff\xfe1\x00")
def test_any_text_and_bytes_give_a_record_or_an_error(notation: ModuleType, data: str | bytes) -> None:
    with suppress(NotationError):
        notation.loads(data)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@settings(max_examples=200)
@given(data=st.data())
def test_damaged_files_give_a_record_or_an_error(path: Path, data: st.DataObject) -> None:
    notation = csa if path.suffix == ".csa" else kif
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(start + 40, len(content))))
        pieces = st.binary(max_size=6) | st.sampled_from(
            [bytes(content[i : i + 20]) for i in range(0, 400, 7)]
        )
        content[start:end] = data.draw(pieces)
    try:
        record = notation.loads(bytes(content))
    except NotationError:
        return
    assert notation.loads(notation.dumps(record)).moves == record.moves


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(NotationError, match="neither UTF-8 nor Shift-JIS"):
        decode(b"\xff\xfe\x81")
    assert decode("先手".encode("cp932")) == decode("\ufeff先手".encode()) == decode("\ufeff先手") == "先手"


def test_a_record_is_a_legal_game() -> None:
    with pytest.raises(IllegalMoveError, match="move 2 of the record: 7f7e is illegal"):
        GameRecord(moves=(Move.from_usi("7g7f"), Move.from_usi("7f7e")))


@pytest.mark.parametrize(
    "fields",
    [
        {"outcome": Outcome(Termination.RESIGNATION, BLACK)},
        {"outcome": Outcome(Termination.RESIGNATION, None)},
        {"outcome": Outcome(Termination.DECLARATION, WHITE)},
        {"outcome": Outcome(Termination.REPETITION, BLACK)},
        {"outcome": Outcome(Termination.ILLEGAL_MOVE, None)},
        {"names": ("a\nb", "c")},
        {"headers": {"EVENT": "a\rb"}},
        {"headers": {"": "x"}},
        {"headers": {"1st": "x"}},
        {"headers": {"a:b": "x"}},
        {"headers": {"先手": "x"}},
        {"headers": {"変化": "x"}},
        {"comments": {1: "after the last move"}},
        {"comments": {-1: "before the first"}},
        {"seconds": (1,)},
        {"moves": (Move.from_usi("7g7f"),), "seconds": (-1,)},
    ],
)
def test_what_no_record_can_hold(fields: dict[str, object]) -> None:
    with pytest.raises(NotationError):
        GameRecord(**fields)  # type: ignore[arg-type]


def test_from_board_and_back() -> None:
    board = Board("4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1")
    start = board.sfen()
    board.push_usi("G*5b")
    record = GameRecord.from_board(board, names=("a", "b"))
    assert record.start == start
    assert record.outcome == Outcome(Termination.NO_LEGAL_MOVES, BLACK)
    assert record.board() == board
    assert [each.ply for each in record.boards()] == [0, 1]
    assert kif.loads(kif.dumps(record)) == csa.loads(csa.dumps(record)) == record
