"""The settings of the league: what is accepted, and what is refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from training_for_tests import tiny

from keisei.config import parse_settings
from keisei.errors import ConfigError
from keisei.training.changes import differences
from keisei.training.league.settings import LeagueSettings
from keisei.training.presets import load_preset, preset_names
from keisei.training.settings import TrainConfig


def settings(**given: Any) -> LeagueSettings:
    return parse_settings(LeagueSettings, given)


@pytest.mark.parametrize("override", ["league.enabled=true", "league={}"])
def test_one_setting_switches_it_on(override: str) -> None:
    assert tiny(override).league == LeagueSettings()
    assert tiny(override).league.enabled


@pytest.mark.parametrize("overrides", [(), ("league=null",), ("league.enabled=false",)])
def test_without_it_there_is_none(overrides: tuple[str, ...]) -> None:
    assert tiny(*overrides).league == LeagueSettings(enabled=False)
    assert not differences(tiny().model_dump(mode="json"), tiny(*overrides).model_dump(mode="json"))


def test_presets_play_without_a_league() -> None:
    for name in preset_names():
        assert not load_preset(name).config().league.enabled


def test_the_name_of_other_systems_is_accepted_once() -> None:
    assert settings(play_against_latest_model_ratio=0.25).latest_ratio == 0.25
    with pytest.raises(
        ConfigError, match="two ways to say one thing; leave out play_against_latest_model_ratio"
    ):
        settings(play_against_latest_model_ratio=0.25, latest_ratio=0.5)
    config = tiny("league.play_against_latest_model_ratio=0.25")
    again = parse_settings(TrainConfig, config.model_dump(mode="json"))
    assert again == config


def test_members_are_texts_or_tables() -> None:
    members = settings(members=["random", {"policy": "search:2", "share": 0.1}]).members
    assert [(member.policy, member.share) for member in members] == [("random", None), ("search:2", 0.1)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sampling": "best"}, "sampling = 'best': must be one of uniform, latest, pfsp"),
        ({"weighting": "cubic"}, "weighting = 'cubic': must be one of variance, squared, linear"),
        ({"add_when": "often"}, "add_when = 'often': must be one of steps, win_rate"),
        ({"latest_ratio": 1.5}, "latest_ratio = 1.5"),
        ({"window": 0}, "window = 0"),
        ({"swap_step": 5}, "did you mean swap_steps"),
        ({"members": ["random", "random"]}, "members names 'random' twice"),
        ({"members": ["learner"]}, "'learner' is no fixed member"),
        ({"members": ["snapshots"]}, "'snapshots' is no fixed member"),
        (
            {"members": [{"policy": "random", "share": 0.7}, {"policy": "greedy", "share": 0.4}]},
            "at most 1; they are 1.1",
        ),
        ({"curriculum": [{"until": 0.5}, {"until": 0.2}]}, r"theirs end at \[0.5, 0.2\]"),
        ({"curriculum": [{"until": 0.5, "members": ["greedy"]}]}, "names 'greedy', which is no member"),
        ({"curriculum": [{"until": 0}]}, r"curriculum.0.until = 0: must be a number above 0 and at most 1$"),
        (
            {"curriculum": [{"until": 1, "sampling": "x"}]},
            "sampling = 'x': must be one of uniform, latest, pfsp",
        ),
        (
            {"members": [{"policy": "a", "share": -1}]},
            "share = -1: must be a number above 0 and at most 1 or null",
        ),
        ({"members": "random"}, "members = 'random': must be a list of texts or tables"),
        (
            {"play_against_latest_model_ratio": -1},
            "play_against_latest_model_ratio = -1: must be a number from",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(**given)


def test_a_curriculum_changes_who_may_be_drawn() -> None:
    league = settings(
        members=["random"],
        latest_ratio=0.4,
        sampling="pfsp",
        curriculum=[
            {"until": 0.2, "members": ["random"], "latest_ratio": 0.0, "sampling": "uniform"},
            {"until": 0.5, "members": ["snapshots"]},
        ],
    )
    phases = [league.phase_at(progress) for progress in (0.0, 0.2, 0.5, 1.0)]
    assert [phase.members for phase in phases] == [("random",), ("snapshots",), None, None]
    assert [phase.latest_ratio for phase in phases] == [0.0, 0.4, 0.4, 0.4]
    assert [phase.sampling for phase in phases] == ["uniform", "pfsp", "pfsp", "pfsp"]


def test_a_game_for_one_has_nobody_to_meet() -> None:
    with pytest.raises(ConfigError, match="league: dummy has one seat"):
        tiny("env.game=dummy", "league={}")
