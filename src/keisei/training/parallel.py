"""Parallel collection under the name by which its documentation imports it."""

from __future__ import annotations

from keisei.parallel import ModelSynchronizer, ParallelManager, SelfPlayWorker, WorkerCommunicator

__all__ = ["ModelSynchronizer", "ParallelManager", "SelfPlayWorker", "WorkerCommunicator"]
