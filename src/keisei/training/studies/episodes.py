"""Episodes of a run's agents, to look at: the frames of a world, and what agents did in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keisei.errors import ConfigError
from keisei.games.contract import ByteArray, FloatArray, IntArray
from keisei.games.registry import make_game
from keisei.games.worlds.environment import Environment
from keisei.games.worlds.picture import world_colours
from keisei.policies.contract import Policy, Situation
from keisei.training.players import game_of, load_trained

__all__ = ["episode_frames", "play_turns"]


def episode_frames(run: str, *, root: Path, seed: int = 0, turns: int | None = None) -> list[ByteArray]:
    """Plays one world with the agents of a run. Gives a picture of each turn, [height, width, 3]."""
    game = game_of(run, root)
    world = make_game(game.name, batch=1, seed=seed, **dict(game.options))
    if not isinstance(world, Environment):
        raise ConfigError(
            f"{run} plays {game.name}, which is no world of cells, so there is nothing to draw; keisei play shows it"
        )
    _, policy = load_trained(run, world.spec, root)
    frames = [world_colours(world.world)]
    for number, _ in enumerate(play_turns(world, policy, seed), start=1):
        frames.append(world_colours(world.world))
        if number == (turns or world.spec.max_plies):
            break
    return frames[:-1] if turns is None else frames  # after the last turn the next episode has begun


def play_turns(
    world: Environment, policy: Policy, seed: int
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Plays worlds on and on. Yields the places (game · seats + seat) that acted, what they did, and all rewards."""
    situation = Situation(world, seed, 0)
    while True:
        rows = situation.rows
        actions = policy.act(situation).actions
        step = world.step(actions)
        yield np.asarray(rows.game * world.spec.seats + rows.seat), actions, step.rewards
        situation.advance()
