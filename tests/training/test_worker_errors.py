"""An error in a game: a run tells it once, in one line, and its log keeps the traceback."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from logs_for_tests import read_log
from training_for_tests import TINY
from typer.testing import CliRunner

import keisei
from keisei.cli.main import app
from keisei.errors import ParallelError
from keisei.games.randomness import KeyedRandom
from keisei.games.tictactoe import TicTacToe
from keisei.runs.directory import RunDirectory, RunState

LINE = r"ZeroDivisionError: division by zero \(\S*test_worker_errors\.py:\d+\)"
PLACE = r"seed 0, table \d+ \(games \d+ … \d+\), epoch 0, slab \d+"


class Broken(TicTacToe):
    """Fails in its third ply."""

    name = "broken"

    def reset(self, rng: KeyedRandom) -> None:
        super().reset(rng)
        self.left = 3

    def play(self, action: int, rng: KeyedRandom) -> None:
        super().play(action, rng)
        self.left -= 1
        self.share = 1 / self.left


def settings(workers: int) -> dict[str, Any]:
    parallel = {**TINY["parallel"], "num_workers": workers}
    return {**TINY, "env": {"game": f"{__name__}:Broken"}, "parallel": parallel}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_tells_an_error_of_its_game_once(workers: int, tmp_path: Path) -> None:
    with pytest.raises(ParallelError) as caught:
        keisei.train(settings(workers), name="broken", root=tmp_path)
    told = str(caught.value)
    assert "\n" not in told
    assert len(re.findall(LINE, told)) == len(re.findall(PLACE, told)) == 1
    run = RunDirectory.open(tmp_path / "broken")
    assert caught.value.__notes__ == [f"The whole traceback of the worker is in {run.log}"]
    kept = [line["traceback"] for line in read_log(run.log) if "traceback" in line]
    assert kept
    assert all("Traceback (most recent call last)" in text and "1 / self.left" in text for text in kept)
    status = run.status()
    assert status.state is RunState.FAILED
    assert status.detail == f"{type(caught.value).__name__}: {told}"


def test_the_command_shows_a_line_and_where_the_rest_is(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text(json.dumps(settings(2)))
    root = tmp_path / "runs"
    result = CliRunner().invoke(app, ["train", str(tmp_path / "broken.yaml"), "--root", str(root), "--plain"])
    assert result.exit_code == 2
    error, note = result.stderr.strip().splitlines()
    assert re.search(f"^error: .*{LINE}", error)
    assert note == f"The whole traceback of the worker is in {root / 'broken' / 'log.jsonl'}"
    assert "Traceback" not in result.output
    shown = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["runs", "--root", str(root)]).stdout
    assert len([line for line in shown.splitlines() if "ZeroDivisionError" in line]) == 1
