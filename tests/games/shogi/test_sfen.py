from __future__ import annotations

import random
from contextlib import suppress

import cshogi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.errors import InvalidPositionError
from keisei.games.shogi import BLACK, STARTING_SFEN, WHITE, Board, parse_sfen, write_sfen

RANKS = STARTING_SFEN.split()[0]
LONE_KINGS = "4k4/9/9/9/9/9/9/9/4K4"


@pytest.mark.parametrize(
    "sfen",
    [
        STARTING_SFEN,
        f"{LONE_KINGS} w - 1",
        f"{LONE_KINGS} b 2R2B4G4S4N4L18P 65535",
        f"{LONE_KINGS} b RBGSNLPrbgsnlp 7",
        "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
        "8k/1+L+N+S+P+R+B2/9/9/9/9/9/9/4K4 w - 12",
    ],
)
def test_canonical_sfen_is_kept(sfen: str) -> None:
    assert write_sfen(parse_sfen(sfen)) == sfen
    assert Board(sfen).sfen() == sfen


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("startpos", STARTING_SFEN),
        ("sfen " + STARTING_SFEN, STARTING_SFEN),
        (STARTING_SFEN[:-2], STARTING_SFEN),
        (f"  {RANKS}\tb  -  1 ", STARTING_SFEN),
        (f"{LONE_KINGS} b plPrR 1", f"{LONE_KINGS} b RPrlp 1"),
        (f"{LONE_KINGS} w 1P 003", f"{LONE_KINGS} w P 3"),
    ],
)
def test_other_spellings_become_canonical(text: str, canonical: str) -> None:
    assert Board(text).sfen() == canonical


def test_what_the_fields_mean() -> None:
    setup = parse_sfen(f"{LONE_KINGS} w 2RP3g 12")
    assert setup.turn is WHITE
    assert setup.ply == 11
    assert {kind.letter: count for kind, count in setup.hand(BLACK).items()} == {"R": 2, "P": 1}
    assert {kind.letter: count for kind, count in setup.hand(WHITE).items()} == {"G": 3}


MALFORMED = {
    "": "got 0 fields",
    "startpos b": "got 2 fields",
    RANKS: "got 1 fields",
    STARTING_SFEN + " 1": "got 5 fields",
    "9/9/9/9/9/9/9/9 b - 1": "9 ranks divided by '/'; got 8",
    "9/9/9/9/9/9/9/9/9/9 b - 1": "9 ranks divided by '/'; got 10",
    f"{RANKS[:-1]} b - 1": r"rank i \('LNSGKGSN'\) describes 8 squares",
    f"{RANKS}P b - 1": "describes 10 squares",
    RANKS.replace("/9/9/9/", "/54/9/9/") + " b - 1": "two numbers in a row",
    RANKS.replace("/9/9/9/", "/0/9/9/") + " b - 1": "'0', which is not a piece",
    RANKS.replace("1B5R1", "1X5R1") + " b - 1": "'X', which is not a piece",
    RANKS.replace("1B5R1", "1歩5R1") + " b - 1": "'歩', which is not a piece",
    RANKS.replace("LNSG", "LNS+G") + " b - 1": r"'\+G', but a gold never promotes",
    RANKS.replace("GKG", "G+KG") + " b - 1": r"'\+K', but a king never promotes",
    RANKS.replace("1B5R1", "1++B5R1") + " b - 1": r"'\+', which is not a piece",
    RANKS.replace("1B5R1", "1+B5R+") + " b - 1": r"ends with '\+'",
    f"{RANKS} x - 1": "side to move is 'b' or 'w'; got 'x'",
    f"{RANKS} B - 1": "side to move is 'b' or 'w'; got 'B'",
    f"{LONE_KINGS} b PP 1": "name 'P' twice",
    f"{LONE_KINGS} b 2PRP 1": "name 'P' twice",
    f"{LONE_KINGS} b 19P 1": "1 … 18 of 'P'; got '19'",
    f"{LONE_KINGS} b 3R 1": "1 … 2 of 'R'; got '3'",
    f"{LONE_KINGS} b 0P 1": "1 … 18 of 'P'; got '0'",
    f"{LONE_KINGS} b 02P 1": "got '02'",
    f"{LONE_KINGS} b K 1": "hands hold P L N S G B R",
    f"{LONE_KINGS} b +P 1": "hands hold P L N S G B R",
    f"{LONE_KINGS} b P2 1": "hands hold P L N S G B R",
    f"{LONE_KINGS} b -P 1": "hands hold P L N S G B R",
    f"{RANKS} b - 0": "move number",
    f"{RANKS} b - -1": "move number",
    f"{RANKS} b - x": "move number",
    f"{RANKS} b - ²": "move number",
    f"{RANKS} b - {'9' * 5000}": "move number",
    f"{RANKS} b - 65536": "move number",
}


@pytest.mark.parametrize(("text", "fault"), MALFORMED.items())
def test_malformed_sfen_names_the_part(text: str, fault: str) -> None:
    with pytest.raises(InvalidPositionError, match=fault) as caught:
        Board(text)
    assert "malformed SFEN" in str(caught.value)
    assert repr(text)[1:20] in str(caught.value)
    assert len(str(caught.value)) < 700


IMPOSSIBLE = {
    "9/9/9/9/9/9/9/9/4K4 b - 1": "white has no king",
    "4k4/9/9/9/9/9/9/9/9 b - 1": "black has no king",
    "4k4/9/9/9/9/9/9/9/3KK4 b - 1": "black has 2 kings",
    "3kk4/9/9/9/9/9/9/9/4K4 b - 1": "white has 2 kings",
    "4k4/9/9/9/4P4/9/4P4/9/4K4 b - 1": "nifu, black has two unpromoted pawns on file 5",
    "4k4/2p6/2p6/9/9/9/9/9/4K4 b - 1": "nifu, white has two unpromoted pawns on file 7",
    "P3k4/9/9/9/9/9/9/9/4K4 b - 1": "black's pawn on 9a could never move",
    "4k4/9/9/9/9/9/9/9/p3K4 b - 1": "white's pawn on 9i could never move",
    "L3k4/9/9/9/9/9/9/9/4K4 b - 1": "black's lance on 9a could never move",
    "4k4/N8/9/9/9/9/9/9/4K4 b - 1": "black's knight on 9b could never move",
    "4k4/9/9/9/9/9/9/n8/4K4 b - 1": "white's knight on 9h could never move",
    "4k4/9/9/9/9/9/9/9/4K4 b 10P9p 1": "19 pieces of kind P",
    "4k4/9/+P8/9/9/9/9/9/4K4 b 18P 1": "19 pieces of kind P",
    "4k4/9/RR+R6/9/9/9/9/9/4K4 b - 1": "3 pieces of kind R",
    "4k4/9/GG7/9/9/9/9/9/4K4 b 2Gg 1": "5 pieces of kind G",
    "4k4/9/4R4/9/9/9/9/9/4K4 b - 1": "side that is not to move is in check",
    "4k4/9/4r4/9/9/9/9/9/4K4 w - 1": "side that is not to move is in check",
    "4k4/4K4/9/9/9/9/9/9/9 w - 1": "side that is not to move is in check",
}


@pytest.mark.parametrize(("sfen", "rule"), IMPOSSIBLE.items())
def test_impossible_position_names_the_rule(sfen: str, rule: str) -> None:
    with pytest.raises(InvalidPositionError, match=rule) as caught:
        Board(sfen)
    assert sfen in str(caught.value)


def test_promoted_pieces_may_stand_where_plain_ones_may_not() -> None:
    assert Board("+P+L+N1k4/+P8/+P8/9/9/9/9/9/4K4 b - 1").piece_at(72) is not None


@given(st.text())
def test_any_text_is_a_position_or_an_error(text: str) -> None:
    with suppress(InvalidPositionError):
        board = Board(text)
        assert Board(board.sfen()) == board


@given(st.data())
def test_any_damage_is_a_position_or_an_error(data: st.DataObject) -> None:
    sfen = data.draw(st.sampled_from([STARTING_SFEN, *IMPOSSIBLE, f"{LONE_KINGS} b RBGSNLPrbgsnlp 7"]))
    start = data.draw(st.integers(0, len(sfen)))
    end = data.draw(st.integers(start, len(sfen)))
    patch = data.draw(st.text("lnsgkrbpLNSGKRBP+123456789/ -bw0", max_size=6))
    with suppress(InvalidPositionError):
        board = Board(sfen[:start] + patch + sfen[end:])
        assert Board(board.sfen()).sfen() == board.sfen()


def test_same_text_as_cshogi() -> None:
    rng = random.Random(5)
    for _ in range(20):
        board, other = Board(), cshogi.Board()
        for _ in range(rng.randrange(200)):
            if not board.legal_moves:
                break
            move = rng.choice(list(board.legal_moves))
            board.push(move)
            other.push_usi(move.usi())
            assert board.sfen() == other.sfen()


def test_usi_position() -> None:
    board = Board.from_usi_position("position startpos moves 7g7f 3c3d")
    assert board.ply == 2
    assert [move.usi() for move in board.move_stack] == ["7g7f", "3c3d"]
    assert Board.from_usi_position("startpos") == Board()
    assert Board.from_usi_position(f"sfen {LONE_KINGS} w P 5 moves 5a5b P*5c").ply == 6
    assert Board.from_usi_position(f"{LONE_KINGS} w P 5 moves").ply == 4
