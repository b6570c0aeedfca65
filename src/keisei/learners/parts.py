"""Chooses the number of parts of a learner's minibatch.

Threads share the parts (``learners.shards``). Each part costs some tenths of a millisecond, so a small network
learns faster from whole minibatches. The number of parts changes the bits of the weights, so it belongs to the
experiment. The rule here counts operations; it does not depend on the clock or the cores.

The operations of Keisei's own networks are computed from their settings, without torch, so a command that only reads
settings starts at once. A network of your own is built and measured.
"""

from __future__ import annotations

from keisei.games.contract import GameSpec
from keisei.policies.model_config import (
    ModelConfig,
    action_width,
    acts_on_planes,
    check_action_inputs,
    check_model,
)

__all__ = ["OPERATIONS_PER_PART", "ROWS_PER_PART", "fitting_parts"]

OPERATIONS_PER_PART = 20_000_000
"""The least operations in a part's forward pass. Forward and backward then take a few milliseconds."""
ROWS_PER_PART = 256
"""The least rows of a part. On one core, a minibatch of 512 in 1, 2, 4, 8 parts takes slim 32 160, 162, 167, 183
ms."""
_PROBE = 4


def fitting_parts(model: ModelConfig, spec: GameSpec, minibatch: int) -> int:
    """Computes the largest number of parts that have enough rows and operations; 1 for a small network."""
    operations = operations_per_row(model, spec) * minibatch
    return max(1, min(minibatch // ROWS_PER_PART, int(operations // OPERATIONS_PER_PART)))


def operations_per_row(model: ModelConfig, spec: GameSpec) -> float:
    """Counts the floating-point operations of the network's forward pass for one position."""
    model = model.resolved(spec)
    check_model(model, spec)
    count = _WEIGHTS.get(model.network)
    # A product and a sum for each use of a weight.
    return measured_operations(model, spec) if count is None else 2 * count(model, spec)


def measured_operations(model: ModelConfig, spec: GameSpec) -> float:
    """Builds the network and counts the operations of its matrix products and convolutions."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from keisei.machine.torch_threads import single_threaded
    from keisei.policies.networks import build_network

    network = build_network(model, spec, 0).eval()
    rows = torch.zeros(_PROBE, *spec.observation.shape, dtype=torch.float32)
    # On one thread: a pool of threads would stay, and a process that is forked later would wait for it for ever.
    with single_threaded(), torch.inference_mode(), FlopCounterMode(display=False) as counter:
        network(rows)
    operations: int = counter.get_total_flops()
    return operations / _PROBE


# How often the weights of each network are used for one position. Tests compare them with what torch counts.


def _mlp(model: ModelConfig, spec: GameSpec) -> int:
    return spec.observation.size * model.hidden_dim + _gather(model, spec)


def _gather(model: ModelConfig, spec: GameSpec) -> int:
    """Its first layer skips inputs of 0, so it hardly counts."""
    width = model.hidden_dim
    return (model.num_layers - 1) * width * width + width * (spec.num_actions + 1)


def _residual(model: ModelConfig, spec: GameSpec) -> int:
    planes, squares, channels = spec.observation.shape[0], _squares(spec), model.channels
    excitation = 2 * channels * max(channels // 4, 1) if model.squeeze_excitation else 0
    stem = 9 * planes * channels * squares
    value = channels * 8 * squares + 8 * squares * 128 + 128
    return stem + _blocks(model, squares) + model.blocks * excitation + _policy(model, spec) + value


def _slim(model: ModelConfig, spec: GameSpec) -> int:
    planes, squares, channels = spec.observation.shape[0], _squares(spec), model.channels
    flat = len(spec.observation.flat)
    stem = (planes - flat) * channels * squares + flat * channels
    value = 2 * channels * 64 + 64
    return stem + _blocks(model, squares) + _policy(model, spec) + value


def _blocks(model: ModelConfig, squares: int) -> int:
    """Counts the multiplications of two 3 x 3 convolutions in each block."""
    return model.blocks * 2 * 9 * model.channels * model.channels * squares


def _policy(model: ModelConfig, spec: GameSpec) -> int:
    used = 1 if acts_on_planes(model, spec) else _squares(spec)
    return model.channels * spec.num_actions * used


def _squares(spec: GameSpec) -> int:
    return spec.observation.size // spec.observation.shape[0]


def _actions(model: ModelConfig, spec: GameSpec) -> int:
    inputs = check_action_inputs(model.network, spec)
    width, narrow, actions = model.hidden_dim, action_width(model), len(inputs.kinds)
    seen = len(inputs.others(spec.observation.size)) + len(inputs.things[0])
    summary = seen * width + (model.num_layers - 1) * width * width + width + width * narrow
    return summary + actions * (len(inputs.places[0]) + narrow) * narrow + narrow * spec.num_actions


_WEIGHTS = {"mlp": _mlp, "gather": _gather, "residual": _residual, "slim": _slim, "actions": _actions}
