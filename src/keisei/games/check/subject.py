"""The game under test, and how its checks fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from keisei.errors import ContractError, KeiseiError
from keisei.games.contract import Array, BoolArray, FinalRows, Game, IntArray, Step
from keisei.games.registry import GameSource, make_game

BATCH = 3
PATIENCE = 20
"""A batch must finish one game within this many times ``steps``."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The game under test. Each check builds its own batches."""

    source: GameSource
    seed: int
    options: dict[str, Any]

    def make(self, batch: int = BATCH, first_game: int = 0, seed: int | None = None) -> Game:
        seed = self.seed if seed is None else seed
        return make_game(self.source, batch=batch, seed=seed, first_game=first_game, **self.options)


@dataclass(frozen=True, slots=True)
class View:
    """A copy of everything that a caller can read from a batch."""

    game: IntArray
    seat: IntArray
    episode: IntArray
    ply: IntArray
    observations: Array
    legal: BoolArray
    packed: Array
    random_actions: IntArray

    @classmethod
    def of(cls, game: Game) -> View:
        rows = game.rows()
        return cls(
            game=rows.game.copy(),
            seat=rows.seat.copy(),
            episode=rows.episode.copy(),
            ply=rows.ply.copy(),
            observations=game.observe().copy(),
            legal=game.legal().copy(),
            packed=game.pack().copy(),
            random_actions=game.random_actions().copy(),
        )


def random_play(game: Game, steps: int) -> Iterator[tuple[View, Step]]:
    for _ in range(steps):
        view = View.of(game)
        yield view, game.step(view.random_actions)


def need(holds: object, message: str) -> None:
    if not holds:
        raise ContractError(message)


def need_array(name: str, array: object, shape: tuple[int, ...], dtype: Any) -> None:
    need(isinstance(array, np.ndarray), f"{name} must be a NumPy array, got {type(array).__name__}")
    assert isinstance(array, np.ndarray)
    need(array.shape == shape, f"{name} must have shape {shape}, got {array.shape}")
    need(array.dtype == np.dtype(dtype), f"{name} must be {np.dtype(dtype)}, got {array.dtype}")
    if np.issubdtype(array.dtype, np.floating):
        need(np.isfinite(array).all(), f"{name} holds numbers that are not finite")


def need_same(one: object, other: object, promise: str) -> None:
    """Compares two dataclasses of arrays field by field, to the bit."""
    for field in fields(one):  # type: ignore[arg-type]
        mine, yours = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, FinalRows):
            need_same(mine, yours, promise)
        elif mine.shape != yours.shape or mine.dtype != yours.dtype or mine.tobytes() != yours.tobytes():
            raise ContractError(f"{promise}, but {field.name} differs")


def need_refusal(game: Game, method: str, given: object, error: type[KeiseiError], what: str) -> None:
    """Checks that a method of a game refuses something with an error, and that the games do not change."""
    before, state = View.of(game), game.save()
    try:
        getattr(game, method)(given)
    except error:
        pass
    except Exception as other:
        raise ContractError(f"{method} must raise {error.__name__} for {what}, got {other!r}") from other
    else:
        raise ContractError(f"{method} must refuse {what} with {error.__name__}")
    promise = f"the games must be as they were after {method} refused {what}"
    need_same(View.of(game), before, promise)
    need(game.save() == state, f"{promise}, but save() differs")
