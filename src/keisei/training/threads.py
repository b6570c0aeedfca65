"""How many threads a learner is best given.

Threads cost some 10 microseconds each time work is shared out, so a small network learns faster on one thread
than on two. ``keisei bench networks`` measures both; the rule here follows from it. It counts operations and
takes no time itself, so that the same settings give the same number, and with it the same bits, in every run.
"""

from __future__ import annotations

import torch
from torch.utils.flop_counter import FlopCounterMode

from keisei.games.contract import GameSpec
from keisei.policies.networks import ModelConfig, build_network

OPERATIONS_PER_THREAD = 100_000_000
"""Of one minibatch's forward pass. Below some 100 million (a few ms) a second thread did not pay."""
_PROBE = 4


def fitting_threads(model: ModelConfig, spec: GameSpec, minibatch: int, cores: int) -> int:
    """Threads for learning from minibatches of this size."""
    network = build_network(model, spec, 0).eval()
    rows = torch.zeros(_PROBE, *spec.observation.shape, dtype=torch.float32)
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        network(rows)
    operations = counter.get_total_flops() / _PROBE * minibatch
    return max(1, min(cores, int(operations // OPERATIONS_PER_THREAD)))
