"""Learning from mirror images: where the rules are symmetric, half of the rows are seen as in a mirror.

The rows of a minibatch are in random order, so every second row is a random half.
"""

from __future__ import annotations

import numpy as np

from keisei.errors import ConfigError
from keisei.games.contract import Array, BoolArray, GameSpec, IntArray

__all__ = ["Mirroring"]


class Mirroring:
    """The mirror images of a game's rows. A game whose rules are not symmetric is refused."""

    def __init__(self, spec: GameSpec) -> None:
        if spec.mirror is None:
            raise ConfigError(
                f"learner.mirror is true, but the rules of {spec.name} are not known to be symmetric; set it to false, "
                f"or give the game's spec a mirror"
            )
        self._axis = spec.mirror.axis + 1
        self._image = np.asarray(spec.mirror.actions, np.int32)

    def every_second(self, observations: Array, legal: BoolArray, actions: IntArray) -> IntArray:
        """Turns every second row of observations and masks into its mirror image, in place. Gives the actions."""
        observations[1::2] = np.flip(observations[1::2], self._axis).copy()
        legal[1::2] = legal[1::2][:, self._image]
        mirrored = actions.copy()
        mirrored[1::2] = self._image[actions[1::2]]
        return mirrored
