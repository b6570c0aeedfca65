"""Ways to learn faster on a graphics card: half precision, and a compiled network.

Both are optional. If one is not available, the learner logs a warning and continues without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

import torch
from torch import Tensor

from keisei.policies.networks import ActorCritic

__all__ = ["Forward", "compiled", "half_precision"]

logger = logging.getLogger(__name__)

Forward: TypeAlias = Callable[..., tuple[Tensor, Tensor]]
"""A forward pass: observations and actions in; logits (or values) of these actions, and values of positions out."""


def compiled(network: ActorCritic, wanted: bool, observation: tuple[int, ...]) -> Forward:
    """Compiles the network with ``torch.compile`` if that works. It is tried on two rows, since it compiles when
    called."""
    if not wanted:
        return network
    device = next(network.parameters()).device
    try:
        faster: Any = torch.compile(network, dynamic=True)
        with torch.no_grad():
            faster(
                torch.zeros(2, *observation, device=device),
                torch.zeros(2, 1, dtype=torch.int32, device=device),
            )
    except Exception as error:  # a compiler may raise any error
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        logger.warning(
            "run.compile: torch.compile does not work here, so the network runs as it is: %s", reason
        )
        return network
    forward: Forward = faster
    return forward


def half_precision(wanted: bool, device: torch.device) -> AbstractContextManager[object]:
    """Makes a context that computes products in bfloat16. It has the range of float32, so losses need no scaling."""
    if not wanted:
        return nullcontext()
    if device.type != "cuda" or not torch.cuda.is_bf16_supported():
        logger.warning(
            "run.mixed_precision needs a CUDA device with bfloat16 (Ampere or newer); on %s the learner keeps to full "
            "precision",
            device,
        )
        return nullcontext()
    return torch.autocast("cuda", dtype=torch.bfloat16)
