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

    def __init__(self, spec: GameSpec, minibatch: int | None = None) -> None:
        """Rows may be those of several minibatches of one size, ``minibatch``, one after the other. Each is then
        mirrored as it would be alone."""
        if spec.mirror is None:
            raise ConfigError(
                f"learner.mirror is true, but the rules of {spec.name} are not known to be symmetric; set it to false, "
                f"or give the game's spec a mirror"
            )
        self._axis = spec.mirror.axis + 1
        self._image = np.asarray(spec.mirror.actions, np.int32)
        self._minibatch = minibatch

    def chosen(self, count: int) -> BoolArray:
        """Says which of so many rows are mirrored: every second one of a minibatch."""
        places = np.arange(count)
        chosen: BoolArray = (places if self._minibatch is None else places % self._minibatch) % 2 == 1
        return chosen

    def mirror(self, observations: Array, legal: BoolArray, actions: IntArray) -> IntArray:
        """Turns the chosen rows of observations and masks into their mirror images, in place. Gives the actions."""
        chosen = self.chosen(len(actions))
        observations[chosen] = np.flip(observations[chosen], self._axis)
        legal[chosen] = legal[chosen][:, self._image]
        return np.where(chosen, self._image[actions], actions)
