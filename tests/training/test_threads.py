"""The learner's threads follow from the work, not from the clock."""

from __future__ import annotations

from keisei.games import make_game
from keisei.policies.networks import ModelConfig
from keisei.training.settings import TrainConfig
from keisei.training.threads import fitting_threads


def test_small_networks_get_one_thread_and_large_ones_all_cores() -> None:
    small, large = ModelConfig(hidden_dim=32), ModelConfig(network="slim", channels=32, blocks=2)
    tictactoe, shogi = make_game("tictactoe").spec, make_game("shogi").spec
    assert fitting_threads(small, tictactoe, 256, cores=8) == 1
    assert fitting_threads(large, shogi, 512, cores=8) == 8
    assert fitting_threads(large, shogi, 512, cores=1) == 1


def test_more_rows_are_worth_more_threads() -> None:
    model, spec = ModelConfig(network="slim", channels=8, blocks=1), make_game("connect-four").spec
    counts = [fitting_threads(model, spec, rows, cores=64) for rows in (16, 256, 4096)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_settings_are_resolved_once_and_for_all() -> None:
    config = TrainConfig.model_validate({"env": {"game": "tictactoe"}})
    resolved = config.resolved()
    assert isinstance(resolved.parallel.num_workers, int)
    assert isinstance(resolved.run.learner_threads, int)
    assert resolved.resolved() == resolved
