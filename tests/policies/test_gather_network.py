"""The gather network has an MLP's outputs and gradients, in every batch, build and type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor

import keisei
from keisei.errors import PolicyError
from keisei.experience.rollout import Minibatch
from keisei.games import Game, ObservationSpec, registered_games
from keisei.learners.ppo import PPO, PPOConfig
from keisei.native import core, load_core, usable_builds
from keisei.parallel.weights.model_sync import ModelSynchronizer
from keisei.policies import MLP, build_network
from keisei.policies.gather_network import GatherNet, legal_actions

WIDTHS = [1, 37, 64, 200]


def played(name: str, batch: int = 6, plies: int = 9) -> Game:
    game = keisei.make_game(name, batch=batch, seed=3)
    for _ in range(plies):
        game.step(game.random_actions())
    return game


def gather_net(game: Game, width: int = 64, layers: int = 2, seed: int = 1) -> GatherNet:
    config = {"network": "gather", "hidden_dim": width, "num_layers": layers}
    return cast(GatherNet, build_network(config, game.spec, seed))


def as_mlp(net: GatherNet, game: Game) -> MLP:
    """The MLP with the same weights: of a flat plane it looks at one square too, for its others weigh nothing."""
    layers = 1 + sum(isinstance(layer, torch.nn.Linear) for layer in net.body)
    config = {"hidden_dim": len(net.first.bias), "num_layers": layers}
    mlp = cast(MLP, build_network(config, game.spec, seed=2))
    weights = [net.policy, *(layer for layer in net.body if isinstance(layer, torch.nn.Linear)), net.value]
    hidden = [layer for layer in mlp.body if isinstance(layer, torch.nn.Linear)]
    with torch.no_grad():
        hidden[0].weight.zero_()
        hidden[0].weight[:, net.first.places.long()] = net.first.weight.T
        hidden[0].bias.copy_(net.first.bias)
        for own, other in zip([mlp.policy, *hidden[1:], mlp.value], weights, strict=True):
            own.load_state_dict(other.state_dict())
    return mlp


def rows_of(game: Game) -> tuple[Tensor, Tensor]:
    """Observations, and the legal actions of each."""
    return torch.from_numpy(game.observe()), torch.from_numpy(legal_actions(game.legal()))


def close(ours: Tensor, theirs: Tensor) -> bool:
    return ours.shape == theirs.shape and torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(registered_games()))
@pytest.mark.parametrize("layers", [1, 3])
def test_it_computes_what_an_mlp_does(name: str, layers: int) -> None:
    game = played(name)
    net = gather_net(game, layers=layers)
    with torch.no_grad():
        net.first.bias.normal_(generator=torch.Generator().manual_seed(1))
        ours, theirs = (network(rows_of(game)[0]) for network in (net, as_mlp(net, game)))
    assert close(ours[0], theirs[0])
    assert close(ours[1], theirs[1])
    assert ours[0].dtype == ours[1].dtype == torch.float32


@pytest.mark.parametrize("width", WIDTHS)
def test_it_learns_what_an_mlp_does(width: int) -> None:
    game = played("shogi", plies=60)
    net, (observations, _) = gather_net(game, width), rows_of(game)
    mlp = as_mlp(net, game)
    for network in (net, mlp):
        logits, values = network(observations)
        (logits.square().sum() + values.square().sum()).backward()
    first = next(layer for layer in mlp.body if isinstance(layer, torch.nn.Linear))
    assert first.weight.grad is not None
    assert close(cast(Tensor, net.first.weight.grad), first.weight.grad[:, net.first.places.long()].T)
    assert close(cast(Tensor, net.first.bias.grad), cast(Tensor, first.bias.grad))
    assert net.first.weight.grad is not None
    assert net.first.weight.grad.count_nonzero() > 0


@pytest.mark.parametrize("network", ["mlp", "gather"])
@pytest.mark.parametrize("width", WIDTHS)
def test_chosen_actions_have_the_logits_and_gradients_that_all_have(network: str, width: int) -> None:
    game = played("shogi", plies=60)
    observations, actions = rows_of(game)
    net = build_network({"network": network, "hidden_dim": width}, game.spec, seed=1)
    chosen, values = net(observations, actions)
    logits, same_values = net(observations)
    there = actions >= 0
    expected = logits.gather(1, actions.clamp(min=0).long())
    assert torch.equal(values, same_values)
    assert close(chosen[there], expected[there])
    gradients = []
    for found in (chosen, expected):
        net.zero_grad()
        found[there].square().sum().backward(retain_graph=True)
        gradients.append([weight.grad for weight in net.parameters() if weight.grad is not None])
    assert len(gradients[0]) == len(gradients[1]) > 4
    assert all(close(ours, theirs) for ours, theirs in zip(*gradients, strict=True))


def test_legal_actions_are_listed_in_order() -> None:
    legal = played("shogi", plies=30).legal()
    legal[2] = False
    legal[3, -1] = True
    listed = legal_actions(legal)
    assert listed.shape == (6, legal.sum(axis=1).max())
    for row, actions in zip(legal, listed, strict=True):
        count = row.sum()
        assert actions[:count].tolist() == np.flatnonzero(row).tolist()
        assert (actions[count:] == -1).all()


def test_a_row_depends_on_itself_alone() -> None:
    game = played("shogi", batch=8, plies=40)
    net, (observations, actions) = gather_net(game), rows_of(game)
    others = observations.flip(0)
    others[5] = observations[5]
    other_actions = actions.flip(0)
    other_actions[5] = actions[5]
    with torch.inference_mode():
        for ours, theirs in (
            (net(observations), net(others)),
            (net(observations, actions), net(others, other_actions)),
        ):
            assert torch.equal(ours[0][5], theirs[0][5])
            assert ours[1][5] == theirs[1][5]
            assert not torch.equal(ours[0][0], theirs[0][0])


def test_threads_change_nothing_of_the_sparse_products() -> None:
    game = played("shogi", batch=128, plies=20)
    observations = game.observe()
    net = gather_net(game, width=128)
    rows = core.SparseRows.gather(observations, net.first.places.numpy(), net.first.factors.numpy())
    weights, features = net.first.weight.detach().numpy(), np.ones((128, 128), np.float32)
    features *= np.arange(128, dtype=np.float32)
    head = (net.policy.weight.detach().numpy(), net.policy.bias.detach().numpy())
    results = []
    for threads in (1, 2, 5):
        sums, back = np.empty((128, 128), np.float32), np.empty(weights.shape, np.float32)
        scores = np.empty((128, game.spec.num_actions), np.float32)
        everything = np.tile(np.arange(game.spec.num_actions, dtype=np.int32), (128, 1))
        rows.times(weights, sums, threads)
        rows.transposed().times(features, back, threads)
        core.score(features, *head, everything, scores, threads)
        results.append(sums.tobytes() + back.tobytes() + scores.tobytes())
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("width", WIDTHS)
def test_both_builds_give_the_same_bits(width: int) -> None:
    game = played("shogi", plies=60)
    observations, actions = game.observe(), legal_actions(game.legal())
    net = gather_net(game, width)
    weights, bias = net.policy.weight.detach().numpy(), net.policy.bias.detach().numpy()
    results = []
    for name in usable_builds():
        build = cast(Any, load_core(name))
        rows = build.SparseRows.gather(observations, net.first.places.numpy(), net.first.factors.numpy())
        sums, scores = np.empty((6, width), np.float32), np.empty(actions.shape, np.float32)
        listed = np.empty_like(actions)
        rows.times(net.first.weight.detach().numpy(), sums, 1)
        build.score(sums, weights, bias, actions, scores, 1)
        build.list_actions(game.legal(), listed)
        results.append(sums.tobytes() + scores.tobytes() + listed.tobytes())
    assert set(results) == {results[0]}
    assert np.isfinite(np.frombuffer(results[0][: 6 * width * 4], np.float32)).all()


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32, torch.int16, torch.float64])
def test_observations_may_be_of_any_type(dtype: torch.dtype) -> None:
    game = played("tictactoe", plies=2)
    net, (observations, _) = gather_net(game), rows_of(game)
    assert torch.equal(net(observations.to(dtype))[0], net(observations)[0])


def test_observations_need_be_no_planes_nor_lie_in_one_piece() -> None:
    game = played("tictactoe", plies=2)
    spec = replace(game.spec, observation=ObservationSpec((18,), np.dtype(np.float32)))
    net = build_network({"network": "gather", "hidden_dim": 8}, spec, seed=1)
    planes = gather_net(game, width=8)
    wide = torch.zeros(6, 36)
    wide[:, ::2] = torch.from_numpy(game.observe()).flatten(1)
    assert torch.equal(net(wide[:, ::2])[0], planes(torch.from_numpy(game.observe()))[0])


def test_a_flat_plane_is_read_once_and_scaled() -> None:
    game = played("shogi")
    hand = 34
    assert hand in game.spec.observation.flat
    observations = torch.from_numpy(game.observe())
    more, elsewhere = observations.clone(), observations.clone()
    more[:, hand] += 2
    elsewhere[:, hand, 4, 4] += 2
    net = gather_net(game)
    row = int((net.first.places == hand * 81).nonzero())
    sums = [net.first(inputs) for inputs in (observations, more, elsewhere)]
    factor = game.spec.observation.scale[hand]
    assert close(sums[1] - sums[0], (2 * factor * net.first.weight[row]).expand(6, -1))
    assert torch.equal(sums[2], sums[0])
    assert len(net.first.weight) == 34 * 81 + 20


def test_other_precisions_give_the_same_numbers() -> None:
    game = played("shogi", plies=30)
    net, (observations, actions) = gather_net(game), rows_of(game)
    exact = gather_net(game).double()
    for listed in (None, actions):
        ours, theirs = net(observations, listed), exact(observations, listed)
        there = slice(None) if listed is None else listed >= 0
        assert close(ours[0][there], theirs[0][there].float())
        assert close(ours[1], theirs[1].float())


def test_no_rows_and_no_actions_are_fine() -> None:
    game = played("shogi")
    net, (observations, actions) = gather_net(game), rows_of(game)
    logits, values = net(observations[:0], actions[:0])
    assert logits.shape == (0, actions.shape[1])
    assert values.shape == (0,)
    assert net(observations, actions[:, :0])[0].shape == (6, 0)


def test_what_does_not_fit_is_refused() -> None:
    game = played("shogi")
    net, (observations, actions) = gather_net(game), rows_of(game)
    with pytest.raises(PolicyError, match=r"made for observations of shape \(54, 9, 9\), got \(53, 9, 9\)"):
        net(observations[:, :53])
    actions[0, 0] = game.spec.num_actions
    with pytest.raises(IndexError, match="outside 0 … 2186"):
        net(observations, actions)


def test_the_seed_alone_makes_the_weights() -> None:
    game = played("tictactoe")
    before = torch.random.get_rng_state()
    first, second, other = gather_net(game), gather_net(game), gather_net(game, seed=2)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.first.weight, other.first.weight)
    assert len(first.state_dict()) == 8  # two hidden layers and two heads: what the game gives is no weight


def test_a_reader_of_its_weights_plays_alike() -> None:
    game = played("shogi")
    learner, worker = gather_net(game), gather_net(game, seed=9)
    observations, actions = rows_of(game)
    with ModelSynchronizer(learner) as sync, torch.inference_mode():
        sync.reader().read_into(worker)
        assert torch.equal(worker(observations)[0], learner(observations)[0])
        assert torch.equal(worker(observations, actions)[0], learner(observations, actions)[0])


def test_ppo_improves_it() -> None:
    game = played("shogi", batch=32, plies=20)
    legal = game.legal()
    batch = Minibatch(
        packed=game.pack(),
        actions=game.random_actions(),
        log_probs=-np.log(legal.sum(axis=1)).astype(np.float32),
        values=np.zeros(32, np.float32),
        advantages=np.linspace(-1, 1, 32, dtype=np.float32),
        returns=np.linspace(-1, 1, 32, dtype=np.float32),
    )
    learner = PPO(gather_net(game), game, PPOConfig())
    history = []
    for _ in range(20):
        losses = learner.losses(batch)
        history.append((losses.policy.item(), losses.value.item()))
        learner.optimizer.zero_grad()
        losses.total(learner.config, 0.0).backward()  # type: ignore[no-untyped-call]
        learner.optimizer.step()
    assert history[-1][0] < history[0][0]
    assert history[-1][1] < 0.5 * history[0][1]
