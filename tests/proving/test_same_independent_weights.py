"""``keisei verify --training`` on independent agents: every way to train ends with the same weights of all agents."""

from __future__ import annotations

import pytest
from independent_for_tests import config_of

from keisei.proving import same_weights
from keisei.proving.same_weights import verify_training


def test_independent_agents_come_to_the_same_weights_in_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_weights, "TRAINER_KILLS", 1)
    config = config_of(
        "env={game: treasurehunt, options: {height: 5, width: 5, agents: 3, max_turns: 8, vision: 1}}",
        "learner.agents={2: {algorithm: ppo}}",
    )
    report = verify_training(config, workers=(2,), updates=3, kills=1)
    assert report.same, report
    assert {run.updates for run in report.runs} == {3}
