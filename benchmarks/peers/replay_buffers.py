"""Replay buffers of other libraries, filled with the same decisions: planes and masks of both positions, the action,
the reward and the end. Each is used as its own documentation does.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.peers import PeerMissingError
from keisei.games.contract import Array, GameSpec

__all__ = ["BUFFERS", "BufferPeer", "Decisions", "PeerBuffer"]


@dataclass(frozen=True)
class Decisions:
    """Decisions as learners see them, [steps, games, …] each."""

    planes: Array
    mask: Array
    next_planes: Array
    next_mask: Array
    action: Array
    reward: Array
    done: Array

    @property
    def steps(self) -> int:
        return len(self.action)

    @property
    def games(self) -> int:
        return int(self.action.shape[1])

    def flat(self) -> dict[str, Array]:
        """[steps * games, …] each."""
        return {
            name: np.ascontiguousarray(column.reshape(-1, *column.shape[2:]))
            for name, column in vars(self).items()
        }


class PeerBuffer(Protocol):
    def insert(self, decisions: Decisions) -> None: ...
    def sample(self, size: int) -> None:
        """Draws decisions, and sets new priorities if it has any."""
        ...

    @property
    def nbytes(self) -> int: ...


class Sb3Buffer:
    """Stable-Baselines3 takes one step of all games at a time."""

    def __init__(self, spec: GameSpec, capacity: int, games: int, prioritised: bool) -> None:
        from gymnasium.spaces import Box, Dict, Discrete
        from stable_baselines3.common.buffers import DictReplayBuffer

        observation = spec.observation
        space = Dict(
            {
                "planes": Box(0, 255, observation.shape, observation.dtype.type),
                "mask": Box(0, 1, (spec.num_actions,), np.bool_),
            }
        )
        self._buffer = DictReplayBuffer(
            capacity,
            space,
            Discrete(spec.num_actions),
            device="cpu",
            n_envs=games,
            handle_timeout_termination=False,
        )
        self._infos: list[dict[str, Any]] = [{} for _ in range(games)]

    def insert(self, decisions: Decisions) -> None:
        for step in range(decisions.steps):
            self._buffer.add(
                {"planes": decisions.planes[step], "mask": decisions.mask[step]},
                {"planes": decisions.next_planes[step], "mask": decisions.next_mask[step]},
                decisions.action[step],
                decisions.reward[step],
                decisions.done[step],
                self._infos,
            )

    def sample(self, size: int) -> None:
        self._buffer.sample(size)

    @property
    def nbytes(self) -> int:
        buffer: Any = self._buffer
        arrays = [*buffer.observations.values(), *buffer.next_observations.values()]
        return sum(a.nbytes for a in [*arrays, buffer.actions, buffer.rewards, buffer.dones, buffer.timeouts])


class TorchRlBuffer:
    """TorchRL takes and gives tensor dicts."""

    def __init__(self, spec: GameSpec, capacity: int, games: int, prioritised: bool) -> None:
        from torchrl.data import LazyTensorStorage, TensorDictPrioritizedReplayBuffer, TensorDictReplayBuffer

        storage = LazyTensorStorage(capacity)
        self._prioritised = prioritised
        self._buffer: Any = (
            TensorDictPrioritizedReplayBuffer(alpha=0.6, beta=0.4, storage=storage)
            if prioritised
            else TensorDictReplayBuffer(storage=storage)
        )
        self._storage: Any = storage
        self._as_tensors: tuple[Decisions, Any] | None = None

    def insert(self, decisions: Decisions) -> None:
        if self._as_tensors is None or self._as_tensors[0] is not decisions:
            from tensordict import TensorDict

            columns = decisions.flat()
            self._as_tensors = decisions, TensorDict(columns, batch_size=[len(columns["action"])])
        self._buffer.extend(self._as_tensors[1])

    def sample(self, size: int) -> None:
        import torch

        drawn = self._buffer.sample(size)
        if self._prioritised:
            drawn["td_error"] = torch.rand(size)
            self._buffer.update_tensordict_priority(drawn)

    @property
    def nbytes(self) -> int:
        stored = self._storage[:]
        return int(sum(tensor.nbytes for tensor in stored.values())) * (self._storage.max_size // len(stored))


class CpprbBuffer:
    """cpprb takes columns of any length."""

    def __init__(self, spec: GameSpec, capacity: int, games: int, prioritised: bool) -> None:
        from cpprb import PrioritizedReplayBuffer, ReplayBuffer

        planes = {"shape": spec.observation.shape, "dtype": spec.observation.dtype}
        mask = {"shape": spec.num_actions, "dtype": np.bool_}
        fields = {
            "planes": planes,
            "mask": mask,
            "next_planes": planes,
            "next_mask": mask,
            "action": {"dtype": np.int32},
            "reward": {"dtype": np.float32},
            "done": {"dtype": np.bool_},
        }
        self._prioritised = prioritised
        made: Any = PrioritizedReplayBuffer if prioritised else ReplayBuffer
        self._buffer: Any = made(capacity, fields, **({"alpha": 0.6} if prioritised else {}))
        self._capacity = capacity
        self._flat: tuple[Decisions, Mapping[str, Array]] | None = None
        self._rng = np.random.default_rng(1)

    def insert(self, decisions: Decisions) -> None:
        if self._flat is None or self._flat[0] is not decisions:
            self._flat = decisions, decisions.flat()
        self._buffer.add(**self._flat[1])

    def sample(self, size: int) -> None:
        if not self._prioritised:
            self._buffer.sample(size)
            return
        drawn = self._buffer.sample(size, beta=0.4)
        self._buffer.update_priorities(drawn["indexes"], self._rng.random(size))

    @property
    def nbytes(self) -> int:
        stored = self._buffer.get_all_transitions()
        each = sum(column.nbytes for column in stored.values()) / len(stored["action"])
        return int(each * self._capacity)


@dataclass(frozen=True)
class BufferPeer:
    name: str
    package: str
    build: Callable[[GameSpec, int, int, bool], PeerBuffer]
    prioritised: bool = False

    def make(self, spec: GameSpec, capacity: int, games: int) -> PeerBuffer:
        if importlib.util.find_spec(self.package) is None:
            raise PeerMissingError(f"{self.package} is not installed: pip install 'keisei[peers]'")
        try:
            return self.build(spec, capacity, games, self.prioritised)
        except Exception as error:  # a peer that does not run here is named, and the rest is measured
            raise PeerMissingError(f"{type(error).__name__}: {error}") from error


BUFFERS = (
    BufferPeer("SB3", "stable_baselines3", Sb3Buffer),
    BufferPeer("TorchRL", "torchrl", TorchRlBuffer),
    BufferPeer("cpprb", "cpprb", CpprbBuffer),
    BufferPeer("TorchRL", "torchrl", TorchRlBuffer, prioritised=True),
    BufferPeer("cpprb", "cpprb", CpprbBuffer, prioritised=True),
)
