"""The greedy player: it takes material in Shogi, and wins elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

import keisei
from keisei.errors import ConfigError, PolicyError
from keisei.games.contract import Array, Game, ObservationSpec
from keisei.games.randomness import KeyedRandom
from keisei.games.shogi import Board, Color, Move
from keisei.games.single import Outcome, SingleGame, batched
from keisei.policies import GreedyPlayer, Situation, build_policy

Material: TypeAlias = Callable[[Board], int]


def gain(board: Board, move: Move, material: Material) -> int:
    before, mover = material(board), board.turn
    board.push(move)
    change = material(board) - before
    board.pop()
    return change if mover is Color.BLACK else -change


def decide(game: Game, seed: int = 7) -> Array:
    return GreedyPlayer().act(Situation(game, seed, 0)).actions


def test_in_shogi_it_takes_the_move_that_wins_most_material(material: Material) -> None:
    game = keisei.make_game("shogi", batch=3, seed=4)
    quiet = 0
    for _ in range(24):
        actions = decide(game)
        for packed, action in zip(game.pack(), actions, strict=True):
            board = Board.from_packed(packed.tobytes())
            gains = {move: gain(board, move, material) for move in list(board.legal_moves)}
            assert gains[board.move_from_action(int(action))] == max(gains.values())
            quiet += max(gains.values()) == 0
        game.step(actions if game.rows().ply[0] % 2 else game.random_actions())
    assert 0 < quiet < 3 * 24


@pytest.mark.parametrize(
    ("sfen", "best"),
    [
        ("4k4/9/4P4/9/1r7/9/9/1RB6/4K4 b - 1", "8h8e"),  # a rook rather than a promotion
        ("4k4/9/9/4P4/9/9/9/9/4K4 b - 1", "5d5c+"),
        ("4k4/9/9/9/9/6+p2/6R2/9/4K4 b - 1", "3g3f"),
        ("4k4/9/2r6/9/9/9/6p2/9/4K1B2 w - 1", "3g3h+"),  # white moves down the board
    ],
)
def test_what_is_most_valuable(sfen: str, best: str) -> None:
    game = keisei.make_game("shogi", batch=8, start=sfen)
    (action,) = set(decide(game).tolist())
    assert str(Board(sfen).move_from_action(action)) == best


def test_equal_moves_are_drawn_by_lot() -> None:
    """From the start no move wins anything: all 30 are played, about alike."""
    game = keisei.make_game("shogi", batch=3000)
    counts = np.unique(decide(game), return_counts=True)[1]
    assert len(counts) == 30
    assert counts.min() > 50
    assert counts.max() < 160


@pytest.mark.parametrize(
    ("played", "action"),
    [
        ([0, 4, 1, 5], 2),  # three in a row
        ([0, 4, 1, 8], 2),  # win rather than prevent
        ([0, 4, 8, 1], 7),  # X must stop 1-4-7
        ([0, 8, 1], 2),  # O must stop 0-1-2
    ],
)
def test_in_other_games_it_wins_at_once_or_prevents_a_win(played: list[int], action: int) -> None:
    game = keisei.make_game("tictactoe", batch=20)
    for number in played:
        game.step(np.full(20, number))
    assert set(decide(game).tolist()) == {action}


def test_where_nothing_is_at_stake_it_plays_at_random() -> None:
    game = keisei.make_game("connect-four", batch=300)
    counts = np.unique(decide(game), return_counts=True)[1]
    assert len(counts) == 7
    assert counts.min() > 15


class Coin(SingleGame):
    """Action 1 wins where a coin falls right, which nobody can know beforehand; action 0 waits."""

    name = "coin"
    num_actions = 2
    observation = ObservationSpec((1,), np.dtype(np.uint8))
    zero_sum = True
    max_plies = 40

    def reset(self, rng: KeyedRandom) -> None:
        self.to_move, self.fell = 0, -1

    def legal(self, seat: int) -> Array:
        return np.ones(2, np.bool_)

    def play(self, action: int, rng: KeyedRandom) -> None:
        if action:
            self.fell = rng.integer(2)
        self.to_move = 1 - self.to_move

    def observe(self, seat: int) -> Array:
        return np.zeros(1, np.uint8)

    def outcome(self) -> Outcome | None:
        if self.fell < 0:
            return None
        return Outcome.win(1 - self.to_move if self.fell else self.to_move)


def test_looking_ahead_does_not_see_the_dice() -> None:
    """A player who used the game's own numbers would win every toss that it makes."""
    game = keisei.make_game(Coin, batch=400, seed=3)
    tosses, won = 0, 0
    for _ in range(12):
        actions, seat = decide(game), game.rows().seat
        step = game.step(actions)
        ended = step.terminated
        tosses += int(ended.sum())
        won += int((step.scores[np.arange(400), seat][ended] > 0).sum())
    assert tosses > 300
    assert 0.35 < won / tosses < 0.65


def test_copies_leave_the_games_alone() -> None:
    for name in ("tictactoe", "connect-four", "openspiel:breakthrough"):
        game = keisei.make_game(name, batch=5, seed=2)
        for _ in range(3):
            game.step(game.random_actions())
        before = game.save()
        decide(game)
        assert game.save() == before


def test_games_it_cannot_play() -> None:
    class Together(Coin):
        name = "together"
        simultaneous = True

    class Uncopied(Coin):
        name = "uncopied"

        def copy(self) -> Uncopied:
            raise TypeError("no")

    spec = batched(Together)().spec
    with pytest.raises(ConfigError, match="several seats act at once"):
        build_policy("greedy", spec)
    with pytest.raises(keisei.KeiseiError, match=r"write copy\(\) in Uncopied"):
        decide(keisei.make_game(Uncopied))
    with pytest.raises(PolicyError, match="dummy is neither"):
        decide(keisei.make_game("dummy"))
