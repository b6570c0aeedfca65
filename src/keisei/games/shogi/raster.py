"""Pictures of positions as pixels, and games as GIFs. They look like ``board_svg``.

Everything is drawn four times as large and then reduced, which smooths the edges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from PIL import Image, ImageChops, ImageDraw

from keisei.games.shogi.moves import BLACK, WHITE, Color, Move, Piece, square_file, square_rank
from keisei.games.shogi.picture import KANJI_DIGITS, outlines, sign_of
from keisei.games.shogi.record import GameRecord
from keisei.games.shogi.sfen import Setup

__all__ = ["board_image", "game_gif"]

SMOOTH = 4
CELL, STAND, MARGIN = 44, 64, 30
BOARD = 9 * CELL
LEFT = STAND + MARGIN
WIDTH, HEIGHT = 2 * LEFT + BOARD, 2 * MARGIN + BOARD
PAPER, WOOD, STANDS = "#f7f1e3", "#eac27c", "#d3a55f"
LINE, EDGE, PIECE, PIECE_EDGE = "#3c2a14", "#8a6532", "#fdeec9", "#7a5a2c"
INK, RED, FAINT = "#1d1408", "#b3261e", "#5b4526"
MOVED_TO, MOVED_FROM = "#f3da6e", "#eecf75"
_PIECE_SHAPE = ((0, -20), (13, -14), (17, 19), (-17, 19), (-13, -14))
_PIECE_SIZE = 46
_CURVE = [step / 6 for step in range(1, 7)]
"""Where along a curve its corners are."""


def board_image(setup: Setup, last_move: Move | None = None) -> Image.Image:
    """Draws a position, with the last move marked."""
    image = _empty_board().copy()
    draw = ImageDraw.Draw(image)
    for square, colour in _marked(last_move):
        x, y = _corner(square)
        draw.rectangle((x + 1, y + 1, x + CELL - 1, y + CELL - 1), fill=colour)
    for square, code in enumerate(setup.board):
        if code:
            x, y = _corner(square)
            _put(image, Piece.from_native(code), x + CELL // 2, y + CELL // 2)
    for color in Color:
        _draw_hand(image, setup, color)
    return image


def game_gif(record: GameRecord, path: Path, seconds: float = 0.7) -> int:
    """Writes a game as a GIF that repeats, and returns the number of its frames. The last position stays longer."""
    frames = [board_image(board.setup, board.peek()) for board in record.boards()]
    times = [round(1000 * seconds)] * (len(frames) - 1) + [max(3000, round(1000 * seconds))]
    palette = frames[-1].quantize(64)
    reduced = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    reduced[0].save(path, save_all=True, append_images=reduced[1:], duration=times, loop=0)
    return len(frames)


def _marked(move: Move | None) -> Iterator[tuple[int, str]]:
    if move is not None:
        yield move.to_square, MOVED_TO
        if move.from_square is not None:
            yield move.from_square, MOVED_FROM


def _corner(square: int) -> tuple[int, int]:
    return LEFT + (9 - square_file(square)) * CELL, MARGIN + (square_rank(square) - 1) * CELL


@cache
def _empty_board() -> Image.Image:
    image = Image.new("RGB", (WIDTH * SMOOTH, HEIGHT * SMOOTH), PAPER)
    draw = ImageDraw.Draw(image)
    draw.rectangle(_large(LEFT, MARGIN, LEFT + BOARD, MARGIN + BOARD), fill=WOOD)
    for step in range(10):
        x, y, width = LEFT + step * CELL, MARGIN + step * CELL, 3 if step % 9 else 8
        draw.line(_large(x, MARGIN, x, MARGIN + BOARD), fill=LINE, width=width)
        draw.line(_large(LEFT, y, LEFT + BOARD, y), fill=LINE, width=width)
    for file, rank in ((3, 3), (3, 6), (6, 3), (6, 6)):
        x, y = LEFT + file * CELL, MARGIN + rank * CELL
        draw.ellipse(_large(x - 3, y - 3, x + 3, y + 3), fill=LINE)
    for color in Color:
        x = _stand(color)
        draw.rounded_rectangle(
            _large(x, MARGIN, x + STAND - 8, MARGIN + BOARD), 16, fill=STANDS, outline=EDGE, width=4
        )
    small = image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    for step in range(9):
        middle = step * CELL + CELL // 2
        _write(small, str(9 - step), 13, LEFT + middle, MARGIN - 13, FAINT)
        _write(small, KANJI_DIGITS[step + 1], 13, LEFT + BOARD + 14, MARGIN + middle, FAINT)
    return small


def _large(*places: float) -> tuple[float, ...]:
    return tuple(SMOOTH * place for place in places)


def _stand(color: Color) -> int:
    return WIDTH - STAND + 2 if color is BLACK else 6


def _draw_hand(image: Image.Image, setup: Setup, color: Color) -> None:
    """Draws a hand: black's on the right, from the bottom up; white's on the left, from the top down."""
    x = _stand(color)
    y = MARGIN - 12 if color is WHITE else MARGIN + BOARD + 14
    if setup.turn is color:
        ImageDraw.Draw(image).ellipse((x + 23, y - 5, x + 33, y + 5), fill=RED)
    for index, (kind, count) in enumerate(setup.hand(color).items()):
        offset = 28 + index * 50
        y = MARGIN + offset if color is WHITE else MARGIN + BOARD - offset
        _put(image, Piece(color, kind), x + 21, y)
        if count > 1:
            _write(image, str(count), 14, x + 46, y, INK)


def _put(image: Image.Image, piece: Piece, x: int, y: int) -> None:
    drawn = _piece_image(piece)
    image.paste(drawn, (x - _PIECE_SIZE // 2, y - _PIECE_SIZE // 2), drawn)


@cache
def _piece_image(piece: Piece) -> Image.Image:
    """Draws a five-sided piece. Promoted pieces are red, and white's are rotated."""
    size = _PIECE_SIZE * SMOOTH
    image = Image.new("RGBA", (size, size))
    shape = [(size / 2 + SMOOTH * x, size / 2 + SMOOTH * y) for x, y in _PIECE_SHAPE]
    ImageDraw.Draw(image).polygon(shape, fill=PIECE, outline=PIECE_EDGE, width=SMOOTH)
    colour = RED if piece.type.is_promoted else INK
    image.paste(colour, mask=_mask(sign_of(piece), size, 24 * SMOOTH, size / 2, size / 2 + 2 * SMOOTH))
    if piece.color is WHITE:
        image = image.rotate(180)
    return image.resize((_PIECE_SIZE, _PIECE_SIZE), Image.Resampling.LANCZOS)


def _write(image: Image.Image, text: str, size: int, x: int, y: int, colour: str) -> None:
    """Writes characters around a point."""
    image.paste(colour, (x - 2 * size, y - 2 * size), _text_mask(text, size))


@cache
def _text_mask(text: str, size: int) -> Image.Image:
    """Draws characters in the middle of a square of four times their size."""
    side = 4 * size * SMOOTH
    start = side / 2 - SMOOTH * size * (len(text) - 1) / 4
    mask = Image.new("L", (side, side))
    for place, character in enumerate(text):
        middle = start + place * SMOOTH * size / 2
        mask = ImageChops.lighter(mask, _mask(character, side, size * SMOOTH, middle, side / 2))
    return mask.resize((4 * size, 4 * size), Image.Resampling.LANCZOS)


def _mask(character: str, side: int, size: float, x: float, y: float) -> Image.Image:
    """Draws a character of this size around a point. What lies within two outlines is a hole."""
    mask = Image.new("1", (side, side))
    for contour in _contours(character):
        part = Image.new("1", (side, side))
        corners = [(x + point.real * size / 1000, y + point.imag * size / 1000) for point in contour]
        ImageDraw.Draw(part).polygon(corners, fill=1)
        mask = ImageChops.logical_xor(mask, part)
    return mask.convert("L")


@cache
def _contours(character: str) -> list[list[complex]]:
    """Turns the outlines of a character into polygons. Its paths have the commands m, l, h, v, q and z, all
    relative."""
    contours: list[list[complex]] = []
    at = 0j
    for command, text in re.findall(r"([a-z])([^a-z]*)", outlines()[character]):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", text)]
        size = {"h": 1, "v": 1, "q": 4}.get(command, 2)
        for start in range(0, len(numbers), size):
            part = numbers[start : start + size]
            if command == "q":
                control, end = complex(*part[:2]), complex(*part[2:])
                contours[-1] += [at + 2 * t * (1 - t) * control + t * t * end for t in _CURVE]
                at += end
                continue
            at += complex(0, part[0]) if command == "v" else complex(*part)
            if command == "m" and start == 0:
                contours.append([])
            contours[-1].append(at)
        if command == "z":
            at = contours[-1][0]
    return contours
