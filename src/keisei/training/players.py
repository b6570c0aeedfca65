"""Players from runs: a text names a checkpoint, and its network plays.

    NAME, PATH                  a run, by its name below the root or its path: its best checkpoint, or if none is
                                marked best, its latest whole one
    RUN@best, RUN@latest        its best or latest checkpoint; ``latest`` skips damaged ones
    RUN@42                      the checkpoint of an update; also RUN@update-000000042
    RUN@member-0104             a member of its league
    RUN/checkpoints/NAME        a checkpoint's directory; also RUN/league/NAME

The network is built from the run's own configuration. It plays at the temperature of the run's evaluations, unless
another is given. A member of a league that comes from another run has its own network and temperature.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keisei.errors import CheckpointError, CheckpointVersionError, ConfigError, RunDatabaseError, RunError
from keisei.evaluation.matches import Player, Resolver
from keisei.games.contract import GameSpec
from keisei.games.options import did_you_mean
from keisei.policies.contract import Policy, TrainedPolicy
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import ActorCritic
from keisei.policies.neural import NeuralPolicy
from keisei.policies.registry import PLAYERS, named_player
from keisei.policies.seating import PolicyConfig
from keisei.policies.trust import demand_trust
from keisei.runs.archive import CheckpointArchive, Found
from keisei.runs.checkpoint import check_game, checkpoint_rank, load_checkpoint, restoring
from keisei.runs.database import RunDatabase
from keisei.runs.directory import CONFIG, RunDirectory, RunState, list_runs, named_below, run_at
from keisei.runs.snapshots import member_number
from keisei.training.changes import way_back
from keisei.training.presets import run_config
from keisei.training.regimes.registry import regime_of
from keisei.training.settings import TrainConfig

__all__ = [
    "RUNS",
    "CheckpointFacts",
    "RunGame",
    "RunNetwork",
    "checkpoint_facts",
    "find_checkpoint",
    "find_run",
    "find_state",
    "game_of",
    "load_network",
    "load_player",
    "load_players",
    "load_trained",
    "locate",
    "resolver",
    "run_of",
]

logger = logging.getLogger(__name__)

RUNS = Path("runs")
"""The default folder of runs."""


@dataclass(frozen=True)
class RunGame:
    """The game of a run."""

    name: str
    options: Mapping[str, Any]
    spec: GameSpec


@dataclass(frozen=True, eq=False)
class RunNetwork:
    """The network of a checkpoint."""

    model: ModelConfig
    network: ActorCritic
    temperature: float
    """What it plays at in evaluations."""


@dataclass(frozen=True)
class CheckpointFacts:
    """Which weights a player has, and how far its run is."""

    update: int
    saved: str
    """When, in ISO 8601 and UTC."""
    newest: int
    """The last update of the run that is known."""
    is_running: bool


def checkpoint_facts(text: str, root: Path = RUNS) -> CheckpointFacts | None:
    """Gives the facts of the checkpoint that a text names; None if it is a player without a run."""
    if text.partition(":")[0] in {player.partition(":")[0] for player in PLAYERS}:
        return None
    run, which = locate(text, root)
    checkpoint = _find(run, which).checkpoint
    newest = checkpoint.update
    with suppress(RunDatabaseError), RunDatabase(run.database, read_only=True) as database:
        newest = max(newest, getattr(database.progress(), "update", 0))
    return CheckpointFacts(
        checkpoint.update, checkpoint.created, newest, run.status().state is RunState.RUNNING
    )


def find_checkpoint(text: str, root: Path = RUNS) -> Path:
    """Finds the checkpoint that a text names. It is verified."""
    return _find(*locate(text, root)).path


def find_state(text: str, root: Path = RUNS) -> tuple[RunDirectory, Found]:
    """Finds the checkpoint that a text names, and its run. It is verified."""
    run, which = locate(text, root)
    return run, _find(run, which)


def find_run(text: str, root: Path = RUNS) -> RunDirectory:
    """Finds the run that a text names. A text that names a checkpoint is refused."""
    run, which = locate(text, root)
    if which:
        raise RunError(
            f"{text!r} names one checkpoint, and a whole run is meant here; write {_shown(run, root)}"
        )
    return run


def run_of(text: str, root: Path = RUNS) -> RunDirectory:
    """Finds the run of a text that may name one of its checkpoints."""
    return locate(text, root)[0]


def game_of(text: str, root: Path = RUNS) -> RunGame:
    """Gives the game of a run or of a checkpoint's run, with its options."""
    return _game(run_config(run_of(text, root)))


def load_player(text: str, spec: GameSpec, root: Path = RUNS, temperature: float | None = None) -> Player:
    """Loads the player that a text names, for a game of this spec: one of ``PLAYERS``, or a network. A network is
    named by its run and update, as in ``first@42``."""
    policy = named_player(text, spec)
    if policy is not None:
        return Player(text, policy)
    return Player(*load_trained(text, spec, root, temperature))


def load_trained(
    text: str, spec: GameSpec, root: Path = RUNS, temperature: float | None = None
) -> tuple[str, TrainedPolicy]:
    """Loads the network that a text names, and gives its name and its policy."""
    run, which = locate(text, root)
    found = _find(run, which)
    return f"{_shown(run, root)}@{_number(found.path)}", _policy(run, found, spec, temperature)


def load_network(text: str, spec: GameSpec, root: Path = RUNS) -> RunNetwork:
    """Loads the network of the checkpoint that a text names, for a game of this spec."""
    run, which = locate(text, root)
    found = _find(run, which)
    policy = _policy(run, found, spec, None)
    if not isinstance(policy, NeuralPolicy):
        raise ConfigError(f"{text!r} does not play with a network alone, so its weights cannot be taken")
    return RunNetwork(_config(run, found).model.resolved(spec), policy.network, policy.temperature)


def load_players(run: RunDirectory, spec: GameSpec, temperature: float | None = None) -> list[Player]:
    """Loads all checkpoints of a run, oldest first, with their names in ``run.db``. Those that cannot be read, or that
    hold no player, are logged and left out."""
    players = []
    for path in CheckpointArchive(run.checkpoints, read_only=True).paths():
        try:
            found = Found(load_checkpoint(path), path)
            players.append(Player(path.name, _policy(run, found, spec, temperature)))
        except CheckpointError as error:
            if path.exists():  # otherwise the trainer has just removed it
                logger.warning("checkpoint %s is left out: %s", path.name, error)
    return players


def resolver(root: Path = RUNS, temperature: float | None = None) -> Resolver:
    """Gives a resolver, with which ``play_match`` and tournaments accept runs and checkpoints as texts."""

    def resolve(text: str, spec: GameSpec) -> Policy:
        return load_player(text, spec, root, temperature).policy

    return resolve


def locate(text: str, root: Path = RUNS) -> tuple[RunDirectory, str]:
    """Finds the run of a text, and the part that names a checkpoint, as it is written; empty if there is none."""
    name, at, which = text.rpartition("@")
    directory = Path(text).absolute()
    if run := run_at(text, root):
        return run, ""
    if at and (run := run_at(name, root)):
        return run, which
    if directory.parent.name in ("checkpoints", "league") and (
        run := run_at(str(directory.parents[1]), root)
    ):
        return run, directory.name
    runs = [run.name for run in list_runs(root)]
    wanted = name if at else text
    near = did_you_mean(wanted, [*runs, *PLAYERS])
    raise RunError(
        f"no run is named {wanted!r}{near}. Runs in {root}: {', '.join(runs) or 'none'}. Write a run's name or path, "
        f"RUN@best, RUN@latest, RUN@UPDATE, or a checkpoint's directory; players without a run are {', '.join(PLAYERS)}"
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
    """Gives a checkpoint's update as a person writes it, with the attempt if it was not the first. A member of a
    league has its name."""
    rank = checkpoint_rank(path.name)
    if rank is None:
        return path.name
    update, attempt = rank
    return f"{update}-{attempt}" if attempt else str(update)


def _policy(run: RunDirectory, found: Found, spec: GameSpec, temperature: float | None) -> TrainedPolicy:
    config = _config(run, found)
    trained = _game(config).spec
    if trained.interface != spec.interface:
        raise ConfigError(
            f"{run.path} was trained on {trained.interface} and cannot play {spec.interface}; take a run of that game"
        )
    freely = config.evaluation.temperature if temperature is None else temperature
    check_game(found.checkpoint, trained.name)
    try:
        with restoring(found.checkpoint, "a player"):
            return regime_of(config).saved_policy(config, found.checkpoint, spec, freely)
    except CheckpointError as error:
        back = way_back(run, found.checkpoint)
        raise CheckpointError(f"{found.path} does not fit {run.path / CONFIG}: {error}.{back}") from error


def _config(run: RunDirectory, found: Found) -> TrainConfig:
    """Gives the settings of a checkpoint: those of its run. A member of a league that comes from another run names its
    own network and temperature."""
    config, member = run_config(run), found.checkpoint.documents.get("member")
    if not isinstance(member, Mapping) or member.get("kind") != "run":
        return config
    try:
        model = ModelConfig.model_validate(member["model"])
        demand_trust(run, model.model_dump(mode="json"), str(found.path))
        player = PolicyConfig.model_validate(member["player"])
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{found.path} does not say what its network is: {error!r}") from error
    evaluation = config.evaluation.model_copy(update={"temperature": player.temperature})
    return config.model_copy(update={"model": model, "evaluation": evaluation})


def _game(config: TrainConfig) -> RunGame:
    spec = config.env.make(batch=1, seed=0).spec
    return RunGame(config.env.game, config.env.game_options(), spec)


def _shown(run: RunDirectory, root: Path) -> str:
    named = named_below(run.path.resolve(), root.resolve())
    return str(run.path) if named.folder is None else named.name
