"""What a run's settings say of a machine is fixed when the run is made."""

from __future__ import annotations

import pytest

from keisei.training import settings
from keisei.training.settings import TrainConfig


def test_settings_are_resolved_once_and_for_all() -> None:
    config = TrainConfig.model_validate({"env": {"game": "tictactoe"}})
    resolved = config.resolved()
    assert isinstance(resolved.parallel.num_workers, int)
    assert isinstance(resolved.learner.parts, int)
    assert isinstance(resolved.run.learner_threads, int)
    assert resolved.resolved() == resolved


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_parts_do_not_depend_on_the_cores_and_threads_are_at_most_as_many(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "usable_cores", lambda: cores)
    config = TrainConfig.model_validate({"env": {"game": "shogi"}, "learner": {"minibatch_size": 1024}})
    resolved = config.resolved()
    assert resolved.learner.parts == 4
    assert resolved.run.learner_threads == min(cores, 4)
