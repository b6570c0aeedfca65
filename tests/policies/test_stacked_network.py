"""Stacked networks: the same numbers as each member by itself, and no influence of one on another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from keisei.errors import PolicyError
from keisei.games import make_game
from keisei.policies.agents_network import (
    AgentsNetwork,
    AgentsPlan,
    agents_network,
    joined_network,
    stacks_of,
)
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import ActorCritic, build_network
from keisei.policies.stacked_network import StackedConv2d, can_be_stacked, share_memory, stacked

GAME = make_game("connect-four", batch=6, seed=1)
MODELS = {
    "mlp": {"network": "mlp", "hidden_dim": 16},
    "quantiles": {"network": "mlp", "hidden_dim": 16, "outputs": "dueling", "quantiles": 3},
    "slim": {"network": "slim", "channels": 8},
    "residual": {"network": "residual", "channels": 8, "blocks": 1},
    "q": {"network": "slim", "channels": 8, "outputs": "q"},
}
MEMBERS, ROWS = 3, 6


def members(kind: str) -> list[ActorCritic]:
    """Networks whose biases are not 0, as after some learning."""
    networks = [build_network(MODELS[kind], GAME.spec, seed) for seed in range(MEMBERS)]
    generator = torch.Generator().manual_seed(1)
    for network in networks:
        for weight in network.parameters():
            weight.data += 0.1 * torch.randn(weight.shape, generator=generator)
    return networks


def observations() -> Tensor:
    """What six games show, for each member after other moves."""
    seen = []
    for _ in range(MEMBERS):
        GAME.step(GAME.random_actions())
        seen.append(torch.from_numpy(GAME.observe().copy()))
    return torch.cat(seen)


def outputs(network: ActorCritic, rows: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        logits, values = network(rows)
    return logits, values


@pytest.mark.parametrize("kind", MODELS)
def test_members_of_a_stack_compute_what_they_compute_alone(kind: str) -> None:
    alone, rows = members(kind), observations()
    stack = stacked(alone[0], MEMBERS)
    share_memory(stack, alone)
    logits, values = outputs(stack, rows)
    for number, network in enumerate(alone):
        own = slice(number * ROWS, (number + 1) * ROWS)
        expected = outputs(network, rows[own])
        torch.testing.assert_close(logits[own], expected[0], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(values[own], expected[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", MODELS)
def test_gradients_of_a_stack_are_those_of_its_members(kind: str) -> None:
    alone, rows = members(kind), observations()
    stack = stacked(alone[0], MEMBERS)
    share_memory(stack, alone)
    logits, values = stack(rows)
    gradients = torch.autograd.grad(
        logits.square().sum() + values.sum(), list(stack.parameters()), allow_unused=True
    )
    for number, network in enumerate(alone):
        logits, values = network(rows[number * ROWS : (number + 1) * ROWS])
        loss = logits.square().sum() + values.sum()
        expected = torch.autograd.grad(loss, list(network.parameters()), allow_unused=True)
        size = max(float(gradient.abs().max()) for gradient in expected if gradient is not None)
        for found, wanted in zip(gradients, expected, strict=True):
            assert (found is None) == (wanted is None)
            if found is not None and wanted is not None:
                torch.testing.assert_close(
                    found[number], wanted, rtol=1e-3, atol=(1e-3 if kind == "residual" else 1e-5) * size
                )


@pytest.mark.parametrize("kind", MODELS)
def test_no_bit_of_a_member_depends_on_another(kind: str) -> None:
    alone, rows = members(kind), observations()
    stack = stacked(alone[0], MEMBERS)
    share_memory(stack, alone)
    before = outputs(stack, rows)
    for weight in alone[1].parameters():
        weight.data.fill_(torch.nan)
    rows[ROWS : 2 * ROWS] = 1
    after = outputs(stack, rows)
    for number in (0, 2):
        own = slice(number * ROWS, (number + 1) * ROWS)
        assert torch.equal(before[0][own], after[0][own])
        assert torch.equal(before[1][own], after[1][own])
    assert after[0][ROWS : 2 * ROWS].isnan().all()


def test_members_and_stack_share_one_memory() -> None:
    alone = members("mlp")
    stack = stacked(alone[0], MEMBERS)
    values = [[weight.clone() for weight in network.parameters()] for network in alone]
    flat = share_memory(stack, alone)
    for network, old in zip(alone, values, strict=True):
        assert all(torch.equal(new, was) for new, was in zip(network.parameters(), old, strict=True))
    next(alone[1].parameters()).data.fill_(7)
    assert (next(stack.parameters())[1] == 7).all()
    flat[2] = 5
    assert all((weight == 5).all() for weight in alone[2].parameters())
    assert not any((weight == 5).any() for weight in alone[0].parameters())


class Odd(ActorCritic):
    """A network with a weight that no layer has."""

    def __init__(self) -> None:
        super().__init__(GAME.spec.observation)
        self.layer = nn.Linear(2, 2)
        self.shift = nn.Parameter(torch.zeros(2))


def test_a_network_with_weights_of_its_own_kind_is_not_stacked() -> None:
    assert not can_be_stacked(Odd())
    assert not can_be_stacked(build_network({"network": "gather", "hidden_dim": 8}, GAME.spec, 0))
    with pytest.raises(PolicyError, match="Odd has weights outside of linear layers"):
        stacked(Odd(), 2)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(2, 2, 3, padding=1, stride=2),
        nn.Conv2d(2, 2, 3),
        nn.Conv2d(2, 2, 3, padding="same"),
        nn.Conv2d(2, 2, 3, padding=1, groups=2),
        nn.BatchNorm2d(2),
    ],
)
def test_layers_without_a_stacked_form_are_known(layer: nn.Module) -> None:
    assert not can_be_stacked(layer)


# The networks of all agents


def test_equal_agents_are_stacked_up_to_a_size() -> None:
    assert stacks_of(["a", "b", "a", None, "a", None], 2) == ((0, 2), (4,), (1,), (3,), (5,))
    assert stacks_of(["a"] * 3, 16) == ((0, 1, 2),)


def joined(plan: AgentsPlan, networks: list[ActorCritic]) -> AgentsNetwork:
    return joined_network(plan, networks, GAME.spec)


def test_rows_of_mixed_agents_come_out_in_their_order() -> None:
    kinds = ["mlp", "slim", "mlp"]
    models: list[Any] = [ModelConfig.model_validate(MODELS[kind]).resolved(GAME.spec) for kind in kinds]
    networks = [build_network(model, GAME.spec, seed) for seed, model in enumerate(models)]
    network = joined(AgentsPlan(models=tuple(models), stacks=((0, 2), (1,))), networks)
    rows = observations()
    logits, values = outputs(network, rows)
    for number, own in enumerate(networks):
        expected = outputs(own, rows[number * ROWS : (number + 1) * ROWS])
        torch.testing.assert_close(
            logits[number * ROWS : (number + 1) * ROWS], expected[0], rtol=1e-4, atol=1e-5
        )
        torch.testing.assert_close(
            values[number * ROWS : (number + 1) * ROWS], expected[1], rtol=1e-4, atol=1e-5
        )


def test_a_worker_builds_networks_of_the_same_shape() -> None:
    models = tuple(ModelConfig.model_validate(MODELS["mlp"]).resolved(GAME.spec) for _ in range(3))
    plan = AgentsPlan(models=models, stacks=((0, 1), (2,)))
    published = joined(plan, members("mlp"))
    built = agents_network(plan, GAME.spec)
    assert {n: t.shape for n, t in published.state_dict().items()} == {
        n: t.shape for n, t in built.state_dict().items()
    }


@pytest.mark.parametrize("side", [5, 12])
def test_convolutions_of_small_and_large_boards(side: int) -> None:
    """Small boards are one grouped convolution, and large ones a loop."""
    layers = [nn.Conv2d(2, 3, 3, padding=1) for _ in range(MEMBERS)]
    stack = StackedConv2d(layers[0], MEMBERS)
    for number, layer in enumerate(layers):
        stack.weight.data[number], stack.bias.data[number] = layer.weight, layer.bias
    rows = torch.randn(MEMBERS * 4, 2, side, side)
    with torch.no_grad():
        expected = torch.cat([layer(own) for layer, own in zip(layers, rows.split(4), strict=True)])
        torch.testing.assert_close(stack(rows), expected, rtol=1e-4, atol=1e-5)
