"""A world of your own, on a page: mushrooms that spread, and agents that pick them.

A mushroom spreads to a cell beside it now and then. Agents that pick too many have none left later.

    python examples/own_world.py
"""

from __future__ import annotations

import numpy as np

import keisei
from keisei.games.worlds import (
    MOVES,
    Agent,
    Empty,
    Entity,
    Environment,
    OneHotObservationSpec,
    Wall,
    World,
    walled,
)
from keisei.games.worlds.world import Places


class Mushroom(Entity):
    """Spreads to the cells beside it."""

    value, passable, letter, colour = 1.0, True, "m", (190, 110, 60)

    def transition(self, world: World) -> None:
        """Changes all worlds of the batch at once: places are numbers, and arrays of them are handled together."""
        old = world.sample(Mushroom, 0.02)
        way = (4 * world.uniform_at(old)).astype(np.int64)
        beside = old + MOVES.offsets(world.span)[way]
        world.add(Mushroom, beside[world.observe(beside) == world.number(Empty)])


class Picker(Agent):
    """Walks, and picks what it walks on."""


class MushroomWood(Environment):
    """Agents pick mushrooms, and those that are left spread."""

    name = "mushroom-wood"

    def __init__(self, *, batch: int = 1, seed: int = 0, first_game: int = 0, agents: int = 3) -> None:
        seen = OneHotObservationSpec(radius=3)
        super().__init__(
            walled(12, 16),
            [Empty(), Wall(value=-0.1), Mushroom()],
            [Picker(seen, MOVES) for _ in range(agents)],
            max_turns=100,
            turns="at-once",
            batch=batch,
            seed=seed,
            first_game=first_game,
        )

    def populate(self, games: Places) -> None:
        """Every new world has 20 mushrooms."""
        self.world.add(Mushroom, self.world.scatter(games, self.world.vacant(), 20))


def main() -> None:
    keisei.check_game(MushroomWood, steps=100)
    game = keisei.make_game(MushroomWood, batch=64, seed=7)
    picked = []
    while len(picked) < 64:
        step = game.step(game.random_actions())
        picked += step.scores[step.done].sum(axis=1).tolist()
    print(game.text())  # type: ignore[attr-defined]  # noqa: T201
    print(f"Agents at random pick for {np.mean(picked):.1f} in a wood of 100 turns")  # noqa: T201


if __name__ == "__main__":
    main()
