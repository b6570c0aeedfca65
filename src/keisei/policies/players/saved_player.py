"""Players from checkpoints. A checkpoint holds all that is needed to play it; ``players.finding`` says how texts name
one."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torch import Tensor

from keisei.errors import (
    CheckpointError,
    CheckpointVersionError,
    ConfigError,
    RunDatabaseError,
    UnknownGameError,
)
from keisei.games.contract import GameSpec
from keisei.policies.agents_network import joined_network, weights_of
from keisei.policies.contract import Player, TrainedPolicy
from keisei.policies.learner_policy import policy_of
from keisei.policies.model_config import ModelConfig, least_weights
from keisei.policies.networks import ActorCritic, build_network
from keisei.policies.neural import NeuralPolicy
from keisei.policies.players import needs_no_run
from keisei.policies.players.finding import RUNS, RunGame, locate, located_run, shown_run
from keisei.policies.players.player_document import PlayerDocument, read_document
from keisei.policies.registry import named_player
from keisei.policies.trust import trust_run
from keisei.runs.archive import CheckpointArchive, Found
from keisei.runs.checkpoint import Checkpoint, check_game, checkpoint_rank, load_checkpoint, restoring
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState
from keisei.runs.snapshots import member_number
from keisei.runs.state_tensors import load_model

__all__ = [
    "CheckpointFacts",
    "SavedPlayer",
    "checkpoint_facts",
    "find_player",
    "find_state",
    "load_player",
    "load_players",
]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckpointFacts:
    """Which weights a player has, and how far its run is."""

    update: int
    saved: str
    """When, in ISO 8601 and UTC."""
    newest: int
    """The last update of the run that is known."""
    is_running: bool


@dataclass(frozen=True, eq=False)
class SavedPlayer:
    """A checkpoint, and what it says of its player."""

    name: str
    """The run and the update, such as ``first@42``; outside of a run, the path."""
    checkpoint: Checkpoint
    document: PlayerDocument

    @classmethod
    def of(
        cls, checkpoint: Checkpoint, run: RunDirectory | None, name: str, *, trusted: bool = False
    ) -> SavedPlayer:
        """Reads a checkpoint of this run, or of none. Refuses code that nobody trusts."""
        return cls(name, checkpoint, read_document(checkpoint, run, trusted=trusted))

    @property
    def path(self) -> Path:
        assert self.checkpoint.path is not None
        return self.checkpoint.path

    @cached_property
    def game(self) -> RunGame:
        """The game that it plays, with its options."""
        try:
            with restoring(self.checkpoint, "its game"):
                game = RunGame.of(self.document.game, self.document.options)
        except UnknownGameError as error:
            raise UnknownGameError(
                f"{self.path} needs the game {self.document.game!r}, which it does not hold: {error}"
            ) from error
        check_game(self.checkpoint, game.spec.name)
        return game

    def policy(self, spec: GameSpec | None = None, temperature: float | None = None) -> TrainedPolicy:
        """Makes the policy, for a game of this spec. By default that is its own game, at its own temperature."""
        own = self.game.spec
        if spec is not None and own.interface != spec.interface:
            raise ConfigError(
                f"{self.name} was trained on {own.interface} and cannot play {spec.interface}; take a player of that "
                f"game"
            )
        freely = self.document.temperature if temperature is None else temperature
        with restoring(self.checkpoint, "a player"):
            return policy_of(self._network(own), spec or own, freely)

    def network(self, spec: GameSpec) -> tuple[ModelConfig, NeuralPolicy]:
        """Gets the one network that plays, for a game of this spec, and its settings."""
        policy = self.policy(spec)
        if not isinstance(policy, NeuralPolicy) or self.document.model is None:
            raise ConfigError(
                f"{self.name} does not play with a network alone, so its weights cannot be taken"
            )
        return self.document.model.resolved(spec), policy

    def _network(self, spec: GameSpec) -> ActorCritic:
        weights = self.checkpoint.tensors.get("model", {})
        if self.document.agents is None:
            assert self.document.model is not None
            return self._loaded(self.document.model, weights, spec)
        models = self.document.agents.models
        if len(models) != spec.seats:
            raise CheckpointError(f"it has {len(models)} agents for the {spec.seats} seats of {spec.name}")
        networks = [
            self._loaded(model, weights_of(weights, agent), spec) for agent, model in enumerate(models)
        ]
        return joined_network(self.document.agents, networks, spec)

    def _loaded(self, model: ModelConfig, weights: Mapping[str, Tensor], spec: GameSpec) -> ActorCritic:
        """Builds a network with these weights. Refuses a network that is larger than its weights, since it could take
        all memory."""
        held = sum(tensor.numel() for tensor in weights.values())
        if least_weights(model) > held:
            raise CheckpointError(
                f"its weights are {held:,} numbers, and a network {model.network} of this size has "
                f"{least_weights(model):,} or more"
            )
        try:
            network = build_network(model, spec, seed=None)
        except ConfigError as error:
            raise ConfigError(
                f"{self.path} needs the network {model.network!r}, which cannot be built here: {error}"
            ) from error
        load_model(network, weights)
        return network


def find_player(text: str, root: Path = RUNS, *, trust: bool = False) -> SavedPlayer:
    """Finds the checkpoint that a text names, as a player. With ``trust`` it may import the code that it or its run
    names, until this process ends."""
    run, which = locate(text, root)
    if run is None:
        return SavedPlayer.of(_load(Path(which)).checkpoint, None, which, trusted=trust)
    if trust:
        trust_run(run, keep=False)
    found = _find(run, which)
    return SavedPlayer.of(found.checkpoint, run, f"{shown_run(run, root)}@{_number(found.path)}")


def load_player(text: str, spec: GameSpec, root: Path = RUNS, temperature: float | None = None) -> Player:
    """Loads the player that a text names, for a game of this spec: one of ``PLAYERS``, or a network. A network is
    named by its run and update, as in ``first@42``."""
    policy = named_player(text, spec)
    if policy is not None:
        return Player(text, policy)
    saved = find_player(text, root)
    return Player(saved.name, saved.policy(spec, temperature))


def load_players(run: RunDirectory, spec: GameSpec, temperature: float | None = None) -> list[Player]:
    """Loads all checkpoints of a run, oldest first, with their names in ``run.db``. Those that cannot be read, or that
    hold no player, are logged and left out."""
    players = []
    for path in CheckpointArchive(run.checkpoints, read_only=True).paths():
        try:
            saved = SavedPlayer.of(load_checkpoint(path), run, path.name)
            players.append(Player(path.name, saved.policy(spec, temperature)))
        except CheckpointError as error:
            if path.exists():  # otherwise the trainer has just removed it
                logger.warning("checkpoint %s is left out: %s", path.name, error)
    return players


def find_state(text: str, root: Path = RUNS) -> tuple[RunDirectory, Found]:
    """Finds the checkpoint of a run that a text names, and the run. It is verified."""
    run, which = located_run(text, root)
    return run, _find(run, which)


def checkpoint_facts(text: str, root: Path = RUNS) -> CheckpointFacts | None:
    """Gets the facts of the checkpoint that a text names; None if it is a player without a run."""
    run, which = (None, "") if needs_no_run(text) else locate(text, root)
    if run is None:
        return None
    checkpoint = _find(run, which).checkpoint
    newest = checkpoint.update
    with suppress(RunDatabaseError), RunDatabase(run.database, read_only=True) as database:
        newest = max(newest, getattr(database.progress(), "update", 0))
    return CheckpointFacts(
        checkpoint.update, checkpoint.created, newest, run.status().state is RunState.RUNNING
    )


def _find(run: RunDirectory, which: str) -> Found:
    if member_number(which) is not None:
        return _load(run.league / which, "name another member or checkpoint")
    store = CheckpointArchive(run.checkpoints, read_only=True)
    if which in ("", "best") and (best := store.best_path()):
        return _load(best)
    if which in ("", "latest") and (found := store.latest("name another run")):
        return found
    paths = store.paths()
    chosen = [path for path in paths if which in (path.name, _number(path), _number(path).partition("-")[0])]
    if not chosen:
        known = f"it has {', '.join(map(_number, paths))}" if paths else "it has none yet"
        unmarked = ", and none is marked best" if paths and store.best_path() is None else ""
        raise CheckpointError(f"{run.path} has no checkpoint {which or 'to play with'}: {known}{unmarked}")
    return _load(chosen[-1])


def _load(path: Path, way_out: str = "name another checkpoint: RUN@latest skips damaged ones") -> Found:
    try:
        return Found(load_checkpoint(path), path)
    except CheckpointVersionError:
        raise  # it is whole, and names its way out
    except CheckpointError as error:
        raise CheckpointError(f"{error}. Restore it from a copy, or {way_out}") from error


def _number(path: Path) -> str:
    """Gets a checkpoint's update as a person writes it, with the attempt if it was not the first. A member of a league
    has its name."""
    rank = checkpoint_rank(path.name)
    if rank is None:
        return path.name
    update, attempt = rank
    return f"{update}-{attempt}" if attempt else str(update)
