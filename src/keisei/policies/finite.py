"""Who is to blame if a network's output is not finite: the game, or the weights."""

from __future__ import annotations

import numpy as np

from keisei.errors import ContractError, LearningError
from keisei.games.contract import Array, FloatArray, GameSpec


def blame_observations(spec: GameSpec, observations: Array) -> None:
    """Raises ``ContractError`` if observations [rows, *shape] hold NaN or infinity. Call it only after an output was
    not finite, since it reads every number."""
    broken = np.argwhere(~np.isfinite(observations))
    if not len(broken):
        return
    row, *place = broken[0].tolist()
    number, rows = observations[tuple(broken[0])], len(np.unique(broken[:, 0]))
    raise ContractError(
        f"{spec.name} gives observations that are not finite: {number} in row {row}{_named(place)}; in all "
        f"{len(broken)} such numbers in {rows} of {len(observations)} rows. Mend observe() of the game; check_game "
        f"finds such positions"
    )


def blame_rewards(spec: GameSpec, rewards: FloatArray, loss: float, when: str) -> None:
    """Raises ``LearningError`` if rewards [rows], or sums of them, are not finite. ``when`` names the moment."""
    if not np.isfinite(rewards).all():
        raise LearningError(
            f"the loss is {loss} in {when}, since {spec.name} pays rewards that are not finite: mend what play() "
            f"returns; check_game finds such steps"
        )


def _named(place: list[int]) -> str:
    """Names a number of an observation: by its plane and square, or by its index."""
    if len(place) > 1:
        return f", plane {place[0]}, square {tuple(place[1:])}"
    return f", number {place[0]}" if place else ""
