"""Learning from mirror images: where the rules are symmetric, half of the rows are seen as in a mirror.

The rows of a minibatch are in random order, so every second row is a random half.
"""

from __future__ import annotations

import numpy as np

from keisei.errors import ConfigError
from keisei.games.contract import Array, BoolArray, GameSpec, IntArray, Mirror

__all__ = ["mirror_every_second", "mirror_of"]


def mirror_of(spec: GameSpec) -> Mirror:
    """Gives the game's symmetry, or refuses a game that has none."""
    if spec.mirror is None:
        raise ConfigError(
            f"learner.mirror is true, but the rules of {spec.name} are not known to be symmetric; set it to false, or "
            f"give the game's spec a mirror"
        )
    return spec.mirror


def mirror_every_second(mirror: Mirror, observations: Array, legal: BoolArray, actions: IntArray) -> IntArray:
    """Turns every second row of observations and masks into its mirror image, in place. Gives the actions."""
    image = np.asarray(mirror.actions, np.int32)
    observations[1::2] = np.flip(observations[1::2], mirror.axis + 1).copy()
    legal[1::2] = legal[1::2][:, image]
    mirrored = actions.copy()
    mirrored[1::2] = image[actions[1::2]]
    return mirrored
