"""Who is to blame if a network's output is not finite: the game, or the weights."""

from __future__ import annotations

import numpy as np

from keisei.errors import ContractError
from keisei.games.contract import Array, GameSpec


def blame_observations(spec: GameSpec, observations: Array) -> None:
    """Raises ``ContractError`` if observations [rows, *shape] hold NaN or infinity. Call it only after an output was
    not finite, since it reads every number."""
    broken = np.argwhere(~np.isfinite(observations))
    if not len(broken):
        return
    row, *place = (int(index) for index in broken[0])
    where = f"plane {place[0]}, square {tuple(place[1:])}" if len(place) > 1 else f"number {place[0]}"
    raise ContractError(
        f"{spec.name} gives observations that are not finite: {observations[tuple(broken[0])]} in row {row}, {where}; "
        f"in all {len(broken)} such numbers in {len(np.unique(broken[:, 0]))} of {len(observations)} rows. Mend "
        f"observe() of the game; check_game finds such positions"
    )
