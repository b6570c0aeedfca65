from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from keisei.games.shogi import BLACK, WHITE, Board, Move, board_svg, board_text
from keisei.games.shogi.picture import kanji_number

SVG = "{http://www.w3.org/2000/svg}"


def test_text_picture() -> None:
    board = Board("l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1")
    assert str(board) == board_text(board.setup)
    assert str(board).splitlines() == [
        "後手の持駒：金　銀　桂　歩五",
        "  ９ ８ ７ ６ ５ ４ ３ ２ １",
        "+---------------------------+",
        "|v香 ・ ・ ・ ・ ・ ・v桂v香|一",
        "| ・ ・ ・ ・ ・ と ・v金v玉|二",
        "| ・ ・v桂v歩 ・ 銀 ・ ・ ・|三",
        "|v歩 ・v歩 ・ ・ ・ ・ 歩v歩|四",
        "| ・ ・ ・ 歩 ・ ・ 銀v歩 ・|五",
        "| ・ 歩 歩v角 ・ ・ 歩 ・ 歩|六",
        "| 歩 ・ ・ ・ ・ ・ 金 銀 ・|七",
        "| 飛 ・ ・ ・ ・ ・ ・ ・ ・|八",
        "| 香 桂 ・ ・ ・ ・v角 玉 香|九",
        "+---------------------------+",
        "先手の持駒：飛　金",
        "後手番",
    ]


def test_numbers() -> None:
    assert [kanji_number(n) for n in (1, 9, 10, 11, 18)] == ["一", "九", "十", "十一", "十八"]


def _pieces(svg: str) -> list[ET.Element]:
    return ET.fromstring(svg).findall(f"{SVG}g")


@given(st.lists(st.integers(0, 600), max_size=60))
def test_svg_shows_every_piece(picks: list[int]) -> None:
    board = Board()
    for pick in picks:
        moves = sorted(board.legal_moves)
        if moves:
            board.push(moves[pick % len(moves)])
    svg = board._repr_svg_()
    kinds_in_hand = len(board.hand(BLACK)) + len(board.hand(WHITE))
    on_board = sum(board.piece_at(square) is not None for square in range(81))
    assert len(_pieces(svg)) == on_board + kinds_in_hand
    assert "href" not in svg  # it stands alone: nothing is fetched


def test_svg_turns_white_and_marks_the_last_move() -> None:
    board = Board()
    plain = ET.fromstring(board_svg(board.setup))
    assert not [rect for rect in plain.iter(f"{SVG}rect") if rect.get("class") in ("last", "from")]
    assert (
        sum("rotate(180)" in (piece.get("transform") or "") for piece in _pieces(board_svg(board.setup)))
        == 20
    )
    board.push_usi("7g7f")
    marked = ET.fromstring(board._repr_svg_())
    corners = {rect.get("class"): (rect.get("x"), rect.get("y")) for rect in marked.iter(f"{SVG}rect")}
    assert corners["from"][0] == corners["last"][0]  # one file
    assert corners["from"][1] != corners["last"][1]
    dropped = ET.fromstring(board_svg(board.setup, Move.from_usi("P*5e")))
    assert {rect.get("class") for rect in dropped.iter(f"{SVG}rect")} >= {"last"}
    assert "from" not in {rect.get("class") for rect in dropped.iter(f"{SVG}rect")}


def test_promoted_signs_are_red_and_hands_are_counted() -> None:
    svg = Board("8k/9/9/9/+P+L+N+S+R+B3/9/9/9/4K4 b 17P 1")._repr_svg_()
    red = [text.text for text in ET.fromstring(svg).iter(f"{SVG}text") if "red" in (text.get("class") or "")]
    assert sorted(red) == sorted("と杏圭全龍馬")
    counts = [text.text for text in ET.fromstring(svg).iter(f"{SVG}text") if text.get("class") == "count"]
    assert counts == ["17"]
