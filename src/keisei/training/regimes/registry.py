"""Regimes by name: a learner, a buffer, the loop that joins them, and the policies that result.

A regime is one entry here and one file that reads like its paper. The code that builds, watches, saves and
evaluates a run uses this contract and knows no particular regime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

import torch

from keisei.config import Settings
from keisei.experience.contract import Buffer
from keisei.games.contract import Game, GameSpec
from keisei.policies.agents_network import AgentsPlan
from keisei.policies.contract import Policy
from keisei.policies.learner_policy import policy_of
from keisei.training.events import Counters, Update
from keisei.training.regimes.loop import OwnLearner, Pace, Parts
from keisei.training.settings import TrainConfig

__all__ = ["Regime", "regime_of"]


OwnSettings = TypeVar("OwnSettings", bound=Settings)


@dataclass(frozen=True)
class Regime(Generic[OwnSettings, OwnLearner]):
    """One kind of training. Its settings are the section ``learner`` of a configuration, and ``learner.regime``
    names it."""

    build_learner: Callable[[TrainConfig, OwnSettings, Game, torch.device], OwnLearner]
    build_buffer: Callable[[TrainConfig, OwnSettings, GameSpec, OwnLearner], Buffer[Any]]
    loop: Callable[[Parts[OwnLearner], Pace, Counters], Iterator[Update]]
    current_policy: Callable[[OwnLearner, GameSpec, float], Policy] = lambda learner, spec, temperature: (
        policy_of(learner.behaviour(1.0).network, spec, temperature)
    )
    """Makes the policy that is being trained, at a temperature."""
    agents_plan: Callable[[OwnLearner], AgentsPlan | None] = lambda learner: None
    """Makes the networks that workers build if each seat has its own; None if one network plays all seats."""


_REGIMES = {
    "ppo": "keisei.training.regimes.ppo",
    "dqn": "keisei.training.regimes.dqn",
    "independent": "keisei.training.regimes.independent",
}


def regime_of(config: TrainConfig) -> Regime[Any, Any]:
    """Gets the regime that a configuration names. Settings accept no other names."""
    regime: Regime[Any, Any] = import_module(_REGIMES[config.learner.regime]).REGIME
    return regime
