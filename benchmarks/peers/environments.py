"""The games and policies of the peers: the dummy game and Shogi as Gymnasium environments, one game each, and
policies over a vector of them. Observations are dicts of planes and mask, as those libraries need.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Discrete

from benchmarks.collect import MLP
from benchmarks.peers import Peer
from keisei.games import make_game
from keisei.games.contract import Array, BoolArray, IntArray
from keisei.games.dummy import ACTIONS, PLANES
from keisei.policies.networks import build_network
from keisei.policies.sampling import sample

EPISODE = 100
MAX_PLIES = 512
ROLLOUT = 32
"""Steps that the learner keeps before it would learn from them."""

Observation = dict[str, Array]
Chooser = Callable[[Array, BoolArray], IntArray]
"""Planes [n, …] and masks [n, actions] in; one action for each out."""


def _space(planes: tuple[int, ...]) -> Dict:
    return Dict({"planes": Box(0, 512, planes, np.float32), "mask": Box(0, 1, (ACTIONS,), np.int8)})


class DummyEnv(gymnasium.Env[Observation, int]):
    """``keisei.games.dummy`` for a single game."""

    def __init__(self) -> None:
        self.observation_space, self.action_space = _space(PLANES), Discrete(ACTIONS)
        self._planes = np.linspace(0, 1, int(np.prod(PLANES)), dtype=np.float32).reshape(PLANES)
        self._mask = np.zeros(ACTIONS, np.int8)
        self._mask[::2] = 1
        self._ply = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Observation, dict[str, Any]]:
        self._ply = 0
        return self._look(), {}

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._ply += 1
        return self._look(), float(action == 0), self._ply >= EPISODE, False, {}

    def _look(self) -> Observation:
        self._planes[0, 0, 0] = self._ply
        return {"planes": self._planes, "mask": self._mask}


class CshogiEnv(gymnasium.Env[Observation, int]):
    """Shogi by cshogi, with its move labels, planes and repetition rule."""

    def __init__(self) -> None:
        import cshogi
        from cshogi import dlshogi

        self._label, self._features = dlshogi.make_move_label, dlshogi.make_input_features
        self._no_repetition = cshogi.NOT_REPETITION
        self._board = cshogi.Board()
        self._split = dlshogi.FEATURES1_NUM
        shape = (dlshogi.FEATURES1_NUM + dlshogi.FEATURES2_NUM, 9, 9)
        self.observation_space, self.action_space = _space(shape), Discrete(ACTIONS)
        self._planes, self._mask = np.zeros(shape, np.float32), np.zeros(ACTIONS, np.int8)
        self._moves: dict[int, int] = {}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Observation, dict[str, Any]]:
        self._board.reset()
        return self._look(), {}

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        board = self._board
        board.push(self._moves[int(action)])
        seen = self._look()
        drawn = board.is_draw() != self._no_repetition
        mated = not self._moves
        return seen, float(mated), mated or drawn, board.move_number > MAX_PLIES, {}

    def _look(self) -> Observation:
        turn = self._board.turn
        self._moves = {self._label(move, turn): move for move in self._board.legal_moves}
        self._mask[:] = 0
        self._mask[list(self._moves)] = 1
        self._features(self._board, self._planes[: self._split], self._planes[self._split :])
        return {"planes": self._planes, "mask": self._mask}


def environment(game: str) -> Callable[[], gymnasium.Env[Observation, int]]:
    return CshogiEnv if game == "shogi" else DummyEnv


def chooser(peer: Peer) -> Chooser:
    if peer.policy == "network":
        return _network_chooser(peer)
    return _random_shogi if peer.game == "shogi" else _random_dummy


def _network_chooser(peer: Peer) -> Chooser:
    network = build_network(MLP, make_game(peer.game, batch=1, seed=1).spec, seed=1).eval()
    rng = np.random.default_rng(1)

    def choose(planes: Array, masks: BoolArray) -> IntArray:
        with torch.inference_mode():
            logits, _ = network(torch.from_numpy(planes))
        return sample(logits, masks, rng.random(len(planes)))[0]

    return choose


_rng = np.random.default_rng(1)
_fast_random = random.Random(1)


def _random_dummy(planes: Array, masks: BoolArray) -> IntArray:
    return _rng.integers(0, (ACTIONS + 1) // 2, len(masks), np.int32) * 2


def _random_shogi(planes: Array, masks: BoolArray) -> IntArray:
    # The mask of a finished game is empty until the vector resets it; its action is ignored.
    legal = (np.flatnonzero(mask) for mask in masks)
    return np.array([_fast_random.choice(row) if len(row) else 0 for row in legal], np.int32)


class Rollout:
    """The learner's storage, like the rollout buffers of those libraries."""

    def __init__(self, planes: tuple[int, ...], rows: int) -> None:
        self.planes = np.zeros((ROLLOUT, rows, *planes), np.float32)
        self.masks = np.zeros((ROLLOUT, rows, ACTIONS), np.int8)
        self.actions = np.zeros((ROLLOUT, rows), np.int32)
        self.rewards = np.zeros((ROLLOUT, rows), np.float32)
        self.ends = np.zeros((ROLLOUT, rows), np.bool_)
        self._step = 0

    def add_decisions(self, seen: Observation, actions: Array) -> None:
        step = self._step % ROLLOUT
        self.planes[step], self.masks[step], self.actions[step] = seen["planes"], seen["mask"], actions

    def add_outcome(self, rewards: Array, ends: Array) -> None:
        step = self._step % ROLLOUT
        self.rewards[step], self.ends[step] = rewards, ends
        self._step += 1
