"""The speed of Ludo on one core: the batch, its heuristic player, and a loop over one ``LudoBoard``."""

from __future__ import annotations

import random

import numpy as np

from benchmarks.measure import Contender, rate_of
from keisei.games import make_game
from keisei.games.ludo import LudoBoard
from keisei.games.offers import HasHeuristic

BATCH = 256

CONTENDERS = {
    "batch": "the batch: rows, observation, mask, packed rows and step",
    "heuristic": "decisions of the heuristic player",
    "board": "a loop over LudoBoard: legal actions and step",
}


def contenders() -> dict[str, Contender]:
    """Gives what is measured, by the names of ``CONTENDERS``."""
    return {"batch": _batch(), "heuristic": _heuristic(), "board": _board}


def _batch() -> Contender:
    game = make_game("ludo", batch=BATCH, seed=1)
    mask, packed = np.empty((BATCH, game.spec.num_actions), np.bool_), game.pack()
    seen = game.observe()

    def play() -> int:
        for _ in range(4):
            game.rows()
            game.observe(out=seen)
            game.legal(out=mask)
            game.pack(out=packed)
            game.step(game.random_actions())
        return 4 * BATCH

    return lambda seconds: rate_of(play, seconds)


def _heuristic() -> Contender:
    game = make_game("ludo", batch=BATCH, seed=1)
    assert isinstance(game, HasHeuristic)
    keys = np.arange(BATCH, dtype=np.uint64)
    for _ in range(100):
        game.step(game.random_actions())

    def decide() -> int:
        game.heuristic_actions(None, keys)
        return BATCH

    return lambda seconds: rate_of(decide, seconds)


def _board(seconds: float) -> float:
    rng, boards = random.Random(1), [LudoBoard(seed=1)]

    def play() -> int:
        for _ in range(64):
            board = boards[-1]
            board.play(rng.choice(board.legal_actions()))
            if board.winner is not None:
                boards[:] = [LudoBoard(seed=rng.getrandbits(32))]
        return 64

    return rate_of(play, seconds)
