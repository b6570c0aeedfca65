"""Adam for agents that are trained at once: each agent is one row of weights, with moments and a step count of its
own."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Adam

__all__ = ["StackedAdam"]


class StackedAdam:
    """Moves rows of weights. The optimisers of the agents see the same moments, so each of them may go on alone."""

    def __init__(self, weights: Tensor, optimizers: Sequence[Adam]) -> None:
        """``weights`` is [agents, weights]; ``optimizers`` are those of the agents."""
        self._optimizers = tuple(optimizers)
        self._rows = [nn.Parameter(row) for row in weights]
        self._moments = torch.zeros_like(weights), torch.zeros_like(weights)
        self._adam = Adam(self._rows, eps=optimizers[0].defaults["eps"], fused=True)
        for place, row in enumerate(self._rows):
            first, second = (moments[place] for moments in self._moments)
            self._adam.state[row] = {"step": torch.tensor(0.0), "exp_avg": first, "exp_avg_sq": second}
        self.bind()

    @torch.no_grad()
    def bind(self) -> None:
        """Takes over the moments of the agents' optimisers, and lets these read and write them here."""
        for place, optimizer in enumerate(self._optimizers):
            start = 0
            for weight in optimizer.param_groups[0]["params"]:
                old = optimizer.state.get(weight, {})
                part = slice(start, start := start + weight.numel())
                state = {"step": torch.tensor(float(old.get("step", 0.0)))}
                for name, moments in zip(("exp_avg", "exp_avg_sq"), self._moments, strict=True):
                    state[name] = moments[place, part].view(weight.shape)
                    state[name].copy_(old[name]) if name in old else state[name].zero_()
                optimizer.state[weight] = state
        self.gather()

    def gather(self) -> None:
        """Reads how many steps each agent has made."""
        for row, optimizer in zip(self._rows, self._optimizers, strict=True):
            first = optimizer.param_groups[0]["params"][0]
            self._adam.state[row]["step"].copy_(optimizer.state[first]["step"])

    def scatter(self) -> None:
        """Tells the agents' optimisers how many steps were made, and at which rate."""
        for row, optimizer in zip(self._rows, self._optimizers, strict=True):
            optimizer.param_groups[0]["lr"] = self._adam.param_groups[0]["lr"]
            for weight in optimizer.param_groups[0]["params"]:
                optimizer.state[weight]["step"].copy_(self._adam.state[row]["step"])

    @torch.no_grad()
    def step(
        self, gradients: Sequence[Tensor], moving: Collection[int], rate: float, max_norm: float
    ) -> None:
        """Makes one step of the rows ``moving``. Each gradient, [agents, …], is scaled down to a norm for each agent
        by itself."""
        flat = torch.cat([gradient.flatten(1) for gradient in gradients], dim=1)
        norms = torch.linalg.vector_norm(flat, dim=1, keepdim=True)
        flat *= (max_norm / (norms + 1e-6)).clamp(max=1.0)
        for place, row in enumerate(self._rows):
            row.grad = flat[place] if place in moving else None
        self._adam.param_groups[0]["lr"] = rate
        self._adam.step()
