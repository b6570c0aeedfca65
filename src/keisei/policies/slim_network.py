"""A small convolution network for processors.

It is faster than ``residual`` for three reasons. The first layer looks at single squares, and planes with one value
on all squares are read once. Nothing is normalised: with few blocks, initial weights that make each block almost
the identity work as well (Zhang and others, 2019). And values come from features pooled over the board.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

from keisei.games.contract import GameSpec
from keisei.policies.layers import conv, fill, initialise, linear
from keisei.policies.model_config import ModelConfig, check_board
from keisei.policies.networks import ActorCritic, policy_head

__all__ = ["SlimNet"]

_VALUE_WIDTH = 64
_BLOCK_GAIN = 0.3
"""Gain of the last layer of a block at the start; sqrt(2) would keep the size of its signals."""


class SlimNet(ActorCritic):
    """Planes [n, planes, height, width] in; logits and values out."""

    def __init__(self, config: ModelConfig, spec: GameSpec) -> None:
        super().__init__(spec.observation)
        check_board("slim", spec)
        channels = config.channels
        flat = sorted(spec.observation.flat)
        boards = [plane for plane in range(spec.observation.shape[0]) if plane not in flat]
        self._boards, self._flat = _indices(boards), _indices(flat)
        self.stem = conv(len(boards), channels, 1)
        self.context = linear(len(flat), channels) if flat else None
        self.blocks = nn.Sequential(*(_SlimBlock(channels) for _ in range(config.blocks)))
        self.policy = policy_head(config, spec, channels)
        self.value = nn.Sequential(
            linear(2 * channels, _VALUE_WIDTH), nn.ReLU(inplace=True), linear(_VALUE_WIDTH, 1)
        )

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        # With this memory format convolutions on a CPU take a sixth less time.
        features = self.stem(inputs[:, self._boards].contiguous(memory_format=torch.channels_last))
        if self.context is not None:
            features = features + self.context(inputs[:, self._flat, 0, 0])[:, :, None, None]
        features = self.blocks(torch.relu(features))
        pooled = torch.cat([features.mean(dim=(2, 3)), features.amax(dim=(2, 3))], dim=1)
        return self.policy(features), self.value(pooled).squeeze(-1)

    def initialise(self, generator: Generator) -> None:
        initialise(self, generator, self.policy, self.value)
        for block in self.blocks:
            assert isinstance(block, _SlimBlock)
            fill(block.second, _BLOCK_GAIN, generator)


class _SlimBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = conv(channels, channels, 3)
        self.second = conv(channels, channels, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.relu(inputs + self.second(torch.relu(self.first(inputs))))


def _indices(planes: list[int]) -> slice | list[int]:
    """Makes a slice if the planes follow each other. A slice costs nothing, while a list makes a copy."""
    if planes and planes == list(range(planes[0], planes[-1] + 1)):
        return slice(planes[0], planes[-1] + 1)
    return planes
