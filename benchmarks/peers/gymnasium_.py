"""Gymnasium's vectors: all games in this process, or one process for each with observations in shared memory."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from benchmarks.measure import rate_of
from benchmarks.peers import Peer
from benchmarks.peers.environments import Rollout, chooser, environment


class Collector:
    """A contender."""

    def __init__(self, peer: Peer) -> None:
        self._rows = peer.workers * peer.games
        factories = [environment(peer.game)] * self._rows
        # Without Gymnasium's own copies; the rollout below makes the only one.
        self._vector: Any = (
            SyncVectorEnv(factories, copy=False)
            if peer.style == "inprocess"
            else AsyncVectorEnv(factories, shared_memory=True, copy=False)
        )
        self._choose = chooser(peer)
        self._rollout = Rollout(self._vector.single_observation_space["planes"].shape, self._rows)
        self._seen, _ = self._vector.reset()

    def __call__(self, seconds: float) -> float:
        return rate_of(self._step, seconds)

    def _step(self) -> int:
        seen = self._seen
        actions = self._choose(seen["planes"], seen["mask"].view(bool))
        self._rollout.add_decisions(seen, actions)
        self._seen, rewards, terminated, truncated, _ = self._vector.step(actions)
        self._rollout.add_outcome(rewards, terminated | truncated)
        return self._rows

    def close(self) -> None:
        self._vector.close()
