"""DQN a second time: row by row in NumPy, in double precision, with gradients worked out by hand. It follows Mnih and
others (2015), van Hasselt and others (2016), Wang and others (2016) and Dabney and others (2018), and shares no line
with the code that it is held against. And a replay that is a plain list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from keisei.experience.replayed import ReplaySample
from keisei.games import make_game
from keisei.games.contract import FloatArray, Game
from keisei.learners.dqn import DQN, DQNConfig
from keisei.policies.networks import ActorCritic, ModelConfig
from keisei.policies.q_network import QNetwork

GAME = make_game("tictactoe", batch=1, seed=0)
Numbers = NDArray[np.float64]


class LinearBody(ActorCritic):
    """One matrix for the outputs of actions and one vector for values."""

    def __init__(self, outputs: int, seed: int = 0) -> None:
        super().__init__(GAME.spec.observation)
        chance = torch.Generator().manual_seed(seed)
        self.policy = torch.nn.Parameter(0.5 * torch.randn(18, outputs, generator=chance))
        self.value = torch.nn.Parameter(0.5 * torch.randn(18, generator=chance))

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        rows = inputs.flatten(1)
        return rows @ self.policy, rows @ self.value


def linear_network(outputs: str = "dueling", quantiles: int = 1, seed: int = 0) -> QNetwork:
    config = ModelConfig(outputs=outputs, quantiles=quantiles)  # type: ignore[arg-type]
    return QNetwork(LinearBody(9 * quantiles, seed), config, GAME.spec)


def linear_dqn(
    seed: int = 0,
    *,
    outputs: str = "dueling",
    quantiles: int = 1,
    parts: int = 1,
    threads: int = 1,
    **settings: Any,
) -> DQN:
    network = linear_network(outputs, quantiles, seed)
    game = make_game("tictactoe", batch=1, seed=0)
    return DQN(network, game, DQNConfig(**settings), seed, parts=parts, threads=threads)


def some_sample(count: int, seed: int = 0) -> ReplaySample:
    """Positions of tic-tac-toe after 0 … 3 plies, each with one of up to three plies later. A third of the factors is
    negative and a sixth is 0, as if the game had ended."""
    chance = np.random.default_rng(seed)
    packed, actions, following = _positions(count, seed)
    rewards, discounts = chance.standard_normal((2, count)).astype(np.float32)
    signs = np.resize(np.array([1, -1, 1, -1, 1, 0], np.float32), count)
    ended = (signs == 0)[:, None]
    return ReplaySample(
        packed,
        actions,
        rewards,
        np.where(ended, 0, following).astype(np.uint8),
        signs * np.abs(discounts).clip(0.5, 1),
        chance.uniform(0.1, 1, count).astype(np.float32),
        np.arange(count, dtype=np.int32),
        np.zeros(count, np.int32),
    )


def _positions(count: int, seed: int) -> tuple[Any, Any, Any]:
    game, each = make_game("tictactoe", batch=count, seed=seed), np.arange(count)
    packed, actions = [], []
    for _ in range(4):
        packed.append(game.pack())
        actions.append(game.random_actions())
        game.step(actions[-1])
    at = each % 3
    return np.stack(packed)[at, each], np.stack(actions)[at, each], np.stack(packed)[3 - (each % 2), each]


def rows_of(sample: ReplaySample, chosen: Any) -> ReplaySample:
    return ReplaySample(*(getattr(sample, column.name)[chosen] for column in fields(sample)))


@dataclass
class PlainReplay:
    """A replay that is a list of decisions. It notes how it is asked, and what it is told of errors."""

    rows: ReplaySample
    due: int = 1
    asked: list[tuple[int, int, int]] = field(default_factory=list)
    told: list[tuple[list[int], FloatArray]] = field(default_factory=list)

    def steps(self) -> int:
        return self.due

    def sample(self, size: int, seed: int, key: int, progress: float = 1.0) -> ReplaySample:
        self.asked.append((size, seed, key))
        chosen = np.random.default_rng((seed, key)).integers(len(self.rows), size=size)
        return rows_of(self.rows, chosen)

    def update_priorities(self, sample: ReplaySample, errors: FloatArray) -> None:
        self.told.append((sample.places.tolist(), errors))


def huber(error: float, delta: float) -> tuple[float, float]:
    """The loss of an error, and its slope."""
    if abs(error) <= delta:
        return error**2 / 2, error
    return delta * (abs(error) - delta / 2), delta * (1 if error > 0 else -1)


@dataclass
class PlainDQN:
    """Weights of the network and of the target network, Adam's moments, and its number of steps."""

    weights: dict[str, Numbers]
    config: DQNConfig
    dueling: bool
    quantiles: int
    steps: int = 0

    def __post_init__(self) -> None:
        self.target = {name: weight.copy() for name, weight in self.weights.items()}
        self.first = {name: np.zeros_like(weight) for name, weight in self.weights.items()}
        self.second = {name: np.zeros_like(weight) for name, weight in self.weights.items()}

    @classmethod
    def of(cls, learner: DQN, dueling: bool) -> PlainDQN:
        weights = {
            name.removeprefix("body."): weight.detach().numpy().astype(float)
            for name, weight in learner.network.named_parameters()
        }
        return cls(weights, learner.config, dueling, learner.network.quantiles)

    def values(self, weights: dict[str, Numbers], inputs: Numbers, legal: Sequence[int]) -> Numbers:
        """[quantiles, legal]: the values of the legal actions."""
        outputs = (inputs @ weights["policy"]).reshape(self.quantiles, 9)
        found = np.array([[row[action] for action in legal] for row in outputs])
        if self.dueling:
            found = found + inputs @ weights["value"] - sum(map(sum, found)) / found.size
        return found

    def targets(self, sample: ReplaySample, row: int) -> Numbers:
        reward, factor = float(sample.rewards[row]), float(sample.discounts[row])
        if factor == 0:
            return np.full(self.quantiles, reward)
        inputs, legal = unpacked(sample.next_packed[row])
        judge = self.weights if self.config.double else self.target
        means = self.values(judge, inputs, legal).mean(axis=0).tolist()
        best = means.index(max(means))
        return reward + factor * self.values(self.target, inputs, legal)[:, best]

    def losses_and_gradients(self, sample: ReplaySample) -> tuple[float, list[float], dict[str, Numbers]]:
        gradients = {name: np.zeros_like(weight) for name, weight in self.weights.items()}
        total, errors = 0.0, []
        for row in range(len(sample)):
            inputs, legal = unpacked(sample.packed[row])
            place = legal.index(int(sample.actions[row]))
            predicted = self.values(self.weights, inputs, legal)[:, place]
            targets = self.targets(sample, row)
            loss, slopes = self.loss(predicted, targets)
            share = float(sample.weights[row]) / len(sample)
            total += share * loss
            errors.append(abs(targets.mean() - predicted.mean()))
            self._add_gradients(gradients, share * slopes, inputs, legal, int(sample.actions[row]))
        return total, errors, gradients

    def loss(self, predicted: Numbers, targets: Numbers) -> tuple[float, Numbers]:
        """The loss of a decision, and its slope for each predicted quantile."""
        count, delta = self.quantiles, self.config.huber
        if count == 1:
            loss, slope = huber(targets[0] - predicted[0], delta)
            return loss, np.array([-slope])
        total, slopes = 0.0, np.zeros(count)
        for i in range(count):
            tau = (2 * i + 1) / (2 * count)
            for j in range(count):
                error = targets[j] - predicted[i]
                loss, slope = huber(error, delta)
                weight = abs(tau - (1.0 if error < 0 else 0.0)) / count
                total += weight * loss
                slopes[i] -= weight * slope
        return total, slopes

    def _add_gradients(
        self,
        gradients: dict[str, Numbers],
        slopes: Numbers,
        inputs: Numbers,
        legal: Sequence[int],
        action: int,
    ) -> None:
        for i, slope in enumerate(slopes):
            gradients["policy"][:, 9 * i + action] += slope * inputs
            if self.dueling:
                gradients["value"] += slope * inputs
                for quantile in range(self.quantiles):
                    for other in legal:
                        gradients["policy"][:, 9 * quantile + other] -= (
                            slope * inputs / (self.quantiles * len(legal))
                        )

    def step(self, sample: ReplaySample) -> tuple[float, list[float]]:
        loss, errors, gradients = self.losses_and_gradients(sample)
        used = gradients if self.dueling else {"policy": gradients["policy"]}
        norm = np.sqrt(sum((gradient**2).sum() for gradient in used.values()))
        self.steps += 1
        for name, whole in used.items():
            gradient = whole * min(1.0, self.config.max_grad_norm / norm)
            self.first[name] = 0.9 * self.first[name] + 0.1 * gradient
            self.second[name] = 0.999 * self.second[name] + 0.001 * gradient**2
            mean = self.first[name] / (1 - 0.9**self.steps)
            spread = np.sqrt(self.second[name] / (1 - 0.999**self.steps))
            self.weights[name] = self.weights[name] - self.config.learning_rate * mean / (spread + 1e-5)
        if self.steps % self.config.target_interval == 0:
            for name, weight in self.weights.items():
                self.target[name] = (1 - self.config.tau) * self.target[name] + self.config.tau * weight
        return loss, errors


def unpacked(packed: Any, game: Game = GAME) -> tuple[Numbers, list[int]]:
    observations, legal = game.unpack(packed[None])
    return observations.reshape(-1).astype(float), np.flatnonzero(legal[0]).tolist()
