"""Imitation: a network learns to play the recorded moves, and to predict the results.

The loss is the cross-entropy of the recorded action among the legal ones, plus a share of the squared error of the
value. Decisions of games without a result teach only the action.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from keisei.errors import LearningError
from keisei.experience.demonstrations import Demonstrations
from keisei.games.contract import Game
from keisei.policies.gather_network import legal_actions
from keisei.policies.networks import ActorCritic
from keisei.policies.sampling import as_tensor

__all__ = ["Imitation", "ImitationConfig", "Skill"]

_JUDGED_AT_ONCE = 512
_LOWEST = -1e9


@dataclass(frozen=True)
class ImitationConfig:
    """How a network learns from recorded games."""

    learning_rate: float = 1e-3
    minibatch_size: int = 256
    value_weight: float = 0.5
    max_grad_norm: float = 1.0


@dataclass(frozen=True)
class Skill:
    """How well a network imitates games."""

    accuracy: float
    """The share of decisions in which the likeliest action is the recorded one."""
    log_loss: float
    """The mean of -log p of the recorded action."""
    value_error: float
    """The mean squared error of the value; NaN if no result is known."""


class Imitation:
    """Teaches a network. ``game`` only unpacks positions."""

    def __init__(
        self, network: ActorCritic, game: Game, config: ImitationConfig | None = None, seed: int = 0
    ) -> None:
        self.network = network
        self.config = config or ImitationConfig()
        self._game, self._seed = game, seed
        self._optimizer = torch.optim.Adam(network.parameters(), lr=self.config.learning_rate)

    def epoch(self, games: Demonstrations, number: int) -> Iterator[float]:
        """Learns from all decisions once, in an order that depends on seed and number. Yields the loss of each
        minibatch."""
        order = np.random.default_rng([self._seed, number]).permutation(len(games)).astype(np.int32)
        self.network.train()
        for start in range(0, len(games), self.config.minibatch_size):
            yield self._step(games.chosen(order[start : start + self.config.minibatch_size]))
        self.network.eval()

    @torch.inference_mode()
    def skill(self, games: Demonstrations) -> Skill:
        """Measures the network on games that it should not have learned from."""
        self.network.eval()
        right, log_loss, errors = 0, 0.0, list[float]()
        for start in range(0, len(games), _JUDGED_AT_ONCE):
            part = games.chosen(slice(start, start + _JUDGED_AT_ONCE))
            logits, taken, values = self._forward(part)
            right += int((logits.argmax(1) == taken).sum())
            log_loss += float(cross_entropy(logits, taken, reduction="sum"))
            known = ~np.isnan(part.returns)
            errors += ((values.cpu().numpy() - part.returns)[known] ** 2).tolist()
        return Skill(
            right / len(games), log_loss / len(games), float(np.mean(errors)) if errors else math.nan
        )

    def _step(self, part: Demonstrations) -> float:
        logits, taken, values = self._forward(part)
        returns = as_tensor(np.nan_to_num(part.returns)).to(values.device)
        known = as_tensor(~np.isnan(part.returns)).to(values.device)
        value_loss = ((values - returns).square() * known).sum() / max(1, int(known.sum()))
        loss = cross_entropy(logits, taken) + self.config.value_weight * value_loss
        found = float(loss.detach())
        if not math.isfinite(found):
            raise LearningError(f"the loss is {found}: imitation has diverged; lower the learning rate")
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.max_grad_norm)
        self._optimizer.step()
        return found

    def _forward(self, part: Demonstrations) -> tuple[Tensor, Tensor, Tensor]:
        """Computes the logits of the legal actions [n, k], the place of the recorded one [n], and values [n]."""
        device = next(self.network.parameters()).device
        observations, legal = self._game.unpack(part.packed)
        listed = as_tensor(legal_actions(legal)).to(device)
        logits, values = self.network(as_tensor(observations).to(device), listed)
        taken = (listed == as_tensor(part.actions).to(device)[:, None]).int().argmax(1)
        return logits.masked_fill(listed < 0, _LOWEST), taken, values
