"""The number that a sweep compares."""

from __future__ import annotations

from pathlib import Path

from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.rows import EvaluationRow
from keisei.training.experiments.scores import Objective, result_of


def write(root: Path, name: str, scores: list[float]) -> RunDirectory:
    run = RunDirectory.create(root, name, {"env": {"game": "tictactoe"}})
    with RunDatabase(run.database) as database:
        for update, score in enumerate(scores, start=1):
            numbers = {"train/value_loss": 1 - score, "time/time_elapsed": 60.0 * update}
            database.add_metrics(update, update * 100, numbers)
            row = EvaluationRow(update, update * 100, 0.0, "x", "random", 1, 0, 1, score, 0.0, 1.0)
            database.add_evaluation(row)
    return run


def test_the_last_number_up_to_a_step(tmp_path: Path) -> None:
    run = write(tmp_path, "a", [0.2, 0.4, 0.9])
    score = Objective("random")
    assert (score.of(run), score.of(run, 250), score.of(run, 200), score.of(run, 99)) == (0.9, 0.4, 0.4, None)
    assert Objective("greedy").of(run) is None
    assert Objective("", "train/value_loss").of(run, 200) == 0.6
    assert score.of(RunDirectory(tmp_path / "none")) is None


def test_results_are_ranked_by_their_means(tmp_path: Path) -> None:
    low, high = ([write(tmp_path, f"{name}{seed}", [value]) for seed, value in enumerate(values)]
                 for name, values in (("low", (0.1, 0.3)), ("high", (0.6, 0.8))))  # fmt: skip
    score, loss = Objective("random"), Objective("", "train/value_loss", lower_is_better=True)
    for objective in (score, loss):
        assert result_of(high, objective).rank(objective) > result_of(low, objective).rank(objective)
    nothing = result_of([RunDirectory(tmp_path / "none")], score)
    assert nothing.rank(score) < result_of(low, score).rank(score)
    found = result_of(high, score)
    assert found.mean is not None
    assert (round(found.mean.value, 3), found.seconds, found.runs) == (0.7, 120.0, 2)
