"""The main function of a worker process. The fork server imports this module, together with all slow imports."""

from __future__ import annotations

import signal
from multiprocessing.connection import Connection

import torch

from keisei.games.registry import import_built_in_games
from keisei.machine.freed_memory import keep_freed_memory
from keisei.machine.new_processes import end_with_parent
from keisei.parallel.arena import Arena
from keisei.parallel.backends.channel import serve
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.weights.model_sync import WeightReader

import_built_in_games()  # once, for all later workers


def worker_main(plan_json: str, arena: Arena, weights: WeightReader | None, connection: Connection) -> None:
    # Ctrl-C reaches every process of the terminal. Only the manager reacts to it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    torch.set_num_threads(1)
    keep_freed_memory()
    serve(WorkerPlan.model_validate_json(plan_json), arena, weights, connection)
