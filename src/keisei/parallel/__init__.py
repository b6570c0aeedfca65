"""Parallel collection: tables, workers, slabs, versioned weights, and recovery that does not change the data."""

from __future__ import annotations

from keisei.experience.collected import CollectedSlab, Experiences
from keisei.parallel.communication import WorkerCommunicator
from keisei.parallel.config import EnvConfig, ParallelConfig, TableOverride
from keisei.parallel.model_sync import ModelSynchronizer
from keisei.parallel.parallel_manager import ParallelManager
from keisei.parallel.plan import LeaguePlan
from keisei.parallel.self_play_worker import SelfPlayWorker
from keisei.parallel.status import ManagerStatus, WorkerStatus
from keisei.parallel.tables import TableSnapshot
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
