"""Schedules at points where a straight line, a cosine and a constant differ."""

from __future__ import annotations

import pytest

from keisei.learners.ppo_config import PPOConfig

QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


@pytest.mark.parametrize(
    ("settings", "rates"),
    [
        ({"schedule": "constant", "final_rate": 0.5}, (0.04, 0.04, 0.04, 0.04, 0.04)),
        ({"schedule": "linear"}, (0.04, 0.03, 0.02, 0.01, 0.0)),
        ({"schedule": "linear", "final_rate": 0.5}, (0.04, 0.035, 0.03, 0.025, 0.02)),
        # (1 + cos 45°) / 2 = 0.853553 and (1 + cos 135°) / 2 = 0.146447
        ({"schedule": "cosine"}, (0.04, 0.03414214, 0.02, 0.00585786, 0.0)),
        ({"schedule": "cosine", "final_rate": 0.5}, (0.04, 0.03707107, 0.03, 0.02292893, 0.02)),
    ],
)
def test_the_learning_rate_falls_as_scheduled(settings: dict[str, object], rates: tuple[float, ...]) -> None:
    config = PPOConfig(learning_rate=0.04, **settings)  # type: ignore[arg-type]
    assert [config.learning_rate_at(progress) for progress in QUARTERS] == pytest.approx(rates, abs=1e-8)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_beyond_its_ends_a_schedule_stands_still(schedule: str) -> None:
    config = PPOConfig(
        learning_rate=0.04, schedule=schedule, final_rate=0.25, entropy_weight=0.2, final_entropy_weight=0.1
    )
    for progress, end in ((-0.5, 0.0), (1.5, 1.0)):
        assert config.learning_rate_at(progress) == config.learning_rate_at(end)
        assert config.entropy_weight_at(progress) == config.entropy_weight_at(end)


def test_the_entropy_weight_goes_in_a_straight_line() -> None:
    falling = PPOConfig(entropy_weight=0.2, final_entropy_weight=0.1)
    assert [falling.entropy_weight_at(done) for done in QUARTERS] == pytest.approx(
        (0.2, 0.175, 0.15, 0.125, 0.1)
    )
    to_nothing = PPOConfig(entropy_weight=0.2, final_entropy_weight=0.0)
    assert to_nothing.entropy_weight_at(0.75) == pytest.approx(0.05)
    kept = PPOConfig(entropy_weight=0.2)
    assert [kept.entropy_weight_at(done) for done in QUARTERS] == [0.2] * 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", 0.0),
        ("final_rate", 1.1),
        ("epochs", 0),
        ("advantage_share", 0.0),
        ("advantage_share", 1.1),
        ("minibatch_size", 0),
        ("parts", 0),
        ("parts", "many"),
        ("clip", 0.0),
        ("value_clip", 0.0),
        ("trace", 1.01),
        ("rho_clip", 0.0),
        ("trace_clip", 0.0),
        ("target_kl", 0.0),
        ("max_grad_norm", 0.0),
    ],
)
def test_settings_out_of_range_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        PPOConfig(**{name: value})


@pytest.mark.parametrize("mirrored", [False, True])
def test_runs_that_once_learned_from_mirror_images_are_read(
    mirrored: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The setting is gone. Who had switched it on is told so."""
    config = PPOConfig.model_validate({"mirror": mirrored, "epochs": 2})
    assert config == PPOConfig(epochs=2)
    assert "mirror" not in config.model_dump()
    assert ("mirror: True is a setting of an earlier version" in caplog.text) is mirrored
