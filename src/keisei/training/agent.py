"""Agents in five lines: ``keisei.PPO("connect-four").learn(minutes=1)``.

Behind an agent is an ordinary run, which every command and the dashboard take. It is made by the first ``learn``.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from numpy.typing import ArrayLike

from keisei.config import parse_settings
from keisei.errors import ConfigError, RunError, RunExistsError
from keisei.evaluation.matches import Player, PlayerLike, play_match
from keisei.evaluation.results import MatchResult
from keisei.games.contract import GameSpec, IntArray
from keisei.games.offers import PackedBoard
from keisei.games.registry import GameSource
from keisei.policies.players.trained_player import TrainedPlayer, load
from keisei.policies.trust import trust_run, trust_settings
from keisei.runs.archive import CheckpointArchive
from keisei.runs.directory import CONFIG, ID, LOCK, NewRun, RunDirectory, run_name
from keisei.training.api import Plan, length_overrides, plan_run, refuse_while_imported
from keisei.training.callbacks import Callback
from keisei.training.chosen_settings import Regime, chosen_settings
from keisei.training.events import Counters
from keisei.training.interruption import Interruption
from keisei.training.named_game import named_game
from keisei.training.presets import run_config
from keisei.training.settings import TrainConfig
from keisei.training.wiring import counters_of

__all__ = ["DQN", "PPO", "Agent", "Score"]

logger = logging.getLogger(__name__)
Move = TypeVar("Move")

USUAL_MINUTES = 5.0
_OF_ONE_RUN = (CONFIG, ID, LOCK, "control", "live.json")


@dataclass(frozen=True)
class Score:
    """The results of an agent against an opponent."""

    score: float
    """The share of the games that it won; a draw is half a win. In games of other than two seats: the share of
    comparisons."""
    low: float
    high: float
    """The 95 % interval of the score."""
    match: MatchResult
    """All games, with returns, ranks, endings and Elo."""

    @classmethod
    def of(cls, match: MatchResult) -> Score:
        interval = match.score
        return cls(interval.value, interval.low, interval.high, match)

    def __str__(self) -> str:
        tally, (player, opponent) = self.match.tally(), self.match.players
        text = (
            f"{player} against {opponent}: {self.score:.1%} ({self.low:.1%} to {self.high:.1%}) in "
            f"{len(self.match.games)} games of {self.match.game}, {tally.wins} won, {tally.draws} drawn, "
            f"{tally.losses} lost"
        )
        if not self.match.by_returns:
            return text
        mean, theirs = self.match.mean_return, self.match.opponent_return
        return f"{text}; return {mean.value:.2f} ({mean.low:.2f} to {mean.high:.2f}), theirs {theirs:.2f}"


class Agent:
    """Learns a game by playing against itself. ``PPO`` and ``DQN`` say how."""

    _regime: ClassVar[Regime]

    def __init__(
        self,
        game: GameSource,
        *,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
        name: str | None = None,
        root: str | Path = "runs",
        **settings: Any,
    ) -> None:
        """``game`` is whatever ``make_game`` takes: a name, or a class of your own, with its ``options``.

        The settings are chosen by what the game is. A keyword changes one setting of the learner
        (``learning_rate=1e-3``), or the settings of a section (``model={"channels": 64}``). The run is named ``name``
        in the folder ``root``; by default it gets a free name made of the game's.
        """
        refuse_while_imported()
        found = named_game(game)
        chosen = chosen_settings(found.name, options, self._regime)
        chosen["evaluation"]["opponents"] = []  # that is what ``evaluate`` is for
        chosen["run"]["seed"] = seed
        if found.only_here:
            logger.warning("%s", found.only_here)
            chosen["parallel"]["backend"] = "thread"
        who = f"the settings of keisei.{type(self).__name__}"
        self.config = parse_settings(TrainConfig, _changed(chosen, settings), who).resolved()
        """All settings."""
        self.spec: GameSpec = self.config.env.make(batch=1, seed=0).spec
        self.run: RunDirectory | None = None
        """The run; None before the agent has learned."""
        self._name, self._root = name, Path(root)
        self._player: TrainedPlayer | None = None

    @classmethod
    def load(cls, path: str | Path, *, trust: bool = False) -> Self:
        """Takes up the agent of a run, or one that ``save`` has written, to train it further. ``keisei.load`` gives a
        player and says what ``trust`` means."""
        run = RunDirectory.open(Path(path))
        if trust:
            trust_run(run, keep=False)
        config = run_config(run)
        if config.learner.regime != cls._regime:
            raise ConfigError(
                f"{run.path} learns in regime {config.learner.regime}, and keisei.{cls.__name__} in {cls._regime}; "
                f"continue it with keisei.train({str(run.path)!r})"
            )
        agent = cls.__new__(cls)
        agent.config, agent.spec = config, config.env.make(batch=1, seed=0).spec
        agent._root, agent._name = run.path.parent, run.name
        agent.run, agent._player = run, None
        return agent

    def learn(
        self, *, minutes: float | None = None, steps: int | None = None, callbacks: Sequence[Callback] = ()
    ) -> Self:
        """Trains for ``minutes`` or for ``steps`` transitions, whichever comes first; for five minutes if neither is
        given. Another call goes on from there. Ctrl-C saves first."""
        if minutes is None and steps is None:
            minutes = USUAL_MINUTES
        before = self._counters()
        plan = self._plan(
            length_overrides(
                None if steps is None else before.transitions + steps,
                None if minutes is None else before.seconds / 60 + minutes,
            )
        )
        interruption = Interruption()
        try:
            with interruption.installed():
                plan.trainer(callbacks, interruption).train()
        finally:
            if (plan.run.path / CONFIG).is_file():  # else it could not even start
                self.run, self.config, self._player = plan.run, plan.config, None
        if interruption.requested:
            raise KeyboardInterrupt
        return self

    def _plan(self, length: Sequence[str]) -> Plan:
        if self.run is not None:
            return plan_run(self.run.path, root=self._root, overrides=length)
        name = self._name or _free_name(
            self._root, run_name(f"{self.spec.name}-{type(self).__name__.lower()}")
        )
        path = self._root / name
        if (path / CONFIG).is_file():
            raise RunExistsError(
                f"run {path} exists; go on with it: keisei.{type(self).__name__}.load({str(path)!r}), or choose "
                f"another name"
            )
        return plan_run(self.config, name=name, root=self._root, overrides=length)

    @property
    def player(self) -> TrainedPlayer:
        """The player with the weights of now, or with the best ones if the settings ask for evaluations."""
        if self._player is None:
            self._player = load(self._trained().path)
        return self._player

    def evaluate(
        self, opponent: PlayerLike | Agent | TrainedPlayer = "random", games: int = 100, seed: int = 0
    ) -> Score:
        """Plays a match. The opponent is a player by name (``random``, ``greedy``, ``search:2``), a run, a policy, or
        another agent."""
        run, env = self._trained(), self.config.env
        me, other = Player(run.name, self.player.policy), _as_player(opponent)
        match = play_match(env.game, env.game_options(), me, other, games, seed, root=run.path.parent)
        return Score.of(match)

    def predict(
        self, observations: ArrayLike, legal: ArrayLike, *, temperature: float = 0.0
    ) -> int | IntArray:
        """Chooses a legal action for each row; see ``TrainedPlayer.predict``."""
        return self.player.predict(observations, legal, temperature=temperature)

    def play(self, board: PackedBoard[Move], *, temperature: float = 0.0) -> Move:
        """Chooses a move on a board; see ``TrainedPlayer.play``."""
        return self.player.play(board, temperature=temperature)

    def save(self, path: str | Path) -> Path:
        """Copies the run to a new folder. ``keisei.load``, ``keisei play`` and the dashboard take it, and ``load`` of
        this class trains it further."""
        source, path = self._trained(), Path(path)
        new = NewRun.create(path.parent, path.name, source.config())
        trust_settings(new.run, self.config)
        try:
            shutil.copytree(source.path, path, symlinks=True, ignore=_own_of(source.path), dirs_exist_ok=True)
        except OSError as error:
            new.undo()
            raise RunError(f"{source.path} cannot be copied to {path}: {error}") from error
        return path

    def __repr__(self) -> str:
        done = self._counters()
        where = (
            "has not learned yet"
            if self.run is None
            else f"{done.transitions:,} transitions, {self.run.path}"
        )
        return f"<keisei.{type(self).__name__} of {self.spec.name}: {where}>"

    def _trained(self) -> RunDirectory:
        if self.run is None:
            raise RunError("the agent has not learned yet; call learn(minutes=1) first")
        return self.run

    def _counters(self) -> Counters:
        """Gets the counters of the whole run. The clock may have run on after its last checkpoint."""
        if self.run is None:
            return Counters()
        found = CheckpointArchive(self.run.checkpoints, read_only=True).latest()
        counters = Counters() if found is None else counters_of(found.checkpoint)
        return replace(counters, seconds=max(counters.seconds, self.run.status().seconds))


def _changed(chosen: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Puts the keywords of a user over chosen settings: those of a section, or one of the learner."""
    changed: dict[str, Any] = {section: dict(settings) for section, settings in chosen.items()}
    for name, value in given.items():
        if name not in TrainConfig.model_fields:
            changed["learner"][name] = value
        elif isinstance(value, Mapping):
            changed[name] = {**changed.get(name, {}), **value}
        else:
            changed[name] = value  # which is refused with the section's name
    return changed


def _free_name(root: Path, name: str) -> str:
    """Finds a free name: the name itself, or the name with the first free number."""
    numbered = (f"{name}-{number}" for number in count(2))
    return next(free for free in chain([name], numbered) if not (root / free).exists())


def _as_player(opponent: PlayerLike | Agent | TrainedPlayer) -> PlayerLike:
    if isinstance(opponent, Agent):
        return Player(opponent._trained().name, opponent.player.policy)
    return Player(opponent.name, opponent.policy) if isinstance(opponent, TrainedPlayer) else opponent


def _own_of(run: Path) -> Callable[[str, list[str]], list[str]]:
    """Makes a filter of the files that belong to one run alone and are not copied."""
    return lambda folder, names: [name for name in names if Path(folder) == run and name in _OF_ONE_RUN]


class PPO(Agent):
    """Learns by PPO: one network plays all seats. Independent agents: see ``ParallelEnvironment``."""

    _regime = "ppo"


class DQN(Agent):
    """Learns by DQN from a replay: one network plays all seats."""

    _regime = "dqn"
