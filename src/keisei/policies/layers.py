"""Layers without initial weights; ``initialise`` sets them from its own generator."""

from __future__ import annotations

from math import sqrt

import torch
from torch import Generator, nn


class _Linear(nn.Linear):
    """A linear layer without torch's initial weights, which would use the global random state. (The "meta" device
    does the same, but its imports take half a second in every new worker.)"""

    def reset_parameters(self) -> None:
        """Leaves the weights to ``initialise``."""


class _Conv2d(nn.Conv2d):
    def reset_parameters(self) -> None:
        """A convolution without initial weights, like ``_Linear``."""


def linear(inputs: int, outputs: int) -> nn.Linear:
    return _Linear(inputs, outputs)


def conv(inputs: int, outputs: int, size: int) -> nn.Conv2d:
    return _Conv2d(inputs, outputs, size, padding=size // 2)


def norm(channels: int) -> nn.GroupNorm:
    groups = next(groups for groups in (8, 4, 2, 1) if channels % groups == 0)
    return nn.GroupNorm(groups, channels)


def excitation(channels: int) -> nn.Sequential:
    """Squeeze and excitation (Hu and others, 2018): a factor between 0 and 1 for each channel."""
    narrow = max(channels // 4, 1)
    return nn.Sequential(
        linear(channels, narrow), nn.ReLU(inplace=True), linear(narrow, channels), nn.Sigmoid()
    )


def initialise(network: nn.Module, generator: Generator, policy: nn.Module, value: nn.Module) -> None:
    """Sets normal weights that keep the size of signals through ReLUs (He and others, 2015), and biases of 0. The
    last policy layer is a hundred times smaller. A start close to uniform play was the one choice of initial
    weights that mattered much for PPO (Andrychowicz and others, 2021)."""
    for layer in network.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            fill(layer, sqrt(2), generator)
    fill(last_layer(policy), 0.01, generator)
    fill(last_layer(value), 1.0, generator)


def last_layer(head: nn.Module) -> nn.Linear | nn.Conv2d:
    return [layer for layer in head.modules() if isinstance(layer, (nn.Linear, nn.Conv2d))][-1]


def fill(layer: nn.Linear | nn.Conv2d, gain: float, generator: Generator) -> None:
    fan_in = layer.weight[0].numel()
    with torch.no_grad():
        layer.weight.normal_(0.0, gain / sqrt(fan_in), generator=generator)
        if layer.bias is not None:
            layer.bias.zero_()
