"""A chain and a small zero-sum game, both solved by brute force: DQN reaches the known values of every action."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from plain_dqn_for_tests import PlainReplay

from keisei.experience.replayed import ReplaySample
from keisei.games import ObservationSpec, Outcome, SingleGame, make_game
from keisei.games.contract import Array, ByteArray
from keisei.games.randomness import KeyedRandom
from keisei.learners.dqn import DQN, DQNConfig
from keisei.policies.networks import build_network
from keisei.policies.q_network import QNetwork

DISCOUNT = 0.9


class Chain(SingleGame):
    """Squares 0 … 6, from 3. Left ends the game at 0 with 0.3; right ends it at 6 with 1. Each step costs 0.05. From
    square 5 there is no way back."""

    name = "chain"
    seats = 1
    num_actions = 2
    observation = ObservationSpec((7,), np.dtype(np.uint8))
    scored_by_rewards = True

    def reset(self, rng: KeyedRandom) -> None:
        self.square = 3

    def legal(self, seat: int) -> list[int]:
        return [1] if self.square == 5 else [0, 1]

    def play(self, action: int, rng: KeyedRandom) -> list[float]:
        self.square += 1 if action else -1
        return [{0: 0.3, 6: 1.0}.get(self.square, 0.0) - 0.05]

    def observe(self, seat: int) -> Array:
        return np.eye(7, dtype=np.uint8)[self.square]

    def outcome(self) -> Outcome | None:
        return Outcome() if self.square in (0, 6) else None


class Nim(SingleGame):
    """Take 1, 2 or 3 of 9 stones. Who takes the last one wins."""

    name = "nim"
    num_actions = 3
    observation = ObservationSpec((10,), np.dtype(np.uint8))
    zero_sum = True

    def reset(self, rng: KeyedRandom) -> None:
        self.to_move, self.stones = 0, 9

    def legal(self, seat: int) -> list[int]:
        return [action for action in range(3) if action < self.stones]

    def play(self, action: int, rng: KeyedRandom) -> None:
        self.stones -= action + 1
        self.to_move = 1 - self.to_move

    def observe(self, seat: int) -> Array:
        return np.eye(10, dtype=np.uint8)[self.stones]

    def outcome(self) -> Outcome | None:
        return Outcome.win(1 - self.to_move) if self.stones == 0 else None


class Seen(NamedTuple):
    """One decision of a played game."""

    packed: ByteArray
    state: int
    action: int
    reward: float
    seat: int
    ended: bool


def games_played(
    game_class: type[SingleGame], episodes: int, may_play: Callable[[int, int], bool] = lambda *_: True
) -> Iterator[list[Seen]]:
    """Games of chance, each a list of its decisions. Only actions that ``may_play`` allows are played."""
    game, chance = make_game(game_class, batch=1, seed=4), np.random.default_rng(4)
    decisions: list[Seen] = []
    while episodes:
        packed, seat = game.pack()[0].copy(), int(game.rows().seat[0])
        state = int(game.observe()[0].argmax())
        choices = [action for action in np.flatnonzero(game.legal()[0]).tolist() if may_play(state, action)]
        action = int(chance.choice(choices))
        step = game.step(np.array([action]))
        decisions.append(Seen(packed, state, action, float(step.rewards[0, seat]), seat, bool(step.done[0])))
        if step.done[0]:
            yield decisions
            decisions, episodes = [], episodes - 1


def sample_of(games: Iterator[list[Seen]], n_step: int) -> ReplaySample:
    """All decisions with n-step targets, from the view of the seat that decided, by brute force."""
    rows: list[tuple[Any, ...]] = []
    for game in games:
        for at, decision in enumerate(game):
            reward, end = 0.0, min(at + n_step, len(game))
            for later in range(at, end):
                sign = 1 if game[later].seat == decision.seat else -1
                reward += DISCOUNT ** (later - at) * sign * game[later].reward
            if end == len(game):
                rows.append((decision.packed, decision.action, reward, np.zeros_like(decision.packed), 0.0))
            else:
                sign = 1 if game[end].seat == decision.seat else -1
                rows.append(
                    (
                        decision.packed,
                        decision.action,
                        reward,
                        game[end].packed,
                        sign * DISCOUNT ** (end - at),
                    )
                )
    packed, actions, rewards, following, discounts = zip(*rows, strict=True)
    count = len(rows)
    return ReplaySample(
        np.stack(packed), np.array(actions, np.int32), np.array(rewards, np.float32), np.stack(following),
        np.array(discounts, np.float32), np.ones(count, np.float32), np.arange(count, dtype=np.int32),
        np.zeros(count, np.int32),
    )  # fmt: skip


@cache
def chain_value(square: int, action: int, sweeps: int = 60) -> float:
    """The value of an action, by value iteration."""
    following = square + (1 if action else -1)
    reward = {0: 0.3, 6: 1.0}.get(following, 0.0) - 0.05
    if following in (0, 6) or not sweeps:
        return reward
    choices = [1] if following == 5 else [0, 1]
    return reward + DISCOUNT * max(chain_value(following, choice, sweeps - 1) for choice in choices)


@cache
def nim_value(stones: int, action: int) -> float:
    """The value of taking action + 1 stones, by search to the end."""
    left = stones - action - 1
    if left == 0:
        return 1.0
    return -DISCOUNT * max(nim_value(left, reply) for reply in range(min(3, left)))


def learned_values(
    game_class: type[SingleGame], sample: ReplaySample, steps: int, **settings: Any
) -> dict[tuple[int, int], float]:
    """Q of each (state, action) that was seen, after so many gradient steps."""
    game = make_game(game_class, batch=1, seed=0)
    usual_model = {"network": "mlp", "hidden_dim": 32, "num_layers": 1, "outputs": "dueling"}
    network = build_network(usual_model | settings.pop("model", {}), game.spec, 0)
    assert isinstance(network, QNetwork)
    usual = {"learning_rate": 5e-3, "schedule": "linear", "minibatch_size": 64, "target_interval": 50}
    learner = DQN(network, game, DQNConfig(**(usual | settings)))
    for update in range(10):
        learner.learn(PlainReplay(sample, due=steps // 10), update / 10)
    observations, legal = game.unpack(sample.packed)
    with torch.inference_mode():
        listed = torch.from_numpy(np.where(legal, np.arange(legal.shape[1], dtype=np.int32), -1))
        found = network(torch.from_numpy(observations), listed)[0].numpy()
    states = observations.argmax(1)
    return {
        (int(state), int(action)): float(found[row, action])
        for row, (state, action) in enumerate(zip(states, sample.actions, strict=True))
    }


MODELS = [
    pytest.param({}, id="dueling"),
    pytest.param({"outputs": "q"}, id="q"),
    pytest.param({"quantiles": 8}, id="quantiles"),
]


@pytest.mark.parametrize("model", MODELS)
def test_a_chain_reaches_the_values_of_value_iteration(model: dict[str, Any]) -> None:
    sample = sample_of(games_played(Chain, 60), n_step=1)
    found = learned_values(Chain, sample, steps=600, model=model)
    assert len(found) == 9, "all decisions were seen: two on squares 1 to 4, one on square 5"
    for (square, action), value in found.items():
        assert value == pytest.approx(chain_value(square, action), abs=0.06), (square, action)


@pytest.mark.parametrize("model", MODELS)
def test_a_zero_sum_game_reaches_the_values_of_search(model: dict[str, Any]) -> None:
    sample = sample_of(games_played(Nim, 200), n_step=1)
    found = learned_values(Nim, sample, steps=600, model=model)
    assert len(found) == 24
    for (stones, action), value in found.items():
        assert value == pytest.approx(nim_value(stones, action), abs=0.1), (stones, action)


def test_single_dqn_and_a_soft_target_get_there_too() -> None:
    sample = sample_of(games_played(Nim, 200), n_step=1)
    found = learned_values(Nim, sample, steps=600, double=False, tau=0.05, target_interval=1)
    for (stones, action), value in found.items():
        assert value == pytest.approx(nim_value(stones, action), abs=0.1), (stones, action)


def test_n_step_targets_of_the_best_play_have_its_values() -> None:
    """With the best play on both sides, three steps at once lead to the same values as one."""
    sample = sample_of(games_played(Nim, 60, is_best), n_step=3)
    assert (sample.discounts < 0).any(), "some targets end at the other side's turn"
    found = learned_values(Nim, sample, steps=300)
    for (stones, action), value in found.items():
        assert value == pytest.approx(nim_value(stones, action), abs=0.1), (stones, action)


def is_best(stones: int, action: int) -> bool:
    return nim_value(stones, action) == max(nim_value(stones, other) for other in range(min(3, stones)))
