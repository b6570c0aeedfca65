"""What belongs to the experiment is the same on every machine; what belongs to the machine may change."""

from __future__ import annotations

from typing import Any

import pytest

from keisei.config import Rule, parse_settings
from keisei.errors import ConfigError
from keisei.training import settings
from keisei.training.changes import differences
from keisei.training.presets import load_preset, preset_names
from keisei.training.settings import TrainConfig


def config_of(**sections: Any) -> TrainConfig:
    return TrainConfig.model_validate({"env": {"game": "tictactoe"}, **sections})


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    number: int = request.param
    monkeypatch.setattr(settings, "usable_cores", lambda: number)
    return number


def test_settings_are_resolved_once_and_for_all() -> None:
    resolved = config_of().resolved()
    assert isinstance(resolved.learner.parts, int)
    assert resolved.parallel.tables == 4
    assert resolved.model.network == "slim"
    assert resolved.resolved() == resolved


@pytest.mark.parametrize("cores", [1, 2, 8, 64, 128], indirect=True)
@pytest.mark.parametrize("preset", preset_names())
def test_the_experiment_does_not_depend_on_the_cores(preset: str, cores: int) -> None:
    config = load_preset(preset).config()
    resolved = config.resolved()
    tables, games, horizon = config.parallel.tables, config.parallel.games, config.parallel.horizon
    assert tables is not None, "presets name their tables"
    assert (resolved.parallel.tables, resolved.parallel.games, resolved.parallel.horizon) == (
        tables, games, horizon,
    )  # fmt: skip
    assert resolved.rollout == tables * games * horizon == config.rollout
    assert horizon >= 32, "an update looks some moves ahead, on any machine"
    placed = resolved.placed()
    moved = differences(resolved.model_dump(mode="json"), placed.model_dump(mode="json"))
    assert {change.rule for change in moved} <= {Rule.FREE}
    assert placed.parallel.num_workers == min(cores, tables)
    assert placed.run.learner_threads == min(cores, resolved.learner.useful_threads())


@pytest.mark.parametrize("cores", [4], indirect=True)
def test_what_is_named_is_taken_as_it_is(cores: int) -> None:
    placed = config_of(parallel={"num_workers": 9}, run={"learner_threads": 5}).resolved().placed()
    assert (placed.parallel.num_workers, placed.run.learner_threads) == (9, 5)


@pytest.mark.parametrize("cores", [1, 4], indirect=True)
def test_asynchronous_workers_leave_a_core_to_the_learner(cores: int) -> None:
    placed = config_of(parallel={"mode": "async", "tables": 8}).resolved().placed()
    assert placed.parallel.num_workers == max(1, cores - 1)


@pytest.mark.parametrize("cores", [1, 2, 64], indirect=True)
def test_parts_do_not_depend_on_the_cores_and_threads_are_at_most_as_many(cores: int) -> None:
    config = TrainConfig.model_validate({"env": {"game": "shogi"}, "learner": {"minibatch_size": 1024}})
    resolved = config.resolved()
    assert resolved.learner.parts == 4
    assert resolved.placed().run.learner_threads == min(cores, 4)


@pytest.mark.parametrize(
    ("tables", "workers", "busy", "better"),
    [(5, 2, "83%", 6), (4, 8, "50%", 8), (3, 2, "75%", 4)],
)
def test_what_stays_idle_is_told_with_the_way_to_use_it(
    tables: int, workers: int, busy: str, better: int
) -> None:
    told = config_of(parallel={"tables": tables, "num_workers": workers}).idle_hands(workers)
    assert f"{tables} tables keep {workers} workers busy for {busy}" in told
    assert f"parallel.tables={better} would use them all" in told
    assert f"{better * 64 * 64:,} decisions" in told


@pytest.mark.parametrize(("tables", "workers"), [(4, 2), (4, 4), (4, 1), (63, 2)])
def test_where_little_is_idle_nothing_is_told(tables: int, workers: int) -> None:
    assert config_of(parallel={"tables": tables, "num_workers": workers}).idle_hands(workers) == ""


def test_a_run_has_one_seed_and_other_mistakes_are_told_beside_it() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(TrainConfig, {"parallel": {"seed": 3}, "learner": {"clipp": 1}})
    assert str(caught.value).splitlines() == [
        "2 problems in settings:",
        "  learner.clipp: unknown setting; did you mean clip?",
        "  parallel.seed: unknown setting; its place is run.seed",
    ]


def test_a_rule_for_all_settings_names_them_itself() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(TrainConfig, {"run": {"steps": None}})
    assert str(caught.value).splitlines()[1:] == [
        "  run.steps, run.minutes and run.episodes are all null: set one of them, so that the run has an end"
    ]


def test_a_discount_has_one_place() -> None:
    with pytest.raises(
        ConfigError, match=r"discount has one place for games and learners: write env\.discount"
    ):
        parse_settings(TrainConfig, {"env": {"options": {"discount": 0.5}}})
