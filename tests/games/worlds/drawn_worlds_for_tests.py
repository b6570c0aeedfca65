"""Worlds that are drawn as text, for tests of rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from keisei import make_game
from keisei.games.worlds import Environment


def rows_of(picture: str) -> list[str]:
    return [line.strip() for line in picture.strip().splitlines()]


def drawn(name: str, picture: str, *, batch: int = 1, **options: Any) -> Environment:
    """A game of one or more worlds that look like this. Agents have the seats in the order of reading."""
    rows = rows_of(picture)
    size = {"height": len(rows), "width": len(rows[0])}
    game = make_game(name, batch=batch, **size, **options)
    assert isinstance(game, Environment)
    draw(game, picture)
    return game


def draw(game: Environment, picture: str) -> None:
    """Makes all worlds of a game look like this. Agents stand on empty cells."""
    world, rows = game.world, rows_of(picture)
    numbers = {kind.letter: number for number, kind in enumerate(world.kinds)}
    world.cells[...] = 0
    for row, line in enumerate(rows):
        for column, letter in enumerate(line):
            number = numbers[letter]
            world.cells[:, row, column, world.kinds[number].layer] = number
    layer = game.agents[0].layer
    places = world.everywhere(np.arange(world.batch), world.interior)
    found = places[world.is_agent[world.observe(places, layer)]]
    world.agents[...] = found.reshape(world.batch, -1)
    assert game.text() == "\n".join(rows)
