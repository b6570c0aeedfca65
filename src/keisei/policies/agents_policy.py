"""The policy of independent agents: each decides for its own seat, and all of them are computed at once."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from keisei.errors import PolicyError
from keisei.games.contract import Array, BoolArray, FinalRows, FloatArray, GameSpec, IntArray, Rows
from keisei.policies.agents_network import AgentsNetwork
from keisei.policies.behaviour import Play, PlaySettings, TableGames
from keisei.policies.contract import Decision, Situation
from keisei.policies.finite import blame_observations
from keisei.policies.neural import row_uniforms
from keisei.policies.sampling import as_tensor, masked_log_softmax, sample

__all__ = ["AgentsPolicy", "SeatPolicy"]


class AgentsPolicy:
    """Agent i decides for the rows of seat i.

    A forward pass has a place for each seat of each game, whoever acts. So its shape never changes, and what an agent
    decides depends on its own rows and weights alone.
    """

    def __init__(self, network: AgentsNetwork, spec: GameSpec, temperature: float = 1.0) -> None:
        """All agents play with ``temperature`` and without random decisions, until they are told otherwise."""
        self.network = network.eval()
        self.spec = spec
        self.behave((PlaySettings(temperature),) * network.agents, TableGames(0, 1, 1))
        self._seen: Array = np.zeros((0, *spec.observation.shape), spec.observation.dtype)
        self._listed: IntArray = np.zeros((0, spec.num_actions), np.int32)

    def behave(self, settings: Play, games: TableGames) -> None:
        """Lets each agent play as freely as its entry says. Epsilon may be spread over the games of the whole run."""
        self._games = games
        self._temperature = np.array([own.temperature for own in settings])
        self._epsilon = np.array([own.epsilon for own in settings], np.float32)
        self._spread = np.array([own.spread for own in settings], np.float32)

    def owners(self, rows: Rows) -> Array:
        """Gets the seats of rows: each agent learns from the decisions of its seat."""
        return rows.seat

    def act(self, situation: Situation, selected: IntArray | None = None) -> Decision:
        rows, observations, legal = situation.rows, situation.observations, situation.legal
        game, seat = rows.game, rows.seat
        if selected is not None:
            observations, legal = observations[selected], legal[selected]
            game, seat = game[selected], seat[selected]
        logits, values = self._at(observations, legal, game, seat, situation.game.batch)
        uniforms = row_uniforms(situation, selected)
        try:
            actions, log_probs = self._drawn(logits, legal, uniforms, seat, game + situation.first_game)
        except PolicyError:
            blame_observations(self.spec, observations)
            raise
        return Decision(actions, log_probs, values)

    def of_seat(self, seat: int) -> SeatPolicy:
        """Gets the policy of one agent, which treats every observation as its own."""
        if not 0 <= seat < self.network.agents:
            raise PolicyError(f"there is no seat {seat}; agents have the seats 0 … {self.network.agents - 1}")
        return SeatPolicy(self, seat)

    def evaluate(self, observations: Array, legal: BoolArray) -> FloatArray:
        raise PolicyError(_WHOSE)

    def log_probabilities(self, observations: Array, legal: BoolArray) -> FloatArray:
        raise PolicyError(_WHOSE)

    def values(self, observations: Array, legal: BoolArray, rows: Rows | FinalRows) -> FloatArray:
        return self.values_at(observations, legal, rows.game, rows.seat, self._games.count)

    def values_at(
        self, observations: Array, legal: BoolArray, game: IntArray, seat: IntArray, games: int
    ) -> FloatArray:
        """[n]: the values of positions, each by the agent of its seat. ``games`` is the size of the batch."""
        values = self._at(observations, legal, game, seat, games)[1]
        if not np.isfinite(values).all():
            blame_observations(self.spec, observations)
            raise PolicyError(
                "the values of positions are not all finite numbers; the weights of an agent have diverged, so go back "
                "to an earlier checkpoint or lower its learning rate"
            )
        return values

    def log_probabilities_of(self, agent: int, observations: Array, legal: BoolArray) -> FloatArray:
        """[n, num_actions]: the log-probability of each action for one agent, before any temperature."""
        game, seat = self.of_seat(agent)._rows(len(legal))
        logits = self._at(observations, legal, game, seat, len(legal))[0]
        found: FloatArray = masked_log_softmax(as_tensor(logits), as_tensor(legal)).numpy()
        return found

    def _at(
        self, observations: Array, legal: BoolArray, game: IntArray, seat: IntArray, games: int
    ) -> tuple[FloatArray, FloatArray]:
        """Computes logits [n, num_actions] and values [n] of rows."""
        place = seat.astype(np.int64) * games + game
        self._make_room(games)
        self._seen[place] = observations
        self._listed[place] = np.where(legal, np.arange(self.spec.num_actions, dtype=np.int32), np.int32(-1))
        with torch.inference_mode():
            logits, values = self.network(_on(self._seen, self._device), _on(self._listed, self._device))
        return _array(logits)[place], _array(values)[place]

    @property
    def _device(self) -> torch.device:
        return next(self.network.parameters()).device

    def _make_room(self, games: int) -> None:
        places = self.network.agents * games
        if len(self._seen) != places:
            self._seen = np.zeros((places, *self.spec.observation.shape), self.spec.observation.dtype)
            self._listed = np.zeros((places, self.spec.num_actions), np.int32)

    def _drawn(
        self, logits: FloatArray, legal: BoolArray, uniforms: Array, seat: IntArray, game: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """Draws an action for each row, as freely as its agent plays."""
        temperature, exponent = (
            self._temperature[seat],
            1 + self._spread[seat] * game / max(1, self._games.total - 1),
        )
        epsilon = self._epsilon[seat] ** exponent.astype(np.float32)
        actions, log_probs = np.empty(len(seat), np.int32), np.empty(len(seat), np.float32)
        for one in np.unique(temperature):
            of = temperature == one
            actions[of], log_probs[of] = sample(logits[of], legal[of], uniforms[of], float(one), epsilon[of])
        return actions, log_probs


_WHOSE = (
    "each seat has an agent of its own, and an observation does not say whose it is; take one of them: "
    "keisei.load(run, seat=0), or policy.of_seat(0)"
)


class SeatPolicy:
    """The agent of one seat, for programs that use it alone."""

    def __init__(self, agents: AgentsPolicy, seat: int) -> None:
        self._agents, self.seat = agents, seat

    def act(self, situation: Situation, selected: IntArray | None = None) -> Decision:
        """Decides as all agents do, each for the rows of its own seat."""
        return self._agents.act(situation, selected)

    def evaluate(self, observations: Array, legal: BoolArray) -> FloatArray:
        game, seat = self._rows(len(legal))
        return self._agents.values_at(observations, legal, game, seat, len(legal))

    def log_probabilities(self, observations: Array, legal: BoolArray) -> FloatArray:
        return self._agents.log_probabilities_of(self.seat, observations, legal)

    def _rows(self, count: int) -> tuple[IntArray, IntArray]:
        return np.arange(count, dtype=np.int32), np.full(count, self.seat, np.int32)


def _on(array: Array, device: torch.device) -> Tensor:
    return as_tensor(array).to(device)


def _array(tensor: Tensor) -> FloatArray:
    return np.asarray(tensor.to("cpu", torch.float32).numpy())
