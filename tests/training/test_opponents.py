"""Opponents that cannot play are refused before a run starts, all at once and with a way out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from runs_for_tests import damage, make_run
from training_for_tests import TINY

import keisei
from keisei.errors import ConfigError
from keisei.runs.directory import list_runs
from keisei.training.api import plan_run


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[..., str]:
    """What is said to opponents; nothing is written."""

    def refuse(*opponents: str, overrides: Sequence[str] = (), **env: Any) -> str:
        root = tmp_path / "runs"
        before = sorted(root.rglob("*"))
        settings = {**TINY, "env": {"game": "tictactoe", **env}, "evaluation": {"opponents": list(opponents)}}
        with pytest.raises(ConfigError) as caught:
            keisei.train(settings, root=root, name="mine", overrides=overrides)
        assert sorted(root.rglob("*")) == before
        return str(caught.value)

    return refuse


def test_all_are_told_at_once_with_those_that_can(refusal: Callable[..., str], tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "other", (3,))
    told = refusal("random", "foo", "search:99", "other@4", "other").splitlines()
    assert told[0] == "3 problems in evaluation.opponents:"
    assert told[1].startswith("  foo: no run is named 'foo'. Runs in")
    assert told[2].startswith("  search:99: search:DEPTH looks a whole number of plies ahead, 1 … 32")
    assert told[3].startswith(f"  other@4: {tmp_path / 'runs' / 'other'} has no checkpoint 4: it has 3")
    assert told[4] == (
        "Opponents in tictactoe: random, greedy, search:DEPTH, runs and checkpoints of that game. Without evaluations: "
        "evaluation.opponents=[]"
    )


def test_players_that_need_turns_or_two_seats(refusal: Callable[..., str]) -> None:
    told = refusal("greedy", "search:2", game="games_for_tests:Relay")
    assert "greedy: greedy plays games in turns; in relay several seats act at once" in told
    assert "search:2: search:2 plays games in turns" in told
    assert "Opponents in relay: random, runs and checkpoints" in told


def test_players_that_cannot_look_ahead(refusal: Callable[..., str]) -> None:
    told = refusal("greedy", "search:1", game="games_for_tests:Opaque")
    assert told.count("tictactoe is neither") == 2
    assert "Opponents in tictactoe: random, runs and checkpoints" in told


@pytest.mark.parametrize(
    ("override", "heading", "named"),
    [
        ("league.members=[random, greedy]", "league.members", "Members"),
        (
            "parallel.seating.opponents=[{policy: greedy, share: 0.5}]",
            "parallel.seating.opponents",
            "Opponents",
        ),
        (
            "parallel.table_overrides={1: {seating: {opponents: [{policy: greedy, share: 0.5}]}}}",
            "parallel.table_overrides.1.seating.opponents",
            "Opponents",
        ),
    ],
)
def test_whoever_the_learner_meets_must_be_able_to_play(
    tmp_path: Path, override: str, heading: str, named: str
) -> None:
    """In Ludo nobody can look ahead. A new run and a run that is resumed refuse it before anything is written."""
    settings = {**TINY, "env": {"game": "ludo"}}
    run = plan_run(settings, root=tmp_path, name="mine").run
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    for name in ("mine", "new"):
        with pytest.raises(ConfigError) as caught:
            keisei.train(settings, root=tmp_path, name=name, overrides=["league.enabled=true", override])
        told = str(caught.value).splitlines()
        assert told[0] == f"1 problem in {heading}:"
        assert told[1].startswith("  greedy: greedy looks ahead in games written as a SingleGame")
        assert told[2].startswith(f"{named} in ludo: random, heuristic, ")
    assert [run.name for run in list_runs(tmp_path)] == ["mine"]
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


def test_all_settings_that_name_players_are_told_at_once(refusal: Callable[..., str]) -> None:
    told = refusal(
        "foo",
        overrides=[
            "league.members=[{policy: greedy, temperature: 0.5}, search:99]",
            "parallel.seating.opponents=[{policy: learner, share: 0.1}, {policy: gredy, share: 0.1}]",
        ],
    )
    assert "1 problem in evaluation.opponents:\n  foo: no run is named 'foo'" in told
    assert (
        "1 problem in parallel.seating.opponents:\n  gredy: no policy is named 'gredy' (did you mean" in told
    )
    assert "2 problems in league.members:\n  greedy: 'greedy' always takes what it thinks best" in told
    assert "  search:99: search:DEPTH looks a whole number of plies ahead" in told


@pytest.mark.parametrize("setting", ["epsilon", "temperature"])
def test_settings_without_an_effect_are_refused(refusal: Callable[..., str], setting: str) -> None:
    told = refusal(overrides=[f"league.members=[{{policy: random, {setting}: 0.5}}]"])
    assert "random: 'random' always draws each action alike: leave out temperature and epsilon" in told


SEATED = "{seating: {opening_plies: 2}}"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            f"parallel.table_overrides={{0: {SEATED}, 1: {SEATED}}}",
            "all 2 tables have a seating of their own (parallel.table_overrides), and such a table does not meet",
        ),
        (
            "parallel.seating.opponents=[{policy: random, share: 1}]",
            "opponents play in all games, and the league",
        ),
        (
            f"parallel.seating.opponents=[{', '.join(10 * ['{policy: random, share: 0.1}'])}]",
            "opponents play in all games, and the league",
        ),
        (
            "league.curriculum=[{until: 0.2}, {until: 0.5, members: []}]",
            "curriculum.1.members = []: nobody may be drawn until 0.5; name members, or let the learner play against "
            "itself with latest_ratio: 1",
        ),
    ],
)
def test_a_league_that_nobody_would_meet_is_refused(
    refusal: Callable[..., str], override: str, message: str
) -> None:
    told = refusal(overrides=["league.enabled=true", override])
    assert told.startswith("1 problem in league:")
    assert message in told


def test_a_league_that_somebody_meets_is_taken(tmp_path: Path) -> None:
    phase = {"until": 0.5, "members": [], "latest_ratio": 1}
    settings = {**TINY, "league": {"curriculum": [phase]}}
    overrides = [f"parallel.table_overrides={{0: {SEATED}}}"]
    assert plan_run(settings, root=tmp_path, name="mine", overrides=overrides).config.league.enabled


def test_runs_of_another_game_or_shape(refusal: Callable[..., str], tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "four", (1,), game="connect-four")
    damage(make_run(tmp_path / "runs", "broken", (1,)).checkpoints / "update-000000001")
    told = refusal("four", "broken@1")
    assert "four: " in told
    assert "was trained on connect-four" in told.replace("connect_four", "connect-four")
    assert "model.safetensors is damaged" in told
    wider = refusal("small", game="connect-four", options={"rows": 5})
    assert "no run is named 'small'" in wider
    make_run(tmp_path / "runs", "small", (1,), game="connect-four", options={"rows": 4})
    assert "cannot play" in refusal("small", game="connect-four", options={"rows": 5})


def test_runs_and_checkpoints_that_can_play_are_taken(tmp_path: Path) -> None:
    run = make_run(tmp_path, "other", (3,))
    opponents = ["other", "other@3", str(run.checkpoints / "update-000000003"), "greedy", "search:2"]
    settings = {**TINY, "evaluation": {"opponents": opponents}}
    assert plan_run(settings, root=tmp_path, name="mine").config.evaluation.opponents == tuple(opponents)


@pytest.mark.parametrize("existing", ["resume", "restart", "overwrite"])
def test_a_run_that_exists_stays_as_it_is(tmp_path: Path, existing: Any) -> None:
    run = plan_run(TINY, root=tmp_path, name="mine").run
    before = (run.path / "config.yaml").read_bytes()
    with pytest.raises(ConfigError, match="foo: no run is named"):
        keisei.train("mine", root=tmp_path, overrides=["evaluation.opponents=[foo]"], existing=existing)
    assert (run.path / "config.yaml").read_bytes() == before
    assert [run.name for run in list_runs(tmp_path)] == ["mine"]
