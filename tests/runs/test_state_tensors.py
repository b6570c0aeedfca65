"""Optimisers and random generators continue where they were, to the bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from checkpoints_for_tests import bits, checkpoint, content
from torch import nn

from keisei.errors import CheckpointError
from keisei.runs.checkpoint import load_checkpoint, save_checkpoint
from keisei.runs.state_tensors import (
    FlatState,
    flatten,
    flatten_optimizer,
    load_model,
    load_optimizer,
    load_random,
    model_tensors,
    random_tensors,
    unflatten,
)


def trained(steps: int) -> tuple[nn.Module, torch.optim.Adam]:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.8, 0.99), eps=1e-5)
    for step in range(steps):
        learn(model, optimizer, step)
    return model, optimizer


def learn(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    inputs = torch.randn(16, 4, generator=torch.Generator().manual_seed(step))
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()


def test_a_run_that_stops_and_goes_on_ends_with_the_same_bits(tmp_path: Path) -> None:
    straight, _ = trained(20)
    model, optimizer = trained(11)
    flat = flatten_optimizer(optimizer)
    tensors = {"model": model_tensors(model), "optimizer": flat.tensors}
    path = save_checkpoint(tmp_path, checkpoint(11, tensors=tensors, documents={"optimizer": flat.document}))

    loaded = load_checkpoint(path)
    model, optimizer = trained(0)
    load_model(model, loaded.tensors["model"])
    load_optimizer(optimizer, FlatState(loaded.tensors["optimizer"], loaded.documents["optimizer"]))
    assert optimizer.param_groups[0]["betas"] == (0.8, 0.99)
    for step in range(11, 20):
        learn(model, optimizer, step)

    for name, tensor in straight.state_dict().items():
        assert bits(model.state_dict()[name]) == bits(tensor)
    # Training on must not have reached into what was loaded.
    assert content(loaded) == content(load_checkpoint(path))


def test_a_snapshot_does_not_move_with_the_training() -> None:
    model, optimizer = trained(2)
    weights, flat = model_tensors(model), flatten_optimizer(optimizer)
    before = [bits(t) for t in [*weights.values(), *flat.tensors.values()]]
    learn(model, optimizer, 2)
    assert [bits(t) for t in [*weights.values(), *flat.tensors.values()]] == before


@pytest.mark.parametrize(
    "make",
    [
        lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
        lambda parameters: torch.optim.AdamW(parameters, lr=torch.tensor(0.1), amsgrad=True),
        lambda parameters: torch.optim.RMSprop(parameters, lr=0.1),
    ],
    ids=["sgd", "adamw", "rmsprop"],
)
def test_other_optimisers_come_back_too(make: Callable[..., torch.optim.Optimizer]) -> None:
    model, _ = trained(0)
    optimizer = make(model.parameters())
    learn(model, optimizer, 0)
    flat = flatten_optimizer(optimizer)
    document = json.loads(json.dumps(flat.document))
    again = make(model.parameters())
    load_optimizer(again, FlatState(flat.tensors, document))
    restored = flatten_optimizer(again)
    assert restored.document == flat.document
    assert {n: bits(t) for n, t in restored.tensors.items()} == {n: bits(t) for n, t in flat.tensors.items()}


def test_nested_state_keeps_its_types() -> None:
    state = {0: {"a": (1, [2.5, None])}, "b": float("-inf"), "c": True, "d": {}}
    flat = flatten(state)
    assert unflatten(FlatState({}, json.loads(json.dumps(flat.document)))) == state
    with pytest.raises(CheckpointError, match="without pickle"):
        flatten({"a": object()})
    with pytest.raises(CheckpointError, match="describe a state"):
        unflatten(FlatState({}, {"tensor": "gone"}))


def test_state_of_another_network_is_refused() -> None:
    model, optimizer = trained(1)
    weights, flat = model_tensors(model), flatten_optimizer(optimizer)
    other = nn.Sequential(nn.Linear(4, 9), nn.Tanh(), nn.Linear(9, 2))
    before = model_tensors(other)
    with pytest.raises(CheckpointError, match=r"another network.*0\.bias"):
        load_model(other, weights)
    assert all(bits(before[name]) == bits(tensor) for name, tensor in other.state_dict().items())
    with pytest.raises(CheckpointError, match="does not fit"):
        load_optimizer(torch.optim.Adam(other.parameters()), flat)
    with pytest.raises(CheckpointError, match="does not fit"):
        load_optimizer(torch.optim.Adam([nn.Parameter(torch.zeros(8, 4))]), flat)


def test_torchs_generator_goes_on_where_it_was(tmp_path: Path) -> None:
    torch.manual_seed(5)
    torch.rand(3)
    path = save_checkpoint(tmp_path, checkpoint(1, tensors={"random": random_tensors()}))
    expected = torch.rand(4)
    torch.manual_seed(0)
    load_random(load_checkpoint(path).tensors["random"])
    assert torch.equal(torch.rand(4), expected)
