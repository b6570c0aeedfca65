"""The schedules of DQN, and the settings that it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from keisei.config import parse_settings
from keisei.errors import ConfigError
from keisei.learners.dqn_config import DQNConfig


def test_epsilon_falls_in_a_line_and_stays() -> None:
    config = DQNConfig(epsilon=1.0, final_epsilon=0.2, epsilon_share=0.5)
    found = [config.epsilon_at(progress) for progress in (-0.1, 0, 0.25, 0.5, 0.75, 1, 1.2)]
    assert found == pytest.approx([1, 1, 0.6, 0.2, 0.2, 0.2, 0.2])


def test_epsilon_falls_by_the_same_factor() -> None:
    config = DQNConfig(epsilon=0.8, final_epsilon=0.05, epsilon_decay="exponential", epsilon_share=0.4)
    found = [config.epsilon_at(progress) for progress in (0, 0.1, 0.2, 0.3, 0.4, 1)]
    assert found == pytest.approx([0.8, 0.4, 0.2, 0.1, 0.05, 0.05])


def test_the_learning_rate_follows_its_schedule() -> None:
    assert DQNConfig(learning_rate=0.4).learning_rate_at(0.5) == 0.4
    falling = DQNConfig(learning_rate=0.4, schedule="cosine", final_rate=0.5)
    assert [falling.learning_rate_at(progress) for progress in (0, 0.5, 1)] == pytest.approx([0.4, 0.3, 0.2])


@pytest.mark.parametrize("settings", [{"final_epsilon": 0}, {"epsilon": 0}])
def test_no_factor_leads_to_nothing(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="no factor leads from or to an epsilon of 0"):
        parse_settings(DQNConfig, {"epsilon_decay": "exponential", **settings})
    assert DQNConfig(**settings).epsilon_at(1) == settings.get("final_epsilon", 0.05)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", 0), ("minibatch_size", 0), ("parts", 0), ("tau", 0), ("tau", 1.5), ("target_interval", 0),
        ("huber", 0), ("max_grad_norm", 0), ("epsilon", -0.1), ("epsilon", 1.1), ("final_epsilon", 2),
        ("epsilon_share", 0), ("epsilon_spread", -1), ("epsilon_decay", "cosine"), ("schedule", "step"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=name):
        DQNConfig(**{name: value})
