"""Arrays for the caller: a step while its games are played, and ``out=`` memory."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from keisei.games.contract import ByteArray, FinalRows, GameSpec, Step, out_array

T = TypeVar("T", bound=np.generic)


class StepBuilder:
    """The arrays of a ``Step`` while the games are played one by one."""

    def __init__(self, batch: int, spec: GameSpec) -> None:
        self.rewards = np.zeros((batch, spec.seats), np.float32)
        self.terminated = np.zeros(batch, np.bool_)
        self.truncated = np.zeros(batch, np.bool_)
        self.ending = np.zeros(batch, np.uint8)
        self.scores = np.zeros((batch, spec.seats), np.float32)
        self.plies = np.zeros(batch, np.int32)
        self._final_game: list[int] = []
        self._final_seat: list[int] = []
        self._final_packed = [np.zeros((0, spec.packed_bytes), np.uint8)]

    def add_final(self, game: int, seats: list[int], packed: ByteArray) -> None:
        self._final_game += [game] * len(seats)
        self._final_seat += seats
        self._final_packed.append(packed)

    def build(self) -> Step:
        final = FinalRows(
            game=np.array(self._final_game, np.int32),
            seat=np.array(self._final_seat, np.int32),
            packed=np.concatenate(self._final_packed),
        )
        return Step(
            self.rewards, self.terminated, self.truncated, self.ending, self.scores, self.plies, final
        )


def into(out: NDArray[T] | None, value: NDArray[T], method: str) -> NDArray[T]:
    """Copies ``value`` into the caller's array, or into a new one that the caller may change."""
    target = out_array(out, value.shape, value.dtype, method)
    np.copyto(target, value)
    return target
