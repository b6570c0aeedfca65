"""Copies of PettingZoo environments, for players that look ahead.

``copy.deepcopy`` alone does not copy them: most are an ``EzPickle``, whose copy is a new environment without the moves
that were played.
"""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any, TypeAlias

import numpy as np
from gymnasium.utils import EzPickle
from pettingzoo import AECEnv, ParallelEnv

Dice: TypeAlias = np.random.Generator | np.random.RandomState | random.Random
"""A generator of random numbers that belongs to an environment."""


def copy_env(env: Any) -> tuple[Any, list[Dice]]:
    """Copies an environment with its whole state. Also returns the dice of the copy."""
    layers = _layers(env)
    memo: dict[int, Any] = {id(layer): object.__new__(type(layer)) for layer in layers}
    for layer in layers:
        vars(memo[id(layer)]).update(deepcopy(vars(layer), memo))
    copied = deepcopy(env, memo)
    return copied, [thing for thing in memo.values() if isinstance(thing, Dice)]


def _layers(env: Any) -> list[Any]:
    """Lists an environment and those that it wraps, except those that define their own copying."""
    layers = []
    while isinstance(env, AECEnv | ParallelEnv | EzPickle):
        if not hasattr(type(env), "__deepcopy__"):
            layers.append(env)
        env = vars(env).get("env")
    return layers


def throw(dice: Dice, word: int) -> None:
    """Reseeds dice from 64 random bits."""
    if isinstance(dice, np.random.Generator):
        fresh = type(dice.bit_generator)(word)
        dice.bit_generator.state = fresh.state
    elif isinstance(dice, np.random.RandomState):
        dice.seed(word & 0xFFFFFFFF)
    else:
        dice.seed(word)
