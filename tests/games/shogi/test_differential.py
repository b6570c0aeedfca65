"""The native core against cshogi, an independent engine (GPL, used in tests alone)."""

from __future__ import annotations

import random

import cshogi
import numpy as np
import pytest
from cshogi.dlshogi import FEATURES1_NUM, FEATURES2_NUM, make_input_features, make_move_label

from keisei.errors import InvalidPositionError
from keisei.games.shogi import Board
from keisei.games.shogi.moves import PIECES_IN_SET, PieceType
from keisei.games.shogi.sfen import Setup, native_position, write_sfen
from keisei.native import BUILDS, core, load_core, usable_builds


def assert_same_moves(position: core.PlayedPosition, other: cshogi.Board) -> None:
    assert sorted(position.legal_moves()) == sorted(cshogi.move16(move) for move in other.legal_moves)
    assert position.is_check() == other.is_check()


def random_setup(rng: random.Random) -> Setup:
    """Kings anywhere, and each other piece on the board (often promoted), in a hand, or in the box."""
    board = bytearray(81)
    hands = bytearray(14)
    empty = list(range(81))
    rng.shuffle(empty)
    board[empty.pop()] = PieceType.KING
    board[empty.pop()] = PieceType.KING + 16
    on_board, in_hand = rng.choice([(0.1, 0.8), (0.4, 0.5), (0.8, 0.1), (0.3, 0.1)])
    promotion = rng.choice([0.4, 0.95])
    for kind, count in PIECES_IN_SET.items():
        if kind == PieceType.KING:
            continue
        for _ in range(count):
            lot, white = rng.random(), rng.random() < 0.5
            if lot < on_board:
                promoted = 8 if kind != PieceType.GOLD and rng.random() < promotion else 0
                board[empty.pop()] = kind + promoted + 16 * white
            elif lot < on_board + in_hand:
                hands[7 * white + kind - 1] += 1
    return Setup(bytes(board), bytes(hands), rng.choice([0, 1]), 0)  # type: ignore[arg-type]


def test_moves_of_random_games() -> None:
    rng = random.Random(1)
    positions = 0
    while positions < 6000:
        board, other = Board(), cshogi.Board()
        native = native_position(board.setup)
        while native.legal_moves() and native.ply < 300:
            assert_same_moves(native, other)
            move = rng.choice(native.legal_moves())
            native.push(move)
            other.push(other.move_from_move16(move))
            positions += 1
        # Taking everything back leads home: pop is the exact inverse of push.
        while native.history():
            native.pop()
        assert native.pack() == board.pack()
        assert native.key == board.key


def test_moves_of_composed_positions() -> None:
    rng = random.Random(2)
    checked = in_check = hand_heavy = promoted = 0
    while checked < 4000:
        setup = random_setup(rng)
        try:
            native = native_position(setup)
        except InvalidPositionError:
            continue
        other = cshogi.Board(write_sfen(setup))
        assert_same_moves(native, other)
        checked += 1
        in_check += native.is_check()
        hand_heavy += sum(setup.hands) >= 20
        promoted += sum(code % 16 > 8 for code in setup.board) >= 10
        for move in rng.sample(native.legal_moves(), min(3, len(native.legal_moves()))):
            native.push(move)
            other.push(other.move_from_move16(move))
            assert_same_moves(native, other)
            native.pop()
            other.pop()
    # The draw of positions must reach the hard cases, or this test shows little.
    assert in_check > 300
    assert hand_heavy > 300
    assert promoted > 300


def test_action_labels_are_those_of_dlshogi() -> None:
    rng = random.Random(3)
    seen: set[int] = set()
    for _ in range(3000):
        try:
            native = native_position(random_setup(rng))
        except InvalidPositionError:
            continue
        labels = [native.action_of(move) for move in native.legal_moves()]
        assert labels == [make_move_label(move, native.turn) for move in native.legal_moves()]
        assert len(set(labels)) == len(labels)
        assert [native.move_of(label) for label in labels] == native.legal_moves()
        seen.update(label // 81 for label in labels)
    assert seen == set(range(27))


def test_planes_of_pieces_and_attacks_are_those_of_dlshogi() -> None:
    """It has 31 planes for each side: 14 of pieces, 14 of attacks by kind, which we leave out, 3 of attacks."""
    rng = random.Random(4)
    own_then_enemy = np.r_[0:14, 28:31, 14:28, 31:34]
    planes = np.empty((1, 54, 9, 9), np.uint8)
    features = [np.empty((count, 9, 9), np.float32) for count in (FEATURES1_NUM, FEATURES2_NUM)]
    compared = crowded = 0
    while compared < 2000:
        setup = random_setup(rng)
        try:
            native = native_position(setup)
        except InvalidPositionError:
            continue
        core.expand(np.frombuffer(native.pack(), np.uint8), 512, planes, None)
        make_input_features(cshogi.Board(write_sfen(setup)), *features)
        expected = features[0][np.r_[0:14, 28:31, 31:45, 59:62]]
        np.testing.assert_array_equal(planes[0, own_then_enemy], expected, write_sfen(setup))
        compared += 1
        crowded += planes[0, 30].any() and planes[0, 33].any()
    assert crowded > 300  # where three pieces of either side attack one square


@pytest.mark.parametrize("build", BUILDS)
def test_every_build_of_the_core_plays_the_same_games(build: str) -> None:
    if build not in usable_builds():
        pytest.skip("this processor lacks its instructions")
    other = load_core(build)
    ours, theirs = (_play_batch(module) for module in (core, other))
    for mine, its in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, its)


def _play_batch(module: object) -> tuple[np.ndarray, ...]:
    rewards_of = (1, -1, 0, 0.001, 0.3, 0.99, False)
    batch = module.Batch(8, 5, 0, Board().pack(), 256, True, False, *rewards_of)  # type: ignore[attr-defined]
    planes, masks = np.empty((150, 8, 54, 9, 9), np.uint8), np.empty((150, 8, 2187), np.bool_)
    packed, rewards = np.empty((150, 8, 64), np.uint8), np.empty((150, 8, 2), np.float32)
    actions = np.empty(8, np.int32)
    ints, flags = [np.empty(8, np.int32) for _ in range(3)], [np.empty(8, np.bool_) for _ in range(2)]
    for ply in range(150):
        batch.observe(planes[ply])
        batch.legal(masks[ply])
        batch.pack(packed[ply])
        batch.random_actions(actions)
        batch.step(
            actions, rewards[ply], *flags, np.empty(8, np.uint8), np.empty((8, 2), np.float32), *ints,
            np.empty((8, 64), np.uint8),
        )  # fmt: skip
    return planes, masks, packed, rewards
