"""An observation that is NaN or infinite is the fault of the game, and not of the learning rate."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import keisei
from keisei.errors import ContractError, LearningError, NoWorkersError, PolicyError
from keisei.experience.rollout import Minibatch
from keisei.games import ObservationSpec
from keisei.games.contract import Array, Game
from keisei.games.tictactoe import TicTacToe
from keisei.learners.ppo import PPO, PPOConfig
from keisei.parallel import ParallelManager
from keisei.policies import NeuralPolicy, Situation, build_network
from keisei.policies.finite import blame_observations

TINY: dict[str, Any] = {"network": "mlp", "hidden_dim": 8, "num_layers": 1}
BLAME = r"blurred gives observations that are not finite: (nan|inf) in row \d+, plane 1, square \(0, 2\)"


class Blurred(TicTacToe):
    """Shows something that is no number from ply ``at`` on."""

    name = "blurred"
    observation = ObservationSpec((2, 3, 3), np.dtype(np.float32))

    def __init__(self, at: int = 0, shown: float = math.nan) -> None:
        self.at, self.shown = at, shown

    def observe(self, seat: int) -> Array:
        seen = super().observe(seat).astype(np.float32)
        if sum(int(marks).bit_count() for marks in self.marks) >= self.at:
            seen[1, 0, 2] = self.shown
        return seen


class Counter(keisei.SingleGame):
    """One number is shown, and it is infinite."""

    name = "counter"
    num_actions = 2
    observation = ObservationSpec((3,), np.dtype(np.float32))
    max_plies = 3

    def reset(self, rng: Any) -> None:
        self.to_move = 0

    def legal(self, seat: int) -> list[int]:
        return [0, 1]

    def play(self, action: int, rng: Any) -> None:
        self.to_move = 1 - self.to_move

    def observe(self, seat: int) -> Array:
        return np.array([0, -math.inf, 0], np.float32)

    def outcome(self) -> None:
        return None


def policy_for(game: Game) -> NeuralPolicy:
    return NeuralPolicy(build_network(TINY, game.spec, seed=1), game.spec)


@pytest.mark.parametrize("shown", [math.nan, math.inf])
def test_a_policy_blames_the_game(shown: float) -> None:
    game = keisei.make_game(Blurred, batch=4, shown=shown)
    with pytest.raises(ContractError, match=BLAME + r"; in all 4 such numbers in 4 of 4 rows. Mend observe"):
        policy_for(game).act(Situation(game, seed=1, first_game=0))
    with pytest.raises(ContractError, match=BLAME):
        policy_for(game).evaluate(game.observe(), game.legal())


def test_a_number_without_a_plane_is_named_too() -> None:
    game = keisei.make_game(Counter, batch=2)
    with pytest.raises(
        ContractError, match=r"counter gives .*: -inf in row 0, number 1; in all 2 such numbers"
    ):
        policy_for(game).act(Situation(game, seed=1, first_game=0))


def test_a_game_that_shows_a_single_number_is_blamed_too() -> None:
    spec = replace(keisei.make_game(Counter).spec, observation=ObservationSpec((), np.dtype(np.float32)))
    with pytest.raises(ContractError, match="nan in row 1; in all 1 such numbers in 1 of 2 rows"):
        blame_observations(spec, np.array([0, math.nan], np.float32))


def test_weights_that_have_diverged_are_blamed_where_the_game_is_right() -> None:
    game = keisei.make_game("tictactoe", batch=2)
    policy = policy_for(game)
    for weight in policy.network.parameters():
        weight.data.fill_(math.nan)
    with pytest.raises(PolicyError, match="weights have diverged"):
        policy.act(Situation(game, seed=1, first_game=0))
    with pytest.raises(PolicyError, match="weights have diverged"):
        policy.evaluate(game.observe(), game.legal())


def manager_of(inference: str, at: int, horizon: int) -> ParallelManager:
    """One table of two games, which one worker plays in this process; it may fail once."""
    settings = {"backend": "inline", "num_workers": 1, "max_failures": 1, "tables": 1, "games": 2}
    env = {"game": f"{__name__}:Blurred", "options": {"at": at}}
    return ParallelManager(env, TINY, {**settings, "horizon": horizon, "inference": inference})


@pytest.mark.parametrize("inference", ["worker", "central"])
@pytest.mark.parametrize("at", [0, 3])
def test_collection_blames_the_game(inference: str, at: int) -> None:
    with (
        manager_of(inference, at, horizon=8) as manager,
        pytest.raises(NoWorkersError, match=f"ContractError: {BLAME}"),
    ):
        manager.collect_experiences()


@pytest.mark.parametrize("inference", ["worker", "central"])
def test_the_last_position_of_a_slab_is_looked_at_too(inference: str) -> None:
    """It is only valued, and nobody acts there."""
    with (
        manager_of(inference, at=2, horizon=2) as manager,
        pytest.raises((NoWorkersError, ContractError), match=BLAME),
    ):
        manager.collect_experiences()


def rows_of(game: Game, **changes: Array) -> Minibatch:
    count = len(game.rows())
    zeros = np.zeros(count, np.float32)
    columns: dict[str, Array] = {
        "packed": game.pack(), "actions": game.random_actions(), "log_probs": zeros - 2, "values": zeros,
        "advantages": zeros + 1, "returns": zeros,
    }  # fmt: skip
    return Minibatch(**(columns | changes))


def learner_for(game: Game) -> PPO:
    return PPO(build_network(TINY, game.spec, seed=1), game, PPOConfig(normalise_advantages=False))


def test_a_learner_blames_the_observations() -> None:
    game = keisei.make_game(Blurred, batch=4)
    with pytest.raises(ContractError, match=BLAME):
        learner_for(game).step(rows_of(game), 0.0)


def test_a_learner_blames_the_rewards() -> None:
    game = keisei.make_game("tictactoe", batch=2)
    with pytest.raises(
        LearningError, match="the loss is nan in update 0, since tictactoe pays rewards that are not"
    ):
        learner_for(game).step(rows_of(game, returns=np.array([0, math.nan], np.float32)), 0.0)
