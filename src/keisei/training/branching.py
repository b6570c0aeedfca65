"""Runs that begin with what another run has learned.

A *branch* takes over a whole checkpoint: weights, optimiser, buffer, games, counters, league, and the history up to
there. Without other settings it learns the same bits as the run that it comes from. A *warm start* takes the weights
alone, into a run that begins at update 0. Both note where they come from (``runs.origin``).
"""

from __future__ import annotations

import logging
import math
import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from keisei.config import Rule
from keisei.errors import CheckpointError, ConfigError, RunDatabaseError, RunSettingsError
from keisei.policies.players.saved_player import find_state
from keisei.runs.archive import CheckpointArchive, Found
from keisei.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, free_path
from keisei.runs.origin import BRANCH, WEIGHTS, Origin, read_origin, write_origin
from keisei.runs.rows import ChangeRow
from keisei.runs.snapshots import SnapshotStore, named_members
from keisei.runs.state import State
from keisei.runs.state_tensors import weights_digest
from keisei.training.changes import Change, differences, shown, trained_with
from keisei.training.presets import Source
from keisei.training.regimes.registry import regime_of
from keisei.training.settings import TrainConfig
from keisei.training.wiring import choose_device, first_checkpoint, games_digest

__all__ = ["StartingPoint", "began_with", "newest_whole", "share_file", "way_back_after_divergence"]

logger = logging.getLogger(__name__)

NEW_GAMES = ("run.seed", "parallel.tables", "parallel.games", "parallel.horizon")
"""Settings that a run never changes, but a branch may: it begins with new games and an empty buffer."""
_RECORD = re.compile(r"update-(\d{9,})-.+")
_LEARNED = ("model", "target")
"""The groups of a learner's tensors that are weights of a network."""


@dataclass(frozen=True)
class StartingPoint:
    """A checkpoint of a run, from which another one goes on."""

    run: RunDirectory
    found: Found

    @classmethod
    def of(cls, text: str, root: Path) -> StartingPoint:
        """Finds the checkpoint that a text such as ``first@42`` names."""
        return cls(*find_state(text, root))

    @property
    def checkpoint(self) -> Checkpoint:
        return self.found.checkpoint

    @property
    def name(self) -> str:
        return f"{self.run.path}@{self.checkpoint.update}"

    @property
    def source(self) -> Source:
        """The settings that the checkpoint was trained with. They are the run's, so its code must be trusted."""
        settings = trained_with(self.run, self.checkpoint)
        return Source(self.run.name, settings, str(self.found.path), within=self.run)

    def origin(self, kind: str) -> Origin:
        weights = weights_digest(self._weights)
        update, checkpoint = self.checkpoint.update, self.found.path.name
        return Origin(kind, str(self.run.path.absolute()), self.run.id(), update, checkpoint, weights)

    @property
    def _weights(self) -> Mapping[str, torch.Tensor]:
        weights = self.checkpoint.tensors.get("model")
        if not weights:
            raise CheckpointError(f"{self.found.path} holds no weights of a network; name another checkpoint")
        return weights

    # Branches.

    def branch_config(self, overrides: Iterable[str]) -> TrainConfig:
        """Makes the settings of a branch: those of the checkpoint, changed by overrides. What the weights depend on
        stays."""
        if not self.checkpoint.documents.get("learner"):
            raise CheckpointError(
                f"{self.found.path} holds weights alone, and no state to go on from; take the weights into a new run: "
                f"keisei train PRESET --from {self.run.path}@{self.found.path.name}"
            )
        config = self.source.config(overrides).resolved()
        refused = [change for change in self._never(config) if change.setting not in NEW_GAMES]
        if refused:
            listed = "".join(f"\n  {change}" for change in refused)
            raise RunSettingsError(
                f"a branch of {self.name} cannot change these settings, since its weights depend on them:{listed}\n"
                f"Leave them out; or take the weights alone into a new run of the same network: keisei train PRESET "
                f"--from {self.name}"
            )
        return config

    def make_branch(self, new: RunDirectory, config: TrainConfig) -> list[str]:
        """Fills a new run with the checkpoint, its league and its history. Returns notes for people."""
        changes = self._never(config)
        origin = self.origin(BRANCH)
        save_checkpoint(new.checkpoints, self._branched(changes, config))
        self._copy_league(new)
        notes = [f"the run is {origin}", *self._copy_history(new, changes)]
        self._share_records(new)
        write_origin(new, origin)
        if changes:
            notes.append(f"all games begin anew, and the buffer is empty, since {_listed(changes)}")
        return notes

    def _never(self, config: TrainConfig) -> list[Change]:
        before = self.source.config().resolved().model_dump(mode="json")
        changes = differences(before, config.model_dump(mode="json"))
        return [change for change in changes if change.rule is Rule.NEVER]

    def _branched(self, changes: Sequence[Change], config: TrainConfig) -> Checkpoint:
        """Makes the first checkpoint of a branch. Other changes are found and told when the run starts."""
        if not changes:
            return self.checkpoint
        before = trained_with(self.run, self.checkpoint)
        settings: dict[str, Any] = {section: dict(values) for section, values in before.items()}
        for change in changes:
            section, name = change.setting.split(".")
            settings[section][name] = change.new
        documents = {
            **self.checkpoint.documents,
            "settings": settings,
            "tables": [],
            "games": games_digest(config),
        }
        return replace(self.checkpoint, documents=documents, blobs={}, pieces={})

    def _copy_league(self, new: RunDirectory) -> None:
        there, here = SnapshotStore(self.run.league), SnapshotStore(new.league)
        for number in sorted(named_members(self.found.path) & there.numbers()):
            try:
                here.save(number, there.load(number))
            except CheckpointError as error:
                logger.warning("a member of the league stays behind: %s", error)

    def _copy_history(self, new: RunDirectory, changes: Sequence[Change]) -> list[str]:
        """Copies the numbers up to the checkpoint, so that curves are whole."""
        update, notes = self.checkpoint.update, []
        try:
            if self.run.database.exists():
                with RunDatabase(self.run.database, read_only=True) as database:
                    database.copy(new.database)
        except RunDatabaseError as error:
            new.database.unlink(missing_ok=True)
            notes.append(f"its history stays behind: {error}")
        with RunDatabase(new.database) as copied:
            copied.rewind(update)
            copied.add_changes(
                ChangeRow(update, time.time(), change.setting, shown(change.old), shown(change.new))
                for change in changes
            )
        return notes

    def _share_records(self, new: RunDirectory) -> None:
        """Takes over the records of games up to the checkpoint. They are never written again, so links are enough."""
        for path in self.run.games.iterdir() if self.run.games.is_dir() else ():
            played = _RECORD.fullmatch(path.name)
            if played and int(played[1]) <= self.checkpoint.update:
                with suppress(OSError):
                    share_file(path, new.games / path.name)

    # Warm starts.

    def check_fit(self, config: TrainConfig) -> None:
        """Refuses weights of another network, and those for another game."""
        own = self.source.config().resolved()
        theirs, ours = (given.env.make(batch=1, seed=0).spec.interface for given in (own, config))
        if theirs != ours:
            raise ConfigError(f"{self.name} was trained on {theirs}, and this run plays {ours}; {_OTHER}")
        models = ({"model": given.model.model_dump(mode="json")} for given in (own, config))
        different = differences(*models)
        if different:
            listed = "".join(
                f"\n  {change.setting}: there {shown(change.old)}, here {shown(change.new)}"
                for change in different
            )
            raise ConfigError(
                f"the weights of {self.name} are those of another network:{listed}\nSet these as there with --set; or "
                f"{_OTHER}"
            )

    def make_warm_start(self, new: RunDirectory, config: TrainConfig) -> list[str]:
        """Writes the checkpoint of update 0, with these weights and all else new."""
        game = config.env.make(batch=1, seed=0)
        learner = regime_of(config).build_learner(config.placed(), config.learner, game, choose_device("cpu"))
        state = learner.state()
        taken = {group: self._weights if group in _LEARNED else own for group, own in state.tensors.items()}
        try:
            learner.restore(State(taken, state.document))
        except CheckpointError as error:
            raise ConfigError(f"{self.name} does not fit this run: {error}; {_OTHER}") from error
        CheckpointArchive(new.checkpoints).save(first_checkpoint(config, learner.state()))
        origin = self.origin(WEIGHTS)
        write_origin(new, origin)
        return [f"the run {origin}"]


_OTHER = "name a run of the same game and network with --from"


def began_with(run: RunDirectory, kind: str, source: RunDirectory, which: str) -> bool:
    """Checks if a run began in this way with a checkpoint of ``source``. ``which`` is what a person wrote after the @:
    the best and the latest may be others by now."""
    origin = read_origin(run)
    if origin is None or origin.kind != kind:
        return False
    same = origin.id == source.id() if origin.id else origin.run == str(source.path.absolute())
    return same and which in ("", "best", "latest", str(origin.update), origin.checkpoint)


def newest_whole(run: RunDirectory) -> int | None:
    """Finds the update of the newest checkpoint whose weights are all finite; None if there is none."""
    for path in reversed(CheckpointArchive(run.checkpoints, read_only=True).paths()):
        with suppress(CheckpointError):
            checkpoint = load_checkpoint(path)
            learned = [checkpoint.tensors.get(group, {}) for group in _LEARNED]
            if all(bool(torch.isfinite(tensor).all()) for weights in learned for tensor in weights.values()):
                return checkpoint.update
    return None


def way_back_after_divergence(run: RunDirectory, config: TrainConfig) -> str:
    """Names the command that goes on from before a divergence, with smaller steps."""
    update = newest_whole(run)
    if update is None:
        return f"No checkpoint has finite weights; start over: keisei train {run.path} --restart"
    changes = " ".join(f"--set {name}={_third(rate):g}" for name, rate in _rates(config).items())
    name = run.name.removesuffix(run.path.name) + free_path(run.path.parent, run.path.name + "-{}").name
    root = "" if run.root == Path("runs") else f" --root {run.root}"
    return f"Go back and take smaller steps: keisei train {run.name}@{update} --name {name}{root} {changes}"


def _rates(config: TrainConfig) -> dict[str, float]:
    """Gets the learning rates of a configuration by their settings."""
    learner = config.learner.model_dump(mode="json")
    if "learning_rate" in learner:
        return {"learner.learning_rate": float(learner["learning_rate"])}
    parts = ((part, learner.get(part)) for part in ("ppo", "dqn"))
    return {
        f"learner.{part}.learning_rate": float(of["learning_rate"])
        for part, of in parts
        if isinstance(of, Mapping) and "learning_rate" in of
    }


def _third(rate: float) -> float:
    """Computes a third of a rate as a round number."""
    third = rate / 3
    return round(third, 1 - math.floor(math.log10(third))) if third > 0 else third


def share_file(path: Path, target: Path) -> None:
    """Links a plain file, or copies it where that is not possible. Anything else is left out."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return
    try:
        os.link(path, target, follow_symlinks=False)
    except OSError:
        shutil.copyfile(path, target, follow_symlinks=False)


def _listed(changes: Sequence[Change]) -> str:
    return ", ".join(
        f"{change.setting} is {shown(change.new)} (was {shown(change.old)})" for change in changes
    )
