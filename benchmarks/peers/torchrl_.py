"""TorchRL's collectors: one in this process, or one in each of several processes, the policy inside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from tensordict.nn import TensorDictModule
from torch import Tensor, nn
from torchrl.collectors import Collector as DirectCollector
from torchrl.collectors import MultiSyncCollector
from torchrl.envs import GymWrapper, SerialEnv

from benchmarks.measure import rate_of
from benchmarks.peers import Peer
from benchmarks.peers.environments import ROLLOUT, chooser, environment


class _Policy(nn.Module):
    """The policy of all peers, with tensors as inputs and outputs."""

    def __init__(self, peer: Peer) -> None:
        super().__init__()
        self._choose = chooser(peer)

    def forward(self, planes: Tensor, mask: Tensor) -> Tensor:
        actions = self._choose(planes.numpy(), mask.numpy().view(bool))
        return torch.from_numpy(actions.astype(np.int64))


def _policy(peer: Peer) -> TensorDictModule:
    return TensorDictModule(_Policy(peer), in_keys=["planes", "mask"], out_keys=["action"])


def _one_game(game: str) -> GymWrapper:
    return GymWrapper(environment(game)(), categorical_action_encoding=True)


def _games(peer: Peer) -> SerialEnv:
    return SerialEnv(peer.games, partial(_one_game, peer.game))


class Collector:
    """A contender."""

    def __init__(self, peer: Peer) -> None:
        frames = ROLLOUT * peer.games * peer.workers
        games: Callable[[], SerialEnv] = partial(_games, peer)
        common: dict[str, Any] = {
            "frames_per_batch": frames,
            "total_frames": -1,
            "auto_register_policy_transforms": False,  # The policy has no state that needs it.
        }
        if peer.style == "inprocess":
            self._collector: Any = DirectCollector(games, _policy(peer), **common)
        else:
            # Each process builds its own policy, so the network is not sent.
            factory = partial(_policy, peer)
            self._collector = MultiSyncCollector([games] * peer.workers, policy_factory=factory, **common)
        self._batches = iter(self._collector)

    def __call__(self, seconds: float) -> float:
        return rate_of(lambda: int(next(self._batches).numel()), seconds)

    def close(self) -> None:
        self._collector.shutdown()
