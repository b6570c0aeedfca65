"""Evaluations of games with one seat and with three, while they are trained; and the example that shows it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from math import comb
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from training_for_tests import Recorder, curve, train

import keisei
from keisei import make_game
from keisei.evaluation import play_match
from keisei.evaluation.results import MatchResult
from keisei.games.contract import Array
from keisei.games.randomness import KeyedRandom
from keisei.games.single import Outcome
from keisei.policies.players.saved_player import load_player
from keisei.runs.archive import CheckpointArchive
from keisei.runs.database import RunDatabase
from keisei.runs.rows import EvaluationRow
from keisei.training import examiner
from keisei.training.settings import EvaluationSettings

EXAMPLES = Path(__file__).parents[2] / "examples"


class Guess(keisei.SingleGame):
    """One seat: four times it earns 1 for the number that it sees."""

    name = "guess"
    seats = 1
    num_actions = 3
    observation = keisei.ObservationSpec((3,), np.dtype(np.uint8))
    scored_by_rewards = True
    max_plies = 4

    def reset(self, rng: KeyedRandom) -> None:
        self.shown = rng.integer(3)

    def legal(self, seat: int) -> list[int]:
        return [0, 1, 2]

    def play(self, action: int, rng: KeyedRandom) -> list[float]:
        earned = [float(action == self.shown)]
        self.shown = rng.integer(3)
        return earned

    def observe(self, seat: int) -> Array:
        return np.eye(3, dtype=np.uint8)[self.shown]

    def outcome(self) -> Outcome | None:
        return None


def evaluations_of(root: Path, name: str = "run") -> list[EvaluationRow]:
    with RunDatabase(root / name / "run.db", read_only=True) as database:
        return database.evaluations()


def test_three_seats_are_examined_by_returns(tmp_path: Path) -> None:
    recorder = Recorder()
    result = train(
        tmp_path,
        "env={game: 'games_for_tests:Relay', options: {max_plies: 9}}", "parallel.horizon=5", "run.steps=400",
        "evaluation={every: 200, games: 4, opponents: [random]}", "run.keep=9", callbacks=[recorder],
    )  # fmt: skip
    assert result.outcome == "finished"
    rows = evaluations_of(tmp_path)
    assert [row for evaluation in recorder.evaluations for row in evaluation.rows] == sorted(
        rows, key=lambda row: (row.update, row.opponent != "random")
    )
    assert {(row.seats, row.games, row.wins + row.draws + row.losses) for row in rows} == {(3, 6, 12)}
    for row in rows:
        assert row.mean_return is not None
        assert row.return_low is not None
        assert row.return_high is not None
        assert row.return_low <= row.mean_return <= row.return_high
        assert 1 <= row.mean_rank <= 3
    against_random = [row for row in rows if row.opponent == "random"]
    assert curve(result.run, "return/random") == [(row.update, row.mean_return) for row in against_random]
    again = play_match(
        "games_for_tests:Relay", {"max_plies": 9}, f"run@{rows[0].update}", "random", 4, rows[0].update,
        root=tmp_path,
    )  # fmt: skip
    assert again.mean_return.value == against_random[0].mean_return
    assert again.score.value == against_random[0].score
    with RunDatabase(result.run.database, read_only=True) as database:
        assert {"random", f"update-{rows[0].update:09d}"} <= {row.player for row in database.ratings()}
    best = CheckpointArchive(result.run.checkpoints, read_only=True).best_path()
    judged = [row for row in rows if row.against_checkpoint]
    assert judged
    assert best is not None
    assert (best.name == rows[0].player) == all(row.score < 0.55 for row in judged)


def test_one_seat_is_examined_by_returns_and_learns(tmp_path: Path) -> None:
    """A learner that sees the answer earns nearly 4, a random one 4/3."""
    keisei.register_game("test-exams-guess", Guess)
    result = train(
        tmp_path,
        "env.game=test-exams-guess", "run.steps=6000", "learner.learning_rate=1e-2", "learner.epochs=4",
        "run.checkpoint_every=null", "evaluation={every: 0, games: 60, opponents: [random]}",
        "run.stop_at={random: 0.95}",
    )  # fmt: skip
    (row,) = evaluations_of(tmp_path)
    assert (row.seats, row.games) == (1, 60)
    assert row.mean_return is not None
    assert row.return_low is not None
    assert row.opponent_return is not None
    assert row.return_low > 2 > row.opponent_return > 1
    assert row.score > 0.8
    assert result.evaluation is not None
    assert result.evaluation.is_best


def test_a_score_by_ranks_may_end_a_run(tmp_path: Path) -> None:
    settings = ("env.game='games_for_tests:Relay'", "evaluation={every: 200, games: 4, opponents: [random]}")
    result = train(tmp_path, *settings, "run.stop_at={random: 0.01}")
    assert "against random, at least 1.0%" in result.outcome


# The example


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield import_module("three_seats")
    sys.modules.pop("three_seats", None)


def test_the_example_of_three_seats_is_a_game(example: ModuleType) -> None:
    game = keisei.make_game(example.Pig, batch=300, seed=2)
    scores: list[list[float]] = []
    while len(scores) < 600:
        step = game.step(game.random_actions())
        scores += step.scores[step.done].tolist()
    assert all(max(score) >= 1 > sorted(score)[1] for score in scores)


def test_the_example_of_three_seats_learns(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example.main(tmp_path)
    (row,) = evaluations_of(tmp_path, "three_seats")
    assert (row.opponent, row.seats) == ("random", 3)
    assert row.mean_return is not None
    assert row.opponent_return is not None
    assert row.mean_return > row.opponent_return + 0.15
    assert row.low > 0.5
    assert f"mean rank {row.mean_rank:.2f} of 3" in capsys.readouterr().out


def test_another_run_plays_at_its_own_temperature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in ``keisei evaluate``: whom the examined run meets does not depend on how it plays itself."""
    train(tmp_path, "evaluation.temperature=0.3", name="other")
    asked: set[tuple[float, float]] = set()

    def spied(*args: Any, **more: Any) -> MatchResult:
        player, opponent = args[2:4]
        if opponent == "other@latest":  # and not the best checkpoint of the run itself
            other: Any = load_player(opponent, make_game("tictactoe").spec, more["root"]).policy
            asked.add((player.policy.temperature, other.temperature))
        return play_match(*args, **more)

    monkeypatch.setattr(examiner, "play_match", spied)
    train(tmp_path, "evaluation={temperature: 1.5, opponents: [other@latest]}", name="run")
    assert asked == {(1.5, 0.3)}


def test_the_docs_say_how_often_equals_pass_the_gate() -> None:
    """By the binomial distribution, for games without draws."""

    def passing(games: int, gate: float, chance: float) -> int:
        share = sum(
            comb(games, won) * chance**won * (1 - chance) ** (games - won)
            for won in range(games + 1)
            if won / games >= gate - 1e-9
        )
        return round(100 * share)

    shares = {(n, g, p): passing(n, g, p) for n in (40, 400) for g in (0.55, 0.65) for p in (0.5, 0.6)}
    assert list(shares.values()) == [32, 79, 4, 32, 3, 98, 0, 2]
    text = " ".join((Path(__file__).parents[2] / "docs" / "training.md").read_text().split())
    assert "a gate of 0.55 in 32 of 100 cases (40 games without draws), and a gate of 0.65 in 4" in text
    assert "win 60 % of their games pass them in 79 and 32" in text
    assert "With 400 games, 3 and 0 of 100 equals pass, and 98 and 2 of those that win 60 %" in text
    gate = EvaluationSettings.model_fields["gate"].default
    assert (gate, EvaluationSettings.model_fields["games"].default) == (0.55, 40)
