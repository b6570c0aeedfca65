"""Networks: the right shapes for every game, weights by seed, and errors that name the right size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import keisei
from keisei.errors import ConfigError
from keisei.games import GameSpec, ObservationSpec, registered_games
from keisei.policies import ActorCritic, ModelConfig, ResidualNet, build_network

SMALL: dict[str, Any] = {"hidden_dim": 16, "channels": 12, "blocks": 1}


class OwnNetwork(ActorCritic):
    """As a user would write one: with torch's own first values."""

    def __init__(self, config: ModelConfig, spec: GameSpec) -> None:
        super().__init__(spec.observation)
        self.layer = torch.nn.Linear(spec.observation.size, spec.num_actions)

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.layer(inputs.flatten(1))
        return logits, logits.mean(1)


def spec_of(game: str) -> GameSpec:
    return keisei.make_game(game).spec


@pytest.mark.parametrize("game", sorted(registered_games()))
@pytest.mark.parametrize("network", ["mlp", "gather", "residual", "slim", f"{__name__}:OwnNetwork"])
@pytest.mark.parametrize("rows", [1, 5])
def test_shapes_fit_every_game(game: str, network: str, rows: int) -> None:
    batch = keisei.make_game(game, batch=rows, seed=1)
    if network in ("residual", "slim") and len(batch.spec.observation.shape) != 3:
        pytest.skip("its observations are no planes")
    model = build_network({"network": network, **SMALL, "squeeze_excitation": True}, batch.spec, seed=3)
    logits, values = model(torch.from_numpy(batch.observe()))
    assert logits.shape == (len(batch.rows()), batch.spec.num_actions)
    assert values.shape == (len(batch.rows()),)
    assert logits.dtype == values.dtype == torch.float32
    assert torch.isfinite(logits).all()
    assert torch.isfinite(values).all()


@pytest.mark.parametrize("network", ["mlp", "gather", "residual", "slim", f"{__name__}:OwnNetwork"])
def test_the_seed_alone_makes_the_weights(network: str) -> None:
    spec, config = spec_of("tictactoe"), {"network": network, **SMALL}
    before = torch.random.get_rng_state()
    first = build_network(config, spec, seed=5)
    torch.manual_seed(12345)
    second = build_network(config, spec, seed=5)
    other = build_network(config, spec, seed=6)
    torch.random.set_rng_state(before)
    third = build_network(config, spec, seed=5)
    assert torch.equal(torch.random.get_rng_state(), before)
    states = [network.state_dict() for network in (first, second, third, other)]
    assert states[0]
    for name, weight in states[0].items():
        assert torch.equal(weight, states[1][name])
        assert torch.equal(weight, states[2][name])
    assert any(not torch.equal(weight, states[3][name]) for name, weight in states[0].items())


@pytest.mark.parametrize("network", ["mlp", "gather", "residual", "slim"])
def test_a_new_network_plays_almost_uniformly(network: str) -> None:
    game = keisei.make_game("shogi", batch=4, seed=1)
    model = build_network({"network": network}, game.spec, seed=0)
    with torch.no_grad():
        probs = torch.softmax(model(torch.from_numpy(game.observe()))[0], dim=1)
    assert 0 < float((probs * game.spec.num_actions - 1).abs().max()) < 0.2


def test_counts_are_scaled_by_the_factors_of_the_game() -> None:
    plain = replace(spec_of("tictactoe"), observation=ObservationSpec((2, 3, 3), np.dtype(np.uint8)))
    scaled = replace(plain, observation=replace(plain.observation, scale=(0.5, 0.125)))
    counts = torch.tensor([4, 8], dtype=torch.uint8)[:, None, None].expand(1, 2, 3, 3)
    factors = torch.tensor([0.5, 0.125])[:, None, None]
    without, with_scale = (build_network(SMALL, spec, seed=1) for spec in (plain, scaled))
    assert torch.equal(with_scale(counts)[0], without(counts.float() * factors)[0])
    assert not torch.equal(with_scale(counts)[0], without(counts)[0])
    assert without.scale is None
    assert "scale" not in with_scale.state_dict()  # the game gives it, so it is no weight


def test_policy_planes_are_in_the_order_of_the_actions() -> None:
    """A single square that lights up must light up exactly its own actions, kind · 81 + square."""
    spec = spec_of("shogi")
    model = build_network({"network": "residual", **SMALL}, spec, seed=2)
    assert isinstance(model, ResidualNet)
    square = 5 * 9 + 7
    features = torch.zeros(1, 12, 9, 9)
    features[0, :, 5, 7] = torch.linspace(0.5, 1.5, 12)
    with torch.no_grad():
        logits = model.policy(features.contiguous(memory_format=torch.channels_last))
    assert np.flatnonzero(logits[0].numpy()).tolist() == [kind * 81 + square for kind in range(27)]


def test_the_policy_head_can_be_chosen() -> None:
    shogi, four = spec_of("shogi"), spec_of("connect-four")
    sizes = {}
    for head in ("auto", "planes", "linear"):
        model = build_network({"network": "residual", **SMALL, "policy_head": head}, shogi, seed=1)
        sizes[head] = sum(weight.numel() for weight in model.parameters())
    assert sizes["auto"] == sizes["planes"] < sizes["linear"]
    with pytest.raises(ConfigError, match=r"42 squares; connect-four has 7 actions, so take 'linear'"):
        build_network({"network": "residual", **SMALL, "policy_head": "planes"}, four, seed=1)


def test_a_game_says_that_its_actions_are_planes() -> None:
    """Two kinds of action for each square of tic-tac-toe: nothing but the spec tells that they are planes."""
    spec = replace(spec_of("tictactoe"), num_actions=18)
    sizes = {}
    for planes in (False, True):
        game = replace(spec, plane_actions=planes)
        model = build_network({"network": "residual", **SMALL}, game, seed=1)
        sizes[planes] = sum(weight.numel() for weight in model.policy.parameters())
    assert sizes[True] == 2 * (SMALL["channels"] + 1) < sizes[False]


def test_a_right_size_is_welcome_and_a_wrong_one_is_corrected() -> None:
    spec = spec_of("shogi")
    build_network({**SMALL, "input_dim": 4374, "action_dim": 2187}, spec, seed=0)
    with pytest.raises(ConfigError) as caught:
        build_network(ModelConfig(input_dim=3726, action_dim=13527), spec, seed=0)
    message = str(caught.value)
    assert "input_dim = 3726: an observation of shogi has 4374 numbers (54 x 9 x 9)" in message
    assert "action_dim = 13527: shogi has 2187 actions" in message


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"network": "resnet"}, "must be mlp, gather, residual, slim, actions, or a class of your own"),
        ({"network": "no_such_module:Net"}, "no module 'no_such_module'"),
        ({"network": f"{__name__}:SMALL"}, "extends keisei.policies.ActorCritic"),
        ({"network": ":Net"}, "names no class; write 'module:Class' or 'path.py:Class'"),
        ({"hidden_dims": 3}, "did you mean hidden_dim"),
        ({"num_layers": 0}, "from 1 to 64"),
    ],
)
def test_settings_that_make_no_network_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_network(config, spec_of("tictactoe"), seed=0)


def test_a_residual_network_needs_planes() -> None:
    flat = replace(spec_of("tictactoe"), observation=ObservationSpec((18,), np.dtype(np.uint8)))
    with pytest.raises(ConfigError, match=r"has \(18,\), so take network 'mlp'"):
        build_network({"network": "residual", **SMALL}, flat, seed=0)


@pytest.mark.parametrize("network", ["mlp", "gather", "residual", "slim"])
def test_every_weight_learns(network: str) -> None:
    game = keisei.make_game("connect-four", batch=3, seed=1)
    game.step(game.random_actions())
    model = build_network({"network": network, **SMALL, "squeeze_excitation": True}, game.spec, seed=4)
    logits, values = model(torch.from_numpy(game.observe()))
    (logits[:, 0].sum() + values.sum()).backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []
