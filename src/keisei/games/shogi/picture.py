"""Pictures of a position: one as text, which is also KIF's diagram, and one as SVG.

The SVG draws its characters as outlines, so it looks the same on machines without a Japanese font.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from string import digits

from keisei.games.shogi.moves import (
    BLACK,
    WHITE,
    Color,
    Move,
    Piece,
    PieceType,
    square_at,
    square_file,
    square_rank,
)
from keisei.games.shogi.sfen import Setup

KANJI = dict(zip(PieceType, "歩香桂銀角飛金玉と杏圭全馬龍", strict=True))
"""One character for each piece, as in KIF's diagrams."""

KANJI_DIGITS = "〇一二三四五六七八九"
WIDE_DIGITS = "０１２３４５６７８９"

_SIDE = {BLACK: "先手", WHITE: "後手"}


def kanji_number(number: int) -> str:
    """Writes 1 … 99 as 一 … 九十九."""
    tens, ones = divmod(number, 10)
    return (KANJI_DIGITS[tens] if tens > 1 else "") + "十" * (tens > 0) + (KANJI_DIGITS[ones] if ones else "")


def hand_text(setup: Setup, color: Color) -> str:
    """Writes a hand as ``飛 角二 歩十``, or ``なし`` if it is empty."""
    items = [
        KANJI[kind] + (kanji_number(count) if count > 1 else "") for kind, count in setup.hand(color).items()
    ]
    return "　".join(items) or "なし"


def diagram(setup: Setup, view: Color = BLACK) -> list[str]:
    """Draws the board with a frame and coordinates; ``v`` marks the pieces of the side at the top: white, or black in
    white's view."""
    frame = "+" + "---" * 9 + "+"
    files, ranks = (range(9, 0, -1), range(1, 10)) if view is BLACK else (range(1, 10), range(9, 0, -1))
    rows = (
        "".join(_cell(setup.board[square_at(file, rank)], view) for file in files) + f"|{KANJI_DIGITS[rank]}"
        for rank in ranks
    )
    head = " " + "".join(" " + WIDE_DIGITS[file] for file in files)
    return [head, frame, *(f"|{row}" for row in rows), frame]


def _cell(code: int, view: Color) -> str:
    if not code:
        return " ・"
    piece = Piece.from_native(code)
    return (" " if piece.color is view else "v") + KANJI[piece.type]


def board_text(setup: Setup) -> str:
    """Draws the whole position as text."""
    hands = {color: f"{_SIDE[color]}の持駒：{hand_text(setup, color)}" for color in Color}
    return "\n".join([hands[WHITE], *diagram(setup), hands[BLACK], f"{_SIDE[setup.turn]}番"])


def board_text_from(setup: Setup, view: Color) -> str:
    """Draws the whole position for a player. Their own side is at the bottom, ``v`` marks the opponent's pieces, and
    ranks also have the letters with which moves are written."""
    hands = {color: f"{_SIDE[color]}の持駒：{hand_text(setup, color)}" for color in Color}
    files, frame, *rows, _ = diagram(setup, view)
    ranks = range(1, 10) if view is BLACK else range(9, 0, -1)
    lettered = [f"{row} {'abcdefghi'[rank - 1]}" for row, rank in zip(rows, ranks, strict=True)]
    below, above = view.name.capitalize(), view.opponent.name.capitalize()
    sides = f"{below} is below, v marks {above}; {setup.turn.name.capitalize()} ({_SIDE[setup.turn]}) to move"
    return "\n".join([hands[view.opponent], files, frame, *lettered, frame, hands[view], sides])


# The SVG. Lengths are in pixels; the drawing scales.
CELL = 44
_STAND = 56  # height of the hand above and below
_BOARD = 9 * CELL
_LEFT, _RIGHT = 6, 24  # beside the board; the right side has coordinates
_TOP = _STAND + 30
_DIGIT_WIDTH = 0.5  # of its height
_WIDTH, _HEIGHT = _LEFT + _BOARD + _RIGHT, 2 * _TOP + _BOARD

STYLE = """\
.wood{fill:#eac27c}.frame{fill:none;stroke:#3c2a14;stroke-width:2}.line{stroke:#3c2a14;stroke-width:.8}
.stand{fill:#d3a55f;stroke:#8a6532}.last{fill:#f6e36a;opacity:.75}.from{fill:#f6e36a;opacity:.4}
.piece{fill:#fdeec9;stroke:#7a5a2c;stroke-width:1}.sign{fill:#1d1408}.red{fill:#b3261e}
.at{fill:#5b4526}.count{fill:#1d1408}.turn{fill:#b3261e}.off{fill:none;stroke:#8a6532}
"""


def board_svg(
    setup: Setup,
    last_move: Move | None = None,
    *,
    view: Color = BLACK,
    places: Iterable[str] = (),
    styled: bool = True,
) -> str:
    """Draws the position as a complete SVG: wooden board, rotated pieces, hands, and the last move marked. Hands are
    above and below, which leaves the squares large enough for a finger on a phone.

    ``view`` is the side at the bottom. ``places`` are further parts, drawn over the board in its coordinates. Without
    ``styled``, the page has to bring ``STYLE``.
    """
    turned = [f'<g transform="rotate(180 {_LEFT + _BOARD / 2:g} {_HEIGHT / 2:g})">'] if view is WHITE else []
    role = "img" if styled else "group"  # a group has places that can be chosen
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="{role}" aria-label="Shogi board">',
        *([f"<style>\n{STYLE}</style>"] if styled else []),
        *_definitions(setup),
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="8" fill="#f7f1e3"/>',
        *_coordinates(view),
        *turned,
        f'<rect class="wood" x="{_LEFT}" y="{_TOP}" width="{_BOARD}" height="{_BOARD}"/>',
        *_last_move(last_move),
        *_grid(),
        *_pieces(setup),
        *_stand(setup, BLACK),
        *_stand(setup, WHITE),
        *places,
        *("</g>" for _ in turned),
        "</svg>",
    ]
    return "\n".join(parts)


@cache
def outlines() -> dict[str, str]:
    """Gets the outlines of the characters, as paths in a square of 1000 units around its centre. They come from the
    font that the file names, under the licence beside it."""
    text = files(__package__).joinpath("characters.json").read_text(encoding="utf-8")
    outlines: dict[str, str] = json.loads(text)["outlines"]
    return outlines


def _definitions(setup: Setup) -> Iterator[str]:
    """Defines each character once."""
    pieces = [Piece.from_native(code) for code in setup.board if code]
    pieces += [Piece(color, kind) for color in Color for kind in setup.hand(color)]
    yield "<defs>"
    for character in sorted({*digits, *KANJI_DIGITS[1:], *map(sign_of, pieces)}):
        yield f'<path id="{_identity(character)}" d="{outlines()[character]}"/>'
    yield "</defs>"


def _identity(character: str) -> str:
    return f"shogi-{ord(character):x}"


def _written(text: str, style: str, size: int, x: float, y: float) -> str:
    """Writes defined characters around a point."""
    start = x - size * _DIGIT_WIDTH * (len(text) - 1) / 2
    return "".join(
        f'<use class="{style}" xlink:href="#{_identity(character)}" '
        f'transform="translate({start + size * _DIGIT_WIDTH * place:g} {y:g}) scale({size / 1000:g})"/>'
        for place, character in enumerate(text)
    )


def sign_of(piece: Piece) -> str:
    """Gets the character on a piece. The two kings differ."""
    return "王" if piece == Piece(WHITE, PieceType.KING) else KANJI[piece.type]


def square_corner(square: int) -> tuple[int, int]:
    """Computes the top left corner of a square."""
    return _LEFT + (9 - square_file(square)) * CELL, _TOP + (square_rank(square) - 1) * CELL


def _last_move(move: Move | None) -> Iterator[str]:
    if move is None:
        return
    for square, style in ((move.from_square, "from"), (move.to_square, "last")):
        if square is not None:
            x, y = square_corner(square)
            yield f'<rect class="{style}" x="{x}" y="{y}" width="{CELL}" height="{CELL}"/>'


def _grid() -> Iterator[str]:
    for step in range(1, 9):
        x, y = _LEFT + step * CELL, _TOP + step * CELL
        yield f'<path class="line" d="M{x} {_TOP}v{_BOARD}M{_LEFT} {y}h{_BOARD}"/>'
    for file, rank in ((3, 3), (3, 6), (6, 3), (6, 6)):
        yield f'<circle cx="{_LEFT + file * CELL}" cy="{_TOP + rank * CELL}" r="3" fill="#3c2a14"/>'
    yield f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{_BOARD}" height="{_BOARD}"/>'


def _coordinates(view: Color) -> Iterator[str]:
    for step in range(9):
        middle = step * CELL + CELL // 2
        file, rank = (9 - step, step + 1) if view is BLACK else (step + 1, 9 - step)
        yield _written(str(file), "at", 13, _LEFT + middle, _TOP - 13)
        yield _written(KANJI_DIGITS[rank], "at", 13, _LEFT + _BOARD + 14, _TOP + middle)


def _pieces(setup: Setup) -> Iterator[str]:
    for square, code in enumerate(setup.board):
        if code:
            x, y = square_corner(square)
            yield _piece(Piece.from_native(code), x + CELL // 2, y + CELL // 2)


def _piece(piece: Piece, x: int, y: int) -> str:
    """Draws a five-sided piece around a point. Promoted pieces are red, and white's are rotated."""
    turned = " rotate(180)" if piece.color is WHITE else ""
    red = " red" if piece.type.is_promoted else ""
    return (
        f'<g transform="translate({x} {y}){turned}"><path class="piece" d="M0-20 13-14 17 19H-17L-13-14Z"/>'
        f"{_written(sign_of(piece), f'sign{red}', 24, 0, 2)}</g>"
    )


def _stand(setup: Setup, color: Color) -> Iterator[str]:
    """Draws a hand: black's below, from the left; white's above, from the right."""
    top = _HEIGHT - _STAND + 2 if color is BLACK else 4
    yield f'<rect class="stand" x="{_LEFT}" y="{top}" width="{_BOARD}" height="{_STAND - 6}" rx="4"/>'
    style = "turn" if setup.turn is color else "off"
    x = _LEFT + _BOARD - 16 if color is BLACK else _LEFT + 16
    yield f'<circle class="{style}" cx="{x}" cy="{top + (_STAND - 6) // 2}" r="5"/>'
    for kind, count, x, middle in stand_spots(setup, color):
        yield _piece(Piece(color, kind), x, middle)
        if count > 1:
            yield _written(str(count), "count", 14, x + 25, middle)


def stand_spots(setup: Setup, color: Color) -> Iterator[tuple[PieceType, int, int, int]]:
    """Yields the pieces of a hand, their counts, and the x and y of the middle of each."""
    y = _HEIGHT - _STAND // 2 - 1 if color is BLACK else 1 + _STAND // 2
    for index, (kind, count) in enumerate(setup.hand(color).items()):
        x = _LEFT + 26 + index * 50 if color is BLACK else _LEFT + _BOARD - 36 - index * 50
        yield kind, count, x, y
