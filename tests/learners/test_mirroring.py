"""Mirror images: of positions and actions, by the rules of each game; and of the rows that PPO learns from."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from keisei.config import parse_settings
from keisei.errors import ConfigError
from keisei.experience.rollout import Minibatch
from keisei.games.contract import Game, Mirror
from keisei.games.registry import make_game
from keisei.games.shogi import Board
from keisei.learners.contract import NOTHING_LEARNED
from keisei.learners.mirroring import Mirroring
from keisei.learners.ppo import PPO, PPOConfig
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import MLP
from keisei.runs.metric_names import APPROX_KL
from keisei.training.events import Counters
from keisei.training.regimes.loop import collect, hand_over
from keisei.training.settings import TrainConfig
from keisei.training.wiring import connect


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
    actions = Mirroring(symmetric).mirror(observations, legal, np.array([0, 0, 2], np.int32))
    assert actions.tolist() == [0, 2, 2]
    assert observations[1].tolist() == [[[8, 7, 6]], [[11, 10, 9]]]
    assert legal[1].tolist() == [True, False, True]
    for row in (0, 2):
        np.testing.assert_array_equal(observations[row], before[0][row])
        np.testing.assert_array_equal(legal[row], before[1][row])


def test_joined_minibatches_are_mirrored_as_they_would_be_alone() -> None:
    spec = make_game("tictactoe").spec
    assert Mirroring(spec).chosen(6).tolist() == [False, True] * 3
    assert Mirroring(spec, minibatch=3).chosen(6).tolist() == [False, True, False] * 2


def test_ppo_learns_from_positions_that_a_mirrored_game_reaches() -> None:
    """Every second row is the same as if the game had been played in the mirror, by the weights before the update."""
    game, image = make_game("connect-four", batch=6, seed=1), make_game("connect-four", batch=6, seed=1)
    actions_of = np.asarray(mirror(game).actions, np.int32)
    for _ in range(5):
        actions = game.random_actions()
        game.step(actions)
        image.step(actions_of[actions])
    actions = game.random_actions()
    packed, taken = game.pack(), actions.copy()
    packed[1::2], taken[1::2] = image.pack()[1::2], actions_of[actions[1::2]]
    before, now = (network_of(game, seed) for seed in (0, 1))
    rng = np.random.default_rng(0)
    log_probs, *numbers = (rng.normal(size=6).astype(np.float32) for _ in range(4))

    def losses(batch: Minibatch, *, mirrored: bool) -> np.ndarray:  # type: ignore[type-arg]
        learner = PPO(before, game, PPOConfig(mirror=mirrored))
        learner.remember()
        learner.network.load_state_dict(now.state_dict())
        found = learner.row_losses(batch).total(learner.config, 0.1).detach().numpy()
        before.load_state_dict(network_of(game, 0).state_dict())
        return found

    played = log_probs.copy()
    played[1::2] = PPO(before, game, PPOConfig()).judge(packed, taken)[0][1::2]
    found = losses(Minibatch(game.pack(), actions, log_probs, *numbers), mirrored=True)
    in_the_mirror = losses(Minibatch(packed, taken, played, *numbers), mirrored=False)
    np.testing.assert_allclose(found, in_the_mirror, rtol=1e-5)
    plain = losses(Minibatch(game.pack(), actions, log_probs, *numbers), mirrored=False)
    np.testing.assert_allclose(found[::2], plain[::2], rtol=1e-6)
    assert (np.abs(found - plain)[1::2] > 1e-4).all()


def network_of(game: Game, seed: int) -> MLP:
    network = MLP(ModelConfig(network="mlp", hidden_dim=8), game.spec)
    network.initialise(torch.Generator().manual_seed(seed))
    return network


@pytest.mark.parametrize("training", ["stacked", "sequential"])
def test_nothing_has_moved_at_the_first_step(training: str) -> None:
    """The ratio of each row is 1 when an update starts, also of those that were never played."""
    settings = {
        "env": {"game": "connect-four"},
        "model": {"network": "mlp", "hidden_dim": 8},
        "learner": {
            "regime": "independent",
            "algorithm": "ppo",
            "training": training,
            "ppo": {"mirror": True, "epochs": 1, "minibatch_size": 4096},
        },
        "parallel": {"backend": "inline", "num_workers": 1, "tables": 1, "games": 4, "horizon": 16},
    }
    parts = connect(parse_settings(TrainConfig, settings).resolved().placed())
    try:
        behaviour = parts.learner.behaviour(0.0)
        with torch.no_grad():
            for weight in behaviour.network.parameters():
                weight.add_(
                    torch.randn_like(weight)
                )  # other weights than those that the learner was made with
        parts.publisher.publish(parts.learner.behaviour(0.0), NOTHING_LEARNED)
        hand_over(parts, collect(parts, Counters(), 0.0)[0])
        report = parts.learner.learn(parts.buffer.view(), 0.0)
        assert [numbers[APPROX_KL] for numbers in report.owners.values()] == pytest.approx([0, 0], abs=1e-6)
    finally:
        parts.manager.stop_workers()


def test_a_game_without_symmetry_is_refused() -> None:
    with pytest.raises(ConfigError, match="the rules of ludo are not known to be symmetric; set it to false"):
        Mirroring(make_game("ludo").spec)
