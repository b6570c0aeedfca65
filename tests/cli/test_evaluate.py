"""``keisei evaluate`` as a person runs it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.cli.views.wording import likelihood, percent
from keisei.evaluation import elo_difference, likelihood_of_superiority, play_match, score_interval
from keisei.games.shogi import kif
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory

RELAY = "games_for_tests:Relay"
"""Three seats that act at once."""


@pytest.fixture
def make_run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunDirectory]:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "training")
    made: Callable[..., RunDirectory] = import_module("runs_for_tests").make_run
    return made


@pytest.fixture
def root(tmp_path: Path, make_run: Callable[..., RunDirectory]) -> Path:
    make_run(tmp_path, "a", (10, 20), best=10)
    make_run(tmp_path, "b", (30,))
    return tmp_path


def run_evaluate(root: Path, *arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["evaluate", *arguments, "--root", str(root)])


def test_the_figures_are_those_of_the_match(root: Path) -> None:
    result = run_evaluate(root, "a", "--games", "40", "--seed", "3")
    assert result.exit_code == 0, result.output
    match = play_match("tictactoe", None, "a@10", "random", 40, 3, root=root)
    tally, seats = match.tally(), [match.tally(seat) for seat in (0, 1)]
    interval, elo = score_interval(tally), elo_difference(tally)
    facts, head, _, *lines = result.stdout.splitlines()
    assert re.fullmatch(r"a@10 plays with update 10, saved \d+ s ago\.", facts)
    assert head == "a@10 on tictactoe, seed 3, opening plies 1"
    figures = [tuple(part.strip() for part in line.split("  ", 1)) for line in lines]
    expected = [
        ("against", "random"),
        ("games", "40"),
        ("won-drawn-lost", f"{tally.wins}-{tally.draws}-{tally.losses}"),
        ("score", percent(tally.score)),
        ("95 % interval", f"{percent(interval.low)} … {percent(interval.high)}"),
        ("Elo difference", f"{elo.value:+.0f}"),
        ("95 % interval of it", f"{elo.low:+.0f} … {elo.high:+.0f}"),
        ("is the better one", likelihood(likelihood_of_superiority(tally))),
        *((f"in seat {seat}", f"{t.wins}-{t.draws}-{t.losses}") for seat, t in enumerate(seats)),
        ("mean length", f"{match.mean_length:.1f}"),
        *((f"ended by {ending}", percent(count / 40)) for ending, count in match.endings.items()),
    ]
    assert figures == expected
    assert [seat.games for seat in seats] == [20, 20]


def test_the_weights_of_a_run_that_goes_on_are_named(root: Path) -> None:
    run = RunDirectory.open(root / "b")
    with RunDatabase(run.database) as database:
        database.add_metrics(1234, 1234 * 64, {"train/loss": 0.5})
    with run.lock():
        told = run_evaluate(root, "b", "--games", "2").stdout.splitlines()[0]
    assert re.fullmatch(r"b@30 plays with update 30 of 1,234, saved \d+ s ago, and the run goes on\.", told)


def test_several_opponents_as_json(root: Path) -> None:
    opponents = [f"--opponent={name}" for name in ("random", "search:9", "b", "a@latest")]
    result = run_evaluate(root, "a@best", *opponents, "--games=20", "--opening-plies=0", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["player"], report["game"], report["opening_plies"]) == ("a@10", "tictactoe", 0)
    assert [match["opponent"] for match in report["matches"]] == ["random", "search:9", "b@30", "a@20"]
    for match in report["matches"]:
        assert match["wins"] + match["draws"] + match["losses"] == match["games"] == 20
        assert [sum(seat.values()) for seat in match["seats"]] == [10, 10]
        assert sum(match["endings"].values()) == 20
        assert match["score"]["low"] <= match["score"]["value"] <= match["score"]["high"]
    perfect = report["matches"][1]
    assert perfect["wins"] == 0 < perfect["losses"]  # nobody wins against a player who sees the end
    assert perfect["superiority"] < 0.01
    assert perfect["elo"]["value"] is None or perfect["elo"]["value"] < 0


def test_three_seats_are_told_by_returns_and_ranks(root: Path, make_run: Callable[..., RunDirectory]) -> None:
    make_run(root, "relay", (5,), game=RELAY)
    result = run_evaluate(root, "relay", "--games", "8", "--seed", "3")
    assert result.exit_code == 0, result.output
    match = play_match(RELAY, None, "relay@5", "random", 8, 3, root=root)
    mean, lead, tally = match.mean_return, match.lead, match.tally()
    figures = dict(re.split(r"  +", line, maxsplit=1) for line in result.stdout.splitlines()[3:])
    assert figures["games"] == "9"
    assert figures["mean return"] == f"{mean.value:.3f}"
    assert figures["95 % interval of the return"] == f"{mean.low:.3f} … {mean.high:.3f}"
    assert figures["return of the opponent"] == f"{match.opponent_return:.3f}"
    assert figures["lead over it"] == f"{lead.value:+.3f}"
    assert figures["mean rank"] == f"{match.mean_rank:.2f} of 3"
    assert figures["won-drawn-lost"] == f"{tally.wins}-{tally.draws}-{tally.losses}"
    assert {"in seat 0", "in seat 1", "in seat 2"} <= figures.keys()
    assert "is the better one" not in figures
    as_json = run_evaluate(root, "relay", "--games", "8", "--seed", "3", "--json")
    told = json.loads(as_json.stdout)["matches"][0]
    assert told["games"] == 9
    assert told["returns"]["mean"] == {"value": mean.value, "low": mean.low, "high": mean.high}
    assert told["returns"]["mean_rank"] == match.mean_rank
    assert [sum(seat.values()) for seat in told["seats"]] == [6, 6, 6]


def test_one_seat_is_told_by_its_return_beside_another_one(
    root: Path, make_run: Callable[..., RunDirectory]
) -> None:
    make_run(root, "alone", (5,), game="dummy", options={"length": 4})
    result = run_evaluate(root, "alone", "--games", "3", "--opponent", "alone@5", "--opponent", "random")
    assert result.exit_code == 0, result.output
    assert re.search(r"^games +3 +3$", result.stdout, re.MULTILINE)
    assert re.search(r"^lead over it +\+0\.000 ", result.stdout, re.MULTILINE)
    assert "mean rank" not in result.stdout


def test_seed_and_temperature_change_the_games(root: Path) -> None:
    def games(*arguments: str) -> Any:
        result = run_evaluate(root, "a", "--games", "40", "--json", *arguments)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["matches"]

    assert games("--seed", "1") == games("--seed", "1")
    assert games("--seed", "1") != games("--seed", "2")
    assert games("--seed", "1") != games("--seed", "1", "--temperature", "2")


def test_who_cannot_look_ahead_is_refused_before_the_first_match(
    root: Path, make_run: Callable[..., RunDirectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(*arguments: Any, **options: Any) -> None:
        raise AssertionError("played")

    make_run(root, "opaque", (1,), game="games_for_tests:Opaque")
    monkeypatch.setattr("keisei.evaluation.play_match", play)
    result = run_evaluate(root, "opaque", "--opponent", "random", "--opponent", "greedy")
    assert result.exit_code == 2
    assert "tictactoe is neither" in result.stderr


def test_progress_is_told_game_by_game() -> None:
    told: list[tuple[int, int]] = []
    play_match(
        "tictactoe", None, "random", "greedy", 12, batch=5, on_game=lambda *counts: told.append(counts)
    )
    ended = [count for count, _ in told]
    assert ended == sorted(set(ended))
    assert {5, 10, 12} <= set(ended)
    assert {total for _, total in told} == {12}


def test_nothing_is_written_into_the_run(root: Path) -> None:
    before = sorted(os.walk(root))
    assert run_evaluate(root, "a", "--games", "2").exit_code == 0
    assert sorted(os.walk(root)) == before


def test_games_are_written_as_kif(tmp_path: Path, make_run: Callable[..., RunDirectory]) -> None:
    make_run(tmp_path / "runs", "s", (7,), game="shogi", options={"max_plies": 12})
    records = tmp_path / "new" / "records"
    result = run_evaluate(
        tmp_path / "runs", "s", "--opponent", "search:1", "--games", "4", "--records", str(records)
    )
    assert result.exit_code == 0, result.output
    paths = sorted(records.iterdir())
    assert [path.name for path in paths] == [f"1-search-1-{number:04d}.kif" for number in (1, 2, 3, 4)]
    games = [kif.load(path) for path in paths]
    assert [game.names for game in games] == [("s@7", "search:1"), ("search:1", "s@7")] * 2
    assert all(1 <= len(game.moves) <= 12 for game in games)
    again = run_evaluate(tmp_path / "runs", "s", "--games", "4", "--records", str(records))
    assert again.exit_code == 2
    assert "is not empty" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["c"], "no run is named 'c'"),
        (["random"], "no run is named 'random'"),
        (["a", "--opponent", "gready"], "did you mean 'greedy'"),
        (["a", "--opponent", "search:no"], "search:DEPTH"),
        (["a", "--opponent", "four"], "was trained on connect"),
        (["relay", "--opponent", "random", "--opponent", "greedy"], "greedy plays games in turns"),
        (["a@11"], "has no checkpoint 11"),
        (["a", "--games", "7"], "play 8, not 7"),
        (["a", "--records", "records"], "tictactoe has no format for records"),
    ],
)
def test_errors_are_one_message(
    root: Path, make_run: Callable[..., RunDirectory], arguments: list[str], message: str
) -> None:
    make_run(root, "four", (1,), game="connect-four")
    make_run(root, "relay", (1,), game=RELAY)
    result = run_evaluate(root, *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr
