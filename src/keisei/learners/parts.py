"""Chooses the number of parts of a learner's minibatch.

Threads share the parts (``learners.shards``). Each part costs some tenths of a millisecond, so a small network
learns faster from whole minibatches. The number of parts changes the bits of the weights, so it belongs to the
experiment. The rule here counts operations; it does not depend on the clock or the cores.
"""

from __future__ import annotations

import torch
from torch.utils.flop_counter import FlopCounterMode

from keisei.games.contract import GameSpec
from keisei.machine.torch_threads import single_threaded
from keisei.policies.networks import ModelConfig, build_network

__all__ = ["OPERATIONS_PER_PART", "ROWS_PER_PART", "fitting_parts"]

OPERATIONS_PER_PART = 20_000_000
"""The least operations in a part's forward pass. Forward and backward then take a few milliseconds."""
ROWS_PER_PART = 256
"""The least rows of a part. On one core, a minibatch of 512 in 1, 2, 4, 8 parts takes slim 32 160, 162, 167, 183
ms."""
_PROBE = 4


def fitting_parts(model: ModelConfig, spec: GameSpec, minibatch: int) -> int:
    """Gives the largest number of parts that have enough rows and operations; 1 for a small network."""
    operations = operations_per_row(model, spec) * minibatch
    return max(1, min(minibatch // ROWS_PER_PART, int(operations // OPERATIONS_PER_PART)))


def operations_per_row(model: ModelConfig, spec: GameSpec) -> float:
    """Counts the floating-point operations of the network's forward pass for one position."""
    network = build_network(model, spec, 0).eval()
    rows = torch.zeros(_PROBE, *spec.observation.shape, dtype=torch.float32)
    # On one thread: a pool of threads would stay, and a process that is forked later would wait for it for ever.
    with single_threaded(), torch.inference_mode(), FlopCounterMode(display=False) as counter:
        network(rows)
    operations: int = counter.get_total_flops()
    return operations / _PROBE
