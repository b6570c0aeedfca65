"""Mirror images: of positions and actions, by the rules of each game; and of the rows that PPO learns from."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from keisei.errors import ConfigError
from keisei.experience.rollout import Minibatch
from keisei.games.contract import Game, Mirror
from keisei.games.registry import make_game
from keisei.games.shogi import Board
from keisei.learners.mirroring import Mirroring
from keisei.learners.ppo import PPO, PPOConfig
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import MLP


def mirrored_sfen(sfen: str) -> str:
    """Reverses each rank. A promoted piece is a plus and a letter."""
    board, *rest = sfen.split()
    ranks = ["".join(reversed(re.findall(r"\+?.", rank))) for rank in board.split("/")]
    return " ".join(["/".join(ranks), *rest])


def mirror(game: Game) -> Mirror:
    found = game.spec.mirror
    assert found is not None
    return found


def test_shogi_is_the_same_in_a_mirror() -> None:
    """Positions of random games, drawn anew from texts that were reversed."""
    game = make_game("shogi", batch=8, seed=5)
    of = mirror(game)
    for _ in range(150):
        game.step(game.random_actions())
        boards = [Board.from_packed(row.tobytes()) for row in game.pack()]
        images = [Board(mirrored_sfen(board.sfen())) for board in boards]
        rows = [
            np.frombuffer(board.pack(), np.uint8) for board in [*map(Board, map(Board.sfen, boards)), *images]
        ]
        observations, legal = game.unpack(np.stack(rows))
        np.testing.assert_array_equal(observations[8:], np.flip(observations[:8], of.axis + 1))
        np.testing.assert_array_equal(legal[8:], legal[:8][:, of.actions])


@pytest.mark.parametrize("name", ["connect-four", "tictactoe"])
def test_a_mirrored_game_stays_a_mirror_image(name: str) -> None:
    game, image = make_game(name, batch=16, seed=3), make_game(name, batch=16, seed=3)
    of = mirror(game)
    for _ in range(60):
        np.testing.assert_array_equal(image.observe(), np.flip(game.observe(), of.axis + 1))
        np.testing.assert_array_equal(image.legal(), game.legal()[:, of.actions])
        actions = game.random_actions()
        step, other = game.step(actions), image.step(np.asarray(of.actions, np.int32)[actions])
        np.testing.assert_array_equal(step.rewards, other.rewards)
        np.testing.assert_array_equal(step.ending, other.ending)


def test_every_second_row_is_mirrored() -> None:
    observations = np.arange(3 * 2 * 1 * 3).reshape(3, 2, 1, 3)
    legal = np.array([[True, False, False], [True, False, True], [False, True, True]])
    before = observations.copy(), legal.copy()
    symmetric = replace(make_game("tictactoe").spec, mirror=Mirror(axis=2, actions=(2, 1, 0)))
    actions = Mirroring(symmetric).every_second(observations, legal, np.array([0, 0, 2], np.int32))
    assert actions.tolist() == [0, 2, 2]
    assert observations[1].tolist() == [[[8, 7, 6]], [[11, 10, 9]]]
    assert legal[1].tolist() == [True, False, True]
    for row in (0, 2):
        np.testing.assert_array_equal(observations[row], before[0][row])
        np.testing.assert_array_equal(legal[row], before[1][row])


def test_ppo_learns_from_positions_that_a_mirrored_game_reaches() -> None:
    """Every second row is the same as if the game had been played in the mirror."""
    game, image = make_game("connect-four", batch=6, seed=1), make_game("connect-four", batch=6, seed=1)
    actions_of = np.asarray(mirror(game).actions, np.int32)
    for _ in range(5):
        actions = game.random_actions()
        game.step(actions)
        image.step(actions_of[actions])
    actions = game.random_actions()
    network = MLP(ModelConfig(network="mlp", hidden_dim=8), game.spec)
    network.initialise(torch.Generator().manual_seed(0))
    rng = np.random.default_rng(0)
    numbers = [rng.normal(size=6).astype(np.float32) for _ in range(4)]

    def losses(packed: np.ndarray, taken: np.ndarray, *, mirrored: bool) -> np.ndarray:  # type: ignore[type-arg]
        ppo = PPO(network, game, PPOConfig(mirror=mirrored))
        return ppo.row_losses(Minibatch(packed, taken, *numbers)).total(ppo.config, 0.1).detach().numpy()

    packed, taken = game.pack(), actions.copy()
    packed[1::2], taken[1::2] = image.pack()[1::2], actions_of[actions[1::2]]
    found = losses(game.pack(), actions, mirrored=True)
    np.testing.assert_allclose(found, losses(packed, taken, mirrored=False), rtol=1e-6)
    plain = losses(game.pack(), actions, mirrored=False)
    np.testing.assert_allclose(found[::2], plain[::2], rtol=1e-6)
    assert (np.abs(found - plain)[1::2] > 1e-4).all()


def test_a_game_without_symmetry_is_refused() -> None:
    with pytest.raises(ConfigError, match="the rules of ludo are not known to be symmetric; set it to false"):
        Mirroring(make_game("ludo").spec)
