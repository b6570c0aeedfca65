"""Checkpoints whose checksums are right and whose content is wrong, in all regimes: each is refused in words, or it is
as good as a whole one."""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import independent_for_tests
import pytest
import test_dqn_regime
import test_league_runs
from forged_for_tests import Forgery, forgeries, manifest_of, sealed
from training_for_tests import train

from keisei.errors import CheckpointError, KeiseiError
from keisei.policies.players.saved_player import load_player, load_players
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import load_checkpoint
from keisei.runs.directory import RunDirectory
from keisei.training.changes import check_changes
from keisei.training.presets import run_config
from keisei.training.regimes.registry import regime_of
from keisei.training.settings import TrainConfig
from keisei.training.wiring import connect, counters_of, pace_of

CASES = 60
"""Forgeries of each run that are tried. All of them take minutes."""
RUNS: dict[str, Callable[[Path], RunDirectory]] = {
    "ppo": lambda root: train(root, "run.steps=512").run,
    "league": lambda root: train(root, *test_league_runs.LEAGUE[:-1], "run.steps=512").run,
    "dqn": lambda root: (
        train(root, *test_dqn_regime.POOL[:-1], "learner.replay.prioritised=true", "run.steps=768").run
    ),
    "independent": lambda root: (
        independent_for_tests.train(root, "learner.agents={1: {algorithm: ppo}}", "run.steps=256").run
    ),
}


@dataclass(frozen=True)
class Original:
    """A run with one checkpoint, and a copy of all."""

    run: RunDirectory
    copy: Path
    config: TrainConfig

    @property
    def path(self) -> Path:
        return CheckpointArchive(self.run.checkpoints, read_only=True).paths()[-1]

    def forged(self, apply: Callable[[Path], None]) -> Path:
        shutil.rmtree(self.run.path)
        shutil.copytree(self.copy, self.run.path)
        apply(self.path)
        return self.path

    def resume(self) -> None:
        """Makes an update from the checkpoint, as a trainer does."""
        checkpoint = load_checkpoint(self.path)
        check_changes(self.run, checkpoint, self.config)
        parts = connect(self.config.placed(), checkpoint, self.run)
        try:
            loop = regime_of(self.config).loop(parts, pace_of(self.config), counters_of(checkpoint))
            next(loop)
            loop.close()
        finally:
            parts.manager.stop_workers()

    def play(self) -> None:
        spec = self.config.env.make(batch=1, seed=0).spec
        load_player("run", spec, self.run.path.parent)


@pytest.fixture(scope="module", params=[*RUNS])
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Original:
    root: Path = tmp_path_factory.mktemp(request.param)
    run = RUNS[request.param](root)
    for path in CheckpointArchive(run.checkpoints, read_only=True).paths()[:-1]:
        shutil.rmtree(path)
    shutil.copytree(run.path, root / "copy")
    config = run_config(run)
    longer = config.model_copy(update={"run": config.run.model_copy(update={"steps": 10**9})})
    return Original(run, root / "copy", longer)


def chosen(path: Path) -> list[Forgery]:
    """Chooses forgeries evenly from all parts of a checkpoint. The settings are compared and not restored."""
    parts: dict[str, list[Forgery]] = {}
    for forgery in forgeries(path):
        if "'settings'" not in forgery.what:
            parts.setdefault(
                forgery.what.split("'")[3] if forgery.what.count("'") > 3 else "files", []
            ).append(forgery)
    draw = random.Random(7)
    return [draw.choice(parts[name]) for name in draw.choices([*parts], k=CASES)]


def test_a_whole_checkpoint_is_resumed_and_plays(original: Original) -> None:
    original.forged(lambda path: sealed(path, manifest_of(path)))
    original.resume()
    original.play()


def test_a_forged_checkpoint_is_refused_in_words_or_serves(original: Original) -> None:
    told: list[str] = []
    for forgery in chosen(original.copy / "checkpoints" / original.path.name):
        original.forged(forgery.apply)
        for work in (original.resume, original.play):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # huge weights overflow
                    work()
            except CheckpointError as error:
                told.append(str(error))
            except KeiseiError:
                pass
            except Exception as error:
                raise AssertionError(f"{forgery.what}: {work.__name__}: {error!r}") from error
    assert len(told) > CASES // 3
    assert [text for text in told if original.path.name not in text] == []


def test_a_checkpoint_of_another_game_is_refused(original: Original) -> None:
    def change(path: Path) -> None:
        sealed(path, manifest_of(path) | {"game": "go"})

    path = original.forged(change)
    for work in (original.resume, original.play):
        with pytest.raises(CheckpointError, match=f"{path.name}.* is of the game 'go'"):
            work()
    spec = original.config.env.make(batch=1, seed=0).spec
    assert load_players(original.run, spec) == []


def test_moments_that_are_too_short_are_refused(original: Original) -> None:
    """Torch would write past their end."""
    wanted = [f for f in forgeries(original.path) if "exp_avg" in f.what and f.what.endswith(" shorter")]
    path = original.forged(wanted[0].apply)
    with pytest.raises(CheckpointError, match=f"{path.name}.*does not fit the network"):
        original.resume()


def test_what_fails_in_training_itself_keeps_its_error(
    original: Original, monkeypatch: pytest.MonkeyPatch
) -> None:
    original.forged(lambda path: None)
    monkeypatch.setattr("keisei.training.wiring.build_manager", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        original.resume()
