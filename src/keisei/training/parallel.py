"""Parallel collection under a second import path."""

from __future__ import annotations

from keisei.parallel import ModelSynchronizer, ParallelManager, SelfPlayWorker, WorkerCommunicator

__all__ = ["ModelSynchronizer", "ParallelManager", "SelfPlayWorker", "WorkerCommunicator"]
