"""The number of parts of a minibatch depends only on the work."""

from __future__ import annotations

import pytest

from keisei.games import make_game
from keisei.learners import parts
from keisei.learners.parts import fitting_parts, measured_operations, operations_per_row
from keisei.policies.model_config import BUILT_IN, ModelConfig

SLIM = ModelConfig(network="slim", channels=32, blocks=2)


def test_operations_are_two_for_each_weight_of_an_mlp() -> None:
    """A product and a sum for each of 18·10 + 10·10 + 10·9 + 10·1 weights."""
    spec = make_game("tictactoe").spec
    assert operations_per_row(ModelConfig(hidden_dim=10, num_layers=2), spec) == 2 * (180 + 100 + 90 + 10)


SHAPES = {
    "usual": {},
    "narrow": {"hidden_dim": 24, "num_layers": 1, "channels": 3, "blocks": 1},
    "deep": {"hidden_dim": 24, "num_layers": 3, "channels": 12, "blocks": 3, "squeeze_excitation": True},
    "linear head": {"channels": 8, "policy_head": "linear"},
}


@pytest.mark.parametrize("game", ["tictactoe", "connect-four", "shogi"])
@pytest.mark.parametrize("network", [name for name in BUILT_IN if name != "actions"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_computed_is_what_torch_counts(network: str, game: str, shape: str) -> None:
    spec = make_game(game).spec
    model = ModelConfig.model_validate({"network": network, **SHAPES[shape]})
    assert operations_per_row(model, spec) == measured_operations(model, spec)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("players", [2, 4])
def test_a_network_for_actions_is_counted_too(players: int, shape: str) -> None:
    spec = make_game("ludo", players=players).spec
    model = ModelConfig.model_validate({"network": "actions", **SHAPES[shape]})
    assert operations_per_row(model, spec) == measured_operations(model, spec)


def test_an_own_network_is_measured() -> None:
    spec = make_game("tictactoe").spec
    own = ModelConfig(network="keisei.policies.networks:MLP", hidden_dim=10)
    assert operations_per_row(own, spec) == operations_per_row(ModelConfig(hidden_dim=10), spec)


def test_a_small_network_learns_from_whole_minibatches() -> None:
    spec = make_game("tictactoe").spec
    assert [fitting_parts(ModelConfig(hidden_dim=32), spec, rows) for rows in (1, 256, 1024)] == [1, 1, 1]


def test_a_large_network_takes_parts_of_256_rows() -> None:
    spec = make_game("shogi").spec
    counts = {rows: fitting_parts(SLIM, spec, rows) for rows in (1, 255, 256, 511, 512, 1000, 1024, 4096)}
    assert counts == {1: 1, 255: 1, 256: 1, 511: 1, 512: 2, 1000: 3, 1024: 4, 4096: 16}


@pytest.mark.parametrize(
    ("operations", "rows", "count"),
    [
        (20_000_000 / 1024, 1024, 1),
        (40_000_000 / 1024, 1024, 2),
        (39_999_999 / 1024, 1024, 1),
        (80_000_000 / 1024, 1024, 4),
        (1e9, 1024, 4),
        (1.0, 1024, 1),
    ],
)
def test_every_part_has_work_enough(
    operations: float, rows: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "operations_per_row", lambda model, spec: operations)
    assert fitting_parts(SLIM, make_game("shogi").spec, rows) == count
