"""What a row of Shogi shows and how it is packed, against an obvious reading of ``Board``."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from keisei import make_game
from keisei.errors import GameError, InvalidPositionError
from keisei.games.shogi import (
    BLACK,
    SQUARES,
    STARTING_SFEN,
    WHITE,
    Board,
    Color,
    Move,
    PieceType,
    parse_square,
    square_at,
    square_file,
    square_rank,
)
from keisei.native import core

HAND_KINDS = [PieceType(code) for code in range(1, 8)]
OWN_ATTACKS, ENEMY_ATTACKS = slice(28, 31), slice(31, 34)
IN_CHECK, SEEN_ONCE, SEEN_TWICE, PROGRESS, WHITE_TO_MOVE, ONES = range(48, 54)
PAGE = Path(__file__).parents[3] / "docs" / "games" / "shogi.md"

# The start, two crowded middle games, one with a great many pieces in hand, and a bare board.
STARTS = [
    STARTING_SFEN,
    "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
    "+L+PsG2k1s/2+Nn2lg1/P5+Ppp/2l1g2N1/+R3+b2sL/4P3G/3P1+ppPP/pp+n1pP1K1/4+p1S2 b 2Prb 1",
    "R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1",
    "kr7/9/9/9/9/9/9/9/7RK b - 1",
]


# How black's pieces move, as (files, ranks): black plays towards rank 1. Some step, some run until they meet
# a piece, horses and dragons do both.
STRAIGHT = [(0, -1), (0, 1), (-1, 0), (1, 0)]
DIAGONAL = [(-1, -1), (1, -1), (-1, 1), (1, 1)]
LIKE_GOLD = [*STRAIGHT, (-1, -1), (1, -1)]
STEPS = {
    PieceType.PAWN: [(0, -1)],
    PieceType.KNIGHT: [(-1, -2), (1, -2)],
    PieceType.SILVER: [*DIAGONAL, (0, -1)],
    PieceType.GOLD: LIKE_GOLD,
    PieceType.KING: STRAIGHT + DIAGONAL,
    PieceType.PRO_PAWN: LIKE_GOLD,
    PieceType.PRO_LANCE: LIKE_GOLD,
    PieceType.PRO_KNIGHT: LIKE_GOLD,
    PieceType.PRO_SILVER: LIKE_GOLD,
    PieceType.HORSE: STRAIGHT,
    PieceType.DRAGON: DIAGONAL,
}
RUNS = {
    PieceType.LANCE: [(0, -1)],
    PieceType.BISHOP: DIAGONAL,
    PieceType.ROOK: STRAIGHT,
    PieceType.HORSE: DIAGONAL,
    PieceType.DRAGON: STRAIGHT,
}


def attacked_from(board: Board, square: int) -> Iterator[int]:
    """The squares that the piece on a square attacks, those of its own side included."""
    piece = board.piece_at(square)
    assert piece is not None
    up = 1 if piece.color is BLACK else -1
    for moves, reach in ((STEPS, 1), (RUNS, 8)):
        for files, ranks in moves.get(piece.type, []):
            for distance in range(1, reach + 1):
                file = square_file(square) + up * files * distance
                rank = square_rank(square) + up * ranks * distance
                if not (1 <= file <= 9 and 1 <= rank <= 9):
                    break
                yield square_at(file, rank)
                if board.piece_at(square_at(file, rank)) is not None:
                    break


def place(square: int, viewer: Color) -> tuple[int, int]:
    """Where a plane shows a square: white sees the board turned half round."""
    file, rank = square_file(square) - 1, square_rank(square) - 1
    return (file, rank) if viewer is BLACK else (8 - file, 8 - rank)


def planes_of(board: Board, seen: int, ply: int, max_plies: int) -> NDArray[np.uint8]:
    """The 54 planes as docs/games/shogi.md tells them, one fact at a time."""
    planes = np.zeros((54, 9, 9), np.uint8)
    me, enemy = board.turn, board.turn.opponent
    attackers: dict[Color, Counter[int]] = {BLACK: Counter(), WHITE: Counter()}
    for square in SQUARES:
        piece = board.piece_at(square)
        if piece is not None:
            first = 0 if piece.color is me else 14
            planes[first + piece.type - 1, *place(square, me)] = 1
            attackers[piece.color].update(attacked_from(board, square))
    for first, side in ((28, me), (31, enemy)):
        for square, count in attackers[side].items():
            planes[first : first + min(count, 3), *place(square, me)] = 1
    for index, kind in enumerate(HAND_KINDS):
        planes[34 + index] = board.hand(me).get(kind, 0)
        planes[41 + index] = board.hand(enemy).get(kind, 0)
    planes[IN_CHECK] = board.is_check()
    planes[SEEN_ONCE] = seen >= 1
    planes[SEEN_TWICE] = seen >= 2
    planes[PROGRESS] = 255 * ply // max_plies
    planes[WHITE_TO_MOVE] = me is WHITE
    planes[ONES] = 1
    return planes


def legal_of(board: Board) -> NDArray[np.bool_]:
    mask = np.zeros(2187, np.bool_)
    mask[[board.action(move) for move in board.legal_moves]] = True
    return mask


class Follower:
    """A ``Board`` that goes along with one game of a batch and counts positions the slow way."""

    def __init__(self, start: str) -> None:
        self.start = start
        self.restart()

    def restart(self) -> None:
        self.board = Board(self.start)
        self.seen: Counter[str] = Counter([self._position()])

    def play(self, action: int) -> None:
        self.board.push(self.board.move_from_action(action))
        self.seen[self._position()] += 1

    def _position(self) -> str:
        return self.board.sfen().rsplit(" ", 1)[0]  # all but the move number

    @property
    def repetitions(self) -> int:
        return self.seen[self._position()] - 1

    @property
    def ply(self) -> int:
        return sum(self.seen.values()) - 1


@pytest.mark.parametrize("start", STARTS)
def test_planes_and_masks_are_an_obvious_reading_of_the_board(start: str) -> None:
    game = make_game("shogi", batch=4, seed=3, start=start, max_plies=90)
    followers = [Follower(start) for _ in range(4)]
    colours: set[Color] = set()
    for _ in range(120):
        observed, legal, actions = game.observe(), game.legal(), game.random_actions()
        for row, follower in enumerate(followers):
            board = follower.board
            expected = planes_of(board, follower.repetitions, follower.ply, 90)
            wrong = np.flatnonzero((observed[row] != expected).any(axis=(1, 2)))
            assert not wrong.size, f"planes {wrong} of {board.sfen()!r}"
            np.testing.assert_array_equal(legal[row], legal_of(board))
            colours.add(board.turn)
            follower.play(int(actions[row]))
        done = game.step(actions).done
        for row in np.flatnonzero(done).tolist():
            followers[row].restart()
    assert colours == {BLACK, WHITE}


def test_random_play_fills_every_plane_for_both_colours() -> None:
    """Or the test above would show little."""
    filled = np.zeros((2, 54), np.bool_)
    for start in STARTS:
        game = make_game("shogi", batch=4, seed=3, start=start, max_plies=90)
        for _ in range(120):
            np.logical_or.at(filled, game.rows().seat, game.observe().any(axis=(2, 3)))
            game.step(game.random_actions())
    rare = {SEEN_ONCE, SEEN_TWICE}  # see the next test
    missing = {(seat, plane) for seat, plane in np.argwhere(~filled) if plane not in rare}
    assert missing == {(0, WHITE_TO_MOVE)}


def test_just_the_flat_planes_have_one_value_on_all_squares() -> None:
    uneven = np.zeros(54, np.bool_)
    for start in STARTS:
        game = make_game("shogi", batch=4, seed=3, start=start, max_plies=90)
        for _ in range(120):
            squares = game.observe().reshape(4, 54, 81)
            uneven |= (squares != squares[:, :, :1]).any(axis=(0, 2))
            game.step(game.random_actions())
    flat = game.spec.observation.flat
    assert tuple(np.flatnonzero(~uneven)) == flat == tuple(range(34, 54))


@pytest.mark.parametrize(
    ("sfen", "square", "own", "enemy"),
    [
        ("4k4/9/9/9/9/4p4/4P4/4R4/4K4 b - 1", "5g", 1, 1),  # the rook protects the pawn
        ("4k4/9/9/9/9/4p4/4P4/4R4/4K4 b - 1", "5f", 1, 0),  # the rook sees as far as its own pawn
        ("4k4/9/9/9/9/4p4/4P4/4R4/4K4 w - 1", "5g", 1, 1),
        ("4k4/9/9/9/9/4p4/4P4/4R4/4K4 w - 1", "5f", 0, 1),
        ("4k4/9/4r4/9/9/9/9/4G4/4K4 b - 1", "4g", 1, 0),  # a pinned gold attacks all the same
        ("4k4/9/4r4/9/9/9/9/4G4/4K4 b - 1", "5h", 1, 1),
        ("4k4/9/4r4/9/9/9/9/4G4/4K4 b - 1", "5i", 1, 0),  # and hides its king from the rook
        ("4k4/9/9/9/9/9/9/3SG4/3KL4 b - 1", "5g", 2, 0),  # the lance stands behind the gold
        ("8k/9/9/9/9/3SPG3/9/9/K8 b - 1", "5e", 3, 0),
        ("8k/9/9/9/9/3SPG3/5N3/9/K8 b - 1", "5e", 4, 0),  # more than three look like three
    ],
)
def test_the_planes_of_attacks(sfen: str, square: str, own: int, enemy: int) -> None:
    shown = make_game("shogi", start=sfen).observe()[0][:, *place(parse_square(square), Board(sfen).turn)]
    assert shown[OWN_ATTACKS].tolist() == [own >= 1, own >= 2, own >= 3]
    assert shown[ENEMY_ATTACKS].tolist() == [enemy >= 1, enemy >= 2, enemy >= 3]


def test_the_planes_of_repetition() -> None:
    game = make_game("shogi")
    board = Board()
    shown = []
    for text in 2 * ["2h1h", "8b9b", "1h2h", "9b8b"] + ["2h1h", "8b9b", "1h2h"]:
        planes = game.observe()[0]
        shown.append((planes[SEEN_ONCE].max(), planes[SEEN_TWICE].min()))
        game.step(np.array([board.action(Move.from_usi(text))]))
        board.push_usi(text)
    assert shown == 4 * [(0, 0)] + 4 * [(1, 0)] + 3 * [(1, 1)]


def test_progress_runs_from_0_to_255() -> None:
    game = make_game("shogi", batch=3, max_plies=40)
    for ply in range(40):
        assert (game.observe()[:, PROGRESS] == 255 * ply // 40).all()
        step = game.step(game.random_actions())
    assert step.truncated.all()
    final, _ = game.unpack(step.final.packed)
    assert (final[:, PROGRESS] == 255).all()


def test_a_position_and_its_mirror_image_look_the_same_to_their_movers() -> None:
    """Only the plane that tells the colour differs."""
    black = make_game("shogi", start="4k4/9/3+P5/9/2n6/9/1P5l1/9/4K3R b BG2p 1")
    white = make_game("shogi", start="r3k4/9/1L5p1/9/6N2/9/5+p3/9/4K4 w 2Pbg 1")
    mine, yours = black.observe()[0], white.observe()[0]
    assert mine[WHITE_TO_MOVE].max() == 0
    assert yours[WHITE_TO_MOVE].min() == 1
    np.testing.assert_array_equal(np.delete(mine, WHITE_TO_MOVE, 0), np.delete(yours, WHITE_TO_MOVE, 0))
    np.testing.assert_array_equal(black.legal(), white.legal())


def test_the_page_lists_every_plane_with_its_scale() -> None:
    scale = make_game("shogi").spec.observation.scale
    section = PAGE.read_text(encoding="utf-8").partition("## Observation")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| [^|]+ \| ([^|]+) \|$", section, flags=re.MULTILINE)
    assert [int(index) for index, _ in rows] == list(range(54))
    for (index, text), factor in zip(rows, scale, strict=True):
        above, _, below = text.strip().partition("/")
        assert float(above) / float(below or 1) == pytest.approx(factor), f"plane {index}"


# Packing.


def fields_of(packed: bytes) -> tuple[list[int], list[int], int, int, int]:
    """Board, hands, turn, repetitions and ply of a packed row, read as the page tells its 64 bytes."""
    words = [int.from_bytes(packed[at : at + 8], "little") for at in range(0, 64, 8)]
    sets = [
        words[0] | (words[5] & 0x3FFFF) << 63,
        words[1] | (words[5] >> 18 & 0x3FFFF) << 63,
        words[2] | (words[5] >> 36 & 0x3FFFF) << 63,
        words[3] | (words[6] & 0x3FFFF) << 63,
        words[4] | (words[6] >> 18 & 0x3FFFF) << 63,
    ]
    board = [sum((sets[bit] >> square & 1) << bit for bit in range(5)) for square in SQUARES]
    hands, rest = [], words[7]
    for width in 2 * [5, 3, 3, 3, 2, 2, 3]:
        hands.append(rest & (1 << width) - 1)
        rest >>= width
    return board, hands, rest & 1, rest >> 1 & 3, rest >> 3


@pytest.mark.parametrize("start", STARTS)
def test_the_packed_form_field_by_field(start: str) -> None:
    follower = Follower(start)
    game = make_game("shogi", seed=1, start=start)
    for _ in range(60):
        setup = follower.board.setup
        found = fields_of(game.pack()[0].tobytes())
        expected = (
            list(setup.board),
            list(setup.hands),
            int(setup.turn),
            follower.repetitions,
            follower.ply,
        )
        assert found == expected
        action = game.random_actions()
        follower.play(int(action[0]))
        if game.step(action).done[0]:
            follower.restart()


@pytest.mark.parametrize("start", STARTS)
def test_unpacking_is_exact_over_thousands_of_positions(start: str) -> None:
    game = make_game("shogi", batch=40, seed=8, start=start, max_plies=100)
    kept = []
    for _ in range(40):
        kept.append((game.pack(), game.observe(), game.legal()))
        game.step(game.random_actions())
    packed, observed, legal = (np.concatenate(arrays) for arrays in zip(*kept, strict=True))
    order = np.random.default_rng(0).permutation(len(packed))  # a replay buffer's order is not the game's
    planes, masks = game.unpack(packed[order])
    np.testing.assert_array_equal(planes, observed[order])
    np.testing.assert_array_equal(masks, legal[order])


def test_unpacking_nothing_gives_nothing() -> None:
    planes, masks = make_game("shogi").unpack(np.empty((0, 64), np.uint8))
    assert planes.shape == (0, 54, 9, 9)
    assert masks.shape == (0, 2187)


@pytest.mark.parametrize(
    "packed",
    [
        np.zeros(64, np.uint8),
        np.zeros((1, 63), np.uint8),
        np.zeros((1, 64), np.int8),
        np.zeros((1, 1, 64), np.uint8),
        [[0] * 64],
    ],
)
def test_arrays_that_hold_no_packed_rows(packed: NDArray[np.uint8]) -> None:
    with pytest.raises(GameError, match=r"unpack takes uint8 of shape \(rows, 64\), got .* of shape"):
        make_game("shogi").unpack(packed)


def test_unpack_writes_only_into_memory_that_fits() -> None:
    game = make_game("shogi", batch=2)
    with pytest.raises(GameError, match=r"unpack writes contiguous uint8 of shape \(2, 54, 9, 9\)"):
        game.unpack(game.pack(), observations=np.empty((2, 54, 81), np.uint8))
    with pytest.raises(GameError, match=r"unpack writes contiguous bool of shape \(2, 2187\)"):
        game.unpack(game.pack(), legal=np.empty((2187, 2), np.bool_).T)


def expand(packed: bytes) -> str | None:
    """Unpack one row between two good ones; gives the error, or None where the row is a position."""
    game = make_game("shogi")
    good = Board().pack()
    rows = np.frombuffer(good + packed + good, np.uint8).reshape(3, 64)
    try:
        planes, _ = game.unpack(rows)
    except GameError as error:
        return str(error)
    assert (planes[:, ONES] == 1).all()
    return None


def assert_refused_or_a_position(packed: bytes) -> bool:
    """What unpacking accepts is a position whose packed form is these very bytes."""
    error = expand(packed)
    if error is not None:
        assert error == "row 1 of the packed rows is not a possible Shogi position; it was damaged"
        with pytest.raises(core.PositionError):
            core.PlayedPosition(packed)
        with pytest.raises(InvalidPositionError, match="these bytes are not a packed position"):
            Board.from_packed(packed)
        return False
    again = Board.from_packed(packed).pack()
    assert fields_of(again)[:3] == fields_of(packed)[:3]
    assert fields_of(again)[4] == fields_of(packed)[4]
    return True


@given(st.binary(min_size=64, max_size=64))
def test_random_bytes_are_no_position(packed: bytes) -> None:
    assert_refused_or_a_position(packed)


@settings(max_examples=300)
@given(st.sampled_from(STARTS), st.sets(st.integers(0, 511), min_size=1, max_size=6))
def test_flipped_bits_are_refused_or_make_another_position(start: str, bits: set[int]) -> None:
    number = int.from_bytes(Board(start).pack(), "little")
    for bit in bits:
        number ^= 1 << bit
    assert_refused_or_a_position(number.to_bytes(64, "little"))


def test_most_single_flips_are_noticed() -> None:
    """The packed form has no checksum, but it cannot hold most of what the rules exclude."""
    rng = random.Random(0)
    number = int.from_bytes(Board().pack(), "little")
    flipped = [(number ^ 1 << bit).to_bytes(64, "little") for bit in rng.sample(range(512), 200)]
    accepted = [packed for packed in flipped if assert_refused_or_a_position(packed)]
    # What may pass: a piece that changes its owner or its kind, an emptied square, turn, repetition, ply.
    assert accepted
    assert len(accepted) < 100


@pytest.mark.parametrize("size", [0, 1, 63, 65])
def test_a_packed_position_has_64_bytes(size: int) -> None:
    with pytest.raises(ValueError, match=f"a packed position has {size} bytes, not 64"):
        core.PlayedPosition(bytes(size))
