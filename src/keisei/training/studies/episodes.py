"""Episodes of a run's agents, to look at: the pictures of a world, and what agents did in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from keisei.errors import ConfigError
from keisei.games.contract import FloatArray, IntArray
from keisei.games.registry import make_game
from keisei.games.worlds.colours import legend_of
from keisei.games.worlds.entities import Colour
from keisei.games.worlds.environment import Environment
from keisei.games.worlds.picture import Shot, shot_of
from keisei.policies.contract import Policy, Situation
from keisei.policies.players.finding import game_of
from keisei.policies.players.saved_player import find_player

__all__ = ["Episode", "episode_of", "play_turns"]


@dataclass(frozen=True)
class Episode:
    """What an animation of an episode shows."""

    shots: Sequence[Shot]
    """A picture of each turn, the beginning included."""
    legend: Sequence[tuple[str, Colour]]
    """The names and colours of what is in the world, agents apart."""


def episode_of(run: str, *, root: Path, seed: int = 0, turns: int | None = None) -> Episode:
    """Plays one world with the agents of a run. By default that is a whole episode."""
    game = game_of(run, root)
    world = make_game(game.name, batch=1, seed=seed, **dict(game.options))
    if not isinstance(world, Environment):
        raise ConfigError(
            f"{run} plays {game.name}, which is no world of cells, so there is nothing to draw; keisei play shows it"
        )
    policy = find_player(run, root).policy(world.spec)
    return Episode(list(_shots(world, policy, seed, turns)), legend_of(world.world.kinds))


def _shots(world: Environment, policy: Policy, seed: int, turns: int | None) -> Iterator[Shot]:
    """Yields a picture of each turn. After the last turn of an episode the next one has begun, so its last picture is
    that of the turn before, with the final returns."""
    returns = np.zeros(world.spec.seats)
    shot = shot_of(world.world, 0, returns.tolist())
    yield shot
    for number, (_, _, rewards) in enumerate(play_turns(world, policy, seed), start=1):
        returns += rewards[0]
        turn = int(world.rows().ply[0])
        shot = shot_of(world.world, turn, returns.tolist()) if turn else _ended(shot, returns.tolist())
        yield shot
        if turn == 0:
            returns[:] = 0
        if number == turns or (turns is None and turn == 0):
            return


def _ended(before: Shot, returns: list[float]) -> Shot:
    return replace(before, turn=before.turn + 1, returns=tuple(returns))


def play_turns(
    world: Environment, policy: Policy, seed: int
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Plays worlds without end. Yields the places (game · seats + seat) that acted, what they did, and all rewards."""
    situation = Situation(world, seed, 0)
    while True:
        rows = situation.rows
        actions = policy.act(situation).actions
        step = world.step(actions)
        yield np.asarray(rows.game * world.spec.seats + rows.seat), actions, step.rewards
        situation.advance()
