"""Makes a run whose network has learned from recorded games. ``keisei train`` then goes on with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keisei.errors import ConfigError, NotationError
from keisei.experience.demonstrations import Demonstrations, demonstrate
from keisei.games.contract import GameSpec
from keisei.games.offers import ReadsRecords, RecordedGame
from keisei.learners.contract import Learner
from keisei.learners.imitation import Imitation, ImitationConfig, Skill
from keisei.policies.trust import trust_settings
from keisei.runs.archive import CheckpointArchive
from keisei.runs.directory import NewRun, RunDirectory
from keisei.runs.state_tensors import load_model, model_tensors
from keisei.training.regimes.registry import regime_of
from keisei.training.settings import TrainConfig
from keisei.training.wiring import choose_device, first_checkpoint

__all__ = ["Epoch", "Library", "Pretrained", "pretrain", "read_library"]


@dataclass(frozen=True)
class Library:
    """Recorded games of files."""

    games: tuple[RecordedGame, ...]
    skipped: tuple[str, ...] = ()
    """For each file that could not be read, the reason."""


@dataclass(frozen=True)
class Epoch:
    """One pass over all games."""

    number: int
    loss: float
    skill: Skill
    """Measured on the games that were held out."""


@dataclass(frozen=True)
class Pretrained:
    """The new run, and how well its network imitates games that it has not seen."""

    run: RunDirectory
    learned: int
    """Decisions that it learned from."""
    held_out: int
    """Decisions that it was measured on."""
    epochs: tuple[Epoch, ...]
    best: Epoch
    """The epoch whose weights the run has: the one with the lowest log loss."""


OnStep = Callable[[int, int], None]
"""Called after each minibatch, with the number of minibatches done and of all."""


def read_library(paths: Sequence[Path], spec: GameSpec) -> Library:
    """Reads all games of files and folders. Files that are damaged are left out, with the reason; if none is whole,
    that is an error."""
    form = spec.record_format
    if not isinstance(form, ReadsRecords):
        raise ConfigError(f"{spec.name} has no records that can be read, so nothing can be learned from them")
    games: list[RecordedGame] = []
    skipped: list[str] = []
    for path in _files(paths, form.suffixes):
        try:
            games += [game for game in form.read(path) if game.actions]
        except NotationError as error:
            skipped.append(str(error))
    if not games:
        reason = f"; the first reason: {skipped[0]}" if skipped else ""
        raise ConfigError(
            f"no game was found in {', '.join(map(str, paths))}; files end in {', '.join(form.suffixes)}{reason}"
        )
    return Library(tuple(games), tuple(skipped))


def _files(paths: Iterable[Path], suffixes: tuple[str, ...]) -> list[Path]:
    """Lists files as they are named, and those in folders that have the right suffix."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise ConfigError(f"there is no file or folder {path}")
        inside = sorted(path.rglob("*")) if path.is_dir() else ()
        found += [file for file in inside if file.suffix.lower() in suffixes] if path.is_dir() else [path]
    return found


def pretrain(
    library: Library,
    config: TrainConfig,
    name: str,
    root: Path,
    *,
    epochs: int = 5,
    held_out: float = 0.1,
    settings: ImitationConfig | None = None,
    on_step: OnStep = lambda done, total: None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
) -> Pretrained:
    """Makes the run ``root/name`` from a resolved configuration. Whole games are held out, and the weights of the epoch
    with the lowest log loss on them are kept. If anything fails, there is no run."""
    new = NewRun.create(root, name, config)
    trust_settings(new.run, config)
    try:
        learned, measured = split(library, config, held_out)
        learner, imitation = _teacher(config, settings)
        done = _learn(imitation, learned, measured, epochs, on_step, on_epoch)
        best = min(done, key=_log_loss)
        CheckpointArchive(new.run.checkpoints).save(first_checkpoint(config, learner.state()))
    except BaseException:
        new.undo()
        raise
    return Pretrained(new.run, len(learned), len(measured), tuple(done), best)


def split(library: Library, config: TrainConfig, share: float) -> tuple[Demonstrations, Demonstrations]:
    """Splits the decisions into those to learn from and those of the games that are held out."""
    games = library.games
    count = round(share * len(games)) or 1
    if not 0 < share < 1 or count >= len(games):
        raise ConfigError(
            f"{share} of {len(games)} games cannot be held out; at least one game is needed to learn from and one to "
            f"measure with"
        )
    order = np.random.default_rng(config.run.seed).permutation(len(games)).tolist()
    env = config.env

    def of(numbers: Iterable[int]) -> Demonstrations:
        return demonstrate(env.game, env.game_options(), (games[number] for number in numbers), env.discount)

    return of(order[count:]), of(order[:count])


def _teacher(config: TrainConfig, settings: ImitationConfig | None) -> tuple[Learner[object], Imitation]:
    """Builds the learner of the run, and the imitation that trains its network."""
    game = config.env.make(batch=1, seed=0)
    device = choose_device(config.run.device)
    learner = regime_of(config).build_learner(config.placed(), config.learner, game, device)
    network = learner.behaviour(0.0).network
    if network.meaning == "q":
        raise ConfigError(
            "imitation teaches a policy, and this run's network gives values of actions (DQN); take a preset of "
            "PPO"
        )
    return learner, Imitation(network, game, settings, config.run.seed)


def _learn(
    imitation: Imitation,
    learned: Demonstrations,
    measured: Demonstrations,
    epochs: int,
    on_step: OnStep,
    on_epoch: Callable[[Epoch], None],
) -> list[Epoch]:
    """Learns, and leaves the network with the weights of its best epoch: the one with the lowest held-out log loss.
    Accuracy would look at the likeliest move alone, and self-play draws from all of them."""
    steps = -(-len(learned) // imitation.config.minibatch_size)
    done: list[Epoch] = []
    best = model_tensors(imitation.network)
    for number in range(1, epochs + 1):
        losses = []
        for loss in imitation.epoch(learned, number):
            losses.append(loss)
            on_step((number - 1) * steps + len(losses), epochs * steps)
        epoch = Epoch(number, float(np.mean(losses)), imitation.skill(measured))
        if all(_log_loss(epoch) < _log_loss(earlier) for earlier in done):
            best = model_tensors(imitation.network)
        done.append(epoch)
        on_epoch(epoch)
    load_model(imitation.network, best)
    return done


def _log_loss(epoch: Epoch) -> float:
    return epoch.skill.log_loss
