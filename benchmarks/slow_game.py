"""A game whose steps take a fixed time and no processor. With it, several nodes on one machine do not compete for
cores, so that the cost of the cluster itself can be measured."""

from __future__ import annotations

import time
from typing import Any

from keisei.games import make_game
from keisei.games.contract import Array, Step


class SlowGame:
    def __init__(self, *, batch: int, seed: int, first_game: int, step_seconds: float = 0.01) -> None:
        self._inner = make_game("tictactoe", batch=batch, seed=seed, first_game=first_game)
        self._step_seconds = step_seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def step(self, actions: Array) -> Step:
        time.sleep(self._step_seconds)
        return self._inner.step(actions)
