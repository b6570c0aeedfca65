"""PPO a second time: in NumPy, in double precision, with gradients worked out by hand. It follows Schulman et al.
(2017), with Adam by Kingma and Ba (2015), and shares no line with the code that it is held against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from keisei.experience.rollout import Minibatch
from keisei.games import make_game
from keisei.games.contract import ByteArray, IntArray
from keisei.policies.networks import ActorCritic

GAME = make_game("tictactoe", batch=1, seed=0)
Numbers = NDArray[np.float64]


class LinearNetwork(ActorCritic):
    """The simplest network that tells positions apart: one matrix for logits and one vector for values."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(GAME.spec.observation)
        chance = torch.Generator().manual_seed(seed)
        self.policy = torch.nn.Parameter(0.5 * torch.randn(18, 9, generator=chance))
        self.value = torch.nn.Parameter(0.5 * torch.randn(18, generator=chance))

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        rows = inputs.flatten(1)
        return rows @ self.policy, rows @ self.value

    def weights(self) -> dict[str, Numbers]:
        return {name: weight.detach().numpy().astype(float) for name, weight in self.named_parameters()}


def some_rows(count: int, seed: int = 0) -> Minibatch:
    """Positions of tic-tac-toe after 0, 1, 2, 3 plies in turn, so that rows differ in how many actions are legal; with
    an action of chance each and whatever numbers."""
    chance = np.random.default_rng(seed)
    packed, actions = zip(*(_after(plies, count, seed) for plies in range(4)), strict=True)
    each = np.arange(count)
    log_probs, values, advantages, returns = chance.standard_normal((4, count)).astype(np.float32)
    return Minibatch(
        np.stack(packed)[each % 4, each],
        np.stack(actions)[each % 4, each],
        0.4 * log_probs - 2,
        values,
        2 * advantages + 1,
        returns,
    )


def _after(plies: int, count: int, seed: int) -> tuple[ByteArray, IntArray]:
    game = make_game("tictactoe", batch=count, seed=seed)
    for _ in range(plies):
        game.step(game.random_actions())
    return game.pack(), game.random_actions()


def rows_of(batch: Minibatch, start: int, end: int) -> Minibatch:
    return Minibatch(*(getattr(batch, name)[start:end] for name in Minibatch.__slots__))


@dataclass
class PlainView:
    """Rows in the order in which they are, and a note of how it was asked for them."""

    rows: Minibatch
    asked: list[tuple[int, int, int]] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def merged(self) -> Minibatch:
        return self.rows

    def minibatches(self, size: int, seed: int, epoch: int, share: float) -> Iterator[Minibatch]:
        self.asked.append((size, seed, epoch))
        self.shares.append(share)
        for start in range(0, len(self.rows), size):
            yield rows_of(self.rows, start, start + size)


@dataclass(frozen=True)
class Constants:
    """The letters of the paper."""

    rate: float
    entropy: float
    clip: float
    value: float
    value_clip: float | None
    max_norm: float
    normalise: bool


@dataclass
class PlainPPO:
    """Weights, Adam's two moments, and its number of steps."""

    weights: dict[str, Numbers]
    steps: int = 0

    def __post_init__(self) -> None:
        self.first = {name: np.zeros_like(weight) for name, weight in self.weights.items()}
        self.second = {name: np.zeros_like(weight) for name, weight in self.weights.items()}

    def learn(self, batches: Sequence[Minibatch], epochs: int, constants: Constants) -> dict[str, float]:
        """The means of all numbers over all minibatches."""
        found = [self._step(batch, constants) for _ in range(epochs) for batch in batches]
        return {name: float(np.mean([numbers[name] for numbers in found])) for name in found[0]}

    def _step(self, batch: Minibatch, constants: Constants) -> dict[str, float]:
        numbers, gradients = self.numbers_and_gradients(batch, constants)
        self._adam(gradients, constants)
        return numbers

    def numbers_and_gradients(
        self, batch: Minibatch, constants: Constants
    ) -> tuple[dict[str, float], dict[str, Numbers]]:
        count, each = len(batch), np.arange(len(batch))
        advantages, returns = batch.advantages.astype(float), batch.returns.astype(float)
        if constants.normalise:
            deviation = np.sqrt(((advantages - advantages.mean()) ** 2).sum() / count)
            advantages = (advantages - advantages.mean()) / deviation
        observations, legal = GAME.unpack(batch.packed)
        inputs = observations.reshape(count, 18).astype(float)

        # The policy, over legal actions.
        odds = np.exp(inputs @ self.weights["policy"]) * legal
        chances = odds / odds.sum(1, keepdims=True)
        logs = np.log(np.where(legal, chances, 1.0))
        ratio = chances[each, batch.actions] / np.exp(batch.log_probs.astype(float))
        bound = np.where(advantages > 0, 1 + constants.clip, 1 - constants.clip)
        is_cut = np.where(advantages > 0, ratio > bound, ratio < bound)
        gains = np.where(is_cut, bound, ratio) * advantages
        entropy = -(chances * logs).sum(1)
        taken = np.zeros_like(chances)
        taken[each, batch.actions] = 1
        by_logits = np.where(is_cut, 0.0, -ratio * advantages)[:, None] * (taken - chances)
        by_logits += constants.entropy * chances * (logs + entropy[:, None])

        # The values.
        values, before = inputs @ self.weights["value"], batch.values.astype(float)
        errors, by_values = (values - returns) ** 2, 2 * (values - returns)
        if constants.value_clip is not None:
            moved = values - before
            near = before + np.sign(moved) * np.minimum(np.abs(moved), constants.value_clip)
            by_values = np.where((near - returns) ** 2 > errors, 0.0, by_values)
            errors = np.maximum(errors, (near - returns) ** 2)

        policy, value = -gains.sum() / count, errors.sum() / count
        numbers = {
            "train/loss": policy + constants.value * value - constants.entropy * entropy.sum() / count,
            "train/policy_gradient_loss": policy,
            "train/value_loss": value,
            "train/entropy_loss": -entropy.sum() / count,
            "train/approx_kl": (ratio - 1 - np.log(ratio)).sum() / count,
            "train/clip_fraction": (
                (ratio > 1 + constants.clip).sum() + (ratio < 1 - constants.clip).sum()
            ) / count,
        }  # fmt: skip
        gradients = {
            "policy": inputs.T @ by_logits / count,
            "value": constants.value * inputs.T @ by_values / count,
        }
        return numbers, gradients

    def _adam(self, gradients: dict[str, Numbers], constants: Constants) -> None:
        norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
        self.steps += 1
        for name, whole in gradients.items():
            gradient = whole * min(1.0, constants.max_norm / norm)
            self.first[name] = 0.9 * self.first[name] + 0.1 * gradient
            self.second[name] = 0.999 * self.second[name] + 0.001 * gradient**2
            mean = self.first[name] / (1 - 0.9**self.steps)
            spread = np.sqrt(self.second[name] / (1 - 0.999**self.steps))
            self.weights[name] = self.weights[name] - constants.rate * mean / (spread + 1e-5)
