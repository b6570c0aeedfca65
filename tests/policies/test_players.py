"""The policies themselves: keyed decisions, chosen rows, values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import keisei
from keisei.errors import ConfigError
from keisei.games.batched import SingleGameBatch
from keisei.games.contract import Game, IntArray
from keisei.games.randomness import Stream, keyed_uniform
from keisei.games.tictactoe import TicTacToe
from keisei.policies import NeuralPolicy, Policy, RandomPolicy, Situation, build_network, build_policy, sample

GAMES = ["tictactoe", "ludo", "shogi"]


class Told(SingleGameBatch):
    """Tic-tac-toe, not of zero sum, that looks ahead by itself, and remembers what it was asked."""

    def __init__(self, *, batch: int, seed: int, first_game: int) -> None:
        super().__init__(TicTacToe, batch, seed, first_game, {})
        self._spec = replace(self._spec, zero_sum=False)
        self.asked: list[tuple[int, list[int] | None, int]] = []

    def greedy_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        return self.search_actions(0, selected, keys)

    def search_actions(self, depth: int, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        self.asked.append((depth, None if selected is None else selected.tolist(), len(keys)))
        return np.full(len(keys), 8, np.int32)


@pytest.mark.parametrize(("name", "depth"), [("greedy", 0), ("search:4", 4)])
def test_a_batch_that_looks_ahead_is_asked_whatever_its_game(name: str, depth: int) -> None:
    game = Told(batch=3, seed=1, first_game=0)
    player = build_policy(name, game.spec)
    situation = Situation(game, 7, 0)
    assert player.act(situation).actions.tolist() == [8, 8, 8]
    assert player.act(situation, np.array([2], np.int32)).actions.tolist() == [8]
    assert game.asked == [(depth, None, 3), (depth, [2], 1)]


def position(name: str, batch: int = 12, first_game: int = 0, plies: int = 3) -> Game:
    game = keisei.make_game(name, batch=batch, seed=9, first_game=first_game)
    for _ in range(plies):
        game.step(game.random_actions())
    return game


def neural(game: Game, temperature: float = 1.0, epsilon: float = 0.0) -> NeuralPolicy:
    network = build_network({"hidden_dim": 16, "num_layers": 1}, game.spec, seed=1)
    return NeuralPolicy(network, game.spec, temperature, epsilon)


@pytest.mark.parametrize("name", GAMES)
def test_a_neural_policy_draws_with_the_key_of_each_row(name: str) -> None:
    game = position(name, first_game=100)
    policy = neural(game, temperature=0.8, epsilon=0.1)
    decision = policy.act(Situation(game, seed=7, first_game=100))
    rows = game.rows()
    with torch.no_grad():
        logits, values = policy.network(torch.from_numpy(game.observe()))
    uniforms = keyed_uniform(7, rows.game + 100, rows.episode, rows.ply, Stream.POLICY, rows.seat)
    actions, log_probs = sample(logits, game.legal(), uniforms, 0.8, 0.1)
    np.testing.assert_array_equal(decision.actions, actions)
    np.testing.assert_array_equal(decision.log_probs, log_probs)
    np.testing.assert_array_equal(decision.values, values.numpy())
    np.testing.assert_array_equal(policy.evaluate(game.observe(), game.legal()), values.numpy())


@pytest.mark.parametrize("name", GAMES)
def test_a_decision_depends_on_nothing_that_was_decided_before(name: str) -> None:
    game = position(name)
    fresh, used = neural(game), neural(game)
    elsewhere = position(name, batch=5, first_game=40, plies=1)
    for seed in range(3):
        used.act(Situation(elsewhere, seed, 40))
    first, second = (policy.act(Situation(game, 7, 0)) for policy in (fresh, used))
    for field in ("actions", "log_probs", "values"):
        assert getattr(first, field).tobytes() == getattr(second, field).tobytes()
    other = fresh.act(Situation(game, 8, 0))
    assert (other.actions != first.actions).any()


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("kind", ["neural", "random"])
def test_selected_rows_are_decided_as_among_all(name: str, kind: str) -> None:
    """Values may differ in the last bits: a network may add up in another order for another batch."""
    game = position(name)
    policy: Policy = neural(game) if kind == "neural" else RandomPolicy()
    situation = Situation(game, 7, 0)
    everyone = policy.act(situation)
    selected: IntArray = np.array([1, 4, 5, 11], np.int32)
    some = policy.act(situation, selected)
    np.testing.assert_array_equal(some.actions, everyone.actions[selected])
    np.testing.assert_allclose(some.log_probs, everyone.log_probs[selected], atol=1e-5)
    np.testing.assert_allclose(some.values, everyone.values[selected], atol=1e-5)
    assert len(policy.act(situation, selected[:0]).actions) == 0


def test_whole_games_can_be_played_by_a_neural_policy() -> None:
    game = keisei.make_game("tictactoe", batch=8, seed=1)
    situation, policy, finished = Situation(game, 1, 0), neural(game), 0
    for _ in range(40):
        finished += int(game.step(policy.act(situation).actions).done.sum())
        situation.advance()
    assert finished >= 8 * 4


def test_temperature_zero_takes_the_best_action() -> None:
    game = position("shogi")
    policy = neural(game, temperature=0.0)
    decision = policy.act(Situation(game, 7, 0))
    with torch.no_grad():
        logits = policy.network(torch.from_numpy(game.observe()))[0].numpy()
    best = np.where(game.legal(), logits, -np.inf).argmax(axis=1)
    np.testing.assert_array_equal(decision.actions, best)
    assert not decision.log_probs.any()


def test_observations_that_may_not_be_written_are_taken() -> None:
    game = position("shogi")
    policy, observations = neural(game), game.observe()
    expected = policy.evaluate(observations, game.legal())
    observations.flags.writeable = False
    np.testing.assert_array_equal(policy.evaluate(observations, game.legal()), expected)


@pytest.mark.parametrize("name", GAMES)
def test_a_random_policy_plays_what_the_game_draws(name: str) -> None:
    game = position(name)
    decision = RandomPolicy().act(Situation(game, 7, 0))
    np.testing.assert_array_equal(decision.actions, game.random_actions())
    np.testing.assert_allclose(np.exp(decision.log_probs), 1 / game.legal().sum(axis=1), rtol=1e-5)
    assert decision.values.dtype == np.float32
    assert not decision.values.any()
    assert not RandomPolicy(log_probs=False).act(Situation(game, 7, 0)).log_probs.any()
    assert RandomPolicy().evaluate(game.observe(), game.legal()).shape == (12,)


def test_policies_by_name() -> None:
    game = position("tictactoe")
    network = build_network({"hidden_dim": 8}, game.spec, seed=1)
    assert isinstance(build_policy("random", game.spec), RandomPolicy)
    learner = build_policy({"policy": "learner", "temperature": 0.5, "epsilon": 0.25}, game.spec, network)
    assert isinstance(learner, NeuralPolicy)
    assert (learner.temperature, learner.epsilon, learner.network) == (0.5, 0.25, network)
    with pytest.raises(ConfigError, match="did you mean 'random'"):
        build_policy("randon", game.spec)
    with pytest.raises(ConfigError, match="pass one to build_policy"):
        build_policy("learner", game.spec)
    with pytest.raises(ConfigError, match="epsilon = 2: must be a number from 0 to 1"):
        build_policy({"policy": "learner", "epsilon": 2}, game.spec, network)
    with pytest.raises(ConfigError, match="temperature"):
        NeuralPolicy(network, game.spec, temperature=-1)
