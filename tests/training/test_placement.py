"""Where a run is trained changes no bit of it, and may change whenever it is resumed."""

from __future__ import annotations

from pathlib import Path

import pytest
from training_for_tests import Recorder, tiny, train
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import checkpoint_rank
from keisei.runs.directory import RunDirectory
from keisei.training.api import plan_run
from keisei.training.callbacks import Callback
from keisei.training.events import Update
from keisei.training.interruption import Interruption
from keisei.training.trainer import Trainer, TrainResult

# Draws that cost make Shogi a game in which decisions are carried from slab to slab.
CARRIES = (
    "env={game: shogi, options: {max_plies: 30, limit: draw}, reward_structure: {draw: -0.5}}",
    "parallel={backend: inline, tables: 3, games: 4, horizon: 7}",
    "run.steps=420",
    "learner.minibatch_size=32",
    "learner.parts=2",
    "learner.advantage_share=0.7",
)


class InterruptAfter(Callback):
    """Asks for an end after an update."""

    def __init__(self, interruption: Interruption, update: int) -> None:
        self._interruption, self._update = interruption, update

    def on_update(self, update: Update) -> None:
        if update.counters.update == self._update:
            self._interruption.request()


def interrupted(root: Path, *overrides: str, after: int = 2, name: str = "run") -> TrainResult:
    interruption = Interruption()
    stop = InterruptAfter(interruption, after)
    result = train(root, *overrides, callbacks=[stop], interruption=interruption, name=name)
    assert result.outcome == "interrupted"
    return result


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train(tmp_path_factory.mktemp("expected"), *CARRIES, "parallel.num_workers=1").digest


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("backend", ["thread", "process"])
def test_any_number_of_workers_and_threads_comes_to_the_same_weights(
    tmp_path: Path, expected: str, backend: str, workers: int
) -> None:
    placement = (
        f"parallel.num_workers={workers}",
        f"parallel.backend={backend}",
        f"run.learner_threads={workers}",
    )
    assert train(tmp_path, *CARRIES, *placement).digest == expected


def test_a_run_is_resumed_with_other_workers_to_the_same_weights(tmp_path: Path, expected: str) -> None:
    """Also the decisions that wait for their outcome are taken over."""
    result = interrupted(tmp_path, *CARRIES, "parallel.num_workers=2")
    found = CheckpointArchive(result.run.checkpoints, read_only=True).latest()
    assert found is not None
    assert checkpoint_rank(found.path.name) == (2, 0)
    assert found.checkpoint.tensors["carry"], "some decisions are open"
    resumed = train(tmp_path, *CARRIES, "parallel.num_workers=3", "parallel.backend=process")
    assert resumed.digest == expected


def test_placement_is_changed_by_set_and_nothing_asks_for_a_restart(tmp_path: Path) -> None:
    whole = train(tmp_path, name="whole").digest
    interrupted(tmp_path, name="cut")
    moved = ["--set", "parallel.num_workers=3", "--set", "parallel.backend=thread"]
    told = CliRunner().invoke(
        app, ["train", str(tmp_path / "cut"), "--root", str(tmp_path), *moved, "--deterministic-digest"]
    )
    assert told.exit_code == 0, told.output
    assert told.stdout.strip() == whole
    assert RunDirectory.open(tmp_path / "cut").config()["parallel"]["num_workers"] == 3


def test_the_same_settings_in_another_place_are_the_same_run(tmp_path: Path) -> None:
    train(tmp_path, "run.steps=512", name="there")
    settings = tiny("run.steps=512").model_dump(mode="json")
    settings["parallel"] |= {"num_workers": 7, "backend": "process"}
    assert plan_run(settings, name="there", root=tmp_path).resumes


def test_more_hands_than_tables_leave_a_word(tmp_path: Path) -> None:
    recorder = Recorder()
    train(tmp_path, "parallel.num_workers=3", "run.steps=256", callbacks=[recorder])
    told = [message for _, message in recorder.notes if "would use them all" in message]
    assert told == [
        "2 tables keep 3 workers busy for 67% of a round. parallel.tables=3 would use them all (an update then learns "
        "from 384 decisions)"
    ]


def test_a_game_of_three_trains_without_matches(tmp_path: Path) -> None:
    """Seats act at once, and some rest: their decisions are carried."""
    config = tiny(
        "env={game: 'games_for_tests:Relay', options: {max_plies: 9}}", "parallel.horizon=5", "run.steps=300"
    )
    result = Trainer(RunDirectory.create(tmp_path, "relay", config), config).train()
    assert result.outcome == "finished"
