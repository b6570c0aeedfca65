"""The network that looks at each action by itself: what it shares, and what it must not mix up."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch

from keisei.errors import ConfigError
from keisei.games import make_game
from keisei.games.contract import Game
from keisei.policies import build_network
from keisei.policies.gather_network import legal_actions

MODEL = {"network": "actions", "hidden_dim": 16, "num_layers": 2}


def played(players: int = 2, plies: int = 60) -> Game:
    game = make_game("ludo", batch=32, seed=3, players=players)
    for _ in range(plies):
        game.step(game.random_actions())
    return game


def with_tokens_in_another_order(game: Game, order: tuple[int, ...]) -> Game:
    """The same positions, with the tokens of all seats in another order."""
    packed = game.pack()
    tokens = packed[:, 7:].reshape(len(packed), -1, 4)[:, :, order]
    packed[:, 7:] = tokens.reshape(len(packed), -1)
    observations, legal = game.unpack(packed)
    other = make_game("ludo", batch=len(packed), seed=3, **{"players": game.spec.seats})
    other.observe = lambda out=None: observations  # type: ignore[method-assign]
    other.legal = lambda out=None: legal  # type: ignore[method-assign]
    return other


@pytest.mark.parametrize("players", [2, 4])
def test_inputs_of_actions_are_those_of_their_tokens(players: int) -> None:
    """Written from the table in docs/games/ludo.md."""
    game = played(players)
    inputs, size = game.spec.action_inputs, game.spec.observation.size
    assert inputs is not None
    observations, legal = game.observe(), game.legal()
    for action in range(24):
        die, token = 1 + action // 4, action % 4
        assert inputs.kinds[action] == die - 1
        seen = observations[:, inputs.places[action]]
        assert (seen[:, :58] == observations[:, 58 * token : 58 * token + 58]).all()
        assert (seen[:, 58:61] == observations[:, [232 + token, 236 + token, 240 + token]]).all()
        assert (seen[:, 61] == legal[:, action]).all()
        assert (seen[~legal[:, action], 62:] == 0).all()
    assert len(inputs.others(size)) == size - 4 * 61 - 5 * 24


@pytest.mark.parametrize("order", [order for order in permutations(range(4)) if order[0] == 2])
def test_the_order_of_tokens_changes_nothing_but_the_order_of_actions(order: tuple[int, ...]) -> None:
    game = played()
    other = with_tokens_in_another_order(game, order)
    network = build_network(MODEL, game.spec, seed=1)
    logits, values = network(torch.from_numpy(game.observe()))
    others, values_there = network(torch.from_numpy(other.observe()))
    moved = logits.unflatten(1, (6, 4))[:, :, order].flatten(1)  # type: ignore[no-untyped-call]
    assert torch.allclose(others, moved, atol=1e-6)
    assert torch.allclose(values, values_there, atol=1e-6)


def test_listed_actions_have_the_logits_of_all() -> None:
    game = played()
    network = build_network(MODEL, game.spec, seed=1)
    observations, listed = torch.from_numpy(game.observe()), torch.from_numpy(legal_actions(game.legal()))
    every, values = network(observations)
    some, values_there = network(observations, listed)
    wanted = every.gather(1, listed.clamp(min=0).long())
    assert torch.allclose(some[listed >= 0], wanted[listed >= 0], atol=1e-6)
    assert torch.equal(values, values_there)


def test_dice_are_told_apart() -> None:
    game = played()
    network = build_network(MODEL, game.spec, seed=1)
    logits = network(torch.from_numpy(game.observe()))[0].unflatten(1, (6, 4))  # type: ignore[no-untyped-call]
    assert len(torch.unique(logits[0, :, 0])) == 6


def test_quantiles_are_in_the_order_of_the_q_network() -> None:
    """Each output comes from a row of weights of its own, so another row changes its quantile alone."""
    game = played()
    network = build_network({**MODEL, "outputs": "q", "quantiles": 3}, game.spec, seed=1)
    observations, listed = torch.from_numpy(game.observe()), torch.from_numpy(legal_actions(game.legal()))
    before = network(observations, listed, all_quantiles=True)[0]
    assert before.shape == (32, 3, listed.shape[1])
    with torch.no_grad():
        network.body.policy.bias[1] += 1.0
    change = network(observations, listed, all_quantiles=True)[0] - before
    where = listed >= 0
    for quantile, wanted in enumerate([0.0, 1.0, 0.0]):
        assert torch.allclose(change[:, quantile][where], torch.tensor(wanted), atol=1e-6)


def test_gradients_reach_every_weight() -> None:
    game = played()
    network = build_network(MODEL, game.spec, seed=1)
    logits, values = network(torch.from_numpy(game.observe()))
    (logits.square().sum() + values.square().sum()).backward()
    assert [name for name, weight in network.named_parameters() if not weight.grad.abs().sum() > 0] == []


def test_a_game_that_does_not_describe_its_actions_is_refused() -> None:
    with pytest.raises(ConfigError, match="tictactoe has none, so take network 'mlp'"):
        build_network(MODEL, make_game("tictactoe").spec, seed=1)


def test_a_seed_makes_the_weights() -> None:
    spec = make_game("ludo").spec
    first, again, other = (build_network(MODEL, spec, seed=seed).first for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert np.isclose(float(first.detach().std()), np.sqrt(2 / 64), rtol=0.1)
