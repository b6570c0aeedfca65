"""Networks whose outputs are the values of actions, and the policies that play with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from keisei.errors import ConfigError
from keisei.games import make_game
from keisei.games.contract import Game
from keisei.policies.contract import Situation
from keisei.policies.gather_network import legal_actions
from keisei.policies.networks import ActorCritic, ModelConfig, build_network
from keisei.policies.neural import NeuralPolicy
from keisei.policies.q_network import QNetwork

NETWORKS = ["mlp", "gather", "residual", "slim"]


def model_of(network: str = "mlp", **settings: Any) -> dict[str, Any]:
    return {"network": network, "hidden_dim": 16, "num_layers": 1, "channels": 8, "blocks": 1, **settings}


def q_network(game: Game, network: str = "mlp", **settings: Any) -> QNetwork:
    built = build_network(model_of(network, **settings), game.spec, 3)
    assert isinstance(built, QNetwork)
    with torch.no_grad():  # a new network is nearly indifferent
        for weight in built.parameters():
            weight.add_(0.3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(7)))
    return built


def some_game(name: str = "connect-four", plies: int = 12) -> Game:
    game = make_game(name, batch=6, seed=5)
    for _ in range(plies):
        game.step(game.random_actions())
    return game


def inputs(game: Game) -> tuple[Tensor, Tensor, Any]:
    legal = game.legal()
    return torch.from_numpy(game.observe()), torch.from_numpy(legal_actions(legal)), legal


@pytest.mark.parametrize("quantiles", [1, 3])
@pytest.mark.parametrize("outputs", ["q", "dueling"])
@pytest.mark.parametrize("network", NETWORKS)
def test_values_are_those_of_the_definition(network: str, outputs: str, quantiles: int) -> None:
    game = some_game("shogi" if network == "slim" else "connect-four")
    built = q_network(game, network, outputs=outputs, quantiles=quantiles)
    observations, listed, legal = inputs(game)
    with torch.inference_mode():
        raw, position = (found.numpy() for found in built.body(observations))
        spread, _ = (found.numpy() for found in built(observations, listed, True))
        means, best = (found.numpy() for found in built(observations, listed))
    raw = raw.reshape(len(raw), quantiles, game.spec.num_actions)
    for row in range(len(raw)):
        actions = np.flatnonzero(legal[row])
        expected = raw[row][:, actions]
        if outputs == "dueling":
            expected = position[row] + expected - expected.mean()
        np.testing.assert_allclose(spread[row][:, : len(actions)], expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(means[row, : len(actions)], expected.mean(0), rtol=1e-4, atol=1e-4)
        assert best[row] == pytest.approx(expected.mean(0).max(), abs=1e-4)


def test_without_a_list_all_actions_count() -> None:
    game = some_game()
    built = q_network(game, outputs="dueling")
    observations = torch.from_numpy(game.observe())
    everything = torch.arange(7, dtype=torch.int32).expand(6, -1).contiguous()
    with torch.inference_mode():
        for listed, whole in zip(built(observations, everything), built(observations), strict=True):
            torch.testing.assert_close(listed, whole)


def test_the_quantiles_of_planes_keep_the_order_of_actions() -> None:
    """In Shogi, an action is a plane and a square. Each quantile has all planes."""
    game = some_game("shogi")
    built = q_network(game, "slim", outputs="q", quantiles=2)
    head = [layer for layer in built.body.modules() if isinstance(layer, torch.nn.Conv2d)][-1]
    assert head.out_channels == 2 * game.spec.num_actions // 81
    plain = build_network(model_of("slim", outputs="q"), game.spec, 3)
    plain_head = [layer for layer in plain.modules() if isinstance(layer, torch.nn.Conv2d)][-1]
    assert 2 * plain_head.out_channels == head.out_channels


def test_a_value_is_that_of_the_best_legal_action() -> None:
    game = some_game("tictactoe", plies=4)
    policy = NeuralPolicy(q_network(game, outputs="dueling"), game.spec, temperature=0.0)
    situation = Situation(game, 0, 0)
    values = policy.evaluate(situation.observations, situation.legal)
    observations, listed, legal = inputs(game)
    with torch.inference_mode():
        means, _ = policy.network(observations, listed)
    best = means.masked_fill(listed < 0, -torch.inf).max(1)
    np.testing.assert_allclose(values, best.values, rtol=1e-6)
    decision = policy.act(situation)
    np.testing.assert_array_equal(decision.actions, listed.gather(1, best.indices[:, None]).squeeze(1))
    np.testing.assert_array_equal(decision.values, values)
    assert legal[np.arange(6), decision.actions].all()


def test_a_temperature_draws_by_the_values() -> None:
    game = some_game("tictactoe", plies=2)
    policy = NeuralPolicy(q_network(game, outputs="dueling", quantiles=3), game.spec, temperature=0.5)
    decision = policy.act(Situation(game, 0, 0))
    observations, listed, _ = inputs(game)
    with torch.inference_mode():
        means, _ = policy.network(observations, listed)
    chances = torch.softmax(means.masked_fill(listed < 0, -torch.inf) / 0.5, dim=1).numpy()
    places = (listed.numpy() == decision.actions[:, None]).argmax(1)
    np.testing.assert_allclose(np.exp(decision.log_probs), chances[np.arange(6), places], rtol=1e-4)


@pytest.mark.parametrize("network", NETWORKS)
def test_all_values_begin_near_0(network: str) -> None:
    """A learner of values learns from its own, so large random ones would take long to unlearn."""
    game = some_game()
    observations, listed, legal = inputs(game)
    for outputs, bound in (("policy", 10.0), ("dueling", 0.1)):
        built = build_network(model_of(network, outputs=outputs), game.spec, 4)
        with torch.inference_mode():
            found, values = built(observations, listed)
        assert 0 < float(found[torch.from_numpy(legal_actions(legal)) >= 0].abs().max()) < 0.2
        assert 0 < float(values.abs().max()) < bound
    assert bound == 0.1


def test_the_same_seed_gives_the_same_weights_in_both_meanings() -> None:
    game = some_game()
    policy, values = (
        build_network(model_of(outputs=outputs), game.spec, 4) for outputs in ("policy", "dueling")
    )
    assert (policy.meaning, values.meaning) == ("policy", "q")
    for name, weight in policy.state_dict().items():
        if not name.startswith("value"):
            assert torch.equal(values.state_dict()[f"body.{name}"], weight)


def test_settings_without_a_regime_mean_a_policy() -> None:
    spec = some_game().spec
    assert ModelConfig().resolved(spec).outputs == "policy"
    assert build_network({"hidden_dim": 4}, spec, 0).meaning == "policy"
    with pytest.raises(ConfigError, match="outputs = 'advantage': must be one of auto, policy, q, dueling"):
        build_network({"outputs": "advantage"}, spec, 0)


class Own(ActorCritic):
    """A network of a user, which gives as many outputs as it is asked for."""

    def __init__(self, config: ModelConfig, spec: Any) -> None:
        super().__init__(spec.observation)
        self.outputs = torch.nn.Parameter(torch.arange(float(spec.num_actions)))

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return self.outputs.expand(len(inputs), -1), torch.zeros(len(inputs))


def test_a_network_of_your_own_may_have_quantiles() -> None:
    game = some_game(plies=0)
    built = build_network({"network": f"{__name__}:Own", "outputs": "q", "quantiles": 2}, game.spec, 0)
    with torch.inference_mode():
        means, best = built(torch.from_numpy(game.observe()))
    assert means[0].tolist() == [action + 3.5 for action in range(7)]
    assert best[0] == 9.5
