"""OpenSpiel's games as Keisei games: turn-based and simultaneous ones, with and without chance.

Chance events are drawn from the keyed randomness. Games that draw their chance events internally cannot be
repeated, so they are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from keisei.errors import ConfigError, UnknownGameError
from keisei.games.adapters.spaces import need
from keisei.games.batched import BatchFactory, SingleGameBatch
from keisei.games.contract import Array, ObservationSpec
from keisei.games.options import check_options, did_you_mean
from keisei.games.randomness import KeyedRandom
from keisei.games.single import Outcome, SingleGame

INSTALL = "pip install 'keisei[openspiel]'"


def openspiel_game(
    name: str, *, batch: int = 1, seed: int = 0, first_game: int = 0, **options: Any
) -> SingleGameBatch:
    """Makes a batch of an OpenSpiel game by its OpenSpiel name. Options are its parameters and ``max_plies``."""
    factory = BatchFactory(OpenSpielGame)
    return factory(batch=batch, seed=seed, first_game=first_game, game=name, **options)


class OpenSpielGame(SingleGame):
    """One OpenSpiel state. Its score is the sum of its rewards, which OpenSpiel calls returns."""

    scored_by_rewards = True

    def __init__(self, *, game: str, **parameters: Any) -> None:
        self._spiel = need("pyspiel", INSTALL)
        self._game = _load(self._spiel, game, parameters)
        kind = self._game.get_type()
        self._need_playable(kind, game)
        self.name = f"openspiel:{game}"
        self.seats = self._game.num_players()
        self.num_actions = self._game.num_distinct_actions()
        self.simultaneous = kind.dynamics == self._spiel.GameType.Dynamics.SIMULTANEOUS
        self.zero_sum = kind.utility == self._spiel.GameType.Utility.ZERO_SUM
        self._by_observation = kind.provides_observation_tensor
        self._by_history = kind.provides_information_state_string
        tells = self._by_history or kind.provides_observation_string
        self._is_open = kind.information == self._spiel.GameType.Information.PERFECT_INFORMATION or not tells
        shape = (
            self._game.observation_tensor_shape()
            if self._by_observation
            else self._game.information_state_tensor_shape()
        )
        self.observation = ObservationSpec(tuple(shape), np.dtype(np.float32))

    def reset(self, rng: KeyedRandom) -> None:
        self._state = self._game.new_initial_state()
        self._returns = [0.0] * self.seats
        self.to_move = 0
        self._settle(rng)

    def acting(self) -> Sequence[int]:
        if not self._state.is_simultaneous_node():
            return (self.to_move,)
        return [seat for seat in range(self.seats) if self._state.legal_actions(seat)]

    def legal(self, seat: int) -> list[int]:
        return list(self._state.legal_actions(seat))

    def play(self, action: int | tuple[int, ...], rng: KeyedRandom) -> list[float]:
        if self._state.is_simultaneous_node():
            assert isinstance(action, tuple)
            chosen = dict(zip(self.acting(), action, strict=True))
            self._state.apply_actions([chosen.get(seat, 0) for seat in range(self.seats)])
        else:
            self._state.apply_action(action[0] if isinstance(action, tuple) else action)
        self._settle(rng)
        before, self._returns = self._returns, [float(value) for value in self._state.returns()]
        return [now - then for now, then in zip(self._returns, before, strict=True)]

    def observe(self, seat: int) -> Array:
        state = self._state
        tensor = (
            state.observation_tensor(seat) if self._by_observation else state.information_state_tensor(seat)
        )
        return np.array(tensor, np.float32).reshape(self.observation.shape)

    def outcome(self) -> Outcome | None:
        return Outcome() if self._state.is_terminal() else None

    def copy(self) -> Self:
        other = copy(self)
        other._state = self._state.clone()
        return other

    def move_name(self, action: int) -> str:
        return str(self._state.action_to_string(self.to_move, action)).strip()

    def __str__(self) -> str:
        """Draws the state. In games of hidden information, it draws what the seat to move knows, until the game is
        over."""
        if self._is_open or self._state.is_terminal() or self._state.is_simultaneous_node():
            return str(self._state).rstrip("\n")
        return str(self._tell(self.to_move)).rstrip("\n")

    def _tell(self, seat: int) -> str:
        state = self._state
        return str(
            state.information_state_string(seat) if self._by_history else state.observation_string(seat)
        )

    def _settle(self, rng: KeyedRandom) -> None:
        """Draws the chance events before the next decision."""
        while self._state.is_chance_node():
            outcomes = self._state.chance_outcomes()
            self._state.apply_action(_draw(outcomes, rng.uniform()))
        if self._state.is_terminal():
            self.to_move = (self.to_move + 1) % self.seats
        elif not self._state.is_simultaneous_node():
            self.to_move = self._state.current_player()

    def _need_playable(self, kind: Any, game: str) -> None:
        types = self._spiel.GameType
        if kind.dynamics not in (types.Dynamics.SEQUENTIAL, types.Dynamics.SIMULTANEOUS):
            raise ConfigError(f"OpenSpiel's {game} is a mean-field game, which has no seats to play from")
        if kind.chance_mode == types.ChanceMode.SAMPLED_STOCHASTIC:
            raise ConfigError(
                f"OpenSpiel's {game} draws its chance events itself, so its games cannot be repeated"
            )
        if not (kind.provides_observation_tensor or kind.provides_information_state_tensor):
            raise ConfigError(f"OpenSpiel's {game} shows its players no tensor, so nothing can learn from it")


def _load(spiel: Any, name: str, parameters: dict[str, Any]) -> Any:
    known = list(spiel.registered_names())
    if name not in known:
        near = did_you_mean(name, known)
        raise UnknownGameError(f"OpenSpiel has no game {name!r}{near}; pyspiel.registered_names() lists all")
    kinds = {kind.short_name: kind for kind in spiel.registered_games()}
    check_options(f"openspiel:{name}", parameters, kinds[name].parameter_specification)
    try:
        return spiel.load_game(name, parameters)
    except spiel.SpielError as error:
        raise ConfigError(f"OpenSpiel refuses {name} with {parameters}: {error}") from error


def _draw(outcomes: list[tuple[int, float]], number: float) -> int:
    """Picks the outcome for a number in [0, 1)."""
    for outcome, probability in outcomes:
        number -= probability
        if number < 0:
            return outcome
    return outcomes[-1][0]  # the probabilities add up to 1 only approximately
