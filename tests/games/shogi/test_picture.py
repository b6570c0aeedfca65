from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from keisei.games.shogi import BLACK, WHITE, Board, Move, board_svg, board_text, picture
from keisei.games.shogi.picture import KANJI, KANJI_DIGITS, kanji_number

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
ROOT = Path(__file__).parents[3]


def written(svg: str, style: str) -> list[str]:
    """The characters of a style, in their order."""
    uses = (use for use in ET.fromstring(svg).iter(f"{SVG}use") if use.get("class") == style)
    return [chr(int((use.get(HREF) or "").rpartition("-")[2], 16)) for use in uses]


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


def test_text_picture_from_a_side() -> None:
    """For white, the board is turned round: the same rows and columns from the other end."""
    board = Board("l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1")
    white = picture.board_text_from(board.setup, WHITE).splitlines()
    assert white == [
        "先手の持駒：飛　金",
        "  １ ２ ３ ４ ５ ６ ７ ８ ９",
        "+---------------------------+",
        "|v香v玉 角 ・ ・ ・ ・v桂v香|九 i",
        "| ・ ・ ・ ・ ・ ・ ・ ・v飛|八 h",
        "| ・v銀v金 ・ ・ ・ ・ ・v歩|七 g",
        "|v歩 ・v歩 ・ ・ 角v歩v歩 ・|六 f",
        "| ・ 歩v銀 ・ ・v歩 ・ ・ ・|五 e",
        "| 歩v歩 ・ ・ ・ ・ 歩 ・ 歩|四 d",
        "| ・ ・ ・v銀 ・ 歩 桂 ・ ・|三 c",
        "| 玉 金 ・vと ・ ・ ・ ・ ・|二 b",
        "| 香 桂 ・ ・ ・ ・ ・ ・ 香|一 a",
        "+---------------------------+",
        "後手の持駒：金　銀　桂　歩五",
        "White is below, v marks Black; White (後手) to move",
    ]
    black = picture.board_text_from(board.setup, BLACK).splitlines()
    assert black[:-1] == [
        f"{line} {'abcdefghi'[row - 3]}" if 3 <= row < 12 else line
        for row, line in enumerate(board_text(board.setup).splitlines()[:-1])
    ]
    assert black[-1] == "Black is below, v marks White; White (後手) to move"


def test_numbers() -> None:
    assert [kanji_number(n) for n in (1, 9, 10, 11, 18)] == ["一", "九", "十", "十一", "十八"]


def _pieces(svg: str) -> list[ET.Element]:
    return ET.fromstring(svg).findall(f"{SVG}g")


def assert_stands_alone(svg: str) -> None:
    """It needs no font and fetches nothing: every character is an outline that the picture itself defines."""
    root = ET.fromstring(svg)
    defined = {path.get("id") for path in root.iter(f"{SVG}path") if path.get("id")}
    used = {use.get(HREF) for use in root.iter(f"{SVG}use")}
    assert used
    assert used <= {f"#{name}" for name in defined}
    assert not list(root.iter(f"{SVG}text"))
    assert "font" not in svg
    assert len(svg.encode()) < 60_000


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
    assert_stands_alone(svg)


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
    assert sorted(written(svg, "sign red")) == sorted("と杏圭全龍馬")
    assert written(svg, "count") == ["1", "7"]
    assert_stands_alone(svg)


def test_the_board_says_its_files_and_ranks_and_tells_the_kings_apart() -> None:
    svg = board_svg(Board().setup)
    assert "".join(written(svg, "at")) == "9一8二7三6四5五4六3七2八1九"
    assert sorted(set(written(svg, "sign"))) == sorted("歩香桂銀角飛金玉王")
    assert (written(svg, "sign").count("玉"), written(svg, "sign").count("王")) == (1, 1)


def test_every_character_of_a_picture_has_an_outline() -> None:
    outlines = picture.outlines()
    assert set(outlines) == {*KANJI.values(), "王", *KANJI_DIGITS[1:], *"0123456789"}
    assert len(set(outlines.values())) == len(outlines)
    for outline in outlines.values():
        assert re.fullmatch(r"(m-?\d+[ -]\d+|[hv]-?\d+|[lq]?[ -]?\d+([ -]\d+)+|[hv ]-?\d+|z)+", outline)
        start = re.match(r"m(-?\d+) ?(-?\d+)", outline)
        assert start is not None
        assert all(-500 <= int(number) <= 500 for number in start.groups()), (
            "around the centre of a square of 1000"
        )


def test_the_outlines_name_their_font_and_its_licence() -> None:
    folder = ROOT / "src/keisei/games/shogi"
    document = json.loads((folder / "characters.json").read_text(encoding="utf-8"))
    licence = (folder / "characters.OFL.txt").read_text(encoding="utf-8")
    assert "characters.OFL.txt" in document["licence"]
    assert document["copyright"] in licence
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence
    assert "src/keisei/games/shogi/characters.OFL.txt" in (ROOT / "pyproject.toml").read_text()
    assert document["font"].split(" Regular")[0] in (ROOT / "docs/games/shogi_api.md").read_text()
