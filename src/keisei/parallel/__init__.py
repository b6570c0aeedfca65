"""Parallel collection: tables, workers, slabs, versioned weights, and recovery that does not change the data.

Names are imported when they are used, so settings such as ``ParallelConfig`` do not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keisei.experience.collected import CollectedSlab, Experiences
    from keisei.games.env_config import EnvConfig
    from keisei.parallel.communication import WorkerCommunicator
    from keisei.parallel.config import ParallelConfig, TableOverride
    from keisei.parallel.parallel_manager import ParallelManager
    from keisei.parallel.plan import LeaguePlan
    from keisei.parallel.status import ManagerStatus, WorkerStatus
    from keisei.parallel.tables import TableSnapshot
    from keisei.parallel.weights.model_sync import ModelSynchronizer
    from keisei.parallel.worker.self_play_worker import SelfPlayWorker
    from keisei.parallel.workers import WorkerState

__all__ = [
    "CollectedSlab",
    "EnvConfig",
    "Experiences",
    "LeaguePlan",
    "ManagerStatus",
    "ModelSynchronizer",
    "ParallelConfig",
    "ParallelManager",
    "SelfPlayWorker",
    "TableOverride",
    "TableSnapshot",
    "WorkerCommunicator",
    "WorkerState",
    "WorkerStatus",
]

_HOMES = {
    "keisei.experience.collected": ("CollectedSlab", "Experiences"),
    "keisei.parallel.communication": ("WorkerCommunicator",),
    "keisei.games.env_config": ("EnvConfig",),
    "keisei.parallel.config": ("ParallelConfig", "TableOverride"),
    "keisei.parallel.weights.model_sync": ("ModelSynchronizer",),
    "keisei.parallel.parallel_manager": ("ParallelManager",),
    "keisei.parallel.plan": ("LeaguePlan",),
    "keisei.parallel.worker.self_play_worker": ("SelfPlayWorker",),
    "keisei.parallel.status": ("ManagerStatus", "WorkerStatus"),
    "keisei.parallel.tables": ("TableSnapshot",),
    "keisei.parallel.workers": ("WorkerState",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)
