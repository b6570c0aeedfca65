"""Sends the numbers of a run to Weights & Biases. It needs the extra ``wandb``: ``pip install 'keisei[wandb]'``."""

from __future__ import annotations

import secrets
from importlib import import_module
from typing import Any

from keisei.errors import ConfigError
from keisei.runs.directory import RunDirectory
from keisei.runs.metric_names import TRANSITIONS
from keisei.runs.metrics import UpdateMetrics
from keisei.training.callbacks import Callback
from keisei.training.events import Ended, Started

__all__ = ["WandbCallback"]

ID_FILE = "wandb-id"
"""In the run's directory. A resumed run continues the same run there."""


class WandbCallback(Callback):
    """Sends all numbers, also those that other callbacks log, with the transitions as the x-axis.

    Keywords go to ``wandb.init``, such as ``project="shogi"`` or ``mode="offline"``.
    """

    def __init__(self, **settings: Any) -> None:
        self._wandb = _wandb()
        self._settings = settings
        self._run: Any = None

    def on_start(self, started: Started) -> None:
        run = RunDirectory(started.run)
        usual = {
            "project": "keisei",
            "name": run.name,
            "id": _run_id(run),
            "resume": "allow",
            "config": run.config(),
            "dir": str(run.path),
        }
        self._run = self._wandb.init(**(usual | self._settings))
        self._run.define_metric("*", step_metric=TRANSITIONS)

    def on_metrics(self, metrics: UpdateMetrics) -> None:
        if self._run is not None:
            self._run.log({**metrics.values, TRANSITIONS: metrics.step})

    def on_end(self, ended: Ended) -> None:
        if self._run is not None:
            self._run.finish()


def _run_id(run: RunDirectory) -> str:
    path = run.path / ID_FILE
    if not path.exists():
        path.write_text(secrets.token_hex(8))
    return path.read_text()


def _wandb() -> Any:
    try:
        return import_module("wandb")
    except ImportError as error:
        raise ConfigError(
            "WandbCallback needs the package wandb, which is not installed: pip install 'keisei[wandb]'"
        ) from error
