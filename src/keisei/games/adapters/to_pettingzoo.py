"""Keisei's games as PettingZoo environments.

Agents are named ``player_0`` …, and an observation is a dict of ``observation`` and ``action_mask``, as in
PettingZoo's own classic games. The contract shows a position only to the seats that act in it. Between its turns,
an agent sees the position of its last decision.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from keisei.errors import ActionError, ConfigError
from keisei.games.adapters.spaces import SEED_LIMIT, as_numbers, observation_box
from keisei.games.contract import Array, BoolArray, Game, GameSpec, Step
from keisei.games.offers import ShowsText
from keisei.games.options import MAX_GAME, whole_number
from keisei.games.pictures import last_picture, picture
from keisei.games.registry import GameSource, make_game, takes_option


def to_pettingzoo(
    game: GameSource, *, seed: int = 0, max_cycles: int | None = None, **options: Any
) -> KeiseiAECEnv:
    """Makes an AEC environment of a game. ``max_cycles`` truncates it after this many turns of every agent."""
    return KeiseiAECEnv(_Table(game, seed, max_cycles, options))


def to_pettingzoo_parallel(
    game: GameSource, *, seed: int = 0, max_cycles: int | None = None, **options: Any
) -> KeiseiParallelEnv:
    """Makes a parallel environment of a simultaneous game."""
    return KeiseiParallelEnv(_Table(game, seed, max_cycles, options))


class _Table:
    """The game of an environment, and the last observation of each agent."""

    def __init__(
        self, source: GameSource, seed: int, max_cycles: int | None, options: dict[str, Any]
    ) -> None:
        self._source, self._options = source, dict(options)
        self._seed, self._resets = seed, 0
        self.game = self._make()
        spec = self.game.spec
        if max_cycles is not None:
            self._options |= _limit(source, spec, max_cycles)
        self.agents = [f"player_{seat}" for seat in range(spec.seats)]
        mask = spaces.Box(0, 1, (spec.num_actions,), np.int8)
        self.observation_spaces = {
            agent: spaces.Dict({"observation": observation_box(spec), "action_mask": mask})
            for agent in self.agents
        }
        self.action_spaces = {agent: spaces.Discrete(spec.num_actions) for agent in self.agents}
        self._views: list[tuple[Array, BoolArray]] = []
        self._over = False

    def _make(self) -> Game:
        # Each reset is another game of the same seed.
        return make_game(self._source, seed=self._seed, first_game=self._resets, **self._options)

    def reset(self, seed: int | None) -> None:
        if seed is not None:
            self._seed, self._resets = seed % SEED_LIMIT, 0
        self.game = self._make()
        if isinstance(self.game, ShowsText):
            self.game.keep_last_positions()
        self._over = False
        self._resets += 1
        spec = self.game.spec
        blank = np.zeros(spec.observation.shape, spec.observation.dtype)
        self._views = [(blank, np.zeros(spec.num_actions, np.bool_))] * spec.seats
        self._look()

    def acting(self) -> list[int]:
        return [int(seat) for seat in self.game.rows().seat]

    def play(self, actions: list[int]) -> Step:
        """Plays one action for each seat that acts, and updates the observations."""
        step = self.game.step(np.array(actions, np.int64))
        nothing = np.zeros(self.game.spec.num_actions, np.bool_)
        self._views = [(observation, nothing) for observation, _ in self._views]
        self._over = bool(step.done[0])
        if self._over:
            observations, legal = self.game.unpack(step.final.packed)
            self._show(step.final.seat.tolist(), observations, legal)
        else:
            self._look()
        return step

    def picture(self) -> str:
        """Draws the position; after the end the last one, though the game itself has restarted."""
        return last_picture(self.game) if self._over else picture(self.game)

    def _look(self) -> None:
        self._show(self.acting(), self.game.observe(), self.game.legal())

    def _show(self, seats: list[int], observations: Array, legal: BoolArray) -> None:
        for row, seat in enumerate(seats):
            self._views[seat] = (observations[row], legal[row])

    def view(self, agent: str) -> dict[str, Array]:
        observation, mask = self._views[self.agents.index(agent)]
        return {"observation": as_numbers(observation).copy(), "action_mask": mask.astype(np.int8)}


def _limit(source: GameSource, spec: GameSpec, max_cycles: int) -> dict[str, int]:
    """Makes the option that ends a game after this many turns of every agent."""
    turns = 1 if spec.simultaneous else spec.seats
    cycles = whole_number("max_cycles", max_cycles, 1, MAX_GAME // turns)
    return {"max_turns": cycles} if takes_option(source, "max_turns") else {"max_plies": turns * cycles}


class KeiseiAECEnv(AECEnv):  # type: ignore[misc]
    """Agents act one after the other. In a simultaneous game, the step is made when all have acted."""

    def __init__(self, table: _Table) -> None:
        super().__init__()
        self._table = table
        self.metadata = {
            "render_modes": ["ansi"],
            "name": table.game.spec.name,
            "is_parallelizable": table.game.spec.simultaneous,
        }
        self.render_mode = "ansi"
        self.possible_agents = list(table.agents)
        self.agents = list(table.agents)
        self.observation_spaces = table.observation_spaces
        self.action_spaces = table.action_spaces
        self.agent_selection = table.agents[0]
        self._acting: list[int] = []
        self._given: list[int] = []

    def observation_space(self, agent: str) -> spaces.Dict:
        return self._table.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        return self._table.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self._table.reset(seed)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._begin_ply()

    def observe(self, agent: str) -> dict[str, Array]:
        return self._table.view(agent)

    def step(self, action: int | None) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if not self.action_space(agent).contains(action):
            last = self._table.game.spec.num_actions - 1
            raise ActionError(f"an action of {agent} is a whole number in 0 … {last}, got {action!r}")
        self._clear_rewards()
        given = [*self._given, int(action)]  # type: ignore[arg-type]
        if len(given) == len(self._acting):
            self._play(given)
        else:
            self._given = given
            self.agent_selection = self.possible_agents[self._acting[len(given)]]
        if agent in self._cumulative_rewards:
            self._cumulative_rewards[agent] = 0.0
        self._accumulate_rewards()

    def _play(self, actions: list[int]) -> None:
        try:
            step = self._table.play(actions)
        except ActionError:
            # No action was played, so the ply starts again with its first agent.
            self._begin_ply()
            raise
        self.rewards = dict(zip(self.possible_agents, step.rewards[0].tolist(), strict=True))
        if step.done[0]:
            self.terminations = dict.fromkeys(self.agents, bool(step.terminated[0]))
            self.truncations = dict.fromkeys(self.agents, bool(step.truncated[0]))
            self.agent_selection = self.possible_agents[int(step.final.seat[0])]
        else:
            self._begin_ply()

    def _begin_ply(self) -> None:
        self._acting = self._table.acting()
        self._given = []
        self.agent_selection = self.possible_agents[self._acting[0]]

    def render(self) -> str:
        return self._table.picture()

    def close(self) -> None:
        """There is nothing to close."""


class KeiseiParallelEnv(ParallelEnv):  # type: ignore[misc]
    """All agents of a simultaneous game act at once. Actions of agents that need not act are ignored."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "name": "keisei"}

    def __init__(self, table: _Table) -> None:
        spec = table.game.spec
        if not spec.simultaneous:
            raise ConfigError(
                f"{spec.name} is played in turns; use to_pettingzoo, which gives an AEC environment"
            )
        self._table = table
        self.render_mode = "ansi"
        self.possible_agents = list(table.agents)
        self.agents: list[str] = []
        self.observation_spaces = table.observation_spaces
        self.action_spaces = table.action_spaces

    def observation_space(self, agent: str) -> spaces.Dict:
        return self._table.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        return self._table.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        self._table.reset(seed)
        self.agents = list(self.possible_agents)
        return self._views(), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, int]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        acting = [self.possible_agents[seat] for seat in self._table.acting()]
        missing = [agent for agent in acting if agent not in actions]
        if missing or not self.agents:
            what = f"no action for {', '.join(missing)}" if self.agents else "the game is over; call reset()"
            raise ActionError(f"step takes one action for each agent: {what}")
        step = self._table.play([int(actions[agent]) for agent in acting])
        rewards = dict(zip(self.possible_agents, step.rewards[0].tolist(), strict=True))
        terminations = dict.fromkeys(self.agents, bool(step.terminated[0]))
        truncations = dict.fromkeys(self.agents, bool(step.truncated[0]))
        infos: dict[str, Any] = {agent: {} for agent in self.agents}
        views = self._views()
        if step.done[0]:
            self.agents = []
        return views, rewards, terminations, truncations, infos

    def _views(self) -> dict[str, Any]:
        return {agent: self._table.view(agent) for agent in self.agents}

    def render(self) -> str:
        return self._table.picture()

    def close(self) -> None:
        """There is nothing to close."""
