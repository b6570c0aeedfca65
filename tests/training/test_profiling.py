"""Profiling: the parts add up, and the work is that of a real run, in every placement."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from keisei.errors import ConfigError
from keisei.parallel.timeline import TimelineEvent
from keisei.training.api import train
from keisei.training.events import Update
from keisei.training.settings import TrainConfig
from keisei.training.studies.profiling import Profile, placed, profile

UPDATES, MINIBATCHES, EPOCHS = 3, 4, 2
STEP = ("unpacking", "forward", "losses", "backward", "stepping")


def config_of(**parallel: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "env": {"game": "tictactoe"},
            "model": {"network": "mlp", "hidden_dim": 8, "num_layers": 1},
            "learner": {"minibatch_size": 32, "epochs": EPOCHS},
            "parallel": {"num_workers": 2, "tables": 2, "games": 8, "horizon": 8, **parallel},
            "run": {"steps": 128 * UPDATES, "learner_threads": 1, "device": "cpu"},
            "evaluation": {"opponents": [], "every": 0},
        }
    )


@pytest.fixture(scope="module")
def serial() -> Profile:
    return profile(placed(config_of(), "serial"))


@pytest.fixture(scope="module")
def parallel() -> Profile:
    return profile(placed(config_of(), "parallel"))


def learner_spans(found: Profile) -> list[TimelineEvent]:
    return [event for event in found.timeline.events if event.lane == "learner"]


def test_a_profile_is_the_work_of_a_run_wherever_it_is_placed(
    serial: Profile, parallel: Profile, tmp_path: Path
) -> None:
    result = train(config_of(backend="inline"), root=tmp_path)
    assert serial.digest == parallel.digest == result.digest
    for found in (serial, parallel):
        assert found.updates == UPDATES
        assert found.transitions == result.counters.transitions == 128 * UPDATES
        assert found.gradient_steps == UPDATES * MINIBATCHES * EPOCHS
    placements = [found.config.parallel.backend for found in (serial, parallel)]
    assert placements == ["inline", "process"]
    assert serial.config.parallel.workers == parallel.config.parallel.workers == 2


@pytest.mark.parametrize("mode", ["serial", "parallel"])
def test_all_parts_add_up(mode: str, request: pytest.FixtureRequest) -> None:
    found: Profile = request.getfixturevalue(mode)
    parts = (found.collecting, found.preparing, found.learning, found.publishing, found.rest)
    assert sum(parts) == pytest.approx(found.wall)
    assert min(parts) > 0
    assert sum(astuple(found.workers)) == pytest.approx(found.collecting)
    assert min(astuple(found.workers)) >= 0
    assert sum(astuple(found.learner)) == pytest.approx(found.learning)
    assert min(astuple(found.learner)) > 0
    assert found.learner_cores > 0


def test_every_gradient_step_has_all_its_parts_in_order(serial: Profile) -> None:
    spans = learner_spans(serial)
    parts = [span.name for span in spans if span.name in STEP]
    assert parts == list(STEP) * serial.gradient_steps
    for name in (*STEP, "reporting"):
        total = sum(span.seconds or 0 for span in spans if span.name == name)
        assert getattr(serial.learner, name) == pytest.approx(total)


def test_every_part_of_a_minibatch_has_its_own_times() -> None:
    config = config_of()
    found = profile(
        placed(
            config.model_copy(update={"learner": config.learner.model_copy(update={"parts": 3})}), "serial"
        )
    )
    names = [span.name for span in learner_spans(found) if span.name in STEP]
    assert names == [*STEP[:-1] * 3, "stepping"] * found.gradient_steps
    assert sum(astuple(found.learner)) == pytest.approx(found.learning)
    assert min(astuple(found.learner)) > 0


def test_the_trace_shows_each_gradient_step_within_its_update(parallel: Profile) -> None:
    spans = learner_spans(parallel)
    updates = [span for span in spans if span.name == "learn"]
    assert len(updates) == UPDATES
    for update in updates:
        assert update.seconds is not None
        within = [
            span.name
            for span in spans
            if span is not update and update.started <= span.started < update.started + update.seconds
        ]
        assert Counter(within) == Counter(STEP * MINIBATCHES * EPOCHS + ("reporting",))
    slabs = Counter(event.lane for event in parallel.timeline.events if event.name in ("table 0", "table 1"))
    assert slabs.total() == 2 * UPDATES


def test_asynchronous_workers_are_looked_at_all_the_time() -> None:
    found = profile(placed(config_of(mode="async"), "parallel"))
    assert sum(astuple(found.workers)) == pytest.approx(found.wall)
    # V-trace asks the network about all experience, but that is preparing and no gradient step.
    forwards = [span for span in learner_spans(found) if span.name == "forward"]
    assert len(forwards) == found.gradient_steps


def test_it_tells_of_each_update() -> None:
    seen: list[Update] = []
    profile(placed(config_of(), "serial"), seen.append)
    assert [update.counters.update for update in seen] == [1, 2, 3]


def test_what_cannot_be_the_same_work_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"parallel\.mode = async"):
        placed(config_of(mode="async"), "serial")
    config = placed(config_of(), "serial")
    endless = config.model_copy(update={"run": config.run.model_copy(update={"steps": None, "minutes": 1.0})})
    with pytest.raises(ConfigError, match=r"run\.steps is null"):
        profile(endless)
