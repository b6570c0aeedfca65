"""Runs of an earlier version go on and play. They are kept as that version wrote them, in ``tests/data/runs``."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest
from training_for_tests import Recorder

from keisei.evaluation import play_match
from keisei.policies.players.player_document import DOCUMENT, read_document
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import load_checkpoint
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.training.presets import run_config
from keisei.training.regimes.registry import regime_of
from keisei.training.trainer import Trainer
from keisei.training.wiring import choose_device, player_document

RUNS = Path(__file__).parents[1] / "data" / "runs"
KINDS = ("ppo", "dqn", "independent")


def kept_run(kind: str, root: Path) -> RunDirectory:
    with tarfile.open(RUNS / f"{kind}.tar.xz") as archive:
        archive.extractall(root, filter="data")
    return RunDirectory.open(root / kind)


def test_there_is_one_of_each_regime() -> None:
    assert sorted(path.name.partition(".")[0] for path in RUNS.iterdir()) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_on(kind: str, tmp_path: Path) -> None:
    run = kept_run(kind, tmp_path)
    latest = CheckpointArchive(run.checkpoints, read_only=True).latest()
    assert latest is not None
    before = latest.checkpoint
    config, recorder = run_config(run), Recorder()
    assert config.run.steps is not None
    longer = config.model_copy(
        update={"run": config.run.model_copy(update={"steps": config.run.steps + 256})}
    )
    result = Trainer(run, longer, [recorder]).train()
    assert result.outcome == "finished"
    assert recorder.started[0].counters.update == before.update > 0
    updates = [update.counters.update for update in recorder.updates]
    assert updates == [*range(before.update + 1, before.update + 1 + len(updates))]
    assert updates
    assert [note for level, note in recorder.notes if level == "warning"] == []
    with RunDatabase(run.database, read_only=True) as database:
        progress = database.progress()
        assert progress is not None
        assert progress.update == updates[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_its_checkpoints_say_what_a_trainer_would_write_today(kind: str, tmp_path: Path) -> None:
    """They hold no player of their own, and their settings tell the same."""
    run = kept_run(kind, tmp_path)
    (path, *_) = CheckpointArchive(run.checkpoints, read_only=True).paths()
    old = load_checkpoint(path)
    assert DOCUMENT not in old.documents
    config = run_config(run)
    learner = regime_of(config).build_learner(
        config.placed(), config.learner, config.env.make(batch=1, seed=0), choose_device("cpu")
    )
    today = player_document(config, regime_of(config).agents_plan(learner)).model_dump()
    found = read_document(old, None).model_dump()
    for document in (today, found):
        if document["agents"] is not None:
            del document["agents"]["stacks"]  # agents of old checkpoints are computed one by one
    assert found == today


@pytest.mark.parametrize("kind", KINDS)
def test_it_plays(kind: str, tmp_path: Path) -> None:
    run = kept_run(kind, tmp_path)
    config = run_config(run)
    newest = CheckpointArchive(run.checkpoints, read_only=True).paths()[-1]
    alone = shutil.copytree(newest, tmp_path / "alone")
    for name in (kind, f"{kind}@latest", str(alone)):
        match = play_match(
            config.env.game, config.env.game_options(), name, "random", 2, seed=3, root=tmp_path
        )
        assert len(match.games) == 2
