"""Keisei trains game-playing agents by self-play.

``import keisei`` is light: each name is imported when it is first used, and torch when something learns or plays with
a network.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from keisei.errors import KeiseiError

if TYPE_CHECKING:
    from keisei.games import (
        GameSpec,
        ObservationSpec,
        Rows,
        SingleGame,
        Step,
        batched,
        check_game,
        make_game,
        register_game,
        registered_games,
    )
    from keisei.policies.players.trained_player import load
    from keisei.training.agent import DQN, PPO
    from keisei.training.api import train
    from keisei.training.dqn_agent import train_dqn
    from keisei.training.parallel_environment import ParallelEnvironment

    __version__: str

__all__ = [
    "DQN",
    "PPO",
    "GameSpec",
    "KeiseiError",
    "ObservationSpec",
    "ParallelEnvironment",
    "Rows",
    "SingleGame",
    "Step",
    "__version__",
    "batched",
    "check_game",
    "load",
    "make_game",
    "register_game",
    "registered_games",
    "train",
    "train_dqn",
]

_ELSEWHERE = {
    "DQN": "keisei.training.agent",
    "PPO": "keisei.training.agent",
    "ParallelEnvironment": "keisei.training.parallel_environment",
    "load": "keisei.policies.players.trained_player",
    "train": "keisei.training.api",
    "train_dqn": "keisei.training.dqn_agent",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE.get(name, "keisei.games")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("keisei")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0+unknown"
