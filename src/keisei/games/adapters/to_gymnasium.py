"""Keisei's games as Gymnasium environments.

``to_gymnasium`` gives one game with one learner. Its opponents are part of the environment. ``to_gymnasium_vector``
gives the whole batch with the learner in every seat, as in self-play.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from keisei.errors import ActionError, ConfigError, IllegalActionError
from keisei.games.adapters.spaces import SEED_LIMIT, as_numbers, observation_box
from keisei.games.contract import Array, BoolArray, FinalRows, Game
from keisei.games.offers import ShowsText
from keisei.games.options import whole_number
from keisei.games.pictures import last_picture, picture
from keisei.games.registry import GameSource, make_game

Opponent: TypeAlias = Callable[[Array, BoolArray], Array]
"""Takes observations [rows, *shape] and legal masks [rows, num_actions]; returns one action for each row."""


def to_gymnasium(
    game: GameSource,
    *,
    seat: int = 0,
    opponent: Opponent | None = None,
    illegal_action: Literal["lose", "error"] = "lose",
    seed: int = 0,
    **options: Any,
) -> SeatEnv:
    """Makes a ``gymnasium.Env`` in which the learner plays ``seat``.

    ``opponent`` plays the other seats; without one, they play at random. An illegal action loses the game with a
    reward of -1, as in PettingZoo's classic games, or raises an error with ``"error"``. The legal actions are in
    ``info["action_mask"]`` and in ``env.action_masks()``.
    """
    return SeatEnv(game, seat, opponent, illegal_action, seed, options)


class SeatEnv(gymnasium.Env[Array, np.int64]):
    """One seat of one game."""

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012

    def __init__(
        self,
        source: GameSource,
        seat: int,
        opponent: Opponent | None,
        illegal_action: Literal["lose", "error"],
        seed: int,
        options: dict[str, Any],
    ) -> None:
        self._source, self._options = source, options
        self._opponent = opponent
        if illegal_action not in ("lose", "error"):
            raise ConfigError(f"illegal_action must be 'lose' or 'error', got {illegal_action!r}")
        self._illegal_action = illegal_action
        self._seed, self._resets = seed, 0
        self._game = make_game(source, seed=seed, **options)
        spec = self._game.spec
        self._seat = whole_number("seat", seat, 0, spec.seats - 1)
        self.observation_space = observation_box(spec)
        self.action_space = spaces.Discrete(spec.num_actions)
        self.render_mode = "ansi"
        self._mask: BoolArray = np.zeros(spec.num_actions, np.bool_)
        self._over = True
        self._ended = False
        """True if the game itself has ended and restarted; an illegal action ends the episode, not the game."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._seed, self._resets = seed % SEED_LIMIT, 0
        # Each reset is another game of the same seed.
        self._game = make_game(self._source, seed=self._seed, first_game=self._resets, **self._options)
        self._resets += 1
        if isinstance(self._game, ShowsText):
            self._game.keep_last_positions()
        self._ended = False
        while not self._my_turn():
            self._play_row(None)  # others may end a game before this seat acts; then the next one is played
        self._over = False
        self._look()
        return self._seen.copy(), self._info()

    def step(self, action: int | np.int64) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        if self._over:
            raise ActionError("the game is over, or was never begun; call reset() first")
        if not self.action_space.contains(action):
            last = self._game.spec.num_actions - 1
            raise ActionError(f"an action is a whole number in 0 … {last}, got {action!r}")
        if not self._mask[action]:
            return self._refuse(int(action))
        reward, finished = self._play_row(int(action))
        while not finished and not self._my_turn():
            more, finished = self._play_row(None)
            reward += more
        if not finished:
            self._look()
        self._over = self._ended = finished
        return self._seen.copy(), reward, self._terminated, finished and not self._terminated, self._info()

    def action_masks(self) -> BoolArray:
        """Gets the legal actions. sb3-contrib's MaskablePPO calls this method by its name."""
        return self._mask.copy()

    def render(self) -> str:
        """Draws the position; after the end the last one."""
        return last_picture(self._game) if self._ended else picture(self._game)

    def _refuse(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        if self._illegal_action == "error":
            raise IllegalActionError(
                f"action {action} is not legal here; info['action_mask'] marks the legal ones"
            )
        self._over = True
        return self._seen.copy(), -1.0, True, False, {**self._info(), "illegal_action": True}

    def _my_turn(self) -> bool:
        return self._seat in self._game.rows().seat

    def _look(self) -> None:
        row = int(np.flatnonzero(self._game.rows().seat == self._seat)[0])
        self._seen, self._mask = as_numbers(self._game.observe()[row]), self._game.legal()[row]
        self._terminated = False

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._mask.astype(np.int8)}

    def _play_row(self, action: int | None) -> tuple[float, bool]:
        """Makes one step of the game. This seat plays ``action`` if it acts, and opponents play theirs."""
        game = self._game
        if self._opponent is None:
            actions = game.random_actions().copy()
        else:
            actions = np.asarray(self._opponent(game.observe(), game.legal())).copy()
        if action is not None:
            actions[game.rows().seat == self._seat] = action
        step = game.step(actions)
        finished = bool(step.done[0])
        if finished:
            self._terminated = bool(step.terminated[0])
            self._see_the_end(step.final)
        return float(step.rewards[0, self._seat]), finished

    def _see_the_end(self, final: FinalRows) -> None:
        """Shows the last position if this seat would act in it, else that of its last decision."""
        mine = np.flatnonzero(final.seat == self._seat)
        if len(mine):
            observations, legal = self._game.unpack(final.packed[mine[:1]])
            self._seen, self._mask = as_numbers(observations[0]), legal[0]


def to_gymnasium_vector(game: GameSource, *, batch: int = 1, seed: int = 0, **options: Any) -> BatchVectorEnv:
    """Makes a ``gymnasium.vector.VectorEnv`` of the batch, for self-play.

    Every decision row is a sub-environment: one for each game in turn-based games, one for each game and seat in
    simultaneous games. Observations are those of the seat that must act now, ``info["seat"]``. Rewards are those of
    the seat that has just acted; ``info["rewards"]`` has those of all seats. Finished games restart in the same
    step.
    """
    return BatchVectorEnv(game, batch, seed, options)


class BatchVectorEnv(VectorEnv[Array, Array, Array]):
    """All games of a batch, stepped together."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": ["ansi"]}  # noqa: RUF012

    def __init__(self, source: GameSource, batch: int, seed: int, options: dict[str, Any]) -> None:
        self._source, self._options = source, options
        self._seed, self._resets = seed, 0
        self.game: Game = make_game(source, batch=batch, seed=seed, **options)
        spec = self.game.spec
        self._per_game = spec.seats if spec.simultaneous else 1
        self.num_envs = batch * self._per_game
        self.single_observation_space = observation_box(spec)
        self.single_action_space = spaces.Discrete(spec.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.render_mode = "ansi"
        self._need_all_rows()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._seed, self._resets = seed % SEED_LIMIT, 0
        batch = self.game.batch
        first = self._resets * batch
        self.game = make_game(self._source, batch=batch, seed=self._seed, first_game=first, **self._options)
        self._resets += 1
        return as_numbers(self.game.observe()), self._infos()

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        rows = self.game.rows()
        step = self.game.step(actions)
        self._need_all_rows()
        infos = self._infos()
        infos["rewards"] = step.rewards[rows.game]
        if step.done.any():
            infos.update(self._final_infos(step.final, step.done[rows.game], rows.seat))
            infos["scores"] = step.scores[rows.game]
        rewards = step.rewards[rows.game, rows.seat]
        return (
            as_numbers(self.game.observe()),
            rewards,
            step.terminated[rows.game],
            step.truncated[rows.game],
            infos,
        )

    def render(self) -> tuple[str, ...]:
        return tuple(picture(self.game, index) for index in range(self.game.batch))

    def _infos(self) -> dict[str, Any]:
        return {"action_mask": self.game.legal().astype(np.int8), "seat": self.game.rows().seat.copy()}

    def _final_infos(self, final: FinalRows, done: BoolArray, seats: Array) -> dict[str, Any]:
        """Makes the infos with the last positions of finished games, in the form of Gymnasium's same-step mode."""
        observations, legal = self.game.unpack(final.packed)
        last = np.full(self.num_envs, None, dtype=object)
        masks = np.zeros((self.num_envs, self.game.spec.num_actions), np.int8)
        who = np.full(self.num_envs, -1, np.int32)
        for row, (game, seat) in enumerate(zip(final.game, final.seat, strict=True)):
            env = int(game) * self._per_game + (int(seat) if self._per_game > 1 else 0)
            last[env], masks[env], who[env] = as_numbers(observations[row]).copy(), legal[row], seat
        inner = {"action_mask": masks, "_action_mask": done.copy(), "seat": who, "_seat": done.copy()}
        return {"final_obs": last, "_final_obs": done.copy(), "final_info": inner, "_final_info": done.copy()}

    def _need_all_rows(self) -> None:
        if len(self.game.rows()) != self.num_envs:
            raise ConfigError(
                f"{self.game.spec.name} does not have all seats act in every step, so that it makes "
                f"no vector environment of a fixed size; use to_gymnasium for one of its seats"
            )
