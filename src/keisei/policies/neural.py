"""The policy of a network: it draws actions from the network's logits."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from keisei.errors import PolicyError
from keisei.games.contract import Array, BoolArray, FinalRows, FloatArray, GameSpec, IntArray, Rows
from keisei.games.randomness import Stream
from keisei.native import core
from keisei.policies.behaviour import Play, TableGames, epsilon_of_games
from keisei.policies.contract import Decision, Situation
from keisei.policies.finite import blame_observations
from keisei.policies.gather_network import legal_actions
from keisei.policies.networks import ActorCritic
from keisei.policies.sampling import as_tensor, check_exploration, masked_log_softmax, sample

__all__ = ["NeuralPolicy", "row_uniforms"]


class NeuralPolicy:
    """Draws from softmax(logits / temperature), or with probability ``epsilon`` uniformly from the legal actions.

    Temperature 0 takes the best action. The network is put into evaluation mode; a learner that trains the same
    object must change it back.
    """

    def __init__(
        self,
        network: ActorCritic,
        spec: GameSpec,
        temperature: float = 1.0,
        epsilon: float | FloatArray = 0.0,
    ) -> None:
        """``epsilon`` is one number, or one for each game of the batch."""
        check_exploration(temperature, epsilon)
        self.network = network.eval()
        self.spec = spec
        self.temperature = temperature
        self.epsilon = epsilon

    def act(self, situation: Situation, selected: IntArray | None = None) -> Decision:
        observations, legal = situation.observations, situation.legal
        if selected is not None:
            observations, legal = observations[selected], legal[selected]
        epsilon = self.epsilon
        if isinstance(epsilon, np.ndarray):
            game = situation.rows.game
            epsilon = epsilon[game if selected is None else game[selected]]
        return self.decide(observations, legal, row_uniforms(situation, selected), epsilon)

    def decide(
        self, observations: Array, legal: BoolArray, uniforms: Array, epsilon: float | FloatArray
    ) -> Decision:
        """Decides for any rows, with one random number in [0, 1) and one epsilon for each."""
        listed = legal_actions(legal)
        logits, values = self._forward(observations, listed)
        try:
            places, log_probs = sample(logits, listed >= 0, uniforms, self.temperature, epsilon)
        except PolicyError:
            blame_observations(self.spec, observations)
            raise
        actions: IntArray = np.take_along_axis(listed, places[:, None], axis=1).squeeze(1)
        return Decision(actions, log_probs, _as_array(values))

    def evaluate(self, observations: Array, legal: BoolArray) -> FloatArray:
        listed = legal_actions(legal) if self.network.meaning == "q" else None
        values = _as_array(self._forward(observations, listed)[1])
        if not np.isfinite(values).all():
            blame_observations(self.spec, observations)
            raise PolicyError(
                "the values of positions are not all finite numbers; the network's weights have diverged, so go back "
                "to an earlier checkpoint or lower the learning rate"
            )
        return values

    def log_probabilities(self, observations: Array, legal: BoolArray) -> FloatArray:
        logits = self._forward(observations)[0].to("cpu", torch.float32)
        return _as_array(masked_log_softmax(logits, as_tensor(legal)))

    def behave(self, settings: Play, games: TableGames) -> None:
        (own,) = settings
        self.temperature = own.temperature
        self.epsilon = epsilon_of_games(own.epsilon, own.spread, games.numbers, games.total)

    def owners(self, rows: Rows) -> int:
        return 0

    def values(self, observations: Array, legal: BoolArray, rows: Rows | FinalRows) -> FloatArray:
        return self.evaluate(observations, legal)

    def _forward(self, observations: Array, actions: IntArray | None = None) -> tuple[Tensor, Tensor]:
        """Computes the logits of these actions (of all by default), and values."""
        device = next(self.network.parameters()).device
        listed = None if actions is None else as_tensor(actions).to(device)
        with torch.inference_mode():
            logits, values = self.network(as_tensor(observations).to(device), listed)
        return logits, values


def row_uniforms(situation: Situation, selected: IntArray | None = None) -> NDArray[np.float64]:
    """Draws a number in [0, 1) for each row. It depends only on the row's game, ply and seat."""
    rows = situation.rows
    keys = (rows.game, rows.episode, rows.ply, rows.seat)
    game, episode, ply, seat = keys if selected is None else (key[selected] for key in keys)
    uniforms = np.empty(len(game), np.float64)
    core.row_uniforms(situation.seed, situation.first_game, game, episode, ply, Stream.POLICY, seat, uniforms)
    return uniforms


def _as_array(values: Tensor) -> FloatArray:
    return np.asarray(values.to("cpu", torch.float32).numpy())
