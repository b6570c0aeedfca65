"""Several networks of one kind, computed at once.

A stacked network has the weights of all its members along a new first axis. It takes the rows of the first member,
then those of the second, and so on, equally many of each. Its layers compute all members in one product of batches.
The rows of a member meet the weights of that member only, so no member has any influence on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from keisei.errors import PolicyError
from keisei.policies.networks import ActorCritic

__all__ = ["StackedConv2d", "StackedGroupNorm", "StackedLinear", "can_be_stacked", "share_memory", "stacked"]


SMALL_BOARD = 121
"""Squares up to which one grouped convolution is faster than a loop."""


def can_be_stacked(network: nn.Module) -> bool:
    """Checks if all weights of a network are in layers that have a stacked form."""
    plain = {
        id(weight) for layer in network.modules() if _has_a_stack(layer) for weight in layer.parameters()
    }
    return all(id(weight) in plain for weight in network.parameters()) and not list(
        _persistent_buffers(network)
    )


def stacked(template: ActorCritic, count: int) -> ActorCritic:
    """Makes a network for ``count`` members like the template, each with a copy of its weights."""
    if not can_be_stacked(template):
        raise PolicyError(
            f"a {type(template).__name__} has weights outside of linear layers, convolutions and group norms, so "
            f"several of them cannot be computed at once; let its agents run beside each other"
        )
    network = deepcopy(template)
    for name, layer in list(network.named_modules()):
        if _has_a_stack(layer):
            _replace(network, name, _stacked_layer(layer, count))
    return network


def share_memory(whole: ActorCritic, members: Sequence[ActorCritic]) -> Tensor:
    """Puts the weights of all members into one block [members, weights], in which the stacked network reads them.

    The members keep their values and stay networks of their own. What one of them learns, the stack plays at once.
    Returns the block; the weights of a member are one row of it.
    """
    names = [name for name, _ in whole.named_parameters()]
    weights = [dict(member.named_parameters()) for member in members]
    flat = torch.stack(
        [torch.cat([of_one[name].detach().reshape(-1) for name in names]) for of_one in weights]
    )
    start = 0
    for name, parameter in whole.named_parameters():
        shape, size = parameter.shape[1:], parameter[0].numel()
        columns = flat[:, start : start + size]
        parameter.data = columns.view(len(members), *shape)
        for row, of_one in zip(columns, weights, strict=True):
            of_one[name].data = row.view(shape)
        start += size
    return flat


class StackedLinear(nn.Module):
    """Linear layers side by side: [members · n, inputs] in, [members · n, outputs] out."""

    def __init__(self, layer: nn.Linear, count: int) -> None:
        super().__init__()
        self.weight = _repeated(layer.weight, count)
        bias: Tensor | None = layer.bias
        self.bias = None if bias is None else _repeated(bias, count)

    def forward(self, inputs: Tensor) -> Tensor:
        rows = inputs.reshape(len(self.weight), -1, inputs.shape[-1])
        weight = self.weight.transpose(1, 2)
        if self.bias is None:
            return torch.bmm(rows, weight).flatten(0, 1)
        return torch.baddbmm(self.bias[:, None], rows, weight).flatten(0, 1)


class StackedConv2d(nn.Module):
    """Convolutions side by side: [members · n, channels, height, width] in and out.

    Small boards are one grouped convolution, in which each member is a group. On large boards a loop over the members
    is faster. docs/independent.md has the figures, also of unfolded patches and of ``torch.vmap``.
    """

    def __init__(self, layer: nn.Conv2d, count: int) -> None:
        super().__init__()
        self.weight = _repeated(layer.weight, count)
        bias: Tensor | None = layer.bias
        self.bias = None if bias is None else _repeated(bias, count)
        self._padding = _plain_padding(layer) or (0, 0)

    def forward(self, inputs: Tensor) -> Tensor:
        members, (height, width) = len(self.weight), inputs.shape[-2:]
        boards = inputs.reshape(members, -1, *inputs.shape[1:])
        if height * width > SMALL_BOARD:
            biases = [None] * members if self.bias is None else self.bias
            each = zip(boards, self.weight, biases, strict=True)
            return torch.cat([nn.functional.conv2d(*one, padding=self._padding) for one in each])
        side_by_side = boards.transpose(0, 1).flatten(1, 2)  # [n, members · channels, height, width]
        bias = None if self.bias is None else self.bias.flatten()
        outputs = nn.functional.conv2d(
            side_by_side, self.weight.flatten(0, 1), bias, padding=self._padding, groups=members
        )
        return outputs.reshape(len(outputs), members, -1, height, width).transpose(0, 1).flatten(0, 1)


class StackedGroupNorm(nn.Module):
    """Group norms side by side, each with factors of its own."""

    def __init__(self, layer: nn.GroupNorm, count: int) -> None:
        super().__init__()
        self.weight, self.bias = _repeated(layer.weight, count), _repeated(layer.bias, count)
        self._groups, self._eps = layer.num_groups, layer.eps

    def forward(self, inputs: Tensor) -> Tensor:
        normal = nn.functional.group_norm(inputs, self._groups, eps=self._eps)
        rows = normal.reshape(len(self.weight), -1, *inputs.shape[1:])
        shape = (len(self.weight), 1, -1, *(1 for _ in inputs.shape[2:]))
        return (rows * self.weight.view(shape) + self.bias.view(shape)).flatten(0, 1)


def _has_a_stack(layer: nn.Module) -> bool:
    if isinstance(layer, nn.Conv2d):
        return _plain_padding(layer) is not None
    return isinstance(layer, nn.Linear) or (isinstance(layer, nn.GroupNorm) and layer.affine)


def _plain_padding(layer: nn.Conv2d) -> tuple[int, ...] | None:
    """Finds the padding of a convolution that keeps the size of the board; None for any other."""
    size, padding = layer.kernel_size, layer.padding
    plain = (layer.stride, layer.dilation, layer.groups, layer.padding_mode) == ((1, 1), (1, 1), 1, "zeros")
    if not plain or isinstance(padding, str) or tuple(2 * pad + 1 for pad in padding) != size:
        return None
    return tuple(padding)


def _stacked_layer(layer: nn.Module, count: int) -> nn.Module:
    if isinstance(layer, nn.Linear):
        return StackedLinear(layer, count)
    if isinstance(layer, nn.Conv2d):
        return StackedConv2d(layer, count)
    assert isinstance(layer, nn.GroupNorm)
    return StackedGroupNorm(layer, count)


def _replace(network: nn.Module, name: str, layer: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(network.get_submodule(parent), last, layer)


def _repeated(weight: Tensor, count: int) -> nn.Parameter:
    return nn.Parameter(weight.detach().expand(count, *weight.shape).clone())


def _persistent_buffers(network: nn.Module) -> list[str]:
    """Lists the buffers that a network saves, such as running means."""
    weights = dict(network.named_parameters())
    return [name for name in network.state_dict() if name not in weights]
