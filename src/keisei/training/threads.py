"""How many threads a learner is best given.

Sharing out a minibatch (``learners.shards``) costs some tenths of a millisecond, so a small network learns faster
on one thread than on two. The rule here counts operations and takes no time itself, so that the same settings give
the same number, and with it the same bits, in every run on a machine.
"""

from __future__ import annotations

import torch
from torch.utils.flop_counter import FlopCounterMode

from keisei.games.contract import GameSpec
from keisei.policies.networks import ModelConfig, build_network

OPERATIONS_PER_THREAD = 20_000_000
"""Of one minibatch's forward pass: forward and backward then take a thread a few milliseconds."""
_PROBE = 4


def fitting_threads(model: ModelConfig, spec: GameSpec, minibatch: int, cores: int) -> int:
    """Threads for learning from minibatches of this size."""
    network = build_network(model, spec, 0).eval()
    rows = torch.zeros(_PROBE, *spec.observation.shape, dtype=torch.float32)
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        network(rows)
    operations = counter.get_total_flops() / _PROBE * minibatch
    return max(1, min(cores, int(operations // OPERATIONS_PER_THREAD)))
