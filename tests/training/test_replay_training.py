"""Training with a replay, from the settings to the last checkpoint, by a learner that only nudges its weights."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from training_for_tests import After, tiny, train

from keisei.config import Settings
from keisei.errors import ConfigError, SharedMemoryError
from keisei.experience import replay
from keisei.experience.replay import ReplayBuffer
from keisei.experience.replay_config import ReplaySettings
from keisei.experience.replayed import ReplayView
from keisei.experience.schema import SlabShape
from keisei.games.contract import Game, GameSpec
from keisei.learners.contract import Report
from keisei.policies.behaviour import Behaviour
from keisei.policies.networks import ActorCritic, build_network
from keisei.runs.archive import CheckpointArchive
from keisei.runs.directory import RunDirectory
from keisei.runs.state import State
from keisei.runs.state_tensors import load_model, model_tensors
from keisei.training import trainer, wiring
from keisei.training.callbacks import Callback, StopTraining
from keisei.training.events import Update
from keisei.training.interruption import UpdateAbandoned
from keisei.training.regimes import ppo
from keisei.training.settings import TrainConfig
from keisei.training.trainer import Trainer

SLABS = 6
"""Of the ring; two tables fill it in three updates."""


class Nudger:
    """Moves its weights a little by everything that it is shown, so that its digest tells every difference."""

    def __init__(self, network: ActorCritic) -> None:
        self._network = network
        self._steps = 0

    def learn(self, view: ReplayView, progress: float) -> Report:
        for _ in range(view.steps()):
            self._steps += 1
            sample = view.sample(16, 5, self._steps, progress)
            seen = [sample.packed.sum(), sample.next_packed.sum(), sample.actions.sum()]
            felt = [sample.rewards.sum(), sample.discounts.sum(), sample.weights.sum()]
            amount = float(np.sum(seen, dtype=np.float64) * 1e-6 + np.sum(felt, dtype=np.float64) * 1e-3)
            with torch.no_grad():
                for number, weight in enumerate(self._network.parameters()):
                    weight += 1e-3 * np.sin(amount + number)
            view.update_priorities(sample, np.abs(np.sin(sample.places + self._steps)).astype(np.float32))
        return Report({0: {}})

    def behaviour(self, progress: float) -> Behaviour:
        return Behaviour(self._network, 1.0, 0.0)

    def state(self) -> State:
        return State({"model": model_tensors(self._network)}, {"steps": self._steps})

    def restore(self, state: State) -> None:
        load_model(self._network, state.tensors["model"])
        assert isinstance(state.document, dict)
        self._steps = state.document["steps"]


def build_learner(config: TrainConfig, own: Settings, game: Game, device: torch.device) -> Nudger:
    return Nudger(build_network(config.model, game.spec, config.run.seed))


def build_buffer(
    settings: dict[str, Any], config: TrainConfig, own: Settings, spec: GameSpec, learner: object
) -> ReplayBuffer:
    parallel = config.parallel
    shape = SlabShape.of(spec, parallel.horizon, parallel.games)
    given = {"capacity": SLABS * shape.transitions, "learning_starts": 200, "save_replay": True} | settings
    return ReplayBuffer(
        spec,
        shape,
        ReplaySettings(**given),
        config.env.discount,
        batch_size=16,
        tables=parallel.table_count,
    )


@pytest.fixture
def use_replay(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets training take the nudger and a replay with these settings."""

    def use(**settings: Any) -> None:
        regime = replace(
            ppo.REGIME, build_learner=build_learner, build_buffer=partial(build_buffer, settings)
        )
        for module in (trainer, wiring):
            monkeypatch.setattr(module, "regime_of", lambda config: regime)

    return use


LONG = ("run.steps=2048",)
"""Eight updates."""


def stop() -> None:
    raise StopTraining("that is enough")


@pytest.mark.parametrize("settings", [{}, {"prioritised": True, "n_step": 2}, {"learning_steps": "auto"}])
def test_a_run_that_is_stopped_anywhere_ends_with_the_same_weights(
    settings: dict[str, Any], use_replay: Any, tmp_path: Path
) -> None:
    use_replay(**settings)
    whole = train(tmp_path, *LONG, name="whole")
    for update in (1, 5):
        train(tmp_path, *LONG, callbacks=[After(stop, update)], name=f"stopped-{update}")
        resumed = train(tmp_path, *LONG, "parallel.num_workers=1", name=f"stopped-{update}")
        assert resumed.counters.update == whole.counters.update == 8
        assert resumed.digest == whole.digest


def test_the_state_before_an_abandoned_update_is_kept_with_its_replay(
    use_replay: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The update has already taken two slabs and overwritten two others when it is abandoned."""
    use_replay(prioritised=True)
    whole = train(tmp_path, *LONG, name="whole")
    monkeypatch.setattr(trainer, "LONG_UPDATE", -1.0)
    learn, updates = Nudger.learn, []

    def abandoned(self: Nudger, view: ReplayView, progress: float) -> Report:
        updates.append(progress)
        report = learn(self, view, progress)
        if len(updates) == 5:
            raise UpdateAbandoned
        return report

    with monkeypatch.context() as patch:
        patch.setattr(Nudger, "learn", abandoned)
        stopped = train(tmp_path, *LONG, "run.checkpoint_every=100", name="abandoned")
    assert stopped.outcome == "interrupted"
    assert stopped.counters.update == 4
    assert train(tmp_path, *LONG, name="abandoned").digest == whole.digest


def test_it_learns_something_else_each_time_otherwise(use_replay: Any, tmp_path: Path) -> None:
    """So the digests above can tell."""
    digests = set()
    for number, settings in enumerate(
        ({}, {"prioritised": True}, {"n_step": 1}, {"sample_to_insert_ratio": 3.0})
    ):
        use_replay(**settings)
        digests.add(train(tmp_path, *LONG, name=f"run-{number}").digest)
    assert len(digests) == 4


@pytest.mark.parametrize("placement", [("parallel.use_shared_memory=false",), ("parallel.backend=thread",)])
def test_the_placement_changes_no_bit(placement: tuple[str, ...], use_replay: Any, tmp_path: Path) -> None:
    use_replay()
    whole = train(tmp_path, *LONG, name="whole")
    assert train(tmp_path, *LONG, *placement, name="elsewhere").digest == whole.digest
    train(tmp_path, *LONG, callbacks=[After(stop, 5)], name="moved")
    assert train(tmp_path, *LONG, *placement, name="moved").digest == whole.digest


def test_without_a_saved_replay_it_fills_again_and_says_so(
    use_replay: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    use_replay(save_replay=False)
    train(tmp_path, *LONG, callbacks=[After(stop, 5)])
    seen: list[int] = []

    class Watching(Callback):
        def __init__(self) -> None:
            self.warnings: list[str] = []

        def on_update(self, update: Update) -> None:
            seen.append(len(self.trainer.parts.buffer))  # type: ignore[arg-type]

        def note(self, message: str, level: str = "info") -> None:
            self.warnings += [message] if level == "warning" else []

    watching = Watching()
    run = RunDirectory.open(tmp_path / "run")
    again = Trainer(run, tiny(*LONG), [watching])
    watching.trainer = again  # type: ignore[attr-defined]
    again.train()
    assert "it fills again, and learning starts after 200 decisions" in caplog.text
    (shown,) = watching.warnings
    assert "it fills again" in shown, "a person sees it too"
    assert seen[0] < 256 < seen[-1]
    assert "it fills again" in run.log.read_text()


def test_checkpoints_share_the_slabs_of_the_replay(use_replay: Any, tmp_path: Path) -> None:
    use_replay()
    run = train(tmp_path, *LONG).run
    files = [path.stat() for path in run.checkpoints.rglob("*.piece")]
    kept = len(CheckpointArchive(run.checkpoints, read_only=True).paths())
    assert kept == 3
    assert len(files) == 3 * SLABS
    assert len({file.st_ino for file in files}) == SLABS + 2 * 2, "each update has two new slabs"


def test_asynchronous_training_keeps_its_leases(use_replay: Any, tmp_path: Path) -> None:
    use_replay()
    overrides = (*LONG, "parallel.mode=async", "parallel.backend=thread", "learner.correction=none")
    leased: list[int] = []

    class Watching(Callback):
        def on_update(self, update: Update) -> None:
            info = self.trainer.parts.manager.communicator.get_queue_info()  # type: ignore[attr-defined]
            assert info["slabs"] == 2 * 4 + SLABS
            leased.append(info["leased"])

    watching = Watching()
    config = tiny(*overrides)
    made = Trainer(RunDirectory.create(tmp_path, "run", config), config, [watching])
    watching.trainer = made  # type: ignore[attr-defined]
    assert made.train().counters.transitions >= 2048
    assert max(leased) == leased[-1] == SLABS


def test_a_replay_larger_than_memory_is_refused_before_anything_starts(
    use_replay: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_replay(capacity=10_000_000)
    monkeypatch.setattr(replay, "free_memory", lambda: 1 << 20)
    with pytest.raises(SharedMemoryError, match="capacity = 10,000,000 makes a replay of"):
        train(tmp_path, *LONG)
    use_replay(capacity=300)
    with pytest.raises(ConfigError, match="a replay has at least two for each of the 2 tables"):
        train(tmp_path, *LONG)
