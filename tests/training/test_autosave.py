"""Checkpoints on schedule: a young run is saved often, since it changes fast and people look at it."""

from __future__ import annotations

from pathlib import Path

from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import Checkpoint
from keisei.training.autosave import EARLY, Autosave
from keisei.training.events import Counters
from keisei.training.settings import RunSettings


def autosave_in(tmp_path: Path, **settings: float) -> Autosave:
    def capture(counters: Counters) -> Checkpoint:
        return Checkpoint("tictactoe", {"update": counters.update, "seconds": counters.seconds}, {})

    store = CheckpointArchive(tmp_path / "checkpoints", keep=100)
    return Autosave(store, RunSettings(**settings), capture, lambda saved: None)


def saves(autosave: Autosave, begin: int, end: int) -> list[int]:
    """The seconds at which a run with an update each second is saved."""
    found = []
    for second in range(begin, end):
        counters = Counters(update=second, seconds=float(second))
        if autosave.is_due(counters):
            found.append(second)
            autosave.save(counters)
    return found


def test_a_young_run_is_saved_early(tmp_path: Path) -> None:
    autosave = autosave_in(tmp_path, checkpoint_minutes=60)
    autosave.save(Counters())
    assert saves(autosave, 1, 1000) == [10, 30, 60, 120, 300] == list(EARLY)


def test_a_resumed_run_does_not_begin_again(tmp_path: Path) -> None:
    autosave = autosave_in(tmp_path, checkpoint_minutes=60)
    path = autosave.save(Counters(update=40, seconds=40.0))
    assert path is not None
    again = autosave_in(tmp_path, checkpoint_minutes=60)
    again.resumed_from(Counters(update=40, seconds=40.0), path)
    assert saves(again, 41, 1000) == [60, 120, 300]


def test_a_long_pause_between_two_updates_makes_one_checkpoint(tmp_path: Path) -> None:
    autosave = autosave_in(tmp_path, checkpoint_minutes=60)
    counters = Counters(update=1, seconds=70.0)
    assert autosave.is_due(counters)
    autosave.save(counters)
    assert saves(autosave, 71, 119) == []
