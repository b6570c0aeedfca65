"""Pictures of Shogi as pixels, and ``keisei picture``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.games.shogi import Board, GameRecord, Move, csa
from keisei.games.shogi.picture import outlines
from keisei.games.shogi.raster import CELL, LEFT, MARGIN, _contours, board_image, game_gif

DATA = Path(__file__).parents[2] / "data" / "shogi"


def cell(image: Image.Image, file: int, rank: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    x, y = LEFT + (9 - file) * CELL, MARGIN + (rank - 1) * CELL
    return np.asarray(image.convert("RGB"))[y + 3 : y + CELL - 3, x + 3 : x + CELL - 3]


def test_pieces_stand_on_their_squares() -> None:
    image = board_image(Board().setup)
    empty = cell(image, 5, 5)
    assert (empty == empty[0, 0]).all()
    assert not (cell(image, 7, 7) == empty).all()
    assert (cell(image, 8, 7) == cell(image, 2, 7)).all()


def test_white_pieces_are_turned_round() -> None:
    image = board_image(Board().setup)
    black, white = cell(image, 7, 7).astype(int), cell(image, 7, 3).astype(int)
    assert np.abs(np.rot90(black, 2) - white).mean() < np.abs(black - white).mean()


def test_the_last_move_is_marked() -> None:
    board = Board()
    board.push_usi("7g7f")
    plain, marked = board_image(board.setup), board_image(board.setup, Move.from_usi("7g7f"))
    changed = [
        (file, rank)
        for file in range(1, 10)
        for rank in range(1, 10)
        if not (cell(plain, file, rank) == cell(marked, file, rank)).all()
    ]
    assert changed == [(7, 6), (7, 7)]


def test_promoted_pieces_are_red_and_hands_are_shown() -> None:
    board = Board("4k4/9/9/9/4+P4/9/9/9/4K4 b 2P 1")
    image = board_image(board.setup)
    red = cell(image, 5, 5).astype(int)
    assert ((red[:, :, 0] - red[:, :, 1]) > 100).any()
    king = cell(image, 5, 9).astype(int)
    assert not ((king[:, :, 0] - king[:, :, 1]) > 100).any()
    bare = np.asarray(board_image(Board("4k4/9/9/9/4+P4/9/9/9/4K4 b - 1").setup)).astype(int)
    side = np.abs(np.asarray(image).astype(int) - bare).sum(axis=(0, 2))
    assert side[: LEFT + 9 * CELL].sum() == 0
    assert side.sum() > 0


def test_every_outline_is_read_to_its_end() -> None:
    """Each path comes back to where it began, and stays within its square."""
    for character in outlines():
        for contour in _contours(character):
            assert len(contour) > 2
            assert all(abs(point.real) < 700 and abs(point.imag) < 700 for point in contour), character


def test_a_gif_has_a_frame_for_each_position(tmp_path: Path) -> None:
    record = csa.load(DATA / "game.csa")
    assert game_gif(record, tmp_path / "game.gif", 0.1) == len(record.moves) + 1
    with Image.open(tmp_path / "game.gif") as image:
        assert image.n_frames == len(record.moves) + 1  # type: ignore[attr-defined]
        assert image.info["loop"] == 0
        image.seek(len(record.moves))
        last = image.convert("RGB")
    board = record.board()
    wanted = np.asarray(board_image(board.setup, board.peek())).astype(int)
    assert np.abs(np.asarray(last).astype(int) - wanted).mean() < 4


def run_picture(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["picture", *arguments])


@pytest.mark.parametrize(
    ("name", "start", "shown"),
    [
        ("game.gif", b"GIF89a", "3 positions"),
        ("board.png", b"\x89PNG", "the position after 2 moves"),
        ("board.svg", b"<svg", "the position after 2 moves"),
    ],
)
def test_a_person_draws_a_record(tmp_path: Path, name: str, start: bytes, shown: str) -> None:
    result = run_picture(str(DATA / "game.csa"), "--out", str(tmp_path / name), "--ply=2")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"Picture: {tmp_path / name}, {shown}\n"
    assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out=x.bmp"], "this picture is NAME.gif or NAME.png or NAME.svg"),
        (["--out=nowhere/x.gif"], "there is no folder"),
        (["--out=x.gif", "--turns=3"], "--turns 3 is for a run"),
        (["--out=x.gif", "--ply=9999"], "--ply 9999: the game has"),
        (["--out=x.gif", "--number=2"], "has 1 games"),
    ],
)
def test_what_cannot_be_drawn(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_picture(str(DATA / "game.csa"), *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_first_moves_of_a_record() -> None:
    record = csa.load(DATA / "game.csa")
    first = record.until(3)
    assert isinstance(first, GameRecord)
    assert (first.moves, first.names, first.outcome) == (record.moves[:3], record.names, None)
